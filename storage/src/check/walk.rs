//! Reading a whole space, around what can't be read.

use bytes::Bytes;
use souk_kv::{Error, KvSnapshot, Space};

use super::report::{Findings, ProblemKind};
use crate::limits::MAX_SCANNED_ROWS;
use crate::walk::Walk;

/// A walk that doesn't end where the engine can't read: it goes on behind the last such place.
pub(super) struct Through {
    walk: Walk,
    broken: bool,
}

impl Through {
    /// A whole space.
    pub(super) fn all(space: Space) -> Self {
        Self::over(Walk::all(space))
    }

    pub(super) fn over(walk: Walk) -> Self {
        Self { walk, broken: false }
    }

    /// Whether a part couldn't be read.
    pub(super) fn broken(&self) -> bool {
        self.broken
    }

    /// The next page that can be read; `None` at the end.
    pub(super) async fn next(
        &mut self,
        snapshot: &dyn KvSnapshot,
        findings: &mut Findings,
    ) -> Option<Vec<(Bytes, Bytes)>> {
        loop {
            match self.walk.next_of(snapshot, self.rows()).await {
                Ok(Some(page)) => return Some(page),
                Ok(None) => return None,
                // Page by page up to the damage, then entry by entry.
                Err(_) if !self.broken => self.broken = true,
                Err(error) => {
                    self.pass(snapshot, findings, &error).await;
                }
            }
        }
    }

    fn rows(&self) -> usize {
        if self.broken { 1 } else { MAX_SCANNED_ROWS }
    }

    /// Goes on behind the last place that can't be read, which is found from the end.
    async fn pass(&mut self, snapshot: &dyn KvSnapshot, findings: &mut Findings, error: &Error) {
        let mut rows = MAX_SCANNED_ROWS;
        let mut behind = self.walk.high();
        let mut readable = None;
        loop {
            match self.walk.last_of(snapshot, behind.clone(), rows).await {
                Ok(page) => {
                    if let Some((key, _)) = page.entries.last() {
                        behind = key.clone();
                        readable = Some(key.clone());
                    }
                    if page.next.is_none() {
                        break;
                    }
                }
                Err(_) if rows > 1 => rows = 1,
                Err(_) => break,
            }
        }
        let mut what = error.to_string();
        let mut cause = std::error::Error::source(error);
        while let Some(error) = cause {
            what += &format!(": {error}");
            cause = error.source();
        }
        let end = readable
            .as_ref()
            .map_or_else(|| "the end".to_owned(), hexadecimal);
        let begin = self.walk.low().filter(|low| !low.is_empty());
        let begin = begin.map_or_else(|| "the begin".to_owned(), hexadecimal);
        findings.problem(
            ProblemKind::Unreadable,
            self.walk.space,
            format!("from {begin} to before {end}: {what}"),
        );
        self.walk.go_to(readable);
    }
}

/// A stored key as it is shown.
pub(super) fn hexadecimal(key: &Bytes) -> String {
    use std::fmt::Write as _;
    const SHOWN: usize = 48;
    let mut out = String::from("key ");
    for byte in key.iter().take(SHOWN) {
        // Writing to a string doesn't fail.
        let _ = write!(out, "{byte:02x}");
    }
    if key.len() > SHOWN {
        out.push('…');
    }
    out
}

//! The log: dense, readable, and its last word on each row is the row.

use std::collections::BTreeMap;

use bytes::Bytes;
use souk_kv::{KvSnapshot, Space};

use super::catalog::CheckedCatalog;
use super::report::{Findings, ProblemKind};
use super::rows::{self, Rows};
use super::walk::{Through, hexadecimal};
use crate::catalog::Table;
use crate::change::{Change, RowChange, codec};
use crate::contents::ChangeTime;
use crate::error::Result;
use crate::key;
use crate::limits::{MAX_GONE_ROWS, MAX_MULTI_GET_ROWS};
use crate::row::Row;

pub(super) async fn check(
    snapshot: &dyn KvSnapshot,
    catalog: &CheckedCatalog,
    rows: &Rows,
    findings: &mut Findings,
) {
    let mut walk = Through::all(Space::Log);
    let mut expected = findings.trimmed + 1;
    let mut matched = 0;
    let mut malformed = false;
    let mut gone = Gone::default();
    while let Some(page) = walk.next(snapshot, findings).await {
        let bytes = page
            .iter()
            .map(|(key, value)| key.len() + value.len())
            .sum::<usize>();
        findings.read(Space::Log, page.len() as u64, bytes as u64);
        findings.log.changes += page.len() as u64;
        findings.log.bytes += bytes as u64;
        for (key, entry) in &page {
            match read(key, entry) {
                Ok(change) => {
                    dense(expected, change.sequence, findings);
                    expected = change.sequence + 1;
                    let time = ChangeTime {
                        sequence: change.sequence,
                        time: change.time,
                    };
                    findings.log.oldest.get_or_insert(time);
                    findings.log.newest = Some(time);
                    matched += against_rows(snapshot, catalog, &change, &mut gone, findings).await;
                }
                Err(error) => {
                    malformed = true;
                    expected = key::sequence_of_log(key).map_or(expected, |sequence| sequence + 1);
                    findings.malformed(Space::Log, &error);
                }
            }
        }
    }
    dense(expected, findings.sequence + 1, findings);
    if !malformed && !walk.broken() && !rows.broken {
        for (key, sequence) in gone.rows {
            let what = format!(
                "change {sequence} wrote a row that is not there: {}",
                hexadecimal(&key)
            );
            findings.problem(ProblemKind::LogDisagrees, Space::Rows, what);
        }
    }
    if matched != rows.in_log && !malformed && !walk.broken() && !rows.broken {
        let what = format!(
            "{} rows say that a change from {} on wrote them, but the log says so of {matched}",
            rows.in_log,
            findings.trimmed + 1
        );
        findings.problem(ProblemKind::LogDisagrees, Space::Log, what);
    }
}

/// Rows that changes wrote and that aren't there: each waits for the change that deleted it.
#[derive(Debug, Default)]
struct Gone {
    rows: BTreeMap<Bytes, u64>,
}

impl Gone {
    /// Above [`MAX_GONE_ROWS`] at a time a lost row may go unnoticed.
    fn put(&mut self, key: &Bytes, sequence: u64) {
        if self.rows.len() < MAX_GONE_ROWS || self.rows.contains_key(key) {
            self.rows.insert(key.clone(), sequence);
        }
    }

    fn deleted(&mut self, key: &Bytes) {
        self.rows.remove(key);
    }
}

fn read(key: &[u8], entry: &[u8]) -> Result<Change> {
    codec::decode(key::sequence_of_log(key)?, entry)
}

fn dense(expected: u64, found: u64, findings: &mut Findings) {
    if found > expected {
        let what = format!("changes {expected} to {} are missing", found - 1);
        findings.problem(ProblemKind::LogIncomplete, Space::Log, what);
    } else if found < expected {
        let what = format!("change {found} is outside of the log, which begins after the trimmed ones");
        findings.problem(ProblemKind::LogIncomplete, Space::Log, what);
    }
}

/// Holds a change against the rows; gives how many of them it was the last to write.
async fn against_rows(
    snapshot: &dyn KvSnapshot,
    catalog: &CheckedCatalog,
    change: &Change,
    gone: &mut Gone,
    findings: &mut Findings,
) -> u64 {
    let known: Vec<_> = change
        .rows
        .iter()
        // Of a table that was dropped since there are no rows.
        .filter_map(|row| Some((catalog.tables.get(row.table)?, row)))
        .collect();
    let mut last = 0;
    for part in known.chunks(MAX_MULTI_GET_ROWS) {
        let keys: Vec<Bytes> = part
            .iter()
            .map(|(table, row)| key::row(table.id(), &row.key))
            .collect();
        // What can't be read was reported with the rows.
        let Ok(found) = snapshot.multi_get(Space::Rows, keys.clone()).await else {
            continue;
        };
        for (((table, changed), key), found) in part.iter().zip(&keys).zip(found) {
            match verdict(table, changed, change.sequence, key, found) {
                Verdict::Last => last += 1,
                Verdict::Superseded => {}
                Verdict::Gone => gone.put(key, change.sequence),
                Verdict::Deleted => gone.deleted(key),
                Verdict::Problem(problem) => {
                    let what = format!(
                        "change {} of row {:?} of table {:?}: {problem}",
                        change.sequence,
                        changed.key,
                        table.name()
                    );
                    findings.problem(ProblemKind::LogDisagrees, Space::Log, what);
                }
            }
        }
    }
    last
}

enum Verdict {
    /// The row is as the change left it.
    Last,
    /// A later change wrote it.
    Superseded,
    /// It isn't there, so that a later change must have deleted it.
    Gone,
    /// It isn't there, as it should.
    Deleted,
    Problem(&'static str),
}

fn verdict(table: &Table, changed: &RowChange, sequence: u64, key: &[u8], found: Option<Bytes>) -> Verdict {
    let Some(value) = found else {
        return match &changed.row {
            None => Verdict::Deleted,
            Some(_) => Verdict::Gone,
        };
    };
    let Ok(row) = rows::read(table, key, &value) else {
        return Verdict::Superseded;
    };
    match &changed.row {
        _ if row.revision > sequence => Verdict::Superseded,
        None => Verdict::Problem("it was deleted, but is there"),
        Some(_) if row.revision < sequence => Verdict::Problem("the row is older"),
        Some(image) if same(table, &row, image) => Verdict::Last,
        Some(_) => Verdict::Problem("the row is another"),
    }
}

/// Versions above what the table keeps may have been cleaned up behind the log's back.
fn same(table: &Table, row: &Row, image: &Row) -> bool {
    if row == image {
        return true;
    }
    let kept = table.schema().max_versions as usize;
    let cut = |row: &Row| {
        let mut row = row.clone();
        row.columns_mut().retain_cells(|_, place, _| place < kept);
        row
    };
    cut(row) == cut(image)
}

//! How much the sort values of the best documents may hold while a page is found.

use std::io;

use super::standing::Standing;
use crate::error::Error;
use crate::limits::MAX_SORT_BYTES;

/// The strings of the best documents hold more than [`MAX_SORT_BYTES`].
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the sort values hold {0} bytes")]
struct Exceeded(usize);

/// What may still be held.
#[derive(Debug)]
pub(super) struct Budget {
    held: usize,
}

impl Budget {
    /// What these documents leave.
    pub(super) fn beside<'a>(documents: impl IntoIterator<Item = &'a [Standing]>) -> Self {
        let bytes = |standing: &Standing| match standing {
            Standing::Bytes(bytes) => bytes.len(),
            Standing::Missing | Standing::Number(_) => 0,
        };
        let held = documents.into_iter().flatten().map(bytes).sum();
        Self { held }
    }

    /// A copy of a string, as long as there is room for it.
    pub(super) fn copy(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held = self.held.saturating_add(bytes.len());
        if self.held > MAX_SORT_BYTES {
            return Vec::new();
        }
        bytes.to_vec()
    }

    /// Fails when there wasn't room for all.
    pub(super) fn check(&self) -> io::Result<()> {
        if self.held > MAX_SORT_BYTES {
            return Err(io::Error::other(Exceeded(self.held)));
        }
        Ok(())
    }
}

/// An error of reading sort values, as the search tells it.
pub(crate) fn unreadable(source: io::Error) -> Error {
    let exceeded = source
        .get_ref()
        .and_then(|cause| cause.downcast_ref::<Exceeded>());
    match exceeded {
        Some(Exceeded(actual)) => Error::LimitExceeded {
            path: "skip".to_owned(),
            limit: "MAX_SORT_BYTES",
            max: MAX_SORT_BYTES as u64,
            actual: *actual as u64,
            advice: "skip fewer hits, follow page tokens, or sort by shorter values",
        },
        None => Error::Io {
            doing: "reading the columns of a segment",
            source,
        },
    }
}

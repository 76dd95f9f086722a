//! What an engine tells as it happens, to whoever measures it. What can be looked at instead is in [`crate::figures`].

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use crate::error::EngineError;

/// Is told of what an engine does. It is called where that happens, and must be brief.
pub trait Observer: Debug + Send + Sync {
    /// An access to a table has ended; `error` is its `error.type`.
    fn accessed(
        &self,
        operation: &'static str,
        table: &Arc<str>,
        error: Option<&'static str>,
        took: Duration,
    ) {
        let _ = (operation, table, error, took);
    }

    /// Searches of a table see changes that they didn't before.
    fn applied(&self, table: &Arc<str>, took: Duration) {
        let _ = (table, took);
    }

    /// An index has, or will have, at least as many documents as [`crate::EngineConfig::large_index_from`].
    fn holds_much(&self, table: &Arc<str>, documents: u64) {
        let _ = (table, documents);
    }
}

/// Measures nothing.
#[derive(Clone, Copy, Debug)]
pub struct Unobserved;

impl Observer for Unobserved {}

/// An error as `error.type` names it: few words, and never what a client sent.
pub(crate) trait ErrorType {
    /// `None` for what is no failure of the access, such as a row that isn't there.
    fn error_type(&self) -> Option<&'static str>;
}

impl ErrorType for souk_storage::Error {
    fn error_type(&self) -> Option<&'static str> {
        Some(self.code())
    }
}

impl ErrorType for EngineError {
    fn error_type(&self) -> Option<&'static str> {
        match self {
            Self::Storage(error) => Some(error.code()),
            Self::DeadlineExceeded(_) => Some("DEADLINE_EXCEEDED"),
            Self::IndexStalled { .. } => Some("INDEX_STALLED"),
            _ => None,
        }
    }
}

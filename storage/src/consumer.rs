//! Named consumers of the change log: what they haven't taken isn't trimmed.

use std::sync::Arc;

use crate::database::Shared;
use crate::error::{Error, Result};

/// A named position in the change log. Handles of one name share it.
#[derive(Debug, Clone)]
pub struct Consumer {
    pub(crate) name: String,
    pub(crate) shared: Arc<Shared>,
}

impl Consumer {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The last sequence it has taken; 0 for none.
    pub fn position(&self) -> u64 {
        0
    }

    /// Says that all changes up to `sequence` are taken and may be trimmed. A position never goes back: a lower one
    /// changes nothing. Kept without waiting for the disk: after a loss of power it may be an older one.
    ///
    /// # Errors
    /// [`Error::Invalid`] beyond the end of the log, [`Error::Unavailable`].
    pub async fn advance(&self, _sequence: u64) -> Result<()> {
        Err(Error::Unavailable {
            reason: "not built yet".to_owned(),
        })
    }

    /// Forgets the consumer: it holds back nothing any more.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn remove(self) -> Result<()> {
        Err(Error::Unavailable {
            reason: "not built yet".to_owned(),
        })
    }
}

//! What a commit says of itself, inside the index's own commit: documents and position are one thing.

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::misfit::MisfitLog;

/// The payload of a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cursor {
    /// The last change that the commit includes.
    pub(crate) sequence: u64,
    /// The misfits up to there.
    pub(crate) misfits: MisfitLog,
    /// What the one who fills the index needs to go on; `None` when everything up to `sequence` is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resume: Option<String>,
}

impl Cursor {
    pub(crate) fn encode(&self) -> Result<String, Error> {
        serde_json::to_string(self).map_err(|error| Error::Io {
            doing: "writing the cursor",
            source: error.into(),
        })
    }

    /// Reads a payload; an index that was never committed has none, and starts at 0.
    pub(crate) fn decode(payload: Option<&str>) -> Result<Self, Error> {
        let Some(payload) = payload else {
            return Ok(Self::default());
        };
        serde_json::from_str(payload).map_err(|error| Error::Corrupt {
            detail: format!("the commit's cursor can't be read: {error}"),
            source: None,
        })
    }
}

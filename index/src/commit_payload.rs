//! The payload of a commit, inside the index's own: documents and position are one thing.

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::misfit::MisfitLog;

/// The payload of a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommitPayload {
    /// The last change that the commit includes.
    pub(crate) sequence: u64,
    /// The misfits up to there.
    pub(crate) misfits: MisfitLog,
    /// What the one who fills the index needs to go on; `None` when everything up to `sequence` is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resume: Option<String>,
}

impl CommitPayload {
    pub(crate) fn encode(&self) -> Result<String, Error> {
        serde_json::to_string(self).map_err(|error| Error::io("writing the cursor")(error.into()))
    }

    /// Reads a payload; an index that was never committed has none, and starts at 0.
    pub(crate) fn decode(payload: Option<&str>) -> Result<Self, Error> {
        let Some(payload) = payload else {
            return Ok(Self::default());
        };
        serde_json::from_str(payload)
            .map_err(|error| Error::corrupt(format!("the commit's cursor can't be read: {error}")))
    }
}

//! How far an export has come, in a file beside its own, so that it can go on.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::load::checkpoint::{self, CheckpointError, CheckpointLock, LoadCheckpoint};

/// How far the file of an export has come. Everything up to here is on the disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ExportCheckpoint {
    /// Which server; none in a checkpoint of an earlier version.
    #[serde(default)]
    pub(super) server: String,
    /// Which table.
    pub(super) table: String,
    /// The columns of the file, and with them its format.
    pub(super) shape: String,
    /// The last key, as JSON; empty before the first row.
    pub(super) key: String,
    /// Goes on behind it in the same snapshot; empty when that is gone.
    pub(super) token: String,
    /// Rows so far.
    pub(super) rows: u64,
    /// Bytes of the file, or pieces of one of Parquet.
    pub(super) mark: u64,
}

/// Why an export can't go on.
#[derive(Debug, thiserror::Error)]
pub enum ExportCheckpointError {
    /// The file.
    #[error("the checkpoint {path} can't be read or written")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Its content.
    #[error("{path} isn't the checkpoint of an export; leave out --resume to start over")]
    Damaged {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: serde_json::Error,
    },
    /// Another process writes it.
    #[error("another export to {path} is under way; wait for its end, or stop it")]
    InUse {
        /// The file with rows.
        path: PathBuf,
    },
    /// It can't be locked.
    #[error(transparent)]
    Lock(CheckpointError),
    /// It is of another export.
    #[error(
        "{path} is the checkpoint of an export of {found}, not of {wanted}; leave out --resume to start over"
    )]
    Other {
        /// Which.
        path: PathBuf,
        /// What it is of.
        found: String,
        /// What is exported.
        wanted: String,
    },
    /// The rows aren't there.
    #[error("{path} is shorter than its checkpoint says; leave out --resume to start over")]
    Shorter {
        /// The file with rows.
        path: PathBuf,
    },
    /// Some of the rows aren't there.
    #[error("{path}, a part of the export, is missing; leave out --resume to start over")]
    Missing {
        /// The piece.
        path: PathBuf,
    },
}

impl ExportCheckpoint {
    /// Where it is kept, of the file at `path`.
    pub(super) fn path(path: &Path) -> PathBuf {
        path.with_added_extension("resume")
    }

    /// Locks the export to the file at `path`.
    pub(super) fn lock(path: &Path) -> Result<CheckpointLock, ExportCheckpointError> {
        LoadCheckpoint::lock(&Self::path(path)).map_err(|error| match error {
            CheckpointError::InUse { .. } => ExportCheckpointError::InUse {
                path: path.to_owned(),
            },
            error => ExportCheckpointError::Lock(error),
        })
    }

    /// Reads where an export is; its beginning when there is no such file.
    pub(super) fn read(path: &Path, wanted: Self) -> Result<Self, ExportCheckpointError> {
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(wanted),
            Err(source) => {
                let path = path.to_owned();
                return Err(ExportCheckpointError::Io { path, source });
            }
        };
        let found: Self = serde_json::from_slice(&text).map_err(|source| {
            let path = path.to_owned();
            ExportCheckpointError::Damaged { path, source }
        })?;
        if (&found.server, &found.table, &found.shape) != (&wanted.server, &wanted.table, &wanted.shape) {
            let of = |checkpoint: &Self| {
                format!(
                    "{} of {} as {}",
                    checkpoint.table, checkpoint.server, checkpoint.shape
                )
            };
            return Err(ExportCheckpointError::Other {
                path: path.to_owned(),
                found: of(&found),
                wanted: of(&wanted),
            });
        }
        Ok(found)
    }

    /// Keeps it. A crash or a power cut leaves the old or the new one.
    pub(super) fn save(&self, path: &Path) -> Result<(), ExportCheckpointError> {
        let saved = serde_json::to_vec(self)
            .map_err(io::Error::from)
            .and_then(|text| checkpoint::replace(path, &text));
        saved.map_err(|source| {
            let path = path.to_owned();
            ExportCheckpointError::Io { path, source }
        })
    }

    /// There is nothing left to go on with.
    pub(super) fn remove(path: &Path) -> Result<(), ExportCheckpointError> {
        match fs::remove_file(path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                let path = path.to_owned();
                Err(ExportCheckpointError::Io { path, source })
            }
            _ => Ok(()),
        }
    }
}

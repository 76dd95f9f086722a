//! How far a load has come, in a file, so that it can go on.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Why a checkpoint can't be used.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The file.
    #[error("the checkpoint {path} can't be read or written")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Its content.
    #[error("{path} isn't a checkpoint; remove it to start over")]
    Damaged {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: serde_json::Error,
    },
    /// Another process has it.
    #[error(
        "another load or import is under way, with the same checkpoint: it holds {lock}; wait for its end, or stop it"
    )]
    InUse {
        /// The file by which it holds the checkpoint.
        lock: PathBuf,
    },
    /// It belongs to something else.
    #[error(
        "{path} is the checkpoint of `{found}`, not of `{wanted}`; use another --state, or leave out --resume"
    )]
    Other {
        /// Which.
        path: PathBuf,
        /// What it is of.
        found: String,
        /// What is loaded.
        wanted: String,
    },
}

/// The content of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct LoadPosition {
    dataset: String,
    /// Names the load that began here, among all of that data set.
    #[serde(default)]
    run: String,
    /// All batches before this one are done.
    batches: u64,
    /// Rows in them.
    rows: u64,
    /// Those of them that were refused.
    rejected: u64,
    /// Whether the load came to its end.
    complete: bool,
}

/// An exclusive lock on a checkpoint, held until it is dropped, or its process ends.
#[derive(Debug)]
pub struct CheckpointLock {
    path: PathBuf,
    _file: File,
}

impl Drop for CheckpointLock {
    fn drop(&mut self) {
        // Still locked: who has opened it looks for its name when it has the lock. One that stays is in nobody's way.
        let _ = fs::remove_file(&self.path);
    }
}

/// How far a load has come. Batches end in any order; the position is where none is missing before.
#[derive(Debug)]
pub struct LoadCheckpoint {
    path: Option<PathBuf>,
    position: LoadPosition,
    /// Batches that are done behind one that isn't: rows and refused rows.
    ahead: BTreeMap<u64, (u64, u64)>,
}

impl LoadCheckpoint {
    /// A load from the start; its position is written to `path`, if any.
    #[must_use]
    pub fn start(path: Option<&Path>, dataset: &str) -> Self {
        let position = LoadPosition {
            dataset: dataset.to_owned(),
            run: Uuid::new_v4().to_string(),
            ..LoadPosition::default()
        };
        Self {
            path: path.map(Path::to_owned),
            position,
            ahead: BTreeMap::new(),
        }
    }

    /// A load that goes on from `path`, or starts when there is no such file.
    ///
    /// # Errors
    /// When the file can't be read or is of another data set.
    pub fn resume(path: &Path, dataset: &str) -> Result<Self, CheckpointError> {
        let mut checkpoint = Self::start(Some(path), dataset);
        let path = path.to_owned();
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(checkpoint),
            Err(source) => return Err(CheckpointError::Io { path, source }),
        };
        let position: LoadPosition = match serde_json::from_slice(&text) {
            Ok(position) => position,
            Err(source) => return Err(CheckpointError::Damaged { path, source }),
        };
        if position.dataset != dataset {
            let (found, wanted) = (position.dataset, dataset.to_owned());
            return Err(CheckpointError::Other { path, found, wanted });
        }
        checkpoint.position = position;
        Ok(checkpoint)
    }

    /// Locks the checkpoint at `path`, by a file beside it, since the checkpoint is replaced whenever it is saved.
    ///
    /// # Errors
    /// [`CheckpointError::InUse`]; when the file can't be locked.
    pub fn lock(path: &Path) -> Result<CheckpointLock, CheckpointError> {
        let path = path.with_added_extension("lock");
        let failed = |source| CheckpointError::Io {
            path: path.clone(),
            source,
        };
        // To open a pipe would wait for its reader.
        if fs::metadata(&path).is_ok_and(|there| !there.is_file()) {
            return Err(failed(io::Error::other("it is not a regular file")));
        }
        loop {
            let mut options = File::options();
            options.create(true).write(true).truncate(false);
            let file = options.open(&path).map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(CheckpointError::InUse { lock: path.clone() }),
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
            // The one who had it before may have removed it in the meantime.
            if is_named(&file, &path).map_err(failed)? {
                let path = path.clone();
                return Ok(CheckpointLock { path, _file: file });
            }
        }
    }

    /// A name of this load and of those that resume it alone.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.position.run
    }

    /// Batches that need not be sent again.
    #[must_use]
    pub fn batches(&self) -> u64 {
        self.position.batches
    }

    /// Rows in those batches.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.position.rows
    }

    /// Rows that were refused so far.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.position.rejected + self.ahead.values().map(|(_, rejected)| rejected).sum::<u64>()
    }

    /// Whether the load came to its end.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.position.complete
    }

    pub(super) fn finish(&mut self, batch: u64, rows: u64, rejected: u64) {
        self.ahead.insert(batch, (rows, rejected));
        while let Some((rows, rejected)) = self.ahead.remove(&self.position.batches) {
            self.position.batches += 1;
            self.position.rows += rows;
            self.position.rejected += rejected;
        }
    }

    /// Writes down that the load came to its end.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn complete(&mut self) -> Result<(), CheckpointError> {
        self.position.complete = true;
        self.save()
    }

    /// Removes the file: nothing is left to go on with.
    ///
    /// # Errors
    /// When it can't be removed.
    pub fn remove(self) -> Result<(), CheckpointError> {
        let Some(path) = self.path else { return Ok(()) };
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(CheckpointError::Io { path, source })
            }
            _ => Ok(()),
        }
    }

    /// Writes down how far the load is, and brings that to the disk.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn save(&self) -> Result<(), CheckpointError> {
        let Some(path) = &self.path else { return Ok(()) };
        write(path, &self.position).map_err(|source| CheckpointError::Io {
            path: path.clone(),
            source,
        })
    }
}

/// With neither the old nor the new one, the name of the load would be lost, which keeps rows from being written twice.
fn write(path: &Path, position: &LoadPosition) -> io::Result<()> {
    replace(path, &serde_json::to_vec(position)?)
}

/// Replaces a file, durably: a crash or a power cut leaves the old or the new one.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let beside = path.with_added_extension("new");
    let mut file = File::create(&beside)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    sync_folder(path)
}

/// Makes the names in the folder of a file durable.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Whether a file is the one at `path`.
fn is_named(file: &File, path: &Path) -> io::Result<bool> {
    let of = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    match fs::metadata(path) {
        Ok(named) => Ok(of(named) == of(file.metadata()?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

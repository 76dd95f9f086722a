//! The folder of an index with commits that are visible at once and durable at checkpoints.
//!
//! tantivy makes each commit durable by itself: several fsyncs, up to 100 ms on a busy disk. Here the files of a commit
//! are written without waiting for the disk, and the two files that say which of them belong to the index (`meta.json`,
//! `.managed.json`) stay in memory. [`SoftDirectory::checkpoint`] makes the present state durable: data files first, then
//! the names, then the two lists, and only then are the files deleted that the list on disk doesn't name any more. So
//! after a crash the folder is exactly the last checkpoint, plus files that no list names and that the next opening
//! sweeps away.
//!
//! What is made of damaged bytes has a right checksum again: merges compare the files that they read with theirs first,
//! and lists of deleted documents, of which each commit makes the next, are compared whenever they are opened.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tantivy::Directory;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, DirectoryLock, FileHandle, Lock, MmapDirectory, TerminatingWrite, WatchCallback,
    WatchHandle, WritePtr,
};

use crate::checksum::{self, IndexDamage};
use crate::merge_log::{MergeFigures, MergeLog};

/// The list of segments with the commit's payload, and the list of the library's files. On the disk each is
/// [sealed](checksum::seal).
pub(crate) const META_FILE: &str = "meta.json";
pub(crate) const MANAGED_FILE: &str = ".managed.json";
/// How the names of lists of deleted documents end.
pub(crate) const DELETES: &str = "del";

/// See the module's documentation. Clones are the same directory.
#[derive(Clone, Debug)]
pub(crate) struct SoftDirectory {
    pub(crate) root: Arc<PathBuf>,
    inner: MmapDirectory,
    pending: Arc<Mutex<Pending>>,
    merges: MergeLog,
    pub(crate) damage: IndexDamage,
}

/// What the disk doesn't know yet.
#[derive(Debug, Default)]
struct Pending {
    /// The lists, as far as they were written since the folder was opened.
    lists: HashMap<PathBuf, Vec<u8>>,
    /// Whether a list differs from the disk's.
    lists_changed: bool,
    /// Complete files whose bytes may not have reached the disk.
    unsynced: HashSet<PathBuf>,
    /// Files that nobody needs, but that the list on disk may name.
    deleted: HashSet<PathBuf>,
}

impl SoftDirectory {
    pub(crate) fn open(root: &Path) -> tantivy::Result<Self> {
        Ok(Self {
            root: Arc::new(root.to_owned()),
            inner: MmapDirectory::open(root)?,
            pending: Arc::default(),
            merges: MergeLog::default(),
            damage: IndexDamage::default(),
        })
    }

    /// Compares a file with its checksum, and remembers damage; see [`checksum::compare`].
    pub(crate) fn verify(&self, path: &Path, go_on: impl FnMut(u64) -> bool) -> io::Result<bool> {
        checksum::compare(&self.root.join(path), go_on).map_err(|error| {
            if !checksum::is_damage(&error) {
                return error;
            }
            let detail = format!("{} can't be used: {error}", path.display());
            let _ = self.damage.found(detail.clone());
            io::Error::new(io::ErrorKind::InvalidData, detail)
        })
    }

    pub(crate) fn bytes(&self, path: &Path) -> io::Result<u64> {
        Ok(std::fs::metadata(self.root.join(path))?.len())
    }

    /// A list as the disk has it.
    fn read_list(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        let changed =
            || OpenReadError::wrap_io_error(checksum::damaged("has another checksum"), path.to_owned());
        checksum::unseal(self.inner.atomic_read(path)?).ok_or_else(changed)
    }

    /// Replaces a list on the disk, durably, of an index that isn't open.
    pub(crate) fn replace_list(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        self.inner.atomic_write(path, &checksum::seal(content))?;
        self.inner.sync_directory()
    }

    pub(crate) fn merges(&self) -> MergeFigures {
        self.merges.figures()
    }

    /// Makes the present state durable. After an error nothing is known about the disk: don't try again, open anew.
    pub(crate) fn checkpoint(&self) -> io::Result<()> {
        let (lists, unsynced, deleted) = {
            let mut pending = self.pending.lock();
            if !pending.lists_changed && pending.unsynced.is_empty() && pending.deleted.is_empty() {
                return Ok(());
            }
            pending.lists_changed = false;
            // One cut: every file that these lists name was complete when they were written.
            (
                pending.lists.clone(),
                std::mem::take(&mut pending.unsynced),
                std::mem::take(&mut pending.deleted),
            )
        };
        for path in unsynced.difference(&deleted) {
            File::open(self.root.join(path))?.sync_data()?;
        }
        self.inner.sync_directory()?;
        for name in [MANAGED_FILE, META_FILE] {
            if let Some(content) = lists.get(Path::new(name)) {
                let content = checksum::seal(content);
                self.inner.atomic_write(Path::new(name), &content)?;
            }
        }
        self.inner.sync_directory()?;
        for path in deleted {
            remove_file(&self.inner, &path)?;
        }
        // The library keeps the name of each file that it has mapped, and forgets those that are gone when it is asked.
        let _ = self.inner.get_cache_info();
        Ok(())
    }
}

/// Deletes a file; one that is gone already is fine.
fn remove_file(directory: &MmapDirectory, path: &Path) -> io::Result<()> {
    match directory.delete(path) {
        Ok(()) | Err(DeleteError::FileDoesNotExist(_)) => Ok(()),
        Err(DeleteError::IoError { io_error, .. }) => {
            Err(io::Error::new(io_error.kind(), io_error.to_string()))
        }
    }
}

impl Directory for SoftDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        let is_copied = crate::priority::lower_if_merging()
            || path.extension().is_some_and(|extension| extension == DELETES);
        if is_copied {
            let verified = self.verify(path, |_| true);
            verified.map_err(|error| OpenReadError::wrap_io_error(error, path.to_owned()))?;
        }
        self.inner.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.merges.removed(path);
        let mut pending = self.pending.lock();
        if pending.unsynced.remove(path) {
            // Made since the last checkpoint: no list on disk names it.
            drop(pending);
            return self.inner.delete(path);
        }
        pending.deleted.insert(path.to_owned());
        Ok(())
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        if self.pending.lock().lists.contains_key(path) {
            return Ok(true);
        }
        self.inner.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        if crate::priority::lower_if_merging() {
            self.merges.opened(path);
        }
        let file = File::create_new(self.root.join(path)).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => OpenWriteError::FileAlreadyExists(path.to_owned()),
            _ => OpenWriteError::wrap_io_error(error, path.to_owned()),
        })?;
        Ok(BufWriter::new(Box::new(SoftFile {
            file,
            path: path.to_owned(),
            pending: Arc::clone(&self.pending),
        })))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        if let Some(content) = self.pending.lock().lists.get(path) {
            return Ok(content.clone());
        }
        if [META_FILE, MANAGED_FILE].map(Path::new).contains(&path) {
            return self.read_list(path);
        }
        self.inner.atomic_read(path)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        if path == Path::new(META_FILE) {
            self.merges.listed(data);
        }
        let mut pending = self.pending.lock();
        pending.lists.insert(path.to_owned(), data.to_vec());
        pending.lists_changed = true;
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        self.inner.acquire_lock(lock)
    }

    fn watch(&self, _callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}

/// A file under way. It counts as unsynced when it is complete, not before: a checkpoint in between would otherwise
/// believe it synced.
struct SoftFile {
    file: File,
    path: PathBuf,
    pending: Arc<Mutex<Pending>>,
}

impl Write for SoftFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl TerminatingWrite for SoftFile {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        self.file.flush()?;
        let path = std::mem::take(&mut self.path);
        self.pending.lock().unsynced.insert(path);
        Ok(())
    }
}

//! The folder of a backup while it is taken: beside its place, locked, and renamed when it is whole.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self as stdio, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use souk_kv::Space;

use super::blocks::BlockFile;
use super::disk_guard::BackupDiskGuard;
use super::manifest::{BackupFile, MANIFEST, Manifest};
use super::{Entry, io};
use crate::error::{Error, Result};
use crate::limits::BACKUP_FILE_BYTES;

/// Ends the name of a backup that isn't whole.
const PARTIAL: &str = ".partial";
const LOCK: &str = "LOCK";

/// A backup that is being taken. Dropped before it is published, it gives back the room that it took.
pub(super) struct Partial {
    target: PathBuf,
    path: PathBuf,
    guard: BackupDiskGuard,
    /// Held until the end.
    _lock: File,
    published: bool,
    open: Option<BlockFile>,
    files: Vec<BackupFile>,
}

impl Partial {
    /// Begins a backup for a folder that isn't there. What an interrupted one left behind is removed.
    pub(super) fn create(target: &Path, guard: BackupDiskGuard) -> Result<Self> {
        if target.try_exists().map_err(io("look for", target))? {
            return Err(Error::invalid(
                format!("the folder of a backup, {target:?},"),
                "exists",
            ));
        }
        let path = partial(target)?;
        fs::create_dir_all(&path).map_err(io("create", &path))?;
        let lock = lock(&path)?;
        clear(&path)?;
        Ok(Self {
            target: target.to_owned(),
            path,
            guard,
            _lock: lock,
            published: false,
            open: None,
            files: Vec::new(),
        })
    }

    /// Adds entries behind those of the same space; a space is added as a whole before the next.
    ///
    /// # Errors
    /// [`Error::DiskFull`] before it takes the room that writers of the database need.
    pub(super) fn add(&mut self, space: Space, entries: &[Entry]) -> Result<()> {
        let bytes: usize = entries.iter().map(|(key, value)| key.len() + value.len()).sum();
        self.guard.check(&self.path, bytes as u64)?;
        let fits = |file: &BlockFile| file.space() == space && file.bytes() < BACKUP_FILE_BYTES;
        if !self.open.as_ref().is_some_and(fits) {
            self.end_file()?;
            let name = format!("{}-{:05}.blocks", space_name(space), self.files.len());
            self.open = Some(BlockFile::create(&self.path, space, name)?);
        }
        if let Some(file) = &mut self.open {
            for (key, value) in entries {
                file.add(key, value)?;
            }
        }
        Ok(())
    }

    /// Makes all files durable.
    pub(super) fn finish_files(&mut self) -> Result<Vec<BackupFile>> {
        self.end_file()?;
        Ok(std::mem::take(&mut self.files))
    }

    /// Makes it a backup, durably: from now on it is there, before it was not.
    pub(super) fn publish(mut self, manifest: &Manifest) -> Result<()> {
        let path = self.path.join(MANIFEST);
        File::create_new(&path)
            .and_then(|mut file| {
                file.write_all(manifest.encode().as_bytes())?;
                file.sync_all()
            })
            .map_err(io("write", &path))?;
        sync_directory(&self.path)?;
        fs::rename(&self.path, &self.target).map_err(io("rename", &self.path))?;
        self.published = true;
        sync_directory(parent(&self.target))?;
        // Not before: whoever locked a new file of that name would clear the folder away.
        let lock = self.target.join(LOCK);
        fs::remove_file(&lock).map_err(io("remove", &lock))
    }

    fn end_file(&mut self) -> Result<()> {
        if let Some(file) = self.open.take() {
            self.files.push(file.finish()?);
        }
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.published
            && let Err(error) = clear(&self.path)
        {
            tracing::warn!(
                code = error.code(),
                "cannot clear away a backup that isn't whole: {error}"
            );
        }
    }
}

/// Removes what is in the folder of a backup that isn't whole, but for its lock, which is held.
fn clear(partial: &Path) -> Result<()> {
    for entry in fs::read_dir(partial).map_err(io("list", partial))? {
        let entry = entry.map_err(io("list", partial))?;
        if entry.file_name() != LOCK {
            fs::remove_file(entry.path()).map_err(io("remove", &entry.path()))?;
        }
    }
    Ok(())
}

/// Removes what interrupted backups left in a folder: they take room, and nobody asks for them by their names again.
pub(super) fn remove_interrupted(folder: &Path) -> Result<()> {
    for name in names(folder)?.into_iter().filter(|name| is_partial(name)) {
        let path = folder.join(name);
        if !path.is_dir() {
            continue;
        }
        match lock(&path) {
            Ok(_held) => fs::remove_dir_all(&path).map_err(io("remove", &path))?,
            // It is being taken.
            Err(Error::Locked { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Removes a backup: first it stops being one.
pub(super) fn remove(backup: &Path) -> Result<()> {
    let path = partial(backup)?;
    fs::rename(backup, &path).map_err(io("rename", backup))?;
    sync_directory(parent(backup))?;
    fs::remove_dir_all(&path).map_err(io("remove", &path))
}

/// Whether this is the name of a backup that isn't whole.
pub(super) fn is_partial(name: &str) -> bool {
    name.ends_with(PARTIAL)
}

fn partial(target: &Path) -> Result<PathBuf> {
    let Some(name) = target.file_name() else {
        return Err(Error::invalid(
            format!("the folder of a backup, {target:?},"),
            "has no name",
        ));
    };
    let mut name = OsString::from(name);
    name.push(PARTIAL);
    Ok(target.with_file_name(name))
}

/// Locks a folder; the lock is on the file that is there, not on one that went away meanwhile.
fn lock(path: &Path) -> Result<File> {
    let locked = || Error::Locked {
        directory: path.to_owned(),
        holder: "another backup".to_owned(),
    };
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path.join(LOCK))
        .map_err(io("open", &path.join(LOCK)))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(locked()),
        Err(TryLockError::Error(error)) => return Err(io("lock", path)(error)),
    }
    let here = file.metadata().map_err(io("look at", path))?;
    match fs::metadata(path.join(LOCK)) {
        Ok(there) if (there.dev(), there.ino()) == (here.dev(), here.ino()) => Ok(file),
        Ok(_) | Err(_) => Err(locked()),
    }
}

/// The folder that a path lies in.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    }
}

/// Makes names in a folder durable.
pub(crate) fn sync_directory(path: &Path) -> Result<()> {
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(io("sync", path))
}

/// The name of a space in names of files and in manifests.
pub(super) fn space_name(space: Space) -> &'static str {
    match space {
        Space::Rows => "rows",
        Space::Log => "log",
        Space::Index => "index",
        Space::Catalog => "catalog",
    }
}

/// Names in a folder; none when it isn't there.
pub(super) fn names(path: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == stdio::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io("list", path)(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(io("list", path))?;
        names.extend(entry.file_name().into_string());
    }
    names.sort_unstable();
    Ok(names)
}

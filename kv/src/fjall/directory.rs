//! The directory of a store: its files, its format and its lock.
//!
//! | name        | what it is                                                        |
//! |-------------|-------------------------------------------------------------------|
//! | `LOCK`      | locked while the store is open; holds the id of the process       |
//! | `FORMAT`    | the format marker: `souk storage 3` and the [`Nonce`]; created before what follows |
//! | `WATERMARK` | see `watermark`                                                   |
//! | `data`      | the files of fjall                                                |
//! | `*.new`     | a file or directory that is being created; worthless after a crash |

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use super::nonce::Nonce;
use crate::error::OpenError;

const LOCK: &str = "LOCK";
const FORMAT: &str = "FORMAT";
const FORMAT_NEW: &str = "FORMAT.new";
const WATERMARK: &str = "WATERMARK";
const DATA: &str = "data";
const DATA_NEW: &str = "data.new";

/// What may lie in a directory in which a store is created: what a crash during an earlier attempt left, and what an
/// empty file system begins with.
const HARMLESS: [&str; 3] = [LOCK, FORMAT_NEW, "lost+found"];

/// How the format marker begins.
const MAGIC: &str = "souk storage ";
/// Version of everything below the directory: this layout, keys and values. Version 1 had no nonce, so that values of
/// clients could forge the marks of its journals; rows and tables of version 2 had another form.
const VERSION: &str = "3";
/// Most bytes that are read of a format marker.
const MAX_FORMAT_BYTES: u64 = 128;

/// A locked directory with a format marker, and with a store or ready for one. The lock is released on drop.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    nonce: Nonce,
    lock: File,
}

impl Directory {
    /// Creates the directory if there is none, locks it, and reads or creates its format marker.
    ///
    /// # Errors
    /// [`OpenError::NotADatabase`], [`OpenError::UnsupportedFormat`], [`OpenError::Locked`], [`OpenError::Io`];
    /// [`OpenError::Store`] when the nonce is damaged.
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        fs::create_dir_all(path).map_err(OpenError::io("create", path))?;
        // Once before the lock file is created: nothing is written to a directory that isn't a store's.
        read_format(path)?;
        let lock = lock(path)?;
        let nonce = match read_format(path)? {
            Some(nonce) => nonce,
            None => {
                sync_ancestors(path)?;
                let nonce = Nonce::random();
                let marker = format!("{MAGIC}{VERSION} {}\n", nonce.to_text());
                write_atomically(path, FORMAT, marker.as_bytes())?;
                nonce
            }
        };
        Ok(Self {
            path: path.to_owned(),
            nonce,
            lock,
        })
    }

    /// The nonce of the store.
    pub(super) fn nonce(&self) -> Nonce {
        self.nonce
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the watermark is.
    pub(super) fn watermark(&self) -> PathBuf {
        self.path.join(WATERMARK)
    }

    /// Creates the watermark, or replaces it.
    pub(super) fn write_watermark(&self, contents: &[u8]) -> Result<(), OpenError> {
        write_atomically(&self.path, WATERMARK, contents)
    }

    /// The directory of fjall's files.
    pub(super) fn data(&self) -> PathBuf {
        self.path.join(DATA)
    }

    /// Whether fjall's files were created.
    pub(super) fn has_data(&self) -> Result<bool, OpenError> {
        let data = self.data();
        data.try_exists().map_err(OpenError::io("look for", data))
    }

    /// Creates fjall's files atomically: `create` makes them under another name.
    pub(super) fn create_data(
        &self,
        create: impl FnOnce(&Path) -> Result<(), OpenError>,
    ) -> Result<(), OpenError> {
        let new = self.path.join(DATA_NEW);
        match fs::remove_dir_all(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(OpenError::io("remove", new)(error));
            }
            Ok(()) | Err(_) => {}
        }
        create(&new)?;
        // fjall syncs the files in the directories of its spaces, but not the directories that list those.
        sync_tree(&new)?;
        fs::rename(&new, self.data()).map_err(OpenError::io("rename", &new))?;
        sync_directory(&self.path)
    }
}

/// Unlocks explicitly. Closing the file isn't enough: a child that another thread is just forking has inherited it, and
/// holds the lock until it executes its program.
impl Drop for Directory {
    fn drop(&mut self) {
        if let Err(error) = self.lock.unlock() {
            tracing::warn!(directory = ?self.path, "cannot unlock: {error}");
        }
    }
}

/// Reads the format marker; `None` when there is none, and a store may be created here.
fn read_format(path: &Path) -> Result<Option<Nonce>, OpenError> {
    let not_a_database = || OpenError::NotADatabase {
        directory: path.to_owned(),
    };
    let marker = path.join(FORMAT);
    let mut text = Vec::new();
    match File::open(&marker) {
        Ok(file) => {
            file.take(MAX_FORMAT_BYTES)
                .read_to_end(&mut text)
                .map_err(OpenError::io("read", &marker))?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            for entry in fs::read_dir(path).map_err(OpenError::io("list", path))? {
                let name = entry.map_err(OpenError::io("list", path))?.file_name();
                if !HARMLESS.iter().any(|harmless| name == OsStr::new(harmless)) {
                    return Err(not_a_database());
                }
            }
            return Ok(None);
        }
        Err(error) => return Err(OpenError::io("open", marker)(error)),
    }
    let text = str::from_utf8(&text).map_err(|_| not_a_database())?;
    let text = text.strip_prefix(MAGIC).ok_or_else(not_a_database)?.trim_end();
    let (version, nonce) = text.split_once(' ').unwrap_or((text, ""));
    if version != VERSION {
        return Err(OpenError::UnsupportedFormat {
            directory: path.to_owned(),
            found: version.to_owned(),
            supported: VERSION.to_owned(),
        });
    }
    let nonce = Nonce::from_text(nonce);
    nonce
        .map(Some)
        .ok_or_else(|| OpenError::corrupt(format!("the secret number in {marker:?}")))
}

fn lock(directory: &Path) -> Result<File, OpenError> {
    let path = directory.join(LOCK);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(OpenError::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(OpenError::Locked {
                directory: directory.to_owned(),
                holder: holder(&mut file),
            });
        }
        Err(TryLockError::Error(error)) => return Err(OpenError::io("lock", path)(error)),
    }
    // For the error that another process gets.
    file.set_len(0)
        .and_then(|()| file.write_all(format!("{}\n", std::process::id()).as_bytes()))
        .map_err(OpenError::io("write", path))?;
    Ok(file)
}

/// Names the holder of the lock for an error. It may not have written its id yet.
fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
    match read.ok().and_then(|_| text.trim().parse::<u32>().ok()) {
        Some(id) if id == std::process::id() => "this process".to_owned(),
        Some(id) => format!("process {id}"),
        None => "another process".to_owned(),
    }
}

/// Creates or replaces a file atomically and durably: a crash leaves the old contents or the new ones.
fn write_atomically(directory: &Path, name: &str, contents: &[u8]) -> Result<(), OpenError> {
    let new = directory.join(format!("{name}.new"));
    File::create(&new)
        .and_then(|mut file| {
            file.write_all(contents)?;
            file.sync_all()
        })
        .map_err(OpenError::io("write", &new))?;
    fs::rename(&new, directory.join(name)).map_err(OpenError::io("rename", &new))?;
    sync_directory(directory)
}

fn sync_directory(path: &Path) -> Result<(), OpenError> {
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(OpenError::io("sync", path))
}

/// Syncs all directories above, so that the path itself is durable: any of them may have just been created, by this
/// process or by one that died.
fn sync_ancestors(path: &Path) -> Result<(), OpenError> {
    let path = path.canonicalize().map_err(OpenError::io("resolve", path))?;
    for ancestor in path.ancestors().skip(1) {
        match sync_directory(ancestor) {
            // Where this process may not read or write, it created nothing; some file systems can't sync directories.
            Err(OpenError::Io { source, .. })
                if matches!(
                    source.kind(),
                    io::ErrorKind::PermissionDenied
                        | io::ErrorKind::ReadOnlyFilesystem
                        | io::ErrorKind::InvalidInput
                        | io::ErrorKind::Unsupported
                ) => {}
            synced => synced?,
        }
    }
    Ok(())
}

/// Syncs a directory and all directories below it.
fn sync_tree(path: &Path) -> Result<(), OpenError> {
    for entry in fs::read_dir(path).map_err(OpenError::io("list", path))? {
        let entry = entry.map_err(OpenError::io("list", path))?;
        let kind = entry
            .file_type()
            .map_err(OpenError::io("look at", entry.path()))?;
        if kind.is_dir() {
            sync_tree(&entry.path())?;
        }
    }
    sync_directory(path)
}

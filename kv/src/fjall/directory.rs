//! The directory of a store: its files, its format and its lock.
//!
//! | name        | what it is                                                        |
//! |-------------|-------------------------------------------------------------------|
//! | `LOCK`      | locked while the database is open; holds the id of the process    |
//! | `FORMAT`    | `souk storage 3` and the [`Nonce`]: what wrote the rest; the first that is created |
//! | `WATERMARK` | see `watermark`                                                   |
//! | `data`      | the engine's files                                                |
//! | `*.new`     | being created; of no value after a crash                          |

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

/// What may lie in a directory that is not a database yet: what a crash while creating one leaves, and what an empty
/// file system begins with.
const HARMLESS: [&str; 3] = [LOCK, FORMAT_NEW, "lost+found"];

/// Begins the format marker.
const MAGIC: &str = "souk storage ";
/// Version of everything below the directory: this layout, keys and values. The marks of version 1 could be forged; rows and
/// tables of version 2 had another form.
const VERSION: &str = "3";
/// Longest format marker that is read.
const MAX_FORMAT_BYTES: u64 = 128;

/// A locked directory that holds a database, or an empty one to create it in. The lock is released on drop.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    nonce: Nonce,
    lock: File,
}

impl Directory {
    /// Creates the directory if there is none, locks it and checks its format.
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        fs::create_dir_all(path).map_err(OpenError::io("create", path))?;
        // Before the lock file is made: nothing is written to a directory that is not ours.
        check_format(path)?;
        let lock = lock(path)?;
        let nonce = match check_format(path)? {
            Format::Ours(nonce) => nonce,
            Format::Absent => {
                sync_ancestors(path)?;
                let nonce = Nonce::random();
                let marker = format!("{MAGIC}{VERSION} {}\n", nonce.to_text());
                write_whole(path, FORMAT, marker.as_bytes())?;
                nonce
            }
        };
        Ok(Self {
            path: path.to_owned(),
            nonce,
            lock,
        })
    }

    /// The secret number of the store.
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
        write_whole(&self.path, WATERMARK, contents)
    }

    /// Where the engine's files are.
    pub(super) fn data(&self) -> PathBuf {
        self.path.join(DATA)
    }

    /// Whether the engine's files were created.
    pub(super) fn has_data(&self) -> Result<bool, OpenError> {
        let data = self.data();
        data.try_exists().map_err(OpenError::io("look for", data))
    }

    /// Creates the engine's files, all or none: under another name first.
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
        // The engine syncs what it puts into the directories of its spaces, but not their own names.
        sync_directories(&new)?;
        fs::rename(&new, self.data()).map_err(OpenError::io("rename", &new))?;
        sync_directory(&self.path)
    }
}

/// Closing the file would not do: a process that another thread is about to start may hold a copy of it for a moment.
impl Drop for Directory {
    fn drop(&mut self) {
        if let Err(error) = self.lock.unlock() {
            tracing::warn!(directory = ?self.path, "cannot unlock: {error}");
        }
    }
}

#[derive(Debug)]
enum Format {
    Ours(Nonce),
    Absent,
}

fn check_format(path: &Path) -> Result<Format, OpenError> {
    let not_ours = || OpenError::NotADatabase {
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
                    return Err(not_ours());
                }
            }
            return Ok(Format::Absent);
        }
        Err(error) => return Err(OpenError::io("open", marker)(error)),
    }
    let text = str::from_utf8(&text).map_err(|_| not_ours())?;
    let text = text.strip_prefix(MAGIC).ok_or_else(not_ours)?.trim_end();
    let (version, nonce) = text.split_once(' ').unwrap_or((text, ""));
    if version != VERSION {
        return Err(OpenError::UnsupportedFormat {
            directory: path.to_owned(),
            found: version.to_owned(),
            supported: VERSION.to_owned(),
        });
    }
    Nonce::from_text(nonce)
        .map(Format::Ours)
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
    // For the error of a second process.
    file.set_len(0)
        .and_then(|()| file.write_all(format!("{}\n", std::process::id()).as_bytes()))
        .map_err(OpenError::io("write", path))?;
    Ok(file)
}

/// The holder of the lock, as far as its file tells: it may be about to write its id.
fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
    match read.ok().and_then(|_| text.trim().parse::<u32>().ok()) {
        Some(id) if id == std::process::id() => "this process".to_owned(),
        Some(id) => format!("process {id}"),
        None => "another process".to_owned(),
    }
}

/// Creates or replaces a file so that it has its contents whenever it has its name.
fn write_whole(directory: &Path, name: &str, contents: &[u8]) -> Result<(), OpenError> {
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

/// Makes the names of all directories above durable: any of them may have just been created, by this process or by
/// one that died.
fn sync_ancestors(path: &Path) -> Result<(), OpenError> {
    let path = path.canonicalize().map_err(OpenError::io("resolve", path))?;
    for ancestor in path.ancestors().skip(1) {
        match sync_directory(ancestor) {
            // Nothing was created where we may not read or write, or where directories can't be synced.
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

/// Makes all names in a directory and in those below durable.
fn sync_directories(path: &Path) -> Result<(), OpenError> {
    for entry in fs::read_dir(path).map_err(OpenError::io("list", path))? {
        let entry = entry.map_err(OpenError::io("list", path))?;
        let kind = entry
            .file_type()
            .map_err(OpenError::io("look at", entry.path()))?;
        if kind.is_dir() {
            sync_directories(&entry.path())?;
        }
    }
    sync_directory(path)
}

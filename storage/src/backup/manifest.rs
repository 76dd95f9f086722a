//! The manifest of a backup: its kind and its files. Written last, as lines of text; the last line is the xxh3-128 of all
//! before it, and the backup's identity.

use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::str::FromStr;

use souk_kv::Space;
use xxhash_rust::xxh3::xxh3_128;

use super::directory::space_name;
use super::{io, unusable};
use crate::error::Result;
use crate::limits::MAX_MANIFEST_BYTES;

/// Name of the manifest in the folder of a backup.
pub(super) const MANIFEST: &str = "MANIFEST";
/// The first line. To be raised with the format of the storage: a backup holds its keys and values as they are.
const FORMAT: &str = "souk backup 2";

/// Identity of a backup: the checksum of its manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BackupId(u128);

impl fmt::Display for BackupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Whether a backup is restored alone or after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackupKind {
    /// It holds every entry, and is restored alone.
    Full,
    /// It holds the changes after another, and is restored after that.
    Incremental {
        /// The backup that it follows.
        previous: BackupId,
        /// Last sequence of `previous`.
        after: u64,
    },
}

/// A file of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupFile {
    /// Its name in the folder.
    pub name: String,
    /// The space of its entries.
    pub space: Space,
    /// Number of its entries.
    pub entries: u64,
    /// Length of the file.
    pub bytes: u64,
    /// The xxh3-128 of the file.
    pub checksum: u128,
}

/// The manifest of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Whether it is restored alone or after another.
    pub kind: BackupKind,
    /// When it was begun, nanoseconds since the Unix epoch.
    pub time: i64,
    /// The last sequence that it includes.
    pub sequence: u64,
    /// The xxh3-128 of that change; `None` when the log didn't have it any more.
    pub last_change: Option<u128>,
    /// Its files: each space in the order of its keys.
    pub files: Vec<BackupFile>,
    id: BackupId,
}

impl Manifest {
    pub(super) fn new(
        kind: BackupKind,
        time: i64,
        sequence: u64,
        last_change: Option<u128>,
        files: Vec<BackupFile>,
    ) -> Self {
        let mut manifest = Self {
            kind,
            time,
            sequence,
            last_change,
            files,
            id: BackupId(0),
        };
        manifest.id = BackupId(xxh3_128(manifest.lines().as_bytes()));
        manifest
    }

    /// Identity of the backup.
    pub fn id(&self) -> BackupId {
        self.id
    }

    /// Length of all files together.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Number of entries of a space.
    pub fn entries(&self, space: Space) -> u64 {
        let of_space = self.files.iter().filter(|file| file.space == space);
        of_space.map(|file| file.entries).sum()
    }

    /// The file's contents.
    pub(super) fn encode(&self) -> String {
        format!("{}checksum {}\n", self.lines(), self.id)
    }

    fn lines(&self) -> String {
        let mut lines = format!("{FORMAT}\ntime {}\nsequence {}\n", self.time, self.sequence);
        if let Some(checksum) = self.last_change {
            lines += &format!("last-change {checksum:032x}\n");
        }
        if let BackupKind::Incremental { previous, after } = self.kind {
            lines += &format!("previous {previous} {after}\n");
        }
        for file in &self.files {
            lines += &format!(
                "file {} {} {} {} {:032x}\n",
                space_name(file.space),
                file.name,
                file.entries,
                file.bytes,
                file.checksum
            );
        }
        lines
    }

    /// The manifest in the folder of a backup.
    pub(super) fn read(directory: &Path) -> Result<Self> {
        let path = directory.join(MANIFEST);
        let mut text = String::new();
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(unusable(directory, "is no whole backup: it has no MANIFEST"));
            }
            Err(error) => return Err(io("open", &path)(error)),
        };
        match file.take(MAX_MANIFEST_BYTES + 1).read_to_string(&mut text) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                return Err(unusable(&path, "is damaged: it is no text"));
            }
            Err(error) => return Err(io("read", &path)(error)),
        }
        if text.len() as u64 > MAX_MANIFEST_BYTES {
            return Err(unusable(
                &path,
                format!("is longer than MAX_MANIFEST_BYTES, {MAX_MANIFEST_BYTES}"),
            ));
        }
        Self::decode(&text).map_err(|problem| unusable(&path, problem))
    }

    pub(super) fn decode(text: &str) -> Result<Self, &'static str> {
        let damaged = "is damaged: its checksum is another";
        let (lines, checksum) = text
            .strip_suffix('\n')
            .and_then(|text| text.rsplit_once('\n'))
            .ok_or(damaged)?;
        let lines = format!("{lines}\n");
        if !lines.starts_with(&format!("{FORMAT}\n")) {
            return Err("isn't of a format that this program reads");
        }
        if checksum != format!("checksum {}", BackupId(xxh3_128(lines.as_bytes()))) {
            return Err(damaged);
        }
        let manifest = parse(&lines).ok_or("has a line that this program doesn't read")?;
        // Only the one encoding that backups write is taken.
        if manifest.lines() == lines {
            Ok(manifest)
        } else {
            Err("has lines that no backup has")
        }
    }
}

fn parse(lines: &str) -> Option<Manifest> {
    let mut time = None;
    let mut sequence = None;
    let mut last_change = None;
    let mut kind = BackupKind::Full;
    let mut files = Vec::new();
    for line in lines.lines().skip(1) {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["time", nanoseconds] => time = Some(number(nanoseconds)?),
            ["sequence", last] => sequence = Some(number(last)?),
            ["last-change", checksum] => last_change = Some(hexadecimal(checksum)?),
            ["previous", id, after] => {
                kind = BackupKind::Incremental {
                    previous: BackupId(hexadecimal(id)?),
                    after: number(after)?,
                }
            }
            ["file", space, name, entries, bytes, checksum] => files.push(BackupFile {
                name: file_name(name)?,
                space: *Space::ALL.iter().find(|each| space_name(**each) == *space)?,
                entries: number(entries)?,
                bytes: number(bytes)?,
                checksum: hexadecimal(checksum)?,
            }),
            _ => return None,
        }
    }
    Some(Manifest::new(kind, time?, sequence?, last_change, files))
}

fn number<N: FromStr>(word: &str) -> Option<N> {
    word.parse().ok()
}

fn hexadecimal(word: &str) -> Option<u128> {
    u128::from_str_radix(word, 16).ok()
}

/// A name that stays in the folder.
fn file_name(name: &str) -> Option<String> {
    let stays = name.ends_with(".blocks") && !name.contains(['/', '\\']) && !name.starts_with('.');
    stays.then(|| name.to_owned())
}

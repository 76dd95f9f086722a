//! Block files: entries of one space in the order of their keys.
//!
//! A file is the 8 bytes `SOUKBLK1` and blocks. A block is the length of what is stored (u32), of what it unpacks to
//! (u32), the xxh3 of both lengths and what is stored (u64), and that: zstd of entries, each a key and a value after
//! their lengths. Numbers are big-endian. The manifest holds the number of entries and the xxh3-128 of the whole file.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use souk_kv::Space;
use souk_kv::limits::MAX_COMMIT_BYTES;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::manifest::BackupFile;
use super::{Entry, io, unusable};
use crate::codec::{Malformed, Reader, put_bytes};
use crate::error::Result;
use crate::limits::BACKUP_BLOCK_BYTES;

const MAGIC: [u8; 8] = *b"SOUKBLK1";
const HEADER_BYTES: usize = 16;
/// Fast, and most of what compression gives.
const COMPRESSION_LEVEL: i32 = 1;
/// An entry is part of one commit; its lengths come on top.
const MAX_UNPACKED_BYTES: usize = MAX_COMMIT_BYTES + BACKUP_BLOCK_BYTES + 16;

/// A block file that is being written.
pub(super) struct BlockFile {
    path: PathBuf,
    file: File,
    described: BackupFile,
    checksum: Xxh3,
    block: Vec<u8>,
}

impl BlockFile {
    /// A new file in a folder.
    pub(super) fn create(directory: &Path, space: Space, name: String) -> Result<Self> {
        let path = directory.join(&name);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(io("create", &path))?;
        let mut created = Self {
            path,
            file,
            described: BackupFile {
                name,
                space,
                entries: 0,
                bytes: 0,
                checksum: 0,
            },
            checksum: Xxh3::new(),
            block: Vec::with_capacity(2 * BACKUP_BLOCK_BYTES),
        };
        created.write(&MAGIC)?;
        Ok(created)
    }

    /// Adds an entry behind all others.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        put_bytes(&mut self.block, key);
        put_bytes(&mut self.block, value);
        self.described.entries += 1;
        if self.block.len() >= BACKUP_BLOCK_BYTES {
            self.end_block()?;
        }
        Ok(())
    }

    pub(super) fn space(&self) -> Space {
        self.described.space
    }

    /// Bytes written so far.
    pub(super) fn bytes(&self) -> u64 {
        self.described.bytes
    }

    /// Makes it durable.
    pub(super) fn finish(mut self) -> Result<BackupFile> {
        if !self.block.is_empty() {
            self.end_block()?;
        }
        self.file.sync_all().map_err(io("sync", &self.path))?;
        self.described.checksum = self.checksum.digest128();
        Ok(self.described)
    }

    fn end_block(&mut self) -> Result<()> {
        let stored =
            zstd::bulk::compress(&self.block, COMPRESSION_LEVEL).map_err(io("compress", &self.path))?;
        let length = |bytes: &[u8]| {
            u32::try_from(bytes.len()).map(u32::to_be_bytes).map_err(|_| {
                unusable(
                    &self.path,
                    format!("cannot hold a block of {} bytes", bytes.len()),
                )
            })
        };
        let lengths = [length(&stored)?, length(&self.block)?].concat();
        self.block.clear();
        let mut out = Vec::with_capacity(HEADER_BYTES + stored.len());
        out.extend_from_slice(&lengths);
        out.extend_from_slice(&block_checksum(&lengths, &stored).to_be_bytes());
        out.extend_from_slice(&stored);
        self.write(&out)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(io("write", &self.path))?;
        self.checksum.update(bytes);
        self.described.bytes += bytes.len() as u64;
        Ok(())
    }
}

fn block_checksum(lengths: &[u8], stored: &[u8]) -> u64 {
    xxh3_64(&[lengths, &xxh3_64(stored).to_be_bytes()].concat())
}

/// Reads a block file. Nothing that it gave may be used for good before it has come to its end without an error.
pub(crate) struct BlockFileReader {
    path: PathBuf,
    file: BufReader<File>,
    expected: BackupFile,
    checksum: Xxh3,
    bytes: u64,
    entries: u64,
    last: Option<Bytes>,
}

impl BlockFileReader {
    /// Opens a file of a backup.
    pub(crate) fn open(directory: &Path, expected: &BackupFile) -> Result<Self> {
        let path = directory.join(&expected.name);
        let file = File::open(&path).map_err(io("open", &path))?;
        let mut opened = Self {
            path,
            file: BufReader::with_capacity(BACKUP_BLOCK_BYTES, file),
            expected: expected.clone(),
            checksum: Xxh3::new(),
            bytes: 0,
            entries: 0,
            last: None,
        };
        if opened.take(MAGIC.len())? != MAGIC {
            return Err(unusable(&opened.path, "is not a file of blocks"));
        }
        Ok(opened)
    }

    /// The entries of the next block, in the order of their keys; `None` at the end, once the whole file is known
    /// to be as it was written.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<Entry>>> {
        if self.bytes >= self.expected.bytes {
            return self.end().map(|()| None);
        }
        let header = self.take(HEADER_BYTES)?;
        let (lengths, checksum) = header.split_at(HEADER_BYTES / 2);
        let malformed = |Malformed(expected): Malformed| format!("has a block without {expected}");
        let mut reader = Reader::new(&header);
        let sizes = (|| Ok((reader.u32()? as usize, reader.u32()? as usize)))().map_err(malformed);
        let (stored, unpacked) = sizes.map_err(|problem| unusable(&self.path, problem))?;
        if unpacked > MAX_UNPACKED_BYTES || stored > zstd::zstd_safe::compress_bound(MAX_UNPACKED_BYTES) {
            return Err(self.damaged());
        }
        let stored = self.take(stored)?;
        if block_checksum(lengths, &stored).to_be_bytes() != checksum {
            return Err(self.damaged());
        }
        let block = zstd::bulk::decompress(&stored, unpacked).map_err(|_| self.damaged())?;
        let entries = read_entries(&block.into())
            .map_err(malformed)
            .map_err(|problem| unusable(&self.path, problem))?;
        for (key, _) in &entries {
            if self.last.as_ref().is_some_and(|last| last >= key) {
                return Err(unusable(&self.path, "has entries out of order"));
            }
            self.last = Some(key.clone());
        }
        self.entries += entries.len() as u64;
        Ok(Some(entries))
    }

    fn end(&mut self) -> Result<()> {
        let mut more = [0];
        let read = self.file.read(&mut more).map_err(io("read", &self.path))?;
        let whole = read == 0
            && self.bytes == self.expected.bytes
            && self.entries == self.expected.entries
            && self.checksum.digest128() == self.expected.checksum;
        if whole { Ok(()) } else { Err(self.damaged()) }
    }

    fn take(&mut self, count: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        Read::by_ref(&mut self.file)
            .take(count as u64)
            .read_to_end(&mut bytes)
            .map_err(io("read", &self.path))?;
        if bytes.len() < count {
            return Err(self.damaged());
        }
        self.checksum.update(&bytes);
        self.bytes += count as u64;
        Ok(bytes)
    }

    fn damaged(&self) -> crate::Error {
        unusable(&self.path, format!("is damaged at or before byte {}", self.bytes))
    }
}

fn read_entries(block: &Bytes) -> Result<Vec<Entry>, Malformed> {
    let mut reader = Reader::new(block);
    let mut entries = Vec::new();
    while !reader.is_empty() {
        entries.push((block.slice_ref(reader.bytes()?), block.slice_ref(reader.bytes()?)));
    }
    Ok(entries)
}

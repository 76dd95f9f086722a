//! The durable watermark: how far the log was durable, kept outside of the engine.
//!
//! The engine ends its journal at the first entry it can't read and drops the rest without a word. The
//! watermark tells that something is missing.
//!
//! Two slots, written in turn, each in a disk sector of its own: an interrupted write spares the other slot.
//! A slot is magic, generation, sequence and the xxh3 of these (each 8 bytes, big-endian); the higher generation
//! counts. (The higher sequence would not do: accepting a shorter log lowers it.)

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};

use xxhash_rust::xxh3::xxh3_64;

use super::directory::Directory;
use crate::error::OpenError;

const MAGIC: [u8; 8] = *b"SOUKMARK";
const SLOT_BYTES: usize = 32;
const SLOT_DISTANCE: usize = 4096;
const FILE_BYTES: usize = 2 * SLOT_DISTANCE;

/// The open watermark of a database.
#[derive(Debug)]
pub(super) struct Watermark {
    file: File,
    current: Slot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    generation: u64,
    sequence: u64,
}

impl Watermark {
    /// Creates it, or replaces it.
    pub(super) fn create(directory: &Directory, sequence: u64) -> Result<Self, OpenError> {
        let current = Slot {
            generation: 0,
            sequence,
        };
        let mut contents = current.encode().to_vec();
        contents.resize(FILE_BYTES, 0);
        directory.write_watermark(&contents)?;
        let file = open(directory).map_err(OpenError::io("open", directory.watermark()))?;
        Ok(Self { file, current })
    }

    /// Opens it: `None` when there is none.
    pub(super) fn open(directory: &Directory) -> Result<Option<Self>, OpenError> {
        let mut file = match open(directory) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(OpenError::io("open", directory.watermark())(error)),
        };
        let mut contents = Vec::with_capacity(FILE_BYTES);
        Read::by_ref(&mut file)
            .take(FILE_BYTES as u64)
            .read_to_end(&mut contents)
            .map_err(OpenError::io("read", directory.watermark()))?;
        let slots = [0, SLOT_DISTANCE].map(|at| contents.get(at..).and_then(Slot::decode));
        let newest = slots.into_iter().flatten().max_by_key(|slot| slot.generation);
        let current = newest
            .ok_or_else(|| OpenError::corrupt(format!("no slot of {:?} is whole", directory.watermark())))?;
        Ok(Some(Self { file, current }))
    }

    /// Last sequence known to be durable.
    pub(super) fn sequence(&self) -> u64 {
        self.current.sequence
    }

    /// Sets it, durably; does nothing when it is there.
    pub(super) fn set(&mut self, sequence: u64) -> io::Result<()> {
        if sequence == self.current.sequence {
            return Ok(());
        }
        let next = Slot {
            generation: self.current.generation + 1,
            sequence,
        };
        let at = if next.generation.is_multiple_of(2) {
            0
        } else {
            SLOT_DISTANCE
        };
        self.file.seek(SeekFrom::Start(at as u64))?;
        self.file.write_all(&next.encode())?;
        self.file.sync_data()?;
        self.current = next;
        Ok(())
    }
}

fn open(directory: &Directory) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(directory.watermark())
}

impl Slot {
    fn encode(self) -> [u8; SLOT_BYTES] {
        let mut out = [0; SLOT_BYTES];
        let (front, checksum) = out.split_at_mut(SLOT_BYTES - 8);
        let numbers = [MAGIC, self.generation.to_be_bytes(), self.sequence.to_be_bytes()];
        front.copy_from_slice(numbers.as_flattened());
        checksum.copy_from_slice(&xxh3_64(front).to_be_bytes());
        out
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let ([magic, generation, sequence, checksum, ..], _) = bytes.as_chunks::<8>() else {
            return None;
        };
        let slot = Self {
            generation: u64::from_be_bytes(*generation),
            sequence: u64::from_be_bytes(*sequence),
        };
        let whole = *magic == MAGIC && slot.encode().ends_with(checksum);
        whole.then_some(slot)
    }
}

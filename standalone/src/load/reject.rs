//! Rows that were refused: which, and why.

use std::fmt;
use std::fs::{File, TryLockError};
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use serde::Serialize;

/// Bytes of a file that are looked through at a time.
const BLOCK_BYTES: u64 = 4 << 10;

/// One row that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reject {
    /// Its number: a line of a file, from 1, or a row of generated data, from 0.
    pub row: u64,
    /// Its id; empty when it couldn't be read.
    pub id: String,
    /// What kind of refusal, for example `InvalidArgument`.
    pub code: String,
    /// The words of whoever refused it.
    pub reason: String,
}

impl Reject {
    /// A refused row.
    pub fn new(row: u64, id: impl Into<String>, code: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            row,
            id: id.into(),
            code: code.into(),
            reason: reason.into(),
        }
    }
}

impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            row,
            id,
            code,
            reason,
        } = self;
        if id.is_empty() {
            write!(f, "row {row}: {code}: {reason}")
        } else {
            write!(f, "row {row} ({id}): {code}: {reason}")
        }
    }
}

/// Where refused rows are written.
pub enum Rejects {
    /// A line each to standard error.
    StandardError,
    /// A JSON object each, one a line, to a file.
    File(BufWriter<File>),
    /// Kept, for tests and for callers that show them themselves.
    Kept(Vec<Reject>),
}

impl Rejects {
    /// Opens a file for refused rows; without `append` it is emptied. A regular file is locked (advisory) until this is dropped; pipes
    /// and terminals are not.
    ///
    /// # Errors
    /// When it can't be opened; [`io::ErrorKind::ResourceBusy`] when another load or import holds it.
    pub fn file(path: &Path, append: bool) -> io::Result<Self> {
        let mut options = File::options();
        options.create(true).write(true).truncate(false);
        // Read for the end of its last line.
        options.append(append).read(append);
        let mut file = options.open(path)?;
        // A terminal or a pipe has no end, and may have several writers.
        if file.metadata()?.is_file() {
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => {
                    let path = path.display();
                    let message = format!(
                        "another load or import lists its refused rows in {path}; wait for its end, or name another file"
                    );
                    return Err(io::Error::new(io::ErrorKind::ResourceBusy, message));
                }
                locked => locked?,
            }
            match append {
                true => cut_back(&mut file)?,
                false => file.set_len(0)?,
            }
        }
        Ok(Self::File(BufWriter::new(file)))
    }

    pub(super) fn write(&mut self, reject: &Reject) -> io::Result<()> {
        match self {
            Self::StandardError => writeln!(io::stderr().lock(), "{reject}"),
            Self::File(file) => {
                serde_json::to_writer(&mut *file, reject)?;
                file.write_all(b"\n")
            }
            Self::Kept(kept) => {
                kept.push(reject.clone());
                Ok(())
            }
        }
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.flush(),
            Self::StandardError | Self::Kept(_) => Ok(()),
        }
    }
}

/// Cuts off a line without an end, which a load that was killed has left: its row is told again.
fn cut_back(file: &mut File) -> io::Result<()> {
    let mut end = file.metadata()?.len();
    while end > 0 {
        let start = end.saturating_sub(BLOCK_BYTES);
        let mut block = Vec::new();
        file.seek(SeekFrom::Start(start))?;
        io::Read::take(&mut *file, end - start).read_to_end(&mut block)?;
        if let Some(last) = block.iter().rposition(|byte| *byte == b'\n') {
            end = start + last as u64 + 1;
            break;
        }
        end = start;
    }
    file.set_len(end)
}

//! Compares the files of an index with their checksums: while it is opened as many as that takes no time, later all of
//! them, slowly.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

use parking_lot::Mutex;

use super::IndexOptions;
use super::folder::segments;
use crate::directory::{DELETES, SoftDirectory};
use crate::error::Error;
use crate::priority;

/// What is compared first: of what these hold, each commit makes the next list of deleted documents.
const FIRST: [&str; 3] = [DELETES, "term", "idx"];

/// Counts the processes that ended before all files of an index were compared, and without a close of it. What ended them
/// may be what they read of the index: after so many it is compared as a whole before it is read.
const LIVES_FILE: &str = "souk-index.lives";
const LIVES_MAX: u32 = 2;
/// The folders whose [`LIVES_FILE`] counts this process: that an index is opened again in it is nobody's end.
static COUNTED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A file of the last commit.
struct Living {
    path: PathBuf,
    bytes: u64,
}

impl Living {
    fn rank(&self) -> usize {
        let position = FIRST.iter().position(|first| self.is(first));
        position.unwrap_or(FIRST.len())
    }

    fn is(&self, extension: &str) -> bool {
        self.path.extension().is_some_and(|found| found == extension)
    }
}

/// Compares lists of deleted documents, and as many other files as the options say; all of them when the processes before
/// ended early.
pub(super) fn quick(
    index: &tantivy::Index,
    directory: &SoftDirectory,
    options: &IndexOptions,
) -> Result<(), Error> {
    let stop = &options.stop_opening;
    if died_young(&directory.root) {
        let mut stopped = false;
        all(index, directory, &mut |_| {
            stopped = stop.stops();
            !stopped
        })?;
        return if stopped { Err(Error::Cancelled) } else { Ok(()) };
    }
    let mut left = options.verified_at_open;
    for file in living(index, directory)? {
        if file.is(DELETES) || file.bytes <= left {
            left = left.saturating_sub(file.bytes);
            if !verify(index, directory, &file.path, &mut |_| !stop.stops())? {
                return Err(Error::Cancelled);
            }
        }
    }
    Ok(())
}

/// Whether [`LIVES_MAX`] processes before this one ended early; if not, this one is counted, once.
fn died_young(folder: &Path) -> bool {
    let path = folder.join(LIVES_FILE);
    let lives = fs::read_to_string(&path).ok();
    let lives: u32 = lives.and_then(|text| text.parse().ok()).unwrap_or_default();
    let mut counted = COUNTED.lock();
    if lives > 0 && counted.contains(folder) {
        return false;
    }
    if lives >= LIVES_MAX {
        return true;
    }
    counted.insert(folder.to_owned());
    // A disk that takes nothing is no reason not to open.
    let _ = fs::write(path, lives.saturating_add(1).to_string());
    false
}

/// Compares all files. `go_on` is told what was read, piece by piece, and says whether to read on.
pub(super) fn all(
    index: &tantivy::Index,
    directory: &SoftDirectory,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(), Error> {
    for file in living(index, directory)? {
        if !verify(index, directory, &file.path, go_on)? {
            return directory.damage.check();
        }
    }
    directory.damage.check()?;
    ends_well(directory);
    Ok(())
}

/// Says that this life of an index was long enough.
pub(crate) fn ends_well(directory: &SoftDirectory) {
    COUNTED.lock().remove(directory.root.as_path());
    let _ = fs::remove_file(directory.root.join(LIVES_FILE));
}

/// [`all`], of so many bytes a second, on a thread that then yields to all others.
pub(super) fn slowly(
    index: &tantivy::Index,
    directory: &SoftDirectory,
    bytes_per_second: u64,
    stopped: &dyn Fn() -> bool,
) -> Result<(), Error> {
    priority::lower();
    let began = Instant::now();
    let mut read = 0;
    all(index, directory, &mut |bytes| {
        read += bytes;
        let due = Duration::from_secs_f64(read as f64 / bytes_per_second.max(1) as f64);
        std::thread::sleep(due.saturating_sub(began.elapsed()));
        !stopped()
    })
}

fn living(index: &tantivy::Index, directory: &SoftDirectory) -> Result<Vec<Living>, Error> {
    let files = segments(index)?.list_segment_files().into_iter();
    // Not every segment has every file; whether one is missing is seen when it is read.
    let mut living: Vec<Living> = files
        .map(|path| Living {
            bytes: directory.bytes(&path).unwrap_or_default(),
            path,
        })
        .collect();
    living.sort_by(|a, b| (a.rank(), a.bytes, &a.path).cmp(&(b.rank(), b.bytes, &b.path)));
    Ok(living)
}

/// Whether to go on.
fn verify(
    index: &tantivy::Index,
    directory: &SoftDirectory,
    path: &Path,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<bool, Error> {
    match directory.verify(path, go_on) {
        Ok(goes_on) => Ok(goes_on),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if is_expected(index, path)? {
                return Err(directory.damage.found(format!("{} is missing", path.display())));
            }
            Ok(true)
        }
        Err(source) => {
            directory.damage.check()?;
            Err(Error::io("comparing checksums")(source))
        }
    }
}

/// Whether a file was made, and no merge has replaced it.
fn is_expected(index: &tantivy::Index, path: &Path) -> Result<bool, Error> {
    Ok(segments(index)?.list_segment_files().contains(path)
        && index.directory().list_managed_files().contains(path))
}

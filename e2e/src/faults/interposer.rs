//! Injects faults of disk and clock into a process by `LD_PRELOAD`. They begin and end while it runs.
//!
//! The library is in C, and shared with the tests of the store; its source says what it can do.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use tempfile::TempDir;

/// The library's source, in the tests of the store.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../kv/tests/it/faults/shim.c");

/// What a disk does while it is [failing](Interposer::set_failing).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFault {
    /// Each fsync of a file takes this much longer.
    SlowSync(Duration),
    /// Nothing more can be written: ENOSPC.
    Full,
    /// The same for the files of search indexes alone: the store has room in its reserve.
    FullForIndexes,
    /// Each fsync of a file of the store fails: EIO.
    FailingSync,
}

/// The faults of one process. Dropping it removes the process's data, unless it was made [with their path](Self::with_data).
#[derive(Debug)]
pub struct Interposer {
    library: &'static Path,
    /// Of the files that control the library; of the data, too, unless their path was given.
    directory: TempDir,
    data: PathBuf,
    disk: DiskFault,
}

impl Interposer {
    /// Prepares a fault of the disk, and of the clock; `None` where the library can't be built, which is said on standard error.
    ///
    /// # Errors
    /// When there is no room for its files.
    ///
    /// # Panics
    /// With `SOUK_FAULTS=required` in the environment, when there is no Linux or no `cc`.
    pub fn new(disk: DiskFault) -> anyhow::Result<Option<Self>> {
        let directory = tempfile::tempdir()?;
        let data = directory.path().join("data");
        Self::prepare(disk, directory, data)
    }

    /// Like [`new`](Self::new), with the data in `data`.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn with_data(disk: DiskFault, data: PathBuf) -> anyhow::Result<Option<Self>> {
        Self::prepare(disk, tempfile::tempdir()?, data)
    }

    fn prepare(disk: DiskFault, directory: TempDir, data: PathBuf) -> anyhow::Result<Option<Self>> {
        static LIBRARY: OnceLock<Result<PathBuf, String>> = OnceLock::new();
        let library = match LIBRARY.get_or_init(build) {
            Ok(library) => library,
            Err(reason) => {
                skipped("faults of disk and clock", reason);
                return Ok(None);
            }
        };
        let interposer = Self {
            library,
            directory,
            data,
            disk,
        };
        std::fs::create_dir_all(interposer.data())?;
        interposer.set_clock_ahead(0)?;
        Ok(Some(interposer))
    }

    /// The data directory of the process, which the disk fault is for.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.data.clone()
    }

    fn control(&self) -> PathBuf {
        self.directory.path().join("failing")
    }

    fn clock(&self) -> PathBuf {
        self.directory.path().join("clock")
    }

    /// The environment variables of the process.
    pub(crate) fn environment(&self) -> [(String, String); 5] {
        let rules = match self.disk {
            DiskFault::SlowSync(time) => format!("sync * 1 0 delay-{}", time.as_millis()),
            DiskFault::Full => full("*"),
            DiskFault::FullForIndexes => full("index/*"),
            DiskFault::FailingSync => "sync store/* 1 0 eio".to_owned(),
        };
        [
            ("LD_PRELOAD", self.library.display().to_string()),
            ("SHIM_FOLDER", self.data().display().to_string()),
            ("SHIM_CONTROL", self.control().display().to_string()),
            ("SHIM_CLOCK", self.clock().display().to_string()),
            ("SHIM_RULES", rules),
        ]
        .map(|(name, value)| (name.to_owned(), value))
    }

    /// Begins or ends the fault of the disk.
    ///
    /// # Errors
    /// When the file that says so can't be made or removed.
    pub fn set_failing(&self, failing: bool) -> std::io::Result<()> {
        match failing {
            true => std::fs::write(self.control(), ""),
            false => std::fs::remove_file(self.control()),
        }
    }

    /// Moves the wall clock this many nanoseconds ahead of the machine's, or behind; the monotonic clock stays.
    ///
    /// # Errors
    /// When the file that says so can't be written.
    pub fn set_clock_ahead(&self, nanoseconds: i64) -> std::io::Result<()> {
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.clock())?;
        file.write_all(&nanoseconds.to_le_bytes())
    }
}

/// Says on standard error, past the capture of the test harness, that `what` was skipped.
///
/// # Panics
/// With `SOUK_FAULTS=required` in the environment.
pub fn skipped(what: &str, reason: &str) {
    let required = std::env::var("SOUK_FAULTS").is_ok_and(|value| value == "required");
    assert!(!required, "{what} can't be tested: {reason}");
    // A harness without standard error has nobody who could read it.
    let _ = writeln!(std::io::stderr(), "\n*** SKIPPED {what}: {reason} ***\n");
}

/// The library's rules of a disk that is full for the files that match the pattern `files`.
fn full(files: &str) -> String {
    ["write", "create", "truncate"]
        .map(|call| format!("{call} {files} 1 0 enospc"))
        .join(";")
}

fn build() -> Result<PathBuf, String> {
    if !cfg!(target_os = "linux") {
        return Err("calls are intercepted on Linux only".to_owned());
    }
    let binary = std::env::current_exe().map_err(|error| error.to_string())?;
    // Several runs may build at once: each writes a file of its own, and renames it.
    let library = binary.with_file_name("souk-e2e-interposer.so");
    let built = library.with_extension(format!("{}.so", std::process::id()));
    let compiled = Command::new("cc")
        .args(["-Wall", "-O2", "-shared", "-fPIC", "-o"])
        .arg(&built)
        .arg(SOURCE)
        .output()
        .map_err(|error| format!("there is no cc: {error}"))?;
    if !compiled.status.success() {
        return Err(String::from_utf8_lossy(&compiled.stderr).into_owned());
    }
    std::fs::rename(&built, &library).map_err(|error| error.to_string())?;
    Ok(library)
}

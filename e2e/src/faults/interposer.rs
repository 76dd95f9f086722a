//! Between a process and its system: disks that are slow or refuse, clocks that jump.
//!
//! A library in C is loaded before the process's own (`LD_PRELOAD`); the proofs of the store use the same one, whose source says
//! what it can do. Faults begin and end while the process runs.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use tempfile::TempDir;

/// The library's source, beside the tests of the store.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../kv/tests/it/faults/shim.c");

/// What a disk does while it is [failing](Interposer::fail).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disk {
    /// Each fsync of a file takes so much longer.
    SlowSync(Duration),
    /// Nothing more can be written: ENOSPC.
    Full,
    /// The same of the files of search indexes alone: what the store keeps in reserve is there for it.
    FullForIndexes,
    /// Each fsync of a file of the store fails: EIO.
    FailingSync,
}

/// Stands between one process and its system. Dropping it removes the process's data, unless they are at a place of their own.
#[derive(Debug)]
pub struct Interposer {
    library: &'static Path,
    /// Of the files that say what fails.
    directory: TempDir,
    data: PathBuf,
    disk: Disk,
}

impl Interposer {
    /// One that can make a disk do this, and move the clock; `None` where it can't be made, which it says on standard error, or,
    /// with `SOUK_FAULTS=required`, by panicking.
    ///
    /// # Errors
    /// When there is no room for its files.
    ///
    /// # Panics
    /// With `SOUK_FAULTS=required` in the environment, when there is no Linux or no `cc`.
    pub fn new(disk: Disk) -> anyhow::Result<Option<Self>> {
        let directory = tempfile::tempdir()?;
        let data = directory.path().join("data");
        Self::between(disk, directory, data)
    }

    /// The same for data at a place of their own.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn over(disk: Disk, data: PathBuf) -> anyhow::Result<Option<Self>> {
        Self::between(disk, tempfile::tempdir()?, data)
    }

    fn between(disk: Disk, directory: TempDir, data: PathBuf) -> anyhow::Result<Option<Self>> {
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

    /// The data of the process, whose disk it is.
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

    /// The variables of the process.
    pub(crate) fn environment(&self) -> [(String, String); 5] {
        let rules = match self.disk {
            Disk::SlowSync(time) => format!("sync * 1 0 delay-{}", time.as_millis()),
            Disk::Full => full("*"),
            Disk::FullForIndexes => full("index/*"),
            Disk::FailingSync => "sync store/* 1 0 eio".to_owned(),
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

    /// Lets the disk begin to fail, or end.
    ///
    /// # Errors
    /// When the file that says so can't be made or removed.
    pub fn fail(&self, failing: bool) -> std::io::Result<()> {
        match failing {
            true => std::fs::write(self.control(), ""),
            false => std::fs::remove_file(self.control()),
        }
    }

    /// Moves the clock of the day so many nanoseconds ahead of the machine's, or behind; the steady clock goes on.
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

/// Says past the capture of the harness that something was not checked: nobody shall believe that it ran. With
/// `SOUK_FAULTS=required` it panics instead.
///
/// # Panics
/// Then.
pub fn skipped(what: &str, reason: &str) {
    let required = std::env::var("SOUK_FAULTS").is_ok_and(|value| value == "required");
    assert!(!required, "{what} can't be tested: {reason}");
    // A harness without standard error has nobody who could read it.
    let _ = writeln!(std::io::stderr(), "\n*** SKIPPED {what}: {reason} ***\n");
}

/// The rules of a disk that is full for the files that are like this.
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
    // Beside the binary; several runs may build at once, so each under a name of its own.
    let library = binary.with_file_name("souk-e2e-interposer.so");
    let new = library.with_extension(format!("{}.so", std::process::id()));
    let compiled = Command::new("cc")
        .args(["-Wall", "-O2", "-shared", "-fPIC", "-o"])
        .arg(&new)
        .arg(SOURCE)
        .output()
        .map_err(|error| format!("there is no cc: {error}"))?;
    if !compiled.status.success() {
        return Err(String::from_utf8_lossy(&compiled.stderr).into_owned());
    }
    std::fs::rename(&new, &library).map_err(|error| error.to_string())?;
    Ok(library)
}

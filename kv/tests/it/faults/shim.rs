//! Processes with a library in C between them and their disk. The tests of the engine include this file.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// Where a process tells what it did; without, on its standard output.
const MARKER: &str = "SHIM_MARKER";

/// What happens to a call; see `shim.c`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    pub(super) call: &'static str,
    pub(super) pattern: &'static str,
    /// The first matching call that is hit, from 1.
    pub(super) from: usize,
    /// How many are hit; 0: all that follow.
    pub(super) count: usize,
    pub(super) action: &'static str,
    /// Counts only after a mark that starts with this.
    pub(super) mark: &'static str,
}

impl Rule {
    fn encode(&self) -> String {
        let Self {
            call,
            pattern,
            from,
            count,
            action,
            mark,
        } = self;
        format!("{call} {pattern} {from} {count} {action} {mark}")
    }
}

/// A process to be, which works below one folder.
pub(super) struct Treated<'a> {
    pub(super) library: &'a Path,
    /// What is watched.
    pub(super) folder: &'a Path,
    /// Where traces and marks go: not below the folder.
    pub(super) beside: &'a Path,
    pub(super) rules: &'a [Rule],
}

/// What is left of a process: how it ended, and what it said on the way.
pub(super) struct Ended {
    pub(super) output: Output,
    pub(super) marks: String,
}

impl Treated<'_> {
    pub(super) fn trace(&self) -> PathBuf {
        self.beside.join("trace")
    }

    /// While it exists, calls fail as the rules say.
    pub(super) fn control(&self) -> PathBuf {
        self.beside.join("control")
    }

    fn marker(&self) -> PathBuf {
        self.beside.join("marks")
    }

    /// Runs an ignored test of this binary to its end, with the environment given.
    pub(super) fn run(&self, test: &str, environment: &[(&str, String)], traced: bool) -> Ended {
        for path in [self.trace(), self.marker()] {
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{error}"),
                Ok(()) | Err(_) => {}
            }
        }
        let mut command = Command::new(std::env::current_exe().expect("the path of this binary"));
        command
            .args(["--exact", test, "--ignored", "--nocapture"])
            .env("LD_PRELOAD", self.library)
            .env("SHIM_FOLDER", self.folder)
            .env(MARKER, self.marker())
            .env("SHIM_CONTROL", self.control())
            .env(
                "SHIM_RULES",
                self.rules.iter().map(Rule::encode).collect::<Vec<_>>().join(";"),
            )
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        if traced {
            command.env("SHIM_TRACE", self.trace());
        }
        let output = command.output().expect("a process");
        // A process that was killed at once has said nothing.
        let marks = std::fs::read_to_string(self.marker()).unwrap_or_default();
        Ended { output, marks }
    }
}

impl Ended {
    pub(super) fn was_killed(&self) -> bool {
        use std::os::unix::process::ExitStatusExt;
        self.output.status.signal() == Some(9)
    }

    /// What it printed, for the message of a test that fails.
    pub(super) fn story(&self) -> String {
        format!(
            "{}\n{}{}",
            self.output.status,
            String::from_utf8_lossy(&self.output.stdout),
            String::from_utf8_lossy(&self.output.stderr)
        )
    }
}

/// Tells what was done.
pub(super) struct Voice(Option<File>);

impl Voice {
    pub(super) fn find() -> Self {
        let path = std::env::var_os(MARKER).map(PathBuf::from);
        Self(path.map(|path| {
            File::options()
                .create(true)
                .append(true)
                .open(path)
                .expect("a file of marks")
        }))
    }

    /// A line in one write.
    pub(super) fn say(&self, text: &str) {
        let line = format!("{text}\n");
        let said = match &self.0 {
            Some(file) => (&*file).write_all(line.as_bytes()),
            None => std::io::stdout().write_all(line.as_bytes()),
        };
        said.expect("a line");
    }
}

/// The library, compiled once per run of this binary. Where that can't be done, the test that asks says so and
/// does nothing; `SOUK_FAULTS=required` makes it fail instead.
pub(super) fn library(test: &str) -> Option<&'static Path> {
    static LIBRARY: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match LIBRARY.get_or_init(build) {
        Ok(path) => Some(path),
        Err(reason) => {
            assert_ne!(
                std::env::var("SOUK_FAULTS").as_deref(),
                Ok("required"),
                "{test} can't run: {reason}"
            );
            // Past the capture of the test harness: nobody shall believe that it ran.
            let _ = writeln!(std::io::stderr(), "\n*** SKIPPED {test}: {reason} ***\n");
            None
        }
    }
}

fn build() -> Result<PathBuf, String> {
    if !cfg!(target_os = "linux") {
        return Err("calls are intercepted on Linux only".to_owned());
    }
    // From any crate of the workspace.
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kv/tests/it/faults/shim.c");
    let binary = std::env::current_exe().map_err(|error| error.to_string())?;
    // Beside the binary; several runs may build at once, so each under a name of its own.
    let library = binary.with_file_name("souk-faults-shim.so");
    let new = library.with_extension(format!("{}.so", std::process::id()));
    let compiled = Command::new("cc")
        .args(["-Wall", "-O2", "-shared", "-fPIC", "-o"])
        .args([&new, &source])
        .output()
        .map_err(|error| format!("there is no cc: {error}"))?;
    if !compiled.status.success() {
        return Err(String::from_utf8_lossy(&compiled.stderr).into_owned());
    }
    std::fs::rename(&new, &library).map_err(|error| error.to_string())?;
    Ok(library)
}

/// A place for folders that are opened by the hundred: in memory where there is such a place.
pub(super) fn fast_directory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).expect("a directory")
    } else {
        tempfile::tempdir().expect("a directory")
    }
}

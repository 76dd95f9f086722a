//! Files with secrets: who may read them, and how much of them is read.
//!
//! What a process creates (rows, indexes, backups, keys) is its owner's alone, whatever umask it was started with ([`withhold`]): folders
//! have the mode 0700, files 0600. A file of keys that others can read is warned of ([`warn_of_readers`]).

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::fs::Mode;
use rustix::process::umask;

/// The mode bits of users that are neither the owner nor in its group.
const OTHERS: u32 = 0o007;

/// Sets the umask, so that only the owner can read and write what this process creates. Must be called before it creates anything.
pub fn withhold() {
    let before = umask(Mode::RWXG | Mode::RWXO);
    // A stricter mask is kept.
    umask(before | Mode::RWXG | Mode::RWXO);
}

/// Reads a file of at most `bytes_max` bytes.
///
/// # Errors
/// Those of the file system, and [`FileTooLarge`](io::ErrorKind::FileTooLarge).
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // The length isn't asked for first: a pipe has none, and a file may grow.
    let count = File::open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if count as u64 > bytes_max {
        let message = format!("it is larger than {bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// [`read`] of text.
///
/// # Errors
/// Those of [`read`], and [`InvalidData`](io::ErrorKind::InvalidData) when it isn't UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    String::from_utf8(read(path, bytes_max)?)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}

/// Warns when users other than the owner and its group can read or write this file of keys.
pub fn warn_of_readers(file: &Path) {
    // Reading it will fail, too, and say why.
    let Ok(data) = std::fs::metadata(file) else {
        return;
    };
    let mode = data.permissions().mode() & 0o7777;
    if mode & OTHERS != 0 {
        tracing::warn!(
            ?file,
            mode = format_args!("{mode:04o}"),
            "everybody on this machine can read or change this file of keys: take that from them by chmod o="
        );
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::sync::{Arc, Mutex};

    use super::*;

    /// What is said of a file with this mode.
    fn said(mode: u32) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("key");
        fs::write(&file, "secret").expect("written");
        fs::set_permissions(&file, Permissions::from_mode(mode)).expect("set");
        let log = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&log);
        let subscriber = tracing_subscriber::fmt().with_ansi(false);
        let subscriber = subscriber.with_writer(move || Log(Arc::clone(&written))).finish();
        tracing::subscriber::with_default(subscriber, || warn_of_readers(&file));
        let bytes = log.lock().expect("no panic").clone();
        String::from_utf8(bytes).expect("text")
    }

    struct Log(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("no panic").write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_file_of_keys_that_others_can_read_is_warned_of() {
        for open in [0o604, 0o644, 0o602, 0o666] {
            let said = said(open);
            assert!(
                said.contains("WARN") && said.contains(&format!("{open:04o}")),
                "{said}"
            );
            assert!(!said.contains("secret"), "{said}");
        }
        for closed in [0o600, 0o400, 0o640] {
            assert_eq!(said(closed), "", "{closed:o}");
        }
    }
}

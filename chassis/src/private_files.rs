//! Files that are nobody else's business: rows, indexes, backups and keys.
//!
//! What a process creates is its owner's alone ([`withhold`]): folders have the mode 0700, files 0600, whoever creates them, and
//! whatever the umask was that it was started with. What it is given as a file of keys it warns of when others can read it
//! ([`warn_of_readers`]).

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::fs::Mode;
use rustix::process::umask;

/// What those have no right to who are neither the owner nor of its group.
const OTHERS: u32 = 0o007;

/// From now on, what this process creates can be read and written by its owner alone. To be called before anything is created.
pub fn withhold() {
    let before = umask(Mode::RWXG | Mode::RWXO);
    // A mask that takes more is kept.
    umask(before | Mode::RWXG | Mode::RWXO);
}

/// Warns when others than its owner and group can read or write this file of keys.
pub fn warn_of_readers(file: &Path) {
    // A file that can't be looked at can't be used either, which whoever reads it says.
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

//! Files of keys (of callers, issuers and credentials), reloaded when they change.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use souk_chassis::private_files;
use souk_chassis::reload::Reloaded;

/// Largest file of keys that is read, in bytes.
pub const FILE_BYTES_MAX: u64 = 4 << 20;

/// Why a file of keys can't be used. Never shows what is in it.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// It can't be read, or is larger than [`FILE_BYTES_MAX`].
    #[error("{} can't be read", .0.display())]
    Unreadable(PathBuf, #[source] io::Error),
    /// It is malformed. The text says how, without the content.
    #[error("{}: {problem}", .0.display(), problem = .1)]
    Malformed(PathBuf, String),
}

/// Parses the file at `path` with `read`, and again whenever it changes, until the value is dropped. When a later content
/// can't be read or parsed, the last value stays in force, and a warning is logged. Must be called inside a tokio runtime.
///
/// # Errors
/// [`KeyFileError`] when it can't be read or parsed now.
pub fn follow<T: Send + Sync + 'static>(
    path: &Path,
    read: impl Fn(&str) -> Result<T, String> + Send + Sync + 'static,
) -> Result<Arc<Reloaded<T>>, KeyFileError> {
    let files = vec![path.to_owned()];
    let path = path.to_owned();
    let reloaded = Reloaded::new("keys", files, move || load(&path, &read))?;
    reloaded.follow();
    Ok(reloaded)
}

fn load<T>(path: &Path, read: &impl Fn(&str) -> Result<T, String>) -> Result<T, KeyFileError> {
    let unreadable = |error| KeyFileError::Unreadable(path.to_owned(), error);
    let text = private_files::read_text(path, FILE_BYTES_MAX).map_err(unreadable)?;
    read(&text).map_err(|problem| KeyFileError::Malformed(path.to_owned(), problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Result<u32, String> {
        text.trim().parse().map_err(|_| "is no number".to_owned())
    }

    #[test]
    fn errors_name_the_file_and_not_its_content() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        let error = load(&path, &number).expect_err("there is none").to_string();
        assert!(error.contains("secret can't be read"), "{error}");
        std::fs::write(&path, "hunter2").expect("written");
        let error = load(&path, &number).expect_err("no number").to_string();
        assert!(
            error.contains("is no number") && !error.contains("hunter2"),
            "{error}"
        );
    }

    #[test]
    fn a_file_without_a_length_is_not_read_to_its_end() {
        let error = load(Path::new("/dev/zero"), &number).expect_err("it has no end");
        let KeyFileError::Unreadable(_, cause) = error else {
            panic!("{error}");
        };
        assert_eq!(cause.kind(), io::ErrorKind::FileTooLarge);
    }
}

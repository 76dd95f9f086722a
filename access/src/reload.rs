//! Secrets in files that may change while the process runs: what was read last, [followed](souk_chassis::reload).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use souk_chassis::reload::Reloading;

/// Largest file, in bytes.
pub const FILE_BYTES_MAX: u64 = 4 << 20;

/// A file that can't be used. Never tells what is in it.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It can't be read.
    #[error("{} can't be read", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// It is too big to be what it should be.
    #[error("{} has {bytes} bytes, at most {FILE_BYTES_MAX} are read", path.display())]
    TooBig {
        /// Which file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// It doesn't hold what it should.
    #[error("{}: {problem}", path.display())]
    Content {
        /// Which file.
        path: PathBuf,
        /// What is wrong, without the content.
        problem: String,
    },
}

/// What a file held when it was last whole. Clones share it.
#[derive(Debug)]
pub struct Reloaded<T>(Arc<Reloading<T>>);

impl<T> Clone for Reloaded<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Reloaded<T> {
    /// A value that no file changes.
    pub fn fixed(value: T) -> Self {
        Self(Arc::new(Reloading::fixed(value)))
    }

    /// The value now.
    pub fn get(&self) -> Arc<T> {
        self.0.get()
    }

    /// Puts another in its place.
    pub fn set(&self, value: T) {
        self.0.set(value);
    }

    /// Says that the value is still what it should be.
    pub fn confirm(&self) {
        self.0.confirm();
    }

    /// Says that what should be in its place can't be had or used.
    pub fn refuse(&self) {
        self.0.refuse();
    }

    /// How long what should be in its place couldn't be had or used; `None` while the value is what it should be.
    pub fn refused_for(&self) -> Option<Duration> {
        self.0.refused_for()
    }
}

impl<T: Send + Sync + 'static> Reloaded<T> {
    /// Reads `path` now, and again whenever it changes, as long as a clone lives. A later content that `read` refuses
    /// changes nothing, and is told to the log. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// When it can't be read now.
    pub fn follow(
        path: &Path,
        read: impl Fn(&str) -> Result<T, String> + Send + Sync + 'static,
    ) -> Result<Self, FileError> {
        let files = vec![path.to_owned()];
        let path = path.to_owned();
        let reloading = Arc::new(Reloading::new("keys", files, move || load(&path, &read))?);
        reloading.follow();
        Ok(Self(reloading))
    }
}

fn load<T>(path: &Path, read: &impl Fn(&str) -> Result<T, String>) -> Result<T, FileError> {
    let unreadable = |source| FileError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let bytes = std::fs::metadata(path).map_err(unreadable)?.len();
    if bytes > FILE_BYTES_MAX {
        return Err(FileError::TooBig {
            path: path.to_owned(),
            bytes,
        });
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    read(&text).map_err(|problem| FileError::Content {
        path: path.to_owned(),
        problem,
    })
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
}

//! Secrets in files that may change while the process runs: what was read last, looked at again every second.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use parking_lot::RwLock;

/// How often a file is looked at.
pub const INTERVAL: Duration = Duration::from_secs(1);

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
pub struct Reloaded<T> {
    current: Arc<RwLock<Arc<T>>>,
}

impl<T> Clone for Reloaded<T> {
    fn clone(&self) -> Self {
        Self {
            current: Arc::clone(&self.current),
        }
    }
}

impl<T> Reloaded<T> {
    /// A value that no file changes.
    pub fn fixed(value: T) -> Self {
        Self {
            current: Arc::new(RwLock::new(Arc::new(value))),
        }
    }

    /// The value now.
    pub fn get(&self) -> Arc<T> {
        Arc::clone(&self.current.read())
    }

    /// Puts another in its place.
    pub fn set(&self, value: T) {
        *self.current.write() = Arc::new(value);
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
        let mut seen = state(path);
        let reloaded = Self::fixed(load(path, &read)?);
        let (path, current) = (path.to_owned(), Arc::downgrade(&reloaded.current));
        tokio::spawn(async move {
            let read = Arc::new(read);
            loop {
                tokio::time::sleep(INTERVAL).await;
                if current.strong_count() == 0 {
                    return;
                }
                let (path, read, before, current) =
                    (path.clone(), Arc::clone(&read), seen, Weak::clone(&current));
                let looked = tokio::task::spawn_blocking(move || look(&path, before, &*read, &current));
                match looked.await {
                    Ok(now) => seen = now,
                    Err(error) => tracing::error!(%error, "a file of secrets isn't followed any more"),
                }
            }
        });
        Ok(reloaded)
    }
}

/// What tells one content of a file from another without reading it.
type State = Option<(SystemTime, u64)>;

fn state(path: &Path) -> State {
    let metadata: Metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// Takes a changed file; its state is what has been seen now.
fn look<T>(
    path: &Path,
    before: State,
    read: &impl Fn(&str) -> Result<T, String>,
    current: &Weak<RwLock<Arc<T>>>,
) -> State {
    let now = state(path);
    if now == before {
        return now;
    }
    match (load(path, read), current.upgrade()) {
        (Ok(value), Some(current)) => {
            *current.write() = Arc::new(value);
            tracing::info!(path = %path.display(), "took a changed file of keys");
        }
        (Err(error), Some(_)) => {
            let error = souk_chassis::process::chain(&error);
            tracing::error!(
                error,
                "a changed file of keys can't be used; the keys of before stay"
            );
        }
        (_, None) => {}
    }
    now
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
    fn a_change_is_taken_and_a_mistake_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("number");
        std::fs::write(&path, "1").expect("written");
        let reloaded = Reloaded::fixed(load(&path, &number).expect("a number"));
        let current = Arc::downgrade(&reloaded.current);
        let seen = state(&path);
        assert_eq!(look(&path, seen, &number, &current), seen);
        std::fs::write(&path, "22").expect("written");
        let seen = look(&path, seen, &number, &current);
        assert_eq!(*reloaded.get(), 22);
        std::fs::write(&path, "no number").expect("written");
        let seen = look(&path, seen, &number, &current);
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(
            (look(&path, seen, &number, &current), *reloaded.get()),
            (None, 22)
        );
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

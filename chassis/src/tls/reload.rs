//! Something made of files, made anew when they change.
//!
//! There is no task that watches: whoever is about to use it has the files looked at, once a second at most. What can't be
//! made of the new files (a certificate whose key isn't there yet) leaves the old in force, with a warning for each state of
//! the files.

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::time::Instant;

use super::files::TlsError;

/// Time between two looks at the files.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What tells one state of a file from another; `None` while it can't be seen.
type Stamp = Option<(i64, i64, u64, u64)>;

type Make<T> = Box<dyn Fn() -> Result<T, TlsError> + Send + Sync>;

/// See the [module](self).
pub(super) struct Reloading<T> {
    files: Vec<PathBuf>,
    make: Make<T>,
    current: RwLock<Arc<T>>,
    seen: Mutex<Seen>,
}

struct Seen {
    stamps: Vec<Stamp>,
    at: Instant,
}

impl<T> fmt::Debug for Reloading<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloading")
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

impl<T: Send + Sync + 'static> Reloading<T> {
    /// What `make` makes of `files`.
    ///
    /// # Errors
    /// Those of `make`.
    pub(super) fn new(
        files: Vec<PathBuf>,
        make: impl Fn() -> Result<T, TlsError> + Send + Sync + 'static,
    ) -> Result<Self, TlsError> {
        // Before they are read: a change meanwhile is seen at the next look.
        let stamps = stamps(&files);
        Ok(Self {
            current: RwLock::new(Arc::new(make()?)),
            seen: Mutex::new(Seen {
                stamps,
                at: Instant::now(),
            }),
            files,
            make: Box::new(make),
        })
    }

    /// What is in force, after a look at the files if the last one is long ago.
    pub(super) async fn current(self: &Arc<Self>) -> Arc<T> {
        // Who finds it locked uses what is there: another one looks.
        let due = self
            .seen
            .try_lock()
            .is_some_and(|seen| seen.at.elapsed() >= LOOK_EVERY);
        if due {
            let this = Arc::clone(self);
            // Files may lie on a disk that answers slowly. A panic in there is no reason to have no certificate.
            let _ = tokio::task::spawn_blocking(move || this.look()).await;
        }
        Arc::clone(&self.current.read())
    }

    /// Looks at the files now. Waits for the disk.
    pub(super) fn look(&self) {
        let mut seen = self.seen.lock();
        let now = stamps(&self.files);
        seen.at = Instant::now();
        if now == seen.stamps {
            return;
        }
        seen.stamps = now;
        match (self.make)() {
            Ok(made) => {
                *self.current.write() = Arc::new(made);
                tracing::info!(files = ?self.files, "certificates were read anew");
            }
            Err(error) => {
                let error = crate::process::chain(&error);
                tracing::warn!(files = ?self.files, error, "new certificates can't be used, the old ones stay in force");
            }
        }
    }
}

fn stamps(files: &[PathBuf]) -> Vec<Stamp> {
    files.iter().map(|file| stamp(file)).collect()
}

fn stamp(file: &Path) -> Stamp {
    let data = std::fs::metadata(file).ok()?;
    Some((data.mtime(), data.mtime_nsec(), data.size(), data.ino()))
}

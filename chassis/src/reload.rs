//! Values made of files, reloaded when the files change.
//!
//! Files are polled at most once a second, by the next [user](Reloaded::fresh) of the value that can wait for a disk, or by a background
//! [task](Reloaded::follow). What can't be made of the new files (a certificate whose key isn't there yet, a list with a mistake) leaves
//! the old value in force, with a warning for each state of the files, and is tried again at each poll: what was in the way, such as rights,
//! may be gone without a trace on the files.

use std::error::Error;
use std::fmt;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::time::Instant;

/// Least time between two polls of the files.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Modification time (seconds, nanoseconds), size and inode of a file, by which a change is seen; `None` without a readable file.
type Stamp = Option<(i64, i64, u64, u64)>;

type Failure = Box<dyn Error + Send + Sync>;

type Make<T> = Box<dyn Fn() -> Result<T, Failure> + Send + Sync>;

/// See the [module](self).
pub struct Reloaded<T> {
    /// The value's name in the log.
    what: &'static str,
    files: Vec<PathBuf>,
    make: Make<T>,
    current: RwLock<Arc<T>>,
    /// Since when `current` is stale: its successor can't be read or used.
    refused: RwLock<Option<Instant>>,
    seen: Mutex<Seen>,
}

struct Seen {
    stamps: Vec<Stamp>,
    at: Instant,
    /// `make` failed for this state of the files.
    failed: bool,
}

impl<T> fmt::Debug for Reloaded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloaded")
            .field("what", &self.what)
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

impl<T> Reloaded<T> {
    /// The value that `make` makes of `files`; the log calls it `what`.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn new<E: Error + Send + Sync + 'static>(
        what: &'static str,
        files: Vec<PathBuf>,
        make: impl Fn() -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<Arc<Self>, E> {
        // Before they are read: a change meanwhile is seen at the next look.
        let stamps = stamps(&files);
        let made = make()?;
        let make = Box::new(move || make().map_err(Failure::from));
        Ok(Self::with(made, what, files, make, stamps))
    }

    /// A value that comes from no files, and changes by [`set`](Self::set) alone.
    pub fn fixed(value: T) -> Arc<Self> {
        let make = Box::new(|| Err("there are no files".into()));
        Self::with(value, "a value", Vec::new(), make, Vec::new())
    }

    fn with(
        value: T,
        what: &'static str,
        files: Vec<PathBuf>,
        make: Make<T>,
        stamps: Vec<Stamp>,
    ) -> Arc<Self> {
        Arc::new(Self {
            what,
            files,
            make,
            current: RwLock::new(Arc::new(value)),
            refused: RwLock::default(),
            seen: Mutex::new(Seen {
                stamps,
                at: Instant::now(),
                failed: false,
            }),
        })
    }

    /// The value in force.
    pub fn get(&self) -> Arc<T> {
        Arc::clone(&self.current.read())
    }

    /// Puts another value in force, until files change.
    pub fn set(&self, value: T) {
        *self.current.write() = Arc::new(value);
        self.confirm();
    }

    /// Marks the value in force as up to date.
    pub fn confirm(&self) {
        *self.refused.write() = None;
    }

    /// Marks the value in force, which stays, as stale: its successor can't be read or used.
    pub fn refuse(&self) {
        self.refused.write().get_or_insert_with(Instant::now);
    }

    /// How long the value in force has been stale; `None` while it is up to date.
    pub fn refused_for(&self) -> Option<Duration> {
        self.refused.read().map(|since| since.elapsed())
    }

    /// Polls the files now. Blocks on the disk.
    pub fn look(&self) {
        let (what, files) = (self.what, &self.files);
        let mut seen = self.seen.lock();
        let now = stamps(files);
        seen.at = Instant::now();
        let changed = now != seen.stamps;
        if !changed && !seen.failed {
            return;
        }
        seen.stamps = now;
        // A panic in `make` is a failure like others: polling goes on.
        let made = std::panic::catch_unwind(AssertUnwindSafe(|| (self.make)()));
        let made = made.unwrap_or_else(|_| Err("reading them panicked".into()));
        seen.failed = made.is_err();
        match made {
            Ok(made) => {
                self.set(made);
                tracing::info!(what, ?files, "changed files were taken");
            }
            Err(_) if !changed => {}
            Err(error) => {
                self.refuse();
                let error = crate::causes::chain(&*error);
                tracing::warn!(
                    what,
                    ?files,
                    error,
                    "changed files can't be used; what was read before stays in force"
                );
            }
        }
    }
}

impl<T: Send + Sync + 'static> Reloaded<T> {
    /// The value in force, after polling the files if the last poll was [`LOOK_EVERY`] ago.
    pub async fn fresh(self: &Arc<Self>) -> Arc<T> {
        // Locked: another caller is polling, and this one doesn't wait for it.
        let seen = self.seen.try_lock();
        if seen.is_some_and(|seen| seen.at.elapsed() >= LOOK_EVERY) {
            self.looked().await;
        }
        self.get()
    }

    /// Spawns a task that polls the files until this is dropped. Must be called inside a tokio runtime.
    pub fn follow(self: &Arc<Self>) {
        let followed = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(LOOK_EVERY).await;
                let Some(this) = followed.upgrade() else {
                    return;
                };
                this.looked().await;
            }
        });
    }

    /// On a blocking thread: the disk may be slow.
    async fn looked(self: &Arc<Self>) {
        let this = Arc::clone(self);
        // Fails only when the runtime shuts down.
        let _ = tokio::task::spawn_blocking(move || this.look()).await;
    }
}

fn stamps(files: &[PathBuf]) -> Vec<Stamp> {
    let stamp = |data: Metadata| (data.mtime(), data.mtime_nsec(), data.size(), data.ino());
    let seen = files.iter().map(std::fs::metadata);
    seen.map(|data| data.ok().map(stamp)).collect()
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Mutex;

    use super::*;

    /// A file with a text, and what is made of it: the text, unless it says otherwise.
    fn text(folder: &tempfile::TempDir) -> (PathBuf, Arc<Reloaded<String>>) {
        let file = folder.path().join("file");
        std::fs::write(&file, "1").expect("written");
        let read = file.clone();
        let reloading = Reloaded::new("texts", vec![file.clone()], move || {
            let text = std::fs::read_to_string(&read)?;
            assert_ne!(text, "panic");
            match text.as_str() {
                "mistake" => Err(io::Error::other("a mistake")),
                _ => Ok(text),
            }
        });
        (file, reloading.expect("it is made"))
    }

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What a look at the files says.
    fn look(reloading: &Reloaded<String>) -> String {
        let log = Log::default();
        let written = log.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false);
        let subscriber = subscriber.with_writer(move || written.clone()).finish();
        tracing::subscriber::with_default(subscriber, || reloading.look());
        let bytes = log.0.lock().expect("no panic").clone();
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn a_change_is_taken_and_a_mistake_or_a_panic_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, reloading) = text(&folder);
        assert_eq!(look(&reloading), "");
        for (content, after, said) in [
            ("22", "22", "changed files were taken"),
            ("mistake", "22", "a mistake"),
            ("panic", "22", "what was read before stays in force"),
            // After a panic, too, it is looked at.
            ("333", "333", "changed files were taken"),
        ] {
            std::fs::write(&file, content).expect("written");
            let log = look(&reloading);
            assert!(log.contains(said) && log.contains("texts"), "{content}: {log}");
            assert_eq!(*reloading.get(), after, "{content}");
            assert_eq!(reloading.refused_for().is_some(), content != after, "{content}");
            assert_eq!(look(&reloading), "", "{content}: said once");
        }
        std::fs::remove_file(&file).expect("removed");
        assert!(look(&reloading).contains("stays in force"));
        assert_eq!(*reloading.get(), "333");
    }

    #[test]
    fn what_could_not_be_read_is_tried_again_though_no_file_changes() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        std::fs::write(&file, "1").expect("written");
        let barred = Arc::new(Mutex::new(false));
        let asked = Arc::clone(&barred);
        let reloading = Reloaded::new("texts", vec![file.clone()], move || {
            let text = std::fs::read_to_string(folder.path().join("file"))?;
            match *asked.lock().expect("no panic") {
                true => Err(io::Error::from(io::ErrorKind::PermissionDenied)),
                false => Ok(text),
            }
        });
        let reloading = reloading.expect("it is made");
        *barred.lock().expect("no panic") = true;
        std::fs::write(&file, "22").expect("written");
        assert!(look(&reloading).contains("stays in force"));
        *barred.lock().expect("no panic") = false;
        assert!(look(&reloading).contains("changed files were taken"));
        assert_eq!(*reloading.get(), "22");
    }

    #[tokio::test(start_paused = true)]
    async fn files_are_looked_at_once_a_second_at_most() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, reloading) = text(&folder);
        std::fs::write(&file, "22").expect("written");
        assert_eq!(*reloading.fresh().await, "1", "just looked");
        tokio::time::advance(LOOK_EVERY).await;
        assert_eq!(*reloading.fresh().await, "22");
    }

    #[tokio::test(start_paused = true)]
    async fn who_follows_needs_no_user_and_ends_with_the_last_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, reloading) = text(&folder);
        reloading.follow();
        for content in ["panic", "22"] {
            std::fs::write(&file, content).expect("written");
            // The task looks on a thread of its own: the clock goes on when it has.
            tokio::time::sleep(2 * LOOK_EVERY).await;
        }
        assert_eq!(*reloading.get(), "22");
        let followed = Arc::downgrade(&reloading);
        drop(reloading);
        tokio::time::sleep(2 * LOOK_EVERY).await;
        assert!(followed.upgrade().is_none());
    }
}

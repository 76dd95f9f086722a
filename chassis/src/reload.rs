//! Values made of files, reloaded when the files change.
//!
//! Files are polled at most once a second, by the next [user](Reloading::fresh) of the value that can wait for a disk, or by a background
//! [task](Reloading::follow). What can't be made of the new files (a certificate whose key isn't there yet, a list with a mistake) leaves
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

/// Time between two looks at the files.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What tells one state of a file from another; `None` while it can't be seen.
type Stamp = Option<(i64, i64, u64, u64)>;

type Failure = Box<dyn Error + Send + Sync>;

type Make<T> = Box<dyn Fn() -> Result<T, Failure> + Send + Sync>;

/// See the [module](self).
pub struct Reloading<T> {
    /// What is made, for the log.
    what: &'static str,
    files: Vec<PathBuf>,
    make: Make<T>,
    current: RwLock<Arc<T>>,
    /// Since when what should replace it can't be used.
    refused: RwLock<Option<Instant>>,
    seen: Mutex<Seen>,
}

struct Seen {
    stamps: Vec<Stamp>,
    at: Instant,
    /// Nothing could be made of these files.
    failed: bool,
}

impl<T> fmt::Debug for Reloading<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloading")
            .field("what", &self.what)
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

impl<T> Reloading<T> {
    /// What `make` makes of `files`; `what` that is, is for the log.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn new<E: Error + Send + Sync + 'static>(
        what: &'static str,
        files: Vec<PathBuf>,
        make: impl Fn() -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<Self, E> {
        // Before they are read: a change meanwhile is seen at the next look.
        let stamps = stamps(&files);
        let made = make()?;
        let mut this = Self {
            what,
            files,
            make: Box::new(move || make().map_err(Failure::from)),
            ..Self::fixed(made)
        };
        this.seen.get_mut().stamps = stamps;
        Ok(this)
    }

    /// A value that comes from no files, and changes by [`set`](Self::set) alone.
    pub fn fixed(value: T) -> Self {
        Self {
            what: "a value",
            files: Vec::new(),
            make: Box::new(|| Err("there are no files".into())),
            current: RwLock::new(Arc::new(value)),
            refused: RwLock::default(),
            seen: Mutex::new(Seen {
                stamps: Vec::new(),
                at: Instant::now(),
                failed: false,
            }),
        }
    }

    /// What is in force.
    pub fn get(&self) -> Arc<T> {
        Arc::clone(&self.current.read())
    }

    /// Puts another value in force, until files change.
    pub fn set(&self, value: T) {
        *self.current.write() = Arc::new(value);
        self.confirm();
    }

    /// Says that what is in force is what should be.
    pub fn confirm(&self) {
        *self.refused.write() = None;
    }

    /// Says that what should be in force can't be had or used; what is stays.
    pub fn refuse(&self) {
        self.refused.write().get_or_insert_with(Instant::now);
    }

    /// How long what should be in force couldn't be had or used; `None` while what is in force is what should be.
    pub fn refused_for(&self) -> Option<Duration> {
        self.refused.read().map(|since| since.elapsed())
    }

    /// Looks at the files now. Waits for the disk.
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
        // A panic in there is no reason to be without, nor to look away from then on.
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

impl<T: Send + Sync + 'static> Reloading<T> {
    /// What is in force, after a look at the files if the last one is long ago.
    pub async fn fresh(self: &Arc<Self>) -> Arc<T> {
        // Who finds it locked uses what is there: another one looks.
        let due = self
            .seen
            .try_lock()
            .is_some_and(|seen| seen.at.elapsed() >= LOOK_EVERY);
        if due {
            self.looked().await;
        }
        self.get()
    }

    /// Has a task look at the files as long as somebody holds this. Must be called inside a tokio runtime.
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

    /// Files may lie on a disk that answers slowly.
    async fn looked(self: &Arc<Self>) {
        let this = Arc::clone(self);
        // There is no look when the runtime ends.
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
    fn text(folder: &tempfile::TempDir) -> (PathBuf, Arc<Reloading<String>>) {
        let file = folder.path().join("file");
        std::fs::write(&file, "1").expect("written");
        let read = file.clone();
        let reloading = Reloading::new("texts", vec![file.clone()], move || {
            let text = std::fs::read_to_string(&read)?;
            assert_ne!(text, "panic");
            match text.as_str() {
                "mistake" => Err(io::Error::other("a mistake")),
                _ => Ok(text),
            }
        });
        (file, Arc::new(reloading.expect("it is made")))
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
    fn look(reloading: &Reloading<String>) -> String {
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
        let reloading = Reloading::new("texts", vec![file.clone()], move || {
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

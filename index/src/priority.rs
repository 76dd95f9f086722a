//! Merges and comparisons of checksums leave the cores to searches and commits.

/// How the search library begins the names of its merging threads.
const MERGING: &str = "merge_thread";
/// What such a thread yields: of two threads that want one core, it then gets a tenth of it.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Lowers the priority of the calling thread if it merges, and says whether it does. The library gives no way to its
/// threads but the files that they open, so every opening comes by here.
pub(crate) fn lower_if_merging() -> bool {
    thread_local! {
        static MERGES: std::cell::Cell<Option<bool>> = const { std::cell::Cell::new(None) };
    }
    if let Some(merges) = MERGES.get() {
        return merges;
    }
    let thread = std::thread::current();
    let merges = thread.name().is_some_and(|name| name.starts_with(MERGING));
    if merges {
        lower();
    }
    MERGES.set(Some(merges));
    merges
}

/// Lowers the priority of the calling thread. On Linux a thread has one of its own. One that can't be lowered works all the
/// same.
#[cfg(target_os = "linux")]
pub(crate) fn lower() {
    let already = rustix::process::getpriority_process(None).unwrap_or_default();
    let _ = rustix::process::setpriority_process(None, NICENESS.max(already));
}

/// Elsewhere this would slow down the whole process.
#[cfg(not(target_os = "linux"))]
pub(crate) fn lower() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn niceness_of_a_thread(name: &str) -> Option<i32> {
        let thread = std::thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(|| {
            let _ = lower_if_merging();
            rustix::process::getpriority_process(None).ok()
        });
        thread.ok()?.join().ok()?
    }

    #[test]
    fn only_merging_threads_are_lowered() {
        let usual = niceness_of_a_thread("anything");
        assert!(usual.is_some());
        assert_eq!(niceness_of_a_thread("merge_thread_0"), usual.max(Some(NICENESS)));
    }
}

//! Huge pages: memory in pages of 2 MB, for large data only.
//!
//! The `souk` binary's allocator asks Linux for transparent huge pages, which make searches of large data up to twice as fast. But the
//! first byte of such a page takes all of it, so that an idle process would hold twice the memory that it needs. So a process begins
//! [without](withhold) them, and [allows](allow) them when it holds much; until the kernel joins them, earlier pages stay small.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether this process does without them because [`withhold`] has said so.
static WITHHELD: AtomicBool = AtomicBool::new(false);

/// From now on memory comes in small pages, until [`allow`]. Does nothing where whoever started the process has switched
/// huge pages off, and outside Linux.
pub fn withhold() {
    if switch::is_on() && switch::set(false) {
        WITHHELD.store(true, Ordering::Relaxed);
    }
}

/// Ends what [`withhold`] began: this process holds much. Cheap when there is nothing to end; `true` when there was.
pub fn allow() -> bool {
    WITHHELD.load(Ordering::Relaxed) && WITHHELD.swap(false, Ordering::Relaxed) && switch::set(true)
}

#[cfg(target_os = "linux")]
mod switch {
    use rustix::thread::{disable_transparent_huge_pages, transparent_huge_pages_are_disabled};

    pub(super) fn is_on() -> bool {
        matches!(transparent_huge_pages_are_disabled(), Ok(false))
    }

    pub(super) fn set(on: bool) -> bool {
        disable_transparent_huge_pages(!on).is_ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod switch {
    pub(super) fn is_on() -> bool {
        false
    }

    pub(super) fn set(_on: bool) -> bool {
        false
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// The one test that touches the process's switch.
    #[test]
    fn what_was_withheld_is_allowed_once() {
        if !switch::is_on() {
            return;
        }
        assert!(!allow(), "nothing was withheld");
        withhold();
        assert!(!switch::is_on());
        // A second time finds them off, and doesn't take that for its own doing, nor forgets it.
        withhold();
        assert!(allow() && switch::is_on());
        assert!(!allow() && switch::is_on());
        // Who begins with them off keeps them off.
        assert!(switch::set(false));
        withhold();
        assert!(!allow() && !switch::is_on());
        assert!(switch::set(true));
    }
}

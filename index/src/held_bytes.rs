//! Bytes that are held, accounted for until they are let go.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Some of the bytes that a counter tells of.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    bytes: usize,
    of: Arc<AtomicUsize>,
}

impl HeldBytes {
    pub(crate) fn new(bytes: usize, of: &Arc<AtomicUsize>) -> Self {
        of.fetch_add(bytes, Ordering::Relaxed);
        Self {
            bytes,
            of: Arc::clone(of),
        }
    }

    /// Holds so many more.
    pub(crate) fn grow(&mut self, bytes: usize) {
        self.of.fetch_add(bytes, Ordering::Relaxed);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.of.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

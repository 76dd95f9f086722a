//! Compares the files of an index with their checksums while it is used. Once damage is known, the index answers nothing any
//! more, and its [supervisor](super::supervisor) has it built anew from the table.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use souk_index::{Error as IndexError, Index};
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use super::Keeping;
use crate::error::{EngineError, Result};

/// How the files of each index are compared with their checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifyOptions {
    /// Bytes that are compared while an index is opened, before it answers.
    pub at_open: u64,
    /// Bytes a second that are read for comparing all files in the background.
    pub bytes_per_second: u64,
    /// How long after one comparison of all files the next begins.
    pub interval: Duration,
}

impl Default for VerifyOptions {
    fn default() -> Self {
        Self {
            at_open: souk_index::limits::VERIFIED_AT_OPEN_BYTES,
            bytes_per_second: 64 << 20,
            interval: Duration::from_secs(6 * 3_600),
        }
    }
}

/// Compares the files of an index, again and again, until it is dropped.
#[derive(Debug)]
pub(super) struct Verifying {
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Verifying {
    fn drop(&mut self) {
        self.stop.cancel();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            error!("a thread that compares checksums panicked");
        }
    }
}

/// Begins to compare the files of an index, which answers nothing any more when damage is found.
///
/// # Errors
/// When the system gives no thread.
pub(super) fn start(keeping: &Arc<Keeping>, index: &Index) -> Result<Verifying> {
    let stop = CancellationToken::new();
    let (stopped, keeping, index) = (stop.clone(), Arc::clone(keeping), index.clone());
    let thread = thread::Builder::new()
        .name(format!("verify-{}", keeping.name()))
        .spawn(move || {
            let _attached = keeping.context.clone().attach();
            compare(&keeping, &index, &stopped);
        })
        .map_err(|source| EngineError::Io {
            doing: "starting a thread that compares checksums",
            source,
        })?;
    Ok(Verifying {
        stop,
        thread: Some(thread),
    })
}

fn compare(keeping: &Keeping, index: &Index, stop: &CancellationToken) {
    let options = keeping.options.verify;
    while !stop.is_cancelled() {
        match index.verify_slowly(options.bytes_per_second, &|| stop.is_cancelled()) {
            Ok(()) => {}
            Err(IndexError::Corrupt { detail, .. }) => {
                keeping.state().condemn(index.opening(), &detail);
                // Also when it doesn't answer yet.
                return keeping.state().wake.notify_one();
            }
            Err(error) => {
                let name = keeping.name();
                warn!(index = name, %error, "the files of the index can't be compared with their checksums now");
            }
        }
        keeping.runtime.block_on(async {
            tokio::select! {
                () = tokio::time::sleep(options.interval) => {}
                () = stop.cancelled() => {}
            }
        });
    }
}

/// Says, once, that the files of an index aren't what they were.
pub(super) fn found(keeping: &Keeping, error: &impl std::fmt::Display) {
    let name = keeping.name();
    error!(index = name, %error, "the index is damaged: it is built anew from the table");
    keeping.index.damages.fetch_add(1, Ordering::Relaxed);
}

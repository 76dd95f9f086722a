//! Translates errors of fjall into those of [`crate::error`].

use std::error::Error as _;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::error::{Error, OpenError};
use crate::space::Space;

/// Why the store stopped for good: every commit that waits or comes later is refused with it.
#[derive(Debug, Clone)]
pub(super) struct StoreFailure {
    pub(super) reason: String,
    /// Whether the device was full.
    disk_full: bool,
}

impl StoreFailure {
    /// A write to the journal failed, or fjall says that one failed in the background.
    pub(super) fn writing(error: &::fjall::Error) -> Self {
        let reason = if matches!(error, ::fjall::Error::Poisoned) {
            "writing failed before, in the background; the log of the process says how".to_owned()
        } else {
            format!("writing the journal: {}", describe(error))
        };
        Self {
            reason,
            disk_full: io_cause(error).is_some_and(is_disk_full),
        }
    }

    /// A write of the watermark failed.
    pub(super) fn watermark(error: &io::Error) -> Self {
        Self {
            reason: format!("writing the watermark: {}: {error}", kind_of(error)),
            disk_full: is_disk_full(error),
        }
    }

    /// A write stall didn't end within `limit`.
    pub(super) fn stalled(limit: Duration) -> Self {
        let seconds = limit.as_secs();
        Self {
            reason: format!("flushes and compactions have stood still for {seconds} s while writers waited"),
            disk_full: false,
        }
    }

    /// Adds the device's free bytes to the reason: fjall doesn't say what failed in the background, and that may tell.
    pub(super) fn with_free_space(mut self, free: Option<u64>) -> Self {
        if let Some(free) = free {
            self.reason = format!("{}; {free} bytes are free on the device", self.reason);
        }
        self
    }

    /// The committer thread panicked.
    pub(super) fn panicked() -> Self {
        Self {
            reason: "the committer thread panicked".to_owned(),
            disk_full: false,
        }
    }

    /// The error of a commit that was being written.
    pub(super) fn outcome_unknown(&self) -> Error {
        Error::OutcomeUnknown {
            reason: self.reason.clone(),
            disk_full: self.disk_full,
        }
    }

    /// The error of a commit that came later.
    pub(super) fn unavailable(&self) -> Error {
        Error::Unavailable {
            reason: self.reason.clone(),
        }
    }
}

/// The error of a failed read from a space.
pub(super) fn unreadable(space: Space, error: ::fjall::Error) -> Error {
    Error::Corrupt {
        what: format!("the engine can't read from {space:?}"),
        source: Some(Box::new(error)),
    }
}

/// The error of fjall not opening the files in `data`.
pub(super) fn opening(data: &Path, error: ::fjall::Error) -> OpenError {
    if let ::fjall::Error::Io(source) | ::fjall::Error::Storage(::fjall::LsmError::Io(source)) = error {
        return OpenError::io("open", data)(source);
    }
    OpenError::Store(Error::Corrupt {
        what: format!("the engine can't open {data:?}"),
        source: Some(Box::new(error)),
    })
}

/// The first I/O error among the sources of an error.
fn io_cause(error: &::fjall::Error) -> Option<&io::Error> {
    let mut next = error.source();
    while let Some(error) = next {
        if let Some(io) = error.downcast_ref() {
            return Some(io);
        }
        next = error.source();
    }
    None
}

/// The message of an error of fjall, behind what the operating system refused, if it did.
pub(super) fn describe(error: &::fjall::Error) -> String {
    match io_cause(error) {
        Some(io) => format!("{}: {error}", kind_of(io)),
        None => error.to_string(),
    }
}

fn kind_of(error: &io::Error) -> &'static str {
    match error.kind() {
        _ if is_disk_full(error) => "the device is full",
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only",
        io::ErrorKind::PermissionDenied => "a permission is missing",
        io::ErrorKind::FileTooLarge => "a file has reached its largest size",
        _ => "the device failed",
    }
}

fn is_disk_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

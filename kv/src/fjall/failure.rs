//! Translates errors of fjall into those of the seam.

use std::error::Error as _;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::error::{Error, OpenError};
use crate::space::Space;

/// The reason why the store stopped, for all calls that wait or come later.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) reason: String,
    disk_full: bool,
}

impl Failure {
    pub(super) fn writing(error: &::fjall::Error) -> Self {
        let reason = if matches!(error, ::fjall::Error::Poisoned) {
            "writing failed before, in the background; the log of the process says how".to_owned()
        } else {
            format!("writing the journal: {}", describe(error))
        };
        Self {
            reason,
            disk_full: cause(error).is_some_and(is_disk_full),
        }
    }

    pub(super) fn watermark(error: &io::Error) -> Self {
        Self {
            reason: format!("writing the watermark: {}: {error}", what_failed(error)),
            disk_full: is_disk_full(error),
        }
    }

    pub(super) fn stalled(after: Duration) -> Self {
        let seconds = after.as_secs();
        Self {
            reason: format!("flushes and compactions have stood still for {seconds} s while writers waited"),
            disk_full: false,
        }
    }

    /// The same, with the free bytes of the device: the engine doesn't tell what failed in the background.
    pub(super) fn with_free_space(mut self, free: Option<u64>) -> Self {
        if let Some(free) = free {
            self.reason = format!("{}; {free} bytes are free on the device", self.reason);
        }
        self
    }

    pub(super) fn panicked() -> Self {
        Self {
            reason: "the committer thread panicked".to_owned(),
            disk_full: false,
        }
    }

    pub(super) fn outcome_unknown(&self) -> Error {
        Error::OutcomeUnknown {
            reason: self.reason.clone(),
            disk_full: self.disk_full,
        }
    }

    pub(super) fn unavailable(&self) -> Error {
        Error::Unavailable {
            reason: self.reason.clone(),
        }
    }
}

/// A read of a space that failed.
pub(super) fn unreadable(space: Space, error: ::fjall::Error) -> Error {
    Error::Corrupt {
        what: format!("the engine can't read from {space:?}"),
        source: Some(Box::new(error)),
    }
}

/// The engine doesn't open.
pub(super) fn opening(data: &Path, error: ::fjall::Error) -> OpenError {
    if let ::fjall::Error::Io(source) | ::fjall::Error::Storage(::fjall::LsmError::Io(source)) = error {
        return OpenError::io("open", data)(source);
    }
    OpenError::Store(Error::Corrupt {
        what: format!("the engine can't open {data:?}"),
        source: Some(Box::new(error)),
    })
}

fn cause(error: &::fjall::Error) -> Option<&io::Error> {
    let mut next = error.source();
    while let Some(error) = next {
        if let Some(io) = error.downcast_ref() {
            return Some(io);
        }
        next = error.source();
    }
    None
}

/// The message of an engine's error, with the part of the machine that failed.
pub(super) fn describe(error: &::fjall::Error) -> String {
    match cause(error) {
        Some(io) => format!("{}: {error}", what_failed(io)),
        None => error.to_string(),
    }
}

fn what_failed(error: &io::Error) -> &'static str {
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

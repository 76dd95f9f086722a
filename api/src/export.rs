//! Exports as requests ask for them, of resources and of rows.

use souk_chassis::status::Violations;
use souk_engine::ExportStart;
use souk_engine::slices::{SLICES_MAX, Slice};

use crate::error::Result;
use crate::wire::{checked, unsigned};

/// An export of a slice of a snapshot; the fields are those of `ExportXxxRequest`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportRequest {
    /// How many slices the snapshot is divided into; 0 is 1, at most [`SLICES_MAX`].
    pub slice_count: i32,
    /// The slice to read, from 0.
    pub slice: i32,
    /// Token of the snapshot to read; empty takes a new one.
    pub snapshot_token: String,
    /// Token of the block to resume after; empty begins the slice. The other fields then come from the token.
    pub resume_token: String,
    /// A sequence that the snapshot has to include; 0 for any.
    pub min_sequence: i64,
}

impl ExportRequest {
    /// Where it begins.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) when there is no such slice.
    pub(crate) fn start(&self) -> Result<ExportStart<'_>> {
        if !self.resume_token.is_empty() {
            return Ok(ExportStart::Resume(&self.resume_token));
        }
        Ok(ExportStart::Slice {
            slice: self.slice()?,
            snapshot_token: Some(&*self.snapshot_token).filter(|token| !token.is_empty()),
            min_sequence: unsigned(self.min_sequence),
        })
    }

    fn slice(&self) -> Result<Slice> {
        let mut violations = Violations::default();
        let count = match u16::try_from(self.slice_count) {
            Ok(0) => 1,
            Ok(count) if count <= SLICES_MAX => count,
            Ok(_) | Err(_) => {
                let message = format!("is {}, must be 0 to {SLICES_MAX}", self.slice_count);
                violations.push("slice_count", "OUT_OF_RANGE", message);
                return checked(None, violations);
            }
        };
        let slice = u16::try_from(self.slice).ok();
        let slice = slice.and_then(|number| Slice::new(count, number));
        if slice.is_none() {
            let message = format!("is {}, must be 0 to {}", self.slice, count - 1);
            violations.push("slice", "OUT_OF_RANGE", message);
        }
        checked(slice, violations)
    }
}

//! Views that searches keep for the pages that follow: what the index held, and the rows behind it.

use std::sync::Arc;
use std::time::Duration;

use souk_index::Searcher;
use souk_storage::Snapshot;

use crate::error::{EngineError, Result};
use crate::leases::{Full, Leases};

/// Longest time that a view is kept after its last use.
pub const VIEW_KEEP_MAX: Duration = Duration::from_secs(300);
/// Most views that are kept at a time.
pub const VIEWS_MAX: usize = 64;
/// Most of them for one caller, where callers are known.
pub const VIEWS_OF_CALLER_MAX: usize = 4;
/// Longest time that a view is kept, however often it is used.
pub const VIEW_AGE_MAX: Duration = Duration::from_secs(3_600);

/// How long a view is kept after its last page, so that the call for it can be repeated.
const AFTER_LAST_PAGE: Duration = Duration::from_secs(10);

/// What a search saw.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// The index.
    pub(crate) searcher: Searcher,
    /// The last write that it includes.
    pub(crate) sequence: u64,
    /// The rows, as they were when the index was looked at or a moment later.
    pub(crate) rows: Snapshot,
}

/// The views that are kept.
pub(crate) type Views = Leases<View>;

/// The view of a token.
///
/// # Errors
/// [`EngineError::ViewExpired`].
pub(crate) fn kept(views: &Views, number: u64, keep: Option<Duration>) -> Result<View> {
    views.take(number, keep).ok_or(EngineError::ViewExpired)
}

/// Keeps a view.
///
/// # Errors
/// [`EngineError::TooManyViews`].
pub(crate) fn keep(views: &Views, view: View, keep: Duration, caller: Option<Arc<str>>) -> Result<u64> {
    let number = views.keep(view, keep, caller);
    number.map_err(|Full { max, of }| EngineError::TooManyViews { max, of })
}

/// Says that the last page of a view was given.
pub(crate) fn finish(views: &Views, number: u64) {
    views.finish(number, AFTER_LAST_PAGE);
}

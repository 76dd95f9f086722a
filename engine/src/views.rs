//! Views that searches keep for the pages that follow: what the index held, and the rows behind it.
//!
//! The token of a page in a kept view is one of the engine's around the index's, with the number of the view.

use std::sync::Arc;
use std::time::Duration;

use souk_index::Searcher;
use souk_storage::Snapshot;

use crate::error::{EngineError, Result};
use crate::leases::{Full, LeaseLimits, Leases};
use crate::open_index::OpenIndex;
use crate::token::{self, TokenKind};

/// Longest time that a view is kept after its last use.
pub const VIEW_KEEP_MAX: Duration = Duration::from_secs(300);
/// Most views that are kept at a time.
pub const VIEWS_MAX: usize = 64;
/// Most of them for one caller, where callers are known.
pub const VIEWS_OF_CALLER_MAX: usize = 4;
/// Longest time that a view is kept, however often it is used.
pub const VIEW_AGE_MAX: Duration = Duration::from_secs(3_600);

pub(crate) const VIEW_LIMITS: LeaseLimits = LeaseLimits {
    count: VIEWS_MAX,
    share: VIEWS_OF_CALLER_MAX,
    age: VIEW_AGE_MAX,
};

/// How long a view is kept after its last page, so that the call for it can be repeated.
const AFTER_LAST_PAGE: Duration = Duration::from_secs(10);

/// What a search saw.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// Which index of the table was searched.
    pub(crate) index: Arc<OpenIndex>,
    /// What it held.
    pub(crate) searcher: Searcher,
    /// The last write that it includes.
    pub(crate) sequence: u64,
    /// The rows, as they were when the index was looked at or a moment later.
    pub(crate) rows: Snapshot,
}

/// The views that are kept.
pub(crate) type Views = Leases<View>;

/// A place in a view that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ViewToken {
    /// The view's number.
    pub(crate) number: u64,
    /// The index's own token.
    pub(crate) inner: String,
}

impl ViewToken {
    /// The token's text, for searches with a fingerprint.
    pub(crate) fn seal(&self, fingerprint: u64) -> String {
        let payload = [&self.number.to_be_bytes(), self.inner.as_bytes()].concat();
        token::seal(TokenKind::View, fingerprint, &payload)
    }

    /// Reads a token; `None` when it isn't one of a kept view with this fingerprint: then it is the index's to read.
    pub(crate) fn open(fingerprint: u64, text: &str) -> Option<Self> {
        let payload = token::open(TokenKind::View, fingerprint, text).ok()?;
        let (number, inner) = payload.split_first_chunk::<8>()?;
        Some(Self {
            number: u64::from_be_bytes(*number),
            inner: String::from_utf8(inner.to_vec()).ok()?,
        })
    }
}

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

#[cfg(test)]
mod tests {
    use super::ViewToken;

    #[test]
    fn a_token_of_a_view_is_told_from_all_others() {
        let token = ViewToken {
            number: 7,
            inner: "AbC-_9".to_owned(),
        };
        let orders = 7;
        let text = token.seal(orders);
        assert_eq!(ViewToken::open(orders, &text), Some(token));
        assert_eq!(ViewToken::open(8, &text), None);
        for other in ["", "AbC-_9", &text[1..], &format!("{text}A")] {
            assert_eq!(ViewToken::open(orders, other), None, "{other}");
        }
    }
}

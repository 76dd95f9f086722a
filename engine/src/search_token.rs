//! Tokens of the pages of searches that the index's own token doesn't say enough for: which index of a table gave the page, where that
//! isn't its first, and which kept view.

use xxhash_rust::xxh3::xxh3_64;

use crate::token::{self, TokenKind};

/// The place behind a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SearchToken {
    /// [`index_number`] of the index that gave the page.
    pub(crate) index: u64,
    /// The number of the view that is kept for the pages, if one is.
    pub(crate) view: Option<u64>,
    /// The index's own token.
    pub(crate) inner: String,
}

/// What tells an index from the others of its table.
pub(crate) fn index_number(name: &str) -> u64 {
    xxh3_64(name.as_bytes())
}

impl SearchToken {
    /// The token's text, for searches with a fingerprint.
    pub(crate) fn seal(&self, fingerprint: u64) -> String {
        let mut payload = self.index.to_be_bytes().to_vec();
        match self.view {
            Some(number) => {
                payload.push(1);
                payload.extend(number.to_be_bytes());
            }
            None => payload.push(0),
        }
        payload.extend(self.inner.as_bytes());
        token::seal(TokenKind::Search, fingerprint, &payload)
    }

    /// Reads a token; `None` when it isn't one of these with this fingerprint: then it is the first index's to read.
    pub(crate) fn open(fingerprint: u64, text: &str) -> Option<Self> {
        let payload = token::open(TokenKind::Search, fingerprint, text).ok()?;
        let (index, rest) = payload.split_first_chunk::<8>()?;
        let (has_view, mut rest) = rest.split_first()?;
        let mut view = None;
        if *has_view == 1 {
            let (number, inner) = rest.split_first_chunk::<8>()?;
            (view, rest) = (Some(u64::from_be_bytes(*number)), inner);
        }
        Some(Self {
            index: u64::from_be_bytes(*index),
            view,
            inner: String::from_utf8(rest.to_vec()).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_of_a_search_is_told_from_all_others() {
        for view in [None, Some(7)] {
            let token = SearchToken {
                index: index_number("orders.trial"),
                view,
                inner: "AbC-_9".to_owned(),
            };
            let orders = 7;
            let text = token.seal(orders);
            assert_eq!(SearchToken::open(orders, &text), Some(token));
            assert_eq!(SearchToken::open(8, &text), None);
            for other in ["", "AbC-_9", &text[1..], &format!("{text}A")] {
                assert_eq!(SearchToken::open(orders, other), None, "{other}");
            }
        }
    }
}

//! Tokens: where a page ended, in which index, and in which order. A search by a token needn't say its order again.

use bytes::Bytes;
use prost::Message;
use souk_engine::index::limits::MAX_PAGE_TOKEN_CHARS;
use souk_tablestore::messages::Sort;
use souk_tablestore::{ServiceError, decode};

use crate::error::invalid;

/// Longest token, bytes: of the longest one of an index, and of the orders that people write.
const MAX_BYTES: usize = MAX_PAGE_TOKEN_CHARS + (64 << 10);

/// See the [module](self).
#[derive(Clone, PartialEq, Message)]
pub(super) struct SearchToken {
    /// The index, as the engine calls it.
    #[prost(string, tag = "1")]
    pub(super) index: String,
    /// The order as it was given.
    #[prost(bytes = "bytes", tag = "2")]
    sort: Bytes,
    /// The engine's own token.
    #[prost(string, tag = "3")]
    pub(super) inner: String,
}

impl SearchToken {
    pub(super) fn new(index: &str, sort: Option<&Sort>, inner: String) -> Self {
        Self {
            index: index.to_owned(),
            sort: sort.map(Message::encode_to_vec).unwrap_or_default().into(),
            inner,
        }
    }

    pub(super) fn read(bytes: Bytes) -> Result<Self, ServiceError> {
        let fits = bytes.len() <= MAX_BYTES;
        let read = fits.then(|| Self::decode(bytes).ok()).flatten();
        read.filter(|token| !token.inner.is_empty()).ok_or_else(wrong)
    }

    /// The order; `None` where none was given.
    pub(super) fn sort(&self) -> Result<Option<Sort>, ServiceError> {
        if self.sort.is_empty() {
            return Ok(None);
        }
        decode(self.sort.clone()).map(Some).map_err(|_| wrong())
    }

    pub(super) fn write(&self) -> Bytes {
        self.encode_to_vec().into()
    }
}

/// A token isn't one of this search.
pub(super) fn wrong() -> ServiceError {
    invalid("Invalid token: pass the next token of the page before, as it was given.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_as_many_bytes_as_it_may() {
        let of_bytes = |bytes: usize| SearchToken::new("index", None, "x".repeat(bytes));
        let besides = of_bytes(MAX_BYTES).write().len() - MAX_BYTES;
        let longest = of_bytes(MAX_BYTES - besides);
        assert_eq!(longest.write().len(), 448 << 10);
        assert_eq!(SearchToken::read(longest.write()), Ok(longest));
        for other in [of_bytes(MAX_BYTES - besides + 1), of_bytes(0)] {
            assert_eq!(SearchToken::read(other.write()), Err(wrong()));
        }
    }
}

//! Notes: what is kept with a search index that the engine has no place for.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use prost::Message;
use souk_engine::SearchIndexDefinition;
use souk_tablestore::messages::{IndexSchema, QueryFlowWeight};

/// See the [module](self).
#[derive(Clone, PartialEq, Message)]
pub(super) struct Note {
    /// What clients call the index.
    #[prost(string, tag = "1")]
    pub(super) name: String,
    /// As it was given.
    #[prost(message, optional, tag = "2")]
    pub(super) schema: Option<IndexSchema>,
    /// What the index is called that it is to replace; empty without one.
    #[prost(string, tag = "3")]
    pub(super) source: String,
    /// How searches that name this index are shared out among it and others; none without sharing.
    #[prost(message, repeated, tag = "4")]
    pub(super) flows: Vec<QueryFlowWeight>,
    /// When it was made, milliseconds since the Unix epoch.
    #[prost(int64, tag = "5")]
    pub(super) created: i64,
}

impl Note {
    /// The note of an index; `None` of one that wasn't made here.
    pub(super) fn of(index: &SearchIndexDefinition) -> Option<Self> {
        if index.note.is_empty() {
            return None;
        }
        let bytes = BASE64.decode(&index.note).ok()?;
        Self::decode(&*bytes).ok()
    }

    /// The text that an index keeps.
    pub(super) fn text(&self) -> String {
        BASE64.encode(self.encode_to_vec())
    }
}

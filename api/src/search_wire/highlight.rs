//! What to mark in hits, and the marked fragments.

use std::collections::BTreeMap;

use souk_index::{Encoder, Fragment, FragmentOrder, Highlight};
use souk_proto::search::v1 as pb;

use super::reader::{Reader, enumeration};

impl Reader<'_> {
    /// Reads what to mark, with the defaults for what is unset. The index checks the rest.
    pub(super) fn highlight(highlight: pb::Highlight) -> Option<Highlight> {
        let order = enumeration(highlight.fragment_order);
        let encoder = enumeration(highlight.encoder);
        let or = |given: String, default: String| if given.is_empty() { default } else { given };
        let number = |given: u32, default| if given == 0 { default } else { given as usize };
        let default = Highlight::new(highlight.fields);
        Some(Highlight {
            fields: default.fields,
            pre_tag: or(highlight.pre_tag, default.pre_tag),
            post_tag: or(highlight.post_tag, default.post_tag),
            fragment_size: number(highlight.fragment_size, default.fragment_size),
            number_of_fragments: number(highlight.number_of_fragments, default.number_of_fragments),
            order: match order? {
                pb::FragmentOrder::Unspecified | pb::FragmentOrder::Text => FragmentOrder::Text,
                pb::FragmentOrder::Score => FragmentOrder::Score,
            },
            encoder: match encoder? {
                pb::HighlightEncoder::Unspecified | pb::HighlightEncoder::Plain => Encoder::Plain,
                pb::HighlightEncoder::Html => Encoder::Html,
            },
        })
    }
}

/// The fragments of one hit by field.
pub(crate) fn fragments(found: Vec<(String, Vec<Fragment>)>) -> BTreeMap<String, pb::HighlightFragments> {
    let shown = |fragments: Vec<Fragment>| pb::HighlightFragments {
        fragments: fragments.into_iter().map(|fragment| fragment.text).collect(),
    };
    found
        .into_iter()
        .map(|(field, fragments)| (field, shown(fragments)))
        .collect()
}

//! What to mark in hits, and what is marked.

use souk_engine::index::limits::MAX_HIGHLIGHT_FIELDS;
use souk_engine::index::{Encoder, Fragment, FragmentOrder, Highlight};
use souk_tablestore::ServiceError;
use souk_tablestore::messages::{
    self as pb, HighlightEncoder, HighlightField, HighlightFragmentOrder, HighlightParameter, HighlightResult,
};

use super::fields::{client_name, count, enumeration, name};
use crate::error::{invalid, unsupported};

/// Reads what to mark: of all fields in the same way.
pub(super) fn highlight(given: &pb::Highlight) -> Result<Highlight, ServiceError> {
    if given.highlight_parameters.len() > MAX_HIGHLIGHT_FIELDS {
        return Err(invalid(format!(
            "The number of highlighted fields exceeds {MAX_HIGHLIGHT_FIELDS}."
        )));
    }
    let mut read: Option<Highlight> = None;
    for parameter in &given.highlight_parameters {
        let one = of_field(parameter, given.highlight_encoder)?;
        match &mut read {
            None => read = Some(one),
            Some(all) => {
                all.fields.extend(one.fields.iter().cloned());
                let same = Highlight {
                    fields: all.fields.clone(),
                    ..one
                };
                if *all != same {
                    return Err(unsupported("highlights of several fields in different ways"));
                }
            }
        }
    }
    read.ok_or_else(|| invalid("A highlight names no field."))
}

fn of_field(parameter: &HighlightParameter, encoder: Option<i32>) -> Result<Highlight, ServiceError> {
    let default = Highlight::new(vec![name(parameter.field_name.as_deref())?]);
    let number = |given: Option<i32>, default: usize, part: &str| match given {
        None | Some(0) => Ok(default),
        Some(given) => count(given, part),
    };
    let order = parameter.fragments_order;
    Ok(Highlight {
        fragment_size: number(parameter.fragment_size, default.fragment_size, "fragment_size")?,
        number_of_fragments: number(
            parameter.number_of_fragments,
            default.number_of_fragments,
            "number_of_fragments",
        )?,
        pre_tag: parameter.pre_tag.clone().unwrap_or(default.pre_tag),
        post_tag: parameter.post_tag.clone().unwrap_or(default.post_tag),
        order: match enumeration(order, HighlightFragmentOrder::TextSequence, "order of fragments")? {
            HighlightFragmentOrder::TextSequence => FragmentOrder::Text,
            HighlightFragmentOrder::Score => FragmentOrder::Score,
        },
        encoder: match enumeration(encoder, HighlightEncoder::PlainMode, "highlight encoder")? {
            HighlightEncoder::PlainMode => Encoder::Plain,
            HighlightEncoder::HtmlMode => Encoder::Html,
        },
        fields: default.fields,
    })
}

/// What is marked in one hit.
pub(super) fn marked(found: Vec<(String, Vec<Fragment>)>) -> HighlightResult {
    let fields = found.into_iter().map(|(field, fragments)| HighlightField {
        field_name: Some(client_name(&field).to_owned()),
        field_fragments: fragments.into_iter().map(|fragment| fragment.text).collect(),
    });
    HighlightResult {
        highlight_fields: fields.collect(),
    }
}

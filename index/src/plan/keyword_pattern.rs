//! Documents with a KEYWORD that a pattern matches.
//!
//! The strings of a segment's dictionary are searched as one text (see [`crate::columns`]); then the documents with one of
//! the strings that match are looked up, or, where the strings are many, told by the ordinals that they have in the
//! column. However many strings there are, it is the time that bounds a search, and not how they lie in segments.

use crate::error::AllowanceExceeded;
use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::Mutex;
use tantivy::index::SegmentId;
use tantivy::schema::Field;
use tantivy::{SegmentReader, Term};

use super::dictionary_walk::Matcher;
use super::keyword_range::ordinals_between;
use super::selection::{Select, Selected, Selection, ValueSet};
use super::terms::gather;
use crate::bits::Bits;
use crate::columns::StringColumn;
use crate::run::Run;

/// Values up to which looking each up beats reading the column.
const FEW_VALUES: usize = 64;

/// The documents of which a value lies between two bounds and matches.
#[derive(Debug)]
pub(super) struct KeywordPattern {
    pub(super) field: Field,
    pub(super) path: String,
    pub(super) bounds: (Bound<String>, Bound<String>),
    pub(super) matcher: Matcher,
    /// Bytes of a value in front of what is matched; the bounds hold values that are as long at least.
    pub(super) behind: usize,
    pub(super) run: Arc<Run>,
    /// What was found in segments: a search may ask more than once.
    pub(super) found: Mutex<HashMap<SegmentId, Arc<Found>>>,
}

/// The values of a segment that match.
#[derive(Debug)]
pub(super) enum Found {
    Few(Vec<Vec<u8>>),
    /// Their ordinals.
    Many(Arc<Bits>),
}

impl Found {
    fn bytes(&self) -> usize {
        match self {
            Self::Few(values) => values.iter().map(|value| value.len() + size_of_val(value)).sum(),
            Self::Many(ordinals) => ordinals.bytes(),
        }
    }
}

impl KeywordPattern {
    fn matches(&self, value: &[u8]) -> bool {
        let value = value.get(self.behind..);
        value.is_some_and(|value| self.matcher.matches(value))
    }

    fn found(&self, segment: SegmentId, strings: &StringColumn) -> tantivy::Result<Arc<Found>> {
        if let Some(found) = self.found.lock().get(&segment) {
            return Ok(Arc::clone(found));
        }
        let found = Arc::new(self.find(strings)?);
        if self.run.may_keep_matches(found.bytes()) {
            self.found.lock().insert(segment, Arc::clone(&found));
        }
        Ok(found)
    }

    fn find(&self, strings: &StringColumn) -> tantivy::Result<Found> {
        let (lower, upper) = &self.bounds;
        let among = ordinals_between(&strings.column, lower, upper)?;
        let from = match lower {
            Bound::Included(lower) | Bound::Excluded(lower) => Some(lower.as_bytes()),
            Bound::Unbounded => None,
        };
        let terms = u32::try_from(strings.column.num_terms()).unwrap_or(u32::MAX);
        let mut few: Vec<(u32, Vec<u8>)> = Vec::new();
        let mut many: Option<Result<Bits, AllowanceExceeded>> = None;
        strings.matching(
            among,
            from,
            self.matcher.literal().as_bytes(),
            &self.run,
            |value| self.matches(value),
            |ordinal, value| {
                let ordinal = u32::try_from(ordinal).unwrap_or(u32::MAX);
                if many.is_none() && few.len() < FEW_VALUES {
                    few.push((ordinal, value.to_vec()));
                    return;
                }
                let many = many.get_or_insert_with(|| Bits::within(terms, self.run.allowance()));
                if let Ok(many) = many {
                    few.drain(..).for_each(|(ordinal, _)| many.insert(ordinal));
                    many.insert(ordinal);
                }
            },
        )?;
        Ok(match many {
            Some(many) => Found::Many(Arc::new(many?)),
            None => Found::Few(few.into_iter().map(|(_, value)| value).collect()),
        })
    }
}

impl Select for KeywordPattern {
    fn open(&self, reader: &SegmentReader) -> tantivy::Result<Selected> {
        let Some(strings) = self.run.columns().strings(reader, &self.path)? else {
            return Ok(Selected::Nothing);
        };
        match &*self.found(reader.segment_id(), &strings)? {
            Found::Few(values) if values.is_empty() => Ok(Selected::Nothing),
            Found::Few(values) => {
                let texts = values.iter().filter_map(|value| std::str::from_utf8(value).ok());
                let terms = texts.map(|text| Term::from_field_text(self.field, text));
                gather(reader, &self.run, self.field, terms).map(Selected::Documents)
            }
            Found::Many(ordinals) => {
                let (column, values) = (&strings.ordinals, ValueSet::Ordinals(Arc::clone(ordinals)));
                let selection = Selection::new(Arc::clone(column), values, &self.run, reader.max_doc());
                Ok(Selected::Values(selection))
            }
        }
    }
}

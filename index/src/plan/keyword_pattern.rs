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
use super::doc_set::DocSetBuilder;
use super::keyword_range::ordinals_between;
use super::selection::{Select, Selected, Selection, ValueSet};
use crate::allowance::Allowance;
use crate::bits::Bits;
use crate::columns::StringColumn;
use crate::run::Run;

/// Values up to which looking each up beats reading the column.
const FEW_VALUES: usize = 64;

/// The documents of which a value lies between two bounds and matches.
#[derive(Debug)]
pub(super) struct KeywordPattern {
    field: Field,
    path: String,
    bounds: (Bound<String>, Bound<String>),
    matcher: Matcher,
    /// Bytes of a value in front of what is matched.
    behind: usize,
    run: Arc<Run>,
    /// What was found in segments: a search may ask more than once.
    found: Mutex<HashMap<SegmentId, Arc<Found>>>,
}

/// The values of a segment that match.
#[derive(Debug)]
enum Found {
    Few(Vec<Vec<u8>>),
    /// Their ordinals.
    Many(Arc<Bits>),
}

/// [`Found`], growing.
struct Finding {
    /// How many values there are.
    terms: u32,
    few: Vec<(u32, Vec<u8>)>,
    many: Option<Bits>,
    allowance: Allowance,
    /// Why no more values are taken; told at the end.
    exceeded: Option<AllowanceExceeded>,
}

impl Finding {
    fn among(terms: usize, allowance: &Allowance) -> Self {
        Self {
            terms: u32::try_from(terms).unwrap_or(u32::MAX),
            few: Vec::new(),
            many: None,
            allowance: allowance.clone(),
            exceeded: None,
        }
    }

    fn add(&mut self, ordinal: u64, value: &[u8]) {
        let Ok(ordinal) = u32::try_from(ordinal) else {
            return;
        };
        if self.many.is_none() && self.few.len() < FEW_VALUES {
            self.few.push((ordinal, value.to_vec()));
            return;
        }
        if self.many.is_none() && self.exceeded.is_none() {
            match Bits::within(self.terms, &self.allowance) {
                Ok(many) => self.many = Some(many),
                Err(exceeded) => self.exceeded = Some(exceeded),
            }
        }
        if let Some(many) = &mut self.many {
            self.few.drain(..).for_each(|(ordinal, _)| many.insert(ordinal));
            many.insert(ordinal);
        }
    }

    fn end(self) -> Result<Found, AllowanceExceeded> {
        if let Some(exceeded) = self.exceeded {
            return Err(exceeded);
        }
        let few = || self.few.into_iter().map(|(_, value)| value).collect();
        Ok(self
            .many
            .map_or_else(|| Found::Few(few()), |many| Found::Many(Arc::new(many))))
    }
}

impl Found {
    fn bytes(&self) -> usize {
        match self {
            Self::Few(values) => values
                .iter()
                .map(|value| value.len() + size_of::<Vec<u8>>())
                .sum(),
            Self::Many(ordinals) => ordinals.bytes(),
        }
    }
}

impl KeywordPattern {
    pub(super) fn new(
        field: Field,
        path: &str,
        bounds: (Bound<String>, Bound<String>),
        matcher: Matcher,
        run: &Arc<Run>,
    ) -> Self {
        Self {
            field,
            path: path.to_owned(),
            bounds,
            matcher,
            behind: 0,
            run: Arc::clone(run),
            found: Mutex::default(),
        }
    }

    /// Matches what lies behind so many bytes of a value; the bounds hold values that are as long at least.
    pub(super) fn behind(mut self, bytes: usize) -> Self {
        self.behind = bytes;
        self
    }

    fn matches(&self, value: &[u8]) -> bool {
        value
            .get(self.behind..)
            .is_some_and(|value| self.matcher.matches(value))
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
        let mut found = Finding::among(strings.column.num_terms(), self.run.allowance());
        strings.matching(
            among,
            from,
            self.matcher.literal().as_bytes(),
            &self.run,
            |value| self.matches(value),
            |ordinal, value| found.add(ordinal, value),
        )?;
        Ok(found.end()?)
    }

    fn look_up(&self, values: &[Vec<u8>], reader: &SegmentReader) -> tantivy::Result<DocSetBuilder> {
        let index = reader.inverted_index(self.field)?;
        let mut gathered = DocSetBuilder::new(reader.max_doc(), self.run.allowance());
        for value in values {
            self.run.check_inside()?;
            let Ok(text) = std::str::from_utf8(value) else {
                continue;
            };
            let term = Term::from_field_text(self.field, text);
            if let Some(info) = index.get_term_info(&term)? {
                gathered.insert_term(&index, &info, |_| true)?;
            }
        }
        Ok(gathered)
    }
}

impl Select for KeywordPattern {
    fn open(&self, reader: &SegmentReader) -> tantivy::Result<Selected> {
        let Some(strings) = self.run.columns().strings(reader, &self.path)? else {
            return Ok(Selected::Nothing);
        };
        match &*self.found(reader.segment_id(), &strings)? {
            Found::Few(values) if values.is_empty() => Ok(Selected::Nothing),
            Found::Few(values) => self.look_up(values, reader).map(Selected::Documents),
            Found::Many(ordinals) => Ok(Selected::Values(Selection::new(
                Arc::clone(&strings.ordinals),
                ValueSet::Ordinals(Arc::clone(ordinals)),
                &self.run,
                reader.max_doc(),
            ))),
        }
    }
}

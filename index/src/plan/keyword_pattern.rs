//! Documents with a KEYWORD that a pattern matches.
//!
//! The strings of a segment's dictionary are searched as one text (see [`crate::columns`]); then the documents with one of
//! the strings that match are looked up, or, where the strings are many, told by the ordinals that they have in the
//! column. A dictionary that is too large to be kept is walked.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::Mutex;
use tantivy::index::SegmentId;
use tantivy::schema::Field;
use tantivy::{SegmentReader, Term};

use super::dictionary_walk::Matcher;
use super::gathered::Gathered;
use super::keyword_range::ordinals_between;
use super::selection::{Opened, Select, Selection, Values};
use crate::bits::Bits;
use crate::columns::StringColumn;
use crate::run::Run;

/// Values up to which looking each up beats reading the column.
const FEW_VALUES: usize = 64;
/// Strings between two looks at the deadline.
const STRINGS_PER_CHECK: u64 = 1_024;

/// The documents of which a value lies between two bounds and matches.
#[derive(Debug)]
pub(super) struct KeywordPattern {
    field: Field,
    path: String,
    bounds: (Bound<String>, Bound<String>),
    matcher: Matcher,
    /// Bytes of a value in front of what is matched.
    behind: usize,
    /// The clause, for the error.
    at: String,
    run: Arc<Run>,
    /// What was found in segments: a search may ask more than once.
    found: Mutex<HashMap<SegmentId, Arc<Found>>>,
}

/// The values of a segment that match.
#[derive(Debug)]
struct Found {
    count: usize,
    ordinals: Arc<Bits>,
    /// The first of them.
    few: Vec<Vec<u8>>,
}

/// [`Found`], growing.
struct Finding {
    count: usize,
    ordinals: Bits,
    few: Vec<Vec<u8>>,
}

impl Finding {
    fn add(&mut self, ordinal: u64, value: &[u8]) {
        let Ok(ordinal) = u32::try_from(ordinal) else {
            return;
        };
        self.ordinals.insert(ordinal);
        self.count += 1;
        if self.few.len() < FEW_VALUES {
            self.few.push(value.to_vec());
        }
    }

    fn end(self) -> Found {
        Found {
            count: self.count,
            ordinals: Arc::new(self.ordinals),
            few: self.few,
        }
    }
}

impl KeywordPattern {
    pub(super) fn new(
        field: Field,
        path: &str,
        bounds: (Bound<String>, Bound<String>),
        matcher: Matcher,
        at: &str,
        run: &Arc<Run>,
    ) -> Self {
        Self {
            field,
            path: path.to_owned(),
            bounds,
            matcher,
            behind: 0,
            at: at.to_owned(),
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
        self.found.lock().insert(segment, Arc::clone(&found));
        Ok(found)
    }

    fn find(&self, strings: &StringColumn) -> tantivy::Result<Found> {
        let among = ordinals_between(&strings.column, &self.bounds.0, &self.bounds.1)?;
        // Kept or not: the same search is refused, or isn't.
        let count = usize::try_from(among.end - among.start).unwrap_or(usize::MAX);
        self.run.walked(count, &self.at)?;
        let mut found = Finding {
            count: 0,
            ordinals: Bits::new(u32::try_from(strings.column.num_terms()).unwrap_or(u32::MAX)),
            few: Vec::new(),
        };
        if let Some(kept) = strings.all(&self.run)? {
            let literal = self.matcher.literal();
            let fits = |value: &[u8]| self.matches(value);
            kept.0
                .matching(among, literal.as_bytes(), &self.run, fits, |ordinal, value| {
                    found.add(ordinal, value);
                })?;
            return Ok(found.end());
        }
        let from = strings.column.dictionary().range();
        let mut first = Vec::new();
        if !strings.column.ord_to_bytes(among.start, &mut first)? {
            return Ok(found.end());
        }
        let mut values = from.ge(&first).into_stream()?;
        for ordinal in among {
            if !values.advance() {
                break;
            }
            if ordinal % STRINGS_PER_CHECK == 0 {
                self.run.check_inside()?;
            }
            if self.matches(values.key()) {
                found.add(ordinal, values.key());
            }
        }
        Ok(found.end())
    }

    fn look_up(&self, values: &[Vec<u8>], reader: &SegmentReader) -> tantivy::Result<Gathered> {
        let index = reader.inverted_index(self.field)?;
        let mut gathered = Gathered::new(reader.max_doc());
        for value in values {
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
    fn open(&self, reader: &SegmentReader) -> tantivy::Result<Opened> {
        let Some(strings) = self.run.columns().strings(reader, &self.path)? else {
            return Ok(Opened::Nothing);
        };
        let found = self.found(reader.segment_id(), &strings)?;
        if found.count == 0 {
            return Ok(Opened::Nothing);
        }
        if found.count <= FEW_VALUES {
            return self.look_up(&found.few, reader).map(Opened::Documents);
        }
        Ok(Opened::Values(Selection::new(
            Arc::clone(&strings.ordinals),
            Values::Among(Arc::clone(&found.ordinals)),
            &self.run,
            reader.max_doc(),
        )))
    }
}

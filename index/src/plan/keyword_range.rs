//! Documents with a KEYWORD between two others.
//!
//! The column's dictionary tells how many different values the range has. A few are looked up; many would be slow to look
//! up one by one, so the column is scanned for their ordinals then. Either way the work is bounded by the segment's
//! size, not by the number of values.

use std::ops::Bound;

use tantivy::query::{
    BoundsRange, EmptyScorer, EnableScoring, Explanation, FastFieldRangeWeight, Query, Scorer, Weight,
};
use tantivy::schema::Field;
use tantivy::{DocId, Score, SegmentReader, Term};

use super::gathered::Gathered;
use super::no_match;

/// Values up to which looking each up beats scanning the column.
const FEW_VALUES: u64 = 1_024;

/// The documents of which a value lies between two bounds, of which one at least is there.
#[derive(Clone, Debug)]
pub(super) struct KeywordRangeQuery {
    field: Field,
    path: String,
    lower: Bound<String>,
    upper: Bound<String>,
}

impl KeywordRangeQuery {
    pub(super) fn new(field: Field, path: &str, lower: Bound<String>, upper: Bound<String>) -> Self {
        Self {
            field,
            path: path.to_owned(),
            lower,
            upper,
        }
    }
}

impl Query for KeywordRangeQuery {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let term = |bound: &Bound<String>| bound.as_ref().map(|text| Term::from_field_text(self.field, text));
        let scan = FastFieldRangeWeight::new(BoundsRange::new(term(&self.lower), term(&self.upper)));
        Ok(Box::new(KeywordRangeWeight {
            query: self.clone(),
            scan,
        }))
    }
}

struct KeywordRangeWeight {
    query: KeywordRangeQuery,
    scan: FastFieldRangeWeight,
}

impl Weight for KeywordRangeWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let Some(column) = reader.fast_fields().str(&self.query.path)? else {
            return Ok(Box::new(EmptyScorer));
        };
        let lower = self.query.lower.as_ref().map(String::as_bytes);
        let upper = self.query.upper.as_ref().map(String::as_bytes);
        let dictionary = column.dictionary();
        let (from, to) = dictionary.term_bounds_to_ord(lower, upper)?;
        let from = match from {
            Bound::Included(ordinal) => ordinal,
            Bound::Excluded(ordinal) => ordinal + 1,
            Bound::Unbounded => 0,
        };
        let behind = match to {
            Bound::Included(ordinal) => ordinal + 1,
            Bound::Excluded(ordinal) => ordinal,
            Bound::Unbounded => dictionary.num_terms() as u64,
        };
        match behind.saturating_sub(from) {
            0 => Ok(Box::new(EmptyScorer)),
            1..=FEW_VALUES => self.look_up(reader, boost),
            _ => self.scan.scorer(reader, boost),
        }
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        let mut scorer = self.scorer(reader, 1.0)?;
        if scorer.doc() > doc || scorer.seek(doc) != doc {
            return Err(no_match(doc));
        }
        Ok(Explanation::new("keyword range", scorer.score()))
    }
}

impl KeywordRangeWeight {
    fn look_up(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let index = reader.inverted_index(self.query.field)?;
        let (from, to) = walk_bounds(&self.query.lower, &self.query.upper);
        let mut terms = index.terms().range().ge(from).lt(to).into_stream()?;
        let mut gathered = Gathered::new(reader.max_doc());
        while terms.advance() {
            gathered.insert_term(&index, terms.value(), |_| true)?;
        }
        Ok(gathered.into_scorer(boost))
    }
}

/// The bytes at which a walk over a dictionary of strings begins, and before which it ends.
pub(super) fn walk_bounds(lower: &Bound<String>, upper: &Bound<String>) -> (Vec<u8>, Vec<u8>) {
    let behind = |text: &String| [text.as_bytes(), &[0]].concat();
    let from = match lower {
        Bound::Included(text) => text.clone().into_bytes(),
        Bound::Excluded(text) => behind(text),
        Bound::Unbounded => Vec::new(),
    };
    let to = match upper {
        Bound::Included(text) => behind(text),
        Bound::Excluded(text) => text.clone().into_bytes(),
        // No string of UTF-8 has this byte.
        Bound::Unbounded => vec![0xff],
    };
    (from, to)
}

//! The block join: documents of which a nested object matches.
//!
//! Nested objects are documents of their own, placed right before their parent in the same segment (see
//! [`crate::layout`]). So the parent of an object is the next document that is one, and the objects of a parent lie
//! between the previous parent and itself. Merges keep that order as long as the index isn't sorted. The algorithm is
//! Lucene's `ToParentBlockJoinQuery`.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tantivy::index::SegmentId;
use tantivy::query::{EnableScoring, Query, Scorer, Weight};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED, Term};

use crate::bits::Bits;
use crate::doc_walk::go_to;
use crate::request::ScoreMode;
use crate::score::single;
use crate::unexplained::{unexplained, unscored};

/// Which documents of which segment are parents, by the path of the parents. Deletes don't change it, so a segment's
/// entry is good for as long as the segment lives.
#[derive(Debug, Default)]
pub(crate) struct ParentCache(Mutex<HashMap<ParentKey, Arc<Bits>>>);

/// A segment, and the `_kind` of the parents: their path.
type ParentKey = (SegmentId, Vec<u8>);

impl ParentCache {
    /// The documents of the segment that have the term `kind`.
    pub(crate) fn get(&self, reader: &SegmentReader, kind: &Term) -> tantivy::Result<Arc<Bits>> {
        let key = (reader.segment_id(), kind.serialized_value_bytes().to_vec());
        if let Some(parents) = self.0.lock().get(&key) {
            return Ok(Arc::clone(parents));
        }
        let mut parents = Bits::new(reader.max_doc());
        let index = reader.inverted_index(kind.field())?;
        if let Some(mut postings) = index.read_postings(kind, IndexRecordOption::Basic)? {
            while postings.doc() != TERMINATED {
                parents.insert(postings.doc());
                postings.advance();
            }
        }
        let parents = Arc::new(parents);
        self.0.lock().insert(key, Arc::clone(&parents));
        Ok(parents)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.lock().values().map(|parents| parents.bytes()).sum()
    }

    pub(crate) fn retain(&self, readers: &[SegmentReader]) {
        self.0
            .lock()
            .retain(|(segment, _), _| readers.iter().any(|reader| reader.segment_id() == *segment));
    }
}

/// The parents of the objects that `child` matches.
#[derive(Clone, Debug)]
pub(crate) struct Join<T = Arc<dyn Query>> {
    /// Matches objects only, never parents.
    pub(crate) child: T,
    /// The term of `_kind` that the parents have.
    pub(crate) parent_kind: Term,
    pub(crate) score_mode: ScoreMode,
    pub(crate) parents: Arc<ParentCache>,
}

impl Query for Join {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let (scoring, score_mode) = match self.score_mode {
            ScoreMode::None => (unscored(&scoring), ScoreMode::None),
            _ if !scoring.is_scoring_enabled() => (scoring, ScoreMode::None),
            score_mode => (scoring, score_mode),
        };
        let child = self.child.weight(scoring)?;
        Ok(Box::new(Join {
            child,
            parent_kind: self.parent_kind.clone(),
            score_mode,
            parents: Arc::clone(&self.parents),
        }))
    }
}

impl Weight for Join<Box<dyn Weight>> {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let parents = self.parents.get(reader, &self.parent_kind)?;
        // Scores saturate at `f32::MAX`. A boost below 1 is the child's; one above 1 is applied to the combined score, in double
        // precision, so that the objects' scores don't saturate before they are combined.
        let child = self.child.scorer(reader, boost.min(1.0))?;
        let mut scorer = JoinScorer {
            child,
            boost: f64::from(boost.max(1.0)),
            parents,
            score_mode: self.score_mode,
            doc: 0,
            score: 0.0,
        };
        scorer.gather();
        Ok(Box::new(scorer))
    }

    unexplained!();
}

struct JoinScorer {
    child: Box<dyn Scorer>,
    parents: Arc<Bits>,
    score_mode: ScoreMode,
    /// Factor of the combined score; at least 1.
    boost: f64,
    doc: DocId,
    score: Score,
}

impl JoinScorer {
    /// Goes to the parent of the child's current object, and combines the scores of all matching objects of it.
    fn gather(&mut self) -> DocId {
        let object = self.child.doc();
        if object == TERMINATED {
            self.doc = TERMINATED;
            return TERMINATED;
        }
        self.doc = self.parents.next(object);
        debug_assert!(self.doc != object, "a child query matched a parent");
        let score = match self.score_mode {
            ScoreMode::None => {
                // Mostly one object of a parent matches: the next one is behind it already.
                if self.child.advance() < self.doc {
                    self.child.seek(self.doc);
                }
                return self.doc;
            }
            ScoreMode::Avg => {
                let (sum, count) = self.fold(0.0, |sum, score| sum + score);
                sum / f64::from(count)
            }
            ScoreMode::Total => self.fold(0.0, |sum, score| sum + score).0,
            ScoreMode::Max => self.fold(f64::MIN, f64::max).0,
            ScoreMode::Min => self.fold(f64::MAX, f64::min).0,
        };
        self.score = single(score * self.boost);
        self.doc
    }

    /// Folds the scores of the matching objects before the parent, and counts them.
    fn fold(&mut self, start: f64, step: impl Fn(f64, f64) -> f64) -> (f64, u32) {
        let (mut value, mut count) = (start, 0);
        while self.child.doc() < self.doc {
            value = step(value, f64::from(self.child.score()));
            count += 1;
            self.child.advance();
        }
        (value, count)
    }
}

impl DocSet for JoinScorer {
    fn advance(&mut self) -> DocId {
        if self.doc == TERMINATED {
            return TERMINATED;
        }
        self.gather()
    }

    /// Lazy: objects of parents before the target are never looked at.
    fn seek(&mut self, target: DocId) -> DocId {
        if self.doc >= target {
            return self.doc;
        }
        let first_object = self.parents.block_start(target);
        go_to(&mut self.child, first_object);
        self.gather()
    }

    fn doc(&self) -> DocId {
        self.doc
    }

    fn size_hint(&self) -> u32 {
        self.child.size_hint()
    }

    fn cost(&self) -> u64 {
        self.child.cost()
    }
}

impl Scorer for JoinScorer {
    fn score(&mut self) -> Score {
        self.score
    }
}

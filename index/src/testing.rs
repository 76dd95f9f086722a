//! What only tests, benchmarks and fuzzing need, of this crate and of others.

use std::fmt;
use std::thread;
use std::time::Duration;

use smol_str::SmolStr;
use tantivy::directory::RamDirectory;
use tantivy::{IndexSettings, TantivyError};

use crate::cancel::Cancellation;
use crate::document::{FieldValue, Object, from};
use crate::error::Error;
use crate::geo::GeoPoint;
use crate::highlight::Highlighter;
use crate::index::{Index, IndexOptions};
use crate::layout::Layout;
use crate::merge::ReclaimingMergePolicy;
use crate::request::query::DEFAULT_WEIGHT;
use crate::request::{Operator, Query, QueryValue, ScoreMode, TimeZone};
use crate::schema::{Field, Schema};
use crate::search::Searcher;
use crate::writer::{IndexWriter, check_failed};

/// How often [`IndexWriter::merge_all`] lets merges under way go first; each leaves fewer segments.
const MAX_MERGE_ATTEMPTS: u32 = 64;
/// How long [`IndexWriter::merge_all`] waits for a merge under way before it looks again.
const MERGE_PAUSE: Duration = Duration::from_millis(10);

from! {
    FieldValue:
    i64 => Long,
    f64 => Double,
    bool => Boolean,
    GeoPoint => GeoPoint,
    Vec<Object> => Objects,
}

from! {
    QueryValue:
    &str => String,
    i64 => Integer,
    f64 => Double,
    bool => Boolean,
}

impl Cancellation {
    /// Never stops by itself.
    pub fn none() -> Self {
        Self::default()
    }
}

impl Field {
    /// For a LONG: keep only the column. Saves some 13 bytes a document where values rarely repeat; `term` and
    /// `terms` then scan the column (some 2 ns a document) and don't look values up.
    #[must_use]
    pub fn column_only(mut self) -> Self {
        self.column_only = true;
        self
    }
}

impl Object {
    /// [`Object::push`] that hands the object on.
    #[must_use]
    pub fn with(mut self, field: impl Into<SmolStr>, value: impl Into<FieldValue>) -> Self {
        self.push(field, value);
        self
    }

    /// Adds several values to `field`, in order.
    #[must_use]
    pub fn with_all<V: Into<FieldValue>>(
        mut self,
        field: impl Into<SmolStr>,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        let field = field.into();
        for value in values {
            self.push(field.clone(), value);
        }
        self
    }
}

impl Query {
    /// A [`Query::Term`] of weight 1.
    pub fn term(field: impl Into<String>, value: impl Into<QueryValue>) -> Self {
        Self::Term {
            field: field.into(),
            value: value.into(),
            weight: DEFAULT_WEIGHT,
        }
    }

    /// A [`Query::Terms`] of weight 1.
    pub fn terms<V: Into<QueryValue>>(field: impl Into<String>, values: impl IntoIterator<Item = V>) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        Self::Terms {
            field: field.into(),
            values,
            weight: DEFAULT_WEIGHT,
        }
    }

    /// A [`Query::Suffix`] of weight 1.
    pub fn suffix(field: impl Into<String>, value: impl Into<String>) -> Self {
        Self::Suffix {
            field: field.into(),
            value: value.into(),
            weight: DEFAULT_WEIGHT,
        }
    }

    /// A [`Query::Wildcard`] of weight 1.
    pub fn wildcard(field: impl Into<String>, pattern: impl Into<String>) -> Self {
        Self::Wildcard {
            field: field.into(),
            pattern: pattern.into(),
            weight: DEFAULT_WEIGHT,
        }
    }

    /// A [`Query::Match`] of weight 1 on any token.
    pub fn match_text(field: impl Into<String>, text: impl Into<String>) -> Self {
        Self::Match {
            field: field.into(),
            text: text.into(),
            operator: Operator::Or,
            minimum_should_match: None,
            weight: DEFAULT_WEIGHT,
        }
    }

    /// A [`Query::MatchPhrase`] of weight 1 without slop.
    pub fn match_phrase(field: impl Into<String>, text: impl Into<String>) -> Self {
        Self::MatchPhrase {
            field: field.into(),
            text: text.into(),
            slop: 0,
            weight: DEFAULT_WEIGHT,
        }
    }

    /// A [`Query::Nested`] that doesn't score.
    pub fn nested(path: impl Into<String>, query: Query) -> Self {
        Self::Nested {
            path: path.into(),
            query: Box::new(query),
            score_mode: ScoreMode::None,
            weight: DEFAULT_WEIGHT,
            inner_hits: None,
        }
    }

    /// A [`Query::Bool`] of clauses that all have to match.
    pub fn all(must: Vec<Query>) -> Self {
        Self::boolean(must, Vec::new(), Vec::new())
    }

    /// A [`Query::Bool`] of clauses of which one has to match.
    pub fn any(should: Vec<Query>) -> Self {
        Self::boolean(Vec::new(), should, Vec::new())
    }

    /// A [`Query::Bool`] that matches what `query` doesn't.
    #[expect(
        clippy::should_implement_trait,
        reason = "a constructor beside `all` and `any`, not an operator"
    )]
    pub fn not(query: Query) -> Self {
        Self::boolean(Vec::new(), Vec::new(), vec![query])
    }

    fn boolean(must: Vec<Query>, should: Vec<Query>, must_not: Vec<Query>) -> Self {
        Self::Bool {
            must,
            filter: Vec::new(),
            should,
            must_not,
            minimum_should_match: None,
        }
    }
}

impl IndexOptions {
    /// Merges segments of any size as soon as there are `segments` of them.
    #[must_use]
    pub fn merging_eagerly(mut self, segments: usize) -> Self {
        self.merge = ReclaimingMergePolicy {
            segments_per_merge: segments.max(2),
            smallest_tier: u32::MAX,
            max_segments: usize::MAX,
            smallest_reclaimed: 1,
            ..ReclaimingMergePolicy::default()
        };
        self
    }
}

impl Index {
    /// An empty index in memory.
    ///
    /// # Errors
    /// [`Error::Engine`].
    pub fn create_in_ram(schema: Schema, options: IndexOptions) -> Result<Self, Error> {
        let layout = Layout::new(schema);
        let (directory, schema) = (RamDirectory::create(), layout.physical.clone());
        let physical = tantivy::Index::create(directory, schema, IndexSettings::default());
        let physical = physical.map_err(|error| Error::engine("creating an index in memory", error))?;
        Self::over(physical, None, layout, options)
    }

    /// [`Index::verify_until`] the end.
    ///
    /// # Errors
    /// As [`Index::verify_until`].
    pub fn verify(&self) -> Result<(), Error> {
        self.verify_until(&|| false)
    }
}

impl Searcher {
    /// How many documents there are, nested objects not counted.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Corrupt`].
    pub fn count(&self) -> Result<u64, Error> {
        self.shared.damage.check()?;
        self.shared.documents(&self.view.searcher)
    }

    /// The search library's view, by which tests read what the files hold.
    pub fn physical(&self) -> &tantivy::Searcher {
        &self.view.searcher
    }
}

impl Highlighter {
    /// The most bytes of [`MAX_SEARCH_BYTES`](crate::limits::MAX_SEARCH_BYTES) that it held at a time.
    pub fn peak_bytes(&self) -> u64 {
        self.allowance.peak() as u64
    }
}

impl IndexWriter {
    /// Merges all segments into one and waits for it.
    ///
    /// # Errors
    /// [`Error::WriterFailed`].
    pub fn merge_all(&mut self) -> Result<(), Error> {
        check_failed(&self.shared)?;
        for attempt in 1..=MAX_MERGE_ATTEMPTS {
            let segments = self.shared.physical.searchable_segment_ids();
            let segments = segments.map_err(|error| self.fail("listing segments", error))?;
            if segments.len() <= 1 {
                break;
            }
            match self.physical()?.merge(&segments).wait() {
                // A merge under way has taken some of the segments: when it has ended there are fewer.
                Err(TantivyError::InvalidArgument(_)) if attempt < MAX_MERGE_ATTEMPTS => {
                    thread::sleep(MERGE_PAUSE);
                }
                merged => {
                    merged.map_err(|error| self.fail("merging", error))?;
                }
            }
        }
        self.refresh()
    }
}

impl fmt::Display for TimeZone {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.seconds < 0 { '-' } else { '+' };
        let minutes = self.seconds.abs() / 60;
        write!(out, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

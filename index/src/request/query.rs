//! The query tree: what a search asks for, field by field like the API.

mod function_score;

use std::ops::Bound;

pub use function_score::{
    CombineMode, Decay, DecayOrigin, DecayShape, DistanceMode, Function, FunctionScore, FunctionScoreMode,
    Modifier, ScoreFunction,
};

use super::InnerHits;
use crate::geo::GeoPoint;

/// The weight of a clause that has none.
pub const DEFAULT_WEIGHT: f32 = 1.0;

/// A value inside a query.
#[derive(Clone, Debug, PartialEq)]
pub enum QueryValue {
    /// For KEYWORD and TEXT.
    String(String),
    /// For LONG, DOUBLE and DATE (nanoseconds).
    Integer(i64),
    /// For DOUBLE and LONG; compared exactly.
    Double(f64),
    /// For BOOLEAN.
    Boolean(bool),
    /// For no field of an index, today.
    Bytes(Vec<u8>),
    /// For DATE: nanoseconds since the Unix epoch.
    Time(i64),
}

impl QueryValue {
    /// The word for this value's type in messages.
    pub(crate) fn type_word(&self) -> &'static str {
        match self {
            Self::String(_) => "a string",
            Self::Integer(_) => "an integer",
            Self::Double(_) => "a double",
            Self::Boolean(_) => "a boolean",
            Self::Bytes(_) => "bytes",
            Self::Time(_) => "a time",
        }
    }

    /// How many bytes it has; 0 of what always has the same.
    pub(crate) fn length(&self) -> usize {
        match self {
            Self::String(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::Integer(_) | Self::Double(_) | Self::Boolean(_) | Self::Time(_) => 0,
        }
    }
}

/// How the tokens of a `match` combine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operator {
    /// Any token (or as many as `minimum_should_match` says).
    #[default]
    Or,
    /// Every token.
    And,
}

/// How many edits make a word of a document match one of a text: a character more, less, or another, or two neighbours
/// swapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fuzziness {
    /// None for words of up to two characters, one for up to five, two for longer ones.
    Auto,
    /// So many, at most [`crate::limits::MAX_FUZZY_EDITS`].
    Edits(u8),
}

impl Fuzziness {
    /// How many edits `word` allows.
    pub fn edits(self, word: &str) -> u8 {
        match self {
            Self::Edits(edits) => edits,
            Self::Auto => match word.chars().count() {
                0..=2 => 0,
                3..=5 => 1,
                _ => 2,
            },
        }
    }
}

/// What a document scores from the scores of its matching nested objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScoreMode {
    /// Nothing: the clause scores 0.
    #[default]
    None,
    /// Their mean.
    Avg,
    /// The highest.
    Max,
    /// The lowest.
    Min,
    /// Their sum.
    Total,
}

/// A query, or one clause of one.
///
/// Weights multiply a clause's score. `Bool` follows Elasticsearch: without `must` and `filter` at least one of
/// `should` has to match, with them none has to, and `minimum_should_match` overrides either; only `must_not`
/// matches everything else; entirely empty matches everything.
#[expect(
    missing_docs,
    reason = "what the variants say of their fields is all there is to say"
)]
#[derive(Clone, Debug, PartialEq)]
pub enum Query {
    /// Every document, with score 1.
    MatchAll,
    /// The field has exactly this value; on TEXT, any one token is exactly this. Scores the weight, on TEXT times the
    /// token's BM25 score.
    Term {
        field: String,
        value: QueryValue,
        weight: f32,
    },
    /// The field has any of these values. Scores the weight.
    Terms {
        field: String,
        values: Vec<QueryValue>,
        weight: f32,
    },
    /// The field has a value between two bounds. Scores 1.
    Range {
        field: String,
        lower: Bound<QueryValue>,
        upper: Bound<QueryValue>,
    },
    /// A KEYWORD, or a token of a TEXT, begins with this. Scores the weight.
    Prefix {
        field: String,
        value: String,
        weight: f32,
    },
    /// A KEYWORD, or a token of a TEXT, ends with this. Scores the weight.
    Suffix {
        field: String,
        value: String,
        weight: f32,
    },
    /// A KEYWORD, or a token of a TEXT, matches the pattern: `*` any run, `?` any one character, `\` escapes. `*` alone
    /// is [`Query::Exists`]. Scores the weight.
    Wildcard {
        field: String,
        pattern: String,
        weight: f32,
    },
    /// The field has any value (for NESTED: any object). Scores 1.
    Exists { field: String },
    /// A TEXT has the tokens of this text. On a KEYWORD the whole text is the token.
    Match {
        field: String,
        text: String,
        operator: Operator,
        /// With `Or`: how many tokens have to match, at least one.
        minimum_should_match: Option<u32>,
        weight: f32,
    },
    /// Like `Match`, but words that are spelled much like those of the text count too. Nearer ones score more.
    MatchFuzzy {
        field: String,
        text: String,
        operator: Operator,
        /// With `Or`: how many tokens have to match, at least one.
        minimum_should_match: Option<u32>,
        /// How much a token may differ.
        fuzziness: Fuzziness,
        /// How many characters at its beginning have to be the same.
        prefix_length: u32,
        weight: f32,
    },
    /// A TEXT has the tokens of this text one after the other. On fields of min_word and max_word they are looked up
    /// character by character: no text that contains the phrase is missed.
    MatchPhrase {
        field: String,
        text: String,
        /// By how many positions in all the tokens may be apart.
        slop: u32,
        weight: f32,
    },
    /// Like `MatchPhrase`, the last token being a prefix. Scores as if the phrase had been written with each token that
    /// the last one begins, at once. A KEYWORD begins with the text.
    MatchPhrasePrefix {
        field: String,
        text: String,
        weight: f32,
    },
    /// Clauses combined.
    Bool {
        /// All of these have to match, and score.
        must: Vec<Query>,
        /// All of these have to match, and don't score.
        filter: Vec<Query>,
        /// Some of these have to match (see [`Query`]), and score.
        should: Vec<Query>,
        /// None of these may match.
        must_not: Vec<Query>,
        /// How many of `should` have to match.
        minimum_should_match: Option<u32>,
    },
    /// One object of a NESTED field matches the query. Fields are addressed by their full paths.
    Nested {
        path: String,
        /// What one object has to match.
        query: Box<Query>,
        /// What the document scores.
        score_mode: ScoreMode,
        weight: f32,
        /// Whether hits tell which objects matched.
        inner_hits: Option<InnerHits>,
    },
    /// A point of the field is within a distance of a centre, the boundary included. Scores 1.
    GeoDistance {
        field: String,
        center: GeoPoint,
        /// The distance, in metres.
        distance_meters: f64,
    },
    /// A point of the field is inside a box, the boundary included. West of its left side means that the box crosses
    /// the antimeridian. Scores 1.
    GeoBoundingBox {
        field: String,
        top_left: GeoPoint,
        bottom_right: GeoPoint,
    },
    /// A point of the field is inside a polygon, its edges being straight in latitude and longitude. Scores 1.
    GeoPolygon {
        field: String,
        /// The vertices; the last is joined to the first.
        vertices: Vec<GeoPoint>,
    },
    /// What the filter matches, with the weight as the score.
    ConstScore { filter: Box<Query>, weight: f32 },
    /// A query whose score is computed by functions.
    FunctionScore(Box<FunctionScore>),
    /// What one of several queries matches, with the best of their scores.
    DisMax {
        queries: Vec<Query>,
        /// What part of the other queries' scores is added: from 0 to 1.
        tie_breaker: f64,
        weight: f32,
    },
    /// What another query matches, with its score times a weight: for queries that have none of their own.
    Weighted { query: Box<Query>, weight: f32 },
}

impl Query {
    /// What it is called in requests.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::MatchAll => "match_all",
            Self::Term { .. } => "term",
            Self::Terms { .. } => "terms",
            Self::Range { .. } => "range",
            Self::Prefix { .. } => "prefix",
            Self::Suffix { .. } => "suffix",
            Self::Wildcard { .. } => "wildcard",
            Self::Exists { .. } => "exists",
            Self::Match { .. } | Self::MatchFuzzy { .. } => "match",
            Self::MatchPhrase { .. } => "match_phrase",
            Self::MatchPhrasePrefix { .. } => "match_phrase_prefix",
            Self::Bool { .. } => "bool",
            Self::Nested { .. } => "nested",
            Self::GeoDistance { .. } => "geo_distance",
            Self::GeoBoundingBox { .. } => "geo_bounding_box",
            Self::GeoPolygon { .. } => "geo_polygon",
            Self::ConstScore { .. } => "const_score",
            Self::FunctionScore(_) => "function_score",
            Self::DisMax { .. } => "dis_max",
            Self::Weighted { .. } => "weighted",
        }
    }

    /// The field that it looks at, if it looks at one itself.
    pub(crate) fn field(&self) -> Option<&str> {
        match self {
            Self::Term { field, .. }
            | Self::Terms { field, .. }
            | Self::Range { field, .. }
            | Self::Prefix { field, .. }
            | Self::Suffix { field, .. }
            | Self::Wildcard { field, .. }
            | Self::Exists { field }
            | Self::Match { field, .. }
            | Self::MatchFuzzy { field, .. }
            | Self::MatchPhrase { field, .. }
            | Self::MatchPhrasePrefix { field, .. }
            | Self::Nested { path: field, .. }
            | Self::GeoDistance { field, .. }
            | Self::GeoBoundingBox { field, .. }
            | Self::GeoPolygon { field, .. } => Some(field),
            _ => None,
        }
    }

    /// What its scores are multiplied by; 1 where it has no weight.
    pub(crate) fn weight(&self) -> f32 {
        match self {
            Self::Term { weight, .. }
            | Self::Terms { weight, .. }
            | Self::Prefix { weight, .. }
            | Self::Suffix { weight, .. }
            | Self::Wildcard { weight, .. }
            | Self::Match { weight, .. }
            | Self::MatchFuzzy { weight, .. }
            | Self::MatchPhrase { weight, .. }
            | Self::MatchPhrasePrefix { weight, .. }
            | Self::Nested { weight, .. }
            | Self::ConstScore { weight, .. }
            | Self::DisMax { weight, .. }
            | Self::Weighted { weight, .. } => *weight,
            _ => DEFAULT_WEIGHT,
        }
    }

    /// The queries directly inside of this one.
    pub(crate) fn clauses(&self) -> Vec<&Query> {
        match self {
            Self::Bool {
                must,
                filter,
                should,
                must_not,
                ..
            } => must.iter().chain(filter).chain(should).chain(must_not).collect(),
            Self::Nested { query, .. }
            | Self::ConstScore { filter: query, .. }
            | Self::Weighted { query, .. } => vec![query],
            Self::FunctionScore(scored) => {
                let functions = scored.functions.iter();
                let filters = functions.filter_map(|function| function.filter.as_ref());
                filters.chain([&scored.query]).collect()
            }
            Self::DisMax { queries, .. } => queries.iter().collect(),
            _ => Vec::new(),
        }
    }

    /// A [`Query::Range`].
    pub fn range(field: impl Into<String>, lower: Bound<QueryValue>, upper: Bound<QueryValue>) -> Self {
        Self::Range {
            field: field.into(),
            lower,
            upper,
        }
    }

    /// A [`Query::Prefix`] of weight 1.
    pub fn prefix(field: impl Into<String>, value: impl Into<String>) -> Self {
        Self::Prefix {
            field: field.into(),
            value: value.into(),
            weight: DEFAULT_WEIGHT,
        }
    }

    /// A [`Query::Exists`].
    pub fn exists(field: impl Into<String>) -> Self {
        Self::Exists { field: field.into() }
    }
}

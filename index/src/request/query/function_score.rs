//! `function_score`: a query whose scores are computed by functions.

use super::{DEFAULT_WEIGHT, Query, QueryValue};
use crate::geo::GeoPoint;

/// What a query matches, with a score computed by functions of the document.
///
/// The functions of which the filter matches make one value by `score_mode`; that value and the query's score make the
/// document's score by `combine_mode`. Where no function counts, the value is 1; without functions the query's score
/// stays as it is. Formulas are Elasticsearch's ("Function score query" of its reference). Values below 0, and those that
/// are no numbers, count as 0; scores end at the largest single-precision number.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionScore {
    /// What has to match.
    pub query: Query,
    /// The functions.
    pub functions: Vec<ScoreFunction>,
    /// How the functions' values become one.
    pub score_mode: FunctionScoreMode,
    /// How that value and the query's score become the document's score.
    pub combine_mode: CombineMode,
    /// Documents that score less don't match.
    pub min_score: Option<f64>,
    /// Where the functions' value is cut, before it meets the query's score.
    pub max_score: Option<f64>,
}

impl FunctionScore {
    /// A query whose score is multiplied with the product of functions.
    pub fn new(query: Query, functions: Vec<ScoreFunction>) -> Self {
        Self {
            query,
            functions,
            score_mode: FunctionScoreMode::default(),
            combine_mode: CombineMode::default(),
            min_score: None,
            max_score: None,
        }
    }
}

/// One function.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoreFunction {
    /// What is computed.
    pub function: Function,
    /// Multiplies the value; with [`FunctionScoreMode::Avg`] also the function's part in the mean.
    pub weight: f64,
    /// For which documents the function counts; absent for all.
    pub filter: Option<Query>,
}

impl ScoreFunction {
    /// A function of weight 1 for all documents.
    pub fn new(function: Function) -> Self {
        Self {
            function,
            weight: f64::from(DEFAULT_WEIGHT),
            filter: None,
        }
    }
}

/// What a function computes of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Function {
    /// 1, so that only the weight counts.
    One,
    /// A number of the document.
    FieldValueFactor {
        /// A LONG, DOUBLE or DATE (in seconds since the Unix epoch). The first value of an array counts.
        field: String,
        /// Multiplies the number.
        factor: f64,
        /// What is done to the product.
        modifier: Modifier,
        /// The number of documents without one; absent, the function doesn't count for them.
        missing: Option<f64>,
    },
    /// How near the document is to an origin: 1 there, falling with the distance. 1 for documents without a value.
    Decay(Decay),
    /// A number from 0 up to 1 that depends on the seed and the document's key alone.
    Random {
        /// Another seed, another number.
        seed: u64,
    },
}

/// A value that falls with the distance from an origin.
#[derive(Clone, Debug, PartialEq)]
pub struct Decay {
    /// A LONG, DOUBLE, DATE or GEO_POINT.
    pub field: String,
    /// How it falls.
    pub shape: DecayShape,
    /// From where distances count.
    pub origin: DecayOrigin,
    /// The distance behind `offset` at which the value is `decay`: in the field's unit, seconds for DATE, metres for
    /// GEO_POINT.
    pub scale: f64,
    /// Up to this distance the value is 1.
    pub offset: f64,
    /// The value at `offset` + `scale`.
    pub decay: f64,
    /// Which distance counts when the document has several values.
    pub mode: DistanceMode,
}

/// Where a decay begins.
#[derive(Clone, Debug, PartialEq)]
pub enum DecayOrigin {
    /// For LONG, DOUBLE and DATE.
    Value(QueryValue),
    /// For GEO_POINT.
    Point(GeoPoint),
}

/// How a decay falls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DecayShape {
    /// exp(ln(decay) · (distance / scale)²).
    #[default]
    Gauss,
    /// exp(ln(decay) · distance / scale).
    Exp,
    /// 1 − (1 − decay) · distance / scale, down to 0.
    Linear,
}

/// Which of several distances counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DistanceMode {
    /// The shortest.
    #[default]
    Min,
    /// The longest.
    Max,
    /// Their mean.
    Avg,
    /// Their sum.
    Sum,
}

/// What is done to a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Modifier {
    /// Nothing.
    #[default]
    None,
    /// log10(x).
    Log,
    /// log10(x + 1).
    Log1p,
    /// log10(x + 2).
    Log2p,
    /// ln(x).
    Ln,
    /// ln(x + 1).
    Ln1p,
    /// ln(x + 2).
    Ln2p,
    /// x².
    Square,
    /// √x.
    Sqrt,
    /// 1 / x.
    Reciprocal,
}

/// How the values of several functions become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FunctionScoreMode {
    /// Their product.
    #[default]
    Multiply,
    /// Their sum.
    Sum,
    /// Their mean, each counted by its weight.
    Avg,
    /// The highest.
    Max,
    /// The lowest.
    Min,
    /// The first that counts.
    First,
}

/// How the functions' value and the query's score become the document's score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CombineMode {
    /// Their product.
    #[default]
    Multiply,
    /// Their sum.
    Sum,
    /// Their mean.
    Avg,
    /// The higher one.
    Max,
    /// The lower one.
    Min,
    /// The functions' value alone.
    Replace,
}

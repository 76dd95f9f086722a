//! Scores by functions.

use souk_engine::index::{
    CombineMode, Decay, DecayOrigin, DecayShape, DistanceMode, Function, FunctionScore, FunctionScoreMode,
    Modifier, Query, QueryValue, ScoreFunction,
};
use souk_tablestore::messages::{
    self as pb, DateTimeUnit, DateTimeValue, DecayFuncDateParam, DecayFuncGeoParam, DecayFuncNumericParam,
    DecayFuncParamType, DecayMathFunction, FunctionCombineMode, FunctionModifier, MultiValueMode,
};
use souk_tablestore::{Reason, ServiceError, Strict, Value, decode};

use super::fields::{Fields, enumeration, name, point};
use crate::error::{invalid, missing, unsupported};

/// The value of a decay at its scale, unless a request gives another.
const DEFAULT_DECAY: f64 = 0.5;
/// Of what numbers by chance are made: the same ones in each search, so that its pages fit each other.
const SEED: u64 = 0;

impl Fields<'_> {
    /// A query whose score is multiplied with a number of the row.
    pub(super) fn function_score(
        &self,
        query: Query,
        body: &pb::FunctionScoreQuery,
    ) -> Result<Query, ServiceError> {
        let factor = body.field_value_factor.as_ref();
        let factor = factor.ok_or_else(|| missing("The field value factor of a function score query"))?;
        let function = Function::FieldValueFactor {
            field: name(factor.field_name.as_deref())?,
            factor: 1.0,
            modifier: Modifier::None,
            missing: None,
        };
        let scored = FunctionScore::new(query, vec![ScoreFunction::new(function)]);
        Ok(Query::FunctionScore(Box::new(scored)))
    }

    /// A query whose score is made by several functions, with their filters.
    pub(super) fn functions_score(
        &self,
        query: Query,
        filters: Vec<Option<Query>>,
        body: &pb::FunctionsScoreQuery,
    ) -> Result<Query, ServiceError> {
        let functions = body.functions.iter().zip(filters);
        let functions = functions.map(|(function, filter)| self.function(function, filter));
        let score_mode = enumeration(body.score_mode, pb::FunctionScoreMode::Multiply, "score mode")?;
        let combine_mode = enumeration(body.combine_mode, FunctionCombineMode::Multiply, "combine mode")?;
        let scored = FunctionScore {
            query,
            functions: functions.collect::<Result<_, _>>()?,
            score_mode: match score_mode {
                pb::FunctionScoreMode::Avg => FunctionScoreMode::Avg,
                pb::FunctionScoreMode::Max => FunctionScoreMode::Max,
                pb::FunctionScoreMode::Sum => FunctionScoreMode::Sum,
                pb::FunctionScoreMode::Min => FunctionScoreMode::Min,
                pb::FunctionScoreMode::Multiply => FunctionScoreMode::Multiply,
                pb::FunctionScoreMode::First => FunctionScoreMode::First,
            },
            combine_mode: match combine_mode {
                FunctionCombineMode::Multiply => CombineMode::Multiply,
                FunctionCombineMode::Avg => CombineMode::Avg,
                FunctionCombineMode::Max => CombineMode::Max,
                FunctionCombineMode::Sum => CombineMode::Sum,
                FunctionCombineMode::Min => CombineMode::Min,
                FunctionCombineMode::Replace => CombineMode::Replace,
            },
            min_score: body.min_score.map(f64::from),
            max_score: body.max_score.map(f64::from),
        };
        Ok(Query::FunctionScore(Box::new(scored)))
    }

    fn function(&self, body: &pb::Function, filter: Option<Query>) -> Result<ScoreFunction, ServiceError> {
        let function = match (&body.field_value_factor, &body.decay, &body.random) {
            (Some(factor), None, None) => Function::FieldValueFactor {
                field: name(factor.field_name.as_deref())?,
                factor: factor.factor.map_or(1.0, f64::from),
                modifier: modifier(enumeration(factor.modifier, FunctionModifier::None, "modifier")?),
                missing: factor.missing,
            },
            (None, Some(decay), None) => Function::Decay(self.decay(decay)?),
            (None, None, Some(_)) => Function::Random { seed: SEED },
            (None, None, None) => Function::One,
            _ => {
                return Err(invalid(
                    "A function of a functions score query is of several kinds.",
                ));
            }
        };
        Ok(ScoreFunction {
            function,
            weight: body.weight.map_or(1.0, f64::from),
            filter,
        })
    }

    fn decay(&self, body: &pb::DecayFunction) -> Result<Decay, ServiceError> {
        let field = name(body.field_name.as_deref())?;
        let shape = enumeration(body.math_function, DecayMathFunction::Gauss, "decay function")?;
        let mode = enumeration(body.multi_value_mode, MultiValueMode::Min, "multi value mode")?;
        let kind = body
            .param_type
            .ok_or_else(|| missing("The type of the parameter of a decay function"))?;
        let (origin, scale, offset) =
            match enumeration(Some(kind), DecayFuncParamType::Date, "decay parameter")? {
                DecayFuncParamType::Date => {
                    let param: DecayFuncDateParam = parameter(body)?;
                    let origin = match (param.origin_long, &param.origin_string) {
                        (Some(number), None) => Value::Integer(number),
                        (None, Some(text)) => Value::from(text.as_str()),
                        _ => return Err(invalid("A decay function of times needs one origin.")),
                    };
                    let origin = QueryValue::Time(self.time(&field, &origin)?);
                    let scale = param.scale.as_ref().ok_or_else(no_scale)?;
                    let offset = param.offset.as_ref().map_or(Ok(0), nanoseconds)?;
                    // Of times the index has seconds.
                    let seconds = |nanos: i64| nanos as f64 / 1e9;
                    (
                        DecayOrigin::Value(origin),
                        seconds(nanoseconds(scale)?),
                        seconds(offset),
                    )
                }
                DecayFuncParamType::Numeric => {
                    let param: DecayFuncNumericParam = parameter(body)?;
                    let origin = param
                        .origin
                        .ok_or_else(|| missing("The origin of a decay function"))?;
                    let origin = DecayOrigin::Value(QueryValue::Double(origin));
                    (origin, param.scale.ok_or_else(no_scale)?, param.offset())
                }
                DecayFuncParamType::Geo => {
                    let param: DecayFuncGeoParam = parameter(body)?;
                    let origin = DecayOrigin::Point(point(param.origin())?);
                    (origin, param.scale.ok_or_else(no_scale)?, param.offset())
                }
            };
        Ok(Decay {
            field,
            shape: match shape {
                DecayMathFunction::Gauss => DecayShape::Gauss,
                DecayMathFunction::Exp => DecayShape::Exp,
                DecayMathFunction::Linear => DecayShape::Linear,
            },
            origin,
            scale,
            offset,
            decay: body.decay.unwrap_or(DEFAULT_DECAY),
            mode: match mode {
                MultiValueMode::Max => DistanceMode::Max,
                MultiValueMode::Min => DistanceMode::Min,
                MultiValueMode::Sum => DistanceMode::Sum,
                MultiValueMode::Avg => DistanceMode::Avg,
            },
        })
    }
}

fn no_scale() -> ServiceError {
    missing("The scale of a decay function")
}

fn parameter<M: Strict>(body: &pb::DecayFunction) -> Result<M, ServiceError> {
    let malformed = |_| Reason::MalformedSearch {
        part: "decay parameter".into(),
    };
    Ok(decode(body.param.clone().unwrap_or_default()).map_err(malformed)?)
}

fn modifier(modifier: FunctionModifier) -> Modifier {
    match modifier {
        FunctionModifier::None => Modifier::None,
        FunctionModifier::Log => Modifier::Log,
        FunctionModifier::Log1p => Modifier::Log1p,
        FunctionModifier::Log2p => Modifier::Log2p,
        FunctionModifier::Ln => Modifier::Ln,
        FunctionModifier::Ln1p => Modifier::Ln1p,
        FunctionModifier::Ln2p => Modifier::Ln2p,
        FunctionModifier::Square => Modifier::Square,
        FunctionModifier::Sqrt => Modifier::Sqrt,
        FunctionModifier::Reciprocal => Modifier::Reciprocal,
    }
}

/// A length of time, in nanoseconds.
///
/// # Errors
/// It is of a unit whose lengths differ.
pub(super) fn nanoseconds(length: &DateTimeValue) -> Result<i64, ServiceError> {
    const SECOND: i64 = 1_000_000_000;
    let unit = length
        .unit
        .ok_or_else(|| missing("The unit of a length of time"))?;
    let nanos = match enumeration(Some(unit), DateTimeUnit::Second, "unit of time")? {
        DateTimeUnit::Week => 7 * 86_400 * SECOND,
        DateTimeUnit::Day => 86_400 * SECOND,
        DateTimeUnit::Hour => 3_600 * SECOND,
        DateTimeUnit::Minute => 60 * SECOND,
        DateTimeUnit::Second => SECOND,
        DateTimeUnit::Millisecond => SECOND / 1_000,
        DateTimeUnit::Year | DateTimeUnit::QuarterYear | DateTimeUnit::Month => {
            return Err(unsupported(
                "lengths of time in years, quarters and months, which differ",
            ));
        }
    };
    let length = i64::from(length.value()).checked_mul(nanos);
    length.ok_or_else(|| invalid("A length of time is too long."))
}

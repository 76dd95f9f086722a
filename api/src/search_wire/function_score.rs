//! `function_score` and `dis_max`.

use souk_chassis::status::FieldPath;
use souk_index::limits::MAX_SCORE_FUNCTIONS;
use souk_index::query::DEFAULT_WEIGHT;
use souk_index::{
    CombineMode, Decay, DecayOrigin, DecayShape, DistanceMode, Function, FunctionScore, FunctionScoreMode,
    Modifier, Query, ScoreFunction,
};
use souk_proto::search::v1::{self as pb, decay_function, score_function};

use super::reader::Reader;
use crate::wire::{point, query_value};

/// The value of a decay at its scale, unless another is given.
const DEFAULT_DECAY: f64 = 0.5;

impl Reader<'_> {
    pub(super) fn dis_max(&mut self, best: &pb::DisMaxQuery, at: &FieldPath) -> Option<Query> {
        let queries = self.clauses(&best.queries, &at.field("queries"));
        let weight = self.weight(best.weight, at);
        if best.queries.is_empty() {
            let message = "is empty, at least one query is needed";
            self.violations
                .push(at.field("queries"), "FIELD_REQUIRED", message);
            return None;
        }
        Some(Query::DisMax {
            queries: queries?,
            tie_breaker: best.tie_breaker,
            weight: weight?,
        })
    }

    pub(super) fn function_score(
        &mut self,
        scored: &pb::FunctionScoreQuery,
        at: &FieldPath,
    ) -> Option<Query> {
        let query = self.below(scored.query.as_deref(), at.field("query"));
        let path = at.field("functions");
        if scored.functions.len() > MAX_SCORE_FUNCTIONS {
            self.limit(
                path,
                "MAX_SCORE_FUNCTIONS",
                MAX_SCORE_FUNCTIONS,
                scored.functions.len(),
            );
            return None;
        }
        let functions = scored.functions.iter().enumerate();
        let functions: Vec<_> = functions
            .map(|(place, function)| self.score_function(function, &path.index(place)))
            .collect();
        let score_mode = self.enumeration(scored.score_mode, &at.field("score_mode"));
        let combine_mode = self.enumeration(scored.combine_mode, &at.field("combine_mode"));
        Some(Query::FunctionScore(Box::new(FunctionScore {
            query: query?,
            functions: functions.into_iter().collect::<Option<_>>()?,
            score_mode: score_mode.map(score_mode_of)?,
            combine_mode: combine_mode.map(combine_mode_of)?,
            min_score: scored.min_score,
            max_score: scored.max_score,
        })))
    }

    fn score_function(&mut self, function: &pb::ScoreFunction, at: &FieldPath) -> Option<ScoreFunction> {
        use score_function::Function as Kind;

        let filter = match &function.filter {
            Some(filter) => self.query(filter, &at.field("filter")).map(Some),
            None => Some(None),
        };
        let computed = match &function.function {
            None => Some(Function::One),
            Some(Kind::FieldValueFactor(factor)) => {
                self.field_value_factor(factor, &at.field("field_value_factor"))
            }
            Some(Kind::Decay(decay)) => self.decay(decay, &at.field("decay")).map(Function::Decay),
            Some(Kind::Random(random)) => Some(Function::Random {
                seed: random.seed.cast_unsigned(),
            }),
        };
        Some(ScoreFunction {
            function: computed?,
            weight: function.weight.unwrap_or(f64::from(DEFAULT_WEIGHT)),
            filter: filter?,
        })
    }

    fn field_value_factor(&mut self, factor: &pb::FieldValueFactor, at: &FieldPath) -> Option<Function> {
        let field = self.name(&factor.field, at, "field");
        let modifier = self.enumeration(factor.modifier, &at.field("modifier"));
        Some(Function::FieldValueFactor {
            field: field?,
            factor: factor.factor.unwrap_or(1.0),
            modifier: modifier.map(modifier_of)?,
            missing: factor.missing,
        })
    }

    fn decay(&mut self, decay: &pb::DecayFunction, at: &FieldPath) -> Option<Decay> {
        use decay_function::Origin;

        let field = self.name(&decay.field, at, "field");
        let shape = self
            .enumeration(decay.shape, &at.field("shape"))
            .map(|shape| match shape {
                pb::DecayShape::Unspecified | pb::DecayShape::Gauss => DecayShape::Gauss,
                pb::DecayShape::Exp => DecayShape::Exp,
                pb::DecayShape::Linear => DecayShape::Linear,
            });
        let mode = self
            .enumeration(decay.mode, &at.field("mode"))
            .map(|mode| match mode {
                pb::SortMode::Unspecified | pb::SortMode::Min => DistanceMode::Min,
                pb::SortMode::Max => DistanceMode::Max,
                pb::SortMode::Avg => DistanceMode::Avg,
                pb::SortMode::Sum => DistanceMode::Sum,
            });
        let origin = match &decay.origin {
            Some(Origin::Value(value)) => {
                query_value(Some(value), at.field("value"), &mut self.violations).map(DecayOrigin::Value)
            }
            Some(Origin::Point(origin)) => {
                point(origin, at.field("point"), &mut self.violations).map(DecayOrigin::Point)
            }
            None => {
                let message = "is required: the value, or the point, at which the function is 1";
                self.violations.push(at.field("value"), "FIELD_REQUIRED", message);
                None
            }
        };
        Some(Decay {
            field: field?,
            shape: shape?,
            origin: origin?,
            scale: decay.scale,
            offset: decay.offset,
            decay: decay.decay.unwrap_or(DEFAULT_DECAY),
            mode: mode?,
        })
    }
}

fn score_mode_of(mode: pb::FunctionScoreMode) -> FunctionScoreMode {
    match mode {
        pb::FunctionScoreMode::Unspecified | pb::FunctionScoreMode::Multiply => FunctionScoreMode::Multiply,
        pb::FunctionScoreMode::Sum => FunctionScoreMode::Sum,
        pb::FunctionScoreMode::Avg => FunctionScoreMode::Avg,
        pb::FunctionScoreMode::Max => FunctionScoreMode::Max,
        pb::FunctionScoreMode::Min => FunctionScoreMode::Min,
        pb::FunctionScoreMode::First => FunctionScoreMode::First,
    }
}

fn combine_mode_of(mode: pb::CombineMode) -> CombineMode {
    match mode {
        pb::CombineMode::Unspecified | pb::CombineMode::Multiply => CombineMode::Multiply,
        pb::CombineMode::Sum => CombineMode::Sum,
        pb::CombineMode::Avg => CombineMode::Avg,
        pb::CombineMode::Max => CombineMode::Max,
        pb::CombineMode::Min => CombineMode::Min,
        pb::CombineMode::Replace => CombineMode::Replace,
    }
}

fn modifier_of(modifier: pb::Modifier) -> Modifier {
    match modifier {
        pb::Modifier::Unspecified | pb::Modifier::None => Modifier::None,
        pb::Modifier::Log => Modifier::Log,
        pb::Modifier::Log1p => Modifier::Log1p,
        pb::Modifier::Log2p => Modifier::Log2p,
        pb::Modifier::Ln => Modifier::Ln,
        pb::Modifier::Ln1p => Modifier::Ln1p,
        pb::Modifier::Ln2p => Modifier::Ln2p,
        pb::Modifier::Square => Modifier::Square,
        pb::Modifier::Sqrt => Modifier::Sqrt,
        pb::Modifier::Reciprocal => Modifier::Reciprocal,
    }
}

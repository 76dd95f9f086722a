//! Reads `function_score` and `dis_max` queries. A part that is `None` was noted as a violation, or breaks a rule of the
//! contract, which is noted already; every part is read first, so that all violations come at once.

use souk_chassis::status::FieldPath;
use souk_index::limits::MAX_SCORE_FUNCTIONS;
use souk_index::query::DEFAULT_WEIGHT;
use souk_index::{
    CombineMode, Decay, DecayOrigin, DecayShape, DistanceMode, Function, FunctionScore, FunctionScoreMode,
    Modifier, Query, ScoreFunction,
};
use souk_proto::search::v1::{self as pb, decay_function, score_function};

use super::reader::{Reader, enumeration, name};
use crate::wire::{point, query_value};

/// The value of a decay function at its scale, unless the request gives another.
const DEFAULT_DECAY: f64 = 0.5;

impl Reader<'_> {
    pub(super) fn dis_max(&mut self, best: &pb::DisMaxQuery, at: &FieldPath) -> Option<Query> {
        let queries = self.clauses(&best.queries, &at.field("queries"));
        let weight = Self::weight(best.weight);
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
            .map(|(index, function)| self.score_function(function, &path.index(index)))
            .collect();
        let score_mode = enumeration(scored.score_mode);
        let combine_mode = enumeration(scored.combine_mode);
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
        let value = match &function.function {
            None => Some(Function::One),
            Some(Kind::FieldValueFactor(factor)) => Self::field_value_factor(factor),
            Some(Kind::Decay(decay)) => Self::decay(decay).map(Function::Decay),
            Some(Kind::Random(random)) => Some(Function::Random {
                seed: random.seed.cast_unsigned(),
            }),
        };
        Some(ScoreFunction {
            function: value?,
            weight: function.weight.unwrap_or(f64::from(DEFAULT_WEIGHT)),
            filter: filter?,
        })
    }

    fn field_value_factor(factor: &pb::FieldValueFactor) -> Option<Function> {
        let field = name(&factor.field);
        let modifier = enumeration(factor.modifier);
        Some(Function::FieldValueFactor {
            field: field?,
            factor: factor.factor.unwrap_or(1.0),
            modifier: modifier.map(modifier_of)?,
            missing: factor.missing,
        })
    }

    fn decay(decay: &pb::DecayFunction) -> Option<Decay> {
        use decay_function::Origin;

        let field = name(&decay.field);
        let shape = enumeration(decay.shape).map(|shape| match shape {
            pb::DecayShape::Unspecified | pb::DecayShape::Gauss => DecayShape::Gauss,
            pb::DecayShape::Exp => DecayShape::Exp,
            pb::DecayShape::Linear => DecayShape::Linear,
        });
        let mode = enumeration(decay.mode).map(|mode| match mode {
            pb::SortMode::Unspecified | pb::SortMode::Min => DistanceMode::Min,
            pb::SortMode::Max => DistanceMode::Max,
            pb::SortMode::Avg => DistanceMode::Avg,
            pb::SortMode::Sum => DistanceMode::Sum,
        });
        let origin = match &decay.origin {
            Some(Origin::Value(value)) => query_value(value).map(DecayOrigin::Value),
            Some(Origin::Point(origin)) => point(origin).map(DecayOrigin::Point),
            None => None,
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

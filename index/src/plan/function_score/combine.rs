//! One score of many values, as Elasticsearch's `FunctionScoreQuery` computes it, in double precision.

use crate::request::{CombineMode, FunctionScoreMode};

/// How values and a score become one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Combine {
    pub(super) score_mode: FunctionScoreMode,
    pub(super) combine_mode: CombineMode,
    /// Where the functions' value is cut.
    pub(super) max_score: f64,
}

impl Combine {
    /// The score of a document that the query gives `score`, of the functions' values and weights in their order.
    pub(super) fn score(&self, score: f64, values: impl Iterator<Item = (f64, f64)>) -> f64 {
        let value = self.value(values).min(self.max_score);
        match self.combine_mode {
            // An infinite value and a score of 0.
            CombineMode::Multiply if score == 0.0 || value == 0.0 => 0.0,
            CombineMode::Multiply => score * value,
            CombineMode::Sum => score + value,
            CombineMode::Avg => f64::midpoint(score, value),
            CombineMode::Max => score.max(value),
            CombineMode::Min => score.min(value),
            CombineMode::Replace => value,
        }
    }

    /// The functions' value; 1 where none counts.
    fn value(&self, mut values: impl Iterator<Item = (f64, f64)>) -> f64 {
        let Some((first, weight)) = values.next() else {
            return 1.0;
        };
        let fold = |values: &mut dyn Iterator<Item = (f64, f64)>, step: fn(f64, f64) -> f64| {
            values.fold(first, |so_far, (value, _)| step(so_far, value))
        };
        match self.score_mode {
            FunctionScoreMode::First => first,
            // An infinite value times 0 is no number.
            FunctionScoreMode::Multiply => fold(&mut values, |one, other| one * other).max(0.0),
            FunctionScoreMode::Sum => fold(&mut values, |one, other| one + other),
            FunctionScoreMode::Max => fold(&mut values, f64::max),
            FunctionScoreMode::Min => fold(&mut values, f64::min),
            FunctionScoreMode::Avg => {
                let (sum, weights) = values.fold((first, weight), |(sum, weights), (value, weight)| {
                    (sum + value, weights + weight)
                });
                if weights > 0.0 { sum / weights } else { 1.0 }
            }
        }
    }
}

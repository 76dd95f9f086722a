//! `function_score`, by the formulas of Elasticsearch's reference.

use souk_index::{
    CombineMode, Decay, DecayOrigin, DecayShape, DistanceMode, FieldValue, Function, FunctionScore,
    FunctionScoreMode, Modifier, Object,
};

use crate::exact;
use crate::geo;
use crate::interval::{Interval, number};
use crate::matching::{Oracle, points, values};

/// Roundings of a few steps in double precision, as a part of the result.
const DOUBLE_ROUNDING: f64 = 1e-9;

/// The score of an object; `None` if it doesn't match or scores too little.
pub(crate) fn score(
    oracle: &Oracle<'_>,
    scored: &FunctionScore,
    object: &Object,
    scope: &str,
) -> Option<Interval> {
    let own = oracle.score(&scored.query, object, scope)?;
    let counting = scored.functions.iter().filter(|function| {
        let filter = function.filter.as_ref();
        filter.is_none_or(|filter| oracle.matches(filter, object, scope))
    });
    let of_functions: Vec<(Interval, f64)> = counting
        .filter_map(|function| {
            let value = value(oracle, &function.function, object)?;
            Some((value.map(|value| value * function.weight), function.weight))
        })
        .collect();
    let score = if scored.functions.is_empty() {
        own
    } else {
        let value = one(scored.score_mode, &of_functions);
        let most = scored.max_score.unwrap_or(f64::INFINITY);
        combine(scored.combine_mode, own, value.map(|value| value.min(most)))
    };
    if let Some(least) = scored.min_score {
        match score.reaches(least) {
            Some(true) => {}
            Some(false) => return None,
            None => oracle.doubt(),
        }
    }
    Some(score.map(|score| score.min(f64::from(f32::MAX))).rounded())
}

/// The functions' value; 1 where none counts.
fn one(mode: FunctionScoreMode, values: &[(Interval, f64)]) -> Interval {
    let fold = |of: fn(f64, f64) -> f64| {
        let values = values.iter().map(|(value, _)| *value);
        values.reduce(|a, b| a.with(b, of))
    };
    let value = match mode {
        FunctionScoreMode::Multiply => fold(|a, b| a * b),
        FunctionScoreMode::Sum => fold(|a, b| a + b),
        FunctionScoreMode::Max => fold(f64::max),
        FunctionScoreMode::Min => fold(f64::min),
        FunctionScoreMode::First => values.first().map(|(value, _)| *value),
        FunctionScoreMode::Avg => {
            let weights: f64 = values.iter().map(|(_, weight)| weight).sum();
            let sum = fold(|a, b| a + b).filter(|_| weights > 0.0);
            sum.map(|sum| sum.map(|sum| sum / weights))
        }
    };
    value.map_or(Interval::exact(1.0), |value| {
        value.wider(if value.low == value.high {
            0.0
        } else {
            DOUBLE_ROUNDING
        })
    })
}

fn combine(mode: CombineMode, score: Interval, value: Interval) -> Interval {
    score.with(value, |score, value| match mode {
        CombineMode::Multiply => number(score * value),
        CombineMode::Sum => score + value,
        CombineMode::Avg => score / 2.0 + value / 2.0,
        CombineMode::Max => score.max(value),
        CombineMode::Min => score.min(value),
        CombineMode::Replace => value,
    })
}

/// What a function computes of an object; `None` where it doesn't count.
fn value(oracle: &Oracle<'_>, function: &Function, object: &Object) -> Option<Interval> {
    match function {
        Function::One => Some(Interval::exact(1.0)),
        Function::FieldValueFactor {
            field,
            factor,
            modifier,
            missing,
        } => {
            let own = values(object, oracle.universe.leaf(field)).first().map(seconds);
            // -0.0 and 0.0 are one number, which has one reciprocal.
            let value = modified(*modifier, factor * own.or(*missing)? + 0.0);
            // Below 0, and what is no number, counts as 0.
            Some(Interval::exact(number(value).max(0.0)).wider(DOUBLE_ROUNDING))
        }
        Function::Decay(decay) => Some(decayed(oracle, decay, object)),
        Function::Random { .. } => Some(Interval { low: 0.0, high: 1.0 }),
    }
}

/// A number; a time in seconds.
fn seconds(value: &FieldValue) -> f64 {
    match value {
        FieldValue::Long(number) => *number as f64,
        FieldValue::Double(number) => *number,
        FieldValue::Date(nanos) => *nanos as f64 / 1e9,
        other => panic!("no number: {other:?}"),
    }
}

fn modified(modifier: Modifier, x: f64) -> f64 {
    match modifier {
        Modifier::None => x,
        Modifier::Log => x.log(10.0),
        Modifier::Log1p => (1.0 + x).log(10.0),
        Modifier::Log2p => (2.0 + x).log(10.0),
        Modifier::Ln => x.ln(),
        Modifier::Ln1p => x.ln_1p(),
        Modifier::Ln2p => (2.0 + x).ln(),
        Modifier::Square => x.powi(2),
        Modifier::Sqrt => x.sqrt(),
        Modifier::Reciprocal => 1.0 / x,
    }
}

/// The distances of an object's values from the origin: at least and at most, by roundings.
fn distances(oracle: &Oracle<'_>, decay: &Decay, object: &Object) -> Vec<(f64, f64)> {
    let leaf = oracle.universe.leaf(&decay.field);
    match &decay.origin {
        DecayOrigin::Point(origin) => {
            let meters = points(object, leaf)
                .into_iter()
                .map(|point| geo::meters(point, *origin));
            meters
                .map(|meters| (meters - geo::slack(meters), meters + geo::slack(meters)))
                .collect()
        }
        DecayOrigin::Value(origin) => {
            let origin = exact::of_query(origin);
            let apart = values(object, leaf).iter().map(|value| {
                let own = exact::of_field(value);
                let distance = exact::nearest(&(&own - &origin), 1).abs();
                // Large numbers are subtracted as doubles.
                let slack = (exact::nearest(&own, 1).abs() + exact::nearest(&origin, 1).abs()) * 1e-15;
                let unit = if matches!(value, FieldValue::Date(_)) {
                    1e9
                } else {
                    1.0
                };
                ((distance - slack) / unit, (distance + slack) / unit)
            });
            apart.collect()
        }
    }
}

fn decayed(oracle: &Oracle<'_>, decay: &Decay, object: &Object) -> Interval {
    let distances = distances(oracle, decay, object);
    let (near, far): (Vec<f64>, Vec<f64>) = distances
        .into_iter()
        .map(|(near, far)| ((near - decay.offset).max(0.0), (far - decay.offset).max(0.0)))
        .unzip();
    if near.is_empty() {
        return Interval::exact(1.0);
    }
    let one = |of: &[f64]| match decay.mode {
        DistanceMode::Min => of.iter().copied().fold(f64::INFINITY, f64::min),
        DistanceMode::Max => of.iter().copied().fold(0.0, f64::max),
        DistanceMode::Sum => of.iter().sum(),
        DistanceMode::Avg => of.iter().sum::<f64>() / of.len() as f64,
    };
    let at = |distance: f64| match decay.shape {
        DecayShape::Gauss => {
            let variance = -decay.scale.powi(2) / (2.0 * decay.decay.ln());
            (-distance.powi(2) / (2.0 * variance)).exp()
        }
        DecayShape::Exp => (decay.decay.ln() / decay.scale * distance).exp(),
        DecayShape::Linear => {
            let end = decay.scale / (1.0 - decay.decay);
            ((end - distance) / end).max(0.0)
        }
    };
    let (low, high) = (at(one(&far)), at(one(&near)));
    // Differences of numbers of about 1 lose what is below their last digit.
    let low = if low == 1.0 {
        low
    } else {
        (low * (1.0 - DOUBLE_ROUNDING) - 1e-12).max(0.0)
    };
    Interval {
        low,
        high: (high * (1.0 + DOUBLE_ROUNDING) + 1e-12).min(1.0),
    }
}

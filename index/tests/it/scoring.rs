//! The reference of scores: by brute force over the documents as they were given, in double precision.

use std::collections::HashMap;

use souk_index::{
    CombineMode, Decay, DecayOrigin, DecayShape, DistanceMode, FieldValue, Function, FunctionScore,
    FunctionScoreMode, Modifier, Object, Query, QueryValue, ScoreFunction, ScoreMode,
};

use super::reference::{matches, objects, points, single_words, text_of, values};
use super::scope_at;

const K1: f64 = 1.2;
const B: f64 = 0.75;

/// The texts of one field.
#[derive(Default)]
struct Texts {
    documents: f64,
    tokens: f64,
    having: HashMap<String, f64>,
}

impl Texts {
    fn add(&mut self, object: &Object, scope: &str, field: &str) {
        let words = words(object, scope, field);
        if words.is_empty() {
            return;
        }
        self.documents += 1.0;
        self.tokens += words.len() as f64;
        let mut different = words;
        different.sort();
        different.dedup();
        for word in different {
            *self.having.entry(word).or_default() += 1.0;
        }
    }

    fn idf(&self, word: &str) -> f64 {
        let having = self.having.get(word).copied().unwrap_or_default();
        (1.0 + (self.documents - having + 0.5) / (having + 0.5)).ln()
    }

    fn share(&self, frequency: f64, length: usize) -> f64 {
        let norm = K1 * (1.0 - B + B * length as f64 / (self.tokens / self.documents));
        frequency / (frequency + norm)
    }
}

fn words(object: &Object, scope: &str, field: &str) -> Vec<String> {
    values(object, scope_at(scope), field)
        .iter()
        .map(text_of)
        .flat_map(single_words)
        .collect()
}

/// What scores depend on besides the document.
pub(crate) struct Corpus(HashMap<&'static str, Texts>);

impl Corpus {
    pub(crate) fn of<'a>(documents: impl Iterator<Item = &'a Object>) -> Self {
        let (mut outer, mut inner) = (Texts::default(), Texts::default());
        for document in documents {
            outer.add(document, "", "text");
            for item in objects(document, scope_at(""), "items") {
                inner.add(item, "items", "items.title");
            }
        }
        Self([("text", outer), ("items.title", inner)].into())
    }

    fn word(&self, object: &Object, scope: &str, field: &str, word: &str) -> f64 {
        let all = words(object, scope, field);
        let frequency = all.iter().filter(|there| *there == word).count();
        let texts = &self.0[field];
        texts.idf(word) * texts.share(frequency as f64, all.len())
    }

    fn phrase(&self, object: &Object, scope: &str, field: &str, phrase: &[String]) -> f64 {
        let texts = &self.0[field];
        let each = values(object, scope_at(scope), field)
            .iter()
            .map(text_of)
            .map(single_words);
        let frequency: usize = each
            .map(|words| words.windows(phrase.len()).filter(|run| *run == phrase).count())
            .sum();
        let idf: f64 = phrase.iter().map(|word| texts.idf(word)).sum();
        idf * texts.share(frequency as f64, words(object, scope, field).len())
    }

    /// The score of an object of a scope, if it matches.
    pub(crate) fn scored(&self, query: &Query, object: &Object, scope: &str) -> Option<f64> {
        match query {
            Query::FunctionScore(scored) => {
                let score = self.functions(scored, object, scope)?;
                scored
                    .min_score
                    .is_none_or(|least| score >= least)
                    .then_some(score)
            }
            query => matches(query, object, scope_at(scope)).then(|| self.score(query, object, scope)),
        }
    }

    fn all<'a>(&self, queries: impl Iterator<Item = &'a Query>, object: &Object, scope: &str) -> Vec<f64> {
        queries
            .filter_map(|query| self.scored(query, object, scope))
            .collect()
    }

    /// The score of an object that matches.
    fn score(&self, query: &Query, object: &Object, scope: &str) -> f64 {
        match query {
            Query::MatchAll
            | Query::Range { .. }
            | Query::Exists { .. }
            | Query::GeoDistance { .. }
            | Query::GeoBoundingBox { .. }
            | Query::GeoPolygon { .. } => 1.0,
            Query::Term {
                field,
                value: QueryValue::String(word),
                weight,
            } if scope_at(scope).is_text(field) => f64::from(*weight) * self.word(object, scope, field, word),
            Query::Term { weight, .. }
            | Query::Terms { weight, .. }
            | Query::Prefix { weight, .. }
            | Query::Suffix { weight, .. }
            | Query::Wildcard { weight, .. }
            | Query::ConstScore { weight, .. } => f64::from(*weight),
            Query::Match {
                field, text, weight, ..
            } => {
                let there = words(object, scope, field);
                let words = single_words(text).into_iter().filter(|word| there.contains(word));
                let sum: f64 = words.map(|word| self.word(object, scope, field, &word)).sum();
                f64::from(*weight) * sum
            }
            Query::MatchPhrase {
                field, text, weight, ..
            } => f64::from(*weight) * self.phrase(object, scope, field, &single_words(text)),
            Query::Bool {
                must,
                filter,
                should,
                must_not,
                ..
            } => {
                if must.is_empty() && filter.is_empty() && should.is_empty() && must_not.is_empty() {
                    return 1.0;
                }
                self.all(must.iter().chain(should), object, scope).iter().sum()
            }
            Query::Nested {
                path,
                query,
                score_mode,
                weight,
                ..
            } => {
                let inside = objects(object, scope_at(scope), path);
                let scores: Vec<f64> = inside
                    .iter()
                    .filter_map(|object| self.scored(query, object, path))
                    .collect();
                f64::from(*weight)
                    * match score_mode {
                        ScoreMode::None => 0.0,
                        ScoreMode::Avg => scores.iter().sum::<f64>() / scores.len() as f64,
                        ScoreMode::Max => scores.iter().copied().fold(f64::MIN, f64::max),
                        ScoreMode::Min => scores.iter().copied().fold(f64::MAX, f64::min),
                        ScoreMode::Total => scores.iter().sum(),
                    }
            }
            Query::DisMax {
                queries,
                tie_breaker,
                weight,
            } => {
                let scores = self.all(queries.iter(), object, scope);
                let best = scores.iter().copied().fold(0.0, f64::max);
                f64::from(*weight) * (best + tie_breaker * (scores.iter().sum::<f64>() - best))
            }
            Query::Weighted { query, weight } => f64::from(*weight) * self.score(query, object, scope),
            Query::FunctionScore(scored) => self.functions(scored, object, scope).expect("it matches"),
            // Held against brute force in `text_queries`.
            Query::MatchPhrasePrefix { .. } | Query::MatchFuzzy { .. } => panic!("not by brute force"),
        }
    }

    fn functions(&self, scored: &FunctionScore, object: &Object, scope: &str) -> Option<f64> {
        let score = self.scored(&scored.query, object, scope)?;
        if scored.functions.is_empty() {
            return Some(score);
        }
        let applies = |function: &&ScoreFunction| {
            let filter = function.filter.as_ref();
            filter.is_none_or(|filter| self.scored(filter, object, scope).is_some())
        };
        let values: Vec<(f64, f64)> = scored
            .functions
            .iter()
            .filter(applies)
            .filter_map(|function| {
                let value = value(&function.function, object, scope)?;
                let value = if value.is_nan() || value < 0.0 { 0.0 } else { value };
                Some((value * function.weight, function.weight))
            })
            .collect();
        let each = || values.iter().map(|(value, _)| *value);
        let value = match scored.score_mode {
            _ if values.is_empty() => 1.0,
            // Infinity times 0 is 0 here.
            FunctionScoreMode::Multiply => each().product::<f64>().max(0.0),
            FunctionScoreMode::Sum => each().sum(),
            FunctionScoreMode::Avg => {
                each().sum::<f64>() / values.iter().map(|(_, weight)| weight).sum::<f64>()
            }
            FunctionScoreMode::Max => each().fold(0.0, f64::max),
            FunctionScoreMode::Min => each().fold(f64::INFINITY, f64::min),
            FunctionScoreMode::First => values[0].0,
        };
        let value = value.min(scored.max_score.unwrap_or(f64::INFINITY));
        Some(match scored.combine_mode {
            CombineMode::Multiply => score * value,
            CombineMode::Sum => score + value,
            CombineMode::Avg => (score + value) / 2.0,
            CombineMode::Max => score.max(value),
            CombineMode::Min => score.min(value),
            CombineMode::Replace => value,
        })
    }
}

/// The value of a function, where it counts.
fn value(function: &Function, object: &Object, scope: &str) -> Option<f64> {
    match function {
        Function::One => Some(1.0),
        Function::FieldValueFactor {
            field,
            factor,
            modifier,
            missing,
        } => {
            let number = match values(object, scope_at(scope), field).first() {
                Some(FieldValue::Long(number)) => *number as f64,
                Some(FieldValue::Double(number)) => *number,
                Some(FieldValue::Date(nanoseconds)) => *nanoseconds as f64 / 1e9,
                Some(other) => panic!("no number: {other:?}"),
                None => (*missing)?,
            };
            // -0.0 and 0.0 are one number.
            let x = factor * number + 0.0;
            Some(match modifier {
                Modifier::None => x,
                Modifier::Log => x.log10(),
                Modifier::Log1p => (x + 1.0).log10(),
                Modifier::Log2p => (x + 2.0).log10(),
                Modifier::Ln => x.ln(),
                Modifier::Ln1p => x.ln_1p(),
                Modifier::Ln2p => (x + 2.0).ln(),
                Modifier::Square => x.powi(2),
                Modifier::Sqrt => x.sqrt(),
                Modifier::Reciprocal => 1.0 / x,
            })
        }
        Function::Decay(decay) => Some(decayed(decay, object, scope)),
        Function::Random { .. } => panic!("not by brute force"),
    }
}

fn decayed(decay: &Decay, object: &Object, scope: &str) -> f64 {
    let distances: Vec<f64> = match &decay.origin {
        DecayOrigin::Point(origin) => points(object, scope_at(scope), &decay.field)
            .iter()
            .map(|point| origin.distance_meters(*point))
            .collect(),
        DecayOrigin::Value(origin) => values(object, scope_at(scope), &decay.field)
            .iter()
            .map(|value| match (value, origin) {
                (FieldValue::Long(a), QueryValue::Integer(b)) => {
                    (i128::from(*a) - i128::from(*b)).abs() as f64
                }
                (FieldValue::Date(a), QueryValue::Time(b)) => {
                    (i128::from(*a) - i128::from(*b)).abs() as f64 / 1e9
                }
                (FieldValue::Long(a), QueryValue::Double(b)) => (*a as f64 - b).abs(),
                (FieldValue::Double(a), QueryValue::Double(b)) => (a - b).abs(),
                (FieldValue::Double(a), QueryValue::Integer(b)) => (a - *b as f64).abs(),
                (value, origin) => panic!("{value:?} from {origin:?}"),
            })
            .collect(),
    };
    let behind = || {
        distances
            .iter()
            .map(|distance| (distance - decay.offset).max(0.0))
    };
    if distances.is_empty() {
        return 1.0;
    }
    let distance = match decay.mode {
        DistanceMode::Min => behind().fold(f64::INFINITY, f64::min),
        DistanceMode::Max => behind().fold(0.0, f64::max),
        DistanceMode::Sum => behind().sum(),
        DistanceMode::Avg => behind().sum::<f64>() / distances.len() as f64,
    };
    // As Elasticsearch's reference writes them.
    match decay.shape {
        DecayShape::Gauss => {
            let variance = -decay.scale.powi(2) / (2.0 * decay.decay.ln());
            (-distance.powi(2) / (2.0 * variance)).exp()
        }
        DecayShape::Exp => (decay.decay.ln() / decay.scale * distance).exp(),
        DecayShape::Linear => {
            let end = decay.scale / (1.0 - decay.decay);
            ((end - distance) / end).max(0.0)
        }
    }
}

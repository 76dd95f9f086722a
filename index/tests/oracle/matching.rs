//! Which documents and objects match a query, and what they score, by the definitions of docs/SEARCH.md: each clause is
//! asked of each object, one by one.

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Bound;

use souk_index::{FieldValue, GeoPoint, Object, Query, QueryValue, ScoreMode};

use crate::exact;
use crate::functions;
use crate::geo;
use crate::interval::Interval;
use crate::texts::Texts;
use crate::universe::{Documents, Kind, Leaf, Universe};

/// Answers by the definitions.
pub(crate) struct Oracle<'a> {
    pub(crate) universe: &'a Universe,
    pub(crate) documents: &'a Documents,
    pub(crate) texts: Texts,
    /// Whether an answer hung on roundings that the contract leaves open.
    doubt: Cell<bool>,
}

/// The values of a field.
pub(crate) fn values<'o>(object: &'o Object, leaf: &Leaf) -> &'o [FieldValue] {
    object.values(&leaf.name)
}

pub(crate) fn string(value: &FieldValue) -> &str {
    match value {
        FieldValue::String(text) => text,
        other => panic!("no string: {other:?}"),
    }
}

pub(crate) fn points(object: &Object, leaf: &Leaf) -> Vec<GeoPoint> {
    let point = |value: &FieldValue| match value {
        FieldValue::GeoPoint(point) => *point,
        other => panic!("no point: {other:?}"),
    };
    values(object, leaf).iter().map(point).collect()
}

/// The objects directly in a NESTED field.
pub(crate) fn objects<'o>(object: &'o Object, name: &str) -> impl Iterator<Item = &'o Object> {
    object.values(name).iter().flat_map(|value| match value {
        FieldValue::Objects(objects) => objects.iter(),
        other => panic!("no objects: {other:?}"),
    })
}

/// The objects at a path, any number of levels inside the objects of a scope.
pub(crate) fn objects_at<'o>(object: &'o Object, scope: &str, path: &str) -> Vec<&'o Object> {
    let rest = if scope.is_empty() {
        path
    } else {
        &path[scope.len() + 1..]
    };
    let mut found = vec![object];
    for name in rest.split('.') {
        found = found
            .into_iter()
            .flat_map(|object| objects(object, name))
            .collect();
    }
    found
}

/// Whether a string matches a pattern: by how many of its characters the beginning of the pattern may take, each number at once, since
/// trying one after the other takes minutes in long texts.
fn wildcard(pattern: &[char], text: &[char]) -> bool {
    let mut taken = BTreeSet::from([0]);
    let mut rest = pattern;
    loop {
        let may_follow = |fits: &dyn Fn(char) -> bool| -> BTreeSet<usize> {
            let fitting = taken.iter().filter(|at| text.get(**at).is_some_and(|c| fits(*c)));
            fitting.map(|at| at + 1).collect()
        };
        (taken, rest) = match rest {
            [] => return taken.contains(&text.len()),
            ['*', rest @ ..] => (
                taken
                    .first()
                    .map_or(0..0, |least| *least..text.len() + 1)
                    .collect(),
                rest,
            ),
            ['?', rest @ ..] => (may_follow(&|_| true), rest),
            ['\\', c, rest @ ..] | [c, rest @ ..] => (may_follow(&|other| other == *c), rest),
        };
    }
}

/// Whether `order` of a value against a bound is within it.
fn within<T>(bound: &Bound<T>, outwards: Ordering, order: impl Fn(&T) -> Ordering) -> bool {
    match bound {
        Bound::Included(bound) => order(bound) != outwards,
        Bound::Excluded(bound) => order(bound) == outwards.reverse(),
        Bound::Unbounded => true,
    }
}

impl<'a> Oracle<'a> {
    pub(crate) fn new(universe: &'a Universe, documents: &'a Documents) -> Self {
        Self {
            universe,
            documents,
            texts: Texts::new(universe, documents),
            doubt: Cell::new(false),
        }
    }

    /// Notes that roundings decide.
    pub(crate) fn doubt(&self) {
        self.doubt.set(true);
    }

    /// Whether roundings decided anything since this was last asked.
    pub(crate) fn was_in_doubt(&self) -> bool {
        self.doubt.replace(false)
    }

    pub(crate) fn matches(&self, query: &Query, object: &Object, scope: &str) -> bool {
        self.score(query, object, scope).is_some()
    }

    /// What an object of a scope scores; `None` if it doesn't match.
    pub(crate) fn score(&self, query: &Query, object: &Object, scope: &str) -> Option<Interval> {
        let constant = |matches: bool, weight: f32| matches.then(|| Interval::exact(f64::from(weight)));
        let leaf = |field: &str| self.universe.leaf(field);
        match query {
            Query::MatchAll => constant(true, 1.0),
            Query::Term {
                field,
                value: QueryValue::String(word),
                weight,
            } if matches!(leaf(field).kind, Kind::Text(_)) => {
                let score = self.texts.word(self.universe, object, field, word)?;
                Some(score.times(f64::from(*weight)))
            }
            Query::Term { field, value, weight } => constant(self.has(object, leaf(field), value), *weight),
            Query::Terms {
                field,
                values,
                weight,
            } => constant(
                values.iter().any(|value| self.has(object, leaf(field), value)),
                *weight,
            ),
            Query::Range { field, lower, upper } => {
                constant(self.in_range(object, leaf(field), lower, upper), 1.0)
            }
            Query::Prefix { field, value, weight } => constant(
                self.any_string(object, leaf(field), |text| text.starts_with(value)),
                *weight,
            ),
            Query::Suffix { field, value, weight } => constant(
                self.any_string(object, leaf(field), |text| text.ends_with(value)),
                *weight,
            ),
            Query::Wildcard {
                field,
                pattern,
                weight,
            } if pattern.chars().all(|c| c == '*') => {
                constant(!values(object, leaf(field)).is_empty(), *weight)
            }
            Query::Wildcard {
                field,
                pattern,
                weight,
            } => {
                let pattern: Vec<char> = pattern.chars().collect();
                let fits = |text: &str| wildcard(&pattern, &text.chars().collect::<Vec<char>>());
                constant(self.any_string(object, leaf(field), fits), *weight)
            }
            Query::Exists { field } => constant(!values(object, leaf(field)).is_empty(), 1.0),
            Query::Match { .. }
            | Query::MatchFuzzy { .. }
            | Query::MatchPhrase { .. }
            | Query::MatchPhrasePrefix { .. } => self.texts.score(self.universe, query, object),
            Query::Bool {
                must,
                filter,
                should,
                must_not,
                minimum_should_match,
            } => self.boolean(
                object,
                scope,
                (must, filter, should, must_not),
                *minimum_should_match,
            ),
            Query::Nested {
                path,
                query,
                score_mode,
                weight,
                ..
            } => {
                let inside = objects_at(object, scope, path);
                let scores = inside.iter().filter_map(|object| self.score(query, object, path));
                let scores: Vec<Interval> = scores.collect();
                of_objects(*score_mode, &scores).map(|score| score.times(f64::from(*weight)))
            }
            Query::GeoDistance {
                field,
                center,
                distance_meters,
            } => constant(
                self.in_circle(&points(object, leaf(field)), *center, *distance_meters),
                1.0,
            ),
            Query::GeoBoundingBox {
                field,
                top_left,
                bottom_right,
            } => {
                let mut points = points(object, leaf(field)).into_iter();
                constant(
                    points.any(|point| geo::in_box(point, *top_left, *bottom_right)),
                    1.0,
                )
            }
            Query::GeoPolygon { field, vertices } => {
                let mut points = points(object, leaf(field)).into_iter();
                constant(points.any(|point| geo::in_polygon(point, vertices)), 1.0)
            }
            Query::ConstScore { filter, weight } => constant(self.matches(filter, object, scope), *weight),
            Query::FunctionScore(scored) => functions::score(self, scored, object, scope),
            Query::DisMax {
                queries,
                tie_breaker,
                weight,
            } => {
                let scores = queries
                    .iter()
                    .filter_map(|query| self.score(query, object, scope));
                let scores: Vec<Interval> = scores.collect();
                let best = scores.iter().copied().reduce(|a, b| a.with(b, f64::max))?;
                let all = sum(&scores);
                // Nothing of a score that isn't known is nothing.
                let part = |part: f64, of: f64| if part == 0.0 { 0.0 } else { part * of };
                let score = best.with(all, |best, all| {
                    part(1.0 - tie_breaker, best) + part(*tie_breaker, all)
                });
                Some(score.rounded().times(f64::from(*weight)))
            }
            Query::Weighted { query, weight } => {
                Some(self.score(query, object, scope)?.times(f64::from(*weight)))
            }
        }
    }

    fn boolean(
        &self,
        object: &Object,
        scope: &str,
        (must, filter, should, must_not): (&[Query], &[Query], &[Query], &[Query]),
        minimum: Option<u32>,
    ) -> Option<Interval> {
        if must.is_empty() && filter.is_empty() && should.is_empty() && must_not.is_empty() {
            return Some(Interval::exact(1.0));
        }
        let required: Option<Vec<Interval>> = must
            .iter()
            .map(|query| self.score(query, object, scope))
            .collect();
        let optional: Vec<Interval> = should
            .iter()
            .filter_map(|query| self.score(query, object, scope))
            .collect();
        let least = match minimum {
            Some(minimum) => minimum as usize,
            None if must.is_empty() && filter.is_empty() && !should.is_empty() => 1,
            None => 0,
        };
        let holds = filter.iter().all(|query| self.matches(query, object, scope))
            && !must_not.iter().any(|query| self.matches(query, object, scope))
            && optional.len() >= least;
        // Where some of them have to match, they are a query of their own.
        let optional = match least {
            least if 0 < least && least < should.len() => vec![sum(&optional).rounded()],
            _ => optional,
        };
        let scores = [required?, optional].concat();
        holds.then(|| sum(&scores).rounded())
    }

    /// Whether a field has a value; a TEXT, whether it has the token.
    fn has(&self, object: &Object, leaf: &Leaf, value: &QueryValue) -> bool {
        match value {
            QueryValue::String(wanted) => self.any_string(object, leaf, |text| text == wanted),
            QueryValue::Bytes(wanted) => values(object, leaf).contains(&FieldValue::Bytes(wanted.clone())),
            QueryValue::Boolean(wanted) => values(object, leaf).contains(&FieldValue::Boolean(*wanted)),
            _ => values(object, leaf)
                .iter()
                .any(|own| exact::compare(own, value).is_eq()),
        }
    }

    /// Whether any value of a KEYWORD, or any token of a TEXT, fits.
    fn any_string(&self, object: &Object, leaf: &Leaf, fits: impl Fn(&str) -> bool) -> bool {
        match leaf.kind {
            Kind::Text(_) => {
                let tokens = self.texts.tokens(self.universe, object, &leaf.path);
                tokens.iter().any(|(_, token)| fits(token))
            }
            _ => values(object, leaf).iter().any(|value| fits(string(value))),
        }
    }

    fn in_range(
        &self,
        object: &Object,
        leaf: &Leaf,
        lower: &Bound<QueryValue>,
        upper: &Bound<QueryValue>,
    ) -> bool {
        if matches!(leaf.kind, Kind::Keyword | Kind::Text(_)) {
            let bytes = |text: &str, bound: &QueryValue| match bound {
                QueryValue::String(bound) => text.as_bytes().cmp(bound.as_bytes()),
                other => panic!("no string: {other:?}"),
            };
            return self.any_string(object, leaf, |text| {
                within(lower, Ordering::Less, |bound| bytes(text, bound))
                    && within(upper, Ordering::Greater, |bound| bytes(text, bound))
            });
        }
        values(object, leaf).iter().any(|value| {
            within(lower, Ordering::Less, |bound| exact::compare(value, bound))
                && within(upper, Ordering::Greater, |bound| exact::compare(value, bound))
        })
    }

    fn in_circle(&self, points: &[GeoPoint], center: GeoPoint, radius: f64) -> bool {
        let surely = |point: &GeoPoint| {
            let meters = geo::meters(*point, center);
            *point == center || meters + geo::slack(meters) <= radius
        };
        let perhaps = |point: &GeoPoint| {
            let meters = geo::meters(*point, center);
            meters - geo::slack(meters) <= radius
        };
        let inside = points.iter().any(surely);
        if !inside && points.iter().any(perhaps) {
            self.doubt();
        }
        inside
    }
}

/// The sum of scores.
pub(crate) fn sum(scores: &[Interval]) -> Interval {
    scores
        .iter()
        .fold(Interval::exact(0.0), |sum, score| sum.with(*score, |a, b| a + b))
}

/// What a document scores from the scores of its objects; `None` without any.
fn of_objects(mode: ScoreMode, scores: &[Interval]) -> Option<Interval> {
    let fold = |of: fn(f64, f64) -> f64| scores.iter().copied().reduce(|a, b| a.with(b, of));
    let best = fold(f64::max)?;
    Some(match mode {
        ScoreMode::None => Interval::exact(0.0),
        ScoreMode::Max => best,
        ScoreMode::Min => fold(f64::min)?,
        ScoreMode::Total => sum(scores).rounded(),
        ScoreMode::Avg => sum(scores).map(|sum| sum / scores.len() as f64).rounded(),
    })
}

//! Random queries of every kind on a universe's fields, with the values that its documents have, and others near them.

use std::cmp::Ordering;
use std::ops::Bound;

use fastrand::Rng;
use souk_index::{
    CombineMode, Decay, DecayOrigin, DecayShape, DistanceMode, FieldValue, Function, FunctionScore,
    FunctionScoreMode, Fuzziness, GeoPoint, InnerHits, Modifier, Operator, Query, QueryValue, ScoreFunction,
    ScoreMode,
};

use crate::exact;
use crate::universe::{Kind, Leaf, Universe, once_in, pick, point};

/// Makes random questions.
pub(crate) struct Questions<'a> {
    pub(crate) rng: &'a mut Rng,
    pub(crate) universe: &'a Universe,
}

const SCORE_MODES: [ScoreMode; 5] = [
    ScoreMode::None,
    ScoreMode::Avg,
    ScoreMode::Max,
    ScoreMode::Min,
    ScoreMode::Total,
];
const MODIFIERS: [Modifier; 10] = [
    Modifier::None,
    Modifier::Log,
    Modifier::Log1p,
    Modifier::Log2p,
    Modifier::Ln,
    Modifier::Ln1p,
    Modifier::Ln2p,
    Modifier::Square,
    Modifier::Sqrt,
    Modifier::Reciprocal,
];

impl Questions<'_> {
    /// A clause's weight: none, tiny, huge, or an ordinary one.
    fn weight(&mut self) -> f32 {
        *pick(self.rng, &[1.0, 1.0, 1.0, 0.3, 2.5, 0.0, 1e-30, 1e8])
    }

    fn leaves(&self, scope: &str, fits: impl Fn(&Leaf) -> bool) -> Vec<Leaf> {
        self.universe
            .of_scope(scope)
            .filter(|leaf| fits(leaf))
            .cloned()
            .collect()
    }

    /// A field of the scope, if there is one of these.
    pub(crate) fn field(&mut self, scope: &str, fits: impl Fn(&Leaf) -> bool) -> Option<Leaf> {
        let fields = self.leaves(scope, fits);
        (!fields.is_empty()).then(|| pick(self.rng, &fields).clone())
    }

    /// A value to compare a field with; numbers of either type.
    pub(crate) fn value(&mut self, kind: Kind) -> QueryValue {
        let near = |rng: &mut Rng, number: i64| number.saturating_add(rng.i64(-1..2));
        match kind {
            Kind::Keyword => QueryValue::String(self.keyword()),
            Kind::Text(_) => QueryValue::String(self.word()),
            Kind::Boolean => QueryValue::Boolean(self.rng.bool()),
            Kind::Date => {
                let time = *pick(self.rng, &self.universe.dates);
                let time = near(self.rng, time);
                if self.rng.bool() {
                    QueryValue::Time(time)
                } else {
                    QueryValue::Integer(time)
                }
            }
            Kind::Long | Kind::Double => match self.rng.u8(..4) {
                0 => {
                    let number = *pick(self.rng, &self.universe.longs);
                    QueryValue::Integer(near(self.rng, number))
                }
                1 => QueryValue::Integer(*pick(self.rng, &self.universe.longs)),
                2 => QueryValue::Double(*pick(self.rng, &self.universe.longs) as f64),
                _ => QueryValue::Double(*pick(self.rng, &self.universe.doubles)),
            },
            Kind::Bytes => QueryValue::Bytes(pick(self.rng, &self.universe.bytes).clone()),
            Kind::Point | Kind::Nested => panic!("not compared with a value"),
        }
    }

    fn keyword(&mut self) -> String {
        let mut word = pick(self.rng, &self.universe.keywords).clone();
        match self.rng.u8(..8) {
            0 => drop(word.pop()),
            1 if word.len() < 100 => word.push('b'),
            _ => {}
        }
        word
    }

    /// A token as texts may have it.
    fn word(&mut self) -> String {
        let word = pick(self.rng, &self.universe.words).clone();
        if once_in(self.rng, 4) {
            word
        } else {
            word.to_lowercase()
        }
    }

    /// A text to look for.
    fn text(&mut self) -> String {
        let between = *pick(self.rng, &[" ", ",", "-"]);
        let count = match self.rng.u8(..8) {
            0 => 1,
            1 => self.rng.usize(4..9),
            _ => self.rng.usize(1..4),
        };
        let mut words: Vec<String> = (0..count)
            .map(|_| pick(self.rng, &self.universe.words).clone())
            .collect();
        if once_in(self.rng, 5) {
            let nth = self.rng.usize(..words.len());
            words[nth] = self.misspelled(&words[nth].clone());
        }
        words.join(between)
    }

    fn misspelled(&mut self, word: &str) -> String {
        let mut chars: Vec<char> = word.chars().collect();
        let at = self.rng.usize(..chars.len());
        match self.rng.u8(..4) {
            0 if chars.len() > 1 => drop(chars.remove(at)),
            1 => chars.insert(at, 'e'),
            2 if at > 0 => chars.swap(at - 1, at),
            _ => chars[at] = 'o',
        }
        chars.into_iter().collect()
    }

    /// A query on the objects of a scope.
    pub(crate) fn query(&mut self, scope: &str, depth: u32) -> Query {
        loop {
            let kind = self.rng.u8(..if depth == 0 { 20 } else { 32 });
            let query = match kind {
                0 => Some(Query::MatchAll),
                1..4 => self.term(scope),
                4..6 => self.terms(scope),
                6..9 => self.range(scope),
                9..11 => self.pattern(scope),
                11 => self.field(scope, |_| true).map(|leaf| Query::exists(leaf.path)),
                12..17 => self.full_text(scope),
                17..20 => self.area(scope),
                20..24 => Some(self.boolean(scope, depth - 1)),
                24..27 => self.nested(scope, depth - 1),
                27 => {
                    let weight = self.weight();
                    Some(Query::ConstScore {
                        filter: Box::new(self.query(scope, depth - 1)),
                        weight,
                    })
                }
                28 => {
                    let weight = self.weight();
                    Some(Query::Weighted {
                        query: Box::new(self.query(scope, depth - 1)),
                        weight,
                    })
                }
                29 => Some(Query::DisMax {
                    queries: self.several(scope, depth - 1, 1..4),
                    tie_breaker: *pick(self.rng, &[0.0, 0.3, 1.0]),
                    weight: self.weight(),
                }),
                _ => Some(self.function_score(scope, depth - 1)),
            };
            if let Some(query) = query {
                return query;
            }
        }
    }

    fn several(&mut self, scope: &str, depth: u32, count: std::ops::Range<usize>) -> Vec<Query> {
        (0..self.rng.usize(count))
            .map(|_| self.query(scope, depth))
            .collect()
    }

    fn boolean(&mut self, scope: &str, depth: u32) -> Query {
        let should = self.several(scope, depth, 0..4);
        let minimum = self.rng.bool().then(|| self.rng.u32(..=should.len() as u32));
        Query::Bool {
            must: self.several(scope, depth, 0..3),
            filter: if once_in(self.rng, 3) {
                self.several(scope, depth, 0..3)
            } else {
                Vec::new()
            },
            must_not: if once_in(self.rng, 3) {
                self.several(scope, depth, 0..2)
            } else {
                Vec::new()
            },
            should,
            minimum_should_match: minimum,
        }
    }

    /// A query on objects inside those of the scope, if there are any.
    pub(crate) fn nested(&mut self, scope: &str, depth: u32) -> Option<Query> {
        let inside = |leaf: &&Leaf| {
            leaf.kind == Kind::Nested && (scope.is_empty() || leaf.path.starts_with(&format!("{scope}.")))
        };
        let paths: Vec<String> = self
            .universe
            .leaves
            .iter()
            .filter(inside)
            .map(|leaf| leaf.path.clone())
            .collect();
        if paths.is_empty() {
            return None;
        }
        let path = pick(self.rng, &paths).clone();
        Some(Query::Nested {
            query: Box::new(match self.rng.u8(..4) {
                0 if depth > 0 => {
                    let inside = self.nested(&path, depth - 1).unwrap_or(Query::MatchAll);
                    // Objects of others that don't match.
                    Query::all(vec![inside, self.query(&path, 0)])
                }
                1 => self.function_score(&path, 0),
                2 => Query::any((0..3).map(|_| self.query(&path, 0)).collect()),
                _ => self.query(&path, depth),
            }),
            score_mode: *pick(self.rng, &SCORE_MODES),
            weight: self.weight(),
            inner_hits: None,
            path,
        })
    }

    fn comparable(leaf: &Leaf) -> bool {
        !matches!(leaf.kind, Kind::Point | Kind::Nested)
    }

    fn term(&mut self, scope: &str) -> Option<Query> {
        let leaf = self.field(scope, Self::comparable)?;
        let value = if leaf.key {
            self.key()
        } else {
            self.value(leaf.kind)
        };
        Some(Query::Term {
            field: leaf.path,
            value,
            weight: self.weight(),
        })
    }

    /// A document's key where keys are text.
    fn key(&mut self) -> QueryValue {
        QueryValue::String(format!("k{}", self.rng.usize(..12)))
    }

    fn terms(&mut self, scope: &str) -> Option<Query> {
        let leaf = self.field(scope, Self::comparable)?;
        let count = if once_in(self.rng, 6) {
            30
        } else {
            self.rng.usize(1..5)
        };
        let values = (0..count).map(|_| {
            if leaf.key {
                self.key()
            } else {
                self.value(leaf.kind)
            }
        });
        Some(Query::Terms {
            field: leaf.path,
            values: values.collect(),
            weight: self.weight(),
        })
    }

    fn range(&mut self, scope: &str) -> Option<Query> {
        let leaf = self.field(scope, |leaf| {
            Self::comparable(leaf) && !matches!(leaf.kind, Kind::Boolean | Kind::Bytes)
        })?;
        let (a, b) = (self.value(leaf.kind), self.value(leaf.kind));
        let order = match (&a, &b) {
            (QueryValue::String(a), QueryValue::String(b)) => a.as_bytes().cmp(b.as_bytes()),
            _ => exact::of_query(&a).cmp(&exact::of_query(&b)),
        };
        let (low, high) = if order == Ordering::Greater {
            (b, a)
        } else {
            (a, b)
        };
        let end = |rng: &mut Rng, value: QueryValue| match rng.u8(..3) {
            0 => Bound::Unbounded,
            1 => Bound::Included(value),
            _ => Bound::Excluded(value),
        };
        let (lower, upper) = (end(self.rng, low.clone()), end(self.rng, high));
        let lower = if (&lower, &upper) == (&Bound::Unbounded, &Bound::Unbounded) {
            Bound::Included(low)
        } else {
            lower
        };
        Some(Query::Range {
            field: leaf.path,
            lower,
            upper,
        })
    }

    fn pattern(&mut self, scope: &str) -> Option<Query> {
        let leaf = self.field(scope, |leaf| matches!(leaf.kind, Kind::Keyword | Kind::Text(_)))?;
        let word = match (leaf.kind, leaf.key) {
            (_, true) => "k1".to_owned(),
            (Kind::Keyword, _) => self.keyword(),
            _ => self.word(),
        };
        let chars: Vec<char> = word.chars().take(500).collect();
        if chars.is_empty() {
            return Some(Query::Wildcard {
                field: leaf.path,
                pattern: "*".to_owned(),
                weight: self.weight(),
            });
        }
        let cut = self.rng.usize(1..=chars.len());
        let (field, weight) = (leaf.path, self.weight());
        Some(match self.rng.u8(..3) {
            0 => Query::Prefix {
                field,
                value: chars[..cut].iter().collect(),
                weight,
            },
            1 => Query::Suffix {
                field,
                value: chars[chars.len() - cut..].iter().collect(),
                weight,
            },
            _ => {
                let mut pattern = String::new();
                for c in chars.into_iter().take(9) {
                    match self.rng.u8(..8) {
                        0 => pattern.push('*'),
                        1 => pattern.push('?'),
                        2 => pattern.extend(['*', '\\', c]),
                        _ if matches!(c, '*' | '?' | '\\') => pattern.extend(['\\', c]),
                        _ => pattern.push(c),
                    }
                }
                if once_in(self.rng, 3) {
                    pattern.push('*');
                }
                Query::Wildcard {
                    field,
                    pattern,
                    weight,
                }
            }
        })
    }

    fn full_text(&mut self, scope: &str) -> Option<Query> {
        let keyword = once_in(self.rng, 8);
        let leaf = self.field(scope, |leaf| match leaf.kind {
            Kind::Keyword => keyword,
            Kind::Text(_) => !keyword,
            _ => false,
        })?;
        let text = if keyword {
            Some(self.keyword()).filter(|text| !text.is_empty() && text.len() < 200)?
        } else {
            self.text()
        };
        let (field, weight) = (leaf.path, self.weight());
        let operator = if self.rng.bool() {
            Operator::And
        } else {
            Operator::Or
        };
        let minimum_should_match =
            (operator == Operator::Or && once_in(self.rng, 3)).then(|| self.rng.u32(1..4));
        Some(match self.rng.u8(..8) {
            0..3 => Query::Match {
                field,
                text,
                operator,
                minimum_should_match,
                weight,
            },
            3 => Query::MatchFuzzy {
                field,
                text,
                operator,
                minimum_should_match,
                fuzziness: *pick(
                    self.rng,
                    &[
                        Fuzziness::Auto,
                        Fuzziness::Edits(0),
                        Fuzziness::Edits(1),
                        Fuzziness::Edits(2),
                    ],
                ),
                prefix_length: self.rng.u32(..3),
                weight,
            },
            4 => {
                let cut = self.rng.usize(1..=text.chars().count());
                Query::MatchPhrasePrefix {
                    field,
                    text: text.chars().take(cut).collect(),
                    weight,
                }
            }
            5 => Query::MatchPhrase {
                field,
                text,
                slop: *pick(self.rng, &[1, 2, 5, 256]),
                weight,
            },
            _ => Query::MatchPhrase {
                field,
                text,
                slop: 0,
                weight,
            },
        })
    }

    /// Some points near each other are as far apart as this, in degrees.
    fn spread(&mut self) -> f64 {
        *pick(self.rng, &[0.0, 0.001, 0.3, 1.0, 20.0])
    }

    fn center(&mut self) -> GeoPoint {
        if self.rng.bool() {
            *pick(self.rng, &self.universe.points)
        } else {
            point(self.rng)
        }
    }

    fn area(&mut self, scope: &str) -> Option<Query> {
        let field = self.field(scope, |leaf| leaf.kind == Kind::Point)?.path;
        let (center, spread) = (self.center(), self.spread());
        let at = |latitude: f64, longitude: f64| {
            let longitude = (longitude + 180.0).rem_euclid(360.0) - 180.0;
            GeoPoint::new(latitude.clamp(-90.0, 90.0), longitude).expect("in range")
        };
        let (latitude, longitude) = (center.latitude(), center.longitude());
        Some(match self.rng.u8(..3) {
            0 => Query::GeoDistance {
                field,
                center,
                distance_meters: match self.rng.u8(..6) {
                    0 => 0.0,
                    1 => 20_037_508.0,
                    _ => spread * 111_000.0,
                },
            },
            1 => Query::GeoBoundingBox {
                field,
                top_left: at(latitude + spread * self.rng.f64(), longitude - spread),
                bottom_right: at(latitude - spread, longitude + spread * self.rng.f64() * 4.0),
            },
            _ => {
                // Seen from the centre, each vertex is further round than the one before: no edges cross.
                let count = self.rng.usize(3..8);
                let radius = spread.max(0.01);
                let vertices = (0..count).map(|nth| {
                    let angle = (nth as f64 + self.rng.f64() * 0.5) / count as f64 * std::f64::consts::TAU;
                    let radius = radius * (0.5 + self.rng.f64());
                    at(
                        latitude.clamp(-50.0, 50.0) + radius * angle.sin(),
                        longitude + radius * angle.cos(),
                    )
                });
                Query::GeoPolygon {
                    field,
                    vertices: vertices.collect(),
                }
            }
        })
    }

    /// A query scored by functions.
    pub(crate) fn function_score(&mut self, scope: &str, depth: u32) -> Query {
        let score_modes = [
            FunctionScoreMode::Multiply,
            FunctionScoreMode::Sum,
            FunctionScoreMode::Avg,
            FunctionScoreMode::Max,
            FunctionScoreMode::Min,
            FunctionScoreMode::First,
        ];
        let combine_modes = [
            CombineMode::Multiply,
            CombineMode::Sum,
            CombineMode::Avg,
            CombineMode::Max,
            CombineMode::Min,
            CombineMode::Replace,
        ];
        Query::FunctionScore(Box::new(FunctionScore {
            query: self.query(scope, depth),
            functions: (0..self.rng.usize(..4))
                .map(|_| self.function(scope, depth))
                .collect(),
            score_mode: *pick(self.rng, &score_modes),
            combine_mode: *pick(self.rng, &combine_modes),
            min_score: once_in(self.rng, 4)
                .then(|| *pick(self.rng, &[0.0, 0.123_456_7, 1.234_567, 9.876_543])),
            max_score: once_in(self.rng, 3).then(|| *pick(self.rng, &[0.0, 1.7, 1_000.0])),
        }))
    }

    fn function(&mut self, scope: &str, depth: u32) -> ScoreFunction {
        let number = self.field(scope, |leaf| {
            matches!(leaf.kind, Kind::Long | Kind::Double | Kind::Date)
        });
        let function = match (self.rng.u8(..6), number) {
            (0, _) | (_, None) => Function::One,
            (1, _) => Function::Random {
                seed: self.rng.u64(..),
            },
            (2 | 3, Some(leaf)) => Function::FieldValueFactor {
                field: leaf.path,
                factor: *pick(self.rng, &[1.0, 0.25, -3.0, 1e300]),
                modifier: *pick(self.rng, &MODIFIERS),
                missing: self.rng.bool().then(|| *pick(self.rng, &[0.0, 2.5, -1.0])),
            },
            (_, Some(leaf)) => Function::Decay(self.decay(scope, &leaf)),
        };
        ScoreFunction {
            function,
            weight: *pick(self.rng, &[1.0, 1.0, 0.5, 3.0, 0.0, 1e-300, 1e18]),
            filter: once_in(self.rng, 3).then(|| self.query(scope, depth.min(1))),
        }
    }

    fn decay(&mut self, scope: &str, leaf: &Leaf) -> Decay {
        let modes = [
            DistanceMode::Min,
            DistanceMode::Max,
            DistanceMode::Avg,
            DistanceMode::Sum,
        ];
        let place = self
            .field(scope, |leaf| leaf.kind == Kind::Point)
            .filter(|_| self.rng.bool());
        let (field, origin, scale) = match place {
            Some(place) => (place.path, DecayOrigin::Point(self.center()), 9_000.0),
            None => {
                let scale = match leaf.kind {
                    Kind::Date => 3e7,
                    _ => *pick(self.rng, &[0.7, 7.0, 1e300]),
                };
                (
                    leaf.path.clone(),
                    DecayOrigin::Value(self.value(leaf.kind)),
                    scale,
                )
            }
        };
        Decay {
            field,
            shape: *pick(
                self.rng,
                &[DecayShape::Gauss, DecayShape::Exp, DecayShape::Linear],
            ),
            origin,
            scale,
            offset: *pick(self.rng, &[0.0, 0.5, 4.0]),
            decay: *pick(self.rng, &[0.5, 0.1, 0.9]),
            mode: *pick(self.rng, &modes),
        }
    }

    /// Lets some `nested` queries of a query tell their objects. Under a `must_not` there are none.
    pub(crate) fn with_inner_hits(&mut self, query: &mut Query, lists: &mut usize) {
        match query {
            Query::Nested {
                path,
                query,
                inner_hits,
                ..
            } => {
                if *lists < 8 && once_in(self.rng, 2) {
                    *lists += 1;
                    *inner_hits = Some(InnerHits {
                        name: Some(format!("list {lists}")),
                        sort: self.object_sorts(path),
                        size: *pick(self.rng, &[1, 3, 100]),
                        offset: *pick(self.rng, &[0, 0, 1]),
                    });
                }
                self.with_inner_hits(query, lists);
            }
            Query::Bool {
                must, filter, should, ..
            } => {
                for query in must.iter_mut().chain(filter).chain(should) {
                    self.with_inner_hits(query, lists);
                }
            }
            Query::DisMax { queries, .. } => {
                queries
                    .iter_mut()
                    .for_each(|query| self.with_inner_hits(query, lists));
            }
            Query::ConstScore { filter: query, .. } | Query::Weighted { query, .. } => {
                self.with_inner_hits(query, lists);
            }
            Query::FunctionScore(scored) => self.with_inner_hits(&mut scored.query, lists),
            _ => {}
        }
    }

    /// A value of a document's type, for what stands in for missing ones.
    pub(crate) fn stand_in(&mut self, kind: Kind) -> QueryValue {
        match self.universe.value(self.rng, kind) {
            FieldValue::String(text) => QueryValue::String(text.as_str().to_owned()),
            FieldValue::Long(number) => QueryValue::Integer(number),
            FieldValue::Double(number) => QueryValue::Double(number),
            FieldValue::Boolean(flag) => QueryValue::Boolean(flag),
            FieldValue::Date(time) => QueryValue::Time(time),
            FieldValue::Bytes(bytes) => QueryValue::Bytes(bytes),
            other => panic!("stands in for nothing: {other:?}"),
        }
    }
}

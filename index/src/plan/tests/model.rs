//! An index in memory, and what it should find: every document compared with the query, by definition.

use std::ops::Bound;

use tantivy::collector::{DocSetCollector, TopDocs};
use tantivy::indexer::UserOperation;
use tantivy::{DocAddress, Index, IndexReader, IndexWriter, ReloadPolicy, Searcher, TantivyDocument};

use super::super::number::Number;
use super::*;
use crate::analyze::{Phase, analyze, register};
use crate::document::{FieldValue, Object};
use crate::geo::{Area, BoundingBox, Circle, Polygon, point_cells};
use crate::layout::ROOT_KIND;
use crate::request::{Operator, QueryValue};

pub(super) struct Model {
    pub(super) layout: Layout,
    pub(super) documents: Vec<Object>,
    searcher: Searcher,
}

impl Model {
    /// Indexes the documents in several segments; those of which the number divides by `deleted` are deleted again.
    pub(super) fn new(documents: Vec<Object>, segments: usize, deleted: usize) -> Self {
        let layout = layout();
        let index = Index::create_in_ram(layout.physical.clone());
        for field in layout.schema.resolved() {
            if let FieldKind::Text(analyzer) = &field.kind {
                register(index.tokenizers(), analyzer);
            }
        }
        let mut writer: IndexWriter = index.writer_with_num_threads(1, 15_000_000).expect("a writer");
        writer.set_merge_policy(Box::new(tantivy::merge_policy::NoMergePolicy));
        let per_segment = documents.len().div_ceil(segments).max(1);
        for (segment, chunk) in documents.chunks(per_segment).enumerate() {
            for (nth, document) in chunk.iter().enumerate() {
                let key = key(segment * per_segment + nth);
                let mut placed = Vec::new();
                place(&layout, layout.schema.fields(), document, None, &key, &mut placed);
                writer
                    .run(placed.into_iter().map(UserOperation::Add))
                    .expect("added");
            }
            writer.commit().expect("committed");
        }
        let mut documents = documents;
        for (nth, document) in documents
            .iter_mut()
            .enumerate()
            .filter(|(nth, _)| nth % deleted == 0)
        {
            writer.delete_term(tantivy::Term::from_field_bytes(layout.key, &key(nth)));
            *document = Object::default();
        }
        writer.commit().expect("committed");
        let reader: IndexReader = index
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .try_into()
            .expect("a reader");
        let searcher = reader.searcher();
        Self {
            layout,
            documents,
            searcher,
        }
    }

    pub(super) fn plan(&self, query: &Query) -> QueryPlan {
        plan(&self.layout, &run(), query, "query").unwrap_or_else(|error| panic!("{query:?}: {error}"))
    }

    /// The numbers of the documents that the query finds, without scores.
    pub(super) fn found(&self, query: &Query) -> Vec<usize> {
        let found = self
            .searcher
            .search(&self.plan(query).query, &DocSetCollector)
            .expect("searched");
        let mut found: Vec<usize> = found.into_iter().map(|address| self.number(address)).collect();
        found.sort_unstable();
        found
    }

    /// Runs a plan, and only tells whether that worked.
    pub(super) fn search(&self, plan: &QueryPlan) -> tantivy::Result<()> {
        self.searcher.search(&plan.query, &DocSetCollector).map(|_| ())
    }

    /// The same with scores.
    pub(super) fn score(&self, plan: &QueryPlan) -> tantivy::Result<()> {
        let all = TopDocs::with_limit(10).order_by_score();
        self.searcher.search(&plan.query, &all).map(|_| ())
    }

    /// The numbers of the documents that the query finds, with their scores.
    pub(super) fn scored(&self, query: &Query) -> Vec<(usize, Score)> {
        let all = TopDocs::with_limit(100_000).order_by_score();
        let found = self
            .searcher
            .search(&self.plan(query).query, &all)
            .expect("searched");
        let mut found: Vec<_> = found
            .into_iter()
            .map(|(score, address)| (self.number(address), score))
            .collect();
        found.sort_by_key(|(number, _)| *number);
        found
    }

    fn number(&self, address: DocAddress) -> usize {
        let reader = self.searcher.segment_reader(address.segment_ord);
        let column = reader
            .fast_fields()
            .bytes("_key")
            .expect("a column")
            .expect("a column");
        let ordinal = column.term_ords(address.doc_id).next().expect("a key");
        let mut key = Vec::new();
        column.ord_to_bytes(ordinal, &mut key).expect("a key");
        String::from_utf8(key)
            .ok()
            .and_then(|key| key.parse().ok())
            .expect("a number")
    }

    /// The numbers of the documents that match by definition.
    pub(super) fn expected(&self, query: &Query) -> Vec<usize> {
        let present = |nth: &usize| {
            self.documents
                .get(*nth)
                .is_some_and(|document| *document != Object::default())
        };
        (0..self.documents.len())
            .filter(present)
            .filter(|nth| matches(&self.layout, query, &self.documents[*nth], None))
            .collect()
    }
}

fn key(nth: usize) -> Vec<u8> {
    format!("{nth:06}").into_bytes()
}

/// A document as [`crate::layout`] says it lies: objects before their parent.
fn place(
    layout: &Layout,
    fields: &[Field],
    object: &Object,
    scope: Option<&str>,
    key: &[u8],
    placed: &mut Vec<TantivyDocument>,
) {
    let mut document = TantivyDocument::new();
    document.add_bytes(layout.key, key);
    document.add_text(layout.kind.expect("a kind"), scope.unwrap_or(ROOT_KIND));
    for field in fields {
        let values = object.values(field.name());
        let path = scope.map_or_else(
            || field.name().to_owned(),
            |scope| format!("{scope}.{}", field.name()),
        );
        let subs = field
            .sub_fields()
            .iter()
            .map(|(name, kind)| (format!("{path}.{name}"), kind));
        for (path, kind) in std::iter::once((path.clone(), field.kind())).chain(subs) {
            if !values.is_empty() && matches!(kind, FieldKind::Text(_) | FieldKind::Nested(_)) {
                document.add_text(layout.present, &path);
            }
            for value in values {
                match (value, layout.handle(&path).expect("a handle")) {
                    (FieldValue::Objects(objects), _) => {
                        let FieldKind::Nested(fields) = kind else {
                            panic!("{path} is not nested")
                        };
                        objects
                            .iter()
                            .for_each(|object| place(layout, fields, object, Some(&path), key, placed));
                    }
                    (FieldValue::String(text), Handle::Single(single)) => {
                        document.add_text(single, text);
                        if let Some(characters) = layout.characters(&path) {
                            document.add_text(characters, text);
                        }
                    }
                    (FieldValue::Long(number) | FieldValue::Date(number), Handle::Single(single)) => {
                        document.add_i64(single, *number);
                    }
                    (FieldValue::Double(number), Handle::Single(single)) => document.add_f64(single, *number),
                    (FieldValue::Boolean(flag), Handle::Single(single)) => document.add_bool(single, *flag),
                    (
                        FieldValue::GeoPoint(point),
                        Handle::Point {
                            latitude,
                            longitude,
                            cell,
                        },
                    ) => {
                        document.add_i64(latitude, i64::from(point.lat_e7));
                        document.add_i64(longitude, i64::from(point.lon_e7));
                        point_cells(*point)
                            .into_iter()
                            .for_each(|index| document.add_u64(cell, index));
                    }
                    (value, handle) => panic!("{path}: {value:?} in {handle:?}"),
                }
            }
        }
    }
    placed.push(document);
}

/// The values that a path has below an object of a scope.
fn values<'a>(object: &'a Object, scope: Option<&str>, path: &str) -> Vec<&'a FieldValue> {
    let below = scope.map_or(path, |scope| {
        path.strip_prefix(scope).expect("inside").trim_start_matches('.')
    });
    let (name, rest) = below.split_once('.').unwrap_or((below, ""));
    let found = object.values(name);
    if rest.is_empty() || !found.iter().any(|value| matches!(value, FieldValue::Objects(_))) {
        return found.iter().collect();
    }
    objects(found.iter())
        .flat_map(|object| values(object, None, rest))
        .collect()
}

fn objects<'a>(values: impl Iterator<Item = &'a FieldValue>) -> impl Iterator<Item = &'a Object> {
    values.flat_map(|value| match value {
        FieldValue::Objects(objects) => objects.iter(),
        other => panic!("{other:?} is no object"),
    })
}

/// Whether an object matches, by the definition of each query.
fn matches(layout: &Layout, query: &Query, object: &Object, scope: Option<&str>) -> bool {
    let values = |path: &str| values(object, scope, path);
    let every = |queries: &[Query]| queries.iter().all(|query| matches(layout, query, object, scope));
    let tokens = |path: &str| -> Vec<String> {
        let strings = values(path).into_iter().map(|value| match value {
            FieldValue::String(text) => text.as_str().to_owned(),
            other => panic!("{other:?} is no string"),
        });
        match &layout.schema.resolve(path).expect("a field").kind {
            FieldKind::Text(analyzer) => strings
                .flat_map(|text| analyze(analyzer, Phase::Index, &text))
                .map(|token| token.text)
                .collect(),
            _ => strings.collect(),
        }
    };
    let equal = |path: &str, wanted: &QueryValue| match wanted {
        QueryValue::String(text) => tokens(path).contains(text),
        QueryValue::Boolean(flag) => values(path).contains(&&FieldValue::Boolean(*flag)),
        wanted => values(path).into_iter().any(
            |value| matches!((number(value), Number::of(wanted)), (Some(a), Some(b)) if a.compare(b).is_eq()),
        ),
    };
    let in_area = |path: &str, area: Area| {
        values(path)
            .into_iter()
            .any(|value| matches!(value, FieldValue::GeoPoint(point) if area.contains(*point)))
    };
    match query {
        Query::MatchAll => true,
        Query::Term { field, value, .. } => equal(field, value),
        Query::Terms { field, values, .. } => values.iter().any(|value| equal(field, value)),
        Query::Range { field, lower, upper } => {
            if let (Bound::Included(QueryValue::String(_)) | Bound::Excluded(QueryValue::String(_)), _)
            | (_, Bound::Included(QueryValue::String(_)) | Bound::Excluded(QueryValue::String(_))) =
                (lower, upper)
            {
                let text = |value: &QueryValue| match value {
                    QueryValue::String(text) => text.clone(),
                    other => panic!("{other:?} is no string"),
                };
                let bounds = (lower.as_ref().map(text), upper.as_ref().map(text));
                return tokens(field)
                    .iter()
                    .any(|token| std::ops::RangeBounds::contains(&bounds, token));
            }
            let above = |value: Number| match lower {
                Bound::Included(bound) => value.compare(Number::of(bound).expect("a number")).is_ge(),
                Bound::Excluded(bound) => value.compare(Number::of(bound).expect("a number")).is_gt(),
                Bound::Unbounded => true,
            };
            let below = |value: Number| match upper {
                Bound::Included(bound) => value.compare(Number::of(bound).expect("a number")).is_le(),
                Bound::Excluded(bound) => value.compare(Number::of(bound).expect("a number")).is_lt(),
                Bound::Unbounded => true,
            };
            values(field)
                .into_iter()
                .filter_map(number)
                .any(|value| above(value) && below(value))
        }
        Query::Prefix { field, value, .. } => tokens(field).iter().any(|token| token.starts_with(value)),
        Query::Suffix { field, value, .. } => tokens(field).iter().any(|token| token.ends_with(value)),
        Query::Wildcard { field, pattern, .. } => {
            let pattern = regex::escape(pattern).replace(r"\*", ".*").replace(r"\?", ".");
            let pattern = regex::Regex::new(&format!("(?s)^{pattern}$")).expect("a pattern");
            tokens(field).iter().any(|token| pattern.is_match(token))
        }
        Query::Exists { field } => !values(field).is_empty(),
        Query::Match {
            field,
            text,
            operator,
            minimum_should_match,
            ..
        } => {
            let kind = &layout.schema.resolve(field).expect("a field").kind;
            let words: Vec<String> = match kind {
                FieldKind::Text(analyzer) => analyze(analyzer, Phase::Query, text)
                    .into_iter()
                    .map(|token| token.text)
                    .collect(),
                _ => vec![text.clone()],
            };
            // To the fuzzy analyzer a word is there when a word of the document contains it.
            let has = |word: &String| match kind {
                FieldKind::Text(analyzer @ Analyzer::Fuzzy { .. }) => {
                    values(field).into_iter().any(|value| {
                        let FieldValue::String(text) = value else {
                            return false;
                        };
                        analyze(analyzer, Phase::Query, text)
                            .iter()
                            .any(|token| token.text.contains(word.as_str()))
                    })
                }
                _ => tokens(field).contains(word),
            };
            let hits = words.iter().filter(|word| has(word)).count();
            let needed = match operator {
                Operator::And => words.len(),
                Operator::Or => minimum_should_match.unwrap_or(1) as usize,
            };
            hits >= needed.max(1)
        }
        Query::MatchPhrase {
            field, text, slop: 0, ..
        } => {
            // Only asked of the single_word analyzer here, of which the tokens don't overlap.
            let (words, have) = (
                analyze(&Analyzer::single_word(), Phase::Query, text),
                tokens(field),
            );
            let words: Vec<String> = words.into_iter().map(|token| token.text).collect();
            have.windows(words.len()).any(|window| window == words)
        }
        Query::Bool {
            must,
            filter,
            should,
            must_not,
            minimum_should_match,
        } => {
            let hits = should
                .iter()
                .filter(|query| matches(layout, query, object, scope))
                .count();
            let default = u32::from(must.is_empty() && filter.is_empty() && !should.is_empty());
            every(must)
                && every(filter)
                && !must_not.iter().any(|query| matches(layout, query, object, scope))
                && hits >= minimum_should_match.unwrap_or(default) as usize
        }
        Query::Nested { path, query, .. } => {
            let inside = values(path);
            objects(inside.into_iter()).any(|object| matches(layout, query, object, Some(path)))
        }
        Query::GeoDistance {
            field,
            center,
            distance_meters,
        } => in_area(
            field,
            Area::Circle(Circle::new(*center, *distance_meters).expect("a circle")),
        ),
        Query::GeoBoundingBox {
            field,
            top_left,
            bottom_right,
        } => in_area(
            field,
            Area::Box(BoundingBox::new(*top_left, *bottom_right).expect("a box")),
        ),
        Query::GeoPolygon { field, vertices } => {
            in_area(field, Area::Polygon(Polygon::new(vertices).expect("a polygon")))
        }
        Query::ConstScore { filter: query, .. } | Query::Weighted { query, .. } => {
            matches(layout, query, object, scope)
        }
        Query::DisMax { queries, .. } => queries.iter().any(|query| matches(layout, query, object, scope)),
        Query::FunctionScore(scored) if scored.min_score.is_none() => {
            matches(layout, &scored.query, object, scope)
        }
        other => panic!("the model doesn't know {other:?}"),
    }
}

fn number(value: &FieldValue) -> Option<Number> {
    match value {
        FieldValue::Long(number) | FieldValue::Date(number) => Some(Number::Integer(*number)),
        FieldValue::Double(number) => Some(Number::Double(*number + 0.0)),
        _ => None,
    }
}

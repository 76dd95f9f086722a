//! Inner hits: which objects of a hit matched, against brute force over the documents as they were given.

use std::collections::BTreeMap;

use fastrand::Rng;
use souk_index::{
    ArrayMode, Cancellation, Document, Error, GeoPoint, Hit, Index, IndexOptions, InnerHitList, InnerHits,
    Missing, NestedSort, Object, Operation, Query, QueryValue, ScoreMode, SearchRequest, Sort, SortValue,
    limits,
};

use super::{commit, find, random, random_numbers, reference, schema, scope_at, upsert};

type Documents = BTreeMap<Vec<u8>, Object>;
/// The places of an object and of those around it, outermost first, and the object.
type Placed<'a> = (Vec<usize>, &'a Object);

const HISTORIES: usize = 4;
const COMMITS: u64 = 8;
const SEARCHES: usize = 60;

/// Asks every `nested` query of a tree for inner hits, or some of them, each under a name of its own.
fn ask(rng: &mut Rng, query: &mut Query, names: &mut usize) {
    match query {
        Query::Nested {
            path,
            query,
            inner_hits,
            ..
        } => {
            if rng.u8(..4) > 0 && *names < limits::MAX_INNER_HIT_LISTS {
                *inner_hits = Some(InnerHits {
                    name: Some(format!("list {names}")),
                    sort: (0..rng.usize(..3)).map(|_| sort(rng, path)).collect(),
                    size: rng.usize(..6),
                    offset: rng.usize(..3),
                });
                *names += 1;
            }
            ask(rng, query, names);
        }
        Query::Bool {
            must,
            filter,
            should,
            must_not,
            ..
        } => {
            for clauses in [must, filter, should, must_not] {
                clauses.iter_mut().for_each(|clause| ask(rng, clause, names));
            }
        }
        Query::ConstScore { filter, .. } => ask(rng, filter, names),
        _ => {}
    }
}

/// An order of the objects of a path.
fn sort(rng: &mut Rng, path: &str) -> Sort {
    let descending = rng.bool();
    if rng.u8(..5) == 0 {
        return Sort::Score {
            ascending: rng.bool(),
        };
    }
    if path == "items" && rng.u8(..5) == 0 {
        return Sort::GeoDistance {
            field: "items.place".to_owned(),
            points: vec![GeoPoint::new(30.0, 120.0).expect("in range")],
            descending,
        };
    }
    let fields = if path == "items" {
        ["sku", "qty", "weight", "fresh"]
    } else {
        ["code", "size", "made", "code"]
    };
    let field = fields[rng.usize(..fields.len())];
    let summed = (field == "qty").then_some(ArrayMode::Sum).filter(|_| rng.bool());
    let missing = match (rng.u8(..3), field) {
        (0, _) => Missing::First,
        (1, "sku" | "code") => Missing::Value(QueryValue::from("b")),
        (1, "weight") => Missing::Value(QueryValue::Double(0.25)),
        _ => Missing::Last,
    };
    Sort::Field {
        field: format!("{path}.{field}"),
        descending,
        mode: summed.or_else(|| (field == "qty" && rng.bool()).then_some(ArrayMode::Min)),
        missing,
        nested: None,
    }
}

/// The objects at `path` inside some objects of `scope`, with their places.
fn inside<'a>(objects: &[Placed<'a>], scope: &str, path: &str) -> Vec<Placed<'a>> {
    let rest = if scope.is_empty() {
        path
    } else {
        &path[scope.len() + 1..]
    };
    let mut found = objects.to_vec();
    for name in rest.split('.') {
        let mut next = Vec::new();
        for (places, object) in &found {
            let children = object.values(name).iter().flat_map(|value| match value {
                souk_index::FieldValue::Objects(objects) => objects.iter(),
                other => panic!("not objects: {other:?}"),
            });
            for (place, child) in children.enumerate() {
                next.push(([places.as_slice(), &[place]].concat(), child));
            }
        }
        found = next;
    }
    found
}

/// The objects that each list is about, by its name.
type Lists<'a, 'b> = BTreeMap<String, (&'b InnerHits, String, Vec<Placed<'a>>)>;

fn matching<'a, 'b>(query: &'b Query, objects: &[Placed<'a>], scope: &str, lists: &mut Lists<'a, 'b>) {
    match query {
        Query::Nested {
            path,
            query,
            inner_hits,
            ..
        } => {
            let mut found = inside(objects, scope, path);
            found.retain(|(_, object)| reference::matches(query, object, scope_at(path)));
            if let Some(asked) = inner_hits {
                let name = asked.name.clone().unwrap_or_else(|| path.clone());
                lists.insert(name, (asked, path.clone(), found.clone()));
            }
            matching(query, &found, path, lists);
        }
        Query::Bool {
            must,
            filter,
            should,
            must_not,
            ..
        } => {
            let clauses = must.iter().chain(filter).chain(should).chain(must_not);
            clauses.for_each(|clause| matching(clause, objects, scope, lists));
        }
        Query::ConstScore { filter, .. } => matching(filter, objects, scope, lists),
        _ => {}
    }
}

fn check(asked: &InnerHits, path: &str, objects: &[Placed<'_>], found: &InnerHitList, context: &str) {
    assert_eq!(found.total, objects.len() as u64, "{context}");
    let rest = objects.len().saturating_sub(asked.offset);
    assert_eq!(found.hits.len(), rest.min(asked.size), "{context}");
    let sorts = &asked.sort;
    let by_score = sorts.iter().any(|sort| matches!(sort, Sort::Score { .. }));
    let places: Vec<Vec<usize>> = found
        .hits
        .iter()
        .map(|hit| [hit.outer_offsets.as_slice(), &[hit.offset]].concat())
        .collect();
    let key = |places: &[usize]| -> Vec<u8> {
        let at = objects.iter().position(|(place, _)| place == places);
        (at.expect("it matched") as u32).to_be_bytes().to_vec()
    };
    if sorts.is_empty() || by_score {
        // Scores are the index's own: what it shows is in their order.
        let by_score = [Sort::Score { ascending: false }];
        let sorts = if sorts.is_empty() { &by_score[..] } else { sorts };
        let values = |nth: usize| {
            let score = SortValue::Double(f64::from(found.hits[nth].score));
            let own = &found.hits[nth].sort_values;
            if own.is_empty() { vec![score] } else { own.clone() }
        };
        for nth in 1..found.hits.len() {
            let ordering = reference::compare_hits(
                sorts,
                (&key(&places[nth - 1]), &values(nth - 1)),
                (&key(&places[nth]), &values(nth)),
            );
            assert!(ordering.is_lt(), "{context}");
        }
        return;
    }
    let mut expected: Vec<(Vec<u8>, Vec<SortValue>, &Vec<usize>)> = objects
        .iter()
        .map(|(places, object)| {
            let value =
                |sort| reference::sort_value(scope_at(path), sort, b"", object).expect("not by score");
            (key(places), sorts.iter().map(value).collect(), places)
        })
        .collect();
    expected.sort_by(|one, other| reference::compare_hits(sorts, (&one.0, &one.1), (&other.0, &other.1)));
    let expected = expected.iter().skip(asked.offset).take(asked.size);
    let expected: Vec<_> = expected.map(|(_, values, places)| (*places, values)).collect();
    let values = found.hits.iter().map(|hit| &hit.sort_values);
    let shown: Vec<_> = places.iter().zip(values).collect();
    assert_eq!(shown, expected, "{context}");
}

#[test]
fn every_hit_tells_which_of_its_objects_matched() {
    let mut rng = random_numbers();
    let mut lists = 0;
    for _ in 0..HISTORIES {
        let options = IndexOptions::default().merging_eagerly(50);
        let index = Index::create_in_ram(schema(), options).expect("an index");
        let mut writer = index.writer().expect("the writer");
        let mut documents = Documents::new();
        for sequence in 1..=COMMITS {
            let mut operations = Vec::new();
            for _ in 0..rng.usize(1..40) {
                let key = vec![b'k', rng.u8(..100)];
                if rng.u8(..5) == 0 {
                    documents.remove(&key);
                    operations.push(Operation::Delete { key });
                    continue;
                }
                let fields = random::document(&mut rng);
                documents.insert(key.clone(), fields.clone());
                operations.push(Operation::Upsert(Document { key, fields }));
            }
            commit(&mut writer, operations, sequence);
            if rng.u8(..4) == 0 {
                writer.merge_all().expect("the merge works");
            }
            for _ in 0..SEARCHES {
                lists += search(&mut rng, &index, &documents);
            }
        }
    }
    assert!(lists > 0, "no search had inner hits");
}

fn search(rng: &mut Rng, index: &Index, documents: &Documents) -> usize {
    let path = ["items", "items.parts"][rng.usize(..2)];
    let objects = Query::Nested {
        path: path.to_owned(),
        query: Box::new(random::query(rng, path, 2)),
        score_mode: [ScoreMode::None, ScoreMode::Total][rng.usize(..2)],
        weight: 1.0,
        inner_hits: None,
    };
    let mut query = match rng.u8(..3) {
        0 => objects,
        1 => Query::any(vec![objects, random::query(rng, "", 2)]),
        _ => Query::all(vec![objects, random::query(rng, "", 2)]),
    };
    ask(rng, &mut query, &mut 0);
    let mut request = SearchRequest::new(query).page_size(50);
    if rng.bool() {
        request.sort = vec![Sort::PrimaryKey {
            descending: rng.bool(),
        }];
    }
    let found = find(&index.searcher(), &request);
    let mut checked = 0;
    for Hit { key, inner_hits, .. } in &found.hits {
        let mut expected = Lists::new();
        matching(
            &request.query,
            &[(Vec::new(), &documents[key])],
            "",
            &mut expected,
        );
        assert_eq!(inner_hits.len(), expected.len(), "{request:#?}");
        for (name, list) in inner_hits {
            let (asked, path, objects) = &expected[name];
            let context = format!("{name} of {key:?} in {request:#?}");
            check(asked, path, objects, list, &context);
            checked += 1;
        }
    }
    checked
}

#[test]
fn what_inner_hits_can_not_be_is_said_by_its_path() {
    let index = Index::create_in_ram(schema(), IndexOptions::default()).expect("an index");
    let nested = |path: &str, asked: InnerHits| Query::Nested {
        path: path.to_owned(),
        query: Box::new(Query::MatchAll),
        score_mode: ScoreMode::None,
        weight: 1.0,
        inner_hits: Some(asked),
    };
    let sorted = |sort: Sort| InnerHits {
        sort: vec![sort],
        ..InnerHits::default()
    };
    let filter = NestedSort {
        path: "items".to_owned(),
        filter: Some(nested("items.parts", InnerHits::default())),
    };
    let by_filter = Sort::Field {
        field: "items.weight".to_owned(),
        descending: false,
        mode: None,
        missing: Missing::Last,
        nested: Some(filter),
    };
    let large = InnerHits {
        size: limits::MAX_INNER_HITS + 1,
        ..InnerHits::default()
    };
    let many = (0..=limits::MAX_INNER_HIT_LISTS).map(|nth| {
        let name = Some(nth.to_string());
        nested(
            "items",
            InnerHits {
                name,
                ..InnerHits::default()
            },
        )
    });
    let cases = [
        (
            SearchRequest::new(Query::all(vec![
                nested("items", InnerHits::default()),
                nested("items", InnerHits::default()),
            ])),
            "query.bool.must[1].nested.inner_hits.name",
            "INVALID_NAME",
        ),
        (
            SearchRequest::new(nested("items", large)),
            "query.nested.inner_hits.size",
            "LIMIT_EXCEEDED",
        ),
        (
            SearchRequest::new(nested("items", sorted(Sort::PrimaryKey { descending: true }))),
            "query.nested.inner_hits.sort[0].primary_key",
            "OUTSIDE_NESTED_PATH",
        ),
        (
            SearchRequest::new(nested("items", sorted(Sort::field("n", false)))),
            "query.nested.inner_hits.sort[0].field.field",
            "OUTSIDE_NESTED_PATH",
        ),
        (
            SearchRequest::new(nested("items", sorted(Sort::field("items.parts.size", false)))),
            "query.nested.inner_hits.sort[0].field.field",
            "OUTSIDE_NESTED_PATH",
        ),
        (
            SearchRequest::new(Query::MatchAll).sorted(vec![by_filter]),
            "sort[0].field.nested.filter.nested.inner_hits",
            "OUTSIDE_NESTED_PATH",
        ),
        (
            SearchRequest::new(Query::all(many.collect())),
            "query",
            "LIMIT_EXCEEDED",
        ),
        (
            SearchRequest::new(Query::all(vec![
                nested(
                    "items",
                    InnerHits {
                        size: 100,
                        ..InnerHits::default()
                    },
                ),
                nested("items.parts", InnerHits::default()),
            ]))
            .page_size(limits::MAX_PAGE_SIZE),
            "page_size",
            "LIMIT_EXCEEDED",
        ),
    ];
    for (request, path, code) in cases {
        match index.searcher().search(&request, &Cancellation::none()) {
            Err(Error::InvalidQuery(violations)) => {
                let listed = violations.listed();
                let found: Vec<_> = listed
                    .iter()
                    .map(|violation| (violation.path.as_str(), violation.reason.code()))
                    .collect();
                assert_eq!(found, [(path, code)]);
            }
            other => panic!("{path}: {other:?}"),
        }
    }
}

#[test]
fn an_index_of_one_document_shows_places_scores_and_order() {
    let index = Index::create_in_ram(schema(), IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("the writer");
    let part = |code: &str| Object::new().with("code", code);
    let item = |sku: &str, weight: f64, parts: Vec<Object>| {
        Object::new()
            .with("sku", sku)
            .with("weight", weight)
            .with("parts", parts)
    };
    let items = vec![
        item("a", 3.0, vec![part("x"), part("y")]),
        item("b", 1.0, vec![part("y")]),
        item("a", 2.0, vec![part("z"), part("y"), part("y")]),
    ];
    commit(
        &mut writer,
        vec![upsert("k", Object::new().with("items", items))],
        1,
    );
    let parts = Query::Nested {
        path: "items.parts".to_owned(),
        query: Box::new(Query::term("items.parts.code", "y")),
        score_mode: ScoreMode::None,
        weight: 1.0,
        inner_hits: Some(InnerHits {
            size: 2,
            offset: 1,
            ..InnerHits::default()
        }),
    };
    let query = Query::Nested {
        path: "items".to_owned(),
        query: Box::new(Query::all(vec![Query::term("items.sku", "a"), parts])),
        score_mode: ScoreMode::None,
        weight: 1.0,
        inner_hits: Some(InnerHits {
            sort: vec![Sort::field("items.weight", false)],
            ..InnerHits::default()
        }),
    };
    let found = find(&index.searcher(), &SearchRequest::new(query));
    let lists: BTreeMap<_, _> = found.hits[0].inner_hits.iter().cloned().collect();
    let places = |list: &InnerHitList| -> Vec<(Vec<usize>, usize)> {
        let hits = list.hits.iter();
        hits.map(|hit| (hit.outer_offsets.clone(), hit.offset)).collect()
    };
    let items = &lists["items"];
    assert_eq!((items.total, places(items)), (2, vec![(vec![], 2), (vec![], 0)]));
    let values: Vec<_> = items.hits.iter().map(|hit| hit.sort_values.clone()).collect();
    assert_eq!(values, [[SortValue::Double(2.0)], [SortValue::Double(3.0)]]);
    // The part of the second item doesn't count: its item doesn't match.
    let parts = &lists["items.parts"];
    assert_eq!(
        (parts.total, places(parts)),
        (3, vec![(vec![2], 1), (vec![2], 2)])
    );
}

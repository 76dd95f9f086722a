//! Collapsed searches: one hit a group, whatever the order, the page and the segments.

use std::collections::{BTreeMap, HashSet};

use fastrand::Rng;
use souk_index::{
    Cancellation, Document, Error, Field, FieldValue, Index, IndexOptions, Object, Operation, Query,
    Relation, Schema, SearchRequest, Sort, SortValue, TotalRequest, limits,
};

use super::{Asked as _, commit, find, random, random_numbers, reference, schema, scope_at, upsert};

type Documents = BTreeMap<Vec<u8>, Object>;

const HISTORIES: usize = 4;
const COMMITS: u64 = 8;
const SEARCHES: usize = 60;

/// What tells a document's group.
fn group(document: &Object, field: &str) -> String {
    format!("{:?}", document.values(field).first())
}

/// The keys of all heads, in order.
fn heads(query: &Query, sorts: &[Sort], documents: &Documents, field: &str) -> Vec<Vec<u8>> {
    let matching = documents
        .iter()
        .filter(|(_, document)| reference::matches(query, document, scope_at("")));
    let mut found: Vec<(&Vec<u8>, Vec<SortValue>, String)> = matching
        .map(|(key, document)| {
            let value =
                |sort| reference::sort_value(scope_at(""), sort, key, document).expect("not by score");
            (key, sorts.iter().map(value).collect(), group(document, field))
        })
        .collect();
    found.sort_by(|one, other| reference::compare_hits(sorts, (one.0, &one.1), (other.0, &other.1)));
    let mut seen = HashSet::new();
    let firsts = found
        .into_iter()
        .filter(|(_, _, group)| seen.insert(group.clone()));
    firsts.map(|(key, ..)| key.clone()).collect()
}

/// The keys of all heads by the order of an uncollapsed search, which the reference checks elsewhere: for orders by score.
fn heads_of_hits(index: &Index, request: &SearchRequest, documents: &Documents, field: &str) -> Vec<Vec<u8>> {
    let mut all = request.clone().page_size(limits::MAX_PAGE_SIZE);
    all.collapse = None;
    let found = find(&index.searcher(), &all);
    let mut seen = HashSet::new();
    let keys = found.hits.into_iter().map(|hit| hit.key);
    keys.filter(|key| seen.insert(group(&documents[key], field)))
        .collect()
}

#[test]
fn pages_hold_the_first_hit_of_each_group_once() {
    let mut rng = random_numbers();
    for _ in 0..HISTORIES {
        let options = IndexOptions::default().merging_eagerly(50);
        let index = Index::create_in_ram(schema(), options).expect("an index");
        let mut writer = index.writer().expect("the writer");
        let mut documents = Documents::new();
        for sequence in 1..=COMMITS {
            let mut operations = Vec::new();
            for _ in 0..rng.usize(1..60) {
                let key = vec![b'k', rng.u8(..200)];
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
                search(&mut rng, &index, &documents);
            }
        }
    }
}

fn search(rng: &mut Rng, index: &Index, documents: &Documents) {
    let field = ["kind", "m"][rng.usize(..2)];
    let query = if rng.bool() {
        Query::MatchAll
    } else {
        random::query(rng, "", 2)
    };
    let sorts = random::sorts(rng);
    let by_score = sorts.is_empty() || sorts.iter().any(|sort| matches!(sort, Sort::Score { .. }));
    let mut request = SearchRequest::new(query)
        .sorted(sorts)
        .page_size(rng.usize(1..8))
        .collapse(field);
    request.skip = if rng.bool() { 0 } else { rng.usize(..5) };
    let expected = if by_score {
        heads_of_hits(
            index,
            &SearchRequest {
                skip: 0,
                ..request.clone()
            },
            documents,
            field,
        )
    } else {
        heads(&request.query, &request.sort, documents, field)
    };
    let expected: Vec<Vec<u8>> = expected.into_iter().skip(request.skip).collect();
    let matching = documents
        .values()
        .filter(|document| reference::matches(&request.query, document, scope_at("")));
    let matching = matching.count() as u64;
    let mut found: Vec<Vec<u8>> = Vec::new();
    loop {
        request.total = [TotalRequest::None, TotalRequest::Exact, TotalRequest::AtLeast(3)][rng.usize(..3)];
        let page = find(&index.searcher(), &request);
        if let Some(total) = page.total {
            let exact = total.relation == Relation::Equal;
            assert!(exact || total.value >= 3, "{request:#?}");
            assert!(
                if exact {
                    total.value == matching
                } else {
                    total.value <= matching
                },
                "{total:?} of {matching} before collapse in {request:#?}"
            );
        }
        assert!(page.hits.len() == request.page_size || page.next_page_token.is_none());
        found.extend(page.hits.into_iter().map(|hit| hit.key));
        assert!(found.len() <= expected.len(), "pages repeat groups: {request:#?}");
        request.skip = 0;
        request.after = page.next_page_token;
        if request.after.is_none() {
            break;
        }
    }
    assert_eq!(found, expected, "{request:#?}");
}

#[test]
fn doubles_collapse_by_value_and_zero_has_no_sign() {
    let schema = Schema::new(vec![Field::double("rating"), Field::long("n")]).expect("a schema");
    let index = Index::create_in_ram(schema, IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("the writer");
    let ratings = [
        Some(-0.0),
        Some(0.0),
        Some(4.5),
        None,
        Some(4.5),
        None,
        Some(-1.0),
    ];
    // A segment each.
    for (n, rating) in (0_i64..).zip(ratings) {
        let rating = rating.map(FieldValue::Double);
        let fields = Object::new().with_all("rating", rating).with("n", n);
        commit(&mut writer, vec![upsert(&format!("k{n}"), fields)], n as u64 + 1);
    }
    for (descending, expected) in [
        (false, ["k0", "k2", "k3", "k6"]),
        (true, ["k6", "k5", "k4", "k1"]),
    ] {
        let request = SearchRequest::new(Query::MatchAll)
            .sorted(vec![Sort::field("n", descending)])
            .collapse("rating");
        let mut keys = Vec::new();
        let mut page = request.clone().page_size(1);
        loop {
            let found = find(&index.searcher(), &page);
            keys.extend(found.hits.into_iter().map(|hit| hit.key));
            page.after = found.next_page_token;
            if page.after.is_none() {
                break;
            }
        }
        assert_eq!(keys, expected.map(|key| key.as_bytes().to_vec()));
    }
}

#[test]
fn only_single_values_of_a_document_collapse_it() {
    let index = Index::create_in_ram(schema(), IndexOptions::default()).expect("an index");
    for (field, code) in [
        ("nowhere", "UNKNOWN_FIELD"),
        ("flag", "TYPE_MISMATCH"),
        ("at", "TYPE_MISMATCH"),
        ("text", "TYPE_MISMATCH"),
        ("n", "TYPE_MISMATCH"),
        ("tags", "TYPE_MISMATCH"),
        ("items.sku", "OUTSIDE_NESTED_PATH"),
    ] {
        let request = SearchRequest::new(Query::MatchAll).collapse(field);
        match index.searcher().search(&request, &Cancellation::none()) {
            Err(Error::InvalidQuery(violations)) => {
                let listed = violations.listed();
                assert_eq!(listed.len(), 1, "{violations}");
                assert_eq!(
                    (listed[0].path.as_str(), listed[0].reason.code()),
                    ("collapse.field", code)
                );
            }
            other => panic!("{field}: {other:?}"),
        }
    }
    let token_of = |request: &SearchRequest| {
        let mut writer = index.writer().expect("the writer");
        let fields = |kind: &str| Object::new().with("kind", kind);
        let documents = ["a", "b", "c"].map(|kind| upsert(kind, fields(kind)));
        commit(&mut writer, documents.into(), 1);
        find(&index.searcher(), request).next_page_token
    };
    let request = SearchRequest::new(Query::MatchAll).page_size(1).collapse("kind");
    let token = token_of(&request);
    assert!(token.is_some());
    for other in [
        request.clone().collapse("m"),
        SearchRequest {
            collapse: None,
            ..request
        },
    ] {
        let result = index
            .searcher()
            .search(&other.after(token.clone()), &Cancellation::none());
        assert!(
            matches!(result, Err(Error::PageTokenInvalid { .. })),
            "{result:?}"
        );
    }
}

#[test]
fn pages_end_at_a_limit_with_a_name() {
    let index = Index::create_in_ram(schema(), IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("the writer");
    let groups = limits::MAX_COLLAPSE_GROUPS + 2_000;
    for from in (0..groups).step_by(20_000) {
        let of = |n: usize| {
            Operation::Insert(Document {
                key: format!("{n:07}").into_bytes(),
                fields: Object::new().with("m", n as i64),
            })
        };
        let to = groups.min(from + 20_000);
        writer
            .apply((from..to).map(of).collect())
            .expect("the changes are taken in");
    }
    writer.commit(1).expect("the commit works");
    let mut request = SearchRequest::new(Query::MatchAll)
        .sorted(vec![Sort::PrimaryKey { descending: false }])
        .page_size(limits::MAX_PAGE_SIZE)
        .collapse("m");
    request.skip = limits::MAX_SKIP;
    let deep = find(&index.searcher(), &request);
    assert_eq!(deep.hits[0].key, format!("{:07}", limits::MAX_SKIP).into_bytes());
    let next = SearchRequest {
        skip: 0,
        ..request.after(deep.next_page_token)
    };
    let result = index.searcher().search(&next, &Cancellation::none());
    assert!(
        matches!(
            result,
            Err(Error::LimitExceeded {
                limit: "MAX_COLLAPSE_GROUPS",
                ..
            })
        ),
        "{result:?}"
    );
}

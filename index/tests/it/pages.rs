//! Pages, totals, limits, and what makes an order invalid.

use std::time::{Duration, Instant};

use souk_index::{
    ArrayMode, Cancellation, Error, Field, FieldKind, GeoPoint, Index, IndexOptions, Missing, NestedSort,
    Object, Query, QueryValue, Reason, Relation, Schema, SearchRequest, Sort, SortValue, TotalRequest,
    limits,
};

use super::{commit, find, schema, upsert};

/// Documents `k00` to `k09`, with n from 0 and a text.
fn ten() -> Index {
    let index = Index::create_in_ram(schema(), IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("the writer");
    let document = |n: i64| {
        let fields = Object::new()
            .with("n", n)
            .with("kind", if n < 5 { "low" } else { "high" });
        upsert(&format!("k{n:02}"), fields.with("text", "red blue"))
    };
    commit(&mut writer, (0..10).map(document).collect(), 1);
    index
}

fn violations(index: &Index, request: &SearchRequest) -> Vec<(String, &'static str)> {
    match index.searcher().search(request, &Cancellation::none()) {
        Err(Error::InvalidQuery(violations)) => violations
            .listed()
            .iter()
            .map(|violation| (violation.path.clone(), violation.reason.code()))
            .collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_last_page_has_no_token_even_when_it_is_full() {
    let index = ten();
    let request = SearchRequest::new(Query::MatchAll)
        .sorted(vec![Sort::field("n", true)])
        .page_size(5);
    let first = find(&index.searcher(), &request);
    assert_eq!(first.hits[0].sort_values, [SortValue::Long(9)]);
    assert_eq!(
        (first.hits[0].score, first.total, first.sequence),
        (None, None, 1)
    );
    let second = find(&index.searcher(), &request.clone().after(first.next_page_token));
    assert_eq!((second.hits.len(), second.next_page_token), (5, None));
    assert_eq!(second.hits[4].key, b"k00");
}

#[test]
fn a_page_of_none_counts() {
    let index = ten();
    let query = Query::term("kind", "low");
    let request = SearchRequest::new(query).page_size(0);
    let found = find(&index.searcher(), &request.clone().total(TotalRequest::Exact));
    let total = found.total.expect("a total was asked for");
    assert_eq!(
        (
            total.value,
            total.relation,
            found.hits.len(),
            found.next_page_token
        ),
        (5, Relation::Equal, 0, None)
    );
    assert_eq!(find(&index.searcher(), &request).total, None);
}

#[test]
fn tokens_belong_to_one_query_and_one_order() {
    let index = ten();
    let request = SearchRequest::new(Query::MatchAll)
        .sorted(vec![Sort::field("n", false)])
        .page_size(3);
    let token = find(&index.searcher(), &request).next_page_token;
    assert!(token.is_some());
    // Another page size is the same search.
    let smaller = find(
        &index.searcher(),
        &request.clone().page_size(1).after(token.clone()),
    );
    assert_eq!(smaller.hits[0].key, b"k03");
    for other in [
        request.clone().sorted(vec![Sort::field("n", true)]),
        request.clone().sorted(Vec::new()),
        SearchRequest {
            query: Query::term("kind", "low"),
            ..request.clone()
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
    for text in ["", "AAAA", "?"] {
        let result = index.searcher().search(
            &request.clone().after(Some(text.to_owned())),
            &Cancellation::none(),
        );
        assert!(
            matches!(result, Err(Error::PageTokenInvalid { .. })),
            "{result:?}"
        );
    }
}

#[test]
fn writes_between_pages_neither_repeat_nor_hide_other_documents() {
    let index = ten();
    let mut writer = index.writer().expect("the writer");
    let request = SearchRequest::new(Query::MatchAll)
        .sorted(vec![Sort::field("n", false)])
        .page_size(4);
    let first = find(&index.searcher(), &request);
    let gone = souk_index::Operation::Delete { key: b"k03".to_vec() };
    let news = ["a", "b", "c"].map(|key| upsert(key, Object::new().with("n", 0)));
    commit(&mut writer, news.into_iter().chain([gone]).collect(), 2);
    let second = find(&index.searcher(), &request.after(first.next_page_token));
    let keys: Vec<&[u8]> = second.hits.iter().map(|hit| hit.key.as_slice()).collect();
    assert_eq!(keys, [b"k04", b"k05", b"k06", b"k07"]);
    assert_eq!(second.sequence, 2);
}

#[test]
fn a_searcher_stays_at_its_point_in_time() {
    let index = ten();
    let before = index.searcher();
    let mut writer = index.writer().expect("the writer");
    let all = (0..10).map(|n| souk_index::Operation::Delete {
        key: format!("k{n:02}").into_bytes(),
    });
    commit(&mut writer, all.collect(), 7);
    writer.merge_all().expect("the merge works");
    assert_eq!(find(&before, &SearchRequest::new(Query::MatchAll)).hits.len(), 10);
    assert_eq!(
        (before.sequence(), before.count().expect("counting works")),
        (1, 10)
    );
    assert_eq!(
        (
            index.applied_sequence(),
            index.searcher().count().expect("counting works")
        ),
        (7, 0)
    );
}

#[test]
fn strings_that_no_segment_has_are_told_apart() {
    let index = Index::create_in_ram(schema(), IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("the writer");
    commit(
        &mut writer,
        vec![upsert("1", Object::new().with("kind", "mb"))],
        1,
    );
    commit(
        &mut writer,
        vec![
            upsert("2", Object::new()),
            upsert("3", Object::new().with("kind", "z")),
        ],
        2,
    );
    commit(
        &mut writer,
        vec![
            upsert("4", Object::new().with("kind", "mab")),
            upsert("5", Object::new()),
        ],
        3,
    );
    for (descending, expected) in [
        (false, ["2", "5", "4", "1", "3"]),
        (true, ["3", "1", "4", "2", "5"]),
    ] {
        let sort = Sort::Field {
            field: "kind".to_owned(),
            descending,
            mode: None,
            missing: Missing::Value(QueryValue::from("ma")),
            nested: None,
        };
        let mut request = SearchRequest::new(Query::MatchAll)
            .sorted(vec![sort])
            .page_size(1);
        let mut keys = Vec::new();
        loop {
            let found = find(&index.searcher(), &request);
            keys.extend(
                found
                    .hits
                    .into_iter()
                    .map(|hit| String::from_utf8(hit.key).expect("keys are text")),
            );
            request.after = found.next_page_token;
            assert!(keys.len() <= 5, "pages repeat hits: {keys:?}");
            if request.after.is_none() {
                break;
            }
        }
        assert_eq!(keys, expected);
    }
}

#[test]
fn searches_stop_when_they_are_told_to() {
    let index = ten();
    let request = SearchRequest::new(Query::MatchAll);
    let passed = Cancellation::at(Instant::now() - Duration::from_millis(1));
    let cancelled = Cancellation::none();
    cancelled.cancel();
    assert!(matches!(
        index.searcher().search(&request, &passed),
        Err(Error::DeadlineExceeded { .. })
    ));
    assert!(matches!(
        index.searcher().search(&request, &cancelled),
        Err(Error::Cancelled)
    ));
}

#[test]
fn every_violation_of_a_request_is_listed() {
    let index = ten();
    let field = |field: &str, mode, missing, nested| Sort::Field {
        field: field.to_owned(),
        descending: false,
        mode,
        missing,
        nested,
    };
    let items = |path: &str, filter| {
        Some(NestedSort {
            path: path.to_owned(),
            filter,
        })
    };
    let point = GeoPoint::new(30.0, 120.0).expect("in range");
    let distance = |field: &str, points| Sort::GeoDistance {
        field: field.to_owned(),
        points,
        descending: false,
    };
    let mut request = SearchRequest::new(Query::term("nowhere", "x")).sorted(vec![
        field("nothing", None, Missing::Last, None),
        field("text", None, Missing::Last, None),
        field("kind", Some(ArrayMode::Avg), Missing::Last, None),
        field("n", None, Missing::Value(QueryValue::from("x")), None),
        field("items.sku", None, Missing::Last, None),
        field("n", None, Missing::Last, items("items", None)),
        field(
            "items.qty",
            None,
            Missing::Last,
            items("items", Some(Query::exists("n"))),
        ),
        distance("kind", Vec::new()),
    ]);
    request.page_size = limits::MAX_PAGE_SIZE + 1;
    request.skip = limits::MAX_SKIP + 1;
    let expected = [
        ("query.term.field", "UNKNOWN_FIELD"),
        ("sort[0].field.field", "UNKNOWN_FIELD"),
        ("sort[1].field.field", "TYPE_MISMATCH"),
        ("sort[2].field.mode", "TYPE_MISMATCH"),
        ("sort[3].field.missing.value", "TYPE_MISMATCH"),
        ("sort[4].field.nested", "OUTSIDE_NESTED_PATH"),
        ("sort[5].field.nested", "OUTSIDE_NESTED_PATH"),
        ("sort[6].field.nested.filter.exists.field", "OUTSIDE_NESTED_PATH"),
        ("sort[7].geo_distance.field", "TYPE_MISMATCH"),
        ("sort[7].geo_distance.points", "MISSING"),
        ("page_size", "LIMIT_EXCEEDED"),
        ("skip", "LIMIT_EXCEEDED"),
    ];
    let found = violations(&index, &request);
    let found: Vec<(&str, &str)> = found.iter().map(|(path, code)| (path.as_str(), *code)).collect();
    assert_eq!(found, expected);

    let many = SearchRequest::new(Query::MatchAll).sorted(vec![
        Sort::PrimaryKey { descending: false };
        limits::MAX_SORTS + 1
    ]);
    assert_eq!(violations(&index, &many), [("sort".to_owned(), "LIMIT_EXCEEDED")]);
    let far = SearchRequest::new(Query::MatchAll)
        .sorted(vec![distance("spot", vec![point; limits::MAX_SORT_POINTS + 1])]);
    let limit = Reason::LimitExceeded {
        limit: "",
        max: 0,
        actual: 0,
    }
    .code();
    assert_eq!(
        violations(&index, &far),
        [("sort[0].geo_distance.points".to_owned(), limit)]
    );
}

/// Documents whose only field is a number, of one type or another.
fn numbers(kind: FieldKind, label: &str) -> Index {
    let schema = Schema::new(vec![Field::new("n", kind)]).expect("a schema");
    let mut options = IndexOptions::default();
    label.clone_into(&mut options.label);
    let index = Index::create_in_ram(schema, options).expect("an index");
    let mut writer = index.writer().expect("the writer");
    let document = |n: i64| upsert(&format!("k{}", n + 5), Object::new().with("n", n));
    commit(&mut writer, (-5..5).map(document).collect(), 1);
    index
}

#[test]
fn tokens_belong_to_one_design_of_the_index() {
    let before = numbers(FieldKind::Long, "a");
    let request = SearchRequest::new(Query::MatchAll)
        .sorted(vec![Sort::field("n", false)])
        .page_size(3);
    let composite = |after: Option<String>| {
        let numbers = souk_index::Aggregation::Composite {
            sources: vec![souk_index::CompositeSource {
                field: "n".to_owned(),
                kind: souk_index::SourceKind::Terms,
                descending: false,
                include_missing: true,
                missing: None,
            }],
            size: 3,
            after,
            aggregations: Vec::new(),
        };
        SearchRequest::new(Query::MatchAll)
            .page_size(0)
            .aggregations(vec![("numbers".to_owned(), numbers)])
    };
    let token = find(&before.searcher(), &request).next_page_token;
    let groups = find(&before.searcher(), &composite(None)).aggregations;
    let [(_, souk_index::AggregationResult::Groups { next_page_token, .. })] = groups.as_slice() else {
        panic!("{groups:?}");
    };
    let nexts = [
        request.clone().after(token.clone()),
        composite(next_page_token.clone()),
    ];
    for (kind, label) in [
        (FieldKind::Double, "a"),
        (FieldKind::Date, "a"),
        (FieldKind::Long, "b"),
        (FieldKind::Long, "a"),
    ] {
        let is_same = (&kind, label) == (&FieldKind::Long, "a");
        let after = numbers(kind, label);
        for next in &nexts {
            let found = after.searcher().search(next, &Cancellation::none());
            match found {
                Ok(found) if is_same => {
                    let expected = find(&before.searcher(), next);
                    assert_eq!(
                        (found.hits, found.aggregations),
                        (expected.hits, expected.aggregations)
                    );
                }
                Err(Error::PageTokenInvalid { detail }) if !is_same => {
                    assert!(detail.contains("redesigned"), "{detail}");
                }
                other => panic!("{label}: {other:?}"),
            }
        }
    }
}

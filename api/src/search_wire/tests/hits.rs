//! What a search shows of its hits: collapse, inner hits, kept views, profiles.

use std::time::Duration;

use souk_index::{InnerHit, InnerHitList, InnerHits, Profile, ProfileNode, ProfiledSegment, SegmentAccess};

use super::*;
use crate::search_wire::{InnerSorts, inner_hits, profile};
use souk_engine::SearchProfile;

fn nested(asked: pb::InnerHits) -> pb::Search {
    asked_nested(vec![asked])
}

fn asked_nested(asked: Vec<pb::InnerHits>) -> pb::Search {
    let clause = |inner_hits: pb::InnerHits| {
        query(Kind::Nested(Box::new(pb::NestedQuery {
            path: "tags".to_owned(),
            query: Some(Box::new(term("tags.tag", text("a")))),
            inner_hits: Some(inner_hits),
            ..pb::NestedQuery::default()
        })))
    };
    asked_bool(asked.into_iter().map(clause).collect())
}

fn asked_bool(must: Vec<pb::Query>) -> pb::Search {
    asked(Kind::Bool(pb::BoolQuery {
        must,
        ..pb::BoolQuery::default()
    }))
}

fn by_score() -> pb::Sort {
    pb::Sort {
        kind: Some(sort::Kind::Field(pb::FieldSort {
            field: "tags.score".to_owned(),
            descending: true,
            ..pb::FieldSort::default()
        })),
    }
}

/// What the only clause shows of its objects.
fn shown(search: pb::Search) -> (InnerHits, InnerSorts) {
    let read = read_ok(search);
    match read.request.query {
        Query::Bool { must, .. } => match must.into_iter().next() {
            Some(Query::Nested {
                inner_hits: Some(shown),
                ..
            }) => (shown, read.inner_sorts),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn inner_hits_have_the_size_order_and_name_that_were_asked_for() {
    let (plain, sorts) = shown(nested(pb::InnerHits::default()));
    assert_eq!(plain, InnerHits::default());
    assert_eq!(sorts, InnerSorts::from([("tags".to_owned(), Vec::new())]));
    let (all, sorts) = shown(nested(pb::InnerHits {
        sort: vec![by_score()],
        size: 100,
        offset: 7,
        name: "best".to_owned(),
    }));
    let order = vec![Sort::field("tags.score", true)];
    let expected = InnerHits {
        name: Some("best".to_owned()),
        sort: order.clone(),
        size: 100,
        offset: 7,
    };
    assert_eq!(all, expected);
    assert_eq!(sorts, InnerSorts::from([("best".to_owned(), order)]));
}

#[test]
fn limits_of_inner_hits_are_named_by_their_path() {
    let path = |part: &str| format!("search.query.bool.must[0].nested.inner_hits.{part}");
    let large = pb::InnerHits {
        size: 101,
        ..pb::InnerHits::default()
    };
    refuses(nested(large), "INVALID_QUERY", &[&path("size")]);
    let many = pb::InnerHits {
        sort: vec![by_score(); 33],
        ..pb::InnerHits::default()
    };
    refuses(nested(many), "INVALID_QUERY", &[&path("sort")]);
    let nothing = pb::InnerHits {
        sort: vec![pb::Sort::default()],
        ..pb::InnerHits::default()
    };
    refuses(nested(nothing), "INVALID_QUERY", &[&path("sort[0]")]);
}

#[test]
fn inner_hits_of_a_hit() {
    let hit = InnerHit {
        offset: 3,
        outer_offsets: vec![1, 2],
        score: 0.5,
        sort_values: vec![SortValue::Double(0.25), SortValue::Double(0.5)],
    };
    let list = InnerHitList {
        total: 9,
        hits: vec![hit],
    };
    let orders = vec![Sort::field("tags.score", true), Sort::Score { ascending: false }];
    let sorts = InnerSorts::from([("tags".to_owned(), orders)]);
    let lists = inner_hits(&[("tags".to_owned(), list)], &sorts);
    let value = |kind| pb::SortValue { kind: Some(kind) };
    let expected = pb::InnerHit {
        offset: 3,
        score: 0.5,
        outer_offsets: vec![1, 2],
        sort_values: vec![
            value(pb::sort_value::Kind::Value(super::value(
                value::Kind::DoubleValue(0.25),
            ))),
            value(pb::sort_value::Kind::Score(0.5)),
        ],
    };
    assert_eq!(
        (lists["tags"].total, &lists["tags"].hits[..]),
        (9, &[expected][..])
    );
}

#[test]
fn a_collapse_has_a_field() {
    let collapsed = |field: &str| pb::Search {
        collapse: Some(pb::Collapse {
            field: field.to_owned(),
        }),
        ..pb::Search::default()
    };
    assert_eq!(
        read_ok(collapsed("type")).request.collapse.as_deref(),
        Some("type")
    );
    refuses(collapsed(""), "INVALID_ARGUMENT", &["search.collapse.field"]);
}

#[test]
fn a_view_is_kept_for_a_time_within_bounds() {
    let kept = |seconds, nanos| pb::Search {
        keep_view: Some(prost_types::Duration { seconds, nanos }),
        ..pb::Search::default()
    };
    assert_eq!(read_ok(pb::Search::default()).keep_view, None);
    assert_eq!(read_ok(kept(300, 0)).keep_view, Some(Duration::from_secs(300)));
    for (seconds, nanos) in [(0, 0), (-1, 0), (300, 1), (i64::MAX, 0), (1, -1)] {
        refuses(kept(seconds, nanos), "INVALID_ARGUMENT", &["search.keep_view"]);
    }
}

#[test]
fn a_profile_tells_steps_segments_and_clauses() {
    let clause = |kind, children| ProfileNode {
        kind,
        description: "words".to_owned(),
        candidates: 7,
        time: Duration::from_micros(3),
        opened: 2,
        children,
    };
    let tree = clause("bool", vec![clause("term", Vec::new())]);
    let inside = Profile {
        query: tree.clone(),
        segments: [
            SegmentAccess::PassedOver,
            SegmentAccess::Counted,
            SegmentAccess::BestValues,
            SegmentAccess::AllMatches(5),
        ]
        .map(|access| ProfiledSegment {
            documents: 11,
            deleted: 1,
            access,
            time: Duration::from_micros(4),
            query: tree.clone(),
        })
        .into(),
        plan: Duration::from_micros(20),
        search: Duration::from_micros(30),
        aggregate: Duration::from_micros(40),
        peak_bytes: 60,
        inner_hits: Duration::from_micros(50),
    };
    let ran = SearchProfile {
        index: inside,
        waited: Duration::from_micros(1),
        searched: Duration::from_micros(150),
        fetched: Duration::from_micros(2),
    };
    let told = profile(&ran);
    assert_eq!(
        (
            [
                told.wait_micros,
                told.plan_micros,
                told.search_micros,
                told.fetch_micros
            ],
            [told.find_micros, told.aggregate_micros, told.inner_hits_micros]
        ),
        ([1, 20, 150, 2], [30, 40, 50])
    );
    let query = told.query.expect("a query");
    assert_eq!(
        (query.kind.as_str(), query.children[0].kind.as_str()),
        ("bool", "term")
    );
    assert_eq!((query.candidates, query.micros, query.opened), (7, 3, 2));
    let access: Vec<_> = told
        .segments
        .iter()
        .map(|segment| (segment.access(), segment.matches))
        .collect();
    let expected = [
        (pb::SegmentAccess::PassedOver, 0),
        (pb::SegmentAccess::Counted, 0),
        (pb::SegmentAccess::BestValues, 0),
        (pb::SegmentAccess::AllMatches, 5),
    ];
    assert_eq!(access, expected);
    let segment = &told.segments[0];
    assert_eq!(
        (segment.documents, segment.deleted_documents, segment.micros),
        (11, 1, 4)
    );
    assert!(segment.query.is_some());
}

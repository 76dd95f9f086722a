//! Orders of hits, pages of them, and groups of which one is a hit.

use souk_index::{
    ArrayMode, Cancellation, GeoPoint, Index, Missing, NestedSort, Query, SearchRequest, Sort, limits,
};

use super::asked::{
    Bomb,
    Expected::{Done, Either, Refused},
};

/// So many keys, by one field after the other.
pub(super) fn keys(count: usize) -> Vec<Sort> {
    let fields = ["kind", "price", "at", "n", "words"];
    (0..count)
        .map(|nth| Sort::field(fields[nth % 5], nth % 2 == 0))
        .collect()
}

fn everything(sort: Vec<Sort>) -> SearchRequest {
    SearchRequest::new(Query::MatchAll)
        .sorted(sort)
        .page_size(limits::MAX_PAGE_SIZE)
}

/// The distance to the nearest of so many points.
fn distance(points: u8, descending: bool) -> Sort {
    let point = |nth: u8| GeoPoint::new(f64::from(nth) / 2.0, f64::from(nth)).expect("in range");
    Sort::GeoDistance {
        field: "spot".to_owned(),
        points: (0..points).map(point).collect(),
        descending,
    }
}

pub(super) fn orders() -> Vec<Bomb> {
    let nested = |pattern: &str| Sort::Field {
        field: "items.qty".to_owned(),
        descending: true,
        mode: Some(ArrayMode::Sum),
        missing: Missing::First,
        nested: Some(NestedSort {
            path: "items".to_owned(),
            filter: Some(Query::wildcard("items.sku", pattern)),
        }),
    };
    let (score, key) = (
        Sort::Score { ascending: true },
        Sort::PrimaryKey { descending: true },
    );
    let behind = |sort: Vec<Sort>| SearchRequest {
        skip: limits::MAX_SKIP,
        ..everything(sort)
    };
    let skipping = behind(keys(3));
    let mut beyond = skipping.clone();
    beyond.skip += 1;
    vec![
        ("32 keys", everything(keys(32)), Either("MAX_SORTS")),
        (
            "33 keys",
            everything(keys(limits::MAX_SORTS + 1)),
            Refused("MAX_SORTS"),
        ),
        ("8 keys over everything", everything(keys(8)), Done),
        (
            "page behind 100,000 hits by 32 keys",
            behind(keys(32)),
            Refused("MAX_SEARCH_BYTES"),
        ),
        (
            "groups behind 100,000 hits by 32 keys",
            SearchRequest {
                collapse: Some("n".to_owned()),
                ..behind(keys(32))
            },
            Refused("MAX_SEARCH_BYTES"),
        ),
        ("page behind 100,000 hits", skipping, Done),
        ("page behind 100,001 hits", beyond, Refused("MAX_SKIP")),
        (
            "page of 1,000,000 hits",
            SearchRequest::new(Query::MatchAll).page_size(1_000_000),
            Refused("MAX_PAGE_SIZE"),
        ),
        (
            "page behind 100,000 hits, the worst scores first",
            SearchRequest {
                query: Query::match_text("text", "a b c"),
                ..behind(vec![score.clone(), key.clone()])
            },
            Done,
        ),
        (
            "page behind 100,000 hits, the last keys first",
            behind(vec![key.clone()]),
            Done,
        ),
        (
            "by 32 scores and keys",
            SearchRequest {
                query: Query::match_text("text", "a b c"),
                ..everything([score, key].into_iter().cycle().take(limits::MAX_SORTS).collect())
            },
            Done,
        ),
        (
            "by 32 attributes",
            everything(
                (0..limits::MAX_SORTS)
                    .map(|nth| Sort::field(["extra.part", "extra.code"][nth % 2], nth.is_multiple_of(3)))
                    .collect(),
            ),
            Done,
        ),
        (
            "by a sum over filtered objects",
            everything(vec![nested("*1*")]),
            Done,
        ),
        (
            "by 32 sums over filtered objects",
            everything(
                (0..limits::MAX_SORTS)
                    .map(|nth| nested(&format!("*{nth}*")))
                    .collect(),
            ),
            Either("DEADLINE"),
        ),
        (
            "distance to 100 points, the farthest first",
            everything(vec![distance(100, true)]),
            Done,
        ),
        (
            "distance to 101 points",
            everything(vec![distance(101, true)]),
            Refused("MAX_SORT_POINTS"),
        ),
        (
            "32 distances to 100 points",
            everything(
                (0..limits::MAX_SORTS)
                    .map(|nth| distance(100, nth.is_multiple_of(2)))
                    .collect(),
            ),
            Either("DEADLINE"),
        ),
    ]
}

/// The cheapest of each group, of which nearly every document is one.
fn cheapest() -> SearchRequest {
    SearchRequest {
        collapse: Some("n".to_owned()),
        ..everything(vec![Sort::field("price", false)])
    }
}

pub(super) fn groups() -> Vec<Bomb> {
    vec![
        (
            "groups behind 100,000 others",
            SearchRequest {
                skip: limits::MAX_SKIP,
                ..cheapest()
            },
            Done,
        ),
        (
            "the best of each group by scores of everything",
            SearchRequest {
                collapse: Some("kind".to_owned()),
                ..SearchRequest::new(Query::match_text("text", "a b c")).page_size(limits::MAX_PAGE_SIZE)
            },
            Done,
        ),
    ]
}

/// Pages behind as many groups as a token passes over, and behind one more.
pub(super) fn behind_groups(index: &Index) -> Vec<Bomb> {
    let behind = |passed: usize| {
        let last = SearchRequest {
            skip: passed - 1,
            ..cheapest().page_size(1)
        };
        let found = index.searcher().search(&last, &Cancellation::none());
        let token = found.expect("an answer").next_page_token;
        cheapest().after(Some(token.expect("there are more groups")))
    };
    vec![
        (
            "a token behind 100,000 groups",
            behind(limits::MAX_COLLAPSE_GROUPS),
            Done,
        ),
        (
            "a token behind 100,001 groups",
            behind(limits::MAX_COLLAPSE_GROUPS + 1),
            Refused("MAX_COLLAPSE_GROUPS"),
        ),
    ]
}

//! The objects of hits.

use souk_index::{InnerHits, Query, ScoreMode, SearchRequest, Sort, limits};

use super::asked::{
    Bomb,
    Expected::{Done, Either, Refused},
    any_of,
};

/// As many objects as a list may show, by as many keys as there may be.
fn most(nth: usize, field: &str) -> InnerHits {
    InnerHits {
        name: Some(format!("{field}{nth}")),
        sort: vec![Sort::field(field, nth.is_multiple_of(2)); limits::MAX_SORTS],
        size: limits::MAX_INNER_HITS,
        offset: 0,
    }
}

fn showing(path: &str, query: Query, inner_hits: InnerHits) -> Query {
    Query::Nested {
        path: path.to_owned(),
        query: Box::new(query),
        score_mode: ScoreMode::Avg,
        weight: 1.0,
        inner_hits: Some(inner_hits),
    }
}

pub(super) fn objects() -> Vec<Bomb> {
    let named = || Query::exists("parts.name");
    let shown = |nth: usize, query: Query| showing("parts", query, most(nth, "parts.name"));
    let several = |count: usize, list: &dyn Fn(usize) -> Query| {
        SearchRequest::new(any_of((0..count).map(list).collect())).page_size(60)
    };
    let lists = |query: &dyn Fn() -> Query| several(limits::MAX_INNER_HIT_LISTS, &|nth| shown(nth, query()));
    let behind = |offset: usize| {
        move |nth: usize| {
            let inner_hits = InnerHits {
                offset,
                ..most(nth, "parts.name")
            };
            showing("parts", Query::exists("parts.name"), inner_hits)
        }
    };
    // Two lists of each: parts by their scores, and the tags of all parts.
    let inside = |nth: usize| {
        let tags = showing(
            "parts.tags",
            Query::exists("parts.tags.name"),
            most(nth, "parts.tags.name"),
        );
        let parts = InnerHits {
            sort: vec![Sort::Score { ascending: true }; limits::MAX_SORTS],
            ..most(nth, "parts.name")
        };
        showing("parts", tags, parts)
    };
    let more = InnerHits {
        size: limits::MAX_INNER_HITS + 1,
        ..most(0, "parts.name")
    };
    vec![
        (
            "objects by 32 long keys",
            SearchRequest::new(shown(0, named())).page_size(1_000),
            Refused("MAX_SEARCH_BYTES"),
        ),
        (
            "16 lists of objects by 32 long keys",
            lists(&named),
            Refused("MAX_SEARCH_BYTES"),
        ),
        (
            "16 lists of objects with a phrase",
            lists(&|| Query::match_phrase("parts.title", "b a b a b a b a b a b a b a b a b")),
            Refused("MAX_SEARCH_BYTES"),
        ),
        (
            "16 lists of objects, and of objects inside them",
            several(limits::MAX_INNER_HIT_LISTS / 2, &inside),
            Either("MAX_SEARCH_BYTES"),
        ),
        (
            "16 lists of the last object by 32 long keys",
            several(limits::MAX_INNER_HIT_LISTS, &behind(super::LONG_ROWS.1 - 1)),
            Either("MAX_SEARCH_BYTES"),
        ),
        (
            "16 lists of objects behind all there are",
            several(limits::MAX_INNER_HIT_LISTS, &behind(usize::MAX)),
            Done,
        ),
        (
            "17 lists of objects",
            several(limits::MAX_INNER_HIT_LISTS + 1, &|nth| shown(nth, named())).page_size(10),
            Refused("MAX_INNER_HIT_LISTS"),
        ),
        (
            "101 objects of each hit",
            SearchRequest::new(showing("parts", named(), more)),
            Refused("MAX_INNER_HITS"),
        ),
        (
            "more objects than a page may show",
            lists(&named).page_size(1_000),
            Refused("MAX_PAGE_INNER_HITS"),
        ),
    ]
}

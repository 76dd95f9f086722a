//! Orders, pages, totals, columns, collapsing and highlights.

use bytes::Bytes;
use souk_tablestore::Value;
use souk_tablestore::messages::{
    self as pb, ColumnReturnType, FieldSort, MatchQuery, NestedFilter, QueryType, SearchQuery, SearchRequest,
    SortMode, SortOrder, Sorter,
};

use super::{
    INDEX, Shops, TABLE, all, by_field, by_price, cell, columns, everything, finding, ids, named, of, query,
    rows, sorted, term,
};
use crate::client::cells;
use prost::Message as _;

async fn in_order(shops: &mut Shops, sorter: Sorter) -> String {
    let search = SearchQuery {
        sort: sorted(sorter),
        ..all()
    };
    ids(&shops.search(search).await.expect("an answer"))
}

#[tokio::test]
async fn hits_are_in_the_order_that_is_asked_for() {
    let mut shops = Shops::open().await;
    let rating = |missing: Option<Bytes>| {
        by_field(FieldSort {
            field_name: named("rating"),
            order: Some(SortOrder::Desc.into()),
            missing_value: missing,
            ..FieldSort::default()
        })
    };
    let x = |mode: SortMode, filter: bool| {
        by_field(FieldSort {
            field_name: named("items.n"),
            order: Some(SortOrder::Desc.into()),
            mode: Some(mode.into()),
            nested_filter: filter.then(|| NestedFilter {
                path: named("items"),
                filter: Some(term("items.sku", "x")),
            }),
            ..FieldSort::default()
        })
    };
    let keys = Sorter {
        pk_sort: Some(pb::PrimaryKeySort {
            order: Some(SortOrder::Desc.into()),
        }),
        ..Sorter::default()
    };
    let near = Sorter {
        geo_distance_sort: Some(pb::GeoDistanceSort {
            field_name: named("place"),
            points: vec!["31.0,121.0".to_owned()],
            order: Some(SortOrder::Asc.into()),
            ..pb::GeoDistanceSort::default()
        }),
        ..Sorter::default()
    };
    let documents = Sorter {
        doc_sort: Some(pb::DocSort { order: None }),
        ..Sorter::default()
    };
    for (sorter, expected) in [
        (by_price(SortOrder::Asc), "abcde"),
        (by_price(SortOrder::Desc), "edcba"),
        (rating(None), "cabed"),
        (rating(of("_first")), "dcabe"),
        (rating(of("_last")), "cabed"),
        (rating(of(Value::Double(4.0))), "cadbe"),
        (x(SortMode::Max, true), "dabce"),
        (x(SortMode::Max, false), "dabce"),
        (x(SortMode::Min, false), "dbace"),
        (keys, "edcba"),
        (near, "dcbae"),
        (documents, "abcde"),
    ] {
        assert_eq!(in_order(&mut shops, sorter.clone()).await, expected, "{sorter:?}");
    }
    let elsewhere = by_field(FieldSort {
        missing_field: named("price"),
        field_name: named("rating"),
        ..FieldSort::default()
    });
    let said = shops
        .refused(SearchQuery {
            sort: sorted(elsewhere),
            ..all()
        })
        .await;
    assert!(said.contains("missing_field"), "{said}");
    shops.end().await;
}

#[tokio::test]
async fn ties_end_in_the_primary_key() {
    let mut shops = Shops::open().await;
    for disabled in [None, Some(false), Some(true)] {
        let by_type = by_field(FieldSort {
            field_name: named("type"),
            ..FieldSort::default()
        });
        let sort = pb::Sort {
            sorter: vec![by_type],
            disable_default_pk_sorter: disabled,
        };
        let search = SearchQuery {
            sort: Some(sort),
            ..all()
        };
        let found = shops.search(search).await.expect("an answer");
        assert_eq!(ids(&found), "ecdab", "{disabled:?}");
    }
    shops.end().await;
}

#[tokio::test]
async fn sorts_by_distance_are_to_the_nearest_point_on_the_sphere() {
    let mut shops = Shops::open().await;
    let near = |points: &[&str], sort: pb::GeoDistanceSort| Sorter {
        geo_distance_sort: Some(pb::GeoDistanceSort {
            field_name: named("place"),
            points: points.iter().map(|point| (*point).to_owned()).collect(),
            ..sort
        }),
        ..Sorter::default()
    };
    let (d, a) = ("31.0,121.0", "30.0,120.0");
    for (points, sort, expected) in [
        (vec![d], pb::GeoDistanceSort::default(), "dcbae"),
        (
            vec![d],
            pb::GeoDistanceSort {
                distance_type: Some(pb::GeoDistanceType::Plane.into()),
                ..pb::GeoDistanceSort::default()
            },
            "dcbae",
        ),
        (
            vec![d, a],
            pb::GeoDistanceSort {
                mode: Some(SortMode::Min.into()),
                ..pb::GeoDistanceSort::default()
            },
            "adbce",
        ),
    ] {
        let sorter = near(&points, sort);
        assert_eq!(in_order(&mut shops, sorter.clone()).await, expected, "{sorter:?}");
    }
    let of_objects = NestedFilter {
        path: named("items"),
        filter: Some(everything()),
    };
    let mode = |mode: SortMode| pb::GeoDistanceSort {
        mode: Some(mode.into()),
        ..pb::GeoDistanceSort::default()
    };
    let filtered = pb::GeoDistanceSort {
        nested_filter: Some(of_objects),
        ..pb::GeoDistanceSort::default()
    };
    for (sort, said) in [
        (
            mode(SortMode::Max),
            "Unsupported: sorts by another than the shortest of several distances.",
        ),
        (
            mode(SortMode::Avg),
            "Unsupported: sorts by another than the shortest of several distances.",
        ),
        (filtered, "Unsupported: nested filters of sorts by distance."),
    ] {
        let search = SearchQuery {
            sort: sorted(near(&[a], sort)),
            ..all()
        };
        assert_eq!(shops.refused(search).await, said);
    }
    shops.end().await;
}

#[tokio::test]
async fn pages_follow_each_other_by_tokens_that_have_the_order() {
    let mut shops = Shops::open().await;
    let page = |token: Option<Bytes>| SearchQuery {
        limit: Some(2),
        sort: token
            .is_none()
            .then(|| sorted(by_price(SortOrder::Desc)))
            .flatten(),
        token,
        ..all()
    };
    let first = shops.search(page(None)).await.expect("an answer");
    let second = shops
        .search(page(first.next_token.clone()))
        .await
        .expect("an answer");
    let third = shops
        .search(page(second.next_token.clone()))
        .await
        .expect("an answer");
    assert_eq!([ids(&first), ids(&second), ids(&third)], ["ed", "cb", "a"]);
    assert_eq!(third.next_token, None);
    // The same order again is no other.
    let again = SearchQuery {
        sort: sorted(by_price(SortOrder::Desc)),
        ..page(first.next_token.clone())
    };
    assert_eq!(ids(&shops.search(again).await.expect("an answer")), "cb");
    for (wrong, says) in [
        (
            SearchQuery {
                sort: sorted(by_price(SortOrder::Asc)),
                ..page(first.next_token.clone())
            },
            "Sort and token",
        ),
        (
            SearchQuery {
                offset: Some(1),
                ..page(first.next_token.clone())
            },
            "Offset and token",
        ),
        (
            SearchQuery {
                query: Some(term("type", "tea")),
                ..page(first.next_token.clone())
            },
            "Invalid token",
        ),
        (page(Some(Bytes::from_static(b"no token"))), "Invalid token"),
    ] {
        let said = shops.refused(wrong).await;
        assert!(said.contains(says), "{said}");
    }
    let skipping = SearchQuery {
        offset: Some(1),
        ..page(None)
    };
    assert_eq!(ids(&shops.search(skipping).await.expect("an answer")), "dc");
    for (limit, says) in [(-1, "negative"), (1_001, "1000")] {
        let said = shops
            .refused(SearchQuery {
                limit: Some(limit),
                ..all()
            })
            .await;
        assert!(said.contains(says), "{said}");
    }
    shops.end().await;
}

#[tokio::test]
async fn totals_are_counted_in_two_ways_or_not_at_all() {
    let mut shops = Shops::open().await;
    let tea = || finding(term("type", "tea"));
    for (search, total, hits) in [
        (tea(), -1, 2),
        (
            SearchQuery {
                get_total_count: Some(true),
                limit: Some(0),
                ..tea()
            },
            2,
            0,
        ),
        (
            SearchQuery {
                track_total_count: Some(i32::MAX),
                limit: Some(1),
                ..all()
            },
            5,
            1,
        ),
        (
            SearchQuery {
                track_total_count: Some(-1),
                ..tea()
            },
            -1,
            2,
        ),
        (
            SearchQuery {
                get_total_count: Some(true),
                track_total_count: Some(100),
                ..tea()
            },
            2,
            2,
        ),
    ] {
        let found = shops.search(search).await.expect("an answer");
        assert_eq!((found.total_hits, found.rows.len()), (Some(total), hits));
    }
    shops.end().await;
}

#[tokio::test]
async fn rows_have_the_columns_that_are_asked_for() {
    let mut shops = Shops::open().await;
    shops
        .put("f", vec![cell("price", 60_i64), cell("note", "not indexed")])
        .await;
    for (asked, expected) in [
        (None, Vec::new()),
        (columns(ColumnReturnType::None, &[]), Vec::new()),
        (
            columns(ColumnReturnType::Specified, &["price", "none"]),
            vec!["price"],
        ),
        (columns(ColumnReturnType::All, &[]), vec!["note", "price"]),
        (columns(ColumnReturnType::AllFromIndex, &[]), vec!["price"]),
    ] {
        let request = SearchRequest {
            table_name: named(TABLE),
            index_name: named(INDEX),
            columns_to_get: asked,
            search_query: Some(finding(term("price", 60_i64)).encode_to_vec().into()),
            routing_values: Vec::new(),
            timeout_ms: Some(60_000),
        };
        let found = shops.send(&request).await.expect("an answer");
        let [row] = rows(&found).try_into().expect("one row");
        let names: Vec<_> = cells(&row).into_iter().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(names, expected);
    }
    shops.end().await;
}

#[tokio::test]
async fn one_row_of_each_value_is_shown_where_rows_are_collapsed() {
    let mut shops = Shops::open().await;
    let found = shops
        .search(SearchQuery {
            sort: sorted(by_price(SortOrder::Asc)),
            collapse: Some(pb::Collapse {
                field_name: named("type"),
            }),
            get_total_count: Some(true),
            ..all()
        })
        .await
        .expect("an answer");
    assert_eq!((ids(&found).as_str(), found.total_hits), ("ace", Some(5)));
    shops.end().await;
}

#[tokio::test]
async fn collapsed_rows_come_in_pages_too() {
    let mut shops = Shops::open().await;
    let collapsed = |field: &str, token: Option<Bytes>| SearchQuery {
        limit: Some(2),
        sort: token
            .is_none()
            .then(|| sorted(by_price(SortOrder::Asc)))
            .flatten(),
        collapse: Some(pb::Collapse {
            field_name: named(field),
        }),
        token,
        ..all()
    };
    let first = shops.search(collapsed("type", None)).await.expect("an answer");
    let token = first.next_token.clone();
    assert!(token.is_some());
    let second = shops.search(collapsed("type", token)).await.expect("an answer");
    assert_eq!([ids(&first), ids(&second)], ["ac", "e"]);
    assert_eq!(second.next_token, None);
    for (field, says) in [
        ("tags", "`tags` is an array"),
        ("day", "`day` is DATE"),
        ("items.sku", "objects of `items`"),
    ] {
        let said = shops.refused(collapsed(field, None)).await;
        assert!(said.contains(says), "{said}");
    }
    shops.end().await;
}

#[tokio::test]
async fn a_page_whose_rows_are_too_large_ends_earlier_with_a_token() {
    let mut shops = Shops::open().await;
    let large = "x".repeat(1 << 20);
    for id in ["a", "b", "c", "d", "e"] {
        shops.put(id, vec![cell("text", large.as_str())]).await;
    }
    let mut pages = Vec::new();
    let mut token = None;
    loop {
        let search = SearchQuery {
            limit: Some(100),
            token,
            ..all()
        };
        let request = SearchRequest {
            table_name: named(TABLE),
            index_name: named(INDEX),
            columns_to_get: columns(ColumnReturnType::All, &[]),
            search_query: Some(search.encode_to_vec().into()),
            routing_values: Vec::new(),
            timeout_ms: None,
        };
        let found = shops.send(&request).await.expect("an answer");
        pages.push(ids(&found));
        token = found.next_token;
        if token.is_none() {
            break;
        }
    }
    // Of three a page would be larger than 3 MiB.
    assert_eq!(pages, ["ab", "cd", "e"]);
    shops.end().await;
}

#[tokio::test]
async fn what_matched_is_marked() {
    let mut shops = Shops::open().await;
    let tea = MatchQuery {
        field_name: named("name"),
        text: named("tea"),
        ..MatchQuery::default()
    };
    let marking = |field: &str, pre_tag: Option<&str>| pb::HighlightParameter {
        field_name: named(field),
        pre_tag: pre_tag.map(str::to_owned),
        ..pb::HighlightParameter::default()
    };
    let highlight = |parameters| {
        Some(pb::Highlight {
            highlight_parameters: parameters,
            highlight_encoder: None,
        })
    };
    let search = |parameters| SearchQuery {
        highlight: highlight(parameters),
        ..finding(query(QueryType::Match, &tea))
    };
    let found = shops
        .search(search(vec![marking("name", None)]))
        .await
        .expect("an answer");
    let marked = found.search_hits.iter().map(|hit| {
        let fields = &hit.highlight_result.as_ref().expect("marks").highlight_fields;
        assert_eq!(fields[0].field_name.as_deref(), Some("name"));
        fields[0].field_fragments.join("|")
    });
    let expected = [
        "milk <em>tea</em> house",
        "green <em>tea</em>",
        "<em>tea</em> cake",
    ];
    assert_eq!(marked.collect::<Vec<_>>(), expected);
    let different = vec![marking("name", None), marking("name", Some("<b>"))];
    let said = shops.refused(search(different)).await;
    assert!(said.contains("in different ways"), "{said}");
    shops.end().await;
}

#[tokio::test]
async fn a_search_that_names_a_sequence_sees_the_write() {
    let mut shops = Shops::open().await;
    for nth in 0..20_i64 {
        shops.put("z", vec![cell("price", 1_000 + nth)]).await;
        let found = shops
            .search(finding(term("price", 1_000 + nth)))
            .await
            .expect("an answer");
        assert_eq!(ids(&found), "z");
    }
    let everybody = shops.search(finding(everything())).await.expect("an answer");
    assert_eq!(ids(&everybody), "abcdez");
    shops.end().await;
}

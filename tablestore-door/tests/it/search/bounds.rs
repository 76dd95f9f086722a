//! Searches that ask for more than is done: refused with words, by a server that goes on.

use bytes::Bytes;
use prost::Message;
use souk_tablestore::messages::{
    self as pb, AggregationType, Aggregations, ColumnReturnType, FieldSort, GroupByType, GroupBys,
    HighlightParameter, NestedFilter, QueryType, SearchQuery, SearchRequest, SortOrder,
};

use super::aggregations::{figure, grouping};
use super::{
    INDEX, Shops, TABLE, all, by_field, by_price, cell, columns, everything, named, query, sorted, sorted_by,
};

/// The fields of a message around another, which is the field `outer`.
fn inside(outer: u32, inner: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(inner.len() + 16);
    prost::encoding::encode_key(outer, prost::encoding::WireType::LengthDelimited, &mut bytes);
    prost::encoding::encode_varint(inner.len() as u64, &mut bytes);
    bytes.extend_from_slice(inner);
    bytes
}

/// A sort by what a nested query matches, whose inner hits are sorted by such a sort, and so on: the stack of whoever goes down
/// there ends.
#[tokio::test]
async fn filters_of_sorts_have_no_inner_hits() {
    let mut shops = Shops::open().await;
    let mut sort = by_price(SortOrder::Asc).encode_to_vec();
    for _ in 0..20_000 {
        let nested = pb::NestedQuery {
            path: named("items"),
            query: Some(everything()),
            score_mode: None,
            weight: None,
            inner_hits: None,
        };
        // NestedQuery.inner_hits.sort.sorter
        let nested = [nested.encode_to_vec(), inside(5, &inside(1, &inside(1, &sort)))].concat();
        let filter = pb::Query {
            r#type: Some(QueryType::Nested.into()),
            query: Some(nested.into()),
        };
        sort = by_field(FieldSort {
            field_name: named("items.n"),
            nested_filter: Some(NestedFilter {
                path: named("items"),
                filter: Some(filter),
            }),
            ..FieldSort::default()
        })
        .encode_to_vec();
    }
    let sorter = pb::Sorter::decode(Bytes::from(sort)).expect("a sorter");
    let search = SearchQuery {
        sort: sorted(sorter),
        ..all()
    };
    assert_eq!(
        shops.refused(search).await,
        "Unsupported: inner hits in the filter of a sort."
    );
    assert_eq!(shops.ids(everything()).await, "abcde");
    shops.end().await;
}

/// The filters of sorts are trees of their own, which nothing else counts together.
#[tokio::test]
async fn sorts_and_their_filters_are_counted_first() {
    let mut shops = Shops::open().await;
    let many = SearchQuery {
        sort: sorted_by(vec![by_price(SortOrder::Asc); 33]),
        ..all()
    };
    assert_eq!(shops.refused(many).await, "The number of sorters exceeds 32.");
    let filtered = by_field(FieldSort {
        field_name: named("items.n"),
        nested_filter: Some(NestedFilter {
            path: named("items"),
            filter: Some(everything()),
        }),
        ..FieldSort::default()
    });
    // Two nested queries whose inner hits have half of the filters each, and the search one more.
    let sort = sorted_by(vec![filtered.clone(); 16]);
    let nested = query(
        QueryType::Nested,
        &pb::NestedQuery {
            path: named("items"),
            query: Some(everything()),
            score_mode: None,
            weight: None,
            inner_hits: Some(pb::InnerHits {
                sort,
                ..pb::InnerHits::default()
            }),
        },
    );
    let both = pb::BoolQuery {
        should_queries: vec![nested; 2],
        ..pb::BoolQuery::default()
    };
    let search = SearchQuery {
        query: Some(query(QueryType::Bool, &both)),
        sort: sorted_by(vec![filtered]),
        ..all()
    };
    assert_eq!(
        shops.refused(search).await,
        "The number of filters of all sorts exceeds 32."
    );
    shops.end().await;
}

#[tokio::test]
async fn highlights_and_columns_are_counted_first() {
    let mut shops = Shops::open().await;
    let parameter = HighlightParameter {
        field_name: named("name"),
        ..HighlightParameter::default()
    };
    let search = SearchQuery {
        highlight: Some(pb::Highlight {
            highlight_parameters: vec![parameter; 20_000],
            highlight_encoder: None,
        }),
        ..all()
    };
    assert_eq!(
        shops.refused(search).await,
        "The number of highlighted fields exceeds 10."
    );
    let request = SearchRequest {
        table_name: Some(TABLE.to_owned()),
        index_name: Some(INDEX.to_owned()),
        columns_to_get: columns(ColumnReturnType::Specified, &["price"; 1_025]),
        search_query: Some(all().encode_to_vec().into()),
        routing_values: Vec::new(),
        timeout_ms: None,
    };
    let refused = shops.send(&request).await.expect_err("too many columns");
    assert_eq!(refused.code, "OTSParameterInvalid", "{refused:?}");
    assert!(refused.message.contains("1025"), "{refused:?}");
    shops.end().await;
}

/// Five rows of 64 KiB are the first of each of twenty groups.
#[tokio::test]
async fn top_rows_of_all_groups_fit_into_an_answer() {
    let mut shops = Shops::open().await;
    for id in ["a", "b", "c", "d", "e"] {
        shops
            .put(id, vec![cell("text", "x".repeat(64 << 10).as_str())])
            .await;
    }
    let top = pb::TopRowsAggregation {
        limit: Some(5),
        sort: None,
    };
    let search = |groups: usize| {
        let filters = pb::GroupByFilter {
            filters: vec![everything(); groups],
            sub_aggs: Some(Aggregations {
                aggs: vec![figure("top", AggregationType::TopRows, &top)],
            }),
            sub_group_bys: None,
        };
        SearchRequest {
            table_name: Some(TABLE.to_owned()),
            index_name: Some(INDEX.to_owned()),
            columns_to_get: columns(ColumnReturnType::All, &[]),
            search_query: Some(
                SearchQuery {
                    limit: Some(0),
                    group_bys: Some(GroupBys {
                        group_bys: vec![grouping("all", GroupByType::Filter, &filters)],
                    }),
                    ..all()
                }
                .encode_to_vec()
                .into(),
            ),
            routing_values: Vec::new(),
            timeout_ms: None,
        }
    };
    shops.send(&search(5)).await.expect("1.6 MiB");
    let refused = shops.send(&search(20)).await.expect_err("6.4 MiB");
    assert!(
        refused.message.starts_with("The top rows of all groups have 655"),
        "{refused:?}"
    );
    shops.end().await;
}

//! Searches of tables: by the language of queries that all services share.

use std::collections::BTreeMap;

use souk_proto::search::v1::{
    Aggregation, FieldSort, HitsMode, IndexFieldType, MatchQuery, Query, Search, Sort, TermsAggregation,
    aggregation, aggregation_result, query, sort,
};
use souk_proto::table::v1::{SearchIndex, SearchRowsRequest, Table};
use tonic::Code;

use crate::{TestResult, bad_input, columns, create, field, int, notes, open, put, refusal, text};

fn search(search: Search) -> SearchRowsRequest {
    SearchRowsRequest {
        table: "notes".to_owned(),
        search: Some(search),
    }
}

fn by_size() -> Vec<Sort> {
    vec![Sort {
        kind: Some(sort::Kind::Field(FieldSort {
            field: "size".to_owned(),
            descending: true,
            ..FieldSort::default()
        })),
    }]
}

#[tokio::test]
async fn rows_are_found_sorted_paged_and_counted() -> TestResult {
    let (_running, mut client) = open().await?;
    let mut fields = notes().search_index.expect("an index").fields;
    fields.push(field("body", IndexFieldType::Text));
    let table = Table {
        search_index: Some(SearchIndex { fields }),
        ..notes()
    };
    create(&mut client, table).await?;
    let mut last = 0;
    for nth in 0..5 {
        let of = columns([
            ("size", int(nth)),
            ("word", text(if nth < 2 { "tea" } else { "coffee" })),
            (
                "body",
                text(if nth % 2 == 0 { "a red cup" } else { "a blue cup" }),
            ),
        ]);
        last = client.put_row(put("ann", nth, of)).await?.into_inner().sequence;
    }
    let of_red = Query {
        kind: Some(query::Kind::Match(MatchQuery {
            field: "body".to_owned(),
            text: "red".to_owned(),
            ..MatchQuery::default()
        })),
    };
    let words = Aggregation {
        kind: Some(aggregation::Kind::Terms(TermsAggregation {
            field: "word".to_owned(),
            ..TermsAggregation::default()
        })),
    };
    let asked = Search {
        query: Some(of_red),
        sort: by_size(),
        page_size: 2,
        min_sequence: last,
        aggregations: BTreeMap::from([("words".to_owned(), words)]),
        ..Search::default()
    };
    let page = client.search_rows(search(asked.clone())).await?.into_inner();
    let keys: Vec<_> = page
        .hits
        .iter()
        .map(|hit| hit.row.as_ref().expect("a row").key.clone())
        .collect();
    assert_eq!(keys, [vec![text("ann"), int(4)], vec![text("ann"), int(2)]]);
    assert!(page.hits.iter().all(|hit| hit.sort_values.len() == 1));
    let Some(aggregation_result::Kind::Groups(groups)) = &page.aggregations["words"].kind else {
        panic!("groups: {:?}", page.aggregations);
    };
    assert_eq!(
        groups.groups.iter().map(|group| group.count).collect::<Vec<_>>(),
        [2, 1]
    );
    let rest = Search {
        page_token: page.next_page_token,
        hits_mode: HitsMode::Keys.into(),
        ..asked
    };
    let page = client.search_rows(search(rest)).await?.into_inner();
    let hit = page.hits[0].row.as_ref().expect("a key");
    assert_eq!(
        (hit.key.as_slice(), hit.columns.is_empty()),
        (&[text("ann"), int(0)][..], true)
    );
    assert_eq!(page.next_page_token, "");
    Ok(())
}

#[tokio::test]
async fn a_search_that_cant_be_is_refused_with_its_path() -> TestResult {
    let (_running, mut client) = open().await?;
    create(&mut client, notes()).await?;
    let unknown = Search {
        sort: vec![Sort {
            kind: Some(sort::Kind::Field(FieldSort {
                field: "colour".to_owned(),
                ..FieldSort::default()
            })),
        }],
        ..Search::default()
    };
    let refused = client
        .search_rows(search(unknown))
        .await
        .expect_err("no such field");
    assert_eq!(
        bad_input::fields(&refused),
        ["search.sort[0].field.field"],
        "{refused}"
    );
    let ahead = Search {
        min_sequence: i64::MAX,
        ..Search::default()
    };
    let refused = refusal(client.search_rows(search(ahead)).await);
    assert_eq!(refused, (Code::OutOfRange, "SEQUENCE_AHEAD".to_owned()));
    let plain = Table {
        name: "plain".to_owned(),
        search_index: None,
        ..notes()
    };
    create(&mut client, plain).await?;
    let request = SearchRowsRequest {
        table: "plain".to_owned(),
        search: None,
    };
    let refused = refusal(client.search_rows(request).await);
    assert_eq!(refused, (Code::FailedPrecondition, "NOT_SEARCHED".to_owned()));
    Ok(())
}

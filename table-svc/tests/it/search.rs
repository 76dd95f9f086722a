//! Searches of tables: by the language of queries that all services share.

use std::collections::BTreeMap;

use prost::Message as _;
use prost_types::Timestamp;
use souk_proto::search::v1::{
    Aggregation, FieldSort, HitsMode, IndexFieldType, MatchQuery, NestedQuery, Query, Search, Sort,
    TermQuery, TermsAggregation, aggregation, aggregation_result, query, sort,
};
use souk_proto::table::v1::{GetTableRequest, PutRowRequest, SearchIndex, SearchRowsRequest, Table};
use souk_proto::r#type::v1::{Value, value};
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

/// Notes whose texts hold lists and objects, and times by formats of their own.
fn written() -> Table {
    let mut tags = field("tags", IndexFieldType::Keyword);
    (tags.array, tags.json) = (true, true);
    let mut day = field("day", IndexFieldType::Date);
    day.date_formats = vec!["yyyy/MM/dd".to_owned(), "epoch_second".to_owned()];
    let mut at = field("at", IndexFieldType::Date);
    at.date_formats = vec!["yyyy-MM-dd HH:mm".to_owned()];
    let mut steps = field("steps", IndexFieldType::Nested);
    (steps.array, steps.json) = (true, true);
    steps.fields = vec![at];
    Table {
        search_index: Some(SearchIndex {
            fields: vec![tags, day, steps],
        }),
        ..notes()
    }
}

fn term(field: &str, value: Value) -> Query {
    Query {
        kind: Some(query::Kind::Term(TermQuery {
            field: field.to_owned(),
            value: Some(value),
            ..TermQuery::default()
        })),
    }
}

fn time(seconds: i64) -> Value {
    Value {
        kind: Some(value::Kind::TimeValue(Timestamp { seconds, nanos: 0 })),
    }
}

#[tokio::test]
async fn a_table_made_from_what_is_told_finds_json_and_dates_alike() -> TestResult {
    /// 2021-02-03, and the day after.
    const DAYS: [i64; 2] = [1_612_310_400, 1_612_396_800];
    let (_running, mut client) = open().await?;
    create(&mut client, written()).await?;
    let named = GetTableRequest {
        table: "notes".to_owned(),
    };
    let told = client.get_table(named).await?.into_inner();
    let told = told.table.expect("the table");
    assert_eq!(told.search_index, written().search_index);
    let again = Table {
        name: "again".to_owned(),
        ..told
    };
    create(&mut client, again).await?;
    let step = NestedQuery {
        path: "steps".to_owned(),
        query: Some(Box::new(term("steps.at", time(DAYS[0] + 60)))),
        ..NestedQuery::default()
    };
    let step = Query {
        kind: Some(query::Kind::Nested(Box::new(step))),
    };
    for table in ["notes", "again"] {
        let mut last = 0;
        let first = columns([
            ("tags", text(r#"["red", "tea"]"#)),
            ("day", text("2021/02/03")),
            (
                "steps",
                text(r#"[{"at": "2021-02-03 00:00"}, {"at": "2021-02-03 00:01"}]"#),
            ),
        ]);
        let second = columns([
            ("tags", text(r#"["red"]"#)),
            ("day", int(DAYS[1])),
            ("steps", text(r#"{"at": "2021-02-03 00:02"}"#)),
        ]);
        for (number, of) in [(1, first), (2, second)] {
            let put = PutRowRequest {
                table: table.to_owned(),
                ..put("ann", number, of)
            };
            last = client.put_row(put).await?.into_inner().sequence;
        }
        for (query, number) in [
            (term("tags", text("tea")), 1),
            (term("day", time(DAYS[0])), 1),
            (term("day", time(DAYS[1])), 2),
            (step.clone(), 1),
        ] {
            let asked = Search {
                query: Some(query.clone()),
                min_sequence: last,
                ..Search::default()
            };
            let request = SearchRowsRequest {
                table: table.to_owned(),
                search: Some(asked),
            };
            let found = client.search_rows(request).await?.into_inner().hits;
            let keys: Vec<_> = found.into_iter().map(|hit| hit.row.expect("a row").key).collect();
            assert_eq!(keys, [vec![text("ann"), int(number)]], "{table}: {query:?}");
        }
    }
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

#[tokio::test]
async fn pages_of_rows_with_many_small_columns_fit_into_messages() -> TestResult {
    const ROWS: i64 = 300;
    let (_running, mut client) = open().await?;
    create(&mut client, notes()).await?;
    // The store keeps a small number in less than a message does.
    let narrow: BTreeMap<_, _> = (0..1_000).map(|nth| (format!("c{nth}"), int(-1))).collect();
    let mut last = 0;
    for nth in 0..ROWS {
        let written = client.put_row(put("ann", nth, narrow.clone())).await?;
        last = written.into_inner().sequence;
    }
    let mut asked = Search {
        page_size: 1_000,
        min_sequence: last,
        ..Search::default()
    };
    let (mut found, mut pages) = (0, 0);
    loop {
        let page = client.search_rows(search(asked.clone())).await?.into_inner();
        assert!(page.encoded_len() <= 3 << 20, "{}", page.encoded_len());
        found += page.hits.len();
        pages += 1;
        if page.next_page_token.is_empty() {
            break;
        }
        asked.page_token = page.next_page_token;
    }
    assert_eq!(found, 300);
    assert!(pages > 1);
    Ok(())
}

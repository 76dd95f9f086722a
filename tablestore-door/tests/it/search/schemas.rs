//! What tables and fields of an index are, how much of them there may be, and what of rows isn't found by them.

use bytes::Bytes;
use prost::Message as _;
use souk_tablestore::Value;
use souk_tablestore::messages::{
    self as pb, CreateSearchIndexRequest, CreateSearchIndexResponse, FieldSchema, FieldType, IndexSchema,
    IndexSetting, Query, QueryType, SearchQuery, SearchRequest, TableOptions,
};

use super::lifecycle::of_fields;
use super::{
    INDEX, Shops, TABLE, all, by_field, cell, field, finding, ids, named, query, schema, sorted, term,
    view_of,
};
use crate::client::{key, plain, update};
use crate::server::Server;

fn exists(field: &str) -> Query {
    let body = pb::ExistsQuery {
        field_name: named(field),
    };
    query(QueryType::Exists, &body)
}

fn nested(path: &str, inside: Query) -> Query {
    let body = pb::NestedQuery {
        path: named(path),
        query: Some(inside),
        score_mode: None,
        weight: None,
        inner_hits: None,
    };
    query(QueryType::Nested, &body)
}

/// A field in so many NESTED fields, each in the next.
fn levels(count: usize) -> FieldSchema {
    let innermost = field("n", FieldType::Long);
    (1..=count).rev().fold(innermost, |inside, level| FieldSchema {
        field_schemas: vec![inside],
        ..field(&format!("l{level}"), FieldType::Nested)
    })
}

/// The original wants one version, and of tables with a time to live that nothing is updated.
#[tokio::test]
async fn any_table_may_have_an_index() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    let table = pb::CreateTableRequest {
        table_options: Some(TableOptions {
            time_to_live: Some(86_400),
            max_versions: Some(3),
            allow_update: Some(true),
            ..TableOptions::default()
        }),
        ..plain(TABLE)
    };
    client.create(&table).await;
    let a = || key([("id", "a".into())]);
    for price in [10_i64, 20] {
        let put = client.put(TABLE, a(), vec![cell("price", price)]).await;
        put.expect("put");
    }
    let mut shops = Shops {
        server,
        client,
        sequence: 0,
    };
    // The table's time to live is the index's, too.
    let request = CreateSearchIndexRequest {
        table_name: TABLE.to_owned(),
        index_name: INDEX.to_owned(),
        schema: Some(of_fields(vec![field("price", FieldType::Long)])),
        source_index_name: None,
        time_to_live: Some(86_400),
    };
    let created: Result<CreateSearchIndexResponse, _> =
        shops.client.call("CreateSearchIndex", &request).await;
    created.expect("created");
    shops.sequence = shops.last_sequence().await;
    shops.built(INDEX).await;
    assert_eq!(shops.ids(term("price", 20_i64)).await, "a");
    let change = update(TABLE, a(), vec![cell("price", 30_i64)]);
    let updated: Result<pb::UpdateRowResponse, _> = shops.client.call("UpdateRow", &change).await;
    updated.expect("updated");
    shops.sequence = shops.last_sequence().await;
    // The newest version alone is found.
    for (price, found) in [(10_i64, ""), (20, ""), (30, "a")] {
        assert_eq!(shops.ids(term("price", price)).await, found, "{price}");
    }
    shops.end().await;
}

#[tokio::test]
async fn options_are_told_again_and_change_nothing() {
    let mut shops = Shops::open().await;
    let with_options = |field: FieldSchema| FieldSchema {
        index: Some(false),
        sort_and_agg: Some(false),
        store: Some(false),
        ..field
    };
    let name = FieldSchema {
        index_options: Some(pb::IndexOptions::Docs.into()),
        enable_highlighting: Some(false),
        ..with_options(field("name", FieldType::Text))
    };
    let schema = IndexSchema {
        index_setting: Some(IndexSetting {
            number_of_shards: Some(4),
            routing_fields: vec!["id".to_owned()],
            routing_partition_size: Some(2),
            enable_custom_column_version: Some(true),
        }),
        ..of_fields(vec![name, with_options(field("price", FieldType::Long))])
    };
    shops.create("options", schema.clone()).await.expect("created");
    shops.built("options").await;
    let described = shops.describe("options").await.expect("it");
    assert_eq!(described.schema, Some(schema));
    // Places of words, an order and marks, from whatever part of the rows.
    let phrase = pb::MatchPhraseQuery {
        field_name: named("name"),
        text: named("tea house"),
        weight: None,
        slop: None,
    };
    let by_price = pb::FieldSort {
        field_name: named("price"),
        order: Some(pb::SortOrder::Desc.into()),
        ..pb::FieldSort::default()
    };
    let marks = pb::HighlightParameter {
        field_name: named("name"),
        ..pb::HighlightParameter::default()
    };
    for (asked, expected) in [
        (query(QueryType::MatchPhrase, &phrase), "a"),
        (term("name", "tea"), "eba"),
        (term("price", 30_i64), "c"),
    ] {
        let search = SearchQuery {
            sort: sorted(by_field(by_price.clone())),
            highlight: Some(pb::Highlight {
                highlight_parameters: vec![marks.clone()],
                highlight_encoder: None,
            }),
            ..finding(asked)
        };
        let request = SearchRequest {
            table_name: named(TABLE),
            index_name: named("options"),
            columns_to_get: None,
            search_query: Some(search.encode_to_vec().into()),
            routing_values: vec![Bytes::from_static(b"elsewhere")],
            timeout_ms: None,
        };
        let found = shops.send(&request).await.expect("an answer");
        assert_eq!(ids(&found), expected);
        let is_marked = found.search_hits.iter().all(|hit| hit.highlight_result.is_some());
        assert!(is_marked || expected == "c", "{found:?}");
    }
    shops.end().await;
}

#[tokio::test]
async fn values_that_dont_fit_arent_found_and_the_rest_of_the_row_is() {
    let mut shops = Shops::open().await;
    let text = |length: usize| Value::from("x".repeat(length).as_str());
    let list = |length: usize| {
        let elements: Vec<String> = (0..length).map(|nth| format!("\"t{nth}\"")).collect();
        Value::from(format!("[{}]", elements.join(",")).as_str())
    };
    let objects = |length: usize| {
        let elements: Vec<String> = (0..length)
            .map(|nth| format!("{{\"n\":{}}}", 1_000 + nth))
            .collect();
        Value::from(format!("[{}]", elements.join(",")).as_str())
    };
    let binary = Value::Binary(Bytes::from_static(b"10"));
    for (id, column, value) in [
        ("k", "type", text(4_096)),
        ("l", "type", text(4_097)),
        ("m", "tags", list(257)),
        ("n", "items", objects(257)),
        ("p", "day", Value::from("1969-12-31")),
        ("q", "day", Value::from("2262-04-11")),
        ("r", "day", Value::from("2262-04-12")),
        ("s", "place", Value::from("90.1,0")),
        ("t", "open", Value::Integer(1)),
    ] {
        shops
            .put(id, vec![cell(column, value), cell("price", 7_i64)])
            .await;
    }
    let columns = ["type", "name", "rating", "open", "place", "day", "tags", "items"];
    let binaries = columns.map(|column| cell(column, binary.clone()));
    shops
        .put("u", [&binaries[..], &[cell("price", 7_i64)]].concat())
        .await;
    for (asked, expected) in [
        (term("price", 7_i64), "klmnpqrstu"),
        (exists("type"), "abcdek"),
        // Of an array and of objects the first 256.
        (term("tags", "t255"), "m"),
        (term("tags", "t256"), ""),
        (nested("items", term("items.n", 1_255_i64)), "n"),
        (nested("items", term("items.n", 1_256_i64)), ""),
        (exists("day"), "abcdepq"),
        // Before 1970 there are times, too.
        (term("day", "1969-12-31"), "p"),
        (exists("place"), "abcd"),
        (exists("open"), "abcd"),
        (exists("name"), "abcde"),
        (exists("rating"), "abce"),
        (exists("tags"), "abdm"),
        (exists("items"), "abdn"),
    ] {
        let found = SearchQuery {
            limit: Some(100),
            ..finding(asked.clone())
        };
        let found = shops.search(found).await.expect("an answer");
        assert_eq!(ids(&found), expected, "{asked:?}");
    }
    let said = shops.refused(finding(term("day", "2262-04-12"))).await;
    assert!(said.contains("none by its date formats"), "{said}");
    // A key of a STRING takes three bytes more.
    shops.put(&"k".repeat(997), vec![cell("price", 8_i64)]).await;
    assert_eq!(shops.ids(term("price", 8_i64)).await, "k".repeat(997));
    let longer = "k".repeat(998);
    let refused = shops
        .client
        .put(
            TABLE,
            key([("id", longer.as_str().into())]),
            vec![cell("price", 8_i64)],
        )
        .await;
    refused.expect_err("refused").is(
        400,
        "OTSParameterInvalid",
        "1001 exceeds MAX_DOCUMENT_KEY_BYTES, which is 1000.",
    );
    shops.end().await;
}

#[tokio::test]
async fn objects_are_found_five_levels_deep() {
    let mut shops = Shops::open().await;
    let value = r#"[{"l2":[{"l3":[{"l4":[{"l5":[{"n":7}]},{"l5":[{"n":8}]}]}]}]}]"#;
    shops.put("f", vec![cell("l1", value)]).await;
    // Single objects without a list.
    let value = r#"{"l2":{"l3":{"l4":{"l5":{"n":9}}}}}"#;
    shops.put("g", vec![cell("l1", value)]).await;
    shops
        .create("levels", of_fields(vec![levels(5)]))
        .await
        .expect("created");
    shops.built("levels").await;
    let innermost = "l1.l2.l3.l4.l5";
    let seven = nested(innermost, term("l1.l2.l3.l4.l5.n", 7_i64));
    let nine = nested(innermost, term("l1.l2.l3.l4.l5.n", 9_i64));
    let through_all = ["l1.l2.l3.l4", "l1.l2.l3", "l1.l2", "l1"]
        .iter()
        .fold(seven.clone(), |inside, path| nested(path, inside));
    for (asked, expected) in [(seven, "f"), (through_all, "f"), (nine, "g")] {
        let found = shops
            .search_of("levels", finding(asked))
            .await
            .expect("an answer");
        assert_eq!(ids(&found), expected);
    }
    shops.end().await;
}

#[tokio::test]
async fn a_schema_has_as_much_as_its_limits_allow() {
    let mut shops = Shops::open().await;
    let numbers = |count: usize| -> Vec<FieldSchema> {
        (0..count)
            .map(|nth| field(&format!("n{nth}"), FieldType::Long))
            .collect()
    };
    let day = |formats: Vec<String>| FieldSchema {
        date_formats: formats,
        ..field("day", FieldType::Date)
    };
    let formats = |count: usize| vec!["yyyy-MM-dd".to_owned(); count];
    let pattern = |bytes: usize| vec![format!("yyyy{}", "-".repeat(bytes - 4))];
    let items = |fields: Vec<FieldSchema>| FieldSchema {
        field_schemas: fields,
        ..field("items", FieldType::Nested)
    };
    let short_text = FieldSchema {
        text_similarity: Some(pb::TextSimilarity::ShortText.into()),
        ..field("name", FieldType::Text)
    };
    for (fields, says) in [
        (numbers(1_001), "1001 is above the limit MAX_FIELDS of 1000"),
        (
            vec![items(numbers(101))],
            "101 is above the limit MAX_NESTED_FIELDS of 100",
        ),
        (vec![levels(6)], "6 is above the limit MAX_NESTED_LEVELS of 5"),
        // What nobody could need isn't gone through to the end.
        (vec![levels(17)], "Fields are nested in more than 16 levels."),
        (
            vec![day(formats(17))],
            "The field 'day' has more than 16 date formats.",
        ),
        (vec![day(pattern(129))], "is no format of dates"),
        (vec![short_text], "Unsupported: other similarities than BM25"),
        (
            vec![items(vec![view_of("n", field("m", FieldType::Keyword))])],
            "Unsupported: virtual fields inside of NESTED fields, as 'm'.",
        ),
    ] {
        let said = shops.create_refused("none", of_fields(fields)).await;
        assert!(said.contains(says), "{said}");
    }
    let most = vec![
        items(numbers(100)),
        day(formats(16)),
        view_of(
            "day",
            FieldSchema {
                field_name: named("pattern"),
                ..day(pattern(128))
            },
        ),
    ];
    shops.create("most", of_fields(most)).await.expect("created");
    // With these two there are eight.
    for nth in 3..=8 {
        let of_price = of_fields(vec![field("price", FieldType::Long)]);
        let created = shops.create(&format!("index{nth}"), of_price).await;
        created.expect("created");
    }
    let said = shops.create_refused("ninth", schema()).await;
    assert_eq!(said, "9 exceeds MAX_SEARCH_INDEXES, which is 8.");
    assert_eq!(ids(&shops.search(all()).await.expect("an answer")), "abcde");
    shops.end().await;
}

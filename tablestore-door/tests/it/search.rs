//! Search indexes and searches, with answers that were worked out by hand from five shops.

mod aggregations;
mod bounds;
mod lifecycle;
mod limits;
mod python;
mod queries;
mod scans;
mod schemas;
mod scoring;
mod sorts;

use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use souk_engine::storage::PrimaryKey;
use souk_tablestore::messages::{
    self as pb, ColumnReturnType, ColumnsToGet, CreateSearchIndexRequest, CreateSearchIndexResponse,
    FieldSchema, FieldType, IndexSchema, Query, QueryType, SearchQuery, SearchRequest, SearchResponse, Sort,
    Sorter,
};
use souk_tablestore::plainbuffer::decode_row;
use souk_tablestore::{KeyElement, PlainCell, PlainRow, Value, variant};

use crate::client::{Client, Refused, answered, cell, key, plain};
use crate::server::Server;

/// What a shop is.
struct Shop {
    id: &'static str,
    cells: Vec<PlainCell>,
}

/// Their places: `b` is 111 m north of `a`, `c` 1.1 km.
fn shops() -> Vec<Shop> {
    let texts = |of: [&'static str; 5]| -> Vec<PlainCell> {
        let names = ["type", "name", "day", "tags", "items"];
        names
            .into_iter()
            .zip(of)
            .filter(|(_, text)| !text.is_empty())
            .map(|(name, text)| cell(name, text))
            .collect()
    };
    let shop = |id, of, more: Vec<PlainCell>| Shop {
        id,
        cells: [texts(of), more].concat(),
    };
    let double = |number: f64| cell("rating", Value::Double(number));
    let open = |truth: bool| cell("open", Value::Boolean(truth));
    vec![
        shop(
            "a",
            [
                "tea",
                "milk tea house",
                "2021-01-05",
                r#"["wifi","quiet"]"#,
                r#"[{"sku":"x","n":1},{"sku":"y","n":5}]"#,
            ],
            vec![
                cell("price", 10_i64),
                double(4.5),
                open(true),
                cell("place", "30.0,120.0"),
            ],
        ),
        shop(
            "b",
            [
                "tea",
                "green tea",
                "2021-01-20",
                r#"["wifi"]"#,
                r#"[{"sku":"y","n":2}]"#,
            ],
            vec![
                cell("price", 20_i64),
                double(3.5),
                open(false),
                cell("place", "30.001,120.0"),
            ],
        ),
        shop(
            "c",
            ["coffee", "coffee house", "2021-02-03", "[]", "[]"],
            vec![
                cell("price", 30_i64),
                double(5.0),
                open(true),
                cell("place", "30.01,120.0"),
            ],
        ),
        shop(
            "d",
            [
                "coffee",
                "red coffee",
                "2021-02-14",
                r#"["quiet"]"#,
                r#"[{"sku":"x","n":9}]"#,
            ],
            vec![cell("price", 40_i64), open(true), cell("place", "31.0,121.0")],
        ),
        shop(
            "e",
            ["cake", "tea cake", "2021-12-31", "", ""],
            vec![cell("price", 50_i64), double(2.0)],
        ),
    ]
}

fn field(name: &str, of: FieldType) -> FieldSchema {
    FieldSchema {
        field_name: Some(name.to_owned()),
        field_type: Some(of.into()),
        ..FieldSchema::default()
    }
}

fn view_of(source: &str, field: FieldSchema) -> FieldSchema {
    FieldSchema {
        is_virtual_field: Some(true),
        source_field_names: vec![source.to_owned()],
        ..field
    }
}

fn schema() -> IndexSchema {
    let fields = vec![
        field("id", FieldType::Keyword),
        field("type", FieldType::Keyword),
        field("name", FieldType::Text),
        view_of("name", field("name_all", FieldType::Keyword)),
        field("price", FieldType::Long),
        view_of("price", field("price_text", FieldType::Keyword)),
        field("rating", FieldType::Double),
        field("open", FieldType::Boolean),
        field("place", FieldType::GeoPoint),
        FieldSchema {
            date_formats: vec!["yyyy-MM-dd".to_owned()],
            ..field("day", FieldType::Date)
        },
        FieldSchema {
            is_array: Some(true),
            ..field("tags", FieldType::Keyword)
        },
        FieldSchema {
            field_schemas: vec![field("sku", FieldType::Keyword), field("n", FieldType::Long)],
            ..field("items", FieldType::Nested)
        },
    ];
    IndexSchema {
        field_schemas: fields,
        ..IndexSchema::default()
    }
}

/// The shops with their index, which has them all.
struct Shops {
    server: Server,
    client: Client,
    sequence: i64,
}

const TABLE: &str = "shops";
const INDEX: &str = "Shops_Index";
/// How long an index may take to be there.
const BUILT_MAX: Duration = Duration::from_secs(60);

impl Shops {
    async fn open() -> Self {
        let server = Server::start().await;
        let mut client = server.client("demo");
        client.create(&plain(TABLE)).await;
        for shop in shops() {
            client
                .put(TABLE, key([("id", shop.id.into())]), shop.cells)
                .await
                .expect("put");
        }
        let mut shops = Self {
            server,
            client,
            sequence: 0,
        };
        shops.create(INDEX, schema()).await.expect("created");
        shops.sequence = shops.last_sequence().await;
        shops.built(INDEX).await;
        shops
    }

    async fn create(&mut self, index: &str, schema: IndexSchema) -> Result<(), Refused> {
        let request = CreateSearchIndexRequest {
            table_name: TABLE.to_owned(),
            index_name: index.to_owned(),
            schema: Some(schema),
            source_index_name: None,
            time_to_live: Some(-1),
        };
        let created: Result<CreateSearchIndexResponse, _> =
            self.client.call("CreateSearchIndex", &request).await;
        created.map(drop)
    }

    /// Waits until an index answers.
    async fn built(&mut self, index: &str) {
        let asking = async {
            loop {
                let asked = self.search_of(index, all()).await;
                match asked {
                    Ok(_) => return,
                    Err(refused) => assert_eq!(refused.code, "OTSTableNotReady", "{refused:?}"),
                }
            }
        };
        tokio::time::timeout(BUILT_MAX, asking).await.expect("in time");
    }

    /// The last write of the engine.
    async fn last_sequence(&self) -> i64 {
        let table = self.server.engine.table("demo__shops").expect("the table");
        let key = PrimaryKey::string("a").expect("a key");
        table.get(&key, 0).await.expect("read").sequence
    }

    async fn put(&mut self, id: &str, cells: Vec<PlainCell>) {
        self.client
            .put(TABLE, key([("id", id.into())]), cells)
            .await
            .expect("put");
        self.sequence = self.last_sequence().await;
    }

    async fn search(&mut self, search: SearchQuery) -> Result<SearchResponse, Refused> {
        self.search_of(INDEX, search).await
    }

    async fn search_of(&mut self, index: &str, search: SearchQuery) -> Result<SearchResponse, Refused> {
        self.send(&SearchRequest {
            table_name: Some(TABLE.to_owned()),
            index_name: Some(index.to_owned()),
            columns_to_get: None,
            search_query: Some(search.encode_to_vec().into()),
            routing_values: Vec::new(),
            timeout_ms: None,
        })
        .await
    }

    /// Sends a search that includes all writes.
    async fn send(&mut self, request: &SearchRequest) -> Result<SearchResponse, Refused> {
        let mut sent = self
            .client
            .request("Search", request.encode_to_vec(), Duration::ZERO);
        sent.headers
            .insert("x-souk-min-sequence".to_owned(), self.sequence.to_string());
        answered(&self.client.send(&sent).await)
    }

    /// The ids of what a query finds, in the order of the keys.
    async fn ids(&mut self, query: Query) -> String {
        ids(&self.search(finding(query)).await.expect("an answer"))
    }

    async fn refused(&mut self, search: SearchQuery) -> String {
        let refused = self.search(search).await.expect_err("refused");
        assert_eq!(
            (refused.status, refused.code.as_str()),
            (400, "OTSParameterInvalid"),
            "{refused:?}"
        );
        refused.message
    }

    async fn end(self) {
        self.server.end().await;
    }
}

fn query(kind: QueryType, body: &impl Message) -> Query {
    Query {
        r#type: Some(kind.into()),
        query: Some(body.encode_to_vec().into()),
    }
}

fn finding(query: Query) -> SearchQuery {
    SearchQuery {
        query: Some(query),
        ..SearchQuery::default()
    }
}

fn everything() -> Query {
    query(QueryType::MatchAll, &pb::MatchAllQuery {})
}

fn all() -> SearchQuery {
    finding(everything())
}

fn of(value: impl Into<Value>) -> Option<Bytes> {
    Some(variant::encode(&value.into()))
}

fn named(name: &str) -> Option<String> {
    Some(name.to_owned())
}

fn term(field: &str, value: impl Into<Value>) -> Query {
    query(
        QueryType::Term,
        &pb::TermQuery {
            field_name: named(field),
            term: of(value),
            weight: None,
        },
    )
}

fn sorted(sorter: Sorter) -> Option<Sort> {
    sorted_by(vec![sorter])
}

fn sorted_by(sorter: Vec<Sorter>) -> Option<Sort> {
    Some(Sort {
        sorter,
        disable_default_pk_sorter: None,
    })
}

fn by_field(sort: pb::FieldSort) -> Sorter {
    Sorter {
        field_sort: Some(sort),
        ..Sorter::default()
    }
}

fn by_price(order: pb::SortOrder) -> Sorter {
    by_field(pb::FieldSort {
        field_name: named("price"),
        order: Some(order.into()),
        ..pb::FieldSort::default()
    })
}

/// The rows of an answer, each of which has a hit.
fn rows(found: &SearchResponse) -> Vec<PlainRow> {
    assert_eq!(found.rows.len(), found.search_hits.len());
    assert_eq!(found.is_all_succeeded, Some(true));
    found
        .rows
        .iter()
        .map(|row| decode_row(row.clone()).expect("a row"))
        .collect()
}

fn id(row: &PlainRow) -> String {
    match &row.key[0].value {
        KeyElement::String(id) => id.to_string(),
        other => panic!("{other:?}"),
    }
}

fn ids(found: &SearchResponse) -> String {
    rows(found).iter().map(id).collect()
}

fn columns(kind: ColumnReturnType, names: &[&str]) -> Option<ColumnsToGet> {
    Some(ColumnsToGet {
        return_type: Some(kind.into()),
        column_names: names.iter().map(|name| (*name).to_owned()).collect(),
    })
}

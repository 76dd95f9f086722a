//! Tables that users define, through the service behind all layers of a server.

#![expect(clippy::expect_used, reason = "a test fails by panicking, in its helpers too")]

mod backfill;
mod bad_input;
mod consumer_groups;
mod exports;
mod model;
mod owners;
mod ranges;
mod rows;
mod search;
mod streams;
mod tables;
mod transactions;

use std::collections::BTreeMap;

use souk_api::testing::{Running, serve};
use souk_chassis::server::Stack;
use souk_chassis::status;
use souk_proto::search::v1::{FieldDefinition, IndexFieldType};
use souk_proto::table::v1::table_service_client::TableServiceClient;
use souk_proto::table::v1::{
    CreateTableRequest, KeyColumn, KeyType, PutRowRequest, Row, SearchIndex, SecondaryIndex, Table,
};
use souk_proto::r#type::v1::{Value, value};
use souk_table_svc::TableServices;
use tonic::{Code, Response, Status};

type Client = TableServiceClient<Stack>;
type TestResult = Result<(), Box<dyn std::error::Error>>;

/// A service without tables, and its client.
async fn open() -> Result<(Running<TableServices>, Client), Box<dyn std::error::Error>> {
    let running = serve::<TableServices>().await?;
    let client = client(&running);
    Ok((running, client))
}

fn client(running: &Running<TableServices>) -> Client {
    TableServiceClient::new(running.stack.clone())
}

fn text(text: &str) -> Value {
    Value {
        kind: Some(value::Kind::StringValue(text.to_owned())),
    }
}

fn int(number: i64) -> Value {
    Value {
        kind: Some(value::Kind::IntValue(number)),
    }
}

fn double(number: f64) -> Value {
    Value {
        kind: Some(value::Kind::DoubleValue(number)),
    }
}

fn columns<const N: usize>(columns: [(&str, Value); N]) -> BTreeMap<String, Value> {
    columns.map(|(name, value)| (name.to_owned(), value)).into()
}

fn key_column(name: &str, kind: KeyType) -> KeyColumn {
    KeyColumn {
        name: name.to_owned(),
        r#type: kind.into(),
        auto_increment: false,
    }
}

fn field(name: &str, kind: IndexFieldType) -> FieldDefinition {
    FieldDefinition {
        field: name.to_owned(),
        r#type: kind.into(),
        ..FieldDefinition::default()
    }
}

/// Notes of people: a person, a number, and what is searched.
fn notes() -> Table {
    Table {
        name: "notes".to_owned(),
        key: vec![
            key_column("person", KeyType::String),
            key_column("number", KeyType::Integer),
        ],
        transactions: true,
        indexes: vec![SecondaryIndex {
            name: "by_size".to_owned(),
            columns: vec!["size".to_owned()],
            included: vec!["word".to_owned()],
            ..SecondaryIndex::default()
        }],
        search_index: Some(SearchIndex {
            fields: vec![
                field("person", IndexFieldType::Keyword),
                field("word", IndexFieldType::Keyword),
                field("size", IndexFieldType::Long),
            ],
        }),
        ..Table::default()
    }
}

async fn create(client: &mut Client, table: Table) -> Result<Table, Status> {
    let created = client
        .create_table(CreateTableRequest { table: Some(table) })
        .await?;
    Ok(created.into_inner().table.expect("the table"))
}

/// A put of a note.
fn put(person: &str, number: i64, of: BTreeMap<String, Value>) -> PutRowRequest {
    PutRowRequest {
        table: "notes".to_owned(),
        key: vec![text(person), int(number)],
        columns: of,
        ..PutRowRequest::default()
    }
}

/// A row without its revision.
fn row(key: Vec<Value>, columns: BTreeMap<String, Value>) -> Row {
    Row {
        key,
        columns,
        ..Row::default()
    }
}

fn without_revision(mut row: Row) -> Row {
    row.revision = 0;
    row
}

/// The code and the reason of a refusal.
fn refusal<T: std::fmt::Debug>(answer: Result<Response<T>, Status>) -> (Code, String) {
    let status = answer.expect_err("a refusal");
    (status.code(), status::reason(&status).expect("a reason"))
}

//! Orders as rows: of tables of users, and of the endpoint for Tablestore's own clients; and the tables that hold them.

use std::collections::BTreeMap;

use prost_types::Timestamp;
use souk_e2e::data::{self, SeededRandom};
use souk_proto::order::v1::Order;
use souk_proto::search::v1::{FieldDefinition, Index, SubFieldDefinition};
use souk_proto::table::v1::row_write::Operation;
use souk_proto::table::v1::{
    ColumnType, DefinedColumn, GetRowRequest, KeyColumn, KeyType, RowPut, RowWrite, SearchIndex,
    SecondaryIndex, Table,
};
use souk_proto::r#type::v1::Value;
use souk_proto::r#type::v1::value::Kind;
use souk_tablestore::{KeyElement, PlainCell, PlainRow, Value as PlainValue, messages, plainbuffer};

use super::SIGNED;

const KEY: &str = "order_id";
const TIMES: [&str; 4] = ["order_time", "pay_time", "create_time", "update_time"];

/// A table for orders: with all indexes that orders have, whose searched fields are these, or with none.
pub(super) fn table(name: &str, fields: Option<&Vec<FieldDefinition>>) -> Table {
    let by_consumer = SecondaryIndex {
        name: "by_consumer".to_owned(),
        columns: vec!["consumer_id".to_owned(), "order_time".to_owned()],
        ..SecondaryIndex::default()
    };
    Table {
        name: name.to_owned(),
        key: vec![KeyColumn {
            name: KEY.to_owned(),
            r#type: KeyType::String.into(),
            auto_increment: false,
        }],
        columns: TIMES
            .map(|name| DefinedColumn {
                name: name.to_owned(),
                r#type: ColumnType::Time.into(),
            })
            .to_vec(),
        indexes: fields.map(|_| by_consumer).into_iter().collect(),
        search_index: fields.map(|fields| SearchIndex {
            fields: fields.clone(),
        }),
        ..Table::default()
    }
}

/// The fields of an index, as they are defined for another one.
pub(super) fn fields(index: &Index) -> Vec<FieldDefinition> {
    let mut fields: Vec<FieldDefinition> = Vec::new();
    for field in &index.fields {
        match field.field.split_once('.') {
            None => fields.push(FieldDefinition {
                field: field.field.clone(),
                r#type: field.r#type,
                analyzer: field.analyzer.clone(),
                array: field.array,
                ..FieldDefinition::default()
            }),
            // One behind another is a view of that one.
            Some((_, name)) => fields.last_mut().into_iter().for_each(|of| {
                of.sub_fields.push(SubFieldDefinition {
                    name: name.to_owned(),
                    r#type: field.r#type,
                    analyzer: field.analyzer.clone(),
                });
            }),
        }
    }
    fields
}

pub(super) fn order(number: u64) -> Order {
    data::order(number, &mut SeededRandom::new(number))
}

pub(super) fn order_id(number: u64) -> String {
    format!("o{number:010}")
}

fn text_value(text: &str) -> Value {
    Value {
        kind: Some(Kind::StringValue(text.to_owned())),
    }
}

pub(super) fn key(id: &str) -> Vec<Value> {
    vec![text_value(id)]
}

pub(super) fn text(value: Option<&Value>) -> Option<String> {
    match value?.kind.as_ref()? {
        Kind::StringValue(text) => Some(text.clone()),
        _ => None,
    }
}

/// The columns that a row has of an order. The last three a service writes by itself.
pub(super) fn columns(order: &Order) -> BTreeMap<String, Value> {
    let text = |text: &String| Some(Kind::StringValue(text.clone()));
    let time = |time: &Option<Timestamp>| time.map(Kind::TimeValue);
    let columns = [
        ("consumer_id", text(&order.consumer_id)),
        ("consumer_name", text(&order.consumer_name)),
        ("salesperson_id", text(&order.salesperson_id)),
        ("salesperson_name", text(&order.salesperson_name)),
        ("product_id", text(&order.product_id)),
        ("product_name", text(&order.product_name)),
        ("product_brand", text(&order.product_brand)),
        ("product_type", text(&order.product_type)),
        ("order_time", time(&order.order_time)),
        ("pay_time", time(&order.pay_time)),
        ("paid", Some(Kind::BoolValue(order.paid))),
        ("unit_price_cents", order.unit_price_cents.map(Kind::IntValue)),
        ("quantity", Some(Kind::IntValue(order.quantity))),
        ("total_price_cents", order.total_price_cents.map(Kind::IntValue)),
        ("currency_code", text(&order.currency_code)),
        ("create_time", time(&order.order_time)),
        ("update_time", time(&order.order_time)),
        ("edition", Some(Kind::IntValue(1))),
    ];
    let there = columns.into_iter().filter(|(_, kind)| kind.is_some());
    there
        .map(|(name, kind)| (name.to_owned(), Value { kind }))
        .collect()
}

pub(super) fn row_write(order: &Order) -> RowWrite {
    RowWrite {
        operation: Some(Operation::Put(RowPut {
            key: key(&order.order_id),
            columns: columns(order),
            cells: Vec::new(),
        })),
        ..RowWrite::default()
    }
}

pub(super) fn get_row(table: &str, id: &str) -> GetRowRequest {
    GetRowRequest {
        table: table.to_owned(),
        key: key(id),
        ..GetRowRequest::default()
    }
}

/// The same columns for the endpoint, where times are numbers.
pub(super) fn cells(order: &Order) -> Vec<PlainCell> {
    let cells = columns(order).into_iter().filter_map(|(name, value)| {
        let value = match value.kind? {
            Kind::StringValue(text) => PlainValue::String(text.into()),
            Kind::IntValue(number) => PlainValue::Integer(number),
            Kind::DoubleValue(number) => PlainValue::Double(number),
            Kind::BoolValue(truth) => PlainValue::Boolean(truth),
            Kind::BytesValue(bytes) => PlainValue::Binary(bytes),
            Kind::TimeValue(at) => PlainValue::Integer(at.seconds * 1_000_000_000 + i64::from(at.nanos)),
        };
        Some(PlainCell::new(name, value))
    });
    cells.collect()
}

pub(super) fn plain_row(id: &str, cells: Vec<PlainCell>) -> PlainRow {
    PlainRow {
        key: vec![souk_tablestore::KeyColumn::new(KEY, KeyElement::from(id))],
        cells,
        ..PlainRow::default()
    }
}

pub(super) fn signed_put(order: &Order) -> messages::PutRowRequest {
    messages::PutRowRequest {
        table_name: SIGNED.to_owned(),
        row: plainbuffer::encode([&plain_row(&order.order_id, cells(order))]),
        condition: messages::Condition {
            row_existence: messages::RowExistenceExpectation::Ignore.into(),
            column_condition: None,
        },
        ..messages::PutRowRequest::default()
    }
}

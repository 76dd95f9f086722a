use std::collections::BTreeMap;

use bytes::Bytes;
use fastrand::Rng;
use prost::Message;
use prost_reflect::DescriptorPool;
use prost_types::Timestamp;

use super::{Row, RowWriter, ValueRef};
use crate::FILE_DESCRIPTOR_SET;
use crate::table::v1::Cell;
use crate::r#type::v1::{Value, value::Kind};

/// The message as prost generates it.
#[derive(Clone, PartialEq, Message)]
struct Generated {
    #[prost(message, repeated, tag = "1")]
    key: Vec<Value>,
    #[prost(btree_map = "string, message", tag = "2")]
    columns: BTreeMap<String, Value>,
    #[prost(message, repeated, tag = "3")]
    cells: Vec<Cell>,
    #[prost(int64, tag = "4")]
    revision: i64,
}

impl Generated {
    /// The same, written by hand.
    fn row(&self) -> Row {
        let Self {
            key,
            columns,
            cells,
            revision,
        } = self.clone();
        Row {
            key,
            columns,
            cells,
            revision,
            encoded: Bytes::new(),
        }
    }

    /// The same, encoded value by value.
    fn written(&self) -> Row {
        let mut writer = RowWriter::with_capacity(0);
        self.key.iter().for_each(|value| writer.key(borrowed(value)));
        for (name, value) in &self.columns {
            writer.column(name, borrowed(value));
        }
        for cell in &self.cells {
            let value = cell.value.as_ref().expect("a value");
            writer.cell(&cell.column, borrowed(value), cell.version.expect("a version"));
        }
        writer.finish(self.revision)
    }
}

fn borrowed(value: &Value) -> ValueRef<'_> {
    match value.kind.as_ref().expect("a kind") {
        Kind::StringValue(text) => ValueRef::String(text),
        Kind::IntValue(number) => ValueRef::Int(*number),
        Kind::DoubleValue(number) => ValueRef::Double(*number),
        Kind::BoolValue(truth) => ValueRef::Bool(*truth),
        Kind::BytesValue(bytes) => ValueRef::Bytes(bytes),
        Kind::TimeValue(time) => ValueRef::Time(*time),
    }
}

/// Lengths, and numbers, around those at which what is before them takes another byte.
fn any_length(random: &mut Rng) -> usize {
    match random.u8(..20) {
        0 => 0,
        1 => random.usize(110..140),
        2 => random.usize(16_360..16_400),
        _ => random.usize(..40),
    }
}

fn any_number(random: &mut Rng) -> i64 {
    match random.u8(..4) {
        0 => 0,
        1 => random.i64(..),
        _ => random.i64(-200..200),
    }
}

fn any_value(random: &mut Rng) -> Value {
    let kind = match random.u8(..6) {
        0 => Kind::StringValue("é".repeat(any_length(random))),
        1 => Kind::IntValue(any_number(random)),
        2 => Kind::DoubleValue([0.0, -0.0, 0.5, f64::MAX][random.usize(..4)]),
        3 => Kind::BoolValue(random.bool()),
        4 => Kind::BytesValue(vec![7; any_length(random)].into()),
        _ => Kind::TimeValue(Timestamp {
            seconds: any_number(random),
            nanos: random.i32(0..1_000_000_000),
        }),
    };
    Value { kind: Some(kind) }
}

fn any_name(random: &mut Rng) -> String {
    "n".repeat(any_length(random) % 200 + 1) + &random.u8(..).to_string()
}

fn any_row(random: &mut Rng) -> Generated {
    Generated {
        key: (0..random.usize(..4)).map(|_| any_value(random)).collect(),
        columns: (0..random.usize(..20))
            .map(|_| (any_name(random), any_value(random)))
            .collect(),
        cells: (0..random.usize(..6))
            .map(|_| Cell {
                column: any_name(random),
                value: Some(any_value(random)),
                version: Some(any_number(random)),
            })
            .collect(),
        revision: any_number(random).max(0),
    }
}

#[test]
fn a_row_is_encoded_as_prost_encodes_it() {
    let mut random = souk_seeds::random();
    for _ in 0..2_000 {
        let generated = any_row(&mut random);
        let expected = generated.encode_to_vec();
        for row in [generated.row(), generated.written()] {
            assert_eq!(row.encoded_len(), expected.len(), "{generated:?}");
            assert_eq!(row.encode_to_vec(), expected, "{generated:?}");
        }
        let received = Row::decode(&*expected).expect("a row");
        assert_eq!(received, generated.row());
        for value in &generated.key {
            assert_eq!(Value::from(borrowed(value)), *value);
        }
    }
}

#[test]
fn what_a_newer_contract_adds_to_a_row_is_skipped() {
    let mut random = souk_seeds::random();
    let generated = any_row(&mut random);
    let mut encoded = generated.encode_to_vec();
    // Field 15, a number.
    encoded.extend([15_u8 << 3, 1]);
    assert_eq!(Row::decode(&*encoded).expect("a row"), generated.row());
    assert!(
        Row::decode(&[1_u8 << 3, 1][..]).is_err(),
        "a key that is a number"
    );
}

/// Numbers, types, which are repeated, and which are set by turns: what is written by hand stands by all of them.
#[test]
fn a_row_has_the_fields_of_the_contract() {
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("descriptors decode");
    let fields = |message: &str| -> Vec<String> {
        let message = pool.get_message_by_name(message).expect(message);
        let fields = message.fields().map(|field| {
            let (cardinality, kind) = (field.cardinality(), field.kind());
            let oneof = field.containing_oneof();
            let of = oneof.map_or_else(String::new, |oneof| format!(" of {}", oneof.name()));
            let (name, number) = (field.name(), field.number());
            format!("{cardinality:?} {kind:?} {name} = {number}{of}")
        });
        fields.collect()
    };
    assert_eq!(
        fields("souk.table.v1.Row"),
        [
            "Repeated souk.type.v1.Value key = 1",
            "Repeated souk.table.v1.Row.ColumnsEntry columns = 2",
            "Repeated souk.table.v1.Cell cells = 3",
            "Optional int64 revision = 4",
        ]
    );
    assert_eq!(
        fields("souk.table.v1.Row.ColumnsEntry"),
        ["Optional string key = 1", "Optional souk.type.v1.Value value = 2",]
    );
    assert_eq!(
        fields("souk.table.v1.Cell"),
        [
            "Optional string column = 1",
            "Optional souk.type.v1.Value value = 2",
            "Optional int64 version = 3 of _version",
        ]
    );
    assert_eq!(
        fields("souk.type.v1.Value"),
        [
            "Optional string string_value = 1 of kind",
            "Optional int64 int_value = 2 of kind",
            "Optional double double_value = 3 of kind",
            "Optional bool bool_value = 4 of kind",
            "Optional bytes bytes_value = 5 of kind",
            "Optional google.protobuf.Timestamp time_value = 6 of kind",
        ]
    );
}

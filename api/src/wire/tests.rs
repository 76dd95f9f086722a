use std::collections::BTreeMap;

use prost::Message as _;
use prost_types::{FieldMask, Timestamp};
use souk_chassis::status::Violations;
use souk_engine::{Attributes, ColumnReader, Columns};
use souk_proto::r#type::v1::{Value, value::Kind};
use tonic_types::StatusExt as _;

use super::*;

/// The paths that were refused.
fn paths(violations: Violations) -> Vec<String> {
    let Err(status) = violations.into_result() else {
        return Vec::new();
    };
    let details = status.get_details_bad_request().expect("field violations");
    details
        .field_violations
        .into_iter()
        .map(|violation| violation.field)
        .collect()
}

#[test]
fn times_keep_every_nanosecond_of_the_range_and_refuse_the_rest() {
    for nanos in [
        i64::MIN,
        i64::MIN + 1,
        -1_000_000_001,
        -1,
        0,
        1,
        999_999_999,
        1_000_000_000,
        i64::MAX,
    ] {
        let mut violations = Violations::new();
        assert_eq!(time(&time_to_wire(nanos), "t", &mut violations), Some(nanos));
        assert!(violations.is_empty());
    }
    for (seconds, nanos) in [
        (i64::MAX, 0),
        (9_223_372_037, 0),
        (-9_223_372_038, 0),
        (0, -1),
        (0, 1_000_000_000),
    ] {
        let mut violations = Violations::new();
        assert_eq!(
            time(&Timestamp { seconds, nanos }, "t", &mut violations),
            None,
            "{seconds} {nanos}"
        );
        assert_eq!(paths(violations), ["t"]);
    }
}

#[test]
fn a_page_size_is_bounded_and_never_negative() {
    let mut violations = Violations::new();
    let mut size = |value| page_size(value, 10, 1_000, "page_size", &mut violations);
    assert_eq!(
        (size(0), size(1), size(1_000), size(i32::MAX)),
        (10, 1, 1_000, 1_000)
    );
    size(-1);
    assert_eq!(paths(violations), ["page_size"]);
}

#[test]
fn ids_are_printable_and_short() {
    for (id, wrong) in [
        ("o1", 0),
        ("奶茶 1", 0),
        ("", 1),
        ("a\nb", 1),
        (&*"x".repeat(128), 0),
        (&*"x".repeat(129), 1),
    ] {
        let mut violations = Violations::new();
        check_id(id, "order_id", &mut violations);
        assert_eq!(violations.len(), wrong, "{id:?}");
    }
}

#[test]
fn a_request_id_depends_on_the_request() {
    let mut violations = Violations::new();
    let text = "6f1c9a7e-0f0e-4c57-9d5c-3b8f6a2b1c4d";
    let mut id = |text: &str, seconds| {
        request_id(
            text,
            &Timestamp { seconds, nanos: 0 },
            "request_id",
            &mut violations,
        )
    };
    let one = id(text, 1).expect("a UUID");
    assert_eq!(id(text, 1), Some(one));
    assert_ne!(id(text, 2), Some(one));
    assert_eq!(id("", 1), None);
    assert_eq!(id("not a uuid", 1), None);
    assert_eq!(paths(violations), ["request_id"]);
}

#[test]
fn a_mask_names_what_changes() {
    let read = |paths: &[&str], violations: &mut Violations| {
        let mask = FieldMask {
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        };
        UpdateMask::from_wire(
            Some(&mask),
            &["name", "price"],
            &["etag"],
            "update_mask",
            violations,
        )
    };
    let mut violations = Violations::new();
    assert_eq!(read(&[], &mut violations), UpdateMask::Set);
    assert_eq!(read(&["*"], &mut violations), UpdateMask::All);
    let some = read(&["name", "etag"], &mut violations);
    assert!(some.takes("name", false) && !some.takes("price", true) && !some.takes("etag", true));
    assert!(violations.is_empty());
    read(&["nme"], &mut violations);
    read(&["*", "name"], &mut violations);
    assert_eq!(paths(violations), ["update_mask.paths[0]", "update_mask.paths"]);
}

#[test]
fn attributes_come_back_from_their_column_and_bad_ones_are_named() {
    let time = Timestamp { seconds: 1, nanos: 5 };
    let kinds = [
        ("a", Kind::StringValue("red".to_owned())),
        ("b", Kind::IntValue(-7)),
        ("c", Kind::DoubleValue(0.0)),
        ("d", Kind::BoolValue(false)),
        ("e", Kind::BytesValue(vec![1].into())),
        ("f", Kind::TimeValue(time)),
        ("g", Kind::TimeValue(Timestamp::default())),
        ("h", Kind::StringValue(String::new())),
    ];
    let entries = kinds.map(|(name, kind)| (name.to_owned(), Value { kind: Some(kind) }));
    let good = BTreeMap::from(entries);
    let mut violations = Violations::new();
    let read = attributes(&good, "attributes", &mut violations);
    assert!(violations.is_empty());
    let columns = read.to_column(Columns::new(), "attributes");
    let columns = ColumnReader::of_columns(&columns);
    assert_eq!(
        Attributes::from_column(&columns, "attributes").as_ref(),
        Ok(&read)
    );
    // The engine encodes them as the contract's messages are: stores that a library wrote stay readable.
    let message: AttributesColumn = message_of_column(&columns, "attributes").expect("a message");
    assert_eq!(message.entries, good);
    assert_eq!(
        columns.message("attributes").expect("a message"),
        message.encode_to_vec()
    );
    assert_eq!(attributes_to_wire(read), good);

    let bad = BTreeMap::from([
        ("none".to_owned(), Value { kind: None }),
        (
            "big".to_owned(),
            Value {
                kind: Some(Kind::StringValue("x".repeat(5_000))),
            },
        ),
    ]);
    assert_eq!(
        attributes(&bad, "attributes", &mut violations),
        Attributes::default()
    );
    assert_eq!(paths(violations), ["attributes[\"big\"]", "attributes[\"none\"]"]);
}

/// How attributes stand in their column.
#[derive(Clone, PartialEq, prost::Message)]
struct AttributesColumn {
    #[prost(btree_map = "string, message", tag = "1")]
    entries: BTreeMap<String, Value>,
}

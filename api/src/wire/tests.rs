use std::collections::BTreeMap;

use prost_types::{FieldMask, Timestamp};
use souk_chassis::status::{FieldPath, Violations};
use souk_engine::{Attributes, ColumnReader, Columns};
use souk_proto::shop::v1::GetShopRequest;
use souk_proto::r#type::v1::{GeoPoint, Value, value::Kind};
use tonic::Request;
use tonic_types::StatusExt as _;

use super::*;
use crate::error::Error;

/// The paths that were refused.
fn paths(violations: Violations) -> Vec<String> {
    let Err(status) = violations.into_result("INVALID_ARGUMENT") else {
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
        assert_eq!(time(&time_to_wire(nanos)), Some(nanos));
    }
    for (seconds, nanos) in [
        (i64::MAX, 0),
        (9_223_372_037, 0),
        (-9_223_372_038, 0),
        (0, -1),
        (0, 1_000_000_000),
    ] {
        assert_eq!(time(&Timestamp { seconds, nanos }), None, "{seconds} {nanos}");
    }
}

#[test]
fn the_rule_of_times_ends_where_they_can_be_kept() {
    let broken = |seconds, nanos| {
        let time = Timestamp { seconds, nanos };
        let value = Value {
            kind: Some(Kind::TimeValue(time)),
        };
        !broken(&value, &FieldPath::root("v")).is_empty()
    };
    let (first, last) = (time_to_wire(i64::MIN), time_to_wire(i64::MAX));
    assert!(!broken(first.seconds, first.nanos) && !broken(last.seconds, last.nanos));
    assert!(broken(first.seconds, first.nanos - 1) && broken(last.seconds, last.nanos + 1));
}

#[test]
fn a_page_size_is_bounded() {
    let size = |value| page_size(value, 10, 1_000);
    assert_eq!(
        (size(0), size(1), size(1_000), size(i32::MAX)),
        (10, 1, 1_000, 1_000)
    );
}

#[test]
fn a_request_id_depends_on_the_request() {
    let text = "6f1c9a7e-0f0e-4c57-9d5c-3b8f6a2b1c4d";
    let id = |text: &str, seconds| request_id(text, &Timestamp { seconds, nanos: 0 });
    let one = id(text, 1).expect("a UUID");
    assert_eq!(id(text, 1), Some(one));
    assert_ne!(id(text, 2), Some(one));
    assert_eq!(id("", 1), None);
    assert_eq!(id("not a uuid", 1), None);
}

#[test]
fn a_request_is_valid_or_refused_with_all_violations() {
    let request = |shop_id: &str, min_sequence| {
        Request::new(GetShopRequest {
            shop_id: shop_id.to_owned(),
            min_sequence,
        })
    };
    assert_eq!(valid(request("s", 1)).expect("valid").shop_id, "s");
    let Err(Error::Invalid(violations)) = valid(request("", -1)) else {
        panic!("an invalid request");
    };
    assert_eq!(paths(violations), ["shop_id", "min_sequence"]);
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
    let mut violations = Violations::default();
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
    let mut violations = Violations::default();
    check_attributes(&good, &FieldPath::root("attributes"), &mut violations);
    assert!(violations.is_empty());
    let encoded = attributes_to_column(&good);
    let columns = Columns::new().message("attributes", &encoded);
    let columns = ColumnReader::of_columns(&columns);
    assert_eq!(attributes_of_column(&columns, "attributes").as_ref(), Ok(&good));
    // The engine reads and writes the same bytes.
    let read = Attributes::from_column(&columns, "attributes").expect("attributes");
    let again = read.to_column(Columns::new(), "attributes");
    let again = ColumnReader::of_columns(&again);
    assert_eq!(again.message("attributes").expect("a message"), encoded);

    let big = Value {
        kind: Some(Kind::StringValue("x".repeat(5_000))),
    };
    let bad = BTreeMap::from([("big".to_owned(), big)]);
    let mut violations = Violations::default();
    let at = FieldPath::root("shop").field("attributes");
    check_attributes(&bad, &at, &mut violations);
    assert_eq!(paths(violations), ["shop.attributes[\"big\"]"]);
}

#[test]
fn objects_come_back_from_their_column_and_damaged_ones_dont() {
    for objects in [
        vec![],
        vec![
            GeoPoint {
                latitude: 1.5,
                longitude: 0.0,
            },
            GeoPoint::default(),
        ],
    ] {
        let columns = Columns::new().message("points", &objects_to_column(&objects));
        let columns = ColumnReader::of_columns(&columns);
        assert_eq!(objects_of_column(&columns, "points"), Ok(objects));
    }
    let columns = Columns::new().message("points", b"\x0a\x05abc");
    let damaged = objects_of_column::<GeoPoint>(&ColumnReader::of_columns(&columns), "points");
    assert!(damaged.is_err());
}

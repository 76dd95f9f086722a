use std::cmp::Ordering;
use std::ops::RangeBounds;

use super::*;

/// Integers and doubles in order; `=` marks what equals the one before.
fn numbers() -> Vec<(bool, QueryValue)> {
    let double = QueryValue::Double;
    let long = QueryValue::Integer;
    vec![
        (false, double(f64::MIN)),
        (false, double(-9_223_372_036_854_777_856.0)),
        (false, long(i64::MIN)),
        (true, double(-9_223_372_036_854_775_808.0)),
        (false, long(i64::MIN + 1)),
        (false, long(-9_007_199_254_740_993)),
        (false, double(-9_007_199_254_740_992.0)),
        (true, long(-9_007_199_254_740_992)),
        (false, long(-16)),
        (false, long(-1)),
        (false, double(-0.5)),
        (false, double(-f64::MIN_POSITIVE)),
        (false, double(-0.0)),
        (true, double(0.0)),
        (true, long(0)),
        (false, double(5e-324)),
        (false, double(0.1)),
        (false, long(1)),
        (true, double(1.0)),
        (false, double(1.0 + f64::EPSILON)),
        (false, long(2)),
        (false, long(9_007_199_254_740_992)),
        (true, double(9_007_199_254_740_992.0)),
        (false, long(9_007_199_254_740_993)),
        (false, long(9_007_199_254_740_994)),
        (true, double(9_007_199_254_740_994.0)),
        (false, long(i64::MAX - 512)),
        (false, long(i64::MAX - 511)),
        (false, long(i64::MAX)),
        (false, double(9_223_372_036_854_775_808.0)),
        (false, double(f64::MAX)),
    ]
}

fn term(value: &QueryValue) -> String {
    query_term("k", value).1
}

#[test]
fn integers_and_doubles_are_in_one_exact_order() {
    let numbers = numbers();
    for pair in numbers.windows(2) {
        let [(_, one), (equal, other)] = pair else {
            panic!("windows of two")
        };
        let expected = if *equal { Ordering::Equal } else { Ordering::Less };
        assert_eq!(term(one).cmp(&term(other)), expected, "{one:?} {other:?}");
    }
}

#[test]
fn types_lie_behind_each_other_within_a_name() {
    let values = [
        QueryValue::Boolean(false),
        QueryValue::Boolean(true),
        QueryValue::Double(f64::MIN),
        QueryValue::Integer(7),
        QueryValue::Double(f64::MAX),
        QueryValue::Time(i64::MIN),
        QueryValue::Time(-1),
        QueryValue::Time(0),
        QueryValue::Time(16),
        QueryValue::Time(i64::MAX),
        QueryValue::from(""),
        QueryValue::from("7"),
        QueryValue::from("\u{10ffff}"),
        QueryValue::Bytes(vec![]),
        QueryValue::Bytes(vec![0]),
        QueryValue::Bytes(vec![0, 255]),
        QueryValue::Bytes(vec![1]),
    ];
    let terms: Vec<String> = values.iter().map(term).collect();
    assert!(terms.is_sorted_by(|one, other| one < other), "{terms:?}");
    for (value, term) in values.iter().zip(&terms) {
        let (of, _) = query_term("k", value);
        assert!(bounds("k").contains(term));
        assert!(first_of("k", of) <= *term && *term < behind_of("k", of));
        for other in ["", "j\u{10ffff}", "k.l", "kk", "k "] {
            assert!(!bounds(other).contains(term), "{term:?} is no value of {other:?}");
        }
    }
}

#[test]
fn values_come_back() {
    let back = |value: &FieldValue| document_term("a.b", value).and_then(|term| super::value(&term));
    let same = [
        (
            FieldValue::from("x\u{0}y"),
            SortValue::String("x\u{0}y".to_owned()),
        ),
        (FieldValue::Long(i64::MIN + 1), SortValue::Long(i64::MIN + 1)),
        (FieldValue::Long(-256), SortValue::Long(-256)),
        (FieldValue::Double(-0.0), SortValue::Long(0)),
        (FieldValue::Double(2.5), SortValue::Double(2.5)),
        (FieldValue::Double(3.0), SortValue::Long(3)),
        (FieldValue::Double(1e300), SortValue::Double(1e300)),
        (FieldValue::Boolean(true), SortValue::Boolean(true)),
        (FieldValue::Date(i64::MIN), SortValue::Date(i64::MIN)),
        (
            FieldValue::Date(1_700_000_000_000_000_001),
            SortValue::Date(1_700_000_000_000_000_001),
        ),
        (
            FieldValue::Bytes(vec![0, 1, 255]),
            SortValue::Bytes(vec![0, 1, 255]),
        ),
    ];
    for (value, expected) in same {
        assert_eq!(back(&value), Some(expected), "{value:?}");
    }
    for (_, number) in numbers() {
        let QueryValue::Integer(number) = number else {
            continue;
        };
        assert_eq!(back(&FieldValue::Long(number)), Some(SortValue::Long(number)));
    }
    assert_eq!(back(&FieldValue::Double(f64::NAN)), None);
    for damaged in ["", "k", "k\u{0}", "k\u{0}9", "k\u{0}2zz", "k\u{0}512z"] {
        assert_eq!(super::value(damaged), None, "{damaged:?}");
    }
}

use super::*;
use crate::row::{Cell, Columns};
use crate::value::PrimaryKey;

fn row(cells: &[(&str, Value, i64)]) -> Row {
    let mut columns = Columns::new();
    for (name, value, version) in cells {
        let (value, version) = (value.clone(), *version);
        columns.put(name, Cell { value, version });
    }
    Row::new(PrimaryKey::integer(1), 1, 0, columns)
}

fn passes(filter: &Filter, row: Option<&Row>) -> bool {
    filter.passes(&PrimaryKey::integer(1), row, &mut 0).unwrap()
}

/// Whether a text passes `text, pattern = value`.
fn part_equals(text: &str, pattern: &str, cast: Cast, value: impl Into<Value>) -> bool {
    let rule = ValueRule::new(pattern, cast).unwrap();
    let filter = Filter::with_rule("c", rule, Comparison::Equal, value);
    filter.check().unwrap();
    passes(&filter, Some(&row(&[("c", text.into(), 1)])))
}

#[test]
fn takes_the_first_match_or_its_first_group() {
    // The examples of Tablestore's reference.
    assert!(part_equals("1aaa51bbb5", "1[a-z]+5", Cast::String, "1aaa5"));
    assert!(part_equals("1aaa51bbb5", "1([a-z]+)5", Cast::String, "aaa"));
    assert!(part_equals("t1:-12,t2:13,", "t1:(-?[0-9]+),", Cast::Integer, -12));
    assert!(part_equals("{price: 1.50}", r"\d+\.\d+", Cast::Double, 1.5));
    assert!(!part_equals("{price: 1.50}", r"\d+\.\d+", Cast::String, "1.5"));
}

#[test]
fn a_cell_the_rule_can_not_read_satisfies_nothing() {
    let cells = [
        Value::from("none"),
        Value::from("99999999999999999999"),
        Value::from(5),
        Value::from(""),
    ];
    for cell in cells {
        for comparison in [Comparison::NotEqual, Comparison::Equal, Comparison::Less] {
            let rule = ValueRule::new("[0-9]+", Cast::Integer).unwrap();
            let filter = Filter::with_rule("c", rule, comparison, 5);
            assert!(
                !passes(&filter, Some(&row(&[("c", cell.clone(), 1)]))),
                "{cell:?}"
            );
        }
    }
    assert!(!part_equals("1e999", ".+", Cast::Double, 1.0));
    // A group that takes part in no match.
    assert!(!part_equals("b", "(a)|b", Cast::String, ""));
}

#[test]
fn looks_at_one_version_or_at_all() {
    let row = row(&[("c", 1.into(), 1), ("c", 2.into(), 2)]);
    for (latest_version_only, one, two) in [(true, false, true), (false, true, true)] {
        let filter = |value: i64| Filter::Column {
            column: "c".to_owned(),
            comparison: Comparison::Equal,
            value: value.into(),
            pass_if_missing: true,
            latest_version_only,
            rule: None,
        };
        assert_eq!(passes(&filter(1), Some(&row)), one);
        assert_eq!(passes(&filter(2), Some(&row)), two);
        assert!(!passes(&filter(3), Some(&row)));
        assert!(passes(&filter(3), None));
    }
}

#[test]
fn tells_whether_a_column_exists() {
    let row = row(&[("c", false.into(), 1)]);
    assert!(passes(&Filter::exists("c"), Some(&row)));
    assert!(!passes(&Filter::exists("d"), Some(&row)));
    assert!(passes(&Filter::missing("d"), Some(&row)));
    assert!(passes(&Filter::missing("c"), None));
    let all = Filter::And(vec![
        Filter::missing("d"),
        Filter::exists("c"),
        Filter::exists("d"),
    ]);
    assert_eq!(all.columns(), ["c", "d"]);
}

#[test]
fn refuses_patterns() {
    let long = "a".repeat(limits::MAX_PATTERN_BYTES + 1);
    let refused = ValueRule::new(&long, Cast::String).unwrap_err();
    assert!(
        matches!(
            refused,
            Error::LimitExceeded {
                limit: "MAX_PATTERN_BYTES",
                max: 256,
                actual: 257
            }
        ),
        "{refused}"
    );
    assert!(ValueRule::new(&long[1..], Cast::String).is_ok());
    assert!(ValueRule::new(r"(\w+) \d\d", Cast::String).is_ok());
    for pattern in ["", "(", "(?=a)", r"(a)\1", r"((\w{100}){100}){100}", "a{1000000}"] {
        let refused = ValueRule::new(pattern, Cast::String).unwrap_err();
        assert!(matches!(refused, Error::Invalid { .. }), "{pattern}: {refused}");
    }
}

#[test]
fn refuses_filters() {
    let rule = ValueRule::new("[0-9]+", Cast::Integer).unwrap();
    let other_type = Filter::with_rule("c", rule, Comparison::Equal, "5");
    assert!(other_type.check().unwrap_err().to_string().contains("INTEGER"));
    let infinite = Filter::column("c", Comparison::Equal, f64::NAN);
    assert!(matches!(infinite.check(), Err(Error::Invalid { .. })));
    let wide = Filter::Or(vec![Filter::exists("c"); limits::MAX_FILTER_NODES]);
    assert!(matches!(
        wide.check(),
        Err(Error::LimitExceeded {
            limit: "MAX_FILTER_NODES",
            ..
        })
    ));
    let deep =
        (0..limits::MAX_FILTER_DEPTH).fold(Filter::exists("c"), |below, _| Filter::Not(Box::new(below)));
    assert!(matches!(
        deep.check(),
        Err(Error::LimitExceeded {
            limit: "MAX_FILTER_DEPTH",
            ..
        })
    ));
}

#[test]
fn refuses_to_match_more_text_than_its_limit() {
    let word = |bytes: usize| row(&[("c", "a".repeat(bytes).into(), 1)]);
    let rule = |pattern: &str| {
        let rule = ValueRule::new(pattern, Cast::String).unwrap();
        Filter::with_rule("c", rule, Comparison::Equal, "b")
    };
    let twice = Filter::Or(vec![rule("b"), rule("bb")]);
    let half = limits::MAX_MATCHED_BYTES / 2;
    assert!(!passes(&twice, Some(&word(half))));
    let key = PrimaryKey::integer(1);
    let (more, mut matched) = (word(half + 1), 0);
    let refused = twice.passes(&key, Some(&more), &mut matched);
    assert!(
        matches!(&refused, Err(Error::MatchedTooMuch { key: of }) if *of == format!("{key:?}")),
        "{refused:?}"
    );
    // What nobody looked at doesn't count, as what no pattern can look at.
    assert_eq!(matched, half + 1);
    let binary = row(&[(
        "c",
        bytes::Bytes::from(vec![0; limits::MAX_VALUE_BYTES]).into(),
        1,
    )]);
    assert!(!twice.passes(&key, Some(&binary), &mut matched).unwrap());
    assert!(
        !rule("b")
            .passes(&key, Some(&word(half - 1)), &mut matched)
            .unwrap()
    );
    assert!(rule("b").passes(&key, Some(&word(1)), &mut matched).is_err());
    assert_eq!(twice.rules(), 2);
}

use super::*;
use crate::limits::MAX_NESTED_LEVELS;

fn violations(fields: Vec<Field>) -> Vec<(String, &'static str)> {
    match Schema::new(fields) {
        Err(Error::InvalidSchema(found)) => found
            .listed()
            .iter()
            .map(|v| (v.path.clone(), v.reason.code()))
            .collect(),
        other => panic!("expected violations, got {other:?}"),
    }
}

#[test]
fn paths_reach_sub_fields_and_nested_fields() {
    let schema = Schema::new(vec![
        Field::text("name", Analyzer::single_word()).sub_field("keyword", FieldKind::Keyword),
        Field::nested("a", vec![Field::nested("b", vec![Field::long("c").array()])]),
    ])
    .unwrap();
    let keyword = schema.resolve("name.keyword").unwrap();
    assert_eq!(
        (&keyword.kind, keyword.scope.as_deref()),
        (&FieldKind::Keyword, None)
    );
    let deep = schema.resolve("a.b.c").unwrap();
    assert_eq!((deep.array, deep.scope.as_deref()), (true, Some("a.b")));
    assert!(schema.resolve("a.c").is_none());
    assert!(schema.has_nested());
}

#[test]
fn all_violations_are_found_at_once() {
    let found = violations(vec![
        Field::keyword("_key"),
        Field::keyword("twice"),
        Field::long("twice"),
        Field::double("price").column_only(),
        Field::nested("empty", vec![]),
        Field::text(
            "fuzzy",
            Analyzer::Fuzzy {
                min_chars: 3,
                max_chars: 2,
                case_sensitive: false,
            },
        ),
        Field::text("stems", Analyzer::MaxWord.stemmed().stemmed()),
        Field::keyword("k").sub_field("n", FieldKind::Nested(vec![Field::long("x")])),
    ]);
    let expected = [
        ("_key", "INVALID_NAME"),
        ("twice", "INVALID_NAME"),
        ("price", "TYPE_MISMATCH"),
        ("empty", "MISSING"),
        ("fuzzy", "OUT_OF_RANGE"),
        ("stems", "TYPE_MISMATCH"),
        ("k.n", "TYPE_MISMATCH"),
    ];
    assert_eq!(found, expected.map(|(path, code)| (path.to_owned(), code)));
}

#[test]
fn a_sub_field_may_not_take_a_nested_fields_path() {
    // `a.b` as a sub-field of `a` and as a field inside it are refused even before they collide.
    let found = violations(vec![
        Field::nested("a", vec![Field::long("b")]).sub_field("b", FieldKind::Keyword),
    ]);
    assert_eq!(found, [("a.b".to_owned(), "TYPE_MISMATCH")]);
}

#[test]
fn nesting_has_a_floor() {
    let deep =
        |levels: usize| (0..levels).fold(Field::long("leaf"), |inner, _| Field::nested("n", vec![inner]));
    Schema::new(vec![deep(MAX_NESTED_LEVELS)]).unwrap();
    let found = violations(vec![deep(MAX_NESTED_LEVELS + 1)]);
    assert_eq!(found[0].1, "LIMIT_EXCEEDED");
}

#[test]
fn fingerprints_tell_schemas_apart_and_stay() {
    let one = || vec![Field::long("a"), Field::keyword("b")];
    let of = |fields| Schema::new(fields).unwrap().fingerprint();
    assert_eq!(of(one()), of(one()));
    let others = [
        of(vec![Field::keyword("b"), Field::long("a")]),
        of(vec![Field::long("a").array(), Field::keyword("b")]),
        of(vec![Field::long("a").column_only(), Field::keyword("b")]),
        of(vec![
            Field::long("a"),
            Field::keyword("b").sub_field("t", FieldKind::Text(Analyzer::MaxWord)),
        ]),
        of(vec![
            Field::long("a"),
            Field::keyword("b").sub_field("t", FieldKind::Text(Analyzer::MinWord)),
        ]),
        of(vec![
            Field::long("a"),
            Field::keyword("b").sub_field("t", FieldKind::Text(Analyzer::MinWord.stemmed())),
        ]),
        of(vec![
            Field::long("a"),
            Field::nested("b", vec![Field::keyword("b")]),
        ]),
    ];
    for (at, other) in others.iter().enumerate() {
        assert_ne!(of(one()), *other);
        assert!(others[..at].iter().all(|earlier| earlier != other));
    }
}

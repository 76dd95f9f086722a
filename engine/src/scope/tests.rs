mod partitions;

use souk_index::Field;
use souk_storage::TableSchema;

use super::*;
use crate::definition::{SearchIndexDefinition, Source};

const TEXTS: [&str; 9] = [
    "",
    "e",
    "eu",
    "eu-",
    "eu-1",
    "eu-\u{10ffff}",
    "eu.",
    "us",
    "\u{10ffff}",
];

fn key(text: &str) -> PrimaryKey {
    PrimaryKey::new([text.into()]).expect("a key")
}

/// Whether a key lies behind a cut.
fn is_behind(cut: &KeyBound, of: &PrimaryKey) -> bool {
    match cut {
        KeyBound::Min => true,
        KeyBound::Max => false,
        KeyBound::Before(key) => of >= key,
        KeyBound::After(key) => of > key,
    }
}

fn holds(request: &RangeRequest, of: &PrimaryKey) -> bool {
    let (low, high) = match request.direction {
        Direction::Forward => (&request.start, &request.end),
        Direction::Backward => (&request.end, &request.start),
    };
    is_behind(low, of) && !is_behind(high, of)
}

#[test]
fn a_range_of_granted_partitions_holds_their_rows_that_were_asked_for() {
    let cuts = TEXTS
        .iter()
        .flat_map(|text| [KeyBound::Before(key(text)), KeyBound::After(key(text))]);
    let cuts: Vec<KeyBound> = cuts.chain([KeyBound::Min, KeyBound::Max]).collect();
    let mut held = 0;
    for pattern in ["eu-*", "eu", "e*", "none", "\u{10ffff}*"] {
        let partitions = Partitions::of(pattern);
        let scope = Scope::Limited {
            limit: Limit::Partitions(partitions.clone()),
            place: OwnerPlace::partition("tenant"),
        };
        for (low, high) in cuts
            .iter()
            .flat_map(|low| cuts.iter().map(move |high| (low, high)))
        {
            for direction in [Direction::Forward, Direction::Backward] {
                let asked = RangeRequest::between(low.clone(), high.clone(), direction);
                let narrowed = scope.narrowed(&asked);
                for text in TEXTS {
                    let expected = holds(&asked, &key(text)) && partitions.contain(text);
                    let told = narrowed
                        .as_ref()
                        .is_some_and(|narrowed| holds(narrowed, &key(text)));
                    assert_eq!(
                        told, expected,
                        "{pattern} of {low:?} to {high:?}, {direction:?}: {text:?}"
                    );
                    held += usize::from(told);
                }
            }
        }
    }
    assert!(held > 1_000, "{held}");
}

#[test]
fn partitions_are_granted_of_texts_and_to_who_has_no_rows_of_its_own() {
    let caller = |owner| Principal::Caller {
        name: "somebody".into(),
        owner,
        tables: None,
    };
    let of_a_user = Owner {
        kind: "user",
        id: "u1".into(),
    };
    for (kind, owner, expected) in [
        (KeyKind::String, None, true),
        (KeyKind::Integer, None, false),
        (KeyKind::Binary, None, false),
        (KeyKind::String, Some(of_a_user), false),
    ] {
        let table = TableDefinition::new(TableSchema::new("notes").key("id", kind));
        let scope = Scope::of_partitions(&caller(owner), Partitions::of("eu-*"), &table);
        assert_eq!(scope.is_ok(), expected, "{kind:?}: {scope:?}");
    }
}

#[test]
fn searches_of_partitions_go_by_a_field_that_is_the_key_column() {
    let column = "owner.tenant";
    let table = TableDefinition::new(TableSchema::new("notes").key(column, KeyKind::String));
    let scope = Scope::Limited {
        limit: Limit::Partitions(Partitions::of("eu-*")),
        place: OwnerPlace::partition(column),
    };
    // Its sub-field has the name of the key column, and comes from another one.
    let looks_alike = Field::long("owner").sub_field("tenant", FieldKind::Keyword);
    let search = SearchIndexDefinition {
        fields: vec![looks_alike],
        ..SearchIndexDefinition::new("notes")
    };
    for (is_declared, expected) in [(false, None), (true, Some("holder"))] {
        let mut search = search.clone();
        if is_declared {
            search.fields.push(Field::keyword("holder"));
            search.sources.insert("holder".to_owned(), Source::column(column));
        }
        let design = Design::new(&table, &search).expect("a design");
        let mut request = SearchRequest::new(Query::MatchAll);
        let restricted = scope.restrict(&mut request, &design, "notes");
        assert_eq!(restricted.is_ok(), expected.is_some(), "{restricted:?}");
        let Query::Bool { filter, .. } = request.query else {
            assert_eq!(expected, None);
            continue;
        };
        let Some(Query::Prefix { field, value, .. }) = filter.first() else {
            panic!("{filter:?}");
        };
        assert_eq!((Some(field.as_str()), value.as_str()), (expected, "eu-"));
    }
}

use super::*;

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
        let table = TableDefinition::new(souk_storage::TableSchema::new("notes").key("id", kind));
        let scope = Scope::of_partitions(&caller(owner), Partitions::of("eu-*"), &table);
        assert_eq!(scope.is_ok(), expected, "{kind:?}: {scope:?}");
    }
}

//! Attributes of any name and type against a brute-force evaluator: terms, ranges, patterns, orders and pages.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;

use fastrand::Rng;
use souk_index::limits::{
    MAX_ATTRIBUTE_NAME_BYTES, MAX_ATTRIBUTES, MAX_KEY_BYTES, MAX_KEYWORD_BYTES, MAX_SORTS,
};
use souk_index::{
    Aggregation, ArrayMode, Cancellation, CompositeSource, Error, Field, FieldValue, Index, IndexOptions,
    MetricKind, MisfitReason, Missing, Object, Operation, Query, QueryValue, Reason, Schema, SearchRequest,
    Sort, SortValue, SourceKind,
};

use super::value::pick;
use super::{commit, find, keys, random_numbers, upsert};

const NAMES: [&str; 7] = ["color", "color.shade", "col", "size", "大小", "a b\\\"*", "色.彩"];
const TEXTS: [&str; 9] = ["red", "green", "7", "", "redder", "红", "r*d", "\u{10ffff}", "1"];
const LONGS: [i64; 9] = [
    i64::MIN,
    -7,
    0,
    1,
    7,
    9_007_199_254_740_993,
    9_007_199_254_740_992,
    i64::MAX - 1,
    i64::MAX,
];
const DOUBLES: [f64; 9] = [
    f64::MIN,
    -7.5,
    -0.0,
    1.0,
    6.999_999,
    7.0,
    9_007_199_254_740_992.0,
    9_223_372_036_854_775_808.0,
    f64::MAX,
];
const TIMES: [i64; 5] = [i64::MIN, 0, 7, 1_700_000_000_000_000_001, i64::MAX];
const ROUNDS: u64 = 4;
const DOCUMENTS: usize = 400;
const SEARCHES: usize = 1_500;

fn schema() -> Schema {
    let items = Field::nested("items", vec![Field::keyword("sku"), Field::attributes("more")]);
    Schema::new(vec![
        Field::keyword("kind"),
        Field::attributes("attributes"),
        items,
    ])
    .expect("a schema")
}

fn value(rng: &mut Rng) -> FieldValue {
    match rng.u8(..6) {
        0 => FieldValue::from(pick(rng, &TEXTS)),
        1 => FieldValue::Long(pick(rng, &LONGS)),
        2 => FieldValue::Double(pick(rng, &DOUBLES)),
        3 => FieldValue::Boolean(rng.bool()),
        4 => FieldValue::Date(pick(rng, &TIMES)),
        _ => FieldValue::Bytes(vec![rng.u8(..3); rng.usize(..3)]),
    }
}

fn attributes(rng: &mut Rng) -> Object {
    let mut object = Object::new();
    for _ in 0..rng.usize(..6) {
        object.push(pick(rng, &NAMES), value(rng));
    }
    object
}

fn asked(value: &FieldValue) -> QueryValue {
    match value {
        FieldValue::String(text) => QueryValue::String(text.as_str().to_owned()),
        FieldValue::Long(number) => QueryValue::Integer(*number),
        FieldValue::Double(number) => QueryValue::Double(*number),
        FieldValue::Boolean(flag) => QueryValue::Boolean(*flag),
        FieldValue::Date(time) => QueryValue::Time(*time),
        FieldValue::Bytes(bytes) => QueryValue::Bytes(bytes.clone()),
        other => panic!("no attribute: {other:?}"),
    }
}

fn place(value: &QueryValue) -> u8 {
    match value {
        QueryValue::Boolean(_) => 0,
        QueryValue::Integer(_) | QueryValue::Double(_) => 1,
        QueryValue::Time(_) => 2,
        QueryValue::String(_) => 3,
        QueryValue::Bytes(_) => 4,
    }
}

fn integer_against_double(integer: i64, double: f64) -> Ordering {
    if double >= 9_223_372_036_854_775_808.0 {
        return Ordering::Less;
    }
    if double < -9_223_372_036_854_775_808.0 {
        return Ordering::Greater;
    }
    let below = integer.cmp(&(double.floor() as i64));
    if below.is_eq() && double > double.floor() {
        Ordering::Less
    } else {
        below
    }
}

fn compare(one: &QueryValue, other: &QueryValue) -> Ordering {
    match (one, other) {
        (QueryValue::Boolean(a), QueryValue::Boolean(b)) => a.cmp(b),
        (QueryValue::Integer(a), QueryValue::Integer(b)) | (QueryValue::Time(a), QueryValue::Time(b)) => {
            a.cmp(b)
        }
        (QueryValue::Double(a), QueryValue::Double(b)) => a.partial_cmp(b).expect("no NaN"),
        (QueryValue::Integer(a), QueryValue::Double(b)) => integer_against_double(*a, *b),
        (QueryValue::Double(a), QueryValue::Integer(b)) => integer_against_double(*b, *a).reverse(),
        (QueryValue::String(a), QueryValue::String(b)) => a.as_bytes().cmp(b.as_bytes()),
        (QueryValue::Bytes(a), QueryValue::Bytes(b)) => a.cmp(b),
        (one, other) => place(one).cmp(&place(other)),
    }
}

/// The values of `attributes.name` or, of an item, `items.more.name`.
fn values(object: &Object, field: &str) -> Vec<QueryValue> {
    let (head, name) = match field.strip_prefix("items.more.") {
        Some(name) => ("more", name),
        None => (
            "attributes",
            field.strip_prefix("attributes.").expect("a field of the schema"),
        ),
    };
    let inside = object.values(head).iter().flat_map(|value| match value {
        FieldValue::Objects(objects) => objects.iter(),
        other => panic!("no objects: {other:?}"),
    });
    inside.flat_map(|object| object.values(name)).map(asked).collect()
}

fn texts(object: &Object, field: &str) -> Vec<String> {
    let values = values(object, field).into_iter();
    let texts = values.filter_map(|value| match value {
        QueryValue::String(text) => Some(text),
        _ => None,
    });
    texts.collect()
}

fn wildcard(pattern: &[char], text: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['*', rest @ ..] => (0..=text.len()).any(|skip| wildcard(rest, &text[skip..])),
        ['?', rest @ ..] => !text.is_empty() && wildcard(rest, &text[1..]),
        ['\\', literal, rest @ ..] | [literal, rest @ ..] => {
            text.first() == Some(literal) && wildcard(rest, &text[1..])
        }
    }
}

fn matches(query: &Query, object: &Object) -> bool {
    match query {
        Query::MatchAll => true,
        Query::Term { field, value, .. } => values(object, field)
            .iter()
            .any(|own| compare(own, value).is_eq()),
        Query::Terms {
            field,
            values: wanted,
            ..
        } => values(object, field)
            .iter()
            .any(|own| wanted.iter().any(|value| compare(own, value).is_eq())),
        Query::Range { field, lower, upper } => values(object, field).iter().any(|own| {
            let (Bound::Included(any) | Bound::Excluded(any)) = (match lower {
                Bound::Unbounded => upper,
                bound => bound,
            }) else {
                panic!("a range has a bound")
            };
            let above = match lower {
                Bound::Included(bound) => compare(own, bound).is_ge(),
                Bound::Excluded(bound) => compare(own, bound).is_gt(),
                Bound::Unbounded => true,
            };
            let below = match upper {
                Bound::Included(bound) => compare(own, bound).is_le(),
                Bound::Excluded(bound) => compare(own, bound).is_lt(),
                Bound::Unbounded => true,
            };
            place(own) == place(any) && above && below
        }),
        Query::Prefix { field, value, .. } => texts(object, field).iter().any(|text| text.starts_with(value)),
        Query::Suffix { field, value, .. } => texts(object, field).iter().any(|text| text.ends_with(value)),
        Query::Wildcard { field, pattern, .. } => {
            let pattern: Vec<char> = pattern.chars().collect();
            let matches = |text: &String| wildcard(&pattern, &text.chars().collect::<Vec<_>>());
            texts(object, field).iter().any(matches)
        }
        Query::Match { field, text, .. } => texts(object, field).contains(text),
        Query::Exists { field } if field == "attributes" => !object.values("attributes").is_empty(),
        Query::Exists { field } => !values(object, field).is_empty(),
        Query::Nested { query, .. } => {
            let items = object.values("items").iter().flat_map(|value| match value {
                FieldValue::Objects(objects) => objects.iter(),
                other => panic!("no objects: {other:?}"),
            });
            items.into_iter().any(|item| matches(query, item))
        }
        Query::Bool { must, must_not, .. } => {
            must.iter().all(|clause| matches(clause, object))
                && !must_not.iter().any(|clause| matches(clause, object))
        }
        other => panic!("not asked here: {other:?}"),
    }
}

fn clause(rng: &mut Rng, head: &str) -> Query {
    let field = format!("{head}.{}", pick(rng, &NAMES));
    match rng.u8(..8) {
        0 => Query::term(field, asked(&value(rng))),
        1 => Query::terms(
            field,
            (0..rng.usize(1..30))
                .map(|_| asked(&value(rng)))
                .collect::<Vec<_>>(),
        ),
        2 | 3 => loop {
            let mut bounds = [asked(&value(rng)), asked(&value(rng))];
            if place(&bounds[0]) != place(&bounds[1]) || matches!(place(&bounds[0]), 0 | 4) {
                continue;
            }
            bounds.sort_by(compare);
            let bound = |rng: &mut Rng, value: &QueryValue| match rng.u8(..5) {
                0 | 1 => Bound::Included(value.clone()),
                2 | 3 => Bound::Excluded(value.clone()),
                _ => Bound::Unbounded,
            };
            let (lower, upper) = (bound(rng, &bounds[0]), bound(rng, &bounds[1]));
            if (&lower, &upper) != (&Bound::Unbounded, &Bound::Unbounded) {
                break Query::range(field, lower, upper);
            }
        },
        4 => Query::prefix(field, pick(rng, &["r", "re", "red", "7", "红"])),
        5 => Query::suffix(field, pick(rng, &["d", "er", "7", "\u{10ffff}"])),
        6 => Query::wildcard(
            field,
            pick(rng, &["*", "r*", "*e*", "?", "r?d", "r\\*d", "re*er", "*d*e*"]),
        ),
        _ if rng.bool() => Query::match_text(field, pick(rng, &["red", "r*d", "7"])),
        _ => Query::exists(field),
    }
}

fn query(rng: &mut Rng) -> Query {
    match rng.u8(..8) {
        0 => Query::MatchAll,
        1 => Query::nested("items", clause(rng, "items.more")),
        2 => Query::not(clause(rng, "attributes")),
        3 => Query::exists("attributes"),
        4 => Query::all(vec![clause(rng, "attributes"), clause(rng, "attributes")]),
        _ => clause(rng, "attributes"),
    }
}

/// What a document is sorted by.
fn sort_value(sort: &Sort, object: &Object) -> Option<QueryValue> {
    let Sort::Field {
        field,
        descending,
        mode,
        missing,
        ..
    } = sort
    else {
        panic!("sorted by fields here")
    };
    let highest = mode.map_or(*descending, |mode| mode == ArrayMode::Max);
    let mut values = values(object, field);
    values.sort_by(compare);
    let own = if highest {
        values.pop()
    } else {
        values.into_iter().next()
    };
    own.or_else(|| match missing {
        Missing::Value(value) => Some(value.clone()),
        Missing::First | Missing::Last => None,
    })
}

fn shown(value: Option<QueryValue>) -> SortValue {
    match value {
        None => SortValue::Missing,
        Some(QueryValue::Boolean(flag)) => SortValue::Boolean(flag),
        Some(QueryValue::Integer(number)) => SortValue::Long(number),
        Some(QueryValue::Double(number)) if number.fract() == 0.0 && number.abs() < 9.2e18 => {
            SortValue::Long(number as i64)
        }
        Some(QueryValue::Double(number)) => SortValue::Double(number),
        Some(QueryValue::Time(time)) => SortValue::Date(time),
        Some(QueryValue::String(text)) => SortValue::String(text),
        Some(QueryValue::Bytes(bytes)) => SortValue::Bytes(bytes),
    }
}

fn compare_hits(sort: &Sort, one: (&String, &Object), other: (&String, &Object)) -> Ordering {
    let Sort::Field {
        descending, missing, ..
    } = sort
    else {
        panic!("sorted by fields here")
    };
    let towards_missing = if *missing == Missing::First {
        Ordering::Less
    } else {
        Ordering::Greater
    };
    let among = match (sort_value(sort, one.1), sort_value(sort, other.1)) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => towards_missing,
        (Some(_), None) => towards_missing.reverse(),
        (Some(one), Some(other)) if *descending => compare(&other, &one),
        (Some(one), Some(other)) => compare(&one, &other),
    };
    among.then_with(|| one.0.cmp(other.0))
}

fn order(rng: &mut Rng) -> Sort {
    let missing = match rng.u8(..4) {
        0 => Missing::First,
        1 => Missing::Value(asked(&value(rng))),
        _ => Missing::Last,
    };
    Sort::Field {
        field: format!("attributes.{}", pick(rng, &NAMES)),
        descending: rng.bool(),
        mode: pick(rng, &[None, Some(ArrayMode::Min), Some(ArrayMode::Max)]),
        missing,
        nested: None,
    }
}

fn compare_with_rows(rng: &mut Rng, index: &Index, rows: &BTreeMap<String, Object>) {
    let searcher = index.searcher();
    let mut hits = 0;
    for _ in 0..SEARCHES {
        let (query, sort) = (query(rng), order(rng));
        let mut expected: Vec<_> = rows.iter().filter(|(_, row)| matches(&query, row)).collect();
        expected.sort_by(|one, other| compare_hits(&sort, *one, *other));
        let mut request = SearchRequest::new(query)
            .sorted(vec![sort.clone()])
            .page_size(150);
        let mut rest = expected.iter();
        loop {
            let found = find(&searcher, &request);
            let page: Vec<_> = rest.by_ref().take(150).collect();
            let got: Vec<(String, &[SortValue])> = found
                .hits
                .iter()
                .map(|hit| {
                    (
                        String::from_utf8_lossy(&hit.key).into_owned(),
                        hit.sort_values.as_slice(),
                    )
                })
                .collect();
            let wanted: Vec<(String, Vec<SortValue>)> = page
                .iter()
                .map(|(key, row)| ((*key).clone(), vec![shown(sort_value(&sort, row))]))
                .collect();
            let same = got.len() == wanted.len()
                && got
                    .iter()
                    .zip(&wanted)
                    .all(|(got, wanted)| got.0 == wanted.0 && got.1 == wanted.1);
            assert!(same, "{got:?}\n{wanted:?}\n{request:#?}");
            hits += got.len();
            request.after = found.next_page_token;
            if request.after.is_none() {
                break;
            }
        }
        assert_eq!(rest.next(), None, "{request:#?}");
    }
    assert!(hits > SEARCHES * 5, "{hits} hits: the test tests too little");
}

#[test]
fn attributes_are_found_and_sorted_as_a_scan_finds_and_sorts_them() {
    let mut rng = random_numbers();
    let index = Index::create_in_ram(schema(), IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("the writer");
    let mut rows = BTreeMap::new();
    for round in 1..=ROUNDS {
        let mut operations = Vec::new();
        for _ in 0..DOCUMENTS / ROUNDS as usize {
            let key = format!("k{:03}", rng.usize(..DOCUMENTS));
            if rng.u8(..8) == 0 {
                rows.remove(&key);
                operations.push(Operation::Delete {
                    key: key.into_bytes(),
                });
                continue;
            }
            let items: Vec<Object> = (0..rng.usize(..3))
                .map(|_| {
                    Object::new()
                        .with("sku", "x")
                        .with("more", vec![attributes(&mut rng)])
                })
                .collect();
            let own = attributes(&mut rng);
            let own = (own != Object::new()).then(|| vec![own]);
            let fields = Object::new()
                .with("kind", "thing")
                .with_all("attributes", own)
                .with_all("items", (!items.is_empty()).then_some(items));
            operations.push(upsert(&key, fields.clone()));
            rows.insert(key, fields);
        }
        commit(&mut writer, operations, round);
    }
    assert_eq!(index.misfits().count, 0);
    compare_with_rows(&mut rng, &index, &rows);
    writer.merge_all().expect("the merge works");
    compare_with_rows(&mut rng, &index, &rows);
}

#[test]
fn what_no_attribute_can_be_is_a_misfit() {
    let index = Index::create_in_ram(schema(), IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("the writer");
    let many =
        (0..=MAX_ATTRIBUTES as i64).fold(Object::new(), |object, nth| object.with(format!("n{nth}"), nth));
    let wrong = Object::new()
        .with("", 1)
        .with("x".repeat(MAX_ATTRIBUTE_NAME_BYTES + 1), 1)
        .with("tab\t", 1)
        .with("long", "x".repeat(MAX_KEYWORD_BYTES + 1))
        .with("nan", f64::NAN)
        .with("fine", "yes");
    commit(
        &mut writer,
        vec![
            upsert("a", Object::new().with("attributes", vec![wrong])),
            upsert("b", Object::new().with("attributes", vec![many])),
            upsert("c", Object::new().with("attributes", "text")),
        ],
        1,
    );
    let misfits = index.misfits();
    let mut reasons: Vec<_> = misfits
        .recent
        .iter()
        .map(|misfit| (misfit.key.clone(), misfit.reason))
        .collect();
    reasons.sort_by_key(|(key, _)| key.clone());
    let a = b"a".to_vec();
    assert_eq!(
        reasons,
        [
            (a.clone(), MisfitReason::WrongType),
            (a.clone(), MisfitReason::WrongType),
            (a.clone(), MisfitReason::WrongType),
            (a.clone(), MisfitReason::TooLong),
            (a, MisfitReason::WrongType),
            (b"b".to_vec(), MisfitReason::TooMany),
            (b"c".to_vec(), MisfitReason::WrongType),
        ]
    );
    assert_eq!(keys(&index, Query::term("attributes.fine", "yes")), ["a"]);
    assert_eq!(keys(&index, Query::exists("attributes.n255")), ["b"]);
    assert!(keys(&index, Query::exists("attributes.n256")).is_empty());
}

#[test]
fn mistakes_about_attributes_are_named() {
    let index = Index::create_in_ram(schema(), IndexOptions::default()).expect("an index");
    let included = |value: QueryValue| Bound::Included(value);
    let number = || included(QueryValue::Integer(1));
    let text = || included(QueryValue::from("x"));
    let flag = || included(QueryValue::Boolean(true));
    let wrong = [
        (Query::term("attributes", "x"), "query.term.field"),
        (Query::term("attributes.", "x"), "query.term.field"),
        (Query::term("items.more.x", "x"), "query.term.field"),
        (Query::range("attributes.x", number(), text()), "query.range"),
        (
            Query::range("attributes.x", flag(), Bound::Unbounded),
            "query.range",
        ),
        (
            Query::range("attributes.x", Bound::Unbounded, Bound::Unbounded),
            "query.range",
        ),
        (
            Query::range("attributes.x", included(QueryValue::Integer(2)), number()),
            "query.range",
        ),
        (Query::prefix("attributes.x", ""), "query.prefix.value"),
        (Query::wildcard("attributes.x", "a\\"), "query.wildcard.pattern"),
        (
            Query::term("attributes.x", QueryValue::Double(f64::NAN)),
            "query.term.value",
        ),
        (
            Query::terms("attributes.x", Vec::<QueryValue>::new()),
            "query.terms.values",
        ),
    ];
    for (query, path) in wrong {
        let request = SearchRequest::new(query.clone());
        let Err(Error::InvalidQuery(violations)) = index.searcher().search(&request, &Cancellation::none())
        else {
            panic!("{query:?} is right")
        };
        let paths: Vec<_> = violations
            .listed()
            .iter()
            .map(|violation| violation.path.as_str())
            .collect();
        assert_eq!(paths, [path], "{query:?}");
    }
    let sort = |field: &str, mode| Sort::Field {
        field: field.to_owned(),
        descending: false,
        mode,
        missing: Missing::Last,
        nested: None,
    };
    for (sort, path) in [
        (sort("attributes", None), "sort[0].field.field"),
        (sort("attributes.x", Some(ArrayMode::Sum)), "sort[0].field.mode"),
    ] {
        let request = SearchRequest::new(Query::MatchAll).sorted(vec![sort]);
        let Err(Error::InvalidQuery(violations)) = index.searcher().search(&request, &Cancellation::none())
        else {
            panic!("the order is right")
        };
        let first = violations.listed().first().expect("a violation");
        assert_eq!(
            (first.path.as_str(), first.reason.clone()),
            (path, Reason::TypeMismatch)
        );
    }
}

/// The longest position: of the longest key, by as many of the longest attributes as there may be.
#[test]
fn a_page_of_the_longest_values_is_followed_by_the_next() {
    let index = Index::create_in_ram(schema(), IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("the writer");
    let name = |nth: usize| format!("{nth:02}{}", "x".repeat(MAX_ATTRIBUTE_NAME_BYTES - 2));
    let attributes = (0..MAX_SORTS).fold(Object::new(), |object, nth| {
        object.with(name(nth), FieldValue::Bytes(vec![7; MAX_KEYWORD_BYTES]))
    });
    let key = |nth: usize| format!("{nth:0MAX_KEY_BYTES$}");
    let documents = (0..3).map(|nth| {
        upsert(
            &key(nth),
            Object::new().with("attributes", vec![attributes.clone()]),
        )
    });
    commit(&mut writer, documents.collect(), 1);
    assert_eq!(index.misfits().count, 0);
    let sorts = (0..MAX_SORTS).map(|nth| Sort::field(format!("attributes.{}", name(nth)), false));
    let mut request = SearchRequest::new(Query::MatchAll)
        .sorted(sorts.collect())
        .page_size(1);
    for nth in 0..3 {
        let found = find(&index.searcher(), &request);
        let keys: Vec<_> = found.hits.iter().map(|hit| hit.key.clone()).collect();
        assert_eq!(keys, [key(nth).into_bytes()]);
        request.after = found.next_page_token;
        assert_eq!(request.after.is_some(), nth < 2);
    }
}

/// What stands for a missing value is one that a document could have.
#[test]
fn stand_ins_are_no_longer_than_values() {
    let index = Index::create_in_ram(schema(), IndexOptions::default()).expect("an index");
    let refused = |request: SearchRequest| match index.searcher().search(&request, &Cancellation::none()) {
        Ok(_) => None,
        Err(Error::InvalidQuery(violations)) => violations.listed().first().map(|first| first.path.clone()),
        Err(other) => panic!("{other}"),
    };
    let values = |length: usize| {
        [
            QueryValue::String("x".repeat(length)),
            QueryValue::Bytes(vec![7; length]),
        ]
    };
    for (length, taken) in [(MAX_KEYWORD_BYTES, true), (MAX_KEYWORD_BYTES + 1, false)] {
        for value in values(length) {
            let sort = Sort::Field {
                field: "attributes.x".to_owned(),
                descending: false,
                mode: None,
                missing: Missing::Value(value.clone()),
                nested: None,
            };
            let figure = Aggregation::Figure {
                field: "attributes.x".to_owned(),
                figure: MetricKind::DistinctCount,
                missing: Some(value.clone()),
            };
            let composite = Aggregation::Composite {
                sources: vec![CompositeSource {
                    field: "attributes.x".to_owned(),
                    kind: SourceKind::Terms,
                    descending: false,
                    include_missing: false,
                    missing: Some(value),
                }],
                size: 1,
                after: None,
                aggregations: Vec::new(),
            };
            let all = SearchRequest::new(Query::MatchAll);
            let aggregated = |aggregation| all.clone().aggregations(vec![("a".to_owned(), aggregation)]);
            for (request, path) in [
                (all.clone().sorted(vec![sort]), "sort[0].field.missing.value"),
                (aggregated(figure), r#"aggregations["a"].distinct_count.missing"#),
                (
                    aggregated(composite),
                    r#"aggregations["a"].composite.sources[0].grouping.terms.missing"#,
                ),
            ] {
                let expected = (!taken).then(|| path.to_owned());
                assert_eq!(refused(request), expected, "{length}");
            }
        }
    }
}

//! Ranges, patterns and orders over segments of many blocks, where most of a column isn't read: what is found, counted and
//! paged through is what a scan of all documents gives. Documents come in order of time or in none, are updated and
//! deleted, and merged.

use std::collections::BTreeMap;
use std::ops::Bound;

use fastrand::Rng;
use souk_index::{
    Document, Field, FieldValue, Index, IndexOptions, Object, Operation, Query, QueryValue, Relation, Schema,
    SearchRequest, Sort, TotalRequest,
};

use super::{commit, find, random_numbers};

const DOCUMENTS: i64 = 12_000;
const COMMITS: i64 = 3;
const SEARCHES: usize = 250;
const PAGES: usize = 3;
const ENDS: [&str; 5] = ["red", "green", "blue", "redder", "红"];

#[derive(Clone, Debug)]
struct Row {
    at: Option<i64>,
    n: i64,
    price: Option<f64>,
    name: String,
    kind: &'static str,
}

type Rows = BTreeMap<Vec<u8>, Row>;

fn row(rng: &mut Rng, nth: i64) -> Row {
    let rarely = rng.u8(..25) == 0;
    Row {
        at: (!rarely).then(|| nth * 1_000 + rng.i64(..3_000)),
        n: rng.i64(-5_000..5_000),
        price: (rng.u8(..25) > 0).then(|| f64::from(rng.u8(..40)) / 8.0),
        name: format!("{:04}-{}", rng.u32(..2_000), ENDS[rng.usize(..ENDS.len())]),
        kind: ["many", "many", "many", "some", "few"][rng.usize(..5)],
    }
}

fn document(key: &[u8], row: &Row) -> Document {
    let fields = Object::new()
        .with_all("at", row.at.map(FieldValue::Date))
        .with("n", row.n)
        .with_all("price", row.price.map(FieldValue::Double))
        .with("name", row.name.as_str())
        .with("kind", row.kind);
    Document {
        key: key.to_vec(),
        fields,
    }
}

fn fill(rng: &mut Rng, index: &Index, shuffled: bool) -> Rows {
    let mut writer = index.writer().expect("the writer");
    let mut rows = Rows::new();
    let mut numbers: Vec<i64> = (0..DOCUMENTS).collect();
    if shuffled {
        rng.shuffle(&mut numbers);
    }
    for (nth, numbers) in numbers.chunks((DOCUMENTS / COMMITS) as usize).enumerate() {
        let mut operations = Vec::new();
        for number in numbers {
            let key = (number * 7_919 % DOCUMENTS).to_be_bytes().to_vec();
            let row = row(rng, *number);
            operations.push(Operation::Insert(document(&key, &row)));
            rows.insert(key, row);
        }
        commit(&mut writer, operations, nth as u64 + 1);
    }
    // Some are changed, and become the newest; some go.
    let mut operations = Vec::new();
    for nth in 0..DOCUMENTS / 20 {
        let key = rng.i64(..DOCUMENTS).to_be_bytes().to_vec();
        if rng.bool() {
            rows.remove(&key);
            operations.push(Operation::Delete { key });
        } else {
            let row = row(rng, DOCUMENTS + nth);
            operations.push(Operation::Upsert(document(&key, &row)));
            rows.insert(key, row);
        }
    }
    commit(&mut writer, operations, COMMITS as u64 + 1);
    rows
}

fn bounds(rng: &mut Rng, from: i64, to: i64) -> (Bound<i64>, Bound<i64>) {
    let width = (to - from) / [1, 2, 10, 100, 3_000][rng.usize(..5)];
    let low = from + rng.i64(..=(to - from - width));
    let bound = |rng: &mut Rng, value| match rng.u8(..5) {
        0 | 1 => Bound::Included(value),
        2 | 3 => Bound::Excluded(value),
        _ => Bound::Unbounded,
    };
    match (bound(rng, low), bound(rng, low + width)) {
        (Bound::Unbounded, Bound::Unbounded) => (Bound::Included(low), Bound::Unbounded),
        bounds => bounds,
    }
}

fn clause(rng: &mut Rng) -> Query {
    let word = |rng: &mut Rng| format!("{:04}", rng.u32(..2_000));
    match rng.u8(..10) {
        0 | 1 => {
            let (lower, upper) = bounds(rng, 0, (DOCUMENTS + DOCUMENTS / 20) * 1_000);
            Query::range("at", lower.map(QueryValue::Time), upper.map(QueryValue::Time))
        }
        2 => {
            let (lower, upper) = bounds(rng, -5_000, 5_000);
            Query::range(
                "n",
                lower.map(QueryValue::Integer),
                upper.map(QueryValue::Integer),
            )
        }
        3 => {
            let (lower, upper) = bounds(rng, 0, 40);
            let eighth = |value: i64| QueryValue::Double(value as f64 / 8.0);
            Query::range("price", lower.map(eighth), upper.map(eighth))
        }
        4 => Query::prefix("name", &word(rng)[..rng.usize(1..4)]),
        5 => Query::suffix("name", ["red", "r", "blue", "红", "7-green"][rng.usize(..5)]),
        6 => {
            let word = word(rng);
            Query::wildcard("name", format!("*{}*{}*", &word[..1], &word[2..]))
        }
        7 => {
            let (mut one, mut other) = (word(rng), word(rng));
            if one > other {
                std::mem::swap(&mut one, &mut other);
            }
            let bound = |text: String| Bound::Included(QueryValue::String(text));
            Query::range("name", bound(one), bound(other))
        }
        8 => Query::exists("at"),
        _ => Query::term("kind", ["many", "some", "few"][rng.usize(..3)]),
    }
}

fn query(rng: &mut Rng) -> Query {
    let mut clauses: Vec<Query> = (0..rng.usize(..4)).map(|_| clause(rng)).collect();
    match (clauses.len(), rng.u8(..4)) {
        (0, _) => Query::MatchAll,
        (1, 0..=2) => clauses.pop().expect("a clause"),
        (_, 0) => Query::any(clauses),
        (_, turn) => {
            let not = clauses.pop().filter(|_| turn == 1);
            Query::Bool {
                filter: clauses.pop().into_iter().collect(),
                must: clauses,
                should: if turn == 2 { vec![clause(rng)] } else { Vec::new() },
                must_not: not.into_iter().collect(),
                minimum_should_match: None,
            }
        }
    }
}

fn within<T: PartialOrd>(value: T, lower: &Bound<T>, upper: &Bound<T>) -> bool {
    let above = match lower {
        Bound::Included(bound) => value >= *bound,
        Bound::Excluded(bound) => value > *bound,
        Bound::Unbounded => true,
    };
    above
        && match upper {
            Bound::Included(bound) => value <= *bound,
            Bound::Excluded(bound) => value < *bound,
            Bound::Unbounded => true,
        }
}

fn matches(query: &Query, row: &Row) -> bool {
    let number = |value: &QueryValue| match value {
        QueryValue::Integer(number) | QueryValue::Time(number) => *number as f64,
        QueryValue::Double(number) => *number,
        other => panic!("{other:?}"),
    };
    match query {
        Query::MatchAll => true,
        Query::Term { value, .. } => *value == QueryValue::from(row.kind),
        Query::Exists { .. } => row.at.is_some(),
        Query::Prefix { value, .. } => row.name.starts_with(value),
        Query::Suffix { value, .. } => row.name.ends_with(value),
        Query::Wildcard { pattern, .. } => {
            let mut rest = row.name.as_str();
            pattern.split('*').all(|part| match rest.find(part) {
                Some(at) => {
                    rest = &rest[at + part.len()..];
                    true
                }
                None => false,
            })
        }
        Query::Range { field, lower, upper } if field == "name" => {
            within(QueryText(row.name.clone()), &text(lower), &text(upper))
        }
        Query::Range { field, lower, upper } => {
            let value = match field.as_str() {
                "at" => row.at.map(|at| at as f64),
                "n" => Some(row.n as f64),
                _ => row.price,
            };
            let (lower, upper) = (lower.as_ref().map(number), upper.as_ref().map(number));
            value.is_some_and(|value| within(value, &lower, &upper))
        }
        Query::Bool {
            must,
            filter,
            should,
            must_not,
            ..
        } => {
            let needed = usize::from(must.is_empty() && filter.is_empty() && !should.is_empty());
            must.iter().chain(filter).all(|clause| matches(clause, row))
                && !must_not.iter().any(|clause| matches(clause, row))
                && should.iter().filter(|clause| matches(clause, row)).count() >= needed
        }
        other => panic!("{other:?}"),
    }
}

#[derive(PartialEq, PartialOrd)]
struct QueryText(String);

fn text(bound: &Bound<QueryValue>) -> Bound<QueryText> {
    bound.as_ref().map(|value| match value {
        QueryValue::String(text) => QueryText(text.clone()),
        other => panic!("{other:?}"),
    })
}

/// Where a row stands, best last; those without a value are last either way.
fn sorted(rows: &mut [(&Vec<u8>, &Row)], field: &str, descending: bool) {
    let place = |row: &Row| match field {
        "at" => row.at.map(|at| at as f64),
        "price" => row.price,
        _ => Some(row.n as f64),
    };
    rows.sort_by(|(one_key, one), (other_key, other)| {
        let ordering = match field {
            "key" => one_key.cmp(other_key),
            "name" => one.name.cmp(&other.name),
            _ => match (place(one), place(other)) {
                (Some(one), Some(other)) => one.total_cmp(&other),
                (one, other) => return other.is_some().cmp(&one.is_some()).then(one_key.cmp(other_key)),
            },
        };
        let ordering = if descending { ordering.reverse() } else { ordering };
        ordering.then(one_key.cmp(other_key))
    });
}

fn compare_with_rows(rng: &mut Rng, index: &Index, rows: &Rows) {
    let searcher = index.searcher();
    let mut hits = 0;
    for _ in 0..SEARCHES {
        let query = query(rng);
        let field = ["at", "at", "n", "price", "name", "key"][rng.usize(..6)];
        let descending = rng.u8(..3) > 0;
        let mut expected: Vec<_> = rows.iter().filter(|(_, row)| matches(&query, row)).collect();
        sorted(&mut expected, field, descending);
        let order = match field {
            "key" => Sort::PrimaryKey { descending },
            field => Sort::field(field, descending),
        };
        let mut request = SearchRequest::new(query)
            .sorted(vec![order])
            .page_size(rng.usize(1..30));
        request.skip = [0, 0, 700][rng.usize(..3)];
        let mut rest = expected.iter().skip(request.skip);
        for _ in 0..PAGES {
            request.total = [TotalRequest::None, TotalRequest::Exact][rng.usize(..2)];
            let found = find(&searcher, &request);
            if let Some(total) = found.total {
                assert_eq!(
                    (total.value, total.relation),
                    (expected.len() as u64, Relation::Equal),
                    "{request:#?}"
                );
            }
            let page: Vec<&[u8]> = rest
                .by_ref()
                .take(request.page_size)
                .map(|(key, _)| key.as_slice())
                .collect();
            let keys: Vec<&[u8]> = found.hits.iter().map(|hit| hit.key.as_slice()).collect();
            assert_eq!(keys, page, "{request:#?}");
            hits += keys.len();
            request.skip = 0;
            request.after = found.next_page_token;
            if request.after.is_none() {
                break;
            }
        }
    }
    assert!(hits > SEARCHES * 10, "{hits} hits: the test tests too little");
}

#[test]
fn what_columns_tell_is_what_a_scan_finds() {
    let mut rng = random_numbers();
    for shuffled in [false, true] {
        let schema = Schema::new(vec![
            Field::date("at"),
            Field::long("n").column_only(),
            Field::double("price"),
            Field::keyword("name"),
            Field::keyword("kind"),
        ]);
        let index =
            Index::create_in_ram(schema.expect("a schema"), IndexOptions::default()).expect("an index");
        let rows = fill(&mut rng, &index, shuffled);
        compare_with_rows(&mut rng, &index, &rows);
        index
            .writer()
            .expect("the writer")
            .merge_all()
            .expect("the merge works");
        compare_with_rows(&mut rng, &index, &rows);
    }
}

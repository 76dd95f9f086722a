//! Small pages over many hits, in several segments with deletes: where a search doesn't look at every match. What it
//! finds is what sorting all documents gives.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;

use fastrand::Rng;
use souk_index::{
    Analyzer, Document, Field, FieldValue, Hit, Index, IndexOptions, Missing, Object, Operation, Query,
    QueryValue, Relation, Schema, SearchRequest, Sort, SortValue, Total, TotalRequest,
};

use super::{commit, find, random_numbers};

const DOCUMENTS: u32 = 6_000;
const COMMITS: u64 = 5;
const SEARCHES: usize = 150;
const PAGES: usize = 4;
const WORDS: [&str; 6] = ["red", "green", "blue", "black", "white", "grey"];

#[derive(Clone)]
struct Row {
    kind: &'static str,
    n: Option<i64>,
    at: Option<i64>,
    price: Option<f64>,
    title: String,
}

type Rows = BTreeMap<Vec<u8>, Row>;

fn index(nested: bool) -> Index {
    let mut fields = vec![
        Field::keyword("kind"),
        Field::long("n"),
        Field::date("at"),
        Field::double("price"),
        Field::text("title", Analyzer::single_word()),
    ];
    if nested {
        fields.push(Field::nested("items", vec![Field::keyword("sku")]));
    }
    let schema = Schema::new(fields).expect("the schema is valid");
    Index::create_in_ram(schema, IndexOptions::default()).expect("an index")
}

/// Times grow with documents, numbers don't, prices are few.
fn row(rng: &mut Rng, nth: u32) -> Row {
    let words: Vec<&str> = (0..rng.usize(1..9))
        .map(|_| WORDS[rng.usize(..WORDS.len())])
        .collect();
    let rarely = |rng: &mut Rng| rng.u8(..20) == 0;
    Row {
        kind: if rng.u8(..10) == 0 { "rare" } else { "common" },
        n: (!rarely(rng)).then(|| match rng.u8(..50) {
            0 => i64::MAX,
            1 => i64::MIN,
            _ => rng.i64(-2_000..2_000),
        }),
        at: (!rarely(rng)).then(|| i64::from(nth) * 1_000 + rng.i64(0..5_000)),
        price: (!rarely(rng)).then(|| f64::from(rng.i8(-3..3)) / 2.0),
        title: words.join(" "),
    }
}

fn document(rng: &mut Rng, key: Vec<u8>, row: &Row, nested: bool) -> Document {
    let mut fields = Object::new()
        .with("kind", row.kind)
        .with("title", row.title.as_str())
        .with_all("n", row.n.map(FieldValue::Long))
        .with_all("at", row.at.map(FieldValue::Date))
        .with_all("price", row.price.map(FieldValue::Double));
    if nested {
        let items: Vec<Object> = (0..rng.usize(..3))
            .map(|_| Object::new().with("sku", "x"))
            .collect();
        fields = fields.with_all("items", (!items.is_empty()).then_some(items));
    }
    Document { key, fields }
}

fn fill(rng: &mut Rng, index: &Index, nested: bool) -> Rows {
    let mut writer = index.writer().expect("the writer");
    let mut rows = Rows::new();
    let per_commit = DOCUMENTS / COMMITS as u32;
    for sequence in 1..=COMMITS {
        let first = (sequence as u32 - 1) * per_commit;
        let mut operations = Vec::new();
        for nth in first..first + per_commit {
            let key = rng.u32(..DOCUMENTS * 2).to_be_bytes().to_vec();
            if rng.u8(..15) == 0 {
                rows.remove(&key);
                operations.push(Operation::Delete { key });
                continue;
            }
            let row = row(rng, nth);
            operations.push(Operation::Upsert(document(rng, key.clone(), &row, nested)));
            rows.insert(key, row);
        }
        commit(&mut writer, operations, sequence);
    }
    rows
}

fn query(rng: &mut Rng) -> Query {
    let from = rng.i64(-2_000..0);
    let range = Query::range("n", Bound::Included(QueryValue::Integer(from)), Bound::Unbounded);
    let rare = Query::term("kind", "rare");
    match rng.u8(..7) {
        0 | 1 => Query::MatchAll,
        2 => Query::term("kind", "common"),
        3 => rare,
        4 => range,
        5 => Query::Bool {
            must: vec![range],
            filter: vec![Query::exists("at")],
            should: Vec::new(),
            must_not: vec![rare],
            minimum_should_match: None,
        },
        _ => Query::prefix("kind", "com"),
    }
}

fn matches(query: &Query, row: &Row) -> bool {
    match query {
        Query::MatchAll => true,
        Query::Term { value, .. } => *value == QueryValue::from(row.kind),
        Query::Prefix { .. } => row.kind == "common",
        Query::Exists { .. } => row.at.is_some(),
        Query::Range {
            lower: Bound::Included(QueryValue::Integer(from)),
            ..
        } => row.n.is_some_and(|n| n >= *from),
        Query::Bool {
            must,
            filter,
            must_not,
            ..
        } => {
            must.iter().chain(filter).all(|clause| matches(clause, row))
                && !must_not.iter().any(|clause| matches(clause, row))
        }
        other => panic!("{other:?}"),
    }
}

fn sorts(rng: &mut Rng) -> Vec<Sort> {
    let field = |rng: &mut Rng| {
        let field = ["n", "at", "at", "price", "kind"][rng.usize(..5)];
        let missing = match (rng.u8(..8), field) {
            (0, _) => Missing::First,
            (1, "n") => Missing::Value(QueryValue::Integer(100)),
            (1, "at") => Missing::Value(QueryValue::Time(3_000_000)),
            _ => Missing::Last,
        };
        Sort::Field {
            field: field.to_owned(),
            descending: rng.bool(),
            mode: None,
            missing,
            nested: None,
        }
    };
    match rng.u8(..8) {
        0 => Vec::new(),
        1 => vec![Sort::PrimaryKey {
            descending: rng.bool(),
        }],
        2 => vec![
            Sort::Score {
                ascending: rng.bool(),
            },
            field(rng),
        ],
        3 => vec![field(rng), field(rng)],
        _ => vec![field(rng)],
    }
}

/// Where a row stands: a number for each end, so that doubles and integers compare alike.
fn compare(sorts: &[Sort], one: (&Vec<u8>, &Row), other: (&Vec<u8>, &Row)) -> Ordering {
    for sort in sorts {
        let ordering = match sort {
            Sort::Score { .. } => Ordering::Equal,
            Sort::PrimaryKey { descending } => directed(one.0.cmp(other.0), *descending),
            Sort::Field {
                field,
                descending,
                missing,
                ..
            } => {
                let substitute = match missing {
                    Missing::Value(QueryValue::Integer(value) | QueryValue::Time(value)) => Some(*value),
                    _ => None,
                };
                let number = |row: &Row| match field.as_str() {
                    "n" => row.n.or(substitute),
                    "at" => row.at.or(substitute),
                    "price" => row.price.map(|price| (price * 2.0) as i64),
                    _ => Some(i64::from(row.kind == "rare")),
                };
                match (number(one.1), number(other.1)) {
                    (None, None) => Ordering::Equal,
                    (None, Some(_)) => directed(Ordering::Greater, *missing == Missing::First),
                    (Some(_), None) => directed(Ordering::Less, *missing == Missing::First),
                    (Some(one), Some(other)) => directed(one.cmp(&other), *descending),
                }
            }
            Sort::GeoDistance { .. } => panic!("not used here"),
        };
        if ordering.is_ne() {
            return ordering;
        }
    }
    one.0.cmp(other.0)
}

fn directed(ordering: Ordering, reversed: bool) -> Ordering {
    if reversed { ordering.reverse() } else { ordering }
}

fn check_total(request: &SearchRequest, total: Option<Total>, matching: u64) {
    let fits = match (request.total, total) {
        (TotalRequest::None, None) => true,
        (TotalRequest::Exact, Some(total)) => (total.value, total.relation) == (matching, Relation::Equal),
        (TotalRequest::AtLeast(enough), Some(total)) => match total.relation {
            Relation::Equal => total.value == matching,
            Relation::AtLeast => total.value >= enough && total.value <= matching,
        },
        _ => false,
    };
    assert!(fits, "{total:?} of {matching} for {request:#?}");
}

#[test]
fn the_first_pages_of_many_hits_are_those_of_all_sorted() {
    let mut rng = random_numbers();
    for nested in [false, true] {
        let index = index(nested);
        let rows = fill(&mut rng, &index, nested);
        let searcher = index.searcher();
        for _ in 0..SEARCHES {
            let (query, sorts) = (query(&mut rng), sorts(&mut rng));
            let mut expected: Vec<_> = rows.iter().filter(|(_, row)| matches(&query, row)).collect();
            expected.sort_by(|one, other| compare(&sorts, *one, *other));
            let mut request = SearchRequest::new(query)
                .sorted(sorts)
                .page_size(rng.usize(1..20));
            request.skip = rng.usize(..4);
            let mut rest = expected.iter().skip(request.skip);
            for _ in 0..PAGES {
                let totals = [
                    TotalRequest::None,
                    TotalRequest::Exact,
                    TotalRequest::AtLeast(rng.u64(..2_000)),
                ];
                request.total = totals[rng.usize(..3)];
                let found = find(&searcher, &request);
                check_total(&request, found.total, expected.len() as u64);
                let page: Vec<&[u8]> = rest
                    .by_ref()
                    .take(request.page_size)
                    .map(|(key, _)| key.as_slice())
                    .collect();
                let keys: Vec<&[u8]> = found.hits.iter().map(|hit| hit.key.as_slice()).collect();
                assert_eq!(keys, page, "{request:#?}");
                request.skip = 0;
                request.after = found.next_page_token;
                if request.after.is_none() {
                    break;
                }
            }
        }
    }
}

#[test]
fn the_best_scores_are_the_same_whether_or_not_all_are_counted() {
    let mut rng = random_numbers();
    for nested in [false, true] {
        let index = index(nested);
        fill(&mut rng, &index, nested);
        let searcher = index.searcher();
        for _ in 0..SEARCHES / 5 {
            let words: Vec<&str> = WORDS.into_iter().filter(|_| rng.u8(..3) == 0).collect();
            if words.is_empty() {
                continue;
            }
            let text = words.join(" ");
            let sort = [
                Vec::new(),
                vec![Sort::Score { ascending: false }, Sort::field("n", rng.bool())],
            ];
            let mut request = SearchRequest::new(Query::match_text("title", text))
                .sorted(sort[rng.usize(..2)].clone())
                .page_size(rng.usize(1..20));
            // All of them are walked, for the total.
            let mut whole = request.clone().page_size(1_000).total(TotalRequest::Exact);
            let mut all: Vec<Hit> = Vec::new();
            for _ in 0..2 {
                let found = find(&searcher, &whole);
                all.extend(found.hits);
                whole.after = found.next_page_token;
                if whole.after.is_none() {
                    break;
                }
            }
            let mut rest = all.into_iter();
            for _ in 0..PAGES {
                let found = find(&searcher, &request);
                let page: Vec<Hit> = rest.by_ref().take(request.page_size).collect();
                assert_eq!(found.hits, page, "{request:#?}");
                assert!(page.iter().all(|hit| hit.score.is_some()));
                request.after = found.next_page_token;
                if request.after.is_none() {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_bounded_total_stops_counting() {
    let mut rng = random_numbers();
    let index = index(false);
    let rows = fill(&mut rng, &index, false);
    let all = Query::range("at", Bound::Included(QueryValue::Time(0)), Bound::Unbounded);
    let request = SearchRequest::new(all)
        .sorted(vec![Sort::field("at", true)])
        .total(TotalRequest::AtLeast(100));
    let total = find(&index.searcher(), &request).total;
    let expected = Total {
        value: 100,
        relation: Relation::AtLeast,
    };
    assert_eq!(total, Some(expected));
    let newest = rows.values().filter_map(|row| row.at).max().map(SortValue::Date);
    let first = find(&index.searcher(), &request).hits.into_iter().next();
    assert_eq!(first.and_then(|hit| hit.sort_values.into_iter().next()), newest);
}

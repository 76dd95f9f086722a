//! The searches of a shop's back office over orders: `SOUK_BENCH_ORDERS` of them (200,000 by default), in the order in which
//! they were made (`SOUK_BENCH_SHUFFLED=1`: in random order), in the segments that loading them leaves, on one thread.

#![expect(
    clippy::expect_used,
    reason = "a benchmark that can't be set up has nothing to measure"
)]

use std::hint::black_box;
use std::ops::Bound;

use criterion::{Criterion, criterion_group, criterion_main};
use souk_index::{
    Cancellation, Document, Field, FieldValue, Index, IndexOptions, Object, Operation, Query, QueryValue,
    Schema, SearchRequest, Searcher, Sort, TotalRequest,
};

const ORDERS: u64 = 200_000;
const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;
const DAYS: i64 = 1_000;
const PRODUCTS: u64 = 100_000;
const SYLLABLES: [&str; 24] = [
    "ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "qi", "ro", "su", "ta", "ve",
    "wi", "xo", "yu", "za", "che", "shi", "tho",
];

fn word(mut seed: u64) -> String {
    let mut word = String::new();
    for _ in 0..3 {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        word += SYLLABLES[(seed >> 33) as usize % SYLLABLES.len()];
    }
    word
}

fn product(n: u64) -> String {
    format!(
        "{} {} {} {n}",
        word(n % 3_000),
        word(n % 701 + 5_000),
        word(n % 97 + 9_000)
    )
}

fn order(n: u64, orders: u64) -> Document {
    let mut rng = fastrand::Rng::with_seed(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    // Some products sell much more than others.
    let which = (PRODUCTS as f64 * rng.f64().powi(2)) as u64;
    let time = (n as i64) * (DAYS * DAY / orders as i64) + rng.i64(..SECOND);
    let fields = Object::new()
        .with("order_id", format!("o{n:010}"))
        .with("consumer_id", format!("c{:06}", rng.u32(..100_000)))
        .with("salesperson_id", format!("s{:04}", rng.u32(..2_000)))
        .with("product_name", product(which))
        .with("product_type", format!("t{:02}", which % 30))
        .with("order_time", FieldValue::Date(time))
        .with("total_price_cents", 100 + (rng.f64().powi(4) * 400_000.0) as i64);
    Document {
        key: n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().to_vec(),
        fields,
    }
}

fn index(orders: u64) -> (Index, tempfile::TempDir) {
    let schema = Schema::new(vec![
        Field::keyword("order_id"),
        Field::keyword("consumer_id"),
        Field::keyword("salesperson_id"),
        Field::keyword("product_name"),
        Field::keyword("product_type"),
        Field::date("order_time"),
        Field::long("total_price_cents").column_only(),
    ])
    .expect("the schema is valid");
    let folder = tempfile::tempdir().expect("a folder");
    let index = Index::open(folder.path(), schema, IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("the writer");
    let mut numbers: Vec<u64> = (0..orders).collect();
    if std::env::var_os("SOUK_BENCH_SHUFFLED").is_some() {
        fastrand::Rng::with_seed(7).shuffle(&mut numbers);
    }
    for numbers in numbers.chunks(10_000) {
        let operations = numbers.iter().map(|n| Operation::Insert(order(*n, orders)));
        writer
            .apply(operations.collect())
            .expect("the orders are taken in");
    }
    writer.commit(1).expect("the commit works");
    writer.close().expect("merges end");
    (index, folder)
}

fn measure(criterion: &mut Criterion, searcher: &Searcher, name: &str, requests: &[SearchRequest]) {
    let mut nth = 0;
    criterion.bench_function(name, |bencher| {
        bencher.iter(|| {
            nth = (nth + 1) % requests.len();
            let found = searcher
                .search(black_box(&requests[nth]), &Cancellation::none())
                .expect("the search works");
            black_box((found.hits.len(), found.total))
        });
    });
}

fn between(field: &str, from: QueryValue, to: Option<QueryValue>) -> Query {
    Query::range(
        field,
        Bound::Included(from),
        to.map_or(Bound::Unbounded, Bound::Excluded),
    )
}

fn searches(criterion: &mut Criterion) {
    let orders = std::env::var("SOUK_BENCH_ORDERS")
        .ok()
        .and_then(|count| count.parse().ok());
    let orders = orders.unwrap_or(ORDERS);
    let (index, _folder) = index(orders);
    let searcher = index.searcher();
    let newest = |query: Query| {
        SearchRequest::new(query)
            .sorted(vec![Sort::field("order_time", true)])
            .page_size(20)
    };
    let count = |query: Query| SearchRequest::new(query).page_size(0).total(TotalRequest::Exact);
    let mut rng = fastrand::Rng::with_seed(100);
    let mut some =
        |make: &mut dyn FnMut(&mut fastrand::Rng, &Object) -> SearchRequest| -> Vec<SearchRequest> {
            (0..200)
                .map(|_| {
                    let fields = order(rng.u64(..orders), orders).fields;
                    make(&mut rng, &fields)
                })
                .collect()
        };
    let text = |object: &Object, field: &str| match object.values(field).first() {
        Some(FieldValue::String(text)) => text.as_str().to_owned(),
        _ => String::new(),
    };
    let is = |object: &Object, field: &str| Query::term(field, text(object, field).as_str());
    let cents = |object: &Object| match object.values("total_price_cents").first() {
        Some(FieldValue::Long(cents)) => *cents,
        _ => 0,
    };
    let end = DAYS * DAY;
    let since = |days: i64| {
        between(
            "order_time",
            QueryValue::Time(end - days * DAY),
            Some(QueryValue::Time(end)),
        )
    };

    let q1 = some(&mut |_, order| {
        let price = cents(order);
        newest(Query::all(vec![
            is(order, "consumer_id"),
            between("total_price_cents", (price / 2).into(), Some((price * 4).into())),
        ]))
    });
    let seller = |order: &Object, days: i64| {
        Query::all(vec![
            is(order, "product_type"),
            is(order, "salesperson_id"),
            since(days),
        ])
    };
    let q2 = some(&mut |_, order| newest(seller(order, 30)));
    let q3 = vec![newest(Query::MatchAll)];
    let by_id = SearchRequest::new(Query::MatchAll)
        .sorted(vec![Sort::field("order_id", true)])
        .page_size(20);
    let by_price = SearchRequest::new(Query::MatchAll)
        .sorted(vec![Sort::field("total_price_cents", true)])
        .page_size(20);
    let q4 = some(&mut |rng, order| {
        let name = text(order, "product_name");
        newest(Query::prefix("product_name", &name[..rng.usize(3..9)]))
    });
    let q5 = some(&mut |rng, order| {
        let name = text(order, "product_name");
        let from = rng.usize(..name.len() - 6);
        newest(Query::wildcard(
            "product_name",
            format!("*{}*", &name[from..from + rng.usize(3..7)]),
        ))
    });
    let q8seller = some(&mut |rng, order| count(seller(order, rng.i64(60..900))));
    let q8wide = some(&mut |rng, order| {
        count(Query::all(vec![
            is(order, "product_type"),
            since(rng.i64(60..900)),
            between("total_price_cents", rng.i64(..5_000).into(), None),
        ]))
    });
    let month = some(&mut |rng, _| count(since(rng.i64(1..60))));
    let mut nth = 0;
    let q16 = some(&mut |rng, order| {
        nth += 1;
        let mut clauses = vec![between("total_price_cents", rng.i64(..2_000).into(), None)];
        if nth % 2 == 0 {
            clauses.push(is(order, "product_type"));
        }
        let mut request = newest(Query::all(clauses));
        request.skip = 19_980.min(orders as usize / 100);
        let before = searcher
            .search(&request, &Cancellation::none())
            .expect("the search works");
        request.skip = 0;
        request.after(before.next_page_token)
    });
    for (name, requests) in [
        ("Q1 consumer and price, newest 20", q1),
        ("Q2 type, seller and month, newest 20", q2),
        ("Q3 newest 20 of all", q3),
        ("Q3 last 20 ids of all", vec![by_id]),
        ("Q3 dearest 20 of all", vec![by_price]),
        ("Q4 prefix, newest 20", q4),
        ("Q5 infix wildcard, newest 20", q5),
        ("Q8 count of type, seller and time", q8seller),
        ("Q8 count of type, time and price", q8wide),
        ("count of some weeks", month),
        ("Q16 page 1,000 by cursor", q16),
    ] {
        measure(criterion, &searcher, name, &requests);
    }
}

criterion_group!(benches, searches);
criterion_main!(benches);

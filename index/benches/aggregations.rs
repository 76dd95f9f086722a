//! Aggregations over 500,000 orders in one segment, on one thread: sums by brand, over everything and over one type.

#![expect(
    clippy::expect_used,
    reason = "a benchmark that can't be set up has nothing to measure"
)]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use souk_index::{
    Aggregation, Cancellation, Document, Field, Index, IndexOptions, MetricKind, Object, Operation, Query,
    Schema, SearchRequest, Sort,
};

const ORDERS: u32 = 500_000;
const TYPES: u32 = 20;

fn index() -> Index {
    let schema = Schema::new(vec![
        Field::keyword("type"),
        Field::keyword("brand"),
        Field::keyword("buyer"),
        Field::long("cents").column_only(),
        Field::double("weight"),
        Field::date("created"),
    ])
    .expect("the schema is valid");
    let index = Index::create_in_ram(schema, IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("the writer");
    let mut rng = fastrand::Rng::with_seed(7);
    for from in (0..ORDERS).step_by(10_000) {
        let orders = (from..from + 10_000).map(|n| Operation::Insert(order(&mut rng, n)));
        writer.apply(orders.collect()).expect("the orders are taken in");
    }
    writer.commit(1).expect("the commit works");
    writer.merge_all().expect("the merge works");
    index
}

fn order(rng: &mut fastrand::Rng, n: u32) -> Document {
    let kind = rng.u32(..TYPES);
    let fields = Object::new()
        .with("type", format!("type-{kind}"))
        .with("brand", format!("brand-{}", kind * 10 + rng.u32(..10)))
        .with("buyer", format!("buyer-{}", rng.u32(..100_000)))
        .with("cents", rng.i64(1..1_000_000))
        .with("weight", rng.f64() * 1_000.0)
        .with(
            "created",
            souk_index::FieldValue::Date(i64::from(n) * 1_000_000_000),
        );
    Document {
        key: n.to_be_bytes().to_vec(),
        fields,
    }
}

fn figure(field: &str, figure: MetricKind) -> Aggregation {
    Aggregation::Figure {
        field: field.to_owned(),
        figure,
        missing: None,
    }
}

fn median(field: &str) -> Aggregation {
    Aggregation::Percentiles {
        field: field.to_owned(),
        percentages: vec![50.0],
        missing: None,
    }
}

fn terms(field: &str, aggregations: Vec<(String, Aggregation)>) -> Aggregation {
    Aggregation::Terms {
        field: field.to_owned(),
        size: 1_000,
        min_doc_count: 1,
        order: Vec::new(),
        missing: None,
        aggregations,
    }
}

fn aggregations(criterion: &mut Criterion) {
    let index = index();
    let searcher = index.searcher();
    let mut run = |name: &str, rows: u32, request: SearchRequest| {
        let mut group = criterion.benchmark_group("aggregations");
        group.throughput(Throughput::Elements(u64::from(rows)));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let found = searcher
                    .search(black_box(&request), &Cancellation::none())
                    .expect("the search works");
                black_box(found.aggregations.len())
            });
        });
        group.finish();
    };
    let one = |aggregation: Aggregation| vec![("a".to_owned(), aggregation)];
    let by_brand = || one(terms("brand", one(figure("cents", MetricKind::Sum))));
    let only = |query: Query, asked| SearchRequest::new(query).page_size(0).aggregations(asked);

    run("sum by brand", ORDERS, only(Query::MatchAll, by_brand()));
    let one_type = Query::term("type", "type-3");
    run(
        "sum by brand of one type",
        ORDERS / TYPES,
        only(one_type.clone(), by_brand()),
    );
    run(
        "sum by brand of one type beside the newest 20",
        ORDERS / TYPES,
        SearchRequest::new(one_type)
            .sorted(vec![Sort::field("created", true)])
            .page_size(20)
            .aggregations(by_brand()),
    );
    run(
        "stats",
        ORDERS,
        only(Query::MatchAll, one(figure("cents", MetricKind::Stats))),
    );
    run(
        "stats of doubles",
        ORDERS,
        only(Query::MatchAll, one(figure("weight", MetricKind::Stats))),
    );
    run(
        "sum of doubles by brand",
        ORDERS,
        only(
            Query::MatchAll,
            one(terms("brand", one(figure("weight", MetricKind::Sum)))),
        ),
    );
    run(
        "sum by brand in types",
        ORDERS,
        only(Query::MatchAll, one(terms("type", by_brand()))),
    );
    run(
        "median by brand",
        ORDERS,
        only(Query::MatchAll, one(terms("brand", one(median("cents"))))),
    );
    run(
        "distinct buyers",
        ORDERS,
        only(Query::MatchAll, one(figure("buyer", MetricKind::DistinctCount))),
    );
    run(
        "100,000 groups by buyer",
        ORDERS,
        only(Query::MatchAll, one(terms("buyer", Vec::new()))),
    );
}

criterion_group!(benches, aggregations);
criterion_main!(benches);

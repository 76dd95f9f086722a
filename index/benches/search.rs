//! Searches over 100,000 documents with two nested objects each, in one segment, on one thread.

#![expect(
    clippy::expect_used,
    reason = "a benchmark that can't be set up has nothing to measure"
)]

use std::hint::black_box;
use std::ops::Bound;

use criterion::{Criterion, criterion_group, criterion_main};
use souk_index::{
    Analyzer, Cancellation, Document, Field, GeoPoint, Index, IndexOptions, InnerHits, Object, Operation,
    Query, QueryValue, Schema, ScoreMode, SearchRequest, Searcher, Sort, TotalRequest,
};

const DOCUMENTS: u32 = 100_000;
const WORDS: [&str; 8] = [
    "coffee", "tea", "organic", "roasted", "咖啡", "绿茶", "fresh", "classic",
];

fn index() -> Index {
    let items = Field::nested(
        "items",
        vec![Field::keyword("sku"), Field::long("quantity").column_only()],
    );
    let schema = Schema::new(vec![
        Field::keyword("status"),
        Field::keyword("buyer"),
        Field::text("title", Analyzer::single_word()),
        Field::long("cents").column_only(),
        Field::date("created"),
        Field::geo_point("position"),
        items,
    ])
    .expect("the schema is valid");
    let index = Index::create_in_ram(schema, IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("the writer");
    let mut rng = fastrand::Rng::with_seed(7);
    for from in (0..DOCUMENTS).step_by(10_000) {
        let documents = (from..from + 10_000).map(|n| Operation::Insert(document(&mut rng, n)));
        writer
            .apply(documents.collect())
            .expect("the documents are taken in");
    }
    writer.commit(1).expect("the commit works");
    writer.merge_all().expect("the merge works");
    index
}

fn document(rng: &mut fastrand::Rng, n: u32) -> Document {
    let word = |rng: &mut fastrand::Rng| WORDS[rng.usize(..WORDS.len())];
    let position = GeoPoint::new(30.0 + rng.f64(), 120.0 + rng.f64()).expect("in range");
    let item = |rng: &mut fastrand::Rng| {
        Object::new()
            .with("sku", format!("sku-{}", rng.u32(..2_000)))
            .with("quantity", rng.i64(1..100))
    };
    let fields = Object::new()
        .with("status", if rng.u8(..3) == 0 { "CREATED" } else { "PAID" })
        .with("buyer", format!("buyer-{}", rng.u32(..5_000)))
        .with("title", format!("{} {} {}", word(rng), word(rng), word(rng)))
        .with("cents", rng.i64(..1_000_000))
        .with(
            "created",
            souk_index::FieldValue::Date(i64::from(n) * 1_000_000_000),
        )
        .with("position", position)
        .with("items", vec![item(rng), item(rng)]);
    Document {
        key: n.to_be_bytes().to_vec(),
        fields,
    }
}

fn measure(criterion: &mut Criterion, searcher: &Searcher, name: &str, request: &SearchRequest) {
    criterion.bench_function(name, |bencher| {
        bencher.iter(|| {
            let found = searcher
                .search(black_box(request), &Cancellation::none())
                .expect("the search works");
            black_box(found.hits.len())
        });
    });
}

fn searches(criterion: &mut Criterion) {
    let index = index();
    let searcher = index.searcher();
    let mut run = |name: &str, request: SearchRequest| measure(criterion, &searcher, name, &request);
    let by_key = vec![Sort::PrimaryKey { descending: false }];
    let by_cents = vec![Sort::field("cents", false)];

    run(
        "term",
        SearchRequest::new(Query::term("buyer", "buyer-17")).sorted(by_key.clone()),
    );
    let cents = |from: i64, to: i64| {
        let bound = |cents| Bound::Included(QueryValue::Integer(cents));
        Query::range("cents", bound(from), bound(to))
    };
    run(
        "range, counted",
        SearchRequest::new(cents(1_000, 100_000))
            .sorted(by_key.clone())
            .total(TotalRequest::Exact),
    );
    run(
        "match by score",
        SearchRequest::new(Query::match_text("title", "organic 咖啡")),
    );
    let center = GeoPoint::new(30.5, 120.5).expect("in range");
    let around = Query::GeoDistance {
        field: "position".to_owned(),
        center,
        distance_meters: 5_000.0,
    };
    let nearest = Sort::GeoDistance {
        field: "position".to_owned(),
        points: vec![center],
        descending: false,
    };
    run(
        "geo distance, nearest first",
        SearchRequest::new(around).sorted(vec![nearest]),
    );
    let least = Bound::Included(QueryValue::Integer(90));
    let item = Query::all(vec![
        Query::term("items.sku", "sku-17"),
        Query::range("items.quantity", least, Bound::Unbounded),
    ]);
    run(
        "nested",
        SearchRequest::new(Query::nested("items", item)).sorted(by_key),
    );
    let created = Query::term("status", "CREATED");
    run(
        "a third of all by a number",
        SearchRequest::new(created.clone()).sorted(by_cents.clone()),
    );
    run(
        "a third of all by a string",
        SearchRequest::new(created.clone()).sorted(vec![Sort::field("buyer", false)]),
    );
    run(
        "a third of all, newest first",
        SearchRequest::new(created.clone()).sorted(vec![Sort::field("created", true)]),
    );

    let newest = vec![Sort::field("created", true)];
    run(
        "everything, newest first",
        SearchRequest::new(Query::MatchAll).sorted(newest.clone()),
    );
    run(
        "everything, newest first, counted",
        SearchRequest::new(Query::MatchAll)
            .sorted(newest.clone())
            .total(TotalRequest::Exact),
    );
    run(
        "a third of all, newest first, counted",
        SearchRequest::new(created.clone())
            .sorted(newest)
            .total(TotalRequest::Exact),
    );
    run("everything by key", SearchRequest::new(Query::MatchAll));
    run(
        "a third of all, only counted",
        SearchRequest::new(created.clone())
            .page_size(0)
            .total(TotalRequest::Exact),
    );
    run(
        "match of one word by score",
        SearchRequest::new(Query::match_text("title", "organic")),
    );

    let request = SearchRequest::new(created).sorted(by_cents).page_size(1_000);
    let page = searcher
        .search(&request, &Cancellation::none())
        .expect("the search works");
    run(
        "a third of all by a number, second page",
        request.page_size(10).after(page.next_page_token),
    );
}

/// What profiles cost, and collapse and inner hits.
fn shown(criterion: &mut Criterion) {
    let index = index();
    let searcher = index.searcher();
    let mut run = |name: &str, request: SearchRequest| measure(criterion, &searcher, name, &request);
    let paid = || Query::term("status", "PAID");
    let newest = vec![Sort::field("created", true)];
    let least = Bound::Included(QueryValue::Integer(90));
    let item = Query::all(vec![
        Query::term("items.sku", "sku-17"),
        Query::range("items.quantity", least, Bound::Unbounded),
    ]);
    let several = Query::Bool {
        must: vec![Query::match_text("title", "organic 咖啡"), paid()],
        filter: vec![Query::nested("items", item.clone())],
        should: Vec::new(),
        must_not: vec![Query::term("buyer", "buyer-17")],
        minimum_should_match: None,
    };
    let searches = [
        ("term", SearchRequest::new(Query::term("buyer", "buyer-17"))),
        ("several clauses", SearchRequest::new(several)),
        (
            "two thirds of all, newest first",
            SearchRequest::new(paid()).sorted(newest.clone()),
        ),
        (
            "match by score",
            SearchRequest::new(Query::match_text("title", "organic 咖啡")),
        ),
    ];
    for (name, request) in searches {
        run(&format!("profile/{name}"), request.clone());
        let profiled = SearchRequest {
            profile: true,
            ..request
        };
        run(&format!("profile/{name}, profiled"), profiled);
    }

    let mut collapsed = SearchRequest::new(paid()).sorted(newest);
    collapsed.collapse = Some("buyer".to_owned());
    run(
        "collapse/two thirds of all, newest of each buyer",
        collapsed.clone(),
    );
    let first = searcher
        .search(&collapsed.clone().page_size(1_000), &Cancellation::none())
        .expect("the search works");
    run(
        "collapse/two thirds of all, behind 1,000 buyers",
        collapsed.after(first.next_page_token),
    );
    let nested = |inner_hits| Query::Nested {
        path: "items".to_owned(),
        query: Box::new(item.clone()),
        score_mode: ScoreMode::None,
        weight: 1.0,
        inner_hits,
    };
    run("inner hits/without", SearchRequest::new(nested(None)));
    run(
        "inner hits/of ten hits",
        SearchRequest::new(nested(Some(InnerHits::default()))),
    );
}

criterion_group!(benches, searches, shown);
criterion_main!(benches);

//! The best 20 of a million names by BM25, on one thread: two words that follow each other in a name, any of them or
//! both, with and without a count of all matches (which has to look at every match); and nested objects, scored and
//! counted.

#![expect(
    clippy::expect_used,
    reason = "a benchmark that can't be set up has nothing to measure"
)]

use std::cell::Cell;
use std::hint::black_box;
use std::ops::Bound;

use criterion::{Criterion, criterion_group, criterion_main};
use souk_index::{
    Analyzer, Cancellation, Document, Field, Index, IndexOptions, NestedSort, Object, Operation, Operator,
    Query, QueryValue, Schema, SearchRequest, Searcher, Sort, TotalRequest,
};

const DOCUMENTS: u32 = 1_000_000;
const PRODUCTS: usize = 20_000;
const WORDS: f64 = 5_000.0;
const QUESTIONS: usize = 200;
const MEDIA: u32 = 200_000;
const TAGS: f64 = 300.0;

/// Numbers below `most`, low ones more often: about Zipf's law with an exponent of 0.9.
fn zipf(rng: &mut fastrand::Rng, most: f64) -> u32 {
    (((most.powf(0.1) - 1.0) * rng.f64() + 1.0).powf(10.0) - 1.0) as u32
}

fn names() -> Vec<Vec<String>> {
    let mut rng = fastrand::Rng::with_seed(1);
    let word = |rng: &mut fastrand::Rng| format!("word{}", zipf(rng, WORDS));
    (0..PRODUCTS)
        .map(|_| (0..rng.usize(2..=5)).map(|_| word(&mut rng)).collect())
        .collect()
}

fn index(schema: Schema, documents: u32, mut document: impl FnMut(u32) -> Object) -> Index {
    let index = Index::create_in_ram(schema, IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("the writer");
    for from in (0..documents).step_by(50_000) {
        let operations = (from..from + 50_000).map(|n| {
            let key = (u64::from(n).wrapping_mul(0x9E37_79B9_7F4A_7C15))
                .to_be_bytes()
                .to_vec();
            let fields = document(n);
            Operation::Insert(Document { key, fields })
        });
        writer
            .apply(operations.collect())
            .expect("the documents are taken in");
        if from == documents / 2 {
            writer.commit(1).expect("the commit works");
        }
    }
    writer.commit(2).expect("the commit works");
    index
}

fn measure(criterion: &mut Criterion, searcher: &Searcher, name: &str, requests: &[SearchRequest]) {
    let nth = Cell::new(0);
    criterion.bench_function(name, |bencher| {
        bencher.iter(|| {
            nth.set((nth.get() + 1) % requests.len());
            let request = requests.get(nth.get()).expect("a request");
            let found = searcher.search(black_box(request), &Cancellation::none());
            black_box(found.expect("the search works").hits.len())
        });
    });
}

fn texts(criterion: &mut Criterion) {
    let names = names();
    let mut rng = fastrand::Rng::with_seed(2);
    let schema = Schema::new(vec![Field::text("name", Analyzer::single_word())]).expect("a schema");
    let index = index(schema, DOCUMENTS, |_| {
        let name = names.get(rng.usize(..PRODUCTS)).expect("a name");
        Object::new().with("name", name.join(" "))
    });
    let searcher = index.searcher();
    let mut rng = fastrand::Rng::with_seed(3);
    let texts: Vec<String> = (0..QUESTIONS)
        .map(|_| {
            let name = names.get(rng.usize(..PRODUCTS)).expect("a name");
            let from = rng.usize(..name.len() - 1);
            name.get(from..from + 2).expect("two words").join(" ")
        })
        .collect();
    for (operator, word) in [(Operator::Or, "any"), (Operator::And, "all")] {
        for (total, counted) in [(TotalRequest::None, ""), (TotalRequest::Exact, ", counted")] {
            let requests = texts.iter().map(|text| {
                let query = Query::Match {
                    field: "name".to_owned(),
                    text: text.clone(),
                    operator,
                    minimum_should_match: None,
                    weight: 1.0,
                };
                SearchRequest::new(query).page_size(20).total(total)
            });
            let requests: Vec<SearchRequest> = requests.collect();
            measure(
                criterion,
                &searcher,
                &format!("best 20 with {word} of two words{counted}"),
                &requests,
            );
        }
    }
}

fn nested(criterion: &mut Criterion) {
    let mut rng = fastrand::Rng::with_seed(4);
    let tags = Field::nested("tags", vec![Field::keyword("tag"), Field::double("score")]);
    let schema = Schema::new(vec![Field::keyword("user"), tags]).expect("a schema");
    let tag = |rng: &mut fastrand::Rng| format!("tag{}", zipf(rng, TAGS));
    let index = index(schema, MEDIA, |_| {
        let objects: Vec<Object> = (0..rng.usize(1..=5))
            .map(|_| {
                Object::new()
                    .with("tag", tag(&mut rng))
                    .with("score", f64::from(rng.u32(..100)) / 100.0)
            })
            .collect();
        Object::new()
            .with("user", format!("u{}", zipf(&mut rng, 5_000.0)))
            .with("tags", objects)
    });
    let searcher = index.searcher();
    let mut rng = fastrand::Rng::with_seed(5);
    let by_tag = |tag: &str| Query::term("tags.tag", tag);
    let of_user: Vec<SearchRequest> = (0..QUESTIONS)
        .map(|_| {
            let tag = tag(&mut rng);
            let user = Query::term("user", format!("u{}", zipf(&mut rng, 5_000.0)).as_str());
            let query = Query::all(vec![user, Query::nested("tags", by_tag(&tag))]);
            let nested = NestedSort {
                path: "tags".to_owned(),
                filter: Some(by_tag(&tag)),
            };
            let sort = Sort::Field {
                field: "tags.score".to_owned(),
                descending: true,
                mode: Some(souk_index::ArrayMode::Max),
                missing: souk_index::Missing::Last,
                nested: Some(nested),
            };
            SearchRequest::new(query).sorted(vec![sort]).page_size(20)
        })
        .collect();
    measure(
        criterion,
        &searcher,
        "user and nested tag, by its score",
        &of_user,
    );
    let counted: Vec<SearchRequest> = (0..QUESTIONS)
        .map(|_| {
            let least = Bound::Included(QueryValue::Double(f64::from(rng.u32(30..90)) / 100.0));
            let score = Query::range("tags.score", least, Bound::Unbounded);
            let query = Query::nested("tags", Query::all(vec![by_tag(&tag(&mut rng)), score]));
            SearchRequest::new(query).page_size(0).total(TotalRequest::Exact)
        })
        .collect();
    measure(criterion, &searcher, "nested tag and score, counted", &counted);
}

criterion_group!(benches, texts, nested);
criterion_main!(benches);

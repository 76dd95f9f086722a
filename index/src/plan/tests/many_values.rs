//! Fields with more values than the random documents have: other ways of looking up are taken then.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::model::Model;
use super::*;
use crate::document::Object;
use crate::request::QueryValue;

const DOCUMENTS: i64 = 5_000;

/// Documents with a brand and numbers of their own, in no order.
fn model() -> Model {
    let scattered = |nth: i64| nth * 7_919 % DOCUMENTS;
    let document = |nth: i64| {
        let value = scattered(nth);
        let second = scattered(nth + 1);
        Object::default()
            .with("brand", format!("o{value:04}").as_str())
            .with("brand", format!("p{second:04}").as_str())
            .with("serial", value)
            .with("count", value - 2_500)
            .with("count", second)
            .with("price", value as f64 / 4.0)
    };
    Model::new((0..DOCUMENTS).map(document).collect(), 2, 1_000)
}

fn assert_finds(model: &Model, query: &Query, at_least: usize) {
    let expected = model.expected(query);
    assert!(
        expected.len() >= at_least,
        "{query:?} finds only {}",
        expected.len()
    );
    assert_eq!(model.found(query), expected, "{query:?}");
    let scored: Vec<usize> = model
        .scored(query)
        .into_iter()
        .map(|(number, _)| number)
        .collect();
    assert_eq!(scored, expected, "with scores: {query:?}");
}

#[test]
fn ranges_and_prefixes_of_many_keywords() {
    let model = model();
    assert_finds(&model, &Query::prefix("brand", "o"), 4_900);
    assert_finds(&model, &Query::prefix("brand", "o1"), 990);
    assert_finds(&model, &Query::prefix("brand", "p4999"), 1);
    assert_finds(&model, &Query::wildcard("brand", "o?9*"), 490);
    assert_finds(&model, &Query::suffix("brand", "77"), 50);
    let text = |text: &str| QueryValue::from(text);
    for (lower, upper) in [
        (Bound::Included(text("o0100")), Bound::Excluded(text("o4000"))),
        (Bound::Excluded(text("o4990")), Bound::Included(text("p0010"))),
        (Bound::Unbounded, Bound::Included(text("o2500"))),
        (Bound::Excluded(text("p2500x")), Bound::Unbounded),
    ] {
        assert_finds(&model, &Query::range("brand", lower, upper), 15);
    }
    // Beside another clause, which lets the scan skip.
    let both = Query::all(vec![
        Query::prefix("brand", "o"),
        Query::range(
            "serial",
            Bound::Unbounded,
            Bound::Excluded(QueryValue::Integer(7)),
        ),
    ]);
    assert_finds(&model, &both, 6);
}

#[test]
fn lists_of_many_values() {
    let model = model();
    let numbers: BTreeSet<i64> = (0..900).map(|nth| nth * nth % DOCUMENTS).collect();
    let brands: Vec<String> = numbers.iter().map(|number| format!("o{number:04}")).collect();
    assert_finds(
        &model,
        &Query::terms("brand", brands.iter().map(String::as_str)),
        300,
    );
    for field in ["count", "serial"] {
        assert_finds(&model, &Query::terms(field, numbers.iter().copied()), 300);
    }
    assert_finds(&model, &Query::terms("price", numbers.iter().copied()), 100);
    let both = Query::all(vec![
        Query::terms("serial", numbers.iter().copied()),
        Query::prefix("brand", "o00"),
    ]);
    assert_finds(&model, &both, 5);
}

#[test]
fn walks_over_the_dictionary_end_with_the_search() {
    let model = model();
    let walk = |cancellation: Cancellation, query: &Query| {
        let run = Arc::new(Run::new(cancellation));
        match plan(&model.layout, &run, query, "query") {
            Ok(plan) => Some(run.reason("searching", model.search(&plan).err()?)),
            Err(error) => Some(error),
        }
    };
    let suffix = Query::all(vec![Query::suffix("brand", "77")]);
    assert!(walk(Cancellation::none(), &suffix).is_none());
    let over = Cancellation::at(std::time::Instant::now());
    assert!(matches!(
        walk(over, &suffix),
        Some(Error::DeadlineExceeded { .. })
    ));
    let cancelled = Cancellation::none();
    cancelled.cancel();
    assert!(matches!(walk(cancelled, &suffix), Some(Error::Cancelled)));
}

/// How often a search with scores looks whether it has to stop.
fn looks(model: &Model, query: &Query) -> isize {
    const LOOKS: isize = 1_000_000;
    let cancellation = Cancellation::after_checks(LOOKS);
    let run = Arc::new(Run::new(cancellation.clone()));
    let plan = plan(&model.layout, &run, query, "query").expect("it is valid");
    model.score(&plan).expect("it isn't stopped");
    LOOKS - cancellation.checks_left()
}

#[test]
fn each_value_and_each_word_is_a_look_at_the_deadline() {
    let model = model();
    let text = |text: &str| QueryValue::from(text);
    let between = |upper: &str| {
        let (lower, upper) = (Bound::Included(text("o0100")), Bound::Included(text(upper)));
        looks(&model, &Query::range("brand", lower, upper))
    };
    let (one, many) = (between("o0100"), between("o0139"));
    assert!(many >= one + 39, "{many} looks of 40 values, {one} of one");
    let like = |pattern: &str| looks(&model, &Query::wildcard("brand", pattern));
    let (none, ten) = (like("o00?0x"), like("o00?0"));
    assert!(ten >= none + 10, "{ten} looks of ten values, {none} of none");

    let words: Vec<String> = (0..100).map(|nth| format!("w{nth}")).collect();
    let document = |_| Object::default().with("name", words.join(" "));
    let model = Model::new((0..40).map(document).collect(), 2, 10);
    let having = |count: usize| looks(&model, &Query::match_text("name", words[..count].join(" ")));
    let (one, hundred) = (having(1), having(100));
    assert!(hundred >= one + 99, "{hundred} looks of 100 words, {one} of one");
}

#[test]
fn numbers_that_are_asked_of_one_document_at_a_time_look_at_the_deadline() {
    let model = model();
    // No price is one of them, all lie among the prices: each document has to be asked.
    let prices = [0.1, 600.1, 1_249.6].map(QueryValue::Double);
    let most = Query::range(
        "serial",
        Bound::Included(QueryValue::Integer(1)),
        Bound::Unbounded,
    );
    let all_of = |should: Vec<Query>| Query::Bool {
        minimum_should_match: Some(should.len() as u32),
        should,
        must: Vec::new(),
        filter: Vec::new(),
        must_not: Vec::new(),
    };
    let asked = all_of(vec![most, Query::terms("price", prices)]);
    let looks = looks(&model, &asked);
    assert!(looks >= DOCUMENTS as isize / 256, "{looks} looks");
}

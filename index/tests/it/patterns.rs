//! Patterns over the values of a KEYWORD: what they find is what looking at each value finds, however the values lie in
//! segments, and they search any number of values.
//!
//! `SOUK_LONG=1` prints how long ten million different values take, in several segments and in one; the figures are those
//! of a release build on a quiet machine.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fastrand::Rng;
use souk_index::{
    Cancellation, Document, Field, Index, IndexOptions, IndexWriter, Object, Operation, Query, Schema,
    SearchRequest, TotalRequest,
};

use super::{keys, random_numbers};

/// Documents of a normal run, and of each of its commits.
const DOCUMENTS: u64 = 3_000;
const DOCUMENTS_PER_COMMIT: u64 = 100;
const PATTERNS: usize = 60;
/// Values of a long run, and how many are taken in at a time.
const LONG: u64 = 10_000_000;
const LONG_STEP: u64 = 100_000;
/// Searches of a long run whose median counts.
const LONG_SEARCHES: usize = 25;
/// Different words of the values.
const WORDS: u64 = 5_000;

/// A number that looks like chance: the finisher of splitmix64.
fn scatter(nth: u64) -> u64 {
    let mut bits = nth.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A word of five to eight letters.
fn word(nth: u64) -> String {
    let mut bits = scatter(nth % WORDS);
    let letters = 5 + bits % 4;
    let letter = |_| {
        bits /= 31;
        char::from(b'a' + (bits % 26) as u8)
    };
    (0..letters).map(letter).collect()
}

/// A value that no other document has.
fn name(nth: u64) -> String {
    let bits = scatter(nth);
    format!("{} {} {} {nth}", word(bits), word(bits >> 20), word(bits >> 40))
}

fn document(nth: u64, name: &str) -> Operation {
    Operation::Upsert(Document {
        key: format!("{nth:08}").into_bytes(),
        fields: Object::new().with("name", name),
    })
}

fn schema() -> Schema {
    Schema::new(vec![Field::keyword("name")]).expect("the schema is valid")
}

/// A pattern, and whether a value matches it.
type Pattern = (Query, Box<dyn Fn(&str) -> bool>);

fn pattern(random: &mut Rng, values: &BTreeMap<String, String>) -> Pattern {
    let of = values.values().nth(random.usize(..values.len())).cloned();
    let of = of.unwrap_or_default();
    let from = random.usize(..of.len());
    let part = of[from..of.len().min(from + random.usize(1..6))].to_owned();
    let first = of[..random.usize(1..3)].to_owned();
    match random.u8(..4) {
        0 => (
            Query::wildcard("name", format!("*{part}*")),
            Box::new(move |value: &str| value.contains(&part)),
        ),
        1 => (
            Query::wildcard("name", format!("{first}*{part}*")),
            Box::new(move |value: &str| value.starts_with(&first) && value[first.len()..].contains(&part)),
        ),
        2 => {
            let end = of[of.len() - random.usize(1..3)..].to_owned();
            (
                Query::suffix("name", end.clone()),
                Box::new(move |value: &str| value.ends_with(&end)),
            )
        }
        _ => (
            Query::wildcard("name", format!("?{}*", &of[1..2])),
            Box::new(move |value: &str| value[1..2] == of[1..2]),
        ),
    }
}

fn compare(index: &Index, values: &BTreeMap<String, String>, random: &mut Rng) {
    for _ in 0..PATTERNS {
        let (query, matches) = pattern(random, values);
        let expected: Vec<&String> = values
            .iter()
            .filter_map(|(key, value)| matches(value).then_some(key))
            .take(1_000)
            .collect();
        assert_eq!(
            keys(index, query.clone()).iter().collect::<Vec<_>>(),
            expected,
            "{query:?}"
        );
    }
}

#[test]
fn a_pattern_of_the_last_values_of_a_long_dictionary_is_answered() {
    let index = Index::create_in_ram(super::schema(), IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("the writer");
    let document = |key: &str, kind: &str| super::upsert(key, Object::new().with("kind", kind));
    // The first value fills a block of the dictionary.
    let operations = vec![document("long", &"k".repeat(4_096)), document("last", "zebra")];
    super::commit(&mut writer, operations, 1);
    let expected = [
        ("z*b*", vec!["last"]),
        ("z*c*", vec![]),
        ("zz*c*", vec![]),
        ("k*k?k*", vec!["long"]),
    ];
    for (pattern, found) in expected {
        assert_eq!(
            super::keys(&index, Query::wildcard("kind", pattern)),
            found,
            "{pattern}"
        );
    }
}

#[test]
fn a_pattern_finds_the_same_in_many_segments_and_in_one() {
    let mut random = random_numbers();
    // Nothing is merged by itself.
    let options = IndexOptions::default().merging_eagerly(usize::MAX);
    let index = Index::create_in_ram(schema(), options).expect("an index");
    let mut writer = index.writer().expect("the writer");
    let mut values = BTreeMap::new();
    for sequence in 1..=DOCUMENTS / DOCUMENTS_PER_COMMIT {
        let operations = (0..DOCUMENTS_PER_COMMIT).map(|_| {
            // Some of them again, so that values go.
            let nth = random.u64(..DOCUMENTS);
            let name = name(random.u64(..DOCUMENTS));
            values.insert(format!("{nth:08}"), name.clone());
            document(nth, &name)
        });
        writer
            .apply(operations.collect())
            .expect("the changes are taken in");
        writer.commit(sequence).expect("the commit works");
    }
    assert!(writer.segments() > 20, "{} segments", writer.segments());
    compare(&index, &values, &mut random);
    writer.merge_all().expect("merged");
    assert_eq!(writer.segments(), 1);
    compare(&index, &values, &mut random);
}

/// How long infixes of four letters take: the first search, and of the others the median and the longest.
fn measure(index: &Index, what: &str, random: &mut Rng) {
    let searcher = index.searcher();
    let mut found = 0;
    let mut search = || {
        let word = word(random.u64(..WORDS));
        let mut request = SearchRequest::new(Query::wildcard("name", format!("*{}*", &word[1..5])));
        request.total = TotalRequest::Exact;
        let began = Instant::now();
        let result = searcher.search(&request, &Cancellation::none());
        let took = began.elapsed();
        let result = result.expect("no number of values is refused");
        found += result.total.map_or(0, |total| total.value);
        took
    };
    let first = search();
    let mut times: Vec<Duration> = (0..LONG_SEARCHES).map(|_| search()).collect();
    times.sort_unstable();
    println!(
        "| {what} | {:.0?} | {:.0?} | {:.0?} | {} |",
        first,
        times[LONG_SEARCHES / 2],
        times[LONG_SEARCHES - 1],
        found / (LONG_SEARCHES as u64 + 1)
    );
    assert!(found > 0);
}

fn filled(writer: &mut IndexWriter) {
    for from in (0..LONG).step_by(LONG_STEP as usize) {
        let inserts = (from..from + LONG_STEP).map(|nth| match document(nth, &name(nth)) {
            Operation::Upsert(document) => Operation::Insert(document),
            other => other,
        });
        writer.apply(inserts.collect()).expect("the changes are taken in");
        writer.commit(from + LONG_STEP).expect("the commit works");
    }
}

#[test]
fn any_number_of_values_is_searched() {
    if std::env::var_os("SOUK_LONG").is_none() {
        return;
    }
    let mut random = random_numbers();
    let folder = tempfile::tempdir().expect("a folder");
    let index = Index::open(folder.path(), schema(), IndexOptions::default()).expect("the index opens");
    let mut writer = index.writer().expect("the writer");
    filled(&mut writer);
    println!("| {LONG} values in | the first | median | longest | documents found |\n|---|---|---|---|---|");
    measure(&index, &format!("{} segments", writer.segments()), &mut random);
    writer.merge_all().expect("merged");
    measure(&index, "one segment", &mut random);
}

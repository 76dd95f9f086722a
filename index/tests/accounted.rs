//! What is really held, by an allocator that counts: of searches at most half as much again as what they account for, of
//! commits nothing.
//!
//! A program of its own: its allocator counts what every thread of it holds, so it runs its cases one after the other.

#![expect(clippy::expect_used, reason = "a test that can't go on says why and fails")]

use std::ops::Bound;

use parking_lot::Mutex;
use peak_alloc::PeakAlloc;
use souk_index::{
    Aggregation, Analyzer, Cancellation, CompositeSource, Document, Error, Field, FieldValue, Fuzziness,
    Highlight, Highlighter, Index, IndexOptions, InnerHits, MetricKind, Object, Operation, Operator, Query,
    QueryValue, Schema, ScoreMode, SearchRequest, Sort, SourceKind, ValueRange, limits,
};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What a search holds that no request makes large: scorers, buffers, the answer of a page without values.
const FIXED_BYTES: usize = 6 << 20;
const DOCUMENTS: usize = 20_000;
/// Bytes of a value that is sorted by.
const LONG: usize = 2_000;
/// Documents with such a value, each with objects that have one too.
const WITH_LONG: usize = 1_500;
const OBJECTS: usize = 60;
/// Values that documents are grouped by.
const PARTS: usize = 100;
/// Words of a text of the same word.
const SAME_WORDS: usize = 400_000;
/// Documents with words that are as long as they may be, how many each has, and bytes of each.
const LONG_WORDS: (usize, usize, usize) = (20, 20, 60_000);
/// Commits of one document, and what may be held after them beyond what was before: less than a file's name of each.
const COMMITS: u64 = 500;
const COMMITS_BYTES: usize = 64 << 10;

/// Held by the test that runs.
static ALONE: Mutex<()> = Mutex::new(());

fn index() -> Index {
    let items = Field::nested("items", vec![Field::keyword("sku")]);
    let schema = Schema::new(vec![
        Field::text("text", Analyzer::single_word()),
        Field::keyword("kind"),
        Field::keyword("word"),
        Field::keyword("part"),
        Field::long("n"),
        items,
    ]);
    let index = Index::create_in_ram(schema.expect("the schema is valid"), IndexOptions::default());
    let index = index.expect("an index");
    let mut writer = index.writer().expect("the writer");
    let long = |nth: usize| format!("{nth:08}{}", "x".repeat(LONG - 8));
    let document = |nth: usize| {
        let mut fields = Object::new()
            .with("text", format!("a b w{nth} w{}", nth % 9_000))
            .with("word", format!("word{nth}"))
            .with("part", format!("part{}", nth % PARTS))
            .with("n", nth as i64);
        if nth < WITH_LONG {
            fields.push("kind", long(nth));
        }
        if nth < 40 {
            let objects = (0..OBJECTS).map(|part| Object::new().with("sku", long(nth * OBJECTS + part)));
            fields.push("items", objects.collect::<Vec<_>>());
        }
        if nth == 0 {
            fields = Object::new().with("text", "a ".repeat(SAME_WORDS));
        }
        let (documents, words, bytes) = LONG_WORDS;
        if (1..=documents).contains(&nth) {
            let word = |own| format!("b y{}{:08} ", "y".repeat(bytes), nth * words + own);
            fields = Object::new().with("text", (0..words).map(word).collect::<String>());
        }
        Document {
            key: nth.to_be_bytes().to_vec(),
            fields,
        }
    };
    for from in (0..DOCUMENTS).step_by(5_000) {
        let inserts = (from..from + 5_000).map(|nth| Operation::Insert(document(nth)));
        writer.apply(inserts.collect()).expect("taken in");
    }
    writer.commit(1).expect("committed");
    writer.close().expect("closed");
    index
}

fn phrase(text: &str, slop: u32) -> Query {
    Query::MatchPhrase {
        field: "text".to_owned(),
        text: text.to_owned(),
        slop,
        weight: 1.0,
    }
}

fn phrase_prefix(text: &str) -> Query {
    Query::MatchPhrasePrefix {
        field: "text".to_owned(),
        text: text.to_owned(),
        weight: 1.0,
    }
}

fn misspelled(text: &str) -> Query {
    Query::MatchFuzzy {
        field: "word".to_owned(),
        text: text.to_owned(),
        operator: Operator::Or,
        minimum_should_match: None,
        fuzziness: Fuzziness::Edits(2),
        prefix_length: 0,
        weight: 1.0,
    }
}

fn any(count: usize, query: impl Fn(usize) -> Query) -> Query {
    Query::Bool {
        must: Vec::new(),
        filter: Vec::new(),
        should: (0..count).map(query).collect(),
        must_not: Vec::new(),
        minimum_should_match: Some(1),
    }
}

fn sorted(field: &str, keys: usize) -> Vec<Sort> {
    vec![Sort::field(field, false); keys]
}

fn searches() -> Vec<(&'static str, SearchRequest)> {
    let search = |query| SearchRequest::new(query).page_size(10);
    let mut skipping = search(Query::MatchAll).sorted(sorted("kind", 20));
    skipping.skip = WITH_LONG - 100;
    let mut beyond = search(Query::MatchAll)
        .sorted(sorted("kind", 32))
        .page_size(1_000);
    beyond.skip = WITH_LONG;
    let mut collapsed = skipping.clone();
    collapsed.collapse = Some("kind".to_owned());
    let mut many = search(Query::MatchAll).sorted(sorted("word", 32));
    many.skip = DOCUMENTS - 10;
    let objects = |size, keys| {
        let inner_hits = InnerHits {
            size,
            sort: sorted("items.sku", keys),
            ..InnerHits::default()
        };
        search(Query::Nested {
            path: "items".to_owned(),
            query: Box::new(Query::exists("items.sku")),
            score_mode: ScoreMode::None,
            weight: 1.0,
            inner_hits: Some(inner_hits),
        })
        .page_size(40)
    };
    vec![
        ("sort by 20 long values behind many hits", skipping),
        ("sort by 32 long values behind too many hits", beyond),
        ("sort by 32 short values behind many hits", many),
        ("collapse by long values", collapsed),
        ("objects by 16 long values", objects(50, 16)),
        ("objects by 32 long values", objects(60, 32)),
        (
            "words that begin with a letter",
            search(any(100, |_| phrase_prefix("w2"))),
        ),
        (
            "phrases that end in a letter",
            search(any(20, |_| phrase_prefix("a b w2"))),
        ),
        (
            "a long phrase of one word, unfinished",
            search(phrase_prefix(&"a ".repeat(20))),
        ),
        ("a long phrase of one word", search(phrase(&"a ".repeat(20), 0))),
        ("short phrases of one word", search(any(40, |_| phrase("a a", 0)))),
        ("long words that begin with a letter", search(phrase_prefix("y"))),
        (
            "the same without scores",
            search(Query::all(vec![Query::not(phrase_prefix("y"))])),
        ),
        ("a phrase that ends in long words", search(phrase_prefix("b y"))),
        (
            "the same with a slop",
            search(any(4, |_| phrase(&"a ".repeat(20), 1))),
        ),
        (
            "a misspelled word of 150 letters",
            search(misspelled(&"abcdefghij".repeat(15))),
        ),
        (
            "a misspelled word of 12 characters",
            search(misspelled("奶茶中国人民共和科学咖啡")),
        ),
        (
            "a misspelled word of 1,300 characters",
            search(misspelled(&"奶茶中国人民共和科学咖啡店".repeat(100))),
        ),
        (
            "patterns",
            search(any(500, |nth| Query::wildcard("word", format!("*{nth}*")))),
        ),
        (
            "prefixes of words",
            search(any(500, |_| Query::prefix("text", "w"))),
        ),
    ]
}

/// Aggregations with their names.
type Named = Vec<(String, Aggregation)>;

fn named(name: &str, aggregation: Aggregation) -> Named {
    vec![(name.to_owned(), aggregation)]
}

/// The same aggregations several times, by names of their own.
fn repeated(times: usize, aggregations: &[(String, Aggregation)]) -> Named {
    let all = (0..times).flat_map(|nth| aggregations.iter().map(move |own| (nth, own)));
    all.map(|(nth, (name, own))| (format!("{name}-{nth}"), own.clone()))
        .collect()
}

fn groups(field: &str, inside: Named) -> Named {
    let terms = Aggregation::Terms {
        field: field.to_owned(),
        size: limits::MAX_TERMS_GROUPS,
        min_doc_count: 1,
        order: Vec::new(),
        missing: None,
        aggregations: inside,
    };
    named("groups", terms)
}

/// Groups of two numbers each.
fn pairs(inside: Named) -> Named {
    let histogram = Aggregation::Histogram {
        field: "n".to_owned(),
        interval: 2.0,
        offset: 0.0,
        min_doc_count: 1,
        missing: None,
        bounds: ValueRange::default(),
        order: Vec::new(),
        aggregations: inside,
    };
    named("pairs", histogram)
}

fn filters(filters: Vec<Query>, inside: Named) -> Named {
    let filters = Aggregation::Filters {
        filters,
        aggregations: inside,
    };
    named("filters", filters)
}

fn distinct(field: &str) -> Named {
    let distinct = Aggregation::Figure {
        field: field.to_owned(),
        figure: MetricKind::DistinctCount,
        missing: None,
    };
    named("distinct", distinct)
}

fn top_hits(size: usize, sort: Vec<Sort>) -> Named {
    named("top", Aggregation::TopHits { size, sort })
}

fn aggregations() -> Vec<(&'static str, SearchRequest)> {
    let aggregated = |aggregations: Named| {
        SearchRequest::new(Query::MatchAll)
            .page_size(0)
            .aggregations(aggregations)
    };
    let percentiles = Aggregation::Percentiles {
        field: "n".to_owned(),
        percentages: vec![50.0, 90.0, 99.0],
        missing: None,
    };
    let many = limits::MAX_FIGURES;
    let part = |nth: usize| Query::term("part", format!("part{nth}").as_str());
    let share = DOCUMENTS / limits::MAX_RANGES;
    let numbers = |nth: usize| {
        let number = |nth: usize| QueryValue::Integer((nth * share) as i64);
        Query::range(
            "n",
            Bound::Included(number(nth)),
            Bound::Excluded(number(nth + 1)),
        )
    };
    let key = |field: &str| CompositeSource {
        field: field.to_owned(),
        kind: SourceKind::Terms,
        descending: true,
        include_missing: true,
        missing: None,
    };
    let keys = ["kind", "word", "kind", "n", "kind", "part", "kind", "n"].map(key);
    let composite = Aggregation::Composite {
        sources: keys.into(),
        size: limits::MAX_TERMS_GROUPS,
        after: None,
        aggregations: top_hits(1, sorted("kind", 4)),
    };
    vec![
        (
            "groups in groups in groups",
            aggregated(groups("part", groups("word", groups("n", Vec::new())))),
        ),
        (
            "different words in 50 times 100 groups",
            aggregated(repeated(
                limits::MAX_GROUPINGS,
                &groups("part", repeated(many, &distinct("word"))),
            )),
        ),
        (
            "percentiles in 10,000 groups",
            aggregated(pairs(repeated(many, &named("percentiles", percentiles)))),
        ),
        (
            "best hits of groups by 20 long values",
            aggregated(groups("part", top_hits(limits::MAX_TOP_HITS, sorted("kind", 20)))),
        ),
        (
            "groups of 8 keys with their best hits",
            aggregated(named("composite", composite)),
        ),
        (
            "filters in filters",
            aggregated(filters(
                (0..limits::MAX_RANGES).map(numbers).collect(),
                filters((0..PARTS).map(part).collect(), repeated(many, &distinct("word"))),
            )),
        ),
    ]
}

fn highlights() -> Vec<(&'static str, Query, String)> {
    let one_word = || "a ".repeat(SAME_WORDS);
    let words = || (0..150_000).map(|nth| format!("w{nth} ")).collect::<String>();
    vec![
        (
            "a word a thousand times",
            Query::match_text("text", "a ".repeat(1_024)),
            one_word(),
        ),
        ("a phrase of a word", phrase(&"a ".repeat(10), 0), one_word()),
        ("a phrase with a slop", phrase(&"a ".repeat(10), 1), one_word()),
        ("prefixes", any(5, |_| Query::prefix("text", "w")), words()),
        (
            "a phrase and all words",
            any(2, |_| phrase_prefix("w1 w")),
            words(),
        ),
    ]
}

/// What was held at most while `work` went on, beyond what was held before.
fn held<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let done = work();
    (done, MEMORY.peak_usage().saturating_sub(before))
}

#[test]
fn commits_leave_nothing_behind() {
    let _alone = ALONE.lock();
    let folder = tempfile::tempdir().expect("a folder");
    let schema = Schema::new(vec![Field::keyword("kind")]).expect("the schema is valid");
    let index = Index::open(folder.path(), schema, IndexOptions::default()).expect("the index opens");
    let mut writer = index.writer().expect("the writer");
    let mut commit = |sequence: u64| {
        let document = Document {
            key: b"one".to_vec(),
            fields: Object::new().with("kind", "new"),
        };
        writer.apply(vec![Operation::Upsert(document)]).expect("taken in");
        writer.commit(sequence).expect("committed");
        if sequence.is_multiple_of(100) {
            writer.checkpoint().expect("the checkpoint works");
        }
    };
    (1..=COMMITS).for_each(&mut commit);
    let before = MEMORY.current_usage();
    (COMMITS + 1..=2 * COMMITS).for_each(&mut commit);
    let held = MEMORY.current_usage().saturating_sub(before);
    println!("{held} bytes are held of {COMMITS} commits");
    assert!(held < COMMITS_BYTES, "{held} bytes");
}

/// Rare words take little each, of which there are many.
#[test]
fn what_is_kept_of_words_is_accounted_for() {
    let _alone = ALONE.lock();
    let schema = Schema::new(vec![Field::text("text", Analyzer::single_word())]);
    let index = Index::create_in_ram(schema.expect("the schema is valid"), IndexOptions::default());
    let index = index.expect("an index");
    let mut writer = index.writer().expect("the writer");
    let word = |nth: usize| format!("w{nth:08}");
    let key = |nth: usize| nth.to_be_bytes().to_vec();
    let insert = |nth: usize| {
        Operation::Insert(Document {
            key: key(nth),
            fields: Object::new().with("text", word(nth)),
        })
    };
    for from in (0..DOCUMENTS).step_by(5_000) {
        writer
            .apply((from..from + 5_000).map(insert).collect())
            .expect("taken in");
    }
    writer.commit(1).expect("committed");
    // How many documents have a word is kept where some were deleted.
    writer
        .apply(vec![Operation::Delete { key: key(0) }])
        .expect("taken in");
    writer.commit(2).expect("committed");
    let searcher = index.searcher();
    let search = |from: usize| {
        let words: Vec<String> = (from..from + 400).map(word).collect();
        let request = SearchRequest::new(Query::match_text("text", words.join(" "))).page_size(1);
        drop(
            searcher
                .search(&request, &Cancellation::none())
                .expect("an answer"),
        );
    };
    search(0);
    let (before, kept_before) = (MEMORY.current_usage(), index.memory().kept);
    (400..DOCUMENTS).step_by(400).for_each(search);
    let held = MEMORY.current_usage().saturating_sub(before);
    let kept = (index.memory().kept - kept_before) as usize;
    println!("{held} bytes are held of words, {kept} are accounted for");
    assert!(held > 100 * DOCUMENTS, "{held} bytes: the test tests too little");
    assert!(
        held <= kept && kept <= 2 * held,
        "{held} bytes, {kept} accounted for"
    );
}

#[test]
fn what_is_held_is_accounted_for() {
    let _alone = ALONE.lock();
    let index = index();
    let searcher = index.searcher();
    let mut wrong = Vec::new();
    let mut largest = 0;
    let mut check = |name, accounted: usize, held: usize| {
        let allowed = accounted + accounted / 2 + FIXED_BYTES;
        println!(
            "| {name} | {:.1} | {:.1} |",
            accounted as f64 / 1e6,
            held as f64 / 1e6
        );
        if held > allowed {
            wrong.push(name);
        }
        largest = largest.max(accounted);
    };
    let limit = |result: &Error| match result {
        Error::LimitExceeded {
            limit: "MAX_SEARCH_BYTES",
            ..
        } => limits::MAX_SEARCH_BYTES,
        other => panic!("{other}"),
    };
    for (name, request) in searches().into_iter().chain(aggregations()) {
        let mut request = request;
        // What searches find out of columns stays for the next one.
        drop(searcher.search(&request, &Cancellation::none()));
        request.profile = true;
        let (result, held) = held(|| searcher.search(&request, &Cancellation::none()));
        let accounted = match &result {
            Ok(found) => found.profile.as_ref().expect("a profile").peak_bytes as usize,
            Err(error) => limit(error),
        };
        check(name, accounted, held);
    }
    for (name, query, text) in highlights() {
        let document = Object::new().with("text", FieldValue::from(text.as_str()));
        let schema = Schema::new(vec![Field::text("text", Analyzer::single_word())]);
        let highlight = Highlight {
            number_of_fragments: 500,
            fragment_size: 10_000,
            ..Highlight::new(vec!["text".to_owned()])
        };
        let schema = schema.expect("the schema is valid");
        let highlighter = Highlighter::new(&schema, &query, highlight).expect("a highlighter");
        let (result, held) = held(|| highlighter.fragments(&document, &Cancellation::none()));
        let accounted = match &result {
            Ok(found) => {
                assert!(!found.is_empty(), "{name}");
                highlighter.peak_bytes() as usize
            }
            Err(error) => limit(error),
        };
        check(name, accounted, held);
    }
    assert_eq!(
        wrong,
        Vec::<&str>::new(),
        "see the table: megabytes accounted and held"
    );
    assert!(largest > 10 * FIXED_BYTES, "nothing large was held");
}

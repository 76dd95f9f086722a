//! Searches that ask for as much as they can: each is refused by a named limit, or done in time and within its memory,
//! and stops soon after its caller has gone.
//!
//! Measured in a process of its own, which the test starts: others would change what it measures. `SOUK_LONG=1` takes
//! ten million terms, and holds every end to [`LONG_GRACE`]. The figures that are printed are worth more in a release
//! build. What is held is compared with what is accounted for in `tests/accounted.rs`.

mod aggregations;
mod asked;
mod clauses;
mod marked;
mod objects;
mod orders;
mod texts;

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use souk_index::{
    Analyzer, Cancellation, Document, Error, Field, GeoPoint, Index, IndexOptions, Object, Operation, Reason,
    Schema,
};

/// Set in the process that measures.
const MEASURING: &str = "SOUK_BOMBS";
/// Documents of a normal run and of a long one; each has [`TERMS`] terms of its own.
const DOCUMENTS: [usize; 2] = [200_000, 2_000_000];
/// Terms of a document that no other has.
const TERMS: usize = 5;
/// Time that a search has.
const DEADLINE: Duration = Duration::from_secs(60);
/// The same in a normal run of one that may take longer.
const SHORT_DEADLINE: Duration = Duration::from_secs(1);
/// How far beyond its deadline, or its cancellation, a search may go here: a build for tests on a busy machine.
const GRACE: Duration = Duration::from_secs(2);
/// The same in a long run, of a release build on a quiet machine.
const LONG_GRACE: Duration = Duration::from_millis(100);
/// After how long a search is cancelled.
const CANCEL_AFTER: Duration = Duration::from_millis(30);
/// Memory that one search may take above the quiet process, in kilobytes.
const MEMORY_KB: u64 = 256 << 10;
/// Words of a text as long as one may be, all of them the same.
const SAME_WORDS: usize = 1_000_000;
/// Documents with long keywords, objects of each, and bytes of each keyword.
const LONG_ROWS: (usize, usize, usize) = (40, 100, 4_000);
/// Objects inside each of these objects.
const TAGS: usize = 10;

fn schema() -> Schema {
    let parts = Field::nested(
        "parts",
        vec![
            Field::keyword("name"),
            Field::text("title", Analyzer::single_word()),
            Field::nested("tags", vec![Field::keyword("name")]),
        ],
    );
    let items = Field::nested("items", vec![Field::keyword("sku"), Field::long("qty")]);
    let fields = vec![
        Field::keyword("words").array(),
        Field::keyword("kind"),
        Field::text("text", Analyzer::single_word()),
        Field::long("n"),
        Field::double("price"),
        Field::date("at"),
        Field::geo_point("spot"),
        Field::attributes("extra"),
        items,
        parts,
    ];
    Schema::new(fields).expect("the schema is valid")
}

/// A number that looks like chance: the finisher of splitmix64.
fn scatter(nth: usize) -> u64 {
    let mut bits = (nth as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

fn document(nth: usize) -> Document {
    let bits = scatter(nth);
    let word = |term| format!("{:016x}", scatter(nth * TERMS + term));
    let point = GeoPoint::new(
        (bits % 170_000) as f64 / 1_000.0 - 85.0,
        (bits % 359_000) as f64 / 1_000.0 - 179.5,
    );
    let mut fields = Object::new()
        .with_all("words", (0..TERMS).map(word))
        .with("kind", format!("kind{}", bits % 100))
        .with("text", format!("a b c w{} w{}", bits % 1_000, bits % 77))
        .with("n", nth as i64)
        .with("price", bits as f64 / 1e6)
        .with("at", souk_index::FieldValue::Date((bits >> 1) as i64))
        .with("spot", point.expect("in range"));
    if nth.is_multiple_of(8) {
        let item = |part: u64| {
            Object::new()
                .with("sku", format!("{}", bits % 1_000))
                .with("qty", part as i64)
        };
        fields.push("items", vec![item(bits % 7), item(bits % 11)]);
        let extra = Object::new()
            .with("code", format!("{bits:016x}"))
            .with("part", (bits % 1_000) as i64);
        fields.push("extra", vec![extra]);
    }
    Document {
        key: nth.to_be_bytes().to_vec(),
        fields,
    }
}

/// The documents behind the others: a text of one word, and long keywords.
fn long_documents(from: usize) -> Vec<Document> {
    let keyed = |nth: usize, fields| Document {
        key: (from + nth).to_be_bytes().to_vec(),
        fields,
    };
    let (rows, objects, bytes) = LONG_ROWS;
    let name = |nth: usize| format!("{nth:08}{}", "x".repeat(bytes - 8));
    let tag = |nth: usize| Object::new().with("name", format!("tag{nth}"));
    let part = |row: usize, nth: usize| {
        let tags: Vec<Object> = (0..TAGS).map(|own| tag(nth * TAGS + own)).collect();
        Object::new()
            .with("name", name(row * objects + nth))
            .with("title", "a b ".repeat(20))
            .with("tags", tags)
    };
    let long = (1..=rows).map(|row| {
        let parts: Vec<Object> = (0..objects).map(|nth| part(row, nth)).collect();
        keyed(
            row,
            Object::new()
                .with("kind", name(row))
                .with("parts", souk_index::FieldValue::Objects(parts)),
        )
    });
    let same = keyed(0, Object::new().with("text", "a ".repeat(SAME_WORDS)));
    std::iter::once(same).chain(long).collect()
}

fn filled(documents: usize) -> (tempfile::TempDir, Index) {
    let folder = tempfile::tempdir().expect("a folder");
    let index = Index::open(folder.path(), schema(), IndexOptions::default()).expect("the index opens");
    let mut writer = index.writer().expect("the writer");
    for from in (0..documents).step_by(10_000) {
        let inserts = (from..documents.min(from + 10_000)).map(|nth| Operation::Insert(document(nth)));
        writer.apply(inserts.collect()).expect("the changes are taken in");
    }
    let long = long_documents(documents).into_iter().map(Operation::Insert);
    writer.apply(long.collect()).expect("the changes are taken in");
    writer.commit(1).expect("the commit works");
    writer.close().expect("the writer closes");
    (folder, index)
}

/// Memory of this process that no file backs, in kilobytes.
fn memory_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .expect("Linux tells");
    let number = line.trim().trim_end_matches(" kB");
    number.parse().expect("a number")
}

/// What came of a search: `Ok` with the number of hits, or the name of the limit.
type Outcome = Result<usize, String>;

/// What is measured: how many hits or documents it gives.
type Work<'a> = Box<dyn Fn(&Cancellation) -> Result<usize, Error> + Sync + 'a>;

fn outcome(result: Result<usize, Error>) -> Outcome {
    match result {
        Ok(found) => Ok(found),
        Err(Error::LimitExceeded { limit, .. }) => Err(limit.to_owned()),
        Err(Error::InvalidQuery(violations)) => {
            let limits = violations
                .listed()
                .iter()
                .map(|violation| match violation.reason {
                    Reason::LimitExceeded { limit, .. } => limit.to_owned(),
                    ref other => format!("{}: {}", other.code(), violation.message),
                });
            Err(limits.collect::<Vec<_>>().join(", "))
        }
        Err(Error::DeadlineExceeded { .. }) => Err("DEADLINE".to_owned()),
        Err(Error::Cancelled) => Err("CANCELLED".to_owned()),
        Err(other) => panic!("{other}"),
    }
}

/// The outcome, the time, and the kilobytes at most.
fn measure(work: &Work<'_>, deadline: Duration) -> (Outcome, Duration, u64) {
    let before = memory_kb();
    let (peak, over) = (AtomicU64::new(before), AtomicBool::new(false));
    let (outcome, took) = thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                peak.fetch_max(memory_kb(), Ordering::Relaxed);
                thread::yield_now();
            }
        });
        let began = Instant::now();
        let result = work(&Cancellation::at(began + deadline));
        let took = began.elapsed();
        over.store(true, Ordering::Relaxed);
        (outcome(result), took)
    });
    (outcome, took, peak.into_inner() - before)
}

/// How long a search goes on after it was cancelled; nothing when it was done before.
fn after_cancelling(work: &Work<'_>) -> Option<Duration> {
    let cancellation = Cancellation::none();
    let switch = cancellation.clone();
    let (done, wait) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let searching = scope.spawn(|| {
            let result = work(&cancellation);
            let ended = Instant::now();
            drop(done);
            (outcome(result), ended)
        });
        // Returns early when the search is done.
        let done_before = wait.recv_timeout(CANCEL_AFTER) != Err(mpsc::RecvTimeoutError::Timeout);
        let cancelled = Instant::now();
        switch.cancel();
        let (outcome, ended) = searching.join().expect("the search doesn't panic");
        (!done_before && outcome == Err("CANCELLED".to_owned()))
            .then(|| ended.saturating_duration_since(cancelled))
    })
}

/// How far a search goes beyond a deadline in the middle of it.
fn beyond_deadline(work: &Work<'_>) -> Option<Duration> {
    let deadline = Instant::now() + CANCEL_AFTER;
    let result = work(&Cancellation::at(deadline));
    (outcome(result) == Err("DEADLINE".to_owned())).then(|| deadline.elapsed())
}

fn measure_all() {
    let long = std::env::var("SOUK_LONG").is_ok_and(|value| value == "1");
    let documents = DOCUMENTS[usize::from(long)];
    let began = Instant::now();
    let (_folder, index) = filled(documents);
    println!(
        "{documents} documents with {} terms in {:.1?}",
        documents * TERMS,
        began.elapsed()
    );
    let mut wrong = Vec::new();
    let mut slowest = Duration::ZERO;
    let searches = asked::all().into_iter().chain(orders::behind_groups(&index));
    let searches = searches.map(|(name, request, limit)| {
        let index = &index;
        let search = move |cancellation: &Cancellation| {
            let found = index.searcher().search(&request, cancellation);
            found.map(|found| found.hits.len())
        };
        (name, Box::new(search) as Work<'_>, limit)
    });
    for (name, work, limit) in searches.chain(marked::all()) {
        let deadline = match limit {
            asked::Expected::Either("DEADLINE") | asked::Expected::Slow(_) if !long => SHORT_DEADLINE,
            _ => DEADLINE,
        };
        let (outcome, took, memory) = measure(&work, deadline);
        let cancelled = after_cancelling(&work);
        let expired = beyond_deadline(&work);
        println!(
            "| {name} | {} | {:.1} | {:.1} | {} | {} |",
            match &outcome {
                Ok(hits) => format!("{hits} hits"),
                Err(limit) => limit.clone(),
            },
            took.as_secs_f64() * 1e3,
            memory as f64 / 1024.0,
            milliseconds(cancelled),
            milliseconds(expired),
        );
        slowest = slowest
            .max(cancelled.unwrap_or_default())
            .max(expired.unwrap_or_default());
        let expected = match (&outcome, limit) {
            (Ok(_), asked::Expected::Done) => true,
            (Err(by), asked::Expected::Refused(limit)) => by == limit || (long && by == "DEADLINE"),
            (Ok(_), asked::Expected::Either(_) | asked::Expected::Slow(_)) => true,
            (Err(by), asked::Expected::Either(limit)) => by == limit,
            (Err(by), asked::Expected::Slow(limit)) => by == limit || by == "DEADLINE",
            _ => false,
        };
        if !expected || took > deadline + GRACE || memory > MEMORY_KB {
            wrong.push(name);
        }
    }
    println!("the slowest end after a cancellation or a deadline: {slowest:.1?}");
    assert_eq!(wrong, Vec::<&str>::new(), "see the table");
    let grace = if long { LONG_GRACE } else { GRACE };
    assert!(slowest <= grace, "{slowest:?}");
}

fn milliseconds(time: Option<Duration>) -> String {
    time.map_or_else(
        || "–".to_owned(),
        |time| format!("{:.1}", time.as_secs_f64() * 1e3),
    )
}

#[test]
fn bombs_are_refused_or_done_in_time_and_end_when_cancelled() {
    if std::env::var_os(MEASURING).is_some() {
        measure_all();
        return;
    }
    let this = "bombs::bombs_are_refused_or_done_in_time_and_end_when_cancelled";
    let status = Command::new(std::env::current_exe().expect("this program"))
        .args([this, "--exact", "--nocapture"])
        .env(MEASURING, "1")
        .status()
        .expect("the process starts");
    assert!(status.success(), "{status}; see above");
}

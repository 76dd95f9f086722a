//! Random searches of random indexes, each compared with the oracle's answer.
//!
//! An index and its searches depend on one seed alone: `SOUK_SEED=n` runs the one of a seed. `SOUK_LONG=1` runs two million
//! searches on two threads, for a build with `--release`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use fastrand::Rng;
use souk_index::limits::MAX_AGGREGATION_GROUPS;
use souk_index::{
    Aggregation, CalendarUnit, Error, Query, QueryValue, Reason, SearchRequest, TotalRequest, Violation,
};

use crate::matching::Oracle;
use crate::questions::Questions;
use crate::tally::Tally;
use crate::universe::{Kind, Universe, once_in, pick};
use crate::weights;
use crate::world::{World, ask};

/// Searches of a normal run and of a long one.
const SEARCHES: [u64; 2] = [5_000, 2_000_000];
/// Searches of one index.
const SEARCHES_OF_INDEX: u64 = 50;
/// Indexes with wrong answers, after which a run ends.
const FAILURES_SHOWN: u64 = 10;
/// Threads of a long run.
const THREADS: u64 = 2;

/// A random search.
pub(crate) fn request(questions: &mut Questions<'_>) -> SearchRequest {
    let grouped = questions.rng.u8(..5) < 2;
    let kind = questions.rng.u8(..8);
    let mut query = match kind {
        // Much to group, or to sort.
        0 if grouped => Query::MatchAll,
        0 | 1 => Query::any(
            (0..questions.rng.usize(3..7))
                .map(|_| questions.query("", 1))
                .collect(),
        ),
        // Scores that nothing outside changes.
        2 => questions.function_score("", 0),
        3 => questions.nested("", 2).unwrap_or(Query::MatchAll),
        _ => {
            let depth = questions.rng.u32(..4);
            questions.query("", depth)
        }
    };
    if kind == 3 || once_in(questions.rng, 3) {
        questions.with_inner_hits(&mut query, &mut 0);
    }
    let sort = if matches!(kind, 2 | 3) && questions.rng.bool() {
        Vec::new()
    } else {
        questions.sorts()
    };
    let aggregations = if grouped {
        questions.aggregations("", 1)
    } else {
        Vec::new()
    };
    let collapsible = |kind: Kind| matches!(kind, Kind::Keyword | Kind::Long | Kind::Double);
    let collapse = once_in(questions.rng, 6)
        .then(|| questions.field("", |leaf| collapsible(leaf.kind) && !leaf.array))
        .flatten();
    let total = match questions.rng.u8(..3) {
        0 => TotalRequest::None,
        1 => TotalRequest::Exact,
        _ => TotalRequest::AtLeast(questions.rng.u64(..20)),
    };
    let mut request = SearchRequest::new(query)
        .sorted(sort)
        .page_size(*pick(questions.rng, &[0, 1, 3, 10, 10, 100]))
        .total(total)
        .aggregations(aggregations);
    request.skip = *pick(questions.rng, &[0, 0, 0, 1, 7]);
    request.collapse = collapse.map(|leaf| leaf.path);
    request
}

/// One index and its searches; the first answer that is wrong.
fn run(seed: u64, tally: &mut Tally) -> Result<(), String> {
    let mut rng = Rng::with_seed(seed);
    let world = World::new(&mut rng);
    let oracle = Oracle::new(&world.universe, &world.documents);
    let searcher = world.index.searcher();
    assert_eq!(
        searcher.count().expect("counting works"),
        world.documents.len() as u64
    );
    for _ in 0..SEARCHES_OF_INDEX {
        let request = request(&mut Questions {
            rng: &mut rng,
            universe: &world.universe,
        });
        let (found, outcome) = match ask(&searcher, &request) {
            Ok(result) => (!result.hits.is_empty(), oracle.check(&request, &result)),
            Err(error) => (false, refused(&world.universe, &request, &error)),
        };
        if oracle.was_in_doubt() {
            tally.doubtful += 1;
            continue;
        }
        outcome.map_err(|wrong| format!("{wrong}\nto {request:?}\nof {:?}", world.documents))?;
        tally.count(&request, found);
    }
    Ok(())
}

/// Whether an error is the answer.
fn refused(universe: &Universe, request: &SearchRequest, error: &Error) -> Result<(), String> {
    let is_weight = |violation: &Violation| {
        let reason = &violation.reason;
        matches!(reason, Reason::LimitExceeded { limit, .. } if *limit == "MAX_WEIGHT")
    };
    let is_due = match error {
        Error::InvalidQuery(violations) => {
            violations.listed().iter().all(is_weight) && weights::are_too_high(request)
        }
        Error::LimitExceeded { limit, .. } => {
            *limit == "MAX_AGGREGATION_GROUPS"
                && empty_groups(universe, &request.aggregations) > MAX_AGGREGATION_GROUPS as f64
        }
        _ => false,
    };
    match is_due {
        true => Ok(()),
        false => Err(error.to_string()),
    }
}

/// How many groups are shown whatever the documents, at least: those between the bounds of histograms, and what is inside of each.
fn empty_groups(universe: &Universe, aggregations: &[(String, Aggregation)]) -> f64 {
    let number = |end: &Option<QueryValue>| match end {
        Some(QueryValue::Integer(number) | QueryValue::Time(number)) => *number as f64,
        Some(QueryValue::Double(number)) => *number,
        _ => f64::NAN,
    };
    let of_each = aggregations.iter().map(|(_, aggregation)| {
        let (groups, inside) = match aggregation {
            Aggregation::Histogram {
                field,
                interval,
                min_doc_count: 0,
                bounds,
                aggregations,
                ..
            } => {
                let most = match universe.leaf(field).kind {
                    Kind::Long => i64::MAX as f64,
                    _ => f64::MAX,
                };
                let [from, to] = [&bounds.from, &bounds.to].map(|end| number(end).clamp(-most, most));
                (((to - from) / interval).floor(), aggregations)
            }
            Aggregation::DateHistogram {
                interval,
                unit,
                min_doc_count: 0,
                bounds,
                aggregations,
                ..
            } => {
                let seconds = match unit {
                    CalendarUnit::Millisecond => 0.001,
                    CalendarUnit::Second => 1.0,
                    CalendarUnit::Minute => 60.0,
                    CalendarUnit::Hour => 3_600.0,
                    // Not less than any of them.
                    _ => 366.0 * 86_400.0,
                };
                let wide = f64::from(*interval) * seconds * 1e9;
                (
                    ((number(&bounds.to) - number(&bounds.from)) / wide).floor(),
                    aggregations,
                )
            }
            Aggregation::Filters {
                filters,
                aggregations,
            } => (filters.len() as f64, aggregations),
            _ => return 0.0,
        };
        groups.max(0.0) * (1.0 + empty_groups(universe, inside))
    });
    of_each.sum()
}

/// Runs an index after the other, and tells the seeds of those that fail.
fn run_all(first: u64, indexes: impl Iterator<Item = u64>, tally: &mut Tally, progress: impl Fn()) {
    let mut failed = 0;
    for nth in indexes {
        let seed = first.wrapping_add(nth);
        let outcome = catch_unwind(AssertUnwindSafe(|| run(seed, tally)));
        let outcome = outcome.unwrap_or_else(|_| Err("a panic".to_owned()));
        if let Err(wrong) = outcome {
            println!("failed; to repeat: SOUK_SEED={seed} cargo test -p souk-index --test oracle");
            // One of them in full is enough.
            let length = if failed == 0 { usize::MAX } else { 300 };
            println!("{}", wrong.chars().take(length).collect::<String>());
            failed += 1;
            if failed == FAILURES_SHOWN {
                break;
            }
        }
        progress();
    }
    assert_eq!(failed, 0, "so many indexes answered wrongly");
}

#[test]
fn random_searches_get_the_answers_of_the_definitions() {
    let mut tally = Tally::default();
    if let Some(seed) = souk_seeds::given() {
        run_all(seed, 0..1, &mut tally, || {});
        println!("{tally}");
        return;
    }
    let first = souk_seeds::seed();
    let long = std::env::var_os("SOUK_LONG").is_some();
    let indexes = SEARCHES[usize::from(long)] / SEARCHES_OF_INDEX;
    if !long {
        run_all(first, 0..indexes, &mut tally, || {});
        println!("{tally}");
        return;
    }
    let all = Mutex::new(tally);
    let done = AtomicU64::new(0);
    let began = std::time::Instant::now();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (all, done) = (&all, &done);
            scope.spawn(move || {
                let mut tally = Tally::default();
                run_all(
                    first,
                    (thread..indexes).step_by(THREADS as usize),
                    &mut tally,
                    || {
                        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                        if done.is_multiple_of(1_000) {
                            println!("{} searches in {:?}", done * SEARCHES_OF_INDEX, began.elapsed());
                        }
                    },
                );
                all.lock().expect("no thread failed").add_all(&tally);
            });
        }
    });
    println!("{}", all.into_inner().expect("no thread failed"));
}

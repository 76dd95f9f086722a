use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::cancel::Cancellation;
use crate::columns::StringColumn;
use crate::columns::testing::column;
use crate::error::Error;

/// Short and long ones, with long and short beginnings in common.
fn strings(count: usize, random: &mut fastrand::Rng) -> BTreeSet<Vec<u8>> {
    let string = |nth| match random.u8(..4) {
        0 => format!("order-{nth:09}"),
        1 => (0..random.usize(..40)).map(|_| random.char('a'..'f')).collect(),
        2 => format!("{}{}", "x".repeat(random.usize(..600)), random.u8(..)),
        _ => format!("{:032x}", random.u128(..)),
    };
    (0..count).map(string).map(String::into_bytes).collect()
}

#[test]
fn what_matches_is_found_as_one_by_one_whether_strings_are_kept_or_not() {
    let mut random = souk_seeds::random();
    for count in [1, 2, 300, 40_000] {
        let strings = strings(count, &mut random);
        let sorted: Vec<&Vec<u8>> = strings.iter().collect();
        let held = Arc::new(AtomicUsize::new(0));
        let kept = StringColumn::new(column(&strings), count as u32, &held);
        let full = Arc::new(AtomicUsize::new(usize::MAX / 2));
        let decoded = StringColumn::new(column(&strings), count as u32, &full);
        for _ in 0..40 {
            let run = Execution::new(Cancellation::none());
            let literal: String = (0..random.usize(..3)).map(|_| random.char('a'..'f')).collect();
            let last = random.u8(..);
            let fits = |value: &[u8]| value.last().is_some_and(|byte| *byte > last / 2);
            // Everything now and then, so that it is kept.
            let (from, to) = (random.usize(..=sorted.len()), random.usize(..=sorted.len()));
            let among = if random.bool() {
                0..sorted.len()
            } else {
                from..to.max(from)
            };
            let expected: Vec<(u64, Vec<u8>)> = (among.clone().zip(&sorted[among.clone()]))
                .filter(|(_, value)| memchr::memmem::find(value, literal.as_bytes()).is_some() && fits(value))
                .map(|(nth, value)| (nth as u64, value.to_vec()))
                .collect();
            for strings in [&kept, &decoded] {
                let mut found = Vec::new();
                let first = sorted.get(among.start).map(|first| first.as_slice());
                strings
                    .matching(
                        among.start as u64..among.end as u64,
                        first.filter(|_| random.bool()),
                        literal.as_bytes(),
                        &run,
                        fits,
                        |ordinal, value| found.push((ordinal, value.to_vec())),
                    )
                    .expect("searched");
                assert_eq!(found, expected, "{literal:?} among {among:?} of {count}");
            }
        }
        assert!(kept.kept.get().is_some() && held.load(Ordering::Relaxed) > 0);
        assert!(decoded.kept.get().is_none() && full.load(Ordering::Relaxed) == usize::MAX / 2);
        drop(kept);
        assert_eq!(held.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn a_dictionary_that_is_damaged_is_refused() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut refused = 0;
    for _ in 0..10_000 {
        let bytes: Vec<u8> = (0..random.usize(..60))
            .map(|nth| random.u8(..if nth < 4 { 2 } else { 255 }))
            .collect();
        let mut parts = Parts::new(&bytes, 0);
        refused += usize::from(parts.next(100).is_err());
    }
    assert_eq!(refused, 10_000, "none of them has a hundred strings");
}

#[test]
fn a_search_that_is_over_says_how_many_values_it_has_looked_at() {
    let strings: BTreeSet<Vec<u8>> = (0..200_000)
        .map(|nth| format!("value-{nth:030}").into_bytes())
        .collect();
    let held = Arc::new(AtomicUsize::new(usize::MAX / 2));
    let column = StringColumn::new(column(&strings), 200_000, &held);
    let cancellation = Cancellation::at(std::time::Instant::now());
    let run = Execution::new(cancellation);
    let refused = column.matching(0..200_000, None, b"zzzz", &run, |_| true, |_, _| {});
    let error = run.reason("searching", refused.expect_err("it is over"));
    let Error::DeadlineExceeded { walked } = error else {
        panic!("{error}")
    };
    assert!((1..200_000).contains(&walked), "{walked}");
}

#[test]
fn a_pattern_that_begins_behind_the_last_string_decodes_nothing() {
    let strings: BTreeSet<Vec<u8>> = (0..20_000)
        .map(|nth| format!("value-{nth:030}").into_bytes())
        .collect();
    let held = Arc::new(AtomicUsize::new(0));
    let column = StringColumn::new(column(&strings), 20_000, &held);
    // Whoever decodes looks at the time.
    let run = Execution::new(Cancellation::at(std::time::Instant::now()));
    let searched = column.matching(
        20_000..20_000,
        Some(b"x"),
        b"x",
        &run,
        |_| true,
        |_, _| panic!("there is none"),
    );
    searched.expect("nothing is looked at");
    assert!(column.kept.get().is_none());
}

use std::collections::BTreeSet;

use super::*;
use crate::columns::testing::column;

/// Goes through the whole dictionary, however few strings are wanted.
fn whole(column: &BytesColumn) -> DictionaryRestarts {
    let mut restarts = DictionaryRestarts::default();
    while !restarts.ended {
        restarts.want(column.num_terms(), column).expect("read");
    }
    restarts
}

#[test]
fn every_string_is_the_dictionarys() {
    let mut random = souk_seeds::random();
    for count in [1, 15, 16, 17, 300, 20_000] {
        // Short and long ones, with long and short beginnings in common.
        let strings: BTreeSet<Vec<u8>> = (0..count)
            .map(|nth| match random.u8(..4) {
                0 => format!("order-{nth:09}").into_bytes(),
                1 => (0..random.usize(..40)).map(|_| random.u8(..)).collect(),
                2 => vec![b'x'; random.usize(..600)],
                _ => format!("{:032x}", random.u128(..)).into_bytes(),
            })
            .collect();
        let column = column(&strings);
        let restarts = whole(&column);
        assert_eq!(restarts.known(), strings.len() as u64, "{count} strings");
        let mut found = Vec::new();
        let mut ordinals: Vec<usize> = (0..strings.len()).collect();
        random.shuffle(&mut ordinals);
        let sorted: Vec<&Vec<u8>> = strings.iter().collect();
        for ordinal in ordinals {
            restarts.get(ordinal as u64, &mut found).expect("known");
            assert_eq!(
                &&found,
                sorted.get(ordinal).expect("there"),
                "ordinal {ordinal} of {count}"
            );
        }
        assert!(
            restarts
                .get(strings.len() as u64 + STRINGS_PER_POINT, &mut found)
                .is_err()
        );
    }
}

#[test]
fn it_begins_when_it_is_worth_while_and_goes_on_by_stretches() {
    let strings = (0..3 * STRINGS_PER_STRETCH).map(|nth| format!("{nth:08}").into_bytes());
    let column = column(&strings.collect());
    let mut restarts = DictionaryRestarts::default();
    let mut asked = 0;
    while restarts.known() == 0 {
        restarts.want(20, &column).expect("read");
        asked += 20;
    }
    assert!(
        asked * STRINGS_PER_LOOKUP >= 3 * STRINGS_PER_STRETCH,
        "after {asked} strings"
    );
    assert_eq!(restarts.known(), STRINGS_PER_STRETCH);
    let more = restarts.want(20, &column).expect("read");
    assert_eq!(restarts.known(), 2 * STRINGS_PER_STRETCH);
    assert!(more > 0);
}

#[test]
fn what_is_no_dictionary_is_not_read() {
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..10_000 {
        let bytes: Vec<u8> = (0..random.usize(..60))
            .map(|nth| {
                if nth < HEADER_BYTES - 1 {
                    random.u8(..2)
                } else {
                    random.u8(..)
                }
            })
            .collect();
        let mut reading = Reading::new(OwnedBytes::new(bytes));
        let mut read = 0;
        while reading.step().is_some() {
            read += 1;
        }
        assert!(read < 60);
        for ordinal in 0..read {
            assert!(reading.get(ordinal, &mut Vec::new()).is_some());
        }
    }
}

use super::*;

/// The definition, slowly: every assignment of positions to places.
fn by_definition(slots: &[(u64, usize)], texts: &[Vec<u32>], slop: u64) -> bool {
    fn go(
        slots: &[(u64, usize)],
        texts: &[Vec<u32>],
        taken: &mut Vec<(usize, u32)>,
        moved: &mut Vec<i64>,
        slop: i64,
    ) -> bool {
        let Some((&(place, term), rest)) = slots.split_first() else {
            let (low, high) = (moved.iter().min(), moved.iter().max());
            return matches!((low, high), (Some(low), Some(high)) if high - low <= slop);
        };
        texts[term].iter().any(|position| {
            if taken.contains(&(term, *position)) {
                return false;
            }
            taken.push((term, *position));
            moved.push(i64::from(*position) - place as i64);
            let found = go(rest, texts, taken, moved, slop);
            taken.pop();
            moved.pop();
            found
        })
    }
    go(slots, texts, &mut Vec::new(), &mut Vec::new(), slop as i64)
}

#[test]
fn agrees_with_the_definition() {
    let seed = souk_seeds::seed();
    let mut random = fastrand::Rng::with_seed(seed);
    let mut hits = 0;
    for _ in 0..20_000 {
        let kinds = 3;
        let mut texts = vec![Vec::new(); kinds];
        for position in 0..random.u32(0..12) {
            texts[random.usize(0..kinds)].push(position);
        }
        let slots: Vec<(u64, usize)> = (0..random.u64(2..5))
            .map(|place| (place * random.u64(1..3), random.usize(0..kinds)))
            .collect();
        let mut slots = slots;
        slots.sort_unstable();
        slots.dedup();
        let slop = random.u64(0..5);
        let terms: Vec<(Vec<u64>, &[u32])> = (0..kinds)
            .map(|kind| {
                let places = slots
                    .iter()
                    .filter(|(_, term)| *term == kind)
                    .map(|(place, _)| *place)
                    .collect();
                (places, texts[kind].as_slice())
            })
            .filter(|(places, _): &(Vec<u64>, &[u32])| !places.is_empty())
            .collect();
        let terms: Vec<(&[u64], &[u32])> = terms
            .iter()
            .map(|(places, positions)| (places.as_slice(), *positions))
            .collect();
        let expected = by_definition(&slots, &texts, slop);
        assert_eq!(
            occurrences(&terms, slop, 1) > 0,
            expected,
            "{slots:?} {texts:?} slop {slop} ({seed})"
        );
        assert_eq!(
            occurrences(&terms, slop, u32::MAX) > 0,
            expected,
            "{slots:?} {texts:?} ({seed})"
        );
        hits += usize::from(expected);
    }
    assert!(
        (2_000..18_000).contains(&hits),
        "{hits} of 20000 match: the test tests too little"
    );
}

#[test]
fn counts_without_overlaps() {
    // a b . a b: twice; swapped, it takes a slop of two.
    let (a, b): (&[u32], &[u32]) = (&[0, 3], &[1, 4]);
    assert_eq!(occurrences(&[(&[0], a), (&[1], b)], 0, u32::MAX), 2);
    assert_eq!(occurrences(&[(&[1], a), (&[0], b)], 1, u32::MAX), 1);
    assert_eq!(occurrences(&[(&[1], &[0]), (&[0], &[1])], 1, u32::MAX), 0);
    assert_eq!(occurrences(&[(&[1], &[0]), (&[0], &[1])], 2, u32::MAX), 1);
    // One `a` can't be two.
    assert_eq!(occurrences(&[(&[0, 1], &[5])], 9, u32::MAX), 0);
}

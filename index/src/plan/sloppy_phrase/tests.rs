use super::*;

fn count(terms: &[(&[u32], &[u32])], slop: u64, enough: u32) -> u32 {
    let words = terms
        .iter()
        .map(|(places, positions)| PhraseWord { places, positions });
    let words: Vec<_> = words.collect();
    let Ok(count) = occurrences(&words, slop, enough, |_| Ok::<_, std::convert::Infallible>(()));
    count
}

/// The definition, slowly: every assignment of positions to places.
fn by_definition(slots: &[(u32, usize)], texts: &[Vec<u32>], slop: u64) -> bool {
    fn go(
        slots: &[(u32, usize)],
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
            moved.push(i64::from(*position) - i64::from(place));
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
        let slots: Vec<(u32, usize)> = (0..random.u32(2..5))
            .map(|place| (place * random.u32(1..3), random.usize(0..kinds)))
            .collect();
        let mut slots = slots;
        slots.sort_unstable();
        slots.dedup();
        let slop = random.u64(0..5);
        let terms: Vec<(Vec<u32>, &[u32])> = (0..kinds)
            .map(|kind| {
                let places = slots
                    .iter()
                    .filter(|(_, term)| *term == kind)
                    .map(|(place, _)| *place)
                    .collect();
                (places, texts[kind].as_slice())
            })
            .filter(|(places, _): &(Vec<u32>, &[u32])| !places.is_empty())
            .collect();
        let terms: Vec<(&[u32], &[u32])> = terms
            .iter()
            .map(|(places, positions)| (places.as_slice(), *positions))
            .collect();
        let expected = by_definition(&slots, &texts, slop);
        assert_eq!(
            count(&terms, slop, 1) > 0,
            expected,
            "{slots:?} {texts:?} slop {slop} ({seed})"
        );
        assert_eq!(
            count(&terms, slop, u32::MAX) > 0,
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
    assert_eq!(count(&[(&[0], a), (&[1], b)], 0, u32::MAX), 2);
    assert_eq!(count(&[(&[1], a), (&[0], b)], 1, u32::MAX), 1);
    assert_eq!(count(&[(&[1], &[0]), (&[0], &[1])], 1, u32::MAX), 0);
    assert_eq!(count(&[(&[1], &[0]), (&[0], &[1])], 2, u32::MAX), 1);
    // A phrase of no words, as some analyzers make of a text, occurs nowhere.
    assert_eq!(count(&[], 1, u32::MAX), 0);
    // One `a` can't be two.
    assert_eq!(count(&[(&[0, 1], &[5])], 9, u32::MAX), 0);
}

/// Every start by itself: those at which some position stands, each tried, and none within an occurrence.
#[test]
fn counts_what_trying_every_start_counts() {
    let seed = souk_seeds::seed();
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..20_000 {
        let mut places: Vec<Vec<u32>> = vec![Vec::new(); 2];
        for place in 0..random.u32(1..5) {
            places[random.usize(0..2)].push(place);
        }
        let texts: Vec<Vec<u32>> = (0..2)
            .map(|_| (0..16).filter(|_| random.bool()).collect())
            .collect();
        let slop = random.u64(0..4);
        let last = i64::from(places.iter().flatten().copied().max().unwrap_or_default());
        let slots = || {
            let of = |nth: usize| places[nth].iter().map(move |place| (*place, nth));
            of(0).chain(of(1)).collect::<Vec<_>>()
        };
        let within = |start: i64| {
            let texts: Vec<Vec<u32>> = (0..2).map(|nth| texts[nth].clone()).collect();
            let fits = |place: u32, position: u32| {
                let moved = i64::from(position) - i64::from(place);
                (start..=start + slop as i64).contains(&moved)
            };
            assigned(&slots(), &texts, &fits, &mut Vec::new())
        };
        let starts = -last..20;
        let is_start = |start: &i64| {
            slots().iter().any(|(place, nth)| {
                let position = start + i64::from(*place);
                texts[*nth].iter().any(|at| i64::from(*at) == position)
            })
        };
        let (mut expected, mut free_from) = (0, i64::MIN);
        for start in starts.filter(is_start) {
            if start >= free_from && within(start) {
                expected += 1;
                free_from = start + slop as i64 + 1;
            }
        }
        let terms: Vec<(&[u32], &[u32])> = places
            .iter()
            .zip(&texts)
            .filter(|(places, _)| !places.is_empty())
            .map(|(places, text)| (places.as_slice(), text.as_slice()))
            .collect();
        assert_eq!(
            count(&terms, slop, u32::MAX),
            expected,
            "{places:?} {texts:?} slop {slop} ({seed})"
        );
        if slop == 0 {
            assert_eq!(count_exact(&terms), expected, "{places:?} {texts:?} ({seed})");
        }
    }
}

/// How many starts are left by the positions of all words.
fn count_exact(terms: &[(&[u32], &[u32])]) -> u32 {
    let last = terms
        .iter()
        .flat_map(|(places, _)| *places)
        .max()
        .expect("a place");
    let placed = terms
        .iter()
        .flat_map(|(places, text)| places.iter().map(|place| (last - place, *text)));
    let mut placed = placed.collect::<Vec<_>>().into_iter();
    let (moved_by, text) = placed.next().expect("a place");
    let mut starts: Vec<u32> = text.iter().map(|position| position + moved_by).collect();
    for (moved_by, text) in placed {
        keep_common(&mut starts, text, moved_by);
    }
    starts.len() as u32
}

/// Whether each slot has a position of its own that fits.
fn assigned(
    slots: &[(u32, usize)],
    texts: &[Vec<u32>],
    fits: &impl Fn(u32, u32) -> bool,
    taken: &mut Vec<(usize, u32)>,
) -> bool {
    let Some((&(place, nth), rest)) = slots.split_first() else {
        return true;
    };
    texts[nth].iter().any(|position| {
        if taken.contains(&(nth, *position)) || !fits(place, *position) {
            return false;
        }
        taken.push((nth, *position));
        let found = assigned(rest, texts, fits, taken);
        taken.pop();
        found
    })
}

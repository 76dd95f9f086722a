//! Values from small sets, so that queries hit and orders have ties; among them are the ends of every type.

use fastrand::Rng;
use souk_index::GeoPoint;

const WORDS: &[&str] = &[
    "alpha",
    "alp",
    "al*a",
    "Beta",
    "betamax",
    "be?a",
    "中文",
    "中",
    "",
    "\\",
    "é",
    "e\u{301}",
    "alphabet",
    "🦀",
    "\u{0}",
    "\u{10ffff}",
];
/// Of these, short strings are made: many of them are each other's beginnings, ends and parts.
const LETTERS: &[char] = &['a', 'b', '中', '*'];
const TOKENS: &[&str] = &[
    "red",
    "Green",
    "blue7",
    "咖",
    "啡",
    "店",
    "x",
    "中华人民共和国国歌",
    "奶茶店",
    "梨花茶",
    "ab",
    "abab",
    "b",
    "ナ",
    "é",
];
const SEPARATORS: &[&str] = &[" ", "，", "-", "", "\n", " - "];
const INTEGERS: &[i64] = &[
    i64::MIN,
    i64::MIN + 1,
    -7,
    -1,
    0,
    1,
    2,
    3,
    9_007_199_254_740_992,
    9_007_199_254_740_993,
    i64::MAX - 1,
    i64::MAX,
];
const DOUBLES: &[f64] = &[
    f64::MIN,
    -1e300,
    -1.5,
    -f64::MIN_POSITIVE,
    -0.0,
    0.0,
    5e-324,
    0.5,
    1.0,
    2.0,
    2.5,
    9_007_199_254_740_992.0,
    9_223_372_036_854_775_808.0,
    1e300,
    f64::MAX,
];
/// Doubles of which sums of a few stay finite.
const SUMMABLE: usize = 1;
const TIMES: &[i64] = &[
    i64::MIN,
    -1,
    0,
    1_000,
    1_700_000_000_000_000_000,
    1_700_000_000_000_000_001,
    i64::MAX,
];
/// Latitudes and longitudes at which geometry is hard.
const EDGES: &[(f64, f64)] = &[
    (90.0, 0.0),
    (-90.0, 179.9),
    (0.0, 180.0),
    (0.0, -180.0),
    (30.27, 179.999),
    (30.27, -179.999),
    (0.0, 0.0),
];

pub(crate) fn pick<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.usize(..from.len())]
}

pub(crate) fn word(rng: &mut Rng) -> String {
    if rng.bool() {
        return pick(rng, WORDS).to_owned();
    }
    (0..rng.usize(..5)).map(|_| pick(rng, LETTERS)).collect()
}

pub(crate) fn text(rng: &mut Rng) -> String {
    (0..rng.usize(..6))
        .map(|_| format!("{}{}", pick(rng, TOKENS), pick(rng, SEPARATORS)))
        .collect()
}

/// A text of a query: not empty.
pub(crate) fn asked_text(rng: &mut Rng) -> String {
    let text: String = (0..rng.usize(1..4))
        .map(|_| format!("{}{}", pick(rng, TOKENS), pick(rng, &[" ", "", "-"])))
        .collect();
    if rng.u8(..20) == 0 { "!?".to_owned() } else { text }
}

pub(crate) fn integer(rng: &mut Rng) -> i64 {
    if rng.bool() {
        pick(rng, INTEGERS)
    } else {
        rng.i64(-5..6)
    }
}

pub(crate) fn double(rng: &mut Rng) -> f64 {
    if rng.bool() {
        pick(rng, &DOUBLES[SUMMABLE..DOUBLES.len() - SUMMABLE])
    } else {
        f64::from(rng.i32(-20..20)) / 4.0
    }
}

/// Also the ends of the type: for comparing with.
pub(crate) fn asked_double(rng: &mut Rng) -> f64 {
    if rng.bool() {
        pick(rng, DOUBLES)
    } else {
        double(rng)
    }
}

pub(crate) fn time(rng: &mut Rng) -> i64 {
    if rng.bool() {
        pick(rng, TIMES)
    } else {
        1_700_000_000_000_000_000 + rng.i64(0..9) * 86_400_000_000_000
    }
}

pub(crate) fn near(rng: &mut Rng, center: (f64, f64), spread: f64) -> GeoPoint {
    let latitude = (center.0 + (rng.f64() - 0.5) * spread).clamp(-90.0, 90.0);
    let longitude = (center.1 + (rng.f64() - 0.5) * spread).clamp(-180.0, 180.0);
    GeoPoint::new(latitude, longitude).expect("in range")
}

/// Around Hangzhou, mostly; else anywhere, or where geometry is hard.
pub(crate) fn point(rng: &mut Rng) -> GeoPoint {
    match rng.u8(..8) {
        0 => near(rng, (0.0, 0.0), 360.0),
        1 => {
            let (latitude, longitude) = pick(rng, EDGES);
            GeoPoint::new(latitude, longitude).expect("in range")
        }
        _ => near(rng, (30.27, 120.15), 0.4),
    }
}

//! Where random tests take their seeds from: one rule for all of them, by the environment variable `SOUK_SEED`.
//!
//! - Unset, or `fixed`: each test has a seed of its own, made of its name, the same in every run. What fails then fails
//!   because of what changed.
//! - `fresh`: a random seed in each run. One that fails becomes a named test.
//! - A number: this seed, to repeat a failure. [`seed`], [`named`] and [`random`] print theirs for it.

use std::ffi::OsStr;

use fastrand::Rng;

const VARIABLE: &str = "SOUK_SEED";

/// The seed that `SOUK_SEED` gives as a number, if it does. Not printed.
///
/// # Panics
/// When `SOUK_SEED` is set, and isn't a number, `fixed` or `fresh`.
#[must_use]
pub fn given() -> Option<u64> {
    match mode() {
        SeedMode::Given(seed) => Some(seed),
        SeedMode::Fixed | SeedMode::Fresh => None,
    }
}

/// The seed of the test, or of the source of faults, that is called `name`; printed.
///
/// # Panics
/// When `SOUK_SEED` is set, and isn't a number, `fixed` or `fresh`.
#[must_use]
#[expect(clippy::print_stdout, reason = "a failed test shows its seed")]
pub fn named(name: &str) -> u64 {
    let seed = match mode() {
        SeedMode::Given(seed) => seed,
        SeedMode::Fixed => hash(name),
        SeedMode::Fresh => fastrand::u64(..),
    };
    println!("{name}: {VARIABLE}={seed}");
    seed
}

/// The seed of the test that runs on this thread, which the harness names after it; printed.
///
/// # Panics
/// When `SOUK_SEED` is set, and isn't a number, `fixed` or `fresh`.
#[must_use]
pub fn seed() -> u64 {
    named(std::thread::current().name().unwrap_or("a thread without a name"))
}

/// Random numbers from [`seed`].
///
/// # Panics
/// When `SOUK_SEED` is set, and isn't a number, `fixed` or `fresh`.
#[must_use]
pub fn random() -> Rng {
    Rng::with_seed(seed())
}

/// What `SOUK_SEED` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SeedMode {
    Fixed,
    Fresh,
    Given(u64),
}

fn mode() -> SeedMode {
    parse(std::env::var_os(VARIABLE).as_deref())
}

fn parse(value: Option<&OsStr>) -> SeedMode {
    match value.map(OsStr::to_string_lossy).as_deref() {
        None | Some("fixed") => SeedMode::Fixed,
        Some("fresh") => SeedMode::Fresh,
        Some(number) => match number.parse() {
            Ok(seed) => SeedMode::Given(seed),
            Err(_) => panic!("{VARIABLE} is {number:?}; it can be a number, `fixed` or `fresh`"),
        },
    }
}

/// 64-bit FNV-1a, of its offset basis and prime: the same in every run, on every machine, whatever the compiler.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use super::{SeedMode, hash, parse};

    #[test]
    fn the_variable_says_fixed_fresh_or_which() {
        let mode = |value: &[u8]| parse(Some(OsStr::from_bytes(value)));
        assert_eq!(parse(None), SeedMode::Fixed);
        assert_eq!(mode(b"fixed"), SeedMode::Fixed);
        assert_eq!(mode(b"fresh"), SeedMode::Fresh);
        assert_eq!(mode(b"18446744073709551615"), SeedMode::Given(u64::MAX));
        for wrong in [&b"frsh"[..], b"", b"\xff"] {
            assert!(std::panic::catch_unwind(|| mode(wrong)).is_err());
        }
    }

    #[test]
    fn tests_have_seeds_of_their_own_that_stay() {
        // FNV's own test vectors.
        assert_eq!(hash(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c);
        assert_ne!(hash("one"), hash("other"));
    }
}

//! Where random tests take their seeds from: one rule for all of them, by the variable `SOUK_SEED`.
//!
//! - Unset, or `fixed`: each test has a seed of its own, made of its name, the same in every run. What fails then fails
//!   because of what changed.
//! - `fresh`: by chance. A seed that fails becomes a named test.
//! - A number: this seed, to run again what failed. Every seed is printed, so that there is one.

use fastrand::Rng;

/// The variable that chooses.
pub const VARIABLE: &str = "SOUK_SEED";

/// The seed that the variable names, if it names one.
///
/// # Panics
/// When the variable holds anything else than the crate says.
#[must_use]
pub fn given() -> Option<u64> {
    match rule(std::env::var(VARIABLE).ok().as_deref()) {
        Rule::Given(seed) => Some(seed),
        Rule::Fixed | Rule::Fresh => None,
    }
}

/// The seed of what is called `name`; printed.
///
/// # Panics
/// When the variable holds anything else than the crate says.
#[must_use]
#[expect(clippy::print_stdout, reason = "a failed test shows its seed")]
pub fn named(name: &str) -> u64 {
    let seed = match rule(std::env::var(VARIABLE).ok().as_deref()) {
        Rule::Given(seed) => seed,
        Rule::Fixed => hash(name),
        Rule::Fresh => fastrand::u64(..),
    };
    println!("{name}: {VARIABLE}={seed}");
    seed
}

/// The seed of the test that runs on this thread, which the harness names after it; printed.
///
/// # Panics
/// When the variable holds anything else than the crate says.
#[must_use]
pub fn seed() -> u64 {
    named(std::thread::current().name().unwrap_or("a thread without a name"))
}

/// Random numbers from [`seed`].
///
/// # Panics
/// When the variable holds anything else than the crate says.
#[must_use]
pub fn random() -> Rng {
    Rng::with_seed(seed())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Fixed,
    Fresh,
    Given(u64),
}

fn rule(value: Option<&str>) -> Rule {
    match value {
        None | Some("fixed") => Rule::Fixed,
        Some("fresh") => Rule::Fresh,
        Some(number) => match number.parse() {
            Ok(seed) => Rule::Given(seed),
            Err(_) => panic!("{VARIABLE} is {number:?}; it can be a number, `fixed` or `fresh`"),
        },
    }
}

/// FNV-1a: the same in every run, on every machine, whatever the compiler.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::{Rule, hash, rule};

    #[test]
    fn the_variable_says_fixed_fresh_or_which() {
        assert_eq!(rule(None), Rule::Fixed);
        assert_eq!(rule(Some("fixed")), Rule::Fixed);
        assert_eq!(rule(Some("fresh")), Rule::Fresh);
        assert_eq!(rule(Some("18446744073709551615")), Rule::Given(u64::MAX));
        assert!(std::panic::catch_unwind(|| rule(Some("frsh"))).is_err());
    }

    #[test]
    fn tests_have_seeds_of_their_own_that_stay() {
        // FNV's own test vectors.
        assert_eq!(hash(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c);
        assert_ne!(hash("one"), hash("other"));
    }
}

//! The engine over a real store and real indexes, in a temporary directory.
#![expect(
    clippy::expect_used,
    reason = "a test fails by panicking, also in its functions"
)]

mod contents;
mod created;
mod damage;
mod export;
mod faults;
mod highlights;
mod histories;
mod holdings;
mod lifecycle;
mod model;
mod note;
mod owned;
mod redesign;
mod restores;
mod scope;
mod sequences;
mod several;
mod standstill;
mod table_admin;
mod taken_in;
mod views;
mod watch;
mod writes;

/// How often something random is done: fewer by default than in the long run.
fn rounds(normal: usize, long: usize) -> usize {
    match std::env::var_os("SOUK_LONG").is_some_and(|value| value != "0") {
        true => long,
        false => normal,
    }
}

/// The seed of a random test, by the rule of `souk_seeds`; printed.
fn seed(test: &str) -> u64 {
    souk_seeds::named(test)
}

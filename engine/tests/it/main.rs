//! The engine over a real store and real indexes, in a temporary directory.
#![expect(
    clippy::expect_used,
    reason = "a test fails by panicking, also in its functions"
)]
#![expect(clippy::print_stdout, reason = "seeds are told to who runs the tests")]

mod export;
mod highlights;
mod lifecycle;
mod model;
mod note;
mod redesign;
mod restores;
mod scope;
mod sequences;
mod standstill;
mod views;
mod watch;
mod writes;

/// The seed of a random test: `SOUK_SEED`, or a new one; always printed.
fn seed(test: &str) -> u64 {
    souk_seeds::named(test)
}

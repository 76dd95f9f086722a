//! The targets, driven by random messages: a bounded number of executions in a normal run, any number by
//! `SOUK_FUZZ_SECONDS`.

#![expect(clippy::print_stdout, reason = "seeds and counts are printed")]

use std::time::{Duration, Instant};

use souk_fuzz::messages::{self, Messages};
use souk_fuzz::tablestore;
use souk_fuzz::targets::{ALL, answered};

/// Executions of each target in a normal run.
const EXECUTIONS: u64 = 20_000;

/// What is run, told when it panics.
struct Input<'a> {
    target: &'static str,
    seed: u64,
    bytes: &'a [u8],
}

impl Drop for Input<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!(
                "{} fails with SOUK_SEED={}: {:?}",
                self.target, self.seed, self.bytes
            );
        }
    }
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

fn input(messages: &Messages, target: &str, seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    match target {
        "page_token" | "wildcard" => messages::bytes(&mut random),
        "primary_key" => messages::keys(&mut random),
        "row" => messages::row(&mut random),
        "plainbuffer" => tablestore::rows(&mut random),
        "tablestore_search" => tablestore::search(&mut random),
        _ => messages.search(&mut random),
    }
}

#[test]
fn targets_survive_random_input() {
    let messages = Messages::new();
    let time = variable("SOUK_FUZZ_SECONDS").map(Duration::from_secs);
    let given = souk_seeds::given();
    let first = given.unwrap_or_else(|| souk_seeds::seed() / 2);
    println!("seeds from {first}");
    for (name, target) in ALL {
        let (began, before) = (Instant::now(), answered());
        let mut executions = 0;
        let more = |executions: u64| match (given, time) {
            (Some(_), None) => executions == 0,
            (_, Some(time)) => began.elapsed() < time,
            (None, None) => executions < EXECUTIONS,
        };
        while more(executions) {
            let seed = first + executions;
            let bytes = input(&messages, name, seed);
            let running = Input {
                target: name,
                seed,
                bytes: &bytes,
            };
            target(&bytes);
            drop(running);
            executions += 1;
        }
        println!(
            "{name}: {executions} executions in {:.1?}, {} searches answered",
            began.elapsed(),
            answered() - before
        );
    }
}

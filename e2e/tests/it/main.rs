//! One file for each promise; see `souk_e2e` for how the suite is started.

#![expect(
    clippy::expect_used,
    reason = "a test fails by panicking, also in its functions"
)]
#![expect(
    clippy::print_stdout,
    reason = "seeds, skips and measured times are told to who runs the tests"
)]

mod access;
mod aggregations;
mod assault;
mod attributes;
mod backups;
mod bad_input;
mod bombs;
mod cases;
#[path = "../../../chassis/src/tls/testing.rs"]
mod certificates;
mod chaos;
mod clients;
mod clusters;
mod crash;
mod drain;
mod faulty;
mod freshness;
mod hits;
mod huge_pages;
mod never_sent;
mod observed;
mod occupied;
mod oracle;
mod outages;
mod private_files;
mod readme;
mod rebuild;
mod redesign;
mod rolling;
mod rules;
mod short_disks;
mod table_command;
mod table_indexes;
mod trace;
mod traced;
mod walk;

/// The `souk` binary of this build.
const SOUK: &str = env!("CARGO_BIN_EXE_souk-under-test");

/// The seed of a random test, by the rule of `souk_seeds`; printed.
fn seed(test: &str) -> u64 {
    souk_seeds::named(test)
}

/// A number that an environment variable overrides: for longer runs than the usual one.
fn rounds(variable: &str, usual: usize) -> usize {
    std::env::var(variable)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(usual)
}

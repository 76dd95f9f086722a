//! The storage through its public API, in one binary.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test that can't go on says why and fails; seeds are printed"
)]

mod backups;
mod checks;
mod commits;
mod engines;
mod evolution;
mod faults;
mod feed;
mod holes;
mod limits;
mod linearizable;
mod log_time;
mod model;
mod reads;
mod retention;
mod sample;
mod space;
mod tables;
mod transactions;
mod writes;

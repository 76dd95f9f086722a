//! The engines through the public API, in one binary.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test that can't go on says why and fails; seeds are printed"
)]

mod commits;
mod contract;
mod crash;
mod damage;
mod failure;
mod faults;
mod space;

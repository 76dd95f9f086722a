//! The `souk` binary, built with this package so that its tests can start and kill it.

use std::process::ExitCode;

/// The allocator of `souk`: tests measure memory.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    souk_standalone::main()
}

//! The `souk` binary, built with this package so that its tests can start and kill it.

use std::process::ExitCode;

/// As `souk` has it: tests measure memory.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    souk_standalone::main()
}

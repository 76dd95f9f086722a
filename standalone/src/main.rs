//! `souk`: see `souk --help`.

use std::process::ExitCode;

/// Rows are allocated on one thread and freed on another all the time, which the system's allocator is slow at.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    souk_standalone::main()
}

//! The `souk` binary, built with this package so that its tests can start and kill it.

use std::process::ExitCode;

fn main() -> ExitCode {
    souk_standalone::main()
}

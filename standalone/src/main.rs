//! `souk`: see `souk --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    souk_standalone::main()
}

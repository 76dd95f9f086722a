//! `souk`: see `souk --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::SUCCESS
}

//! `souk-table-svc`: the table service as a process of its own.

use std::process::ExitCode;

use clap::Parser;
use souk_chassis::process;

/// Tables that users define over gRPC.
#[derive(Debug, Parser)]
#[command(version)]
struct Command {
    #[command(flatten)]
    args: souk_table_svc::Args,
}

fn main() -> ExitCode {
    process::main(souk_table_svc::run(Command::parse().args))
}

//! The binary `souk-order-svc`: the order services in a process of their own.

use std::process::ExitCode;

use clap::Parser;
use souk_chassis::process;

/// Orders, consumers, salespersons and products over gRPC.
#[derive(Debug, Parser)]
#[command(version)]
struct Command {
    #[command(flatten)]
    args: souk_order_svc::Args,
}

fn main() -> ExitCode {
    process::main(souk_order_svc::run(Command::parse().args))
}

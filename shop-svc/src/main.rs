//! The binary `souk-shop-svc`: the shop service in a process of its own.

use std::process::ExitCode;

use clap::Parser;
use souk_chassis::process;

/// Shops on the map over gRPC.
#[derive(Debug, Parser)]
#[command(version)]
struct Command {
    #[command(flatten)]
    args: souk_shop_svc::Args,
}

fn main() -> ExitCode {
    process::main(souk_shop_svc::run(Command::parse().args))
}

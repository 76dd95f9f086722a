//! `souk-gateway`: the gateway as a process of its own.

use std::process::ExitCode;

use clap::Parser;
use souk_gateway::config::GatewayArgs;

/// Routes the calls of Souk to its services.
#[derive(Parser)]
#[command(version)]
struct Command {
    #[command(flatten)]
    args: GatewayArgs,
}

fn main() -> ExitCode {
    souk_chassis::process::main(souk_gateway::run(Command::parse().args))
}

//! The binary `souk-meta-svc`: the media service in a process of its own.

use std::process::ExitCode;

use clap::Parser;
use souk_chassis::process;

/// Metadata of media files over gRPC.
#[derive(Debug, Parser)]
#[command(version)]
struct Command {
    #[command(flatten)]
    args: souk_meta_svc::Args,
}

fn main() -> ExitCode {
    process::main(souk_meta_svc::run(Command::parse().args))
}

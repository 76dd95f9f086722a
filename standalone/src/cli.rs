//! The command line of `souk`.

mod backup;
mod bench;
mod check;
mod demo;
mod load;
mod make_key;
mod ready;
mod restore;
mod serve;
mod stats;
mod stores;
mod table;
mod tablestore;
mod target;

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use souk_chassis::{causes, private_files, process};
use souk_gateway::config::GatewayArgs;

use crate::services::Alone;

/// Orders, shops and media: stored, indexed and searched over gRPC.
///
/// Without a command it runs the demo.
#[derive(Debug, Parser)]
#[command(
    name = "souk",
    version,
    after_help = "Examples:
  souk                                    the demo: everything in one process, with data
  souk serve --data /var/lib/souk         everything in one process, without demo data
  souk order-svc --listen 127.0.0.1:50061 --data order
  souk gateway --backend order=http://127.0.0.1:50061
  souk load shops --count 100000 --target http://127.0.0.1:50051
  souk load orders --file orders.ndjson --rejects refused.ndjson"
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Everything in one process; loads demo data at the first start, then serves.
    Demo(demo::DemoArgs),
    /// Everything in one process: the gateway and all services.
    Serve(serve::ServeArgs),
    #[command(flatten)]
    Alone(Alone),
    /// The one front door to services in other processes.
    Gateway(GatewayArgs),
    /// Loads rows into a running service: generated ones or your own.
    #[command(after_help = "Examples:
  souk load orders --scale-factor 0.1                         600,000 orders after TPC-H, and what they refer to
  souk load media --count 100000 --streams 8
  souk load media --count 100000 --resume                     goes on after an interruption
  souk load shops --file shops.ndjson --rejects refused.ndjson

The code is 0 when every row was taken, 1 when some were refused (each is named) or the load was given up.")]
    Load(load::LoadArgs),
    /// Tables of your own on a running server: creates them, reads and writes rows, imports and exports files.
    Table(table::TableArgs),
    /// Measures how fast a part is on this machine, alone.
    #[command(after_help = "Example:
  souk bench storage --data /tmp/souk-bench --rows 1000000")]
    Bench(bench::BenchArgs),
    /// Reads all stored data and holds rows, indexes and change log against each other.
    #[command(
        after_help = "The services must be stopped: only the process that has a store open can read it.

The code is 0 when all is whole, 1 when there are problems; each is named, with what to do about it."
    )]
    Check(check::CheckArgs),
    /// Copies the data of stopped services; running ones do it themselves, see `souk serve --help`.
    #[command(after_help = "Examples:
  souk backup --data /var/lib/souk --to /mnt/backups          all services; full at first, then what was added
  souk serve --data /var/lib/souk --backup-to /mnt/backups --backup-every 15m
  kill -USR1 PID                                              a running process takes a backup at once

A backup is there as a whole or not at all. What `order-svc`, `shop-svc` and `meta-svc` need is
`--set engine.backup.to=FOLDER` and `--set engine.backup.every=15m`.")]
    Backup(backup::BackupArgs),
    /// Makes a data folder of backups.
    #[command(after_help = "Examples:
  souk restore --from /mnt/backups --data /var/lib/souk-restored
  souk restore --from /mnt/backups/order/20261121T130640.000Z-incremental --data order

Every byte is verified before the data is there. Search indexes aren't part of a backup: they are built from the rows
at the first start.")]
    Restore(restore::RestoreArgs),
    /// Makes an API key for callers of a gateway: prints it once, and the line for the file of `auth.keys`.
    #[command(after_help = "Examples:
  souk make-key --id back-office --role operator --add-to keys
  souk make-key --id web --role consumer --subject c0001
  souk serve --set auth.keys=keys
  grpcurl -plaintext -H 'x-api-key: souk_…' localhost:50051 list")]
    MakeKey(make_key::MakeKeyArgs),
    /// Makes an access key for clients of Tablestore: prints its secret once, and the line for the file of --tablestore-keys.
    #[command(after_help = "Examples:
  souk make-tablestore-key --id app --instance shop --role admin --add-to tablestore-keys
  souk serve --tablestore-listen 127.0.0.1:8087 --tablestore-keys tablestore-keys")]
    MakeTablestoreKey(make_key::MakeTablestoreKeyArgs),
    /// Makes the key by which services know the calls of their gateway, for the file of `auth.credential_key`.
    MakeCredentialKey,
    /// Counts rows, bytes, versions, index entries and changes of stopped services.
    Stats(stats::StatsArgs),
}

/// Runs `souk` with the arguments of this process.
pub fn main() -> ExitCode {
    // For backups, restores and files of keys as well.
    private_files::withhold();
    match Cli::parse()
        .command
        .unwrap_or_else(|| Command::Demo(demo::DemoArgs::default()))
    {
        Command::Demo(args) => process::main(demo::run(args)),
        Command::Serve(args) => process::main(serve::run(args)),
        Command::Alone(service) => process::main(service.run()),
        Command::Gateway(args) => process::main(souk_gateway::run(args)),
        Command::Load(args) => load::main(&args),
        Command::Table(args) => table::main(&args),
        Command::Bench(args) => bench::main(&args),
        Command::Check(args) => check::main(&args),
        Command::Backup(args) => backup::main(&args),
        Command::Restore(args) => restore::main(&args),
        Command::MakeKey(args) => make_key::main(&args),
        Command::MakeTablestoreKey(args) => make_key::tablestore(&args),
        Command::MakeCredentialKey => make_key::credential_key(),
        Command::Stats(args) => stats::main(&args),
    }
}

/// Writes an error with its causes to standard error.
fn complain(error: &dyn Error) {
    // Nobody is left to hear that standard error is closed.
    let _ = writeln!(io::stderr(), "error: {}", causes::chain(error));
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::{Cli, Command};

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn no_command_is_the_demo() {
        let cli = Cli::try_parse_from(["souk"]).expect("nothing is needed");
        assert!(cli.command.is_none());
        let cli = Cli::try_parse_from([
            "souk",
            "demo",
            "--size",
            "small",
            "--listen",
            "127.0.0.1:0",
            "--data",
            "x",
        ]);
        assert!(matches!(
            cli.expect("e2e's command line").command,
            Some(Command::Demo(_))
        ));
    }

    #[test]
    fn backups_of_a_running_process_need_a_folder() {
        for (line, taken) in [
            ("serve --backup-to x --backup-every 5m", true),
            ("serve --backup-every 5m", false),
            ("check --data x", true),
            ("check --backups x", true),
            ("check --data x --backups x", false),
            ("check", false),
            ("backup --data x", false),
            ("restore --from x", false),
        ] {
            let arguments = ["souk"].into_iter().chain(line.split(' '));
            assert_eq!(Cli::try_parse_from(arguments).is_ok(), taken, "{line}");
        }
    }

    #[test]
    fn an_endpoint_for_tablestores_clients_needs_keys() {
        for (line, taken) in [
            (
                "serve --tablestore-listen 127.0.0.1:8087 --tablestore-keys x",
                true,
            ),
            ("serve --tablestore-listen 127.0.0.1:8087", false),
            ("serve --tablestore-keys x", false),
            ("demo --tablestore-listen 127.0.0.1:0", true),
            ("make-tablestore-key --id app --instance shop --role admin", true),
            ("make-tablestore-key --id app --instance shop", false),
        ] {
            let arguments = ["souk"].into_iter().chain(line.split(' '));
            assert_eq!(Cli::try_parse_from(arguments).is_ok(), taken, "{line}");
        }
    }

    #[test]
    fn a_load_takes_a_file_or_a_count_but_not_both() {
        for line in [
            "orders --count 5 --file x",
            "shops --scale-factor 1 --count 1",
            "shops --state a --resume --count 0 --streams 0",
        ] {
            let line = ["souk", "load"].into_iter().chain(line.split(' '));
            assert!(
                Cli::try_parse_from(line.clone()).is_err(),
                "{:?}",
                line.collect::<Vec<_>>()
            );
        }
    }
}

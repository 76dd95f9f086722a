//! `souk stats`.

mod memory;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use souk_engine::storage::contents::{ChangeTime, Contents};
use souk_engine::storage::{Database, DatabaseOptions};

use super::stores::{self, CommandError, say};

/// Arguments of `souk stats`.
#[derive(Clone, Debug, Args)]
pub(super) struct StatsArgs {
    /// Folder of a service's data, or of several services' data. The services must be stopped.
    #[arg(long, value_name = "FOLDER", required_unless_present = "metrics")]
    data: Option<PathBuf>,
    /// Prints one JSON object a store.
    #[arg(long)]
    json: bool,
    /// Prints the memory of a running process by part instead: where that shows its metrics (`--metrics-listen`).
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["data", "json"])]
    metrics: Option<SocketAddr>,
}

/// Counts what is stored.
pub(super) fn main(args: &StatsArgs) -> ExitCode {
    stores::main(async {
        if let Some(address) = args.metrics {
            say(memory::breakdown(address)?)?;
        }
        let stores = args.data.as_deref().map(stores::stores).transpose()?;
        for store in stores.unwrap_or_default() {
            let database = Database::open(&store.path, DatabaseOptions::default()).await?;
            let contents = database.contents().await;
            database.close().await?;
            let contents = contents?;
            if args.json {
                say(object(&store.to_string(), &contents))?;
            } else {
                print(&store.to_string(), &contents)?;
            }
        }
        Ok(true)
    })
}

fn print(store: &str, contents: &Contents) -> Result<(), CommandError> {
    say(format_args!("{store}"))?;
    for table in &contents.tables {
        say(format_args!(
            "  table {}: {} rows, {} bytes, {} versions of columns",
            table.name, table.rows, table.bytes, table.cells
        ))?;
        for index in &table.indexes {
            say(format_args!(
                "    index {}: {} entries, {} bytes",
                index.name, index.entries, index.bytes
            ))?;
        }
    }
    let log = contents.log;
    say(format_args!(
        "  log: {} changes, {} bytes",
        log.changes, log.bytes
    ))?;
    for (name, change) in [("oldest", log.oldest), ("newest", log.newest)] {
        if let Some(ChangeTime { sequence, time }) = change {
            let (seconds, nanos) = (time.div_euclid(1_000_000_000), time.rem_euclid(1_000_000_000));
            let timestamp = prost_types::Timestamp {
                seconds,
                nanos: i32::try_from(nanos).unwrap_or(0),
            };
            say(format_args!("  {name} change: {sequence} of {timestamp}"))?;
        }
    }
    Ok(())
}

fn object(store: &str, contents: &Contents) -> Value {
    let change =
        |change: Option<ChangeTime>| change.map(|at| json!({"sequence": at.sequence, "time": at.time}));
    let tables = contents.tables.iter().map(|table| {
        let indexes = table
            .indexes
            .iter()
            .map(|index| json!({"name": index.name, "entries": index.entries, "bytes": index.bytes}));
        json!({
            "name": table.name,
            "rows": table.rows,
            "bytes": table.bytes,
            "cells": table.cells,
            "indexes": indexes.collect::<Vec<_>>(),
        })
    });
    json!({
        "store": store,
        "sequence": contents.sequence,
        "tables": tables.collect::<Vec<_>>(),
        "log": {
            "changes": contents.log.changes,
            "bytes": contents.log.bytes,
            "oldest": change(contents.log.oldest),
            "newest": change(contents.log.newest),
        },
    })
}

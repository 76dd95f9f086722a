//! `souk table`: tables that users define, and their rows, on a running server.

mod rows;
mod transfer;

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use souk_chassis::client::Client;
use souk_proto::index::v1::CreateIndexRequest;
use souk_proto::index::v1::index_service_client::IndexServiceClient;
use souk_proto::table::v1::table_service_client::TableServiceClient;
use souk_proto::table::v1::{CreateTableRequest, GetTableRequest, Table};
use tonic::Status;

use super::stores::{self, CommandError, say};
use super::target::TargetArgs;
use crate::contract::MessageJson;
use crate::table::export::ANSWER_BYTES_MAX;

/// Most bytes of a request that is read: those of a message.
const REQUEST_BYTES_MAX: u64 = 4 << 20;

/// Arguments of `souk table`.
#[derive(Clone, Debug, Args)]
pub(super) struct TableArgs {
    #[command(subcommand)]
    what: TableCommand,
}

/// A command with the server that it is for.
#[derive(Clone, Debug, Args)]
struct On<A: Args> {
    #[command(flatten)]
    what: A,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Clone, Debug, Subcommand)]
enum TableCommand {
    /// Creates a table and its search indexes.
    #[command(
        after_help = r#"The file is a souk.table.v1.Table in JSON, as CreateTable takes it; its `search_index` is the first one. With more search indexes it is
{"table": …, "indexes": […]}, each of these a request of souk.index.v1.IndexService/CreateIndex.

Example:
  echo '{"name":"notes","key":[{"name":"author","type":"KEY_TYPE_STRING"},{"name":"nth","type":"KEY_TYPE_INTEGER"}]}' | souk table create -"#
    )]
    Create(On<CreateArgs>),
    /// Upserts a row: replaces it as a whole, or creates it.
    #[command(after_help = r#"Example:
  souk table put notes '{"key":["ann",1],"columns":{"text":"green tea in Uji","stars":5}}'"#)]
    Put(On<rows::PutArgs>),
    /// Prints a row.
    #[command(after_help = r#"Example:
  souk table get notes '["ann",1]'

The exit code is 1 if there is none."#)]
    Get(On<rows::GetArgs>),
    /// Prints the rows in a key range, one per line.
    #[command(after_help = r#"Example:
  souk table range notes --prefix '["ann"]' --descending --limit 10"#)]
    Range(On<rows::RangeArgs>),
    /// Prints the response to a search.
    #[command(after_help = r#"Example:
  souk table search notes '{"query":{"match":{"field":"text","text":"tea"}},"page_size":10}'"#)]
    Search(On<rows::SearchArgs>),
    /// Imports the rows of a file: NDJSON, CSV or Parquet.
    #[command(after_help = "Examples:
  souk table import notes notes.csv --rejects refused.ndjson
  souk table import notes notes.csv --rejects refused.ndjson --resume        resumes after an interruption

A line of NDJSON is {\"key\": […], \"columns\": {…}}. The columns of CSV are named by the first record, as name or name:type, with string, integer, double,
boolean, binary, time or json; an empty cell is no value. A row replaces the one with the same key.

The exit code is 0 if every row was imported, 1 if rows were rejected (each is listed) or the import was aborted.")]
    Import(On<transfer::ImportArgs>),
    /// Exports the rows of a table to a file: NDJSON, CSV or Parquet.
    #[command(after_help = "Examples:
  souk table export notes notes.parquet
  souk table export notes notes.parquet --resume        resumes after an interruption
  souk table export notes --format csv | head

NDJSON holds rows as they are. CSV and Parquet have a column for each key column, each declared column and each one named by --columns; a row's other
values are a JSON object in the last column, `*`. An import reads all of it.")]
    Export(On<transfer::ExportArgs>),
}

#[derive(Clone, Debug, Args)]
struct CreateArgs {
    /// File with the definition in JSON; `-` is standard input.
    file: String,
}

/// Runs a command. The code is 0 when all of it was done.
pub(super) fn main(args: &TableArgs) -> ExitCode {
    let interrupted = match args.what {
        TableCommand::Import(_) | TableCommand::Export(_) => "interrupted; continue with --resume",
        _ => "interrupted",
    };
    stores::main_or(interrupted, args.run())
}

impl TableArgs {
    async fn run(&self) -> Result<bool, CommandError> {
        match &self.what {
            TableCommand::Create(On { what, target }) => what.run(target.client()?).await?,
            TableCommand::Put(On { what, target }) => what.run(target.client()?).await?,
            TableCommand::Get(On { what, target }) => what.run(target.client()?).await?,
            TableCommand::Range(On { what, target }) => what.run(target.client()?).await?,
            TableCommand::Search(On { what, target }) => what.run(target.client()?).await?,
            TableCommand::Import(On { what, target }) => {
                return what.run(target.client()?, target.uri()).await;
            }
            TableCommand::Export(On { what, target }) => what.run(target.client()?, target.uri()).await?,
        }
        Ok(true)
    }
}

impl CreateArgs {
    async fn run(&self, target: Client) -> Result<(), CommandError> {
        let (table, indexes) = definition(&read(&self.file)?)?;
        let request = CreateTableRequest { table: Some(table) };
        let created = service(target.clone())
            .create_table(request)
            .await
            .map_err(refused)?;
        print("souk.table.v1.CreateTableResponse", &created.into_inner())?;
        for index in indexes {
            let name = index.index.clone();
            let created = IndexServiceClient::new(target.clone()).create_index(index).await;
            let created = created.map_err(|status| {
                format!(
                    "the table was created, but not its index {name:?}: {}",
                    refused(status)
                )
            })?;
            print("souk.index.v1.CreateIndexResponse", &created.into_inner())?;
        }
        Ok(())
    }
}

/// Reads a table, and the search indexes beside its first.
fn definition(json: &[u8]) -> Result<(Table, Vec<CreateIndexRequest>), CommandError> {
    let given: serde_json::Value = serde_json::from_slice(json)?;
    let (table, indexes) = match given {
        serde_json::Value::Object(mut parts) if parts.contains_key("table") => {
            let (table, indexes) = (parts.remove("table"), parts.remove("indexes"));
            if let Some(unknown) = parts.keys().next() {
                return Err(format!(
                    "unknown field {unknown:?}; next to \"table\" only \"indexes\" is expected"
                )
                .into());
            }
            let indexes = match indexes {
                None => Vec::new(),
                Some(serde_json::Value::Array(indexes)) => indexes,
                Some(_) => return Err("\"indexes\" has to be a JSON array".into()),
            };
            (table.unwrap_or_default(), indexes)
        }
        table => (table, Vec::new()),
    };
    let table = MessageJson::of("souk.table.v1.Table")?.read(table.to_string().as_bytes())?;
    let json = MessageJson::of("souk.index.v1.CreateIndexRequest")?;
    let indexes = indexes
        .iter()
        .map(|index| json.read(index.to_string().as_bytes()));
    Ok((table, indexes.collect::<Result<_, String>>()?))
}

/// The text of a file, or of standard input for `-`.
fn read(name: &str) -> Result<Vec<u8>, CommandError> {
    let mut text = Vec::new();
    let read = match name {
        "-" => io::stdin().take(REQUEST_BYTES_MAX + 1).read_to_end(&mut text),
        name => File::open(name).and_then(|file| file.take(REQUEST_BYTES_MAX + 1).read_to_end(&mut text)),
    };
    read.map_err(|error| format!("{name} can't be read: {error}"))?;
    match text.len() as u64 > REQUEST_BYTES_MAX {
        true => Err(format!("{name} has more than {REQUEST_BYTES_MAX} bytes").into()),
        false => Ok(text),
    }
}

fn service(target: Client) -> TableServiceClient<Client> {
    TableServiceClient::new(target).max_decoding_message_size(ANSWER_BYTES_MAX)
}

/// What a table is.
async fn table(target: Client, name: &str) -> Result<Table, CommandError> {
    let request = GetTableRequest {
        table: name.to_owned(),
    };
    let answer = service(target).get_table(request).await.map_err(refused)?;
    Ok(answer
        .into_inner()
        .table
        .ok_or("the response of GetTable has no table")?)
}

/// Prints a message as JSON, in a line.
fn print(kind: &'static str, message: &impl prost::Message) -> Result<(), CommandError> {
    say(MessageJson::of(kind)?.write(message)?)
}

/// A refusal, in its own words.
fn refused(status: Status) -> Refused {
    Refused(status)
}

#[derive(Debug)]
struct Refused(Status);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.0.code(), self.0.message())
    }
}

impl std::error::Error for Refused {}

#[cfg(test)]
mod tests;

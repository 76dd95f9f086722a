//! `souk table put`, `get`, `range` and `search`.

use clap::Args;
use souk_chassis::client::Client;
use souk_proto::table::v1::{
    GetRowRequest, Key, KeyRange, PutRowRequest, RangeRowsRequest, ReadOptions, Row, SearchRowsRequest,
    key_range,
};

use super::{print, read, refused, service};
use crate::cli::stores::{CommandError, say};
use crate::contract::MessageJson;

/// Rows that are printed without `--limit`.
const ROWS_DEFAULT: u32 = 100;
/// Most rows of a page.
const PAGE_ROWS: u32 = 500;

#[derive(Clone, Debug, Args)]
pub(super) struct PutArgs {
    /// The table.
    table: String,
    /// The row: a souk.table.v1.PutRowRequest in JSON, without `table`; `-` is standard input.
    row: String,
}

impl PutArgs {
    pub(super) async fn run(&self, target: Client) -> Result<(), CommandError> {
        let row: PutRowRequest = argument("souk.table.v1.PutRowRequest", &self.row)?;
        if !row.table.is_empty() {
            return Err("the row has a `table`; leave it out, since the command names the table".into());
        }
        let table = self.table.clone();
        let answer = service(target).put_row(PutRowRequest { table, ..row }).await;
        print(
            "souk.table.v1.PutRowResponse",
            &answer.map_err(refused)?.into_inner(),
        )
    }
}

#[derive(Clone, Debug, Args)]
pub(super) struct GetArgs {
    /// The table.
    table: String,
    /// Key: a JSON array with the value of each key column.
    #[arg(id = "row_key", value_name = "KEY")]
    key: String,
    /// Columns to return; all by default.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    columns: Vec<String>,
}

impl GetArgs {
    pub(super) async fn run(&self, target: Client) -> Result<(), CommandError> {
        print("souk.table.v1.Row", &self.row(target).await?)
    }

    /// The row. A large one comes in parts.
    pub(super) async fn row(&self, target: Client) -> Result<Row, CommandError> {
        let mut request = GetRowRequest {
            table: self.table.clone(),
            key: key(&self.key)?.values,
            read: only(&self.columns),
            ..GetRowRequest::default()
        };
        let mut service = service(target);
        let mut row = Row::default();
        loop {
            let answer = service.get_row(request.clone()).await.map_err(refused)?;
            let answer = answer.into_inner();
            let mut part = answer.row.unwrap_or_default();
            if !row.key.is_empty() && part.revision != row.revision {
                return Err("the row was written while it was read; read it again".into());
            }
            part.columns.append(&mut row.columns);
            row = part;
            if answer.next_column.is_empty() {
                return Ok(row);
            }
            request.read.get_or_insert_default().start_column = answer.next_column;
        }
    }
}

#[derive(Clone, Debug, Args)]
pub(super) struct RangeArgs {
    /// The table.
    table: String,
    /// Key prefix: a JSON array with the values of the first key columns.
    #[arg(long, value_name = "KEY", conflicts_with_all = ["from", "to"])]
    prefix: Option<String>,
    /// Lower bound of the keys, inclusive.
    #[arg(long, value_name = "KEY")]
    from: Option<String>,
    /// Upper bound of the keys, exclusive.
    #[arg(long, value_name = "KEY")]
    to: Option<String>,
    /// Descending key order.
    #[arg(long)]
    descending: bool,
    /// Maximum number of rows to print.
    #[arg(long, value_name = "ROWS", default_value_t = ROWS_DEFAULT, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Columns to return; all by default.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    columns: Vec<String>,
}

impl RangeArgs {
    pub(super) async fn run(&self, target: Client) -> Result<(), CommandError> {
        let bound = |given: &Option<String>| given.as_deref().map(key).transpose();
        let range = KeyRange {
            prefix: bound(&self.prefix)?,
            low: bound(&self.from)?.map(key_range::Low::Gte),
            high: bound(&self.to)?.map(key_range::High::Lt),
        };
        let mut request = RangeRowsRequest {
            table: self.table.clone(),
            range: Some(range).filter(|range| *range != KeyRange::default()),
            descending: self.descending,
            read: only(&self.columns),
            ..RangeRowsRequest::default()
        };
        let json = MessageJson::of("souk.table.v1.Row")?;
        let mut left = self.limit;
        let mut service = service(target);
        while left > 0 {
            request.page_size = left.min(PAGE_ROWS).try_into()?;
            let page = service
                .range_rows(request.clone())
                .await
                .map_err(refused)?
                .into_inner();
            for row in &page.rows {
                say(json.write(row)?)?;
            }
            left = left.saturating_sub(page.rows.len().try_into()?);
            if page.next_page_token.is_empty() {
                break;
            }
            request.page_token = page.next_page_token;
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Args)]
pub(super) struct SearchArgs {
    /// The table.
    table: String,
    /// The search: a souk.search.v1.Search in JSON; `-` is standard input.
    search: String,
}

impl SearchArgs {
    pub(super) async fn run(&self, target: Client) -> Result<(), CommandError> {
        let request = SearchRowsRequest {
            table: self.table.clone(),
            search: Some(argument("souk.search.v1.Search", &self.search)?),
        };
        let answer = service(target).search_rows(request).await.map_err(refused)?;
        print("souk.table.v1.SearchRowsResponse", &answer.into_inner())
    }
}

/// A message that is given in JSON, or by `-` on standard input.
fn argument<M: prost::Message + Default>(kind: &'static str, given: &str) -> Result<M, CommandError> {
    let json = match given {
        "-" => read(given)?,
        json => json.as_bytes().to_vec(),
    };
    Ok(MessageJson::of(kind)?.read(&json)?)
}

/// A key that is given as a list of its values.
fn key(json: &str) -> Result<Key, CommandError> {
    let values: Vec<serde_json::Value> = serde_json::from_str(json)
        .map_err(|error| format!("{json:?} isn't a JSON array of values, as [\"ann\",1]: {error}"))?;
    let key = serde_json::json!({ "values": values });
    Ok(MessageJson::of("souk.table.v1.Key")?.read(key.to_string().as_bytes())?)
}

fn only(columns: &[String]) -> Option<ReadOptions> {
    let columns = columns.to_vec();
    (!columns.is_empty()).then(|| ReadOptions {
        columns,
        ..ReadOptions::default()
    })
}

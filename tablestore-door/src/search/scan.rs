//! Scans: all that a query finds, in the order of the keys, page after page.
//!
//! Tablestore divides a scan into splits, which several clients read at the same time; here there is one. A session is a text that names
//! the index; what a scan with one sees is kept from its first page on, as long as its pages are asked for.

use std::cell::Cell;
use std::time::Duration;

use bytes::Bytes;
use ring::digest::{SHA256, digest};
use souk_engine::index::limits::MAX_PAGE_SIZE;
use souk_engine::index::{SearchRequest, Sort};
use souk_engine::views::VIEW_KEEP_MAX;
use souk_engine::{Search, SearchIndexDefinition, TableHandle};
use souk_tablestore::messages::{
    ComputeSplitsRequest, ComputeSplitsResponse, ParallelScanRequest, ParallelScanResponse,
};
use souk_tablestore::{Answer, QueryNode, Reason, ServiceError, decode};
use uuid::Uuid;

use super::columns::ReturnedColumns;
use super::fields::{Fields, count};
use super::find::within;
use super::index_name::{NamedIndex, find};
use super::query::query;
use super::token::{self, SearchToken};
use crate::context::{Answered, Context};
use crate::error::{invalid, missing, refused};

/// How many splits a scan has.
const SPLITS: i32 = 1;
/// Most rows of a page that may be asked for. There are fewer in it: [`MAX_PAGE_SIZE`].
const MAX_ROWS: usize = 2_000;
/// How long a session is kept after its last page where nobody says, seconds.
const ALIVE_SECONDS: i32 = 60;

/// Begins a scan.
pub(crate) async fn compute_splits(context: &Context, body: Bytes) -> Answered {
    let request: ComputeSplitsRequest = decode(body).map_err(Reason::from)?;
    let table = request.table_name.ok_or_else(|| missing("The table name"))?;
    let definition = context.table(&table)?.definition();
    let options = request.search_index_splits_options.unwrap_or_default();
    let index = find(&definition, &table, options.index_name.as_deref())?.index;
    // Text: Python's client takes it for that.
    let session = format!("{}{}", session_of(index), Uuid::new_v4().simple());
    Ok(Answer::ok(&ComputeSplitsResponse {
        session_id: Some(session.into()),
        splits_size: Some(SPLITS),
    }))
}

/// A page of a scan.
pub(crate) async fn parallel_scan(context: &Context, body: Bytes) -> Answered {
    let request: ParallelScanRequest = decode(body).map_err(Reason::from)?;
    within(request.timeout_ms, scanned(context, request)).await
}

async fn scanned(context: &Context, request: ParallelScanRequest) -> Answered {
    let table = request.table_name.ok_or_else(|| missing("The table name"))?;
    let handle = context.table(&table)?;
    let definition = handle.definition();
    let NamedIndex { index, note } = find(&definition, &table, request.index_name.as_deref())?;
    let scan = request.scan_query.ok_or_else(|| missing("The query of a scan"))?;
    if scan.max_parallel.unwrap_or(SPLITS) != SPLITS || scan.current_parallel_id() != 0 {
        return Err(invalid(format!(
            "The scan has {SPLITS} split: max_parallel has to be {SPLITS}, and current_parallel_id 0."
        )));
    }
    let keep_view = match &request.session_id {
        None => None,
        Some(session) if session.is_empty() => None,
        Some(session) if session.starts_with(session_of(index).as_bytes()) => Some(alive(scan.alive_time)?),
        Some(_) => return Err(Reason::ScanExpired.into()),
    };
    let token = scan
        .token
        .filter(|token| !token.is_empty())
        .map(SearchToken::read)
        .transpose()?;
    if token.as_ref().is_some_and(|token| token.index != index.name) {
        return Err(token::wrong());
    }
    let after = token.map(|token| token.inner);
    let limit = scan.limit.map_or(Ok(MAX_ROWS), |limit| count(limit, "limit"))?;
    if !(1..=MAX_ROWS).contains(&limit) {
        return Err(invalid(format!(
            "The limit of a scan is {limit}, and has to be 1 to {MAX_ROWS}."
        )));
    }
    let node = QueryNode::decode(scan.query.ok_or_else(|| missing("The query of a scan"))?)?;
    let handle = handle
        .for_search(Some(&index.name), after.as_deref())
        .map_err(refused)?;
    let query = {
        let schema = handle.schema().map_err(refused)?;
        let sort_filters = Cell::new(0);
        query(&node, Fields::new(&schema, index, &note, &sort_filters))?
    };
    let by_key = vec![Sort::PrimaryKey { descending: false }];
    let request_of_index = SearchRequest::new(query)
        .sorted(by_key)
        .page_size(limit.min(MAX_PAGE_SIZE))
        .after(after);
    let columns = ReturnedColumns::read(request.columns_to_get, index)?;
    let search = Search {
        min_sequence: context.min_sequence,
        rows: columns.needs_rows(),
        keep_view,
        ..Search::new(request_of_index)
    };
    let found = handle.search(search).await.map_err(refused)?;
    let mut rows = Vec::with_capacity(found.hits.len());
    for hit in &found.hits {
        let key = TableHandle::key_of(&hit.key).map_err(refused)?;
        rows.push(columns.write(&definition.schema, &key, hit.row.as_ref()));
    }
    let next = Some(found.next_page_token).filter(|inner| !inner.is_empty());
    Ok(Answer::ok(&ParallelScanResponse {
        rows,
        next_token: next.map(|inner| SearchToken::new(&index.name, None, inner).write()),
    }))
}

/// What the sessions of an index begin with.
fn session_of(index: &SearchIndexDefinition) -> String {
    let digest = digest(&SHA256, index.name.as_bytes());
    let digest = digest.as_ref().iter().take(8);
    digest.fold(String::new(), |text, byte| text + &format!("{byte:02x}")) + "-"
}

fn alive(seconds: Option<i32>) -> Result<Duration, ServiceError> {
    let seconds = count(seconds.unwrap_or(ALIVE_SECONDS), "alive_time")?;
    let length = Duration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX));
    Ok(length.min(VIEW_KEEP_MAX))
}

#[cfg(test)]
mod tests {
    use super::alive;

    #[test]
    fn a_session_lives_for_as_long_as_it_is_given_and_five_minutes_at_most() {
        for (given, seconds) in [(None, 60), (Some(7), 7), (Some(300), 300), (Some(100_000), 300)] {
            assert_eq!(
                alive(given).map(|length| length.as_secs()),
                Ok(seconds),
                "{given:?}"
            );
        }
        let refused = alive(Some(-1)).expect_err("refused");
        assert_eq!(refused.message, "alive_time is -1, which is negative.");
    }
}

//! The Search operation: finds rows, and aggregates them.

use std::cell::Cell;
use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use souk_engine::index::limits::{MAX_PAGE_SIZE, MAX_SKIP};
use souk_engine::index::{AggregationResult, InnerHitList, SearchRequest, TotalRequest};
use souk_engine::storage::TableSchema;
use souk_engine::{MAX_PAGE_BYTES, RowHit, Search, TableDefinition, TableHandle};
use souk_tablestore::messages::{self as pb, SearchHit, SearchInnerHit, SearchQuery, SearchResponse};
use souk_tablestore::{
    AggregationNode, Answer, GroupByBody, GroupByNode, QueryNode, Reason, ServiceError, TotalCount, decode,
};
use tokio::time::timeout;
use uuid::Uuid;

use super::columns::ReturnedColumns;
use super::fields::{Fields, client_name, count, name};
use super::figures::{self, TopRows};
use super::highlight::{highlight, marked};
use super::index_name::{self, NamedIndex, find};
use super::query::query;
use super::token::{self, SearchToken};
use crate::context::{Answered, Context};
use crate::error::{invalid, missing, refused, unsupported};

/// Hits of a page that doesn't say.
const HITS: usize = 10;
/// The total of a search that doesn't count.
const UNCOUNTED: i64 = -1;

/// Finds rows.
pub(crate) async fn search(context: &Context, body: Bytes) -> Answered {
    let request: pb::SearchRequest = decode(body).map_err(Reason::from)?;
    within(request.timeout_ms, found(context, request)).await
}

/// Gives work so many milliseconds, if it says how many.
pub(super) async fn within<T>(
    milliseconds: Option<i32>,
    work: impl Future<Output = Result<T, ServiceError>>,
) -> Result<T, ServiceError> {
    let given = milliseconds
        .and_then(|given| u64::try_from(given).ok())
        .filter(|given| *given > 0);
    match given {
        None => work.await,
        Some(given) => {
            let ended = timeout(Duration::from_millis(given), work).await;
            ended.unwrap_or_else(|_| Err(Reason::OperationTimeout.into()))
        }
    }
}

/// What a search asks for, as trees.
struct AskedSearch {
    query: QueryNode,
    figures: Vec<AggregationNode>,
    groups: Vec<GroupByNode>,
}

impl AskedSearch {
    /// Takes the trees out of a search.
    fn take(search: &mut SearchQuery) -> Result<Self, ServiceError> {
        let mut query = match search.query.take() {
            Some(query) => QueryNode::decode(query)?,
            None => return Err(missing("The query of a search")),
        };
        let figures = AggregationNode::decode(search.aggs.take().unwrap_or_default())?;
        let groups = GroupByNode::decode(search.group_bys.take().unwrap_or_default())?;
        if let Some(filter) = search.filter.take().and_then(|filter| filter.query) {
            if !figures.is_empty() || !groups.is_empty() {
                return Err(unsupported(
                    "a filter behind the query together with aggregations, which it wouldn't be for",
                ));
            }
            query = QueryNode::Bool {
                must: vec![query],
                must_not: Vec::new(),
                filter: vec![QueryNode::decode(filter)?],
                should: Vec::new(),
                body: pb::BoolQuery::default(),
            };
        }
        Ok(Self {
            query,
            figures,
            groups,
        })
    }

    /// The tokens of the pages of groups.
    fn tokens(&self) -> impl Iterator<Item = &str> {
        self.groups.iter().filter_map(|node| match &node.body {
            GroupByBody::Composite { body, .. } => {
                body.next_token.as_deref().filter(|token| !token.is_empty())
            }
            _ => None,
        })
    }
}

async fn found(context: &Context, mut request: pb::SearchRequest) -> Answered {
    let table = request
        .table_name
        .take()
        .ok_or_else(|| missing("The table name"))?;
    let handle = context.table(&table)?;
    let definition = handle.definition();
    let mut search: SearchQuery =
        decode(request.search_query.take().unwrap_or_default()).map_err(Reason::from)?;
    let token = search.token.take().filter(|token| !token.is_empty());
    let token = token.map(SearchToken::read).transpose()?;
    let named = find(&definition, &table, request.index_name.as_deref())?;
    let NamedIndex { index, note } = flowing(&definition, &table, named, token.as_ref())?;
    let asked = AskedSearch::take(&mut search)?;
    let sort = match &token {
        None => search.sort.take(),
        Some(token) => sort_of_token(&mut search, token)?,
    };
    let inner = token.map(|token| token.inner);
    let handle = handle
        .for_search(
            Some(&index.name),
            inner.as_deref().into_iter().chain(asked.tokens()),
        )
        .map_err(refused)?;
    let request_of_index = {
        let schema = handle.schema().map_err(refused)?;
        let sort_filters = Cell::new(0);
        let fields = Fields::new(&schema, index, &note, &sort_filters);
        SearchRequest {
            query: query(&asked.query, fields)?,
            sort: match &sort {
                Some(sort) if !sort.sorter.is_empty() => fields.sorts(sort)?,
                _ => fields.default_sorts()?,
            },
            page_size: limit(search.limit)?,
            after: inner,
            skip: offset(search.offset)?,
            total: match TotalCount::of(&search) {
                TotalCount::Off => TotalRequest::None,
                TotalCount::UpTo(most) => TotalRequest::AtLeast(u64::from(most)),
                TotalCount::Exact => TotalRequest::Exact,
            },
            aggregations: fields.aggregations(&asked.figures, &asked.groups)?,
            collapse: search
                .collapse
                .as_ref()
                .map(|collapse| name(collapse.field_name.as_deref()))
                .transpose()?,
            profile: false,
        }
    };
    let columns = ReturnedColumns::read(request.columns_to_get, index)?;
    let has_aggregations = (!asked.figures.is_empty(), !asked.groups.is_empty());
    let search = Search {
        min_sequence: context.min_sequence,
        rows: columns.needs_rows(),
        highlight: search.highlight.as_ref().map(highlight).transpose()?,
        ..Search::new(request_of_index)
    };
    let found = handle.search(search).await.map_err(refused)?;
    let top_rows = top_rows(
        &handle,
        &definition.schema,
        &columns,
        &found.aggregations,
        found.sequence,
    )
    .await?;
    let (aggs, group_bys) = figures::level(&asked.figures, &asked.groups, found.aggregations, &top_rows)?;
    let mut rows = Vec::with_capacity(found.hits.len());
    let mut search_hits = Vec::with_capacity(found.hits.len());
    for hit in found.hits {
        let key = TableHandle::key_of(&hit.key).map_err(refused)?;
        rows.push(columns.write(&definition.schema, &key, hit.row.as_ref()));
        search_hits.push(told(hit));
    }
    let next = Some(found.next_page_token).filter(|inner| !inner.is_empty());
    Ok(Answer::ok(&SearchResponse {
        total_hits: Some(
            found
                .total
                .map_or(UNCOUNTED, |total| i64::try_from(total.value).unwrap_or(i64::MAX)),
        ),
        rows,
        is_all_succeeded: Some(true),
        search_hits,
        next_token: next.map(|inner| SearchToken::new(&index.name, sort.as_ref(), inner).write()),
        aggs: has_aggregations.0.then(|| aggs.encode_to_vec().into()),
        group_bys: has_aggregations.1.then(|| group_bys.encode_to_vec().into()),
        consumed: None,
        reserved_consumed: None,
    }))
}

/// The index that a search goes to: the one that it names, or one of those among which the searches that name it are shared out. A page
/// comes from the index of the page before.
fn flowing<'a>(
    definition: &'a TableDefinition,
    table: &str,
    mut named: NamedIndex<'a>,
    token: Option<&SearchToken>,
) -> Result<NamedIndex<'a>, ServiceError> {
    let flows = std::mem::take(&mut named.note.flows);
    let mut sharing: Vec<(NamedIndex<'a>, u32)> = Vec::new();
    if !flows.is_empty() {
        // To one that was deleted since, nothing flows.
        for other in index_name::named_indexes(definition, table) {
            let mut flows = flows.iter();
            if let Some(flow) = flows.find(|flow| flow.index_name() == other.note.name) {
                sharing.push((other, u32::try_from(flow.weight()).unwrap_or_default()));
            }
        }
    }
    if let Some(token) = token {
        let mut known = sharing.into_iter().map(|(index, _)| index).chain([named]);
        return known
            .find(|known| known.index.name == token.index)
            .ok_or_else(token::wrong);
    }
    let all: u32 = sharing.iter().map(|(_, weight)| *weight).sum();
    if all == 0 {
        return Ok(named);
    }
    let mut drawn = u32::try_from(Uuid::new_v4().as_u128() % u128::from(all)).unwrap_or_default();
    for (index, weight) in sharing {
        if drawn < weight {
            return Ok(index);
        }
        drawn -= weight;
    }
    Ok(named)
}

/// The sort that a token continues in. Refuses an offset, or another sort, that is given with the token.
fn sort_of_token(search: &mut SearchQuery, token: &SearchToken) -> Result<Option<pb::Sort>, ServiceError> {
    if search.offset() != 0 {
        return Err(invalid("Offset and token cannot be given at the same time."));
    }
    let sort = token.sort()?;
    let given = search.sort.take().filter(|given| !given.sorter.is_empty());
    match given {
        Some(given) if Some(&given) != sort.as_ref() => Err(invalid(
            "Sort and token cannot be given at the same time: the token has the order.",
        )),
        _ => Ok(sort),
    }
}

fn limit(given: Option<i32>) -> Result<usize, ServiceError> {
    let limit = given.map_or(Ok(HITS), |limit| count(limit, "limit"))?;
    match limit > MAX_PAGE_SIZE {
        true => Err(invalid(format!(
            "limit is {limit}, which exceeds {MAX_PAGE_SIZE}."
        ))),
        false => Ok(limit),
    }
}

fn offset(given: Option<i32>) -> Result<usize, ServiceError> {
    let offset = given.map_or(Ok(0), |offset| count(offset, "offset"))?;
    match offset > MAX_SKIP {
        true => Err(invalid(format!(
            "offset is {offset}, which exceeds {MAX_SKIP}: use the tokens of pages."
        ))),
        false => Ok(offset),
    }
}

/// The rows of top rows aggregations, as they are by now, or their keys as the index has them.
async fn top_rows(
    handle: &TableHandle,
    schema: &TableSchema,
    columns: &ReturnedColumns,
    aggregations: &[(String, AggregationResult)],
    sequence: i64,
) -> Result<TopRows, ServiceError> {
    let mut all = Vec::new();
    figures::top_keys(aggregations, &mut all);
    let mut keys = all.clone();
    keys.sort_unstable();
    keys.dedup();
    if keys.is_empty() {
        return Ok(TopRows::new());
    }
    let mut shown = TopRows::new();
    if columns.needs_rows() {
        let rows = handle.rows(&keys, sequence.unsigned_abs()).await;
        for (key, row) in keys.into_iter().zip(rows.map_err(refused)?) {
            if let Some(row) = row {
                shown.insert(key.to_vec(), columns.write(schema, &row.key, Some(&row)));
            }
        }
    } else {
        for key in keys {
            let of_row = TableHandle::key_of(key).map_err(refused)?;
            shown.insert(key.to_vec(), columns.write(schema, &of_row, None));
        }
    }
    // A row is shown by each group that it is one of the first of.
    let bytes: usize = all.iter().filter_map(|key| shown.get(*key)).map(Bytes::len).sum();
    if bytes > MAX_PAGE_BYTES {
        return Err(invalid(format!(
            "The top rows of all groups have {bytes} bytes, which exceeds {MAX_PAGE_BYTES}."
        )));
    }
    Ok(shown)
}

fn told(hit: RowHit) -> SearchHit {
    let inner = hit
        .inner_hits
        .into_iter()
        .map(|(path, list)| inner_hits(client_name(&path), &list));
    SearchHit {
        score: hit.score,
        highlight_result: Some(hit.highlights).filter(|marks| !marks.is_empty()).map(marked),
        search_inner_hits: inner.collect(),
        nested_doc_offset: None,
    }
}

fn inner_hits(path: &str, list: &InnerHitList) -> SearchInnerHit {
    let hits = list.hits.iter().map(|hit| SearchHit {
        score: Some(f64::from(hit.score)),
        nested_doc_offset: Some(i32::try_from(hit.offset).unwrap_or(i32::MAX)),
        ..SearchHit::default()
    });
    SearchInnerHit {
        path: Some(path.to_owned()),
        search_hits: hits.collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn work_ends_with_the_time_that_it_is_given() {
        for (given, expected) in [
            (Some(1), Err("OTSTimeout")),
            (Some(60_000), Ok(7)),
            (None, Ok(7)),
            (Some(0), Ok(7)),
        ] {
            let work = async {
                tokio::time::sleep(Duration::from_secs(10)).await;
                Ok(7)
            };
            let done = within(given, work).await;
            assert_eq!(done.map_err(|error| error.code.as_str()), expected, "{given:?}");
        }
        let never = within::<()>(Some(10_000), pending()).await;
        assert_eq!(never.expect_err("refused").message, "Operation timeout.");
    }

    #[test]
    fn a_page_has_so_many_hits_behind_so_many_others() {
        assert_eq!(limit(Some(1_000)), Ok(1_000));
        assert_eq!(offset(Some(100_000)), Ok(100_000));
        for (refused, says) in [
            (limit(Some(1_001)), "limit is 1001, which exceeds 1000."),
            (
                offset(Some(100_001)),
                "offset is 100001, which exceeds 100000: use the tokens of pages.",
            ),
        ] {
            assert_eq!(refused.map_err(|error| error.message), Err(says.to_owned()));
        }
    }
}

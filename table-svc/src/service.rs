//! The RPCs of `souk.table.v1.TableService`.

mod one_write;

use std::collections::BTreeSet;
use std::convert::{Infallible, identity};
use std::future::ready;
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use souk_api::rows::{check_creatable, check_whole, drop_table, refused, tables_page};
use souk_api::wire::{
    Answers, LIST_SIZE_DEFAULT, LIST_SIZE_MAX, answers, broken, checked, endless_answers, page_size,
    received, request_id, settled, signed, time, time_to_wire, unsigned, valid,
};
use souk_api::{ExportRequest, Result, Rows};
use souk_chassis::status::{self, FieldPath, StatusBuilder, Violations};
use souk_engine::storage::limits::MAX_TRANSACTION_LIFE;
use souk_engine::storage::{CapacityUnits, RangeRequest, Row};
use souk_engine::{Engine, EngineError, ExportBlock, ReadView, RowsPage, TableDefinition, trace};
use souk_proto::table::v1 as pb;
use souk_proto::table::v1::row_write::Operation;
use souk_proto::table::v1::table_service_server::TableService;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tonic::{Request, Response, Status};

use self::one_write::OneWrite;
use crate::consumer_group::checkpoint;
use crate::read::{self, PAGE_ROWS_MAX};
use crate::rows::{RowsToWire, consumed, split};
use crate::value::{key, key_value};
use crate::{table, write};

/// Rows of a message of a stream, where the request doesn't say.
const STREAM_ROWS: usize = 500;

/// The RPCs on an engine's tables. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct TableApi {
    engine: Engine,
    /// The names of the tables of other services.
    taken: Arc<BTreeSet<String>>,
    draining: CancellationToken,
}

impl TableApi {
    pub(crate) fn new(engine: Engine, taken: BTreeSet<String>, draining: CancellationToken) -> Self {
        Self {
            engine,
            taken: Arc::new(taken),
            draining,
        }
    }

    fn rows(&self, table: &str) -> Result<Rows> {
        Rows::open(&self.engine, table)
    }

    /// Refuses the names of tables of other services: indexes are found by them whatever service has them.
    fn check_name(&self, name: &str) -> Result<(), Status> {
        match self.taken.iter().any(|taken| taken.eq_ignore_ascii_case(name)) {
            true => Err(StatusBuilder::failed_precondition(
                "TABLE_OF_SERVICE",
                format!("{name} is the name of a table of another service; choose another name"),
            )
            .metadata("table", name)
            .build()),
            false => Ok(()),
        }
    }
}

#[tonic::async_trait]
impl TableService for TableApi {
    async fn create_table(
        &self,
        request: Request<pb::CreateTableRequest>,
    ) -> Result<Response<pb::CreateTableResponse>, Status> {
        let (request, mut violations) = received(request);
        let given = request.table.unwrap_or_default();
        let definition = table::definition(&given, &FieldPath::root("table"), &mut violations);
        let definition = checked(definition, violations)?;
        check_creatable(&self.engine, definition.name())?;
        self.check_name(definition.name())?;
        let created = self
            .engine
            .create_table(definition)
            .await
            .map_err(table::refused)?;
        Ok(Response::new(pb::CreateTableResponse {
            table: Some(table::to_wire(&created)),
        }))
    }

    async fn get_table(
        &self,
        request: Request<pb::GetTableRequest>,
    ) -> Result<Response<pb::GetTableResponse>, Status> {
        let rows = self.rows(&valid(request)?.table)?;
        Ok(Response::new(pb::GetTableResponse {
            table: Some(table::to_wire(&rows)),
        }))
    }

    async fn list_tables(
        &self,
        request: Request<pb::ListTablesRequest>,
    ) -> Result<Response<pb::ListTablesResponse>, Status> {
        let request = valid(request)?;
        let size = page_size(request.page_size, LIST_SIZE_DEFAULT, LIST_SIZE_MAX);
        let page = tables_page(&self.engine, size, &request.page_token)?;
        Ok(Response::new(pb::ListTablesResponse {
            tables: page
                .tables
                .iter()
                .map(|definition| table::summary(definition))
                .collect(),
            next_page_token: page.next_page_token,
        }))
    }

    async fn update_table(
        &self,
        request: Request<pb::UpdateTableRequest>,
    ) -> Result<Response<pb::UpdateTableResponse>, Status> {
        let (request, mut violations) = received(request);
        let mask = table::mask(&request, &mut violations);
        if request.table.is_none() {
            violations.required("table");
        }
        settled(violations)?;
        let given = request.table.unwrap_or_default();
        let changed = table::changed_parts(&mask, &given);
        settled(broken(&changed, &FieldPath::root("table")))?;
        let rows = self.rows(&given.name)?;
        check_whole(&self.engine, &given.name)?;
        let name = given.name.clone();
        let skip_backfill = table::skip_backfill(&given);
        let change = move |definition: &mut TableDefinition| {
            table::set_changeable(&mask, &given, definition);
            Ok::<_, Infallible>(())
        };
        let changed = self.engine.change_table(&name, skip_backfill, change).await;
        let Ok(()) = changed.map_err(table::refused)?;
        Ok(Response::new(pb::UpdateTableResponse {
            table: Some(table::to_wire(&rows)),
        }))
    }

    async fn delete_table(
        &self,
        request: Request<pb::DeleteTableRequest>,
    ) -> Result<Response<pb::DeleteTableResponse>, Status> {
        let request = valid(request)?;
        drop_table(&self.engine, &request.table).await?;
        Ok(Response::new(pb::DeleteTableResponse {}))
    }

    async fn put_row(
        &self,
        request: Request<pb::PutRowRequest>,
    ) -> Result<Response<pb::PutRowResponse>, Status> {
        let (request, violations) = received(request);
        let one = OneWrite {
            request_id: request_id(&request.request_id, &request),
            table: request.table,
            write: pb::RowWrite {
                operation: Some(Operation::Put(pb::RowPut {
                    key: request.key,
                    columns: request.columns,
                    cells: request.cells,
                })),
                condition: request.condition,
                returning: request.returning,
            },
            transaction_id: request.transaction_id,
        };
        let written = self.write_one(one, violations).await?;
        Ok(Response::new(pb::PutRowResponse {
            row: written.row,
            sequence: written.sequence,
            consumed: written.consumed,
        }))
    }

    async fn update_row(
        &self,
        request: Request<pb::UpdateRowRequest>,
    ) -> Result<Response<pb::UpdateRowResponse>, Status> {
        let (request, violations) = received(request);
        let one = OneWrite {
            request_id: request_id(&request.request_id, &request),
            table: request.table,
            write: pb::RowWrite {
                operation: Some(Operation::Update(pb::RowUpdate {
                    key: request.key,
                    put: request.put,
                    put_cells: request.put_cells,
                    increment: request.increment,
                    delete: request.delete,
                    delete_versions: request.delete_versions,
                })),
                condition: request.condition,
                returning: request.returning,
            },
            transaction_id: request.transaction_id,
        };
        let written = self.write_one(one, violations).await?;
        Ok(Response::new(pb::UpdateRowResponse {
            row: written.row,
            sequence: written.sequence,
            consumed: written.consumed,
        }))
    }

    async fn delete_row(
        &self,
        request: Request<pb::DeleteRowRequest>,
    ) -> Result<Response<pb::DeleteRowResponse>, Status> {
        let (request, violations) = received(request);
        let one = OneWrite {
            request_id: request_id(&request.request_id, &request),
            table: request.table,
            write: pb::RowWrite {
                operation: Some(Operation::Delete(pb::RowDelete { key: request.key })),
                condition: request.condition,
                returning: None,
            },
            transaction_id: request.transaction_id,
        };
        let written = self.write_one(one, violations).await?;
        Ok(Response::new(pb::DeleteRowResponse {
            sequence: written.sequence,
            consumed: written.consumed,
        }))
    }

    async fn get_row(
        &self,
        request: Request<pb::GetRowRequest>,
    ) -> Result<Response<pb::GetRowResponse>, Status> {
        let (request, mut violations) = received(request);
        let key = key(&request.key, &FieldPath::root("key"), &mut violations);
        let options = read::options(request.read.as_ref(), &mut violations);
        let view = read::read_view(&request.transaction_id, request.min_sequence, &mut violations);
        let ((key, options), view) = checked(key.zip(options).zip(view), violations)?;
        let rows = self.rows(&request.table)?;
        let found = rows.read_row(&key, &options, view).await.map_err(refused)?;
        let row = found.value.row.ok_or_else(|| row_not_found(rows.name()))?;
        let to_wire = RowsToWire::new(rows.definition(), read::tells_versions(request.read.as_ref()));
        Ok(Response::new(pb::GetRowResponse {
            row: Some(to_wire.row(&row)),
            next_column: found.value.next_column.unwrap_or_default(),
            sequence: found.sequence,
            consumed: Some(consumed(found.value.consumed)),
        }))
    }

    async fn batch_get_rows(
        &self,
        request: Request<pb::BatchGetRowsRequest>,
    ) -> Result<Response<pb::BatchGetRowsResponse>, Status> {
        let (request, mut violations) = received(request);
        let path = FieldPath::root("keys");
        let keys = request.keys.iter().enumerate();
        let keys: Vec<_> = keys
            .map(|(nth, given)| key(&given.values, &path.index(nth).field("values"), &mut violations))
            .collect();
        let keys: Option<Vec<_>> = keys.into_iter().collect();
        let options = read::options(request.read.as_ref(), &mut violations);
        let (keys, options) = checked(keys.zip(options), violations)?;
        let rows = self.rows(&request.table)?;
        let found = rows
            .read_rows(keys, &options, unsigned(request.min_sequence))
            .await;
        let found = found.map_err(refused)?;
        let to_wire = RowsToWire::new(rows.definition(), read::tells_versions(request.read.as_ref()));
        let mut cost = CapacityUnits::default();
        let results = found.value.into_iter().map(|read| match read {
            Ok(read) => {
                cost += read.consumed;
                pb::ReadResult {
                    row: read.row.map(|row| to_wire.row(&row)),
                    next_column: read.next_column.unwrap_or_default(),
                    error: None,
                }
            }
            Err(error) => pb::ReadResult {
                error: Some(row_error(error.into())),
                ..pb::ReadResult::default()
            },
        });
        let results = results.collect();
        Ok(Response::new(pb::BatchGetRowsResponse {
            results,
            sequence: found.sequence,
            consumed: Some(consumed(cost)),
        }))
    }

    async fn batch_write_rows(
        &self,
        request: Request<pb::BatchWriteRowsRequest>,
    ) -> Result<Response<pb::BatchWriteRowsResponse>, Status> {
        let (request, mut violations) = received(request);
        let request_id = request_id(&request.request_id, &request);
        settle_name(&request.table, &violations)?;
        let rows = self.rows(&request.table)?;
        let definition = rows.definition();
        if request_id.is_some() && !request.atomic {
            let message = "makes a batch repeatable that happens as a whole; set atomic";
            violations.push("request_id", "CONFLICTING_FIELDS", message);
        }
        if request_id.is_some() && !request.transaction_id.is_empty() {
            not_in_transaction(&mut violations);
        }
        let transaction = read::transaction(&request.transaction_id, &mut violations);
        let checkpoint = match &request.checkpoint {
            Some(given) => {
                if !request.atomic || !request.transaction_id.is_empty() {
                    let message = "is committed with a batch that happens as a whole, outside of transactions; set atomic, and leave \
                                   transaction_id out";
                    violations.push("checkpoint", "CONFLICTING_FIELDS", message);
                }
                checkpoint(given).map(Some)
            }
            None => Some(None),
        };
        let given = request.writes.iter();
        let asked: Vec<_> = given
            .map(|given| write::asked(given.returning.as_ref()))
            .collect();
        let writes = write::batch(request.writes, &definition.schema, &mut violations);
        let ((writes, transaction), checkpoint) =
            checked(writes.zip(transaction).zip(checkpoint), violations)?;
        let written = match transaction {
            Some(id) => rows.write_in(id, writes, !request.atomic).await,
            None if request.atomic => {
                let written = rows.write_with(writes, request_id, checkpoint.as_ref()).await;
                written.map(|written| written.value.into_iter().map(Ok).collect())
            }
            None => rows.write_each(writes).await,
        };
        let to_wire = RowsToWire::new(definition, false);
        let mut cost = CapacityUnits::default();
        let mut sequence = 0;
        let results =
            written
                .map_err(refused)?
                .into_iter()
                .zip(asked)
                .map(|(written, asked)| match written {
                    Ok(written) => {
                        cost += written.consumed;
                        let at = written.sequence.map_or(0, signed);
                        sequence = sequence.max(at);
                        pb::WriteResult {
                            row: to_wire.written(&written, asked),
                            sequence: at,
                            error: None,
                        }
                    }
                    Err(error) => pb::WriteResult {
                        error: Some(row_error(error)),
                        ..pb::WriteResult::default()
                    },
                });
        let results = results.collect();
        Ok(Response::new(pb::BatchWriteRowsResponse {
            results,
            sequence,
            consumed: Some(consumed(cost)),
        }))
    }

    async fn range_rows(
        &self,
        request: Request<pb::RangeRowsRequest>,
    ) -> Result<Response<pb::RangeRowsResponse>, Status> {
        let (request, mut violations) = received(request);
        let view = read::read_view(&request.transaction_id, request.min_sequence, &mut violations);
        let (range, read) = (request.range.as_ref(), request.read.as_ref());
        let range = read::range(range, request.descending, read, &mut violations);
        let (range, view) = checked(range.zip(view), violations)?;
        let range = range.limit(page_size(request.page_size, PAGE_ROWS_MAX, PAGE_ROWS_MAX));
        let rows = self.rows(&request.table)?;
        let page = rows.range_page(&range, &request.page_token, view).await;
        let page = page.map_err(refused)?;
        let to_wire = RowsToWire::new(rows.definition(), read::tells_versions(request.read.as_ref()));
        Ok(Response::new(pb::RangeRowsResponse {
            rows: to_wire.rows(&page.items),
            next_page_token: page.next_page_token,
            sequence: page.sequence,
            consumed: Some(consumed(page.consumed)),
        }))
    }

    type StreamRowsStream = Answers<pb::StreamRowsResponse>;

    async fn stream_rows(
        &self,
        request: Request<pb::StreamRowsRequest>,
    ) -> Result<Response<Self::StreamRowsStream>, Status> {
        let (request, mut violations) = received(request);
        let (range, read) = (request.range.as_ref(), request.read.as_ref());
        let range = read::range(range, request.descending, read, &mut violations);
        let range = checked(range, violations)?;
        let range = range.limit(page_size(request.page_size, STREAM_ROWS, PAGE_ROWS_MAX));
        let rows = self.rows(&request.table)?;
        let to_wire = RowsToWire::new(rows.definition(), read::tells_versions(request.read.as_ref()));
        let view = ReadView::Sequence(unsigned(request.min_sequence));
        // The first page is read before anything is answered: what is wrong is the call's error.
        let first = rows.range_page(&range, &request.resume_token, view).await;
        let first = first.map_err(refused)?;
        let token = page_behind(&first);
        let rows = rows.without_deadline();
        let others = stream::try_unfold(token, move |token| {
            let (rows, range) = (rows.clone(), range.clone());
            async move {
                let Some(token) = token else {
                    return Ok(None);
                };
                let page = next_page(rows, range, token).await?;
                let next = page_behind(&page);
                Ok::<_, EngineError>(Some((page, next)))
            }
        });
        let pages = stream::once(ready(Ok(first))).chain(others);
        let answer = move |page: RowsPage<Row>| pb::StreamRowsResponse {
            rows: to_wire.rows(&page.items),
            resume_token: page.next_page_token,
            sequence: page.sequence,
            consumed: Some(consumed(page.consumed)),
        };
        Ok(Response::new(answers(pages, answer)))
    }

    async fn range_index(
        &self,
        request: Request<pb::RangeIndexRequest>,
    ) -> Result<Response<pb::RangeIndexResponse>, Status> {
        let (request, mut violations) = received(request);
        let range = read::index_range(&request, &mut violations);
        let range = checked(range, violations)?;
        let range = range.limit(page_size(request.page_size, PAGE_ROWS_MAX, PAGE_ROWS_MAX));
        let rows = self.rows(&request.table)?;
        let min_sequence = unsigned(request.min_sequence);
        let page = rows.index_page(&range, &request.page_token, min_sequence).await;
        let (page, columns) = page.map_err(refused)?;
        let to_wire = RowsToWire::new(rows.definition(), false);
        Ok(Response::new(pb::RangeIndexResponse {
            entries: page
                .items
                .into_iter()
                .map(|entry| to_wire.entry(entry, &columns))
                .collect(),
            next_page_token: page.next_page_token,
            sequence: page.sequence,
            consumed: Some(consumed(page.consumed)),
        }))
    }

    async fn search_rows(
        &self,
        request: Request<pb::SearchRowsRequest>,
    ) -> Result<Response<pb::SearchRowsResponse>, Status> {
        let request = request.into_inner();
        let name = pb::GetTableRequest { table: request.table };
        settled(broken(&name, &FieldPath::message()))?;
        let rows = self.rows(&name.table)?;
        let found = rows.search(request.search, "search").await?;
        let to_wire = RowsToWire::new(rows.definition(), false);
        Ok(Response::new(pb::SearchRowsResponse {
            hits: found.hits.into_iter().map(|hit| to_wire.hit(hit)).collect(),
            next_page_token: found.next_page_token,
            total: found.total,
            aggregations: found.aggregations,
            sequence: found.sequence,
            profile: found.profile,
        }))
    }

    type ExportRowsStream = Answers<pb::ExportRowsResponse>;

    async fn export_rows(
        &self,
        request: Request<pb::ExportRowsRequest>,
    ) -> Result<Response<Self::ExportRowsStream>, Status> {
        let request = valid(request)?;
        let rows = self.rows(&request.table)?;
        let blocks = rows
            .export(ExportRequest {
                slice_count: request.slice_count,
                slice: request.slice,
                snapshot_token: request.snapshot_token,
                resume_token: request.resume_token,
                min_sequence: request.min_sequence,
            })
            .await?;
        let to_wire = RowsToWire::new(rows.definition(), false);
        let answer = move |block: ExportBlock<Row>| pb::ExportRowsResponse {
            rows: to_wire.rows(&block.items),
            resume_token: block.resume_token,
            sequence: block.sequence,
            snapshot_token: block.snapshot_token,
        };
        Ok(Response::new(answers(blocks, answer)))
    }

    type WatchRowsStream = Answers<pb::WatchRowsResponse>;

    async fn watch_rows(
        &self,
        request: Request<pb::WatchRowsRequest>,
    ) -> Result<Response<Self::WatchRowsStream>, Status> {
        let (request, mut violations) = received(request);
        let since = match (request.after_sequence, &request.since) {
            (None, Some(since)) => Some(time(since)),
            _ => None,
        };
        if since == Some(None) {
            violations.push("since", "OUT_OF_RANGE", "must lie in 1677-09-21 to 2262-04-11");
        }
        settled(violations)?;
        let rows = self.rows(&request.table)?;
        let after = match since.flatten() {
            Some(since) => Some(rows.sequence_at(since).await.map_err(refused)?),
            None => request.after_sequence.map(unsigned),
        };
        let events = rows.watch(after).await.map_err(refused)?;
        let to_wire = RowsToWire::new(rows.definition(), false);
        let messages = events.flat_map(move |event| {
            let messages = event.map(|event| to_wire.event(&event));
            stream::iter(match messages {
                Ok(messages) => messages.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            })
        });
        let draining = self.draining.clone();
        Ok(Response::new(endless_answers(messages, draining, identity)))
    }

    async fn get_split_points(
        &self,
        request: Request<pb::GetSplitPointsRequest>,
    ) -> Result<Response<pb::GetSplitPointsResponse>, Status> {
        let request = valid(request)?;
        let bytes = usize::try_from(request.bytes).unwrap_or(usize::MAX);
        let splits = self.rows(&request.table)?.splits(bytes).await.map_err(refused)?;
        Ok(Response::new(pb::GetSplitPointsResponse {
            splits: splits.splits.iter().map(split).collect(),
            consumed: Some(consumed(splits.consumed)),
        }))
    }

    async fn begin_transaction(
        &self,
        request: Request<pb::BeginTransactionRequest>,
    ) -> Result<Response<pb::BeginTransactionResponse>, Status> {
        let (request, mut violations) = received(request);
        let given = request.partition.as_ref();
        let partition =
            given.and_then(|given| key_value(given, &FieldPath::root("partition"), &mut violations));
        let partition = checked(partition, violations)?;
        let id = self
            .rows(&request.table)?
            .begin(partition)
            .await
            .map_err(refused)?;
        let life = i64::try_from(MAX_TRANSACTION_LIFE.as_nanos()).unwrap_or(i64::MAX);
        Ok(Response::new(pb::BeginTransactionResponse {
            transaction_id: id.to_string(),
            expire_time: Some(time_to_wire(self.engine.now().saturating_add(life))),
        }))
    }

    async fn commit_transaction(
        &self,
        request: Request<pb::CommitTransactionRequest>,
    ) -> Result<Response<pb::CommitTransactionResponse>, Status> {
        let (request, mut violations) = received(request);
        let id = read::transaction(&request.transaction_id, &mut violations);
        let checkpoint = match &request.checkpoint {
            Some(given) => checkpoint(given).map(Some),
            None => Some(None),
        };
        let (id, checkpoint) = checked(id.flatten().zip(checkpoint), violations)?;
        let rows = self.rows(&request.table)?;
        let committed = rows.commit_transaction_with(id, checkpoint.as_ref()).await;
        let committed = committed.map_err(refused)?;
        Ok(Response::new(pb::CommitTransactionResponse {
            sequence: signed(committed.sequence),
            consumed: Some(consumed(committed.consumed)),
        }))
    }

    async fn abort_transaction(
        &self,
        request: Request<pb::AbortTransactionRequest>,
    ) -> Result<Response<pb::AbortTransactionResponse>, Status> {
        let (request, mut violations) = received(request);
        let id = read::transaction(&request.transaction_id, &mut violations);
        let id = checked(id.flatten(), violations)?;
        self.rows(&request.table)?
            .abort_transaction(id)
            .map_err(refused)?;
        Ok(Response::new(pb::AbortTransactionResponse {}))
    }
}

/// The token of the page behind this one.
fn page_behind(page: &RowsPage<Row>) -> Option<String> {
    Some(page.next_page_token.clone()).filter(|token| !token.is_empty())
}

/// The next page of a stream, in a task of its own: a stream is polled only while its client takes something.
async fn next_page(rows: Rows, range: RangeRequest, token: String) -> Result<RowsPage<Row>, EngineError> {
    let reading = async move { rows.range_page(&range, &token, ReadView::Sequence(0)).await };
    let read = AbortOnDropHandle::new(tokio::spawn(trace::brought(reading))).await;
    read.map_err(|_| EngineError::Defect("reading for a stream panicked"))?
}

/// Refuses a request about no table: what is wrong with the rest depends on it.
fn settle_name(table: &str, violations: &Violations) -> Result<()> {
    if violations.is_empty() {
        return Ok(());
    }
    let name = pb::GetTableRequest {
        table: table.to_owned(),
    };
    settled(broken(&name, &FieldPath::message()))
}

fn not_in_transaction(violations: &mut Violations) {
    let message = "is of no use in a transaction, whose commit tells; leave it out";
    violations.push("request_id", "CONFLICTING_FIELDS", message);
}

fn row_not_found(table: &str) -> Status {
    StatusBuilder::not_found(
        "ROW_NOT_FOUND",
        format!(
            "{table} has no row with this key that is to be read; check the key, the columns and the filter"
        ),
    )
    .metadata("table", table)
    .build()
}

/// Why one row of a batch wasn't read or written.
fn row_error(error: EngineError) -> pb::RowError {
    let status = Status::from(refused(error));
    pb::RowError {
        code: status.code().into(),
        reason: status::reason(&status).unwrap_or_default(),
        message: status.message().to_owned(),
    }
}

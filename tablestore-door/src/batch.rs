//! Reads and writes of several rows in one request, of which each has an answer of its own.

use std::collections::BTreeSet;

use bytes::Bytes;
use souk_engine::storage::{
    CapacityUnits, Error as StoreError, Existence, PrimaryKey, ReadOptions, TableSchema,
};
use souk_engine::{EngineError, MAX_PAGE_BYTES, ReadView, TableHandle, TableWrite};
use souk_tablestore::messages::{self, OperationType};
use souk_tablestore::{Answer, ErrorCode, KeyColumn, KeyUse, Reason, ServiceError, decode};
use tokio::task::yield_now;

use crate::context::{Answered, Context};
use crate::entries::{TableOrIndex, written_table};
use crate::error::{invalid, refused, store_error};
use crate::options::{AskedRead, TransferRules, resumed};
use crate::read::{ReadRow, consumed, entry, row};
use crate::transaction;
use crate::value::{one_row, primary_key};
use crate::write::{AskedWrite, returned};

/// Most rows of a batch of reads.
pub(crate) const GET_ROWS_MAX: usize = 100;
/// Most rows of a batch of writes.
pub(crate) const WRITE_ROWS_MAX: usize = 200;

/// Reads several rows of several tables.
pub(crate) async fn get(context: &Context, body: Bytes) -> Answered {
    let request: messages::BatchGetRowRequest = decode(body).map_err(Reason::from)?;
    check_tables(
        request
            .tables
            .iter()
            .map(|table| (table.table_name.as_str(), table.primary_key.len())),
        GET_ROWS_MAX,
    )
    .map_err(|problem| problem.unwrap_or(Reason::NoRowToGet))?;
    let (mut read, mut rules) = (Vec::with_capacity(request.tables.len()), TransferRules::default());
    for table in request.tables {
        read.push(AskedTable::read(table, &mut rules)?);
        // Its patterns took time.
        yield_now().await;
    }
    let (mut tables, mut filled) = (Vec::with_capacity(read.len()), Filled::default());
    for table in read {
        let table_name = table.name.clone();
        let rows = table.rows(context, &mut filled).await;
        tables.push(messages::TableInBatchGetRowResponse {
            table_name,
            rows: rows.into_iter().map(read_told).collect(),
        });
    }
    Ok(Answer::ok(&messages::BatchGetRowResponse { tables }))
}

/// Refuses what no batch is: `None` says that there is no row.
fn check_tables<'a>(
    tables: impl Iterator<Item = (&'a str, usize)>,
    rows_max: usize,
) -> Result<(), Option<Reason>> {
    let (mut names, mut rows) = (BTreeSet::new(), 0);
    for (name, count) in tables {
        if !names.insert(name) {
            return Err(Some(Reason::DuplicatedTable { name: name.into() }));
        }
        if count == 0 {
            return Err(Some(Reason::NoOperation { table: name.into() }));
        }
        rows += count;
    }
    match rows {
        0 => Err(None),
        rows if rows > rows_max => Err(Some(Reason::TooManyRows { limit: rows_max })),
        _ => Ok(()),
    }
}

/// What is read of one table.
struct AskedTable {
    name: String,
    keys: Vec<Vec<KeyColumn>>,
    /// Where reading of each row goes on, if it does.
    tokens: Vec<Bytes>,
    options: ReadOptions,
}

impl AskedTable {
    fn read(
        table: messages::TableInBatchGetRowRequest,
        rules: &mut TransferRules,
    ) -> Result<Self, ServiceError> {
        let keys = table.primary_key.into_iter().map(|key| KeyUse::Get.decode(key));
        let keys: Vec<_> = keys.collect::<Result<_, _>>()?;
        if keys.iter().enumerate().any(|(at, key)| keys[..at].contains(key)) {
            return Err(Reason::DuplicateRowsGet.into());
        }
        let asked = AskedRead {
            columns: table.columns_to_get,
            time: table.time_range,
            max_versions: table.max_versions,
            filter: table.filter,
            start_column: table.start_column,
            end_column: table.end_column,
        };
        Ok(Self {
            name: table.table_name,
            keys,
            tokens: table.token,
            options: asked.options(rules)?,
        })
    }

    /// What was read of each row, in the order of the keys.
    async fn rows(self, context: &Context, filled: &mut Filled) -> Vec<Result<ReadRow, ServiceError>> {
        let count = self.keys.len();
        match self.read_all(context, filled).await {
            Ok(rows) => rows,
            Err(error) => (0..count).map(|_| Err(error.clone())).collect(),
        }
    }

    async fn read_all(
        self,
        context: &Context,
        filled: &mut Filled,
    ) -> Result<Vec<Result<ReadRow, ServiceError>>, ServiceError> {
        let named = TableOrIndex::find(context, &self.name)?;
        if let TableOrIndex::Table(table) = &named
            && self.tokens.iter().all(Bytes::is_empty)
        {
            filled.check()?;
            let read = whole_batch(context, table, &self.keys, &self.options).await?;
            let rows = read.into_iter().map(|read| filled.take(read?));
            return Ok(rows.collect());
        }
        let mut rows = Vec::with_capacity(self.keys.len());
        for (at, key) in self.keys.iter().enumerate() {
            let read = async {
                filled.check()?;
                let read = match &named {
                    TableOrIndex::Table(table) => {
                        let token = self.tokens.get(at).filter(|token| !token.is_empty());
                        let options = match token {
                            Some(token) => resumed(self.options.clone(), token)?,
                            None => self.options.clone(),
                        };
                        row(table, key, &options, ReadView::Sequence(context.min_sequence)).await?
                    }
                    TableOrIndex::Index(index) => entry(index, key, &self.options).await?,
                };
                filled.take(read)
            };
            rows.push(read.await);
        }
        Ok(rows)
    }
}

/// Reads rows from one snapshot.
async fn whole_batch(
    context: &Context,
    table: &TableHandle,
    keys: &[Vec<KeyColumn>],
    options: &ReadOptions,
) -> Result<Vec<Result<ReadRow, ServiceError>>, ServiceError> {
    let definition = table.definition();
    let schema = &definition.schema;
    let keys: Vec<Result<PrimaryKey, ServiceError>> =
        keys.iter().map(|key| primary_key(schema, key)).collect();
    let good: Vec<PrimaryKey> = keys.iter().filter_map(|key| key.as_ref().ok().cloned()).collect();
    let mut found = Vec::new().into_iter();
    if !good.is_empty() {
        let read = table.read_rows(good, options, context.min_sequence).await;
        found = read.map_err(refused)?.value.into_iter();
    }
    let rows = keys.into_iter().map(|key| {
        key?;
        let read = found.next().ok_or(Reason::Internal)?;
        let read = read.map_err(|error| match error {
            StoreError::LimitExceeded { .. } => too_many_bytes(),
            error => store_error(error),
        })?;
        Ok(ReadRow {
            row: one_row(schema, read.row.as_ref()),
            next_token: read.next_column.map(Bytes::from),
            consumed: read.consumed,
        })
    });
    Ok(rows.collect())
}

/// What an answer has of rows. One that is larger than an answer is alone in it.
#[derive(Debug, Default)]
struct Filled {
    bytes: usize,
    is_full: bool,
}

impl Filled {
    /// Refuses what would be read for nothing.
    fn check(&self) -> Result<(), ServiceError> {
        match self.is_full {
            true => Err(too_many_bytes()),
            false => Ok(()),
        }
    }

    /// Takes a row; behind one that doesn't fit there is none.
    fn take(&mut self, read: ReadRow) -> Result<ReadRow, ServiceError> {
        let bytes = self.bytes + read.row.len();
        self.is_full |= self.bytes > 0 && bytes > MAX_PAGE_BYTES;
        self.check()?;
        self.bytes = bytes;
        Ok(read)
    }
}

/// A row that doesn't fit into an answer any more is to be asked for again.
fn too_many_bytes() -> ServiceError {
    ServiceError::new(
        ErrorCode::ServerBusy,
        "The rows before it fill the answer; read it again.",
    )
}

fn read_told(read: Result<ReadRow, ServiceError>) -> messages::RowInBatchGetRowResponse {
    match read {
        Ok(read) => messages::RowInBatchGetRowResponse {
            is_ok: true,
            error: None,
            consumed: Some(consumed(read.consumed)),
            row: Some(read.row),
            next_token: read.next_token,
        },
        Err(error) => messages::RowInBatchGetRowResponse {
            is_ok: false,
            error: Some(error.to_message()),
            consumed: Some(consumed(CapacityUnits::default())),
            row: None,
            next_token: None,
        },
    }
}

/// What became of a write: what is given back of its row, and what it cost.
pub(crate) type Became = Result<(Option<Bytes>, CapacityUnits), ServiceError>;

/// Writes several rows of several tables.
pub(crate) async fn write(context: &Context, body: Bytes) -> Answered {
    let request: messages::BatchWriteRowRequest = decode(body).map_err(Reason::from)?;
    check_tables(
        request
            .tables
            .iter()
            .map(|table| (table.table_name.as_str(), table.rows.len())),
        WRITE_ROWS_MAX,
    )
    .map_err(|problem| problem.unwrap_or(Reason::NoRowToWrite))?;
    let transaction = request
        .transaction_id
        .as_deref()
        .filter(|given| !given.is_empty());
    let is_atomic = request.is_atomic.unwrap_or_default();
    if request.tables.len() > 1 && (transaction.is_some() || is_atomic) {
        return Err(invalid("A transaction and an atomic batch are of one table."));
    }
    // A parameter that is wrong in any row is wrong with the request.
    let (mut asked, mut rules) = (Vec::with_capacity(request.tables.len()), TransferRules::default());
    for table in request.tables {
        let rows = table.rows.into_iter().map(|row| {
            let kind = OperationType::try_from(row.r#type).map_err(|_| Reason::InvalidRowType)?;
            AskedWrite::read(
                kind,
                row.row_change,
                row.condition,
                row.return_content,
                &mut rules,
            )
        });
        let rows: Vec<AskedWrite> = rows.collect::<Result<_, ServiceError>>()?;
        check_repeated(&rows)?;
        asked.push((table.table_name, rows));
        // Their patterns took time.
        yield_now().await;
    }
    let mut tables = Vec::with_capacity(asked.len());
    for (table_name, rows) in asked {
        let count = rows.len();
        let became = table(context, &table_name, rows, transaction, is_atomic).await;
        let became = became.unwrap_or_else(|error| (0..count).map(|_| Err(error.clone())).collect());
        tables.push(messages::TableInBatchWriteRowResponse {
            table_name,
            rows: became.into_iter().map(write_told).collect(),
        });
    }
    Ok(Answer::ok(&messages::BatchWriteRowResponse { tables }))
}

/// Refuses conditions on rows that are there several times.
fn check_repeated(rows: &[AskedWrite]) -> Result<(), Reason> {
    for (at, row) in rows.iter().enumerate() {
        if row.condition.existence == Existence::Ignore && row.condition.columns.is_none() {
            continue;
        }
        let mut others = rows.iter().enumerate().filter(|(other, _)| *other != at);
        if others.any(|(_, other)| other.change.key() == row.change.key()) {
            return Err(match row.condition.existence {
                Existence::Ignore => Reason::RepeatedRowCondition,
                Existence::MustExist | Existence::MustNotExist => Reason::RepeatedRowExpectation,
            });
        }
    }
    Ok(())
}

/// Writes rows of one table.
///
/// # Errors
/// What concerns all of them alike.
pub(crate) async fn table(
    context: &Context,
    name: &str,
    rows: Vec<AskedWrite>,
    transaction: Option<&str>,
    is_atomic: bool,
) -> Result<Vec<Became>, ServiceError> {
    let handle = written_table(context, name)?;
    let definition = handle.definition();
    let schema = &definition.schema;
    let transaction = transaction::id(context, name, transaction)?;
    let mut became: Vec<Option<Became>> = Vec::new();
    let mut writes = Vec::with_capacity(rows.len());
    for row in rows {
        match row.write(schema) {
            Ok(write) => {
                became.push(None);
                writes.push(write);
            }
            // Of a batch that is atomic no row is written then.
            Err(error) if is_atomic => return Err(error),
            Err(error) => became.push(Some(Err(error))),
        }
    }
    if is_atomic {
        check_one_partition(&writes)?;
    }
    let returning: Vec<_> = writes.iter().map(|write| write.returning.clone()).collect();
    let steps = steps(writes);
    if is_atomic && transaction.is_some() && steps.len() > 1 {
        // What a transaction was to write can't be taken back alone.
        return Err(invalid("An atomic batch in a transaction has each row once."));
    }
    if is_atomic && transaction.is_none() {
        let written = at_once(&handle, steps).await.map_err(refused)?;
        return Ok(merged(became, written_told(&returning, schema, written)));
    }
    let mut written = Vec::new();
    for step in steps {
        let rows = match transaction {
            Some(id) => handle.write_in(id, step, !is_atomic).await,
            None => handle.write_each(step).await,
        };
        match rows {
            Ok(rows) => written.extend(rows),
            Err(error) if written.is_empty() => return Err(refused(error)),
            // The rows before are written.
            Err(error) => {
                let mut told = written_told(&returning, schema, written);
                told.resize(returning.len(), Err(refused(error)));
                return Ok(merged(became, told));
            }
        }
    }
    Ok(merged(became, written_told(&returning, schema, written)))
}

/// What is told of rows that were written.
fn written_told(
    returning: &[souk_engine::storage::ReturnRow],
    schema: &TableSchema,
    written: Vec<Result<souk_engine::storage::WrittenRow, EngineError>>,
) -> Vec<Became> {
    let written = written.into_iter().zip(returning);
    let told = written.map(|(written, asked)| match written {
        Ok(written) => Ok((returned(schema, asked, &written), written.consumed)),
        Err(error) => Err(refused(error)),
    });
    told.collect()
}

/// What became of all rows in their order: those that were refused before, and in their gaps those that were written.
fn merged(became: Vec<Option<Became>>, written: Vec<Became>) -> Vec<Became> {
    let mut written = written.into_iter();
    let all = became.into_iter().map(|refused| {
        refused
            .or_else(|| written.next())
            .unwrap_or_else(|| Err(Reason::Internal.into()))
    });
    all.collect()
}

/// Rows in their order, in steps in which each is there once.
fn steps(writes: Vec<TableWrite>) -> Vec<Vec<TableWrite>> {
    let mut steps: Vec<Vec<TableWrite>> = Vec::new();
    let mut seen = BTreeSet::new();
    for write in writes {
        // An appended row has no key yet, and is like no other.
        let is_new = write.operation.key().is_none_or(|key| seen.insert(key.clone()));
        match steps.last_mut().filter(|_| is_new) {
            Some(step) => step.push(write),
            None => {
                seen.clear();
                seen.extend(write.operation.key().cloned());
                steps.push(vec![write]);
            }
        }
    }
    steps
}

/// Writes rows of one partition together or not at all: by a transaction where some are there several times.
async fn at_once(
    table: &TableHandle,
    mut steps: Vec<Vec<TableWrite>>,
) -> Result<Vec<Result<souk_engine::storage::WrittenRow, EngineError>>, EngineError> {
    if steps.len() < 2 {
        let written = table.write(steps.pop().unwrap_or_default(), None).await?;
        return Ok(written.value.into_iter().map(Ok).collect());
    }
    let partition = steps
        .iter()
        .flatten()
        .find_map(|write| write.operation.partition().cloned());
    let partition = partition.ok_or(EngineError::Defect("a batch without a partition"))?;
    let id = table.begin(partition).await?;
    let mut written = Vec::new();
    for step in steps {
        match table.write_in(id, step, false).await {
            Ok(rows) => written.extend(rows),
            Err(error) => {
                // It ends by itself where it can't be aborted.
                let _ = table.abort_transaction(id);
                return Err(error);
            }
        }
    }
    table.commit_transaction(id).await?;
    Ok(written)
}

/// Refuses an atomic batch with rows of several partitions.
fn check_one_partition(writes: &[TableWrite]) -> Result<(), ServiceError> {
    let mut partitions = writes.iter().map(|write| write.operation.partition());
    let first = partitions.next().flatten();
    match partitions.all(|other| other == first) {
        true => Ok(()),
        false => Err(ServiceError::new(
            ErrorCode::DataOutOfRange,
            "Data out of scope of atomic.",
        )),
    }
}

fn write_told(became: Became) -> messages::RowInBatchWriteRowResponse {
    match became {
        Ok((row, cost)) => messages::RowInBatchWriteRowResponse {
            is_ok: true,
            error: None,
            consumed: Some(consumed(cost)),
            row,
        },
        Err(error) => {
            let cost = match error.code {
                ErrorCode::ConditionCheckFail => CapacityUnits::FAILED_CONDITION,
                _ => CapacityUnits::default(),
            };
            messages::RowInBatchWriteRowResponse {
                is_ok: false,
                error: Some(error.to_message()),
                consumed: Some(consumed(cost)),
                row: None,
            }
        }
    }
}

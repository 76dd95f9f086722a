//! The change log of a table, as a stream of one shard. Every table has one, as long as the log is kept.

use bytes::Bytes;
use souk_engine::storage::{
    CapacityUnits, ChangeKind, Error as StoreError, PrimaryKey, Row, RowChange, TableId, TableSchema,
};
use souk_tablestore::messages::get_stream_record_response::StreamRecord;
use souk_tablestore::messages::{self, ActionType, StreamStatus};
use souk_tablestore::plainbuffer::PlainBufferEncoder;
use souk_tablestore::{Answer, Reason, SequenceInfo, ServiceError, decode};

use crate::context::{Answered, Context};
use crate::error::{invalid, store_error};
use crate::read::consumed;
use crate::value::{told, write_key};

/// The one shard of a stream.
const SHARD: &str = "0";
/// Most records of an answer.
pub(crate) const RECORDS_MAX: usize = 1000;
/// Changes of all tables that are read for an answer.
const CHANGES_MAX: usize = 1000;
/// Bytes of records after which an answer ends.
const BYTES_MAX: usize = 3 << 20;

/// A stream: a table, by a number that no other table of its name ever has.
struct Stream {
    table: String,
    id: TableId,
    schema: TableSchema,
}

/// A place in a stream: behind a change, and some rows of the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    after: u64,
    rows: usize,
}

impl Stream {
    fn of_table(context: &Context, table: &str) -> Result<Self, ServiceError> {
        let schema = context.table(table)?.definition().schema.clone();
        let stored = context
            .engine()
            .database()
            .table(&schema.name)
            .ok_or(Reason::NoSuchTable)?;
        Ok(Self {
            table: table.to_owned(),
            id: stored.id(),
            schema,
        })
    }

    fn name(&self) -> String {
        format!("{}_{}", self.table, self.id.0)
    }

    fn find(context: &Context, name: &str) -> Result<Self, ServiceError> {
        let unknown = || {
            ServiceError::new(
                souk_tablestore::ErrorCode::ObjectNotExist,
                "Requested stream does not exist.",
            )
        };
        let (table, _) = name.rsplit_once('_').ok_or_else(unknown)?;
        let stream = Self::of_table(context, table).map_err(|_| unknown())?;
        match stream.name() == name {
            true => Ok(stream),
            false => Err(unknown()),
        }
    }

    fn iterator(&self, context: &Context, position: Position) -> String {
        let history = position.history(context);
        format!("{}:{}:{}:{history:x}", self.name(), position.after, position.rows)
    }

    fn at(context: &Context, iterator: &str) -> Result<(Self, Position), ServiceError> {
        let parts: Vec<&str> = iterator.split(':').collect();
        let &[name, after, rows, history] = parts.as_slice() else {
            return Err(no_iterator());
        };
        let (Ok(after), Ok(rows)) = (after.parse(), rows.parse()) else {
            return Err(no_iterator());
        };
        let position = Position { after, rows };
        let stream = Self::find(context, name)?;
        // The changes behind it are gone with the history that it is of.
        match u64::from_str_radix(history, 16) == Ok(position.history(context)) {
            true => Ok((stream, position)),
            false => Err(Reason::ChangesTrimmed.into()),
        }
    }
}

impl Position {
    /// The history of the database that the last change is of that it has rows of.
    fn history(self, context: &Context) -> u64 {
        let last = self.after.saturating_add(u64::from(self.rows > 0));
        context.engine().database().history_of(last)
    }
}

fn no_iterator() -> ServiceError {
    invalid("Invalid shard iterator.")
}

/// Lists the streams of a table, or of all.
pub(crate) fn list(context: &Context, body: Bytes) -> Answered {
    let request: messages::ListStreamRequest = decode(body).map_err(Reason::from)?;
    let tables = match request.table_name.filter(|name| !name.is_empty()) {
        Some(name) => vec![name],
        None => context.tables().into_iter().map(|(name, _)| name).collect(),
    };
    let mut streams = Vec::with_capacity(tables.len());
    for table in tables {
        let stream = Stream::of_table(context, &table)?;
        streams.push(messages::Stream {
            stream_id: stream.name(),
            table_name: table,
            creation_time: 0,
        });
    }
    Ok(Answer::ok(&messages::ListStreamResponse { streams }))
}

/// The name of a table's stream.
pub(crate) fn name_of(context: &Context, table: &str) -> Result<String, ServiceError> {
    Ok(Stream::of_table(context, table)?.name())
}

/// What the description of a table says of its stream: whatever was asked for, it has one.
pub(crate) fn details(context: &Context, table: &str) -> Result<messages::StreamDetails, ServiceError> {
    Ok(messages::StreamDetails {
        enable_stream: true,
        stream_id: Some(name_of(context, table)?),
        expiration_time: Some(hours_kept(context)),
        ..messages::StreamDetails::default()
    })
}

/// How long changes are kept.
fn hours_kept(context: &Context) -> i32 {
    let hours = context.engine().database().retention().as_secs() / 3600;
    i32::try_from(hours).unwrap_or(i32::MAX)
}

/// Describes a stream.
pub(crate) fn describe(context: &Context, body: Bytes) -> Answered {
    let request: messages::DescribeStreamRequest = decode(body).map_err(Reason::from)?;
    let stream = Stream::find(context, &request.stream_id)?;
    Ok(Answer::ok(&messages::DescribeStreamResponse {
        stream_id: stream.name(),
        expiration_time: hours_kept(context),
        table_name: stream.table,
        creation_time: 0,
        stream_status: StreamStatus::Active.into(),
        shards: vec![messages::StreamShard {
            shard_id: SHARD.to_owned(),
            parent_id: None,
            parent_sibling_id: None,
        }],
        next_shard_id: None,
        is_timeseries_data_table: None,
    }))
}

/// Where reading a stream begins: at a time, or with the oldest change that is kept.
pub(crate) async fn iterator(context: &Context, body: Bytes) -> Answered {
    let request: messages::GetShardIteratorRequest = decode(body).map_err(Reason::from)?;
    let stream = Stream::find(context, &request.stream_id)?;
    if request.shard_id != SHARD {
        return Err(invalid("Requested shard does not exist."));
    }
    let snapshot = context
        .engine()
        .database()
        .snapshot()
        .await
        .map_err(store_error)?;
    let oldest = async {
        let oldest = snapshot.oldest_change().await.map_err(store_error)?;
        Ok::<_, ServiceError>(oldest.saturating_sub(1))
    };
    let after = match request.timestamp {
        None => oldest.await?,
        Some(micros) => match snapshot.sequence_at(micros.saturating_mul(1000)).await {
            Ok(after) => after,
            Err(StoreError::TimeTrimmed { .. }) => oldest.await?,
            Err(error) => return Err(store_error(error)),
        },
    };
    Ok(Answer::ok(&messages::GetShardIteratorResponse {
        shard_iterator: stream.iterator(context, Position { after, rows: 0 }),
        next_token: None,
    }))
}

/// Reads changes of a stream.
pub(crate) async fn records(context: &Context, body: Bytes) -> Answered {
    let request: messages::GetStreamRecordRequest = decode(body).map_err(Reason::from)?;
    let (stream, mut position) = Stream::at(context, &request.shard_iterator)?;
    let limit = match request.limit {
        None => RECORDS_MAX,
        Some(limit) => match usize::try_from(limit) {
            Ok(limit) if limit > 0 => limit.min(RECORDS_MAX),
            _ => return Err(Reason::InvalidLimit.into()),
        },
    };
    let snapshot = context
        .engine()
        .database()
        .snapshot()
        .await
        .map_err(store_error)?;
    if position.after > snapshot.sequence() {
        return Err(no_iterator());
    }
    let changes = snapshot
        .changes_of(stream.id, position.after, CHANGES_MAX)
        .await
        .map_err(store_error)?;
    let is_end = changes.len() < CHANGES_MAX
        && changes
            .last()
            .is_none_or(|last| last.sequence >= snapshot.sequence());
    let (mut stream_records, mut bytes, mut is_full) = (Vec::new(), 0, false);
    'changes: for change in changes {
        let skipped = position.rows;
        for (at, row) in change.rows.iter().enumerate().skip(skipped) {
            if stream_records.len() >= limit || bytes >= BYTES_MAX {
                (position.rows, is_full) = (at, true);
                break 'changes;
            }
            let sequence = SequenceInfo {
                epoch: 0,
                timestamp: change.time / 1000,
                row_index: u32::try_from(at).unwrap_or(u32::MAX),
            };
            let told = record(&stream.schema, row, sequence);
            bytes += told.record.len();
            stream_records.push(told);
        }
        position = Position {
            after: change.sequence,
            rows: 0,
        };
    }
    Ok(Answer::ok(&messages::GetStreamRecordResponse {
        stream_records,
        next_shard_iterator: Some(stream.iterator(context, position)),
        consumed: Some(consumed(CapacityUnits::reading(bytes))),
        may_more_record: Some(is_full || !is_end),
    }))
}

/// A change of a row. The log has rows as they are after it, so that an update is told as the put of all of the row.
fn record(schema: &TableSchema, change: &RowChange, sequence: SequenceInfo) -> StreamRecord {
    let action = match change.kind {
        ChangeKind::Put | ChangeKind::Update => ActionType::PutRow,
        ChangeKind::Delete => ActionType::DeleteRow,
    };
    StreamRecord {
        action_type: action.into(),
        record: encoded(schema, &change.key, change.row.as_ref(), Some(sequence)),
        origin_record: None,
        latest_columns: None,
    }
}

/// A row as a record has it; without one, that it was deleted.
pub(crate) fn encoded(
    schema: &TableSchema,
    key: &PrimaryKey,
    row: Option<&Row>,
    sequence: Option<SequenceInfo>,
) -> Bytes {
    let mut out = PlainBufferEncoder::new();
    let mut encoder = out.row();
    write_key(schema, key, &mut encoder);
    let cells = row.iter().flat_map(|row| row.columns().iter());
    for (column, cells) in cells {
        for cell in cells {
            encoder.cell(column, Some(&told(&cell.value)), None, Some(cell.version));
        }
    }
    encoder.finish(row.is_none(), sequence);
    out.finish()
}

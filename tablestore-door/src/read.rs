//! Reading one row, of a table or of a secondary index.

use bytes::Bytes;
use souk_engine::storage::{CapacityUnits, IndexRequest, ReadOptions};
use souk_engine::{ReadView, TableHandle};
use souk_tablestore::plainbuffer::PlainBufferEncoder;
use souk_tablestore::{Answer, KeyColumn, KeyUse, Reason, ServiceError, decode, messages};

use crate::context::{Answered, Context};
use crate::entries::{IndexTable, TableOrIndex};
use crate::error::refused;
use crate::options::{AskedRead, TransferRules, index_options, resumed};
use crate::transaction;
use crate::value::{key_values, one_row, primary_key};

/// One row that was read.
pub(crate) struct ReadRow {
    /// In plainbuffer; nothing when there is none.
    pub(crate) row: Bytes,
    /// Where to go on in a wide row.
    pub(crate) next_token: Option<Bytes>,
    pub(crate) consumed: CapacityUnits,
}

/// Reads a row.
pub(crate) async fn get(context: &Context, body: Bytes) -> Answered {
    let request: messages::GetRowRequest = decode(body).map_err(Reason::from)?;
    let key = KeyUse::Get.decode(request.primary_key)?;
    let asked = AskedRead {
        columns: request.columns_to_get,
        time: request.time_range,
        max_versions: request.max_versions,
        filter: request.filter,
        start_column: request.start_column,
        end_column: request.end_column,
    };
    let mut options = asked.options(&mut TransferRules::default())?;
    let read = match TableOrIndex::find(context, &request.table_name)? {
        TableOrIndex::Table(table) => {
            let view =
                transaction::read_view(context, &request.table_name, request.transaction_id.as_deref())?;
            if let Some(token) = &request.token {
                options = resumed(options, token)?;
            }
            row(&table, &key, &options, view).await?
        }
        TableOrIndex::Index(index) => entry(&index, &key, &options).await?,
    };
    Ok(Answer::ok(&messages::GetRowResponse {
        consumed: consumed(read.consumed),
        row: read.row,
        next_token: read.next_token,
    }))
}

/// Reads a row of a table.
pub(crate) async fn row(
    table: &TableHandle,
    key: &[KeyColumn],
    options: &ReadOptions,
    view: ReadView,
) -> Result<ReadRow, ServiceError> {
    let definition = table.definition();
    let key = primary_key(&definition.schema, key)?;
    let read = table.read_row(&key, options, view).await.map_err(refused)?.value;
    Ok(ReadRow {
        row: one_row(&definition.schema, read.row.as_ref()),
        next_token: read.next_column.map(Bytes::from),
        consumed: read.consumed,
    })
}

/// Reads an entry of a secondary index.
pub(crate) async fn entry(
    index: &IndexTable,
    key: &[KeyColumn],
    options: &ReadOptions,
) -> Result<ReadRow, ServiceError> {
    let (columns, filter) = index_options(options)?;
    let key = key_values(&index.schema, key)?;
    let mut request = IndexRequest::prefix(
        &index.index.name,
        index.bound(&key),
        souk_engine::storage::Direction::Forward,
    );
    request.limit = 1;
    request.filter = filter;
    if let Some(columns) = index.selected(columns) {
        request = request.columns(columns);
    }
    let page = index.page(&index.view().await?, &request).await?;
    let mut out = PlainBufferEncoder::new();
    for entry in page.entries.iter().filter(|entry| index.has_any(columns, entry)) {
        index.write(entry, &mut out);
    }
    Ok(ReadRow {
        row: out.finish(),
        next_token: None,
        consumed: page.consumed,
    })
}

/// What a call cost.
pub(crate) fn consumed(units: CapacityUnits) -> messages::ConsumedCapacity {
    let whole = |units: u64| Some(i32::try_from(units).unwrap_or(i32::MAX));
    messages::ConsumedCapacity {
        capacity_unit: messages::CapacityUnit {
            read: whole(units.read),
            write: whole(units.write),
        },
        capacity_data_size: None,
    }
}

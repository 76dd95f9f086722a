//! Imports and exports of many rows.

use bytes::Bytes;
use souk_engine::ReadView;
use souk_engine::storage::limits::MAX_SCANNED_ROWS;
use souk_engine::storage::{CapacityUnits, Direction};
use souk_tablestore::messages::{self, DataBlockType, OperationType};
use souk_tablestore::{Answer, KeyUse, Reason, decode};

use crate::batch::{self, WRITE_ROWS_MAX};
use crate::context::{Answered, Context};
use crate::entries::written_table;
use crate::options::{AskedRead, TransferRules};
use crate::range;
use crate::read::consumed;
use crate::write::AskedWrite;

/// Bytes of rows after which an import goes on in another batch.
const BATCH_BYTES: usize = 2 << 20;

/// Writes many rows of a table, each by itself.
pub(crate) async fn import(context: &Context, body: Bytes) -> Answered {
    let request: messages::BulkImportRequest = decode(body).map_err(Reason::from)?;
    if request.rows.is_empty() {
        let table = request.table_name.as_str().into();
        return Err(Reason::NoOperation { table }.into());
    }
    written_table(context, &request.table_name)?;
    let mut batches: Vec<Vec<AskedWrite>> = Vec::new();
    let mut bytes = 0;
    for row in request.rows {
        let kind = OperationType::try_from(row.r#type).map_err(|_| Reason::InvalidRowType)?;
        let size = row.row_change.len();
        let asked = AskedWrite::read(
            kind,
            row.row_change,
            messages::Condition::default(),
            None,
            &mut TransferRules::default(),
        )?;
        match batches.last_mut() {
            Some(batch) if batch.len() < WRITE_ROWS_MAX && bytes + size <= BATCH_BYTES => {
                batch.push(asked);
                bytes += size;
            }
            _ => {
                batches.push(vec![asked]);
                bytes = size;
            }
        }
    }
    let mut rows = Vec::new();
    for batch in batches {
        let count = batch.len();
        let became = batch::table(context, &request.table_name, batch, None, false).await;
        let became = became.unwrap_or_else(|error| vec![Err(error); count]);
        rows.extend(became.into_iter().map(told));
    }
    Ok(Answer::ok(&messages::BulkImportResponse {
        table_name: request.table_name,
        rows,
    }))
}

fn told(became: batch::Became) -> messages::RowInBulkImportResponse {
    let (error, cost) = match became {
        Ok((_, cost)) => (None, cost),
        Err(error) => (Some(error.to_message()), CapacityUnits::default()),
    };
    messages::RowInBulkImportResponse {
        is_ok: error.is_none(),
        error,
        consumed: Some(consumed(cost)),
    }
}

/// Reads a page of a range of a table, forward, of each column the newest version. Its rows are always in plainbuffer, as the answer says.
pub(crate) async fn export(context: &Context, body: Bytes) -> Answered {
    let request: messages::BulkExportRequest = decode(body).map_err(Reason::from)?;
    let start = KeyUse::RangeEnd.decode(request.inclusive_start_primary_key)?;
    let end = KeyUse::RangeEnd.decode(request.exclusive_end_primary_key)?;
    let table = written_table(context, &request.table_name)?;
    let asked = AskedRead {
        columns: request.columns_to_get,
        max_versions: Some(1),
        filter: request.filter,
        ..AskedRead::default()
    };
    let definition = table.definition();
    let schema = &definition.schema;
    let range = range::table_range(
        schema,
        [&start, &end],
        Direction::Forward,
        MAX_SCANNED_ROWS,
        asked.options(&mut TransferRules::default())?,
    )?;
    let page = range::rows(&table, schema, &range, ReadView::Sequence(context.min_sequence)).await?;
    Ok(Answer::ok(&messages::BulkExportResponse {
        consumed: consumed(page.consumed),
        rows: page.rows,
        next_start_primary_key: page.next,
        data_block_type: Some(DataBlockType::PlainBuffer.into()),
    }))
}

//! Writes of one row, of which there are three RPCs.

use souk_api::Result;
use souk_api::rows::refused;
use souk_api::wire::checked;
use souk_chassis::status::Violations;
use souk_engine::RequestId;
use souk_proto::table::v1 as pb;

use super::{TableApi, not_in_transaction, settle_name};
use crate::rows::{RowsToWire, consumed};
use crate::{read, write};

/// A call that writes one row.
pub(super) struct OneWrite {
    pub(super) table: String,
    pub(super) write: pb::RowWrite,
    pub(super) request_id: Option<RequestId>,
    pub(super) transaction_id: String,
}

/// What became of it.
pub(super) struct OneWritten {
    /// What was to be given back of the row.
    pub(super) row: Option<pb::Row>,
    pub(super) sequence: i64,
    pub(super) consumed: Option<pb::CapacityUnits>,
}

impl TableApi {
    /// Writes one row.
    pub(super) async fn write_one(&self, one: OneWrite, mut violations: Violations) -> Result<OneWritten> {
        settle_name(&one.table, &violations)?;
        let rows = self.rows(&one.table)?;
        let definition = rows.definition();
        let asked = write::asked(one.write.returning.as_ref());
        let write = write::one(one.write, &definition.schema, &mut violations);
        let transaction = read::transaction(&one.transaction_id, &mut violations);
        if one.request_id.is_some() && !one.transaction_id.is_empty() {
            not_in_transaction(&mut violations);
        }
        let (write, transaction) = checked(write.zip(transaction), violations)?;
        let (written, sequence) = match transaction {
            Some(id) => {
                let written = rows.write_in(id, vec![write], false).await.map_err(refused)?;
                let written: Vec<_> = written.into_iter().collect::<Result<_, _>>().map_err(refused)?;
                (written, 0)
            }
            None => {
                let written = rows.write(vec![write], one.request_id).await.map_err(refused)?;
                (written.value, written.sequence)
            }
        };
        let written = written.into_iter().next().unwrap_or_default();
        Ok(OneWritten {
            row: RowsToWire::new(definition, false).written(&written, asked),
            sequence,
            consumed: Some(consumed(written.consumed)),
        })
    }
}

//! Rows of tables as a kind that [`crate::load`] loads.

use std::borrow::Cow;

use souk_chassis::client::Client;
use souk_proto::table::v1::row_write::Operation;
use souk_proto::table::v1::table_service_client::TableServiceClient;
use souk_proto::table::v1::{BatchWriteRowsRequest, PutRowRequest, RowPut, RowWrite};
use tonic::Status;

use super::text;
use crate::load::kind::{Kind, timed};

/// Rows of a table that a user has defined. Each is put as a whole, and names its table, which is one in all of a load.
#[derive(Clone, Copy, Debug)]
pub struct TableRows;

impl Kind for TableRows {
    type Row = PutRowRequest;
    const NAME: &'static str = "rows";
    const MESSAGE: &'static str = "souk.table.v1.PutRowRequest";

    fn id(row: &PutRowRequest) -> Cow<'_, str> {
        text::of_key(&row.key).into()
    }

    async fn create(target: Client, rows: Vec<PutRowRequest>, request_id: String) -> Result<(), Status> {
        let table = rows.first().map(|row| row.table.clone()).unwrap_or_default();
        let put = |row: PutRowRequest| RowWrite {
            operation: Some(Operation::Put(RowPut {
                key: row.key,
                columns: row.columns,
                cells: row.cells,
            })),
            ..RowWrite::default()
        };
        let request = BatchWriteRowsRequest {
            table,
            writes: rows.into_iter().map(put).collect(),
            // What a request id needs, which keeps a batch from being written twice.
            atomic: true,
            request_id,
            ..BatchWriteRowsRequest::default()
        };
        let mut client = TableServiceClient::new(target);
        client.batch_write_rows(timed(request)).await.map(drop)
    }
}

//! The calls that are measured: the same, typed, by `souk.table.v1` and by the endpoint for Tablestore's own clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use souk_chassis::client::Channel;
use souk_e2e::data;
use souk_proto::order::v1::order_service_client::OrderServiceClient;
use souk_proto::order::v1::{CreateOrderRequest, GetOrderRequest};
use souk_proto::search::v1::HitsMode;
use souk_proto::table::v1::table_service_client::TableServiceClient;
use souk_proto::table::v1::{PutRowRequest, SearchRowsRequest};
use souk_tablestore::{KeyElement, PlainRow, messages, plainbuffer};

use super::orders::{columns, get_row, key, order, order_id, plain_row, signed_put, text};
use super::{ROWS, SIGNED};
use crate::endpoint::Endpoint;
use crate::load::Call;

/// Columns of a row whose order wasn't paid.
const COLUMNS_MIN: usize = 17;
/// Hits of a search.
const HITS: usize = 20;
/// Steps through the rows by which they are read: no two readings in a row are of neighbours.
const STRIDE: u64 = 7_919;

/// By what a call goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    Typed,
    /// `souk.table.v1`, to this table.
    Rows(&'static str),
    /// The endpoint, to the table [`SIGNED`].
    Endpoint,
}

/// What a call does.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Put,
    Get,
    /// Finds the newest orders of a consumer.
    Newest(HitsMode),
}

/// Does the same over and over, each time to another row.
#[derive(Clone)]
pub(super) struct Asking {
    pub(super) what: What,
    pub(super) way: Way,
    pub(super) orders: OrderServiceClient<Channel>,
    pub(super) tables: TableServiceClient<Channel>,
    pub(super) endpoint: Endpoint,
    /// The next number of all who put rows the same way.
    pub(super) next: Arc<AtomicU64>,
}

impl Call for Asking {
    async fn call(&mut self) -> anyhow::Result<()> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        match self.what {
            What::Put => self.put(number).await,
            What::Get => self.get(number * STRIDE % ROWS).await,
            What::Newest(mode) => self.newest(number % data::CONSUMERS, mode).await.map(drop),
        }
    }
}

impl Asking {
    async fn put(&mut self, number: u64) -> anyhow::Result<()> {
        let order = order(number);
        let sequence = match self.way {
            Way::Typed => {
                let request = CreateOrderRequest {
                    order: Some(order),
                    ..CreateOrderRequest::default()
                };
                self.orders.create_order(request).await?.into_inner().sequence
            }
            Way::Rows(table) => {
                let request = PutRowRequest {
                    table: table.to_owned(),
                    key: key(&order.order_id),
                    columns: columns(&order),
                    ..PutRowRequest::default()
                };
                self.tables.put_row(request).await?.into_inner().sequence
            }
            Way::Endpoint => {
                let put: messages::PutRowResponse = self.endpoint.call("PutRow", &signed_put(&order)).await?;
                i64::from(put.consumed.capacity_unit.write.unwrap_or_default())
            }
        };
        anyhow::ensure!(sequence > 0, "order {number} wasn't written");
        Ok(())
    }

    /// Reads a row, and looks whether it is the one.
    async fn get(&mut self, number: u64) -> anyhow::Result<()> {
        let id = order_id(number);
        let (found, columns) = match self.way {
            Way::Typed => {
                let request = GetOrderRequest {
                    order_id: id.clone(),
                    min_sequence: 0,
                };
                let order = self.orders.get_order(request).await?.into_inner().order;
                (order.map(|order| order.order_id), usize::MAX)
            }
            Way::Rows(table) => {
                let row = self.tables.get_row(get_row(table, &id)).await?.into_inner().row;
                let row = row.unwrap_or_default();
                (text(row.key.first()), row.columns.len())
            }
            Way::Endpoint => {
                let row = self.signed_row(&id).await?;
                let found = row.key.first().map(|column| column.value.clone());
                let is_it = found == Some(KeyElement::from(id.as_str()));
                (is_it.then(|| id.clone()), row.cells.len())
            }
        };
        anyhow::ensure!(
            found.as_ref() == Some(&id) && columns >= COLUMNS_MIN,
            "{:?}: {found:?} with {columns} columns instead of {id}",
            self.way
        );
        Ok(())
    }

    /// Finds the newest orders of a consumer: their ids.
    pub(super) async fn newest(&mut self, consumer: u64, mode: HitsMode) -> anyhow::Result<Vec<String>> {
        let request = data::newest_of_consumer(consumer, mode);
        let found: Vec<_> = match self.way {
            Way::Rows(table) => {
                let request = SearchRowsRequest {
                    table: table.to_owned(),
                    search: request.search,
                };
                let hits = self.tables.search_rows(request).await?.into_inner().hits;
                let ids = hits.into_iter().map(|hit| text(hit.row?.key.first()));
                ids.flatten().collect()
            }
            Way::Typed | Way::Endpoint => {
                let hits = self.orders.search_orders(request).await?.into_inner().hits;
                let ids = hits.into_iter().map(|hit| Some(hit.resource?.order_id));
                ids.flatten().collect()
            }
        };
        anyhow::ensure!(
            found.len() == HITS,
            "{:?}: {} orders of consumer {consumer}",
            self.way,
            found.len()
        );
        Ok(found)
    }

    pub(super) async fn signed_row(&self, id: &str) -> anyhow::Result<PlainRow> {
        let request = messages::GetRowRequest {
            table_name: SIGNED.to_owned(),
            primary_key: plainbuffer::encode([&plain_row(id, Vec::new())]),
            max_versions: Some(1),
            ..messages::GetRowRequest::default()
        };
        let found: messages::GetRowResponse = self.endpoint.call("GetRow", &request).await?;
        Ok(plainbuffer::decode_row(found.row)?)
    }
}

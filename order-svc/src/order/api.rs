//! The RPCs of orders.

use std::sync::Arc;

use souk_api::wire::{Answers, answers, checked, endless_answers, etag, received, request_id, valid};
use souk_api::{ExportRequest, ListRequest, Resources};
use souk_engine::Creation;
use souk_engine::storage::{Clock, Direction, Value};
use souk_proto::order::v1 as pb;
use souk_proto::order::v1::order_service_server::OrderService;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use super::{Order, References, table, wire};

/// Orders over gRPC.
#[derive(Debug)]
pub struct OrderApi {
    orders: Resources<Order>,
    references: References,
    clock: Arc<dyn Clock>,
    draining: CancellationToken,
}

impl OrderApi {
    /// The RPCs on a table. `clock` says when an order is made that doesn't say itself; watches end with `draining`.
    pub fn new(
        orders: Resources<Order>,
        references: References,
        clock: Arc<dyn Clock>,
        draining: CancellationToken,
    ) -> Self {
        Self {
            orders,
            references,
            clock,
            draining,
        }
    }
}

#[tonic::async_trait]
impl OrderService for OrderApi {
    type ExportOrdersStream = Answers<pb::ExportOrdersResponse>;
    type WatchOrdersStream = Answers<pb::WatchOrdersResponse>;

    async fn create_order(
        &self,
        request: Request<pb::CreateOrderRequest>,
    ) -> Result<Response<pb::CreateOrderResponse>, Status> {
        let (request, mut violations) = received(request);
        let id = request_id(&request.request_id, &request);
        let draft = wire::one_draft(request.order, self.clock.now(), &mut violations);
        let draft = checked(draft, violations)?;
        self.orders
            .check_writable(draft.iter().map(|draft| &draft.given))?;
        let _attempt = self.orders.attempt(id).await;
        // What it refers to may have gone since.
        if !request.validate_only
            && let Some(first) = self.orders.created_before(id, Creation::One, false).await?
        {
            return Ok(Response::new(pb::CreateOrderResponse {
                order: first.value.into_iter().next().map(wire::stored),
                sequence: first.sequence,
            }));
        }
        let order = wire::only(self.references.complete(draft).await?)?;
        let written = self.orders.create(order, id, request.validate_only).await?;
        Ok(Response::new(pb::CreateOrderResponse {
            order: Some(wire::stored(written.value)),
            sequence: written.sequence,
        }))
    }

    async fn batch_create_orders(
        &self,
        request: Request<pb::BatchCreateOrdersRequest>,
    ) -> Result<Response<pb::BatchCreateOrdersResponse>, Status> {
        let (request, mut violations) = received(request);
        let id = request_id(&request.request_id, &request);
        let drafts = wire::drafts(request.orders, self.clock.now(), &mut violations);
        let drafts = checked(drafts, violations)?;
        self.orders
            .check_writable(drafts.iter().map(|draft| &draft.given))?;
        let _attempt = self.orders.attempt(id).await;
        let first = self
            .orders
            .created_before(id, Creation::Batch, request.omit_resources);
        if let Some(first) = first.await? {
            return Ok(Response::new(pb::BatchCreateOrdersResponse {
                orders: wire::all(first.value),
                sequence: first.sequence,
            }));
        }
        let orders = self.references.complete(drafts).await?;
        let written = self
            .orders
            .create_batch(orders, id, request.omit_resources)
            .await?;
        Ok(Response::new(pb::BatchCreateOrdersResponse {
            orders: wire::all(written.value),
            sequence: written.sequence,
        }))
    }

    async fn get_order(
        &self,
        request: Request<pb::GetOrderRequest>,
    ) -> Result<Response<pb::GetOrderResponse>, Status> {
        let request = valid(request)?;
        let read = self.orders.get(&request.order_id, request.min_sequence).await?;
        Ok(Response::new(pb::GetOrderResponse {
            order: Some(wire::stored(read.value)),
            sequence: read.sequence,
        }))
    }

    async fn batch_get_orders(
        &self,
        request: Request<pb::BatchGetOrdersRequest>,
    ) -> Result<Response<pb::BatchGetOrdersResponse>, Status> {
        let request = valid(request)?;
        let read = self
            .orders
            .get_batch(&request.order_ids, request.min_sequence)
            .await?;
        Ok(Response::new(pb::BatchGetOrdersResponse {
            orders: wire::all(read.value.found),
            missing_ids: read.value.missing,
            sequence: read.sequence,
        }))
    }

    async fn update_order(
        &self,
        request: Request<pb::UpdateOrderRequest>,
    ) -> Result<Response<pb::UpdateOrderResponse>, Status> {
        let (request, violations) = received(request);
        let change = wire::change(request, violations)?;
        let now = self.clock.now();
        let written = self
            .orders
            .update(change.id(), change.etag(), |order| {
                wire::apply(&change, order, now)
            })
            .await?;
        Ok(Response::new(pb::UpdateOrderResponse {
            order: Some(wire::stored(written.value)),
            sequence: written.sequence,
        }))
    }

    async fn delete_order(
        &self,
        request: Request<pb::DeleteOrderRequest>,
    ) -> Result<Response<pb::DeleteOrderResponse>, Status> {
        let request = valid(request)?;
        let etag = etag(&request.etag, "");
        let written = self.orders.delete(&request.order_id, etag).await?;
        Ok(Response::new(pb::DeleteOrderResponse {
            sequence: written.sequence,
        }))
    }

    async fn list_consumer_orders(
        &self,
        request: Request<pb::ListConsumerOrdersRequest>,
    ) -> Result<Response<pb::ListConsumerOrdersResponse>, Status> {
        let request = valid(request)?;
        let list = ListRequest {
            index: table::BY_CONSUMER,
            prefix: &[Value::from(request.consumer_id)],
            direction: Direction::Backward,
            page_size: request.page_size,
            page_token: &request.page_token,
            min_sequence: request.min_sequence,
        };
        let page = self.orders.list_by(list).await?;
        Ok(Response::new(pb::ListConsumerOrdersResponse {
            orders: wire::all(page.items),
            next_page_token: page.next_page_token,
            sequence: page.sequence,
        }))
    }

    async fn search_orders(
        &self,
        request: Request<pb::SearchOrdersRequest>,
    ) -> Result<Response<pb::SearchOrdersResponse>, Status> {
        let found = self.orders.search(request.into_inner().search, "search").await?;
        Ok(Response::new(wire::page(found)))
    }

    async fn export_orders(
        &self,
        request: Request<pb::ExportOrdersRequest>,
    ) -> Result<Response<Self::ExportOrdersStream>, Status> {
        let request = valid(request)?;
        let blocks = self
            .orders
            .export(ExportRequest {
                slice_count: request.slice_count,
                slice: request.slice,
                snapshot_token: request.snapshot_token,
                resume_token: request.resume_token,
                min_sequence: request.min_sequence,
            })
            .await?;
        Ok(Response::new(answers(blocks, wire::block)))
    }

    async fn watch_orders(
        &self,
        request: Request<pb::WatchOrdersRequest>,
    ) -> Result<Response<Self::WatchOrdersStream>, Status> {
        let events = self.orders.watch(valid(request)?.after_sequence).await?;
        let draining = self.draining.clone();
        Ok(Response::new(endless_answers(events, draining, wire::event)))
    }
}

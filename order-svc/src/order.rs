//! Orders: a consumer buys a quantity of a product from a salesperson. Names, brand, type and price are those of the time of
//! the order; what an order lacks of them is filled in, and its total computed.

use std::sync::Arc;

use souk_api::message::{all_to_wire, batch, one, to_wire};
use souk_api::wire::{checked, received, request_id};
use souk_api::{Domain, Resources};
use souk_chassis::status::{FieldPath, Violations};
use souk_engine::storage::Clock;
use souk_engine::{Creation, EngineError};
use souk_proto::order::v1 as pb;
use tonic::{Request, Response, Status};

use crate::references::References;
use crate::{OrderMethods, Orders};

/// The currency of an order that doesn't name one.
const CURRENCY_DEFAULT: &str = "CNY";

/// What is true of orders beyond the rules of their fields.
#[derive(Debug)]
pub struct Complete {
    references: References,
    /// Gives the time of orders without one.
    clock: Arc<dyn Clock>,
}

impl Complete {
    /// Looks names and prices up in `references`, and takes the time of orders without one from `clock`.
    pub fn new(references: References, clock: Arc<dyn Clock>) -> Self {
        Self { references, clock }
    }

    fn drafts(&self) -> Drafts {
        Drafts {
            now: self.clock.now(),
        }
    }

    /// Fills in what drafts lack. `at` gives the path of each in the request, for violations.
    async fn completed(
        &self,
        mut drafts: Vec<pb::Order>,
        at: impl Fn(usize) -> FieldPath + Sync,
    ) -> souk_api::Result<Vec<pb::Order>> {
        self.references.fill_in(&mut drafts, &at).await?;
        let mut violations = Violations::default();
        for (place, order) in drafts.iter_mut().enumerate() {
            finish(order, &at(place), &mut violations);
        }
        checked(Some(drafts), violations)
    }
}

impl Domain<Orders> for Complete {
    /// Completes an updated order: names and prices aren't looked up, but a cleared total is computed.
    fn complete(&self, order: &mut pb::Order, at: &FieldPath, violations: &mut Violations) {
        self.drafts().complete(order, at, violations);
        finish(order, at, violations);
    }
}

/// Orders as clients give them, without what is looked up: time and currency get their defaults.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drafts {
    /// The time of orders without one, in nanoseconds since the Unix epoch.
    pub(crate) now: i64,
}

impl Domain<Orders> for Drafts {
    fn complete(&self, order: &mut pb::Order, _: &FieldPath, _: &mut Violations) {
        let now = || souk_api::wire::time_to_wire(self.now);
        order.order_time.get_or_insert_with(now);
        if order.currency_code.is_empty() {
            CURRENCY_DEFAULT.clone_into(&mut order.currency_code);
        }
    }
}

/// Computes a missing total; names and a price that are still missing are violations.
pub(crate) fn finish(order: &mut pb::Order, at: &FieldPath, violations: &mut Violations) {
    for (field, missing) in [
        ("consumer_name", order.consumer_name.is_empty()),
        ("salesperson_name", order.salesperson_name.is_empty()),
        ("product_name", order.product_name.is_empty()),
        ("unit_price_cents", order.unit_price_cents.is_none()),
    ] {
        if missing {
            violations.required(at.field(field));
        }
    }
    let (Some(price), None) = (order.unit_price_cents, order.total_price_cents) else {
        return;
    };
    order.total_price_cents = price.checked_mul(order.quantity);
    if order.total_price_cents.is_none() {
        let message = format!(
            "would be {price} × {}, which is beyond 64 bits; correct the price or the quantity",
            order.quantity
        );
        violations.push(at.field("total_price_cents"), "OUT_OF_RANGE", message);
    }
}

#[tonic::async_trait]
impl OrderMethods for Complete {
    async fn create_order(
        &self,
        orders: &Resources<Orders>,
        request: Request<pb::CreateOrderRequest>,
    ) -> Result<Response<pb::CreateOrderResponse>, Status> {
        let (mut request, mut violations) = received(request);
        let id = request_id(&request.request_id, &request);
        let draft = one::<Orders>(request.order.take(), "order", &self.drafts(), &mut violations);
        let draft = checked(draft, violations)?;
        orders.check_writable([&draft])?;
        let _attempt = orders.attempt(id).await;
        // A repeated request is answered from its record first: what the order refers to may have been deleted since.
        if !request.validate_only
            && let Some(first) = orders.created_before(id, Creation::One, false).await?
        {
            return Ok(Response::new(pb::CreateOrderResponse {
                order: first.value.into_iter().next().map(to_wire::<Orders>),
                sequence: first.sequence,
            }));
        }
        let order = self
            .completed(vec![draft], |_| FieldPath::root("order"))
            .await?
            .pop();
        let defect = EngineError::Defect("one draft gave another number of orders");
        let order = order.ok_or_else(|| souk_api::Error::from(defect))?;
        let written = orders.create(order, id, request.validate_only).await?;
        Ok(Response::new(pb::CreateOrderResponse {
            order: Some(to_wire::<Orders>(written.value)),
            sequence: written.sequence,
        }))
    }

    async fn batch_create_orders(
        &self,
        orders: &Resources<Orders>,
        request: Request<pb::BatchCreateOrdersRequest>,
    ) -> Result<Response<pb::BatchCreateOrdersResponse>, Status> {
        let (mut request, mut violations) = received(request);
        let id = request_id(&request.request_id, &request);
        let drafts = std::mem::take(&mut request.orders);
        let drafts = batch::<Orders>(drafts, "orders", &self.drafts(), &mut violations);
        let drafts = checked(Some(drafts), violations)?;
        orders.check_writable(&drafts)?;
        let _attempt = orders.attempt(id).await;
        let first = orders
            .created_before(id, Creation::Batch, request.omit_resources)
            .await?;
        let written = match first {
            Some(first) => first,
            None => {
                let at = |place| FieldPath::root("orders").index(place);
                let completed = self.completed(drafts, at).await?;
                orders.create_batch(completed, id, request.omit_resources).await?
            }
        };
        Ok(Response::new(pb::BatchCreateOrdersResponse {
            orders: all_to_wire::<Orders>(written.value),
            sequence: written.sequence,
        }))
    }
}

#[cfg(test)]
mod tests;

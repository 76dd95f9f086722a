//! Orders: a consumer buys a quantity of a product from a salesperson. Names, brand, type and price are those of the time of
//! the order: a missing name or price is looked up, a product's with its brand and type ([`References::fill_in`]); a missing total is
//! computed.

use std::sync::Arc;

use souk_api::message::{all_to_wire, batch, one, to_wire};
use souk_api::wire::{checked, received, request_id, settled};
use souk_api::{Domain, Resources};
use souk_chassis::status::{FieldPath, Violations};
use souk_engine::Creation;
use souk_engine::storage::Clock;
use souk_proto::order::v1 as pb;
use tonic::{Request, Response, Status};

use crate::references::References;
use crate::{OrderMethods, Orders};

/// The currency of an order that doesn't name one.
const CURRENCY_DEFAULT: &str = "CNY";

/// The domain logic of orders: defaults, names and prices that are looked up, and totals.
#[derive(Debug)]
pub struct OrderDomain {
    references: References,
    /// Gives the time of orders without one.
    clock: Arc<dyn Clock>,
}

impl OrderDomain {
    /// Looks names and prices up in `references`, and takes the time of orders without one from `clock`.
    pub fn new(references: References, clock: Arc<dyn Clock>) -> Self {
        Self { references, clock }
    }

    fn defaults(&self) -> Defaults {
        Defaults {
            now: self.clock.now(),
        }
    }

    /// Completes new orders: looks up names and prices, and computes totals. `at` gives the path of each by its index, for violations.
    async fn complete_new(
        &self,
        orders: &mut [pb::Order],
        at: impl Fn(usize) -> FieldPath + Sync,
    ) -> souk_api::Result<()> {
        self.references.fill_in(orders, &at).await?;
        let mut violations = Violations::default();
        for (index, order) in orders.iter_mut().enumerate() {
            finish(order, &at(index), &mut violations);
        }
        settled(violations)
    }
}

impl Domain<Orders> for OrderDomain {
    /// Completes an updated order: names and prices aren't looked up, but a cleared total is computed.
    fn complete(&self, order: &mut pb::Order, at: &FieldPath, violations: &mut Violations) {
        self.defaults().complete(order, at, violations);
        finish(order, at, violations);
    }
}

/// Gives orders a time and a currency where clients give none; nothing is looked up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Defaults {
    /// The time of orders without one, in nanoseconds since the Unix epoch.
    pub(crate) now: i64,
}

impl Domain<Orders> for Defaults {
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
impl OrderMethods for OrderDomain {
    async fn create_order(
        &self,
        orders: &Resources<Orders>,
        request: Request<pb::CreateOrderRequest>,
    ) -> Result<Response<pb::CreateOrderResponse>, Status> {
        let (mut request, mut violations) = received(request);
        let id = request_id(&request.request_id, &request);
        let draft = one::<Orders>(request.order.take(), "order", &self.defaults(), &mut violations);
        let mut draft = checked(draft, violations)?;
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
        let at = |_| FieldPath::root("order");
        self.complete_new(std::slice::from_mut(&mut draft), at).await?;
        let written = orders.create(draft, id, request.validate_only).await?;
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
        let drafts = batch::<Orders>(drafts, "orders", &self.defaults(), &mut violations);
        let mut drafts = checked(Some(drafts), violations)?;
        orders.check_writable(&drafts)?;
        let _attempt = orders.attempt(id).await;
        let first = orders
            .created_before(id, Creation::Batch, request.omit_resources)
            .await?;
        let written = match first {
            Some(first) => first,
            None => {
                let at = |index| FieldPath::root("orders").index(index);
                self.complete_new(&mut drafts, at).await?;
                orders.create_batch(drafts, id, request.omit_resources).await?
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

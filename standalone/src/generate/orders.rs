//! Orders: each line item of TPC-H with its order, part, customer and clerk.
//!
//! TPC-H's years 1992–1998 are moved by 27 years to 2019–2025; the time of day and of the payment are drawn.

use prost_types::Timestamp;
use souk_proto::order::v1::Order;
use tpchgen::generators::{LineItemGeneratorIterator, OrderGeneratorIterator, OrderStatus};

use super::names;
use super::products::{self, ProductSummary};
use super::random::RowRandom;
use super::tpch::{Scale, consumer_id, number_in, product_id, salesperson_id};

/// 27 years, 7 of them leap years.
const DAYS_MOVED: i64 = 27 * 365 + 7;
const SECONDS_OF_DAY: i64 = 86_400;
/// Payments come within two days.
const PAYMENT_MAX_SECONDS: u64 = 172_800;

/// What an order repeats of TPC-H's order, which several line items share.
#[derive(Clone, Debug, Default)]
struct Head {
    key: i64,
    consumer: u64,
    clerk: u64,
    midnight: i64,
    fulfilled: bool,
}

/// The orders of a scale, one a line item, in the order of their ids.
pub struct Orders {
    seed: u64,
    number: u64,
    parts: Vec<ProductSummary>,
    head: Head,
    orders: OrderGeneratorIterator<'static>,
    items: std::iter::Skip<LineItemGeneratorIterator<'static>>,
}

impl Orders {
    /// The orders from row `from` on. What comes before is computed and dropped, several hundred thousand rows a second.
    #[must_use]
    pub fn new(scale: Scale, seed: u64, from: u64) -> Self {
        Self {
            seed,
            number: from,
            parts: products::parts(scale),
            head: Head::default(),
            orders: scale.order_rows().iter(),
            items: scale.line_item_rows().iter().skip(from as usize),
        }
    }

    /// Moves on to TPC-H's order `key`; its orders come in the order of its line items.
    fn advance(&mut self, key: i64) {
        while self.head.key < key {
            let Some(order) = self.orders.next() else { return };
            if order.o_orderkey < key {
                continue;
            }
            self.head = Head {
                key: order.o_orderkey,
                consumer: order.o_custkey.unsigned_abs(),
                clerk: number_in(order.o_clerk),
                midnight: (i64::from(order.o_orderdate.to_unix_epoch()) + DAYS_MOVED) * SECONDS_OF_DAY,
                fulfilled: order.o_orderstatus == OrderStatus::Fulfilled,
            };
        }
    }
}

fn time(seconds: i64) -> Timestamp {
    Timestamp { seconds, nanos: 0 }
}

impl Iterator for Orders {
    type Item = Order;

    fn next(&mut self) -> Option<Order> {
        let item = self.items.next()?;
        self.advance(item.l_orderkey);
        let number = self.number;
        self.number += 1;
        let product = item.l_partkey.unsigned_abs();
        let part = self.parts.get(product.checked_sub(1)? as usize)?;
        // The line items of one order of TPC-H are ordered and paid together.
        let mut random = RowRandom::new(self.seed, "orders", self.head.key.unsigned_abs());
        let ordered = self.head.midnight + random.below(SECONDS_OF_DAY.unsigned_abs()) as i64;
        let paid = self.head.fulfilled || random.percent(60);
        let paid_after = 20 + random.below(PAYMENT_MAX_SECONDS) as i64;
        let price = part.unit_price_cents;
        // A discount of 0.07 is 7 hundredths; half a cent is rounded up.
        let total = (price * item.l_quantity * (100 - item.l_discount.into_inner()) + 50) / 100;
        Some(Order {
            order_id: format!("o{number:010}"),
            consumer_id: consumer_id(self.head.consumer),
            consumer_name: names::consumer(self.head.consumer).to_owned(),
            salesperson_id: salesperson_id(self.head.clerk),
            salesperson_name: names::salesperson(self.head.clerk).to_owned(),
            product_id: product_id(product),
            product_name: part.name.clone(),
            product_brand: part.brand.to_owned(),
            product_type: part.kind.to_owned(),
            order_time: Some(time(ordered)),
            pay_time: paid.then(|| time(ordered + paid_after)),
            paid,
            unit_price_cents: Some(price),
            quantity: item.l_quantity,
            total_price_cents: Some(total),
            currency_code: "CNY".to_owned(),
            ..Order::default()
        })
    }
}

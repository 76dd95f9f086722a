//! Orders as rows.

use souk_engine::storage::{SecondaryIndexSchema, TableSchema};
use souk_engine::{Attributes, ColumnReader, Columns, CorruptRow, Resource as _, key};

use super::Order;

/// The secondary index that lists a consumer's orders by time.
pub(super) const BY_CONSUMER: &str = "by_consumer";

pub(super) fn schema() -> TableSchema {
    let by_consumer = SecondaryIndexSchema::new(BY_CONSUMER, ["consumer_id", "order_time"]);
    key::hashed_table(Order::TABLE).index(by_consumer)
}

pub(super) fn to_columns(order: &Order) -> Columns {
    let columns = Columns::new()
        .string("consumer_id", &order.consumer_id)
        .string("consumer_name", &order.consumer_name)
        .string("salesperson_id", &order.salesperson_id)
        .string("salesperson_name", &order.salesperson_name)
        .string("product_id", &order.product_id)
        .string("product_name", &order.product_name)
        .string("product_brand", &order.product_brand)
        .string("product_type", &order.product_type)
        .integer("order_time", order.order_time)
        .integer("pay_time", order.pay_time)
        .boolean("paid", order.paid)
        .integer("unit_price_cents", order.unit_price_cents)
        .integer("quantity", order.quantity)
        .integer("total_price_cents", order.total_price_cents)
        .string("currency_code", &order.currency_code);
    order.attributes.to_column(columns, "attributes")
}

pub(super) fn from_columns(id: &str, columns: &ColumnReader<'_>) -> Result<Order, CorruptRow> {
    Ok(Order {
        order_id: id.to_owned(),
        consumer_id: columns.string("consumer_id")?,
        consumer_name: columns.string("consumer_name")?,
        salesperson_id: columns.string("salesperson_id")?,
        salesperson_name: columns.string("salesperson_name")?,
        product_id: columns.string("product_id")?,
        product_name: columns.string("product_name")?,
        product_brand: columns.string("product_brand")?,
        product_type: columns.string("product_type")?,
        order_time: columns.integer("order_time")?,
        pay_time: columns.optional_integer("pay_time")?,
        paid: columns.boolean("paid")?,
        unit_price_cents: columns.integer("unit_price_cents")?,
        quantity: columns.integer("quantity")?,
        total_price_cents: columns.integer("total_price_cents")?,
        currency_code: columns.string("currency_code")?,
        attributes: Attributes::from_column(columns, "attributes")?,
    })
}

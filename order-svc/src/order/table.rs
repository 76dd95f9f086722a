//! Orders as a table. Columns and search fields have the names of the message's fields.

use souk_access::Role;
use souk_engine::index::{Analyzer, Field, FieldKind};
use souk_engine::storage::SecondaryIndexSchema;
use souk_engine::{Attributes, ColumnReader, Columns, CorruptRow, Resource as _, TableDefinition, ValueType};

use super::Order;

/// The secondary index that lists a consumer's orders by time.
pub(super) const BY_CONSUMER: &str = "by_consumer";

pub(super) fn definition() -> TableDefinition {
    TableDefinition::hashed(Order::TABLE)
        .secondary(SecondaryIndexSchema::new(
            BY_CONSUMER,
            ["consumer_id", "order_time"],
        ))
        .owner(Role::Consumer.word(), "consumer_id")
        .owner(Role::Seller.word(), "salesperson_id")
        .column("order_time", ValueType::Time)
        .column("pay_time", ValueType::Time)
        .column("attributes", ValueType::Attributes)
        .id_field(Field::keyword("order_id").key())
        .field(Field::keyword("consumer_id"))
        .field(Field::keyword("consumer_name"))
        .field(Field::keyword("salesperson_id"))
        .field(Field::keyword("salesperson_name"))
        .field(Field::keyword("product_id"))
        .field(Field::text("product_name", Analyzer::MaxWord).sub_field("keyword", FieldKind::Keyword))
        .field(Field::keyword("product_brand"))
        .field(Field::keyword("product_type"))
        .field(Field::date("order_time"))
        .field(Field::date("pay_time"))
        .field(Field::boolean("paid"))
        // Money is exact: LONG, where DOUBLE would round above 2^53.
        .field(Field::long("unit_price_cents"))
        .field(Field::long("quantity"))
        .field(Field::long("total_price_cents"))
        .field(Field::keyword("currency_code"))
        .field(Field::attributes("attributes"))
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

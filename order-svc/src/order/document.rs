//! Orders as documents. Field names are those of the message.

use souk_engine::index::{Analyzer, Field, FieldKind, FieldValue, Object};

use super::Order;

pub(super) fn fields() -> Vec<Field> {
    vec![
        Field::keyword("order_id").key(),
        Field::keyword("consumer_id"),
        Field::keyword("consumer_name"),
        Field::keyword("salesperson_id"),
        Field::keyword("salesperson_name"),
        Field::keyword("product_id"),
        Field::text("product_name", Analyzer::MaxWord).sub_field("keyword", FieldKind::Keyword),
        Field::keyword("product_brand"),
        Field::keyword("product_type"),
        Field::date("order_time"),
        Field::date("pay_time"),
        Field::boolean("paid"),
        // Money is exact: LONG, where DOUBLE would round above 2^53.
        Field::long("unit_price_cents"),
        Field::long("quantity"),
        Field::long("total_price_cents"),
        Field::keyword("currency_code"),
        Field::attributes("attributes"),
    ]
}

pub(super) fn write(order: &Order, document: &mut Object) {
    document.push_text("order_id", &order.order_id);
    document.push_text("consumer_id", &order.consumer_id);
    document.push_text("consumer_name", &order.consumer_name);
    document.push_text("salesperson_id", &order.salesperson_id);
    document.push_text("salesperson_name", &order.salesperson_name);
    document.push_text("product_id", &order.product_id);
    document.push_text("product_name", &order.product_name);
    document.push_text("product_brand", &order.product_brand);
    document.push_text("product_type", &order.product_type);
    document.push("order_time", FieldValue::Date(order.order_time));
    if let Some(time) = order.pay_time {
        document.push("pay_time", FieldValue::Date(time));
    }
    document.push("paid", order.paid);
    document.push("unit_price_cents", order.unit_price_cents);
    document.push("quantity", order.quantity);
    document.push("total_price_cents", order.total_price_cents);
    document.push_text("currency_code", &order.currency_code);
    order.attributes.to_document(document, "attributes");
}

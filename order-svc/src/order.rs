//! Orders: a consumer buys a quantity of a product from a salesperson.

use souk_engine::{Attributes, ColumnReader, Columns, CorruptRow, Resource, TableDefinition};

mod api;
mod draft;
mod references;
mod table;
mod wire;

pub use api::OrderApi;
pub use draft::Draft;
pub use references::References;

/// One complete order. Names, brand, type and price are those of the time of the order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Order {
    /// The caller's id.
    pub order_id: String,
    /// The consumer's id.
    pub consumer_id: String,
    /// The consumer's name.
    pub consumer_name: String,
    /// The salesperson's id.
    pub salesperson_id: String,
    /// The salesperson's name.
    pub salesperson_name: String,
    /// The product's id.
    pub product_id: String,
    /// The product's name.
    pub product_name: String,
    /// The product's brand; may be empty.
    pub product_brand: String,
    /// The product's type; may be empty.
    pub product_type: String,
    /// When it was ordered: nanoseconds since the Unix epoch.
    pub order_time: i64,
    /// When it was paid: nanoseconds since the Unix epoch.
    pub pay_time: Option<i64>,
    /// Whether it was paid.
    pub paid: bool,
    /// The price of one piece in the currency's minor unit.
    pub unit_price_cents: i64,
    /// How many pieces; positive.
    pub quantity: i64,
    /// What it costs in all, in the currency's minor unit.
    pub total_price_cents: i64,
    /// ISO 4217.
    pub currency_code: String,
    /// Anything else.
    pub attributes: Attributes,
}

impl Resource for Order {
    const TABLE: &'static str = "orders";
    const NAME: &'static str = "order";
    const ID_FIELD: &'static str = "order_id";

    fn definition() -> TableDefinition {
        table::definition()
    }

    fn id(&self) -> &str {
        &self.order_id
    }

    fn to_columns(&self) -> Columns {
        table::to_columns(self)
    }

    fn from_columns(id: &str, columns: &ColumnReader<'_>) -> Result<Self, CorruptRow> {
        table::from_columns(id, columns)
    }
}

#[cfg(test)]
mod tests;

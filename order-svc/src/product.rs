//! Products that are sold.

use souk_engine::{Attributes, ColumnReader, Columns, CorruptRow, Resource, TableDefinition};

mod api;
mod table;
mod wire;

pub use api::ProductApi;

/// Longest name of a product, in characters.
pub const NAME_CHARS_MAX: usize = 1_024;
/// Longest brand or type of a product, in characters.
pub const WORD_CHARS_MAX: usize = 256;

/// One product.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Product {
    /// The caller's id.
    pub product_id: String,
    /// Its name.
    pub name: String,
    /// Its brand; may be empty.
    pub brand: String,
    /// Its type; may be empty.
    pub kind: String,
    /// The price of one piece in the currency's minor unit, if it has one.
    pub unit_price_cents: Option<i64>,
    /// Anything else.
    pub attributes: Attributes,
}

impl Resource for Product {
    const TABLE: &'static str = "products";
    const NAME: &'static str = "product";
    const ID_FIELD: &'static str = "product_id";

    fn definition() -> TableDefinition {
        table::definition()
    }

    fn id(&self) -> &str {
        &self.product_id
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

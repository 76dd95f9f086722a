//! Shops: where they are, what they are like, what a visit costs.

use souk_engine::index::GeoPoint;
use souk_engine::{Attributes, ColumnReader, Columns, CorruptRow, Resource, TableDefinition};

mod api;
mod table;
mod wire;

pub use api::ShopApi;

/// One shop.
#[derive(Clone, Debug, PartialEq)]
pub struct Shop {
    /// The caller's id.
    pub shop_id: String,
    /// The name.
    pub name: String,
    /// The type; may be empty.
    pub kind: String,
    /// Where it is.
    pub position: GeoPoint,
    /// The mean rating, 0 to 5, if anybody rated it.
    pub rating: Option<f64>,
    /// What a visit costs on average, in the currency's minor unit, if that is known.
    pub average_price_cents: Option<i64>,
    /// The street address; may be empty.
    pub address: String,
    /// The city; may be empty.
    pub city: String,
    /// The telephone number; may be empty.
    pub phone: String,
    /// Opening hours in OpenStreetMap's syntax; may be empty.
    pub opening_hours: String,
    /// Labels, none of them empty.
    pub tags: Vec<String>,
    /// Anything else.
    pub attributes: Attributes,
}

impl Resource for Shop {
    const TABLE: &'static str = "shops";
    const NAME: &'static str = "shop";
    const ID_FIELD: &'static str = "shop_id";

    fn definition() -> TableDefinition {
        table::definition()
    }

    fn id(&self) -> &str {
        &self.shop_id
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

//! Shops as rows.

use souk_engine::storage::TableSchema;
use souk_engine::{Attributes, ColumnReader, Columns, CorruptRow, Resource as _, key};

use super::Shop;

pub(super) fn schema() -> TableSchema {
    key::hashed_table(Shop::TABLE)
}

pub(super) fn to_columns(shop: &Shop) -> Columns {
    let columns = Columns::new()
        .string("name", &shop.name)
        .string("type", &shop.kind)
        .point("position", shop.position)
        .double("rating", shop.rating)
        .integer("average_price_cents", shop.average_price_cents)
        .string("address", &shop.address)
        .string("city", &shop.city)
        .string("phone", &shop.phone)
        .string("opening_hours", &shop.opening_hours)
        .strings("tags", &shop.tags);
    shop.attributes.to_column(columns, "attributes")
}

pub(super) fn from_columns(id: &str, columns: &ColumnReader<'_>) -> Result<Shop, CorruptRow> {
    Ok(Shop {
        shop_id: id.to_owned(),
        name: columns.string("name")?,
        kind: columns.string("type")?,
        position: columns.point("position")?,
        rating: columns.optional_double("rating")?,
        average_price_cents: columns.optional_integer("average_price_cents")?,
        address: columns.string("address")?,
        city: columns.string("city")?,
        phone: columns.string("phone")?,
        opening_hours: columns.string("opening_hours")?,
        tags: columns.strings("tags")?,
        attributes: Attributes::from_column(columns, "attributes")?,
    })
}

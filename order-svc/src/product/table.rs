//! Products as rows.

use souk_engine::storage::TableSchema;
use souk_engine::{Attributes, ColumnReader, Columns, CorruptRow, Resource as _, key};

use super::Product;

pub(super) fn schema() -> TableSchema {
    key::hashed_table(Product::TABLE)
}

pub(super) fn to_columns(product: &Product) -> Columns {
    let columns = Columns::new()
        .string("name", &product.name)
        .string("brand", &product.brand)
        .string("type", &product.kind)
        .integer("unit_price_cents", product.unit_price_cents);
    product.attributes.to_column(columns, "attributes")
}

pub(super) fn from_columns(id: &str, columns: &ColumnReader<'_>) -> Result<Product, CorruptRow> {
    Ok(Product {
        product_id: id.to_owned(),
        name: columns.string("name")?,
        brand: columns.string("brand")?,
        kind: columns.string("type")?,
        unit_price_cents: columns.optional_integer("unit_price_cents")?,
        attributes: Attributes::from_column(columns, "attributes")?,
    })
}

//! Products as a table. Columns and search fields have the names of the message's fields.

use souk_api::{SuggestFields, SuggestOrder};
use souk_engine::index::{Analyzer, Field, FieldKind};
use souk_engine::{
    Attributes, ColumnReader, Columns, CorruptRow, Reading, Resource as _, Source, TableDefinition, ValueType,
};

use super::Product;

/// The name in lower case, by which names are suggested.
const NAME_FOLDED: &str = "name_folded";

/// How products' names are suggested.
pub(super) const SUGGEST: SuggestFields<'static> = SuggestFields {
    folded: NAME_FOLDED,
    written: "name.keyword",
    words: "name",
    order: SuggestOrder::Alphabetical,
};

pub(super) fn definition() -> TableDefinition {
    let folded = Source::column("name").read(Reading::Folded);
    TableDefinition::hashed(Product::TABLE)
        .column("attributes", ValueType::Attributes)
        .id_field(Field::keyword("product_id").key())
        .field(Field::text("name", Analyzer::MaxWord).sub_field("keyword", FieldKind::Keyword))
        .field_from(Field::keyword(NAME_FOLDED), folded)
        .field(Field::keyword("brand"))
        .field(Field::keyword("type"))
        .field(Field::long("unit_price_cents"))
        .field(Field::attributes("attributes"))
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

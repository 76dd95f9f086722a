//! Shops as a table. Columns and search fields have the names of the message's fields.

use souk_api::{SuggestFields, SuggestOrder};
use souk_engine::index::{Analyzer, Field, FieldKind};
use souk_engine::{
    Attributes, ColumnReader, Columns, CorruptRow, Reading, Resource as _, Source, TableDefinition, ValueType,
};

use super::Shop;

/// The field that shops are near by.
pub(super) const POSITION: &str = "position";
/// The field that the best shop is known by.
pub(super) const RATING: &str = "rating";
/// The name in lower case, by which names are suggested.
const NAME_FOLDED: &str = "name_folded";

/// How shops' names are suggested.
pub(super) const SUGGEST: SuggestFields<'static> = SuggestFields {
    folded: NAME_FOLDED,
    written: "name.keyword",
    words: "name",
    order: SuggestOrder::HighestOrNearest {
        highest: RATING,
        position: POSITION,
    },
};

pub(super) fn definition() -> TableDefinition {
    let folded = Source::column("name").read(Reading::Folded);
    TableDefinition::hashed(Shop::TABLE)
        .column(POSITION, ValueType::Point)
        .column("tags", ValueType::strings())
        .column("attributes", ValueType::Attributes)
        .id_field(Field::keyword("shop_id").key())
        .field(Field::text("name", Analyzer::MaxWord).sub_field("keyword", FieldKind::Keyword))
        .field_from(Field::keyword(NAME_FOLDED), folded)
        .field(Field::keyword("type"))
        .field(Field::geo_point(POSITION))
        .field(Field::double(RATING))
        // Money is exact: LONG, where DOUBLE would round above 2^53.
        .field(Field::long("average_price_cents"))
        .field(Field::text("address", Analyzer::MaxWord).sub_field("keyword", FieldKind::Keyword))
        .field(Field::keyword("city"))
        .field(Field::keyword("phone"))
        .field(Field::keyword("opening_hours"))
        .field(Field::keyword("tags").array())
        .field(Field::attributes("attributes"))
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

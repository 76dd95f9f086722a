//! Shops as documents. Field names are those of the message.

use souk_api::{SuggestFields, SuggestOrder};
use souk_engine::index::analyze::folded;
use souk_engine::index::{Analyzer, Field, FieldKind, Object};

use super::Shop;

/// The field that shops are near by.
pub(super) const POSITION: &str = "position";

/// The name in lower case, by which names are suggested.
const NAME_FOLDED: &str = "name_folded";
/// The field that the best shop is known by.
pub(super) const RATING: &str = "rating";

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

pub(super) fn fields() -> Vec<Field> {
    vec![
        Field::keyword("shop_id").key(),
        Field::text("name", Analyzer::MaxWord).sub_field("keyword", FieldKind::Keyword),
        Field::keyword(NAME_FOLDED),
        Field::keyword("type"),
        Field::geo_point(POSITION),
        Field::double(RATING),
        // Money is exact: LONG, where DOUBLE would round above 2^53.
        Field::long("average_price_cents"),
        Field::text("address", Analyzer::MaxWord).sub_field("keyword", FieldKind::Keyword),
        Field::keyword("city"),
        Field::keyword("phone"),
        Field::keyword("opening_hours"),
        Field::keyword("tags").array(),
        Field::attributes("attributes"),
    ]
}

pub(super) fn write(shop: &Shop, document: &mut Object) {
    document.push_text("shop_id", &shop.shop_id);
    document.push_text("name", &shop.name);
    document.push_text(NAME_FOLDED, &folded(&shop.name));
    document.push_text("type", &shop.kind);
    document.push(POSITION, shop.position);
    if let Some(rating) = shop.rating {
        document.push(RATING, rating);
    }
    if let Some(price) = shop.average_price_cents {
        document.push("average_price_cents", price);
    }
    document.push_text("address", &shop.address);
    document.push_text("city", &shop.city);
    document.push_text("phone", &shop.phone);
    document.push_text("opening_hours", &shop.opening_hours);
    for tag in &shop.tags {
        document.push_text("tags", tag);
    }
    shop.attributes.to_document(document, "attributes");
}

//! Products as documents. Field names are those of the message.

use souk_api::{SuggestFields, SuggestOrder};
use souk_engine::index::analyze::folded;
use souk_engine::index::{Analyzer, Field, FieldKind, Object};

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

pub(super) fn fields() -> Vec<Field> {
    vec![
        Field::keyword("product_id").key(),
        Field::text("name", Analyzer::MaxWord).sub_field("keyword", FieldKind::Keyword),
        Field::keyword(NAME_FOLDED),
        Field::keyword("brand"),
        Field::keyword("type"),
        Field::long("unit_price_cents"),
        Field::attributes("attributes"),
    ]
}

pub(super) fn write(product: &Product, document: &mut Object) {
    document.push_text("product_id", &product.product_id);
    document.push_text("name", &product.name);
    document.push_text(NAME_FOLDED, &folded(&product.name));
    document.push_text("brand", &product.brand);
    document.push_text("type", &product.kind);
    if let Some(price) = product.unit_price_cents {
        document.push("unit_price_cents", price);
    }
    product.attributes.to_document(document, "attributes");
}

//! People as documents. Field names are those of the message.

use souk_engine::index::{Analyzer, Field, FieldKind, Object};

use super::Person;

pub(super) fn fields() -> Vec<Field> {
    vec![
        Field::keyword("id").key(),
        // Names are looked up as a whole; `name.text` finds parts of them.
        Field::keyword("name").sub_field("text", FieldKind::Text(Analyzer::single_word())),
        Field::keyword("phone"),
        Field::text("address", Analyzer::MaxWord).sub_field("keyword", FieldKind::Keyword),
        Field::keyword("region"),
        Field::attributes("attributes"),
    ]
}

pub(super) fn write<P>(person: &Person<P>, document: &mut Object) {
    document.push_text("id", &person.id);
    document.push_text("name", &person.name);
    document.push_text("phone", &person.phone);
    document.push_text("address", &person.address);
    document.push_text("region", &person.region);
    person.attributes.to_document(document, "attributes");
}

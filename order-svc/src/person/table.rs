//! People as a table. Columns and search fields have the names of the message's fields.

use std::marker::PhantomData;

use souk_engine::index::{Analyzer, Field, FieldKind};
use souk_engine::{Attributes, ColumnReader, Columns, CorruptRow, TableDefinition, ValueType};

use super::{Part, Person};

pub(super) fn definition<P: Part>() -> TableDefinition {
    TableDefinition::hashed(P::TABLE)
        .owner(P::ROLE.word(), "id")
        .column("attributes", ValueType::Attributes)
        .id_field(Field::keyword("id").key())
        // Names are looked up as a whole; `name.text` finds parts of them.
        .field(Field::keyword("name").sub_field("text", FieldKind::Text(Analyzer::single_word())))
        .field(Field::keyword("phone"))
        .field(Field::text("address", Analyzer::MaxWord).sub_field("keyword", FieldKind::Keyword))
        .field(Field::keyword("region"))
        .field(Field::attributes("attributes"))
}

pub(super) fn to_columns<P>(person: &Person<P>) -> Columns {
    let columns = Columns::new()
        .string("name", &person.name)
        .string("phone", &person.phone)
        .string("address", &person.address)
        .string("region", &person.region);
    person.attributes.to_column(columns, "attributes")
}

pub(super) fn from_columns<P>(id: &str, columns: &ColumnReader<'_>) -> Result<Person<P>, CorruptRow> {
    Ok(Person {
        id: id.to_owned(),
        name: columns.string("name")?,
        phone: columns.string("phone")?,
        address: columns.string("address")?,
        region: columns.string("region")?,
        attributes: Attributes::from_column(columns, "attributes")?,
        part: PhantomData,
    })
}

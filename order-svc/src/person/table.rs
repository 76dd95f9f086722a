//! People as rows.

use std::marker::PhantomData;

use souk_engine::storage::TableSchema;
use souk_engine::{Attributes, ColumnReader, Columns, CorruptRow, key};

use super::{Part, Person};

pub(super) fn schema<P: Part>() -> TableSchema {
    key::hashed_table(P::TABLE)
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

//! Consumers and salespersons: two tables of one shape.

use std::fmt::Debug;
use std::marker::PhantomData;

use souk_access::Role;
use souk_engine::{Attributes, ColumnReader, Columns, CorruptRow, Resource, TableDefinition};

mod consumer_api;
mod salesperson_api;
mod table;
mod wire;

pub use consumer_api::ConsumerApi;
pub use salesperson_api::SalespersonApi;

/// Longest name of a person, in characters.
pub const NAME_CHARS_MAX: usize = 256;

/// In which part people take part in orders: which table they are in.
pub trait Part: Clone + Debug + PartialEq + Send + Sync + 'static {
    /// The table's name.
    const TABLE: &'static str;
    /// The resource's name, which is also the field that holds it in requests.
    const NAME: &'static str;
    /// The role of those who are one of them.
    const ROLE: Role;
}

/// People who buy.
#[derive(Clone, Debug, PartialEq)]
pub enum Consumer {}

impl Part for Consumer {
    const TABLE: &'static str = "consumers";
    const NAME: &'static str = "consumer";
    const ROLE: Role = Role::Consumer;
}

/// People who sell.
#[derive(Clone, Debug, PartialEq)]
pub enum Salesperson {}

impl Part for Salesperson {
    const TABLE: &'static str = "salespersons";
    const NAME: &'static str = "salesperson";
    const ROLE: Role = Role::Seller;
}

/// A person in one part.
#[derive(Clone, Debug, PartialEq)]
pub struct Person<P> {
    /// The caller's id, unique among those of the same part.
    pub id: String,
    /// The name.
    pub name: String,
    /// The telephone number; may be empty.
    pub phone: String,
    /// The postal address; may be empty.
    pub address: String,
    /// The region; may be empty.
    pub region: String,
    /// Anything else.
    pub attributes: Attributes,
    /// Which part.
    pub part: PhantomData<fn() -> P>,
}

impl<P: Part> Resource for Person<P> {
    const TABLE: &'static str = P::TABLE;
    const NAME: &'static str = P::NAME;
    const ID_FIELD: &'static str = "id";

    fn definition() -> TableDefinition {
        table::definition::<P>()
    }

    fn id(&self) -> &str {
        &self.id
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

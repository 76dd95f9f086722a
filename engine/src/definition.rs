//! Table definitions: what a table is, as a value from which everything that the engine does with it follows.
//!
//! A definition holds the store's [`TableSchema`] (name, key, options, secondary indexes) and what the engine adds to it: how
//! the values of columns are to be read, what is searched and where each field comes from, and whose a row is. It comes from
//! code ([`crate::Resource::definition`]), or from the [catalog](crate::Engine::create_table).

pub(crate) mod check;
mod date_format;
pub mod index_name;
mod source;
mod value_type;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use souk_index::Field;
use souk_storage::{SecondaryIndexSchema, TableSchema};

pub use self::date_format::{DateFormat, MAX_DATE_FORMATS, NoDateFormat};
pub use self::source::{Reading, Source, TimeUnit};
pub use self::value_type::{ColumnDefinition, Member, ValueType};
use crate::key::{self, ID_COLUMN};

/// Longest name of a table, bytes: with what the store, the feeds of its index and their folders put around it, it is still a name.
pub const MAX_TABLE_NAME_BYTES: usize = 200;
/// Most declared columns of a table.
pub const MAX_COLUMNS: usize = 1_024;
/// Most kinds of owners of a table.
pub const MAX_OWNERS: usize = 8;
/// Most search indexes of a table.
pub const MAX_SEARCH_INDEXES: usize = 8;
/// Highest weight of an index.
pub const MAX_WEIGHT: u8 = 100;
/// Longest path of a source into what a column holds, in names.
pub const MAX_PATH_NAMES: usize = 16;
/// Longest definition as the catalog keeps it, bytes.
pub const MAX_DEFINITION_BYTES: usize = 256 << 10;
/// Deepest nesting of a [`ValueType`].
pub const MAX_VALUE_LEVELS: usize = 8;

/// See the module's documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDefinition {
    /// Name, key, options and secondary indexes.
    pub schema: TableSchema,
    /// What one row is called in messages, for example `order`.
    pub item: String,
    /// How the values of columns are read. Tables are free of a schema: a column that isn't here holds what its cells say.
    pub columns: Vec<ColumnDefinition>,
    /// What is searched, at most [`MAX_SEARCH_INDEXES`]; none is a table without search.
    pub indexes: Vec<SearchIndexDefinition>,
    /// Whose a row is. A kind of owner that isn't here has no rows of its own: its calls are refused.
    pub owners: Vec<OwnerDefinition>,
}

/// What is searched in a table, by one of its indexes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchIndexDefinition {
    /// That of its table, or `<table>.<name>`: see [`index_name`].
    pub name: String,
    /// Its share of the searches that name no index, 0 to [`MAX_WEIGHT`], in proportion to those of the table's other indexes: at 0 it
    /// gets none.
    pub weight: u8,
    /// The fields.
    pub fields: Vec<Field>,
    /// Where the values of top-level fields come from. A field that isn't here comes from the column, or key column, of its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, Source>,
    /// To be raised to have the index built anew.
    #[serde(default)]
    pub version: u32,
    /// How often it was asked to be built anew while the table is served: [`crate::index_admin::Redesign::rebuild`] counts.
    #[serde(default)]
    pub builds: u32,
    /// The last sequence of the database when it was created beside others: it tells it from an earlier index of its name. 0 of one that
    /// came with its table.
    #[serde(default)]
    pub(crate) created_after: u64,
    /// What those who made it keep with it, in their own words: the engine doesn't read it, and the index is the same whatever it says.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl SearchIndexDefinition {
    /// An index without fields, which gets searches that name it alone.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            weight: 0,
            fields: Vec::new(),
            sources: BTreeMap::new(),
            version: 0,
            builds: 0,
            created_after: 0,
            note: String::new(),
        }
    }

    /// Sets its share of the searches that name no index, 0 to [`MAX_WEIGHT`].
    #[must_use]
    pub fn weight(mut self, weight: u8) -> Self {
        self.weight = weight;
        self
    }

    /// Where the values of a top-level field come from.
    #[must_use]
    pub fn source(&self, field: &str) -> Source {
        let given = self.sources.get(field).cloned();
        given.unwrap_or_else(|| Source::column(field))
    }

    /// Adds a field that comes from the column of its name.
    #[must_use]
    pub fn field(mut self, field: Field) -> Self {
        self.fields.push(field);
        self
    }

    /// Adds a field that comes from `source`.
    #[must_use]
    pub fn field_from(mut self, field: Field, source: Source) -> Self {
        self.sources.insert(field.name().to_owned(), source);
        self.field(field)
    }
}

/// A kind of owner that has rows of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerDefinition {
    /// The kind of owner, for example `consumer`.
    pub kind: String,
    /// The KEYWORD field that names the owner; it comes from a column or key column as it is.
    pub field: String,
}

impl TableDefinition {
    /// A table of a schema, without search index.
    #[must_use]
    pub fn new(schema: TableSchema) -> Self {
        Self {
            schema,
            item: "row".to_owned(),
            columns: Vec::new(),
            indexes: Vec::new(),
            owners: Vec::new(),
        }
    }

    /// A table whose rows have an id, by which they are spread over the key space: see [`key::hashed`].
    #[must_use]
    pub fn hashed(name: &str) -> Self {
        Self::new(key::hashed_table(name))
    }

    /// The table's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.schema.name
    }

    /// The first search index: the one with the table's name.
    #[must_use]
    pub fn search(&self) -> Option<&SearchIndexDefinition> {
        self.search_index(self.name())
    }

    /// [`Self::search`], which is added, with all searches that name none, where there is none.
    pub fn search_mut(&mut self) -> &mut SearchIndexDefinition {
        let name = &self.schema.name;
        let at = self.indexes.iter().position(|index| index.name == *name);
        let at = at.unwrap_or_else(|| {
            let first = SearchIndexDefinition::new(name).weight(MAX_WEIGHT);
            self.indexes.insert(0, first);
            0
        });
        &mut self.indexes[at]
    }

    /// The search index of a name.
    #[must_use]
    pub fn search_index(&self, name: &str) -> Option<&SearchIndexDefinition> {
        self.indexes.iter().find(|index| index.name == name)
    }

    /// Names what one row is called in messages.
    #[must_use]
    pub fn item(mut self, item: impl Into<String>) -> Self {
        self.item = item.into();
        self
    }

    /// Declares how a column's values are read.
    #[must_use]
    pub fn column(mut self, name: impl Into<String>, value: ValueType) -> Self {
        let name = name.into();
        self.columns.push(ColumnDefinition { name, value });
        self
    }

    /// Adds a secondary index.
    #[must_use]
    pub fn secondary(mut self, index: SecondaryIndexSchema) -> Self {
        self.schema = self.schema.index(index);
        self
    }

    /// Adds a search index.
    #[must_use]
    pub fn index(mut self, index: SearchIndexDefinition) -> Self {
        self.indexes.push(index);
        self
    }

    /// Adds a field to the first search index that comes from the column of its name.
    #[must_use]
    pub fn field(mut self, field: Field) -> Self {
        self.search_mut().fields.push(field);
        self
    }

    /// Adds a field to the first search index.
    #[must_use]
    pub fn field_from(mut self, field: Field, source: Source) -> Self {
        let search = self.search_mut();
        search.sources.insert(field.name().to_owned(), source);
        search.fields.push(field);
        self
    }

    /// Adds a search field with the id of a [hashed](Self::hashed) table.
    #[must_use]
    pub fn id_field(self, field: Field) -> Self {
        self.field_from(field, Source::column(ID_COLUMN))
    }

    /// Lets a kind of owner have rows of its own.
    #[must_use]
    pub fn owner(mut self, kind: impl Into<String>, field: impl Into<String>) -> Self {
        let (kind, field) = (kind.into(), field.into());
        self.owners.push(OwnerDefinition { kind, field });
        self
    }

    /// The column, or key column, that names an owner.
    #[must_use]
    pub fn owner_column(&self, owner: &OwnerDefinition) -> String {
        let field = &owner.field;
        // Each search index fills the field from the same column: checked when the table is created.
        match self.indexes.first() {
            Some(index) => index.source(field).column,
            None => field.clone(),
        }
    }

    /// Whether its keys are those of [`key::hashed`].
    #[must_use]
    pub fn is_hashed(&self) -> bool {
        key::is_hashed(&self.schema)
    }

    /// The names of its key columns.
    pub(crate) fn key_columns(&self) -> Vec<String> {
        self.schema.key.iter().map(|(name, _)| name.clone()).collect()
    }
}

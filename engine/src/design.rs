//! What an index of a table is made for: its schema, and where the values of its fields come from.
//!
//! A design is kept with the index that was made for it (its schema by the index, the rest as the index's label), so
//! that an index goes on serving and following the log after the definition has changed.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use souk_index::{Document, Index, Kept, Object, Operation, Schema};
use souk_storage::{PrimaryKey, Row, RowChange};
use xxhash_rust::xxh3::Xxh3;

use crate::definition::{ColumnDefinition, SearchIndexDefinition, Source, TableDefinition};
use crate::document::DocumentReader;
use crate::error::Result;
use crate::key::{self, HASH_COLUMN, ID_COLUMN};

/// Version of the documents that are made of rows by sources. It changes with them, so that indexes with older documents are rebuilt.
const DOCUMENT_VERSION: u32 = 1;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Design {
    pub(crate) schema: Schema,
    label: Label,
    documents: DocumentReader,
    /// Whether documents have ids as keys.
    hashed: bool,
    fingerprint: u64,
    /// What page tokens say of it, and the history for which that was worked out: a database has one while it runs.
    token_design: OnceLock<(u64, u64)>,
}

/// The part of a design that its index doesn't know.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Label {
    /// Which index of which table it is: page tokens belong to one.
    index: String,
    #[serde(default)]
    created_after: u64,
    version: u32,
    #[serde(default)]
    builds: u32,
    sources: BTreeMap<String, Source>,
    /// The declared columns that the sources name.
    columns: Vec<ColumnDefinition>,
    /// The names of the key columns.
    key: Vec<String>,
    /// Of the database whose changes the index counts.
    #[serde(default)]
    history: u64,
}

impl Design {
    /// The design of an index of a table as it is defined.
    ///
    /// # Errors
    /// [`souk_index::Error::InvalidSchema`].
    pub(crate) fn new(table: &TableDefinition, search: &SearchIndexDefinition) -> Result<Self> {
        let columns = table.columns.iter();
        let named: Vec<String> = search
            .fields
            .iter()
            .map(|field| search.source(field.name()).column)
            .collect();
        let columns = columns.filter(|column| named.contains(&column.name)).cloned();
        let label = Label {
            index: search.name.clone(),
            created_after: search.created_after,
            version: search.version,
            builds: search.builds,
            sources: search.sources.clone(),
            columns: columns.collect(),
            key: table.key_columns(),
            history: 0,
        };
        Ok(Self::labelled(Schema::new(search.fields.clone())?, label))
    }

    fn labelled(schema: Schema, label: Label) -> Self {
        let search = SearchIndexDefinition {
            fields: schema.fields().to_vec(),
            sources: label.sources.clone(),
            ..SearchIndexDefinition::new("")
        };
        let mut hash = Xxh3::new();
        hash.update(&schema.fingerprint().to_be_bytes());
        hash.update(&DOCUMENT_VERSION.to_be_bytes());
        hash.update(&key::DOCUMENT_KEY_VERSION.to_be_bytes());
        hash.update(label.text().as_bytes());
        Self {
            documents: DocumentReader::new(&search, &label.columns, &label.key),
            hashed: label.key == [HASH_COLUMN, ID_COLUMN],
            fingerprint: hash.digest(),
            schema,
            label,
            token_design: OnceLock::new(),
        }
    }

    /// What tells an index that answers like this from all others.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The label of an index that is made for this, in a history of the database.
    pub(crate) fn label(&self, history: u64) -> String {
        let label = self.label.clone();
        Label { history, ..label }.text()
    }

    /// What the page tokens of an index that is made for this, in a history of the database, say of it.
    pub(crate) fn token_design(&self, history: u64) -> u64 {
        let work_out = || (history, Index::token_design(&self.schema, &self.label(history)));
        match *self.token_design.get_or_init(work_out) {
            (known, design) if known == history => design,
            _ => work_out().1,
        }
    }

    /// The design of an index that was made by this version or an earlier one; `None` when it can't be known.
    pub(crate) fn kept(kept: Kept) -> Option<Self> {
        let label: Label = serde_json::from_str(&kept.label).ok()?;
        let label = Label { history: 0, ..label };
        Some(Self::labelled(kept.schema, label))
    }

    /// The history of the database that an index was made in; `None` when it can't be known.
    pub(crate) fn kept_history(kept: &Kept) -> Option<u64> {
        serde_json::from_str(&kept.label)
            .ok()
            .map(|label: Label| label.history)
    }

    /// Whether a field is a column, or key column, as it is.
    pub(crate) fn has_as_is(&self, field: &str, column: &str) -> bool {
        match self.label.sources.get(field) {
            Some(source) => *source == Source::column(column),
            None => field == column,
        }
    }

    /// Where the values of a field come from, where that isn't the column of its name.
    pub(crate) fn source(&self, field: &str) -> Option<&Source> {
        self.label.sources.get(field)
    }

    /// The fields of a row's document.
    pub(crate) fn fields(&self, row: &Row) -> Object {
        self.documents.read(row)
    }

    fn document(&self, row: &Row) -> Document {
        Document {
            key: self.key(&row.key),
            fields: self.fields(row),
        }
    }

    fn key(&self, key: &PrimaryKey) -> Vec<u8> {
        match self.hashed {
            true => key::hashed_document_key(key),
            false => key::to_document_key(key),
        }
    }

    /// What a change of a row is to the index.
    pub(crate) fn operation(&self, change: &RowChange) -> Operation {
        match &change.row {
            Some(row) => self.upsert(row),
            None => self.delete(&change.key),
        }
    }

    /// A row, in the place of what it was before.
    pub(crate) fn upsert(&self, row: &Row) -> Operation {
        Operation::Upsert(self.document(row))
    }

    /// A row of which the index has nothing yet.
    pub(crate) fn insert(&self, row: &Row) -> Operation {
        Operation::Insert(self.document(row))
    }

    /// A row that is gone.
    pub(crate) fn delete(&self, key: &PrimaryKey) -> Operation {
        Operation::Delete { key: self.key(key) }
    }
}

impl Label {
    fn text(&self) -> String {
        // Strings, numbers and lists: there is nothing that can't be written.
        serde_json::to_string(self).unwrap_or_default()
    }
}

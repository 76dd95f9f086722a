//! Secondary indexes as the tables that clients read: their key is the index's columns and what of the table's key isn't among them.

use std::collections::BTreeMap;
use std::sync::Arc;

use souk_engine::storage::{
    CapacityUnits, IndexEntry, IndexPage, IndexRequest, KeyKind, KeyValue, SecondaryIndexSchema, TableSchema,
    Value as Stored,
};
use souk_engine::{IndexView, MAX_PAGE_BYTES, TableDefinition, TableHandle, ValueType};
use souk_tablestore::plainbuffer::PlainBufferEncoder;
use souk_tablestore::{KeyColumn, KeyElement, Reason, ServiceError};

use crate::context::Context;
use crate::error::refused;
use crate::schema::{DeclaredType, column_type, with_key};
use crate::value::{key_element, stored_key, told};

/// What a client means by the name of a table.
pub(crate) enum TableOrIndex {
    Table(TableHandle),
    Index(Box<IndexTable>),
}

impl TableOrIndex {
    /// The table or the secondary index of a name.
    pub(crate) fn find(context: &Context, name: &str) -> Result<Self, ServiceError> {
        if let Some(table) = context.existing(name)? {
            return Ok(Self::Table(table));
        }
        match IndexTable::find(context, name)? {
            Some(index) => Ok(Self::Index(Box::new(index))),
            None => Err(Reason::NoSuchTable.into()),
        }
    }
}

/// The table of a write. Secondary indexes are written by the store alone.
pub(crate) fn written_table(context: &Context, name: &str) -> Result<TableHandle, ServiceError> {
    match TableOrIndex::find(context, name)? {
        TableOrIndex::Table(table) => Ok(table),
        TableOrIndex::Index(_) => Err(Reason::IndexTableWritten.into()),
    }
}

/// A secondary index.
pub(crate) struct IndexTable {
    pub(crate) table: TableHandle,
    pub(crate) definition: Arc<TableDefinition>,
    pub(crate) index: SecondaryIndexSchema,
    /// What clients take for the schema of a table: its name and its key.
    pub(crate) schema: TableSchema,
    min_sequence: u64,
}

impl IndexTable {
    /// The index of a name, of whichever table of the instance.
    pub(crate) fn find(context: &Context, name: &str) -> Result<Option<Self>, ServiceError> {
        for (table, definition) in context.tables() {
            if let Some(index) = definition.schema.indexes.iter().find(|index| index.name == name) {
                let table = context.table(&table)?;
                let min_sequence = context.min_sequence;
                let found = Self::new(table, Arc::clone(&definition), index.clone(), min_sequence);
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn new(
        table: TableHandle,
        definition: Arc<TableDefinition>,
        index: SecondaryIndexSchema,
        min_sequence: u64,
    ) -> Self {
        let mut schema = TableSchema::new(&index.name);
        for column in with_key(&definition.schema, &index.columns) {
            let kind = match column_type(&definition, &column) {
                Ok(DeclaredType::Key(kind)) => kind,
                Ok(DeclaredType::Attribute(ValueType::Integer | ValueType::Time | ValueType::Duration)) => {
                    KeyKind::Integer
                }
                Ok(DeclaredType::Attribute(ValueType::Binary)) => KeyKind::Binary,
                // Whatever it is declared as by others than clients of this kind.
                Ok(DeclaredType::Attribute(_)) | Err(_) => KeyKind::String,
            };
            schema = schema.key(column, kind);
        }
        Self {
            table,
            definition,
            index,
            schema,
            min_sequence,
        }
    }

    /// The values by which the engine orders its entries, those of its columns and then of the table's key: as many as are known from
    /// the first values of a key of this table.
    pub(crate) fn bound(&self, key: &[KeyValue]) -> Vec<Stored> {
        let names = self.schema.key.iter().map(|(name, _)| name.as_str());
        let known: BTreeMap<&str, &KeyValue> = names.zip(key).collect();
        let columns = self.index.columns.iter();
        let order = columns.chain(self.definition.schema.key.iter().map(|(name, _)| name));
        order
            .map_while(|name| known.get(name.as_str()).map(|value| stored_key(value)))
            .collect()
    }

    /// The key of an entry.
    pub(crate) fn key(&self, entry: &IndexEntry) -> Vec<KeyColumn> {
        let columns = self.index.columns.iter().zip(&entry.values);
        let mut values: BTreeMap<&str, KeyElement> = BTreeMap::new();
        for (name, value) in columns {
            values.insert(name, element(value));
        }
        for ((name, _), value) in self.definition.schema.key.iter().zip(entry.key.values()) {
            values.insert(name, key_element(value));
        }
        let names = self.schema.key.iter();
        let columns = names.filter_map(|(name, _)| {
            let value = values.remove(name.as_str())?;
            Some(KeyColumn::new(name.as_str(), value))
        });
        columns.collect()
    }

    /// All values by which the engine orders an entry.
    pub(crate) fn whole(&self, entry: &IndexEntry) -> Vec<Stored> {
        let key = entry.key.values().iter().map(stored_key);
        entry.values.iter().cloned().chain(key).collect()
    }

    /// Writes an entry as a row, its columns by their names as those of any row. Entries have no versions.
    pub(crate) fn write(&self, entry: &IndexEntry, out: &mut PlainBufferEncoder) {
        let mut row = out.row();
        for column in self.key(entry) {
            row.key(&column.name, &column.value);
        }
        let mut included: Vec<_> = entry.included.iter().collect();
        included.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        for (column, value) in included {
            row.cell(column, Some(&told(value)), None, None);
        }
        row.finish(false, None);
    }

    /// The columns that a read of some names is about; `None` are all. What entries always have is named where nothing else is.
    pub(crate) fn selected(&self, names: &[String]) -> Option<Vec<String>> {
        if names.is_empty() {
            return None;
        }
        let included = self.index.included.iter().filter(|column| names.contains(column));
        let columns = self.index.columns.iter().take(1);
        Some(columns.chain(included).cloned().collect())
    }

    /// Whether a read that gives these names is answered with the entry: it has one of them, or none was given.
    pub(crate) fn has_any(&self, names: &[String], entry: &IndexEntry) -> bool {
        names.is_empty()
            || self.schema.key.iter().any(|(key, _)| names.contains(key))
            || !entry.included.is_empty()
    }

    /// What reads of it see that are to see the same.
    pub(crate) async fn view(&self) -> Result<IndexView<'_>, ServiceError> {
        self.table.index_view(self.min_sequence).await.map_err(refused)
    }

    /// The first entries of a range: none at its end alone. There may be expired ones before them.
    pub(crate) async fn page(
        &self,
        view: &IndexView<'_>,
        request: &IndexRequest,
    ) -> Result<IndexPage, ServiceError> {
        let (mut request, mut cost) = (request.clone(), CapacityUnits::default());
        loop {
            let mut page = self.part(view, &mut request).await?;
            cost += page.consumed;
            if !page.entries.is_empty() || page.next.is_none() {
                page.consumed = cost;
                return Ok(page);
            }
        }
    }

    /// What is read of a range at once; the request then goes on behind it. There may be more, even where nothing was found.
    pub(crate) async fn part(
        &self,
        view: &IndexView<'_>,
        request: &mut IndexRequest,
    ) -> Result<IndexPage, ServiceError> {
        request.bytes = MAX_PAGE_BYTES;
        let page = view.page(request).await.map_err(refused)?;
        request.after.clone_from(&page.next);
        Ok(page)
    }
}

fn element(value: &Stored) -> KeyElement {
    match value {
        Stored::Integer(number) => KeyElement::Integer(*number),
        Stored::String(text) => KeyElement::String(text.clone()),
        Stored::Binary(bytes) => KeyElement::Binary(bytes.clone()),
        // An index may hold them where the column's values aren't of its declared type; keys have no such.
        Stored::Double(number) => KeyElement::String(number.to_string().into()),
        Stored::Boolean(truth) => KeyElement::String(truth.to_string().into()),
    }
}

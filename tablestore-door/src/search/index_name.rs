//! Names of search indexes: clients choose them freely, those of the engine are `<table>.<name>` in lower case.

use ring::digest::{SHA256, digest};
use souk_engine::definition::index_name::{MAX_INDEX_NAME_BYTES, table_of};
use souk_engine::{SearchIndexDefinition, TableDefinition};
use souk_tablestore::messages::IndexSchema;
use souk_tablestore::{ServiceError, name};

use super::note::Note;
use super::schema::described;
use crate::error::{invalid, no_index};

/// A search index with its note; of one that wasn't created by this endpoint, with the note that it would have.
pub(super) struct NamedIndex<'a> {
    pub(super) index: &'a SearchIndexDefinition,
    pub(super) note: Note,
}

impl<'a> NamedIndex<'a> {
    /// Clients call an index as they named it, or, if it wasn't made here, what follows the table's name in its own; the first one of a table
    /// has the name of that, as `table` is called by clients.
    fn new(index: &'a SearchIndexDefinition, table: &str) -> Self {
        let note = Note::of(index).unwrap_or_else(|| {
            let own = index.name.strip_prefix(table_of(&index.name)).unwrap_or_default();
            Note {
                name: own.strip_prefix('.').unwrap_or(table).to_owned(),
                ..Note::default()
            }
        });
        Self { index, note }
    }

    /// The schema: as it was given, or as it would be.
    pub(super) fn schema(&self) -> IndexSchema {
        let given = self.note.schema.clone();
        given.unwrap_or_else(|| described(self.index))
    }
}

/// The search indexes of a table.
pub(super) fn named_indexes<'a>(
    definition: &'a TableDefinition,
    table: &str,
) -> impl Iterator<Item = NamedIndex<'a>> {
    definition
        .indexes
        .iter()
        .map(move |index| NamedIndex::new(index, table))
}

/// The index of a table that a client names.
///
/// # Errors
/// There is none.
pub(super) fn find<'a>(
    definition: &'a TableDefinition,
    table: &str,
    name: Option<&str>,
) -> Result<NamedIndex<'a>, ServiceError> {
    let found = named_indexes(definition, table).find(|named| name == Some(named.note.name.as_str()));
    found.ok_or_else(no_index)
}

/// Refuses a name that no index may have.
pub(super) fn check_name(name: &str) -> Result<(), ServiceError> {
    match name::is_name(name) {
        true => Ok(()),
        false => Err(invalid(format!("Invalid index name: '{}'.", name::told(name)))),
    }
}

/// What a new index of a table is called in the engine: behind the table's name by its own if that fits there and is free, else by a
/// digest of it.
pub(super) fn engine_name(definition: &TableDefinition, name: &str) -> String {
    let is_free = |own: &String| definition.search_index(own).is_none();
    let full = |own: &str| format!("{}.{own}", definition.name());
    let own = Some(full(name)).filter(|own| fits(name) && is_free(own));
    own.unwrap_or_else(|| {
        let mut digests = (0..=definition.indexes.len()).map(|nth| {
            let digest = digest(&SHA256, format!("{nth}{name}").as_bytes());
            let digest = digest.as_ref().iter().take(8);
            full(&digest.fold("x".to_owned(), |own, byte| own + &format!("{byte:02x}")))
        });
        digests
            .clone()
            .find(is_free)
            .or_else(|| digests.next_back())
            .unwrap_or_default()
    })
}

/// Whether a name is one that the engine takes.
fn fits(name: &str) -> bool {
    let of = |each: char| each.is_ascii_lowercase() || each.is_ascii_digit() || each == '_';
    name.len() <= MAX_INDEX_NAME_BYTES
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(of)
        && !name.ends_with('_')
        && !name.contains("__")
}

#[cfg(test)]
mod tests {
    use souk_engine::index::Field;

    use super::*;

    #[test]
    fn every_name_has_one_in_the_engine() {
        let mut table = TableDefinition::hashed("demo__orders");
        let mut names = vec![
            "orders_index",
            "Orders_Index",
            "orders__index",
            "_index",
            "index_",
            "i",
        ];
        let long = "a".repeat(255);
        names.push(&long);
        for (nth, name) in names.iter().enumerate() {
            check_name(name).expect(name);
            let own = engine_name(&table, name);
            let note = Note {
                name: (*name).to_owned(),
                ..Note::default()
            };
            let mut index = SearchIndexDefinition::new(&own);
            index.note = note.text();
            let rest = own.strip_prefix("demo__orders.").expect("behind the table");
            assert!(fits(rest), "{own}");
            table = table.index(index.field(Field::long("n")));
            assert_eq!(table.indexes.len(), nth + 1);
            let found = find(&table, "orders", Some(name)).expect(name);
            assert_eq!(found.index.name, own);
        }
        // One of another name may have it already.
        assert_ne!(engine_name(&table, "orders_index"), "demo__orders.orders_index");
        assert!(find(&table, "orders", Some("other")).is_err());
        assert!(find(&table, "orders", None).is_err());
        for wrong in ["", "1a", "a-b", "a.b", "表", &"a".repeat(256)] {
            assert!(check_name(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn indexes_that_were_made_elsewhere_have_names_too() {
        let table = TableDefinition::hashed("demo__orders")
            .field(Field::long("n"))
            .index(SearchIndexDefinition::new("demo__orders.trial").field(Field::long("n")));
        let names: Vec<_> = named_indexes(&table, "orders")
            .map(|named| named.note.name)
            .collect();
        assert_eq!(names, ["orders", "trial"]);
    }
}

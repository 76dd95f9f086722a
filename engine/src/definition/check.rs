//! What can't be a table is refused before anything is made of it.

use souk_index::{FieldKind, Schema};
use souk_storage::KeyKind;

use super::{
    ColumnDefinition, MAX_COLUMNS, MAX_OWNERS, MAX_PATH_NAMES, MAX_SEARCH_INDEXES, MAX_TABLE_NAME_BYTES,
    MAX_VALUE_LEVELS, MAX_WEIGHT, SearchIndexDefinition, Source, TableDefinition, ValueType, index_name,
};
use crate::error::{EngineError, Result};
use crate::key::{HASH_COLUMN, ID_COLUMN};

/// What the engine's own names begin with.
const OWN: char = '_';

impl TableDefinition {
    /// Refuses a definition that can't be a table. The store checks its schema.
    ///
    /// # Errors
    /// [`EngineError::InvalidDefinition`], [`EngineError::LimitExceeded`]; [`souk_index::Error::InvalidSchema`].
    pub(crate) fn check(&self) -> Result<()> {
        if self.name().starts_with(OWN) {
            return Err(self.invalid("has a name of the engine: names of tables begin with a letter"));
        }
        limit("MAX_TABLE_NAME_BYTES", MAX_TABLE_NAME_BYTES, self.name().len())?;
        let mut key = self.schema.key.iter();
        if !self.is_hashed() && key.any(|(name, _)| name == HASH_COLUMN) {
            let message = format!(
                "has key column {HASH_COLUMN:?}, which is of tables whose keys are {HASH_COLUMN:?} and {ID_COLUMN:?} alone"
            );
            return Err(self.invalid(message));
        }
        limit("MAX_COLUMNS", MAX_COLUMNS, self.columns.len())?;
        limit("MAX_OWNERS", MAX_OWNERS, self.owners.len())?;
        for (at, column) in self.columns.iter().enumerate() {
            self.check_column(column)?;
            if self
                .columns
                .iter()
                .take(at)
                .any(|other| other.name == column.name)
            {
                return Err(self.invalid(format!("declares column {:?} twice", column.name)));
            }
        }
        self.check_indexes_fit()
    }

    /// Refuses search indexes that can't be those of the table.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub(crate) fn check_indexes_fit(&self) -> Result<()> {
        self.check_indexes()?;
        self.check_owners()
    }

    fn check_indexes(&self) -> Result<()> {
        limit("MAX_SEARCH_INDEXES", MAX_SEARCH_INDEXES, self.indexes.len())?;
        for (at, index) in self.indexes.iter().enumerate() {
            let name = &index.name;
            if !index_name::is_name(name, self.name())? {
                return Err(self.invalid(format!(
                    "has a search index {name:?}: it has the table's name, or that, a dot, and a name of lower-case letters, \
                     digits and single underscores"
                )));
            }
            if self.indexes.iter().take(at).any(|other| other.name == *name) {
                return Err(self.invalid(format!("has search index {name:?} twice")));
            }
            limit("MAX_WEIGHT", MAX_WEIGHT.into(), index.weight.into())?;
            Schema::new(index.fields.clone())?;
            self.check_sources(index)?;
        }
        if !self.indexes.is_empty() && self.indexes.iter().all(|index| index.weight == 0) {
            return Err(self.invalid(
                "has search indexes none of which has a weight above 0: searches that name none need one",
            ));
        }
        Ok(())
    }

    fn check_column(&self, column: &ColumnDefinition) -> Result<()> {
        let name = &column.name;
        if name.is_empty() {
            return Err(self.invalid("declares a column without a name"));
        }
        if self.schema.key.iter().any(|(key, _)| key == name) {
            return Err(self.invalid(format!("declares key column {name:?} again")));
        }
        self.check_value(name, &column.value, false, 1)
    }

    /// `inside` is of a list or message: what is in two columns, or in a column of its own, isn't there.
    fn check_value(&self, column: &str, value: &ValueType, inside: bool, level: usize) -> Result<()> {
        limit("MAX_VALUE_LEVELS", MAX_VALUE_LEVELS, level)?;
        match value {
            ValueType::Point | ValueType::Json | ValueType::Attributes if inside => {
                let message = format!("column {column:?} holds {value:?} inside a list or message");
                Err(self.invalid(message))
            }
            ValueType::List(element) => match **element {
                ValueType::List(_) => Err(self.invalid(format!("column {column:?} holds lists in a list"))),
                ref element => self.check_value(column, element, true, level + 1),
            },
            ValueType::Message(members) => {
                limit("MAX_COLUMNS", MAX_COLUMNS, members.len())?;
                for (at, member) in members.iter().enumerate() {
                    let mut others = members.iter().take(at);
                    if others.any(|other| other.number == member.number || other.name == member.name) {
                        let name = &member.name;
                        return Err(self.invalid(format!("column {column:?} has member {name:?} twice")));
                    }
                    self.check_value(column, &member.value, true, level + 1)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn check_sources(&self, search: &SearchIndexDefinition) -> Result<()> {
        for (name, source) in &search.sources {
            if !search.fields.iter().any(|field| field.name() == name) {
                return Err(self.invalid(format!("says where {name:?} comes from, which is no field")));
            }
            limit("MAX_PATH_NAMES", MAX_PATH_NAMES, source.path.len())?;
            if source.column.is_empty() {
                return Err(self.invalid(format!("has field {name:?} come from a column without a name")));
            }
        }
        let key = search.fields.iter().find(|field| field.is_key());
        match key {
            Some(field) if !self.is_hashed() => {
                let message = format!("has field {:?} as the key, which isn't one text", field.name());
                Err(self.invalid(message))
            }
            // Its value is the key, whatever it is said to come from.
            Some(field) if search.source(field.name()) != Source::column(ID_COLUMN) => {
                let message = format!(
                    "has field {:?} as the key, which comes from {ID_COLUMN:?} as it is",
                    field.name()
                );
                Err(self.invalid(message))
            }
            _ => Ok(()),
        }
    }

    fn check_owners(&self) -> Result<()> {
        for (at, owner) in self.owners.iter().enumerate() {
            let (kind, field) = (&owner.kind, &owner.field);
            if self.owners.iter().take(at).any(|other| other.kind == *kind) {
                return Err(self.invalid(format!("names owners of kind {kind:?} twice")));
            }
            // Nothing of it is searched: rows tell.
            let mut column = field.clone();
            for (at, index) in self.indexes.iter().enumerate() {
                let named = self.check_owner_field(index, field)?;
                if at > 0 && named != column {
                    return Err(self.invalid(format!(
                        "names owners by {field:?}, which is column {column:?} in one index and {named:?} in another"
                    )));
                }
                column = named;
            }
            if !self.holds_text(&column) {
                let message = format!("names owners by column {column:?}, which holds no text");
                return Err(self.invalid(message));
            }
        }
        Ok(())
    }

    /// Refuses a field that doesn't hold what the column does that names an owner; the column.
    fn check_owner_field(&self, search: &SearchIndexDefinition, field: &str) -> Result<String> {
        let declared = search.fields.iter().find(|declared| declared.name() == field);
        if !declared.is_some_and(|declared| declared.kind() == &FieldKind::Keyword && !declared.is_array()) {
            return Err(self.invalid(format!(
                "names owners by {field:?}, which is no KEYWORD field of one value in index {:?}",
                search.name
            )));
        }
        let source = search.source(field);
        if source != Source::column(&source.column) {
            return Err(self.invalid(format!(
                "names owners by {field:?}, which isn't a column as it is"
            )));
        }
        Ok(source.column)
    }

    /// Whether a column, or key column, may hold a text as it is.
    fn holds_text(&self, column: &str) -> bool {
        if let Some((_, kind)) = self.schema.key.iter().find(|(name, _)| name == column) {
            return *kind == KeyKind::String;
        }
        let declared = self.columns.iter().find(|declared| declared.name == column);
        declared.is_none_or(|declared| declared.value == ValueType::String)
    }

    pub(crate) fn invalid(&self, problem: impl Into<String>) -> EngineError {
        EngineError::InvalidDefinition {
            table: self.name().to_owned(),
            problem: problem.into(),
        }
    }
}

/// Refuses more than `max`.
///
/// # Errors
/// [`EngineError::LimitExceeded`].
pub(crate) fn limit(limit: &'static str, max: usize, actual: usize) -> Result<()> {
    match actual > max {
        true => Err(EngineError::LimitExceeded { limit, max, actual }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use souk_index::Field;
    use souk_storage::TableSchema;

    use super::*;
    use crate::definition::{Member, Reading};

    fn notes() -> TableDefinition {
        TableDefinition::hashed("notes").field(Field::keyword("author"))
    }

    fn trial() -> SearchIndexDefinition {
        SearchIndexDefinition::new("notes.trial").field(Field::keyword("author"))
    }

    fn keyed(column: &str, kind: KeyKind) -> TableDefinition {
        TableDefinition::new(TableSchema::new("plain").key(column, kind))
    }

    #[test]
    fn what_cant_be_a_table_is_refused_with_what_is_wrong() {
        for right in [
            notes().owner("user", "author"),
            notes().owner("user", "author").index(trial().weight(10)),
            notes()
                .owner("user", "author")
                .column("author", ValueType::String),
            keyed("reader", KeyKind::String)
                .field(Field::keyword("reader"))
                .owner("user", "reader"),
            TableDefinition::hashed("users")
                .id_field(Field::keyword("id").key())
                .owner("user", "id"),
            TableDefinition::hashed("users").owner("user", "_id"),
        ] {
            right.check().expect("a table");
        }
        let two = [
            Member::new(1, "a", ValueType::String),
            Member::new(1, "b", ValueType::String),
        ];
        let lists = ValueType::List(Box::new(ValueType::strings()));
        let plain = TableDefinition::new(TableSchema::new("plain").key("id", KeyKind::Integer));
        for (wrong, says) in [
            (TableDefinition::hashed("_own"), "a name of the engine"),
            (
                notes().column("a", ValueType::Json).column("a", ValueType::Json),
                "twice",
            ),
            (notes().column("_id", ValueType::String), "key column"),
            (notes().column("a", ValueType::objects(two)), "member"),
            (notes().column("a", lists), "lists in a list"),
            (
                notes().column("a", ValueType::List(Box::new(ValueType::Json))),
                "inside",
            ),
            (notes().owner("user", "reader"), "no KEYWORD field"),
            (notes().owner("user", "author").owner("user", "author"), "twice"),
            (
                (0..=MAX_OWNERS).fold(notes(), |notes, nth| notes.owner(format!("kind {nth}"), "author")),
                "MAX_OWNERS",
            ),
            // What names an owner in a row and what does in a document is the same.
            (
                notes()
                    .field(Field::keyword("readers").array())
                    .owner("user", "readers"),
                "of one value",
            ),
            (
                notes().owner("user", "author").column("author", ValueType::Json),
                "no text",
            ),
            (
                TableDefinition::hashed("notes")
                    .owner("user", "author")
                    .column("author", ValueType::strings()),
                "no text",
            ),
            (
                keyed("nth", KeyKind::Integer)
                    .field(Field::keyword("nth"))
                    .owner("user", "nth"),
                "no text",
            ),
            (
                TableDefinition::hashed("notes").field(Field::keyword("author").key()),
                "comes from",
            ),
            (
                TableDefinition::hashed("notes").field_from(
                    Field::keyword("id").key(),
                    Source::column("_id").read(Reading::Folded),
                ),
                "comes from",
            ),
            // Documents would be another's.
            (keyed("_hash", KeyKind::String), "key column \"_hash\""),
            (keyed("_hash", KeyKind::Integer), "key column \"_hash\""),
            (
                TableDefinition::new(
                    TableSchema::new("plain")
                        .key("_hash", KeyKind::Integer)
                        .key("_id", KeyKind::String),
                ),
                "key column \"_hash\"",
            ),
            (plain.field(Field::keyword("id").key()), "isn't one text"),
            (
                notes().index(SearchIndexDefinition::new("other.trial")),
                "has a search index",
            ),
            (notes().index(trial()).index(trial()), "twice"),
            (notes().index(trial().weight(101)), "MAX_WEIGHT"),
            (
                TableDefinition::hashed("notes").index(trial()),
                "none of which has a weight",
            ),
            // A search of an owner's must find own rows by whichever index.
            (
                notes()
                    .owner("user", "author")
                    .index(SearchIndexDefinition::new("notes.trial").field(Field::keyword("title"))),
                "no KEYWORD field",
            ),
            (
                notes().owner("user", "author").index(
                    SearchIndexDefinition::new("notes.trial")
                        .field_from(Field::keyword("author"), Source::column("writer")),
                ),
                "in another",
            ),
            (
                (0..MAX_SEARCH_INDEXES).fold(notes(), |notes, nth| {
                    notes.index(SearchIndexDefinition {
                        name: format!("notes.n{nth}"),
                        ..trial()
                    })
                }),
                "MAX_SEARCH_INDEXES",
            ),
        ] {
            let refused = wrong.check().expect_err(says);
            assert!(refused.to_string().contains(says), "{refused}");
        }
        let mut lost = notes();
        lost.search_mut()
            .sources
            .insert("reader".to_owned(), Source::column("author"));
        assert!(lost.check().is_err());
        let mut deep = ValueType::String;
        for _ in 0..MAX_VALUE_LEVELS {
            deep = ValueType::Message(vec![Member::new(1, "a", deep)]);
        }
        let refused = notes().column("a", deep).check().expect_err("too deep");
        assert!(refused.to_string().contains("MAX_VALUE_LEVELS"), "{refused}");
    }
}

//! Table schemas: key columns, options and secondary indexes of a table.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::limits;
use crate::value::{KeyValue, PrimaryKey};

/// Type of a primary key column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// UTF-8 text.
    String,
    /// A signed 64-bit number.
    Integer,
    /// Bytes.
    Binary,
}

/// Whether a secondary index is global, or local to each partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum IndexScope {
    /// Ordered by its columns across all partitions.
    #[default]
    Global,
    /// Ordered by its columns inside each partition: its first column is the table's partition key.
    Local,
}

/// A secondary index: an ordered copy of some columns, kept in the same commit as the rows. Sparse: a row that
/// lacks one of `columns` has no entry. It sees the newest version of each column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecondaryIndexSchema {
    /// Its name, unique in the table.
    pub name: String,
    /// Key or attribute columns it is ordered by, 1 to [`limits::MAX_INDEX_COLUMNS`]; the table's key is appended.
    /// A value of such a column is at most [`limits::MAX_KEY_VALUE_BYTES`] long.
    pub columns: Vec<String>,
    /// Attribute columns copied into the entries, at most [`limits::MAX_INCLUDED_COLUMNS`].
    pub included: Vec<String>,
    /// Whether it is global, or local to each partition.
    pub scope: IndexScope,
}

impl SecondaryIndexSchema {
    /// An index by these columns that includes none.
    pub fn new<C: Into<String>>(name: impl Into<String>, columns: impl IntoIterator<Item = C>) -> Self {
        Self {
            name: name.into(),
            columns: columns.into_iter().map(Into::into).collect(),
            included: Vec::new(),
            scope: IndexScope::Global,
        }
    }

    /// Orders it inside each partition; its first column must be the table's partition key.
    #[must_use]
    pub fn local(mut self) -> Self {
        self.scope = IndexScope::Local;
        self
    }

    /// Copies these columns into the entries.
    #[must_use]
    pub fn include<C: Into<String>>(mut self, columns: impl IntoIterator<Item = C>) -> Self {
        self.included.extend(columns.into_iter().map(Into::into));
        self
    }
}

/// The schema of a table. Attribute columns are schemaless: each row has its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSchema {
    /// Its name: `[A-Za-z_][A-Za-z0-9_]*`.
    pub name: String,
    /// Its key columns, 1 to [`limits::MAX_KEY_COLUMNS`]; the first is the partition key.
    pub key: Vec<(String, KeyKind)>,
    /// Position in `key`, from 0, of the auto-increment column, to which the store assigns rising numbers within each
    /// partition key: an INTEGER, not the first.
    pub auto_increment: Option<usize>,
    /// Versions kept of each column, 1 to [`limits::MAX_VERSIONS`].
    pub max_versions: u32,
    /// How long a cell is visible after its version, at least a millisecond; `None`: for ever.
    pub time_to_live: Option<Duration>,
    /// How far a version given by a writer may lie before or after the clock; others are refused.
    pub max_version_offset: Duration,
    /// Whether rows may be updated; else they are only put and deleted as a whole.
    pub allow_update: bool,
    /// Whether transactions may hold its partitions. Each write then checks for one first.
    pub transactions: bool,
    /// Its secondary indexes.
    pub indexes: Vec<SecondaryIndexSchema>,
}

impl TableSchema {
    /// A table without key columns yet: one version, no expiry, no index.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            key: Vec::new(),
            auto_increment: None,
            max_versions: 1,
            time_to_live: None,
            max_version_offset: limits::DEFAULT_MAX_VERSION_OFFSET,
            allow_update: true,
            transactions: false,
            indexes: Vec::new(),
        }
    }

    /// Appends a key column.
    #[must_use]
    pub fn key(mut self, column: impl Into<String>, kind: KeyKind) -> Self {
        self.key.push((column.into(), kind));
        self
    }

    /// Appends an auto-increment key column: INTEGER numbers of the store, unique and rising within a partition key.
    #[must_use]
    pub fn auto_increment_key(mut self, column: impl Into<String>) -> Self {
        self.auto_increment = Some(self.key.len());
        self.key(column, KeyKind::Integer)
    }

    /// Whether rows may be updated; else they are only put and deleted as a whole.
    #[must_use]
    pub fn allow_update(mut self, allow: bool) -> Self {
        self.allow_update = allow;
        self
    }

    /// Lets transactions hold its partitions.
    #[must_use]
    pub fn transactions(mut self) -> Self {
        self.transactions = true;
        self
    }

    /// Keeps that many versions of each column.
    #[must_use]
    pub fn max_versions(mut self, versions: u32) -> Self {
        self.max_versions = versions;
        self
    }

    /// Hides cells that long after their version.
    #[must_use]
    pub fn time_to_live(mut self, lifetime: Duration) -> Self {
        self.time_to_live = Some(lifetime);
        self
    }

    /// Allows versions that far from the clock.
    #[must_use]
    pub fn max_version_offset(mut self, offset: Duration) -> Self {
        self.max_version_offset = offset;
        self
    }

    /// Adds a secondary index.
    #[must_use]
    pub fn index(mut self, index: SecondaryIndexSchema) -> Self {
        self.indexes.push(index);
        self
    }

    /// Validates the schema.
    ///
    /// # Errors
    /// [`Error::Invalid`] for what can't be a table, [`Error::LimitExceeded`] above one of [`limits`].
    pub fn check(&self) -> Result<()> {
        check_identifier("table", &self.name)?;
        let subject = || format!("table {:?}", self.name);
        if self.key.is_empty() {
            return Err(Error::invalid(subject(), "has no key column"));
        }
        limits::check("MAX_KEY_COLUMNS", limits::MAX_KEY_COLUMNS, self.key.len())?;
        for (column, _) in &self.key {
            check_column(column)?;
        }
        if let Some(column) = first_duplicate(self.key.iter().map(|(column, _)| column)) {
            return Err(Error::invalid(
                subject(),
                format!("has key column {column:?} twice"),
            ));
        }
        if let Some(position) = self.auto_increment {
            let numbered = self.key.get(position);
            if position == 0 || numbered.is_none_or(|(_, kind)| *kind != KeyKind::Integer) {
                return Err(Error::invalid(
                    subject(),
                    "must number an INTEGER key column that isn't the first",
                ));
            }
        }
        if self.max_versions == 0 {
            return Err(Error::invalid(subject(), "keeps no version (max_versions is 0)"));
        }
        limits::check(
            "MAX_VERSIONS",
            limits::MAX_VERSIONS as usize,
            self.max_versions as usize,
        )?;
        if self
            .time_to_live
            .is_some_and(|lifetime| lifetime.as_millis() == 0)
        {
            return Err(Error::invalid(
                subject(),
                "has a time to live below a millisecond",
            ));
        }
        limits::check("MAX_INDEXES", limits::MAX_INDEXES, self.indexes.len())?;
        if let Some(index) = first_duplicate(self.indexes.iter().map(|index| &index.name)) {
            return Err(Error::invalid(subject(), format!("has index {index:?} twice")));
        }
        self.indexes.iter().try_for_each(|index| self.check_index(index))
    }

    fn check_index(&self, index: &SecondaryIndexSchema) -> Result<()> {
        check_identifier("index", &index.name)?;
        let subject = || format!("index {:?} of table {:?}", index.name, self.name);
        if index.columns.is_empty() {
            return Err(Error::invalid(subject(), "has no column"));
        }
        limits::check(
            "MAX_INDEX_COLUMNS",
            limits::MAX_INDEX_COLUMNS,
            index.columns.len(),
        )?;
        limits::check(
            "MAX_INCLUDED_COLUMNS",
            limits::MAX_INCLUDED_COLUMNS,
            index.included.len(),
        )?;
        if index.scope == IndexScope::Local && index.columns.first() != self.key.first().map(|(name, _)| name)
        {
            return Err(Error::invalid(
                subject(),
                "is local, so that its first column must be the partition key",
            ));
        }
        let columns = index.columns.iter().chain(&index.included);
        columns.clone().try_for_each(|column| check_column(column))?;
        if let Some(column) = first_duplicate(columns) {
            return Err(Error::invalid(
                subject(),
                format!("names column {column:?} twice"),
            ));
        }
        if let Some(column) = index
            .included
            .iter()
            .find(|column| self.key_position(column).is_some())
        {
            return Err(Error::invalid(
                subject(),
                format!("includes key column {column:?}; it is there anyway"),
            ));
        }
        Ok(())
    }

    /// Position of a column in the table's key, from 0.
    pub(crate) fn key_position(&self, column: &str) -> Option<usize> {
        self.key.iter().position(|(name, _)| name == column)
    }

    /// Refuses a key whose columns aren't, in number and types, those of this table.
    pub(crate) fn check_key(&self, key: &PrimaryKey) -> Result<()> {
        if key.values().len() != self.key.len() {
            return Err(Error::invalid(
                format!("primary key of table {:?}", self.name),
                format!("has {} columns, expected {}", key.values().len(), self.key.len()),
            ));
        }
        self.check_key_prefix(key)
    }

    /// [`Self::check_key`] for a key that may lack the last columns.
    pub(crate) fn check_key_prefix(&self, key: &PrimaryKey) -> Result<()> {
        let subject = || format!("primary key of table {:?}", self.name);
        if key.values().len() > self.key.len() {
            return Err(Error::invalid(
                subject(),
                format!(
                    "has {} columns, expected at most {}",
                    key.values().len(),
                    self.key.len()
                ),
            ));
        }
        for ((column, kind), value) in self.key.iter().zip(key.values()) {
            let fits = match value {
                KeyValue::String(_) => *kind == KeyKind::String,
                KeyValue::Integer(_) => *kind == KeyKind::Integer,
                KeyValue::Binary(_) => *kind == KeyKind::Binary,
            };
            if !fits {
                return Err(Error::invalid(
                    subject(),
                    format!("column {column:?} must be of type {kind:?}"),
                ));
            }
        }
        Ok(())
    }

    /// The first field by which the schemas differ, with both values.
    pub(crate) fn difference(&self, other: &Self) -> Option<String> {
        macro_rules! first_of {
            ($($field:ident),+) => {
                $(if self.$field != other.$field {
                    let field = stringify!($field);
                    return Some(format!("{field}: {:?} and {:?}", self.$field, other.$field));
                })+
            };
        }
        first_of!(
            name,
            key,
            auto_increment,
            max_versions,
            time_to_live,
            max_version_offset,
            allow_update,
            transactions,
            indexes
        );
        None
    }
}

/// The first name that is there a second time.
fn first_duplicate<'a>(names: impl IntoIterator<Item = &'a String>) -> Option<&'a String> {
    let mut seen = BTreeSet::new();
    names.into_iter().find(|name| !seen.insert(*name))
}

/// Refuses a name of a table, index or consumer that isn't `[A-Za-z_][A-Za-z0-9_]*`, of at most
/// [`limits::MAX_NAME_BYTES`].
pub(crate) fn check_identifier(what: &str, name: &str) -> Result<()> {
    limits::check("MAX_NAME_BYTES", limits::MAX_NAME_BYTES, name.len())?;
    let is_word = name
        .chars()
        .all(|char| char.is_ascii_alphanumeric() || char == '_');
    if !is_word || name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
        return Err(Error::invalid(
            format!("{what} name {name:?}"),
            "must match [A-Za-z_][A-Za-z0-9_]*",
        ));
    }
    Ok(())
}

/// Refuses a column name that is empty, too long, or holds control characters. Wider than Tablestore's identifiers,
/// so that free attributes may be called what a marketplace calls them.
pub(crate) fn check_column(name: &str) -> Result<()> {
    limits::check("MAX_NAME_BYTES", limits::MAX_NAME_BYTES, name.len())?;
    if name.is_empty() {
        return Err(Error::invalid("column name", "is empty"));
    }
    if name.chars().any(char::is_control) {
        return Err(Error::invalid(
            format!("column name {name:?}"),
            "holds a control character",
        ));
    }
    Ok(())
}

//! Which columns of rows are shown.

use bytes::Bytes;
use souk_engine::SearchIndexDefinition;
use souk_engine::storage::{PrimaryKey, Row, TableSchema};
use souk_tablestore::ServiceError;
use souk_tablestore::messages::{ColumnReturnType, ColumnsToGet};
use souk_tablestore::plainbuffer::PlainBufferEncoder;

use super::fields::enumeration;
use crate::options::check_columns;
use crate::value::{told, write_key};

/// What of a row is shown besides its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReturnedColumns {
    Nothing,
    All,
    Named(Vec<String>),
}

impl ReturnedColumns {
    /// Reads what is asked for. What is in the index is what its fields come from, as the rows have it.
    pub(super) fn read(
        given: Option<ColumnsToGet>,
        index: &SearchIndexDefinition,
    ) -> Result<Self, ServiceError> {
        let given = given.unwrap_or_default();
        check_columns(&given.column_names)?;
        // Names alone are meant to be shown.
        let default = match given.column_names.is_empty() {
            true => ColumnReturnType::None,
            false => ColumnReturnType::Specified,
        };
        Ok(
            match enumeration(given.return_type, default, "column return type")? {
                ColumnReturnType::All => Self::All,
                ColumnReturnType::None => Self::Nothing,
                ColumnReturnType::Specified => Self::Named(given.column_names),
                ColumnReturnType::AllFromIndex => {
                    let mut names: Vec<String> = Vec::new();
                    for field in &index.fields {
                        let column = index.source(field.name()).column;
                        if !names.contains(&column) {
                            names.push(column);
                        }
                    }
                    Self::Named(names)
                }
            },
        )
    }

    /// Whether rows have to be read.
    pub(super) fn needs_rows(&self) -> bool {
        *self != Self::Nothing
    }

    /// A row in plainbuffer: its key, and those of its columns that are shown, with their newest values.
    pub(super) fn write(&self, schema: &TableSchema, key: &PrimaryKey, row: Option<&Row>) -> Bytes {
        let mut out = PlainBufferEncoder::new();
        let mut written = out.row();
        write_key(schema, key, &mut written);
        let columns = row.iter().flat_map(|row| row.columns().iter());
        for (name, cells) in columns.filter(|(name, _)| self.shows(name)) {
            if let Some(newest) = cells.first() {
                written.cell(name, Some(&told(&newest.value)), None, Some(newest.version));
            }
        }
        written.finish(false, None);
        out.finish()
    }

    fn shows(&self, column: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::All => true,
            Self::Named(names) => names.iter().any(|name| name == column),
        }
    }
}

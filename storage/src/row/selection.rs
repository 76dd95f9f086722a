//! The columns that a read is about.

use crate::error::{Error, Result};
use crate::limits;

/// Which columns a read gives back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ColumnSelection {
    /// All of them.
    #[default]
    All,
    /// These; a row that has none of them is not returned. A key column, too, can be named: every row has it.
    /// Applied before the filter, which sees only these.
    Named(Vec<String>),
}

impl ColumnSelection {
    /// These columns.
    pub fn named<C: Into<String>>(columns: impl IntoIterator<Item = C>) -> Self {
        Self::Named(columns.into_iter().map(Into::into).collect())
    }

    /// Refuses a selection of none or of too many.
    pub(crate) fn check(&self) -> Result<()> {
        let Self::Named(names) = self else {
            return Ok(());
        };
        limits::check("MAX_SELECTED_COLUMNS", limits::MAX_SELECTED_COLUMNS, names.len())?;
        if names.is_empty() {
            return Err(Error::invalid("column selection", "names no column"));
        }
        Ok(())
    }
}

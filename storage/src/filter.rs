//! One grammar for filters of reads and column conditions of writes.

mod rule;
#[cfg(test)]
mod tests;

pub use self::rule::{Cast, ValueRule};
use crate::error::{Error, Result};
use crate::limits;
use crate::row::Row;
use crate::row::borrowed::RowRef;
use crate::value::{PrimaryKey, Value, ValueRef};

/// How a cell is compared with the filter's value. Values of different types are unequal and unordered:
/// only [`Comparison::NotEqual`] holds between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
}

/// A condition on the attribute columns of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// Compares one column with a value.
    Column {
        /// Name of the attribute column.
        column: String,
        /// The comparison, cell on the left.
        comparison: Comparison,
        /// The right side.
        value: Value,
        /// What the answer is when the row doesn't have the column.
        pass_if_missing: bool,
        /// Whether only the newest version counts; else any version may satisfy the comparison.
        latest_version_only: bool,
        /// Compares a part of the cell; its type must be that of `value`.
        rule: Option<ValueRule>,
    },
    /// The row has the column.
    Exists {
        /// Name of the attribute column.
        column: String,
    },
    /// All of them; of none: true.
    And(Vec<Filter>),
    /// One of them; of none: false.
    Or(Vec<Filter>),
    /// Not that one.
    Not(Box<Filter>),
}

/// What a filter looks at: columns and their versions.
pub(crate) trait ColumnVersions {
    /// The versions of a column, the newest first.
    fn versions<'a>(&'a self, column: &str) -> impl Iterator<Item = ValueRef<'a>>;
}

impl ColumnVersions for Row {
    fn versions<'a>(&'a self, column: &str) -> impl Iterator<Item = ValueRef<'a>> {
        self.cells(column).iter().map(|cell| ValueRef::from(&cell.value))
    }
}

impl ColumnVersions for RowRef<'_> {
    fn versions<'a>(&'a self, column: &str) -> impl Iterator<Item = ValueRef<'a>> {
        self.values(column)
    }
}

impl Filter {
    /// Compares the newest version of a column; a row without it doesn't pass.
    pub fn column(column: impl Into<String>, comparison: Comparison, value: impl Into<Value>) -> Self {
        Self::Column {
            column: column.into(),
            comparison,
            value: value.into(),
            pass_if_missing: false,
            latest_version_only: true,
            rule: None,
        }
    }

    /// Compares what a rule takes of the newest version of a STRING column; a row without it doesn't pass.
    pub fn with_rule(
        column: impl Into<String>,
        rule: ValueRule,
        comparison: Comparison,
        value: impl Into<Value>,
    ) -> Self {
        Self::Column {
            column: column.into(),
            comparison,
            value: value.into(),
            pass_if_missing: false,
            latest_version_only: true,
            rule: Some(rule),
        }
    }

    /// The row has the column.
    pub fn exists(column: impl Into<String>) -> Self {
        Self::Exists {
            column: column.into(),
        }
    }

    /// The row doesn't have the column.
    pub fn missing(column: impl Into<String>) -> Self {
        Self::Not(Box::new(Self::exists(column)))
    }

    /// Refuses a filter above [`limits::MAX_FILTER_NODES`] or [`limits::MAX_FILTER_DEPTH`], or one that compares
    /// with NaN, an infinity, or another type than its rule gives.
    pub(crate) fn check(&self) -> Result<()> {
        let mut nodes = 0;
        self.check_below(1, &mut nodes)
    }

    fn check_below(&self, depth: usize, nodes: &mut usize) -> Result<()> {
        *nodes += 1;
        limits::check("MAX_FILTER_NODES", limits::MAX_FILTER_NODES, *nodes)?;
        limits::check("MAX_FILTER_DEPTH", limits::MAX_FILTER_DEPTH, depth)?;
        match self {
            Self::Column {
                column, value, rule, ..
            } => check_comparison(column, value, rule.as_ref()),
            Self::Exists { .. } => Ok(()),
            Self::And(parts) | Self::Or(parts) => parts
                .iter()
                .try_for_each(|part| part.check_below(depth + 1, nodes)),
            Self::Not(part) => part.check_below(depth + 1, nodes),
        }
    }

    /// The columns it looks at, in order, each once.
    pub(crate) fn columns(&self) -> Vec<&str> {
        let mut columns = Vec::new();
        self.columns_below(&mut columns);
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    fn columns_below<'a>(&'a self, columns: &mut Vec<&'a str>) {
        match self {
            Self::Column { column, .. } | Self::Exists { column } => columns.push(column),
            Self::And(parts) | Self::Or(parts) => parts.iter().for_each(|part| part.columns_below(columns)),
            Self::Not(part) => part.columns_below(columns),
        }
    }

    /// Whether the row of a key passes. `None` stands for a row that doesn't exist: all its columns are missing. `matched` are the bytes of
    /// the texts that patterns have looked at; what they look at here is added.
    ///
    /// # Errors
    /// [`Error::MatchedTooMuch`].
    pub(crate) fn passes(
        &self,
        key: &PrimaryKey,
        row: Option<&impl ColumnVersions>,
        matched: &mut usize,
    ) -> Result<bool> {
        let passes = self.holds(row, matched);
        passes.ok_or_else(|| Error::MatchedTooMuch {
            key: format!("{key:?}"),
        })
    }

    /// Whether the row passes; `None` above [`limits::MAX_MATCHED_BYTES`].
    fn holds(&self, row: Option<&impl ColumnVersions>, matched: &mut usize) -> Option<bool> {
        match self {
            Self::Column {
                column,
                comparison,
                value,
                pass_if_missing,
                latest_version_only,
                rule,
            } => {
                let most = if *latest_version_only { 1 } else { usize::MAX };
                let mut cells = row
                    .into_iter()
                    .flat_map(|row| row.versions(column))
                    .take(most)
                    .peekable();
                if cells.peek().is_none() {
                    return Some(*pass_if_missing);
                }
                for cell in cells {
                    let compared = match rule {
                        None => Some(cell),
                        Some(rule) => {
                            if let ValueRef::String(text) = cell {
                                let after = matched.saturating_add(text.len());
                                if after > limits::MAX_MATCHED_BYTES {
                                    return None;
                                }
                                *matched = after;
                            }
                            rule.apply(cell)
                        }
                    };
                    if compared.is_some_and(|left| comparison.holds(left, value)) {
                        return Some(true);
                    }
                }
                Some(false)
            }
            Self::Exists { column } => Some(row.is_some_and(|row| row.versions(column).next().is_some())),
            Self::And(parts) => {
                for part in parts {
                    if !part.holds(row, matched)? {
                        return Some(false);
                    }
                }
                Some(true)
            }
            Self::Or(parts) => {
                for part in parts {
                    if part.holds(row, matched)? {
                        return Some(true);
                    }
                }
                Some(false)
            }
            Self::Not(part) => Some(!part.holds(row, matched)?),
        }
    }

    /// How many value rules it has.
    pub(crate) fn rules(&self) -> usize {
        match self {
            Self::Column { rule, .. } => usize::from(rule.is_some()),
            Self::Exists { .. } => 0,
            Self::And(parts) | Self::Or(parts) => parts.iter().map(Self::rules).sum(),
            Self::Not(part) => part.rules(),
        }
    }
}

fn check_comparison(column: &str, value: &Value, rule: Option<&ValueRule>) -> Result<()> {
    let subject = || format!("filter on column {column:?}");
    if value.as_double().is_some_and(|number| !number.is_finite()) {
        return Err(Error::invalid(subject(), "compares with NaN or an infinity"));
    }
    let given = rule.map(|rule| rule.cast().kind_name());
    if let Some(given) = given.filter(|given| *given != value.kind_name()) {
        return Err(Error::invalid(
            subject(),
            format!(
                "has a rule that gives {given}, and compares with {}",
                value.kind_name()
            ),
        ));
    }
    Ok(())
}

impl Comparison {
    fn holds(self, left: ValueRef<'_>, right: &Value) -> bool {
        match (self, left.compare(right)) {
            (Self::NotEqual, order) => order.is_none_or(std::cmp::Ordering::is_ne),
            (_, None) => false,
            (Self::Equal, Some(order)) => order.is_eq(),
            (Self::Greater, Some(order)) => order.is_gt(),
            (Self::GreaterOrEqual, Some(order)) => order.is_ge(),
            (Self::Less, Some(order)) => order.is_lt(),
            (Self::LessOrEqual, Some(order)) => order.is_le(),
        }
    }
}

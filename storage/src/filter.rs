//! One grammar for filters of reads and column conditions of writes.

use crate::error::{Error, Result};
use crate::limits;
use crate::row::Row;
use crate::value::Value;

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
    },
    /// All of them; of none: true.
    And(Vec<Filter>),
    /// One of them; of none: false.
    Or(Vec<Filter>),
    /// Not that one.
    Not(Box<Filter>),
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
        }
    }

    /// Refuses a filter above [`limits::MAX_FILTER_NODES`] or [`limits::MAX_FILTER_DEPTH`], or one that compares
    /// with NaN or an infinity.
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
                column,
                value: Value::Double(number),
                ..
            } if !number.is_finite() => Err(Error::invalid(
                format!("filter on column {column:?}"),
                "compares with NaN or an infinity",
            )),
            Self::Column { .. } => Ok(()),
            Self::And(parts) | Self::Or(parts) => parts
                .iter()
                .try_for_each(|part| part.check_below(depth + 1, nodes)),
            Self::Not(part) => part.check_below(depth + 1, nodes),
        }
    }

    /// Whether the row passes. `None` stands for a row that doesn't exist: all its columns are missing.
    pub fn matches(&self, row: Option<&Row>) -> bool {
        match self {
            Self::Column {
                column,
                comparison,
                value,
                pass_if_missing,
                latest_version_only,
            } => {
                let cells = row.map_or(&[][..], |row| row.cells(column));
                let considered = if *latest_version_only {
                    cells.get(..1).unwrap_or(cells)
                } else {
                    cells
                };
                if considered.is_empty() {
                    return *pass_if_missing;
                }
                considered.iter().any(|cell| comparison.holds(&cell.value, value))
            }
            Self::And(parts) => parts.iter().all(|part| part.matches(row)),
            Self::Or(parts) => parts.iter().any(|part| part.matches(row)),
            Self::Not(part) => !part.matches(row),
        }
    }
}

impl Comparison {
    fn holds(self, left: &Value, right: &Value) -> bool {
        let order = match (left, right) {
            (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
            (Value::Integer(left), Value::Integer(right)) => Some(left.cmp(right)),
            (Value::Double(left), Value::Double(right)) => left.partial_cmp(right),
            (Value::Boolean(left), Value::Boolean(right)) => Some(left.cmp(right)),
            (Value::Binary(left), Value::Binary(right)) => Some(left.cmp(right)),
            (
                Value::String(_)
                | Value::Integer(_)
                | Value::Double(_)
                | Value::Boolean(_)
                | Value::Binary(_),
                _,
            ) => None,
        };
        match (self, order) {
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

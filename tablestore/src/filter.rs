//! Filters of reads and column conditions of writes: one grammar, of messages within messages.

use bytes::Bytes;

use crate::error::Reason;
use crate::limits;
use crate::messages::{
    self, ColumnPaginationFilter, ComparatorType, CompositeColumnValueFilter, FilterType, LogicalOperator,
    SingleColumnValueFilter, VariantType,
};
use crate::strict::decode;
use crate::value::{Text, Value};
use crate::variant;

/// How a cell is compared with a value, the cell on the left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparator {
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

/// What a part of a text is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CastType {
    /// A signed 64-bit number.
    Integer,
    /// A 64-bit float.
    Double,
    /// The text itself.
    String,
}

/// Compares a part of a text instead of the cell. Whether the pattern is one, the engine says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueTransfer {
    /// A regular expression.
    pub pattern: Text,
    /// What its match is read as.
    pub cast: CastType,
}

/// A condition on the columns of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnFilter {
    /// Compares a column with a value.
    Column {
        /// The column.
        column: Text,
        /// How.
        comparator: Comparator,
        /// The right side.
        value: Value,
        /// What holds of a row without the column.
        pass_if_missing: bool,
        /// Whether only the newest version counts; else any may satisfy the comparison.
        latest_version_only: bool,
        /// Compares a part of the cell.
        transfer: Option<ValueTransfer>,
    },
    /// The row has the column.
    Exists {
        /// The column.
        column: Text,
    },
    /// The row doesn't have the column.
    Missing {
        /// The column.
        column: Text,
    },
    /// All of them; two or more.
    And(Vec<ColumnFilter>),
    /// One of them; two or more.
    Or(Vec<ColumnFilter>),
    /// Not that one.
    Not(Box<ColumnFilter>),
}

/// A part of a row's columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnPage {
    /// Columns before the first.
    pub offset: u32,
    /// Most columns; not 0.
    pub limit: u32,
}

/// The filter of a read: a condition that rows have to meet, or a part of their columns.
#[derive(Clone, Debug, PartialEq)]
pub enum ReadFilter {
    /// Rows that meet it.
    Rows(ColumnFilter),
    /// All rows, of each these columns.
    Columns(ColumnPage),
}

impl ReadFilter {
    /// Reads the filter of a read.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(bytes: Bytes) -> Result<Self, Reason> {
        let filter: messages::Filter = decode(bytes).map_err(|_| Reason::MalformedFilter)?;
        if FilterType::try_from(filter.r#type) == Ok(FilterType::ColumnPagination) {
            return column_page(filter.filter).map(Self::Columns);
        }
        FilterBudget::default().filter(filter, 1).map(Self::Rows)
    }
}

impl ColumnFilter {
    /// Reads the column condition of a write.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(bytes: Bytes) -> Result<Self, Reason> {
        let filter = decode(bytes).map_err(|_| Reason::MalformedFilter)?;
        FilterBudget::default().filter(filter, 1)
    }
}

/// Counts the nodes of filters against their limit.
#[derive(Default)]
struct FilterBudget {
    nodes: usize,
}

impl FilterBudget {
    fn filter(&mut self, filter: messages::Filter, depth: usize) -> Result<ColumnFilter, Reason> {
        self.nodes += 1;
        if self.nodes > limits::MAX_FILTER_NODES || depth > limits::MAX_FILTER_DEPTH {
            return Err(Reason::TooManyFilters {
                limit: limits::MAX_FILTER_NODES,
            });
        }
        let kind = filter.r#type;
        match FilterType::try_from(kind) {
            Ok(FilterType::SingleColumnValue) => {
                let filter = decode(filter.filter).map_err(|_| Reason::MalformedRelationFilter)?;
                comparison(filter)
            }
            Ok(FilterType::CompositeColumnValue) => {
                let filter = decode(filter.filter).map_err(|_| Reason::MalformedCompositeFilter)?;
                self.composite(filter, depth)
            }
            Ok(FilterType::ColumnPagination) if depth > 1 => Err(Reason::InvalidSubFilter {
                filter: "FT_COLUMN_PAGINATION".into(),
            }),
            _ => Err(Reason::InvalidFilterType { kind }),
        }
    }

    fn composite(
        &mut self,
        filter: CompositeColumnValueFilter,
        depth: usize,
    ) -> Result<ColumnFilter, Reason> {
        let operator = filter.combinator;
        let mut parts = Vec::new();
        for part in filter.sub_filters {
            parts.push(self.filter(part, depth + 1)?);
        }
        match LogicalOperator::try_from(operator) {
            Ok(LogicalOperator::Not) => match (parts.pop(), parts.is_empty()) {
                (Some(part), true) => Ok(ColumnFilter::Not(Box::new(part))),
                _ => Err(Reason::InvalidNot),
            },
            Ok(LogicalOperator::And | LogicalOperator::Or) if parts.len() < 2 => Err(Reason::InvalidAndOr),
            Ok(LogicalOperator::And) => Ok(ColumnFilter::And(parts)),
            Ok(LogicalOperator::Or) => Ok(ColumnFilter::Or(parts)),
            Err(_) => Err(Reason::MalformedCompositeFilter),
        }
    }
}

fn comparison(filter: SingleColumnValueFilter) -> Result<ColumnFilter, Reason> {
    let column = Text::from(filter.column_name);
    let operator = filter.comparator;
    let comparator = match ComparatorType::try_from(operator) {
        Ok(ComparatorType::Equal) => Comparator::Equal,
        Ok(ComparatorType::NotEqual) => Comparator::NotEqual,
        Ok(ComparatorType::GreaterThan) => Comparator::Greater,
        Ok(ComparatorType::GreaterEqual) => Comparator::GreaterOrEqual,
        Ok(ComparatorType::LessThan) => Comparator::Less,
        Ok(ComparatorType::LessEqual) => Comparator::LessOrEqual,
        Ok(ComparatorType::Exist) => return Ok(ColumnFilter::Exists { column }),
        Ok(ComparatorType::NotExist) => return Ok(ColumnFilter::Missing { column }),
        Err(_) => return Err(Reason::InvalidComparator { operator }),
    };
    let value = variant::decode(filter.column_value).map_err(|_| Reason::MalformedRelationFilter)?;
    let transfer = match filter.value_trans_rule {
        Some(rule) => Some(value_transfer(rule)?),
        None => None,
    };
    Ok(ColumnFilter::Column {
        column,
        comparator,
        value,
        pass_if_missing: !filter.filter_if_missing,
        latest_version_only: filter.latest_version_only,
        transfer,
    })
}

fn value_transfer(rule: messages::ValueTransferRule) -> Result<ValueTransfer, Reason> {
    let cast = match rule.cast_type.map(VariantType::try_from) {
        Some(Ok(VariantType::Integer)) => CastType::Integer,
        Some(Ok(VariantType::Double)) => CastType::Double,
        None | Some(Ok(VariantType::String)) => CastType::String,
        Some(_) => return Err(Reason::MalformedRelationFilter),
    };
    Ok(ValueTransfer {
        pattern: rule.regex.into(),
        cast,
    })
}

fn column_page(bytes: Bytes) -> Result<ColumnPage, Reason> {
    let page: ColumnPaginationFilter = decode(bytes).map_err(|_| Reason::MalformedPaginationFilter)?;
    let offset = u32::try_from(page.offset).map_err(|_| Reason::NegativeFilterOffset)?;
    match u32::try_from(page.limit) {
        Ok(limit) if limit > 0 => Ok(ColumnPage { offset, limit }),
        _ => Err(Reason::InvalidFilterLimit),
    }
}

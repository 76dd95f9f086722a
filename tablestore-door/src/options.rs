//! What of rows is read, and on what condition.

use bytes::Bytes;
use souk_engine::storage::{
    Cast, ColumnPage, ColumnSelection, Comparison, Filter, ReadOptions, TimeRange, ValueRule,
    VersionSelection as Stored,
};
use souk_tablestore::messages;
use souk_tablestore::{
    CastType, ColumnFilter, Comparator, ReadFilter, Reason, ServiceError, ValueTransfer, VersionSelection,
    limits,
};

use crate::error::{invalid, store_error};
use crate::value::stored;

/// Most columns that a read names.
const COLUMNS_MAX: usize = limits::MAX_COLUMNS_PER_WRITE;
/// Most value transfer rules in all filters and conditions of a request: each takes time to compile, and memory while it is worked on.
const VALUE_RULES_MAX: usize = limits::MAX_FILTER_NODES;

/// What a request says about the rows that it reads.
#[derive(Clone, Debug, Default)]
pub(crate) struct AskedRead {
    pub(crate) columns: Vec<String>,
    pub(crate) time: Option<messages::TimeRange>,
    pub(crate) max_versions: Option<i32>,
    pub(crate) filter: Option<Bytes>,
    pub(crate) start_column: Option<String>,
    pub(crate) end_column: Option<String>,
}

impl AskedRead {
    /// What it asks of each row of a table; the rules of its filter are among those of the request.
    pub(crate) fn options(self, rules: &mut TransferRules) -> Result<ReadOptions, ServiceError> {
        let versions = VersionSelection::new(self.time, self.max_versions)?;
        let mut options = ReadOptions {
            columns: selection(self.columns)?,
            versions: Stored {
                max_versions: versions.max_versions,
                time: versions.time.map(|time| TimeRange {
                    from: time.from,
                    to: time.to,
                }),
            },
            start_column: self.start_column.filter(|column| !column.is_empty()),
            end_column: self.end_column.filter(|column| !column.is_empty()),
            ..ReadOptions::default()
        };
        match read_filter(self.filter)? {
            Some(ReadFilter::Rows(given)) => options.filter = Some(rules.filter(given)?),
            Some(ReadFilter::Columns(page)) => {
                options.column_page = Some(ColumnPage {
                    limit: page.limit as usize,
                    offset: page.offset as usize,
                });
            }
            None => {}
        }
        Ok(options)
    }
}

/// What of the options a read of a secondary index takes, whose entries have one version of each column: the columns that it names, none for all,
/// and its filter.
pub(crate) fn index_options(options: &ReadOptions) -> Result<(&[String], Option<Filter>), ServiceError> {
    if options.column_page.is_some() {
        return Err(invalid("A column page can't be read of an index."));
    }
    let names: &[String] = match &options.columns {
        ColumnSelection::Named(names) => names,
        ColumnSelection::All => &[],
    };
    Ok((names, options.filter.clone()))
}

/// Goes on in a wide row where the token of an answer says.
pub(crate) fn resumed(options: ReadOptions, token: &Bytes) -> Result<ReadOptions, ServiceError> {
    match std::str::from_utf8(token) {
        Ok(column) if !column.is_empty() => Ok(options.resume(column.to_owned())),
        _ => Err(invalid("Invalid token.")),
    }
}

fn read_filter(bytes: Option<Bytes>) -> Result<Option<ReadFilter>, Reason> {
    let bytes = bytes.filter(|bytes| !bytes.is_empty());
    bytes.map(ReadFilter::decode).transpose()
}

/// Refuses more columns than a read names.
pub(crate) fn check_columns(columns: &[String]) -> Result<(), Reason> {
    match columns.len() {
        count if count > COLUMNS_MAX => Err(Reason::TooManyRequestColumns {
            limit: COLUMNS_MAX,
            count,
        }),
        _ => Ok(()),
    }
}

fn selection(columns: Vec<String>) -> Result<ColumnSelection, Reason> {
    check_columns(&columns)?;
    Ok(match columns.is_empty() {
        true => ColumnSelection::All,
        false => ColumnSelection::named(columns),
    })
}

/// The value transfer rules of a request so far.
#[derive(Debug, Default)]
pub(crate) struct TransferRules(usize);

impl TransferRules {
    /// A condition on columns.
    pub(crate) fn filter(&mut self, given: ColumnFilter) -> Result<Filter, ServiceError> {
        Ok(match given {
            ColumnFilter::Column {
                column,
                comparator,
                value,
                pass_if_missing,
                latest_version_only,
                transfer,
            } => Filter::Column {
                column: column.to_string(),
                comparison: comparison(comparator),
                value: stored(value),
                pass_if_missing,
                latest_version_only,
                rule: transfer.map(|transfer| self.rule(&transfer)).transpose()?,
            },
            ColumnFilter::Exists { column } => Filter::exists(column),
            ColumnFilter::Missing { column } => Filter::missing(column),
            ColumnFilter::And(all) => Filter::And(self.filters(all)?),
            ColumnFilter::Or(any) => Filter::Or(self.filters(any)?),
            ColumnFilter::Not(part) => Filter::Not(Box::new(self.filter(*part)?)),
        })
    }

    fn filters(&mut self, given: Vec<ColumnFilter>) -> Result<Vec<Filter>, ServiceError> {
        given.into_iter().map(|part| self.filter(part)).collect()
    }

    fn rule(&mut self, given: &ValueTransfer) -> Result<ValueRule, ServiceError> {
        self.0 += 1;
        if self.0 > VALUE_RULES_MAX {
            return Err(invalid(format!(
                "The filters of the request have more than {VALUE_RULES_MAX} value transfer rules."
            )));
        }
        let cast = match given.cast {
            CastType::Integer => Cast::Integer,
            CastType::Double => Cast::Double,
            CastType::String => Cast::String,
        };
        ValueRule::new(&given.pattern, cast).map_err(store_error)
    }
}

fn comparison(given: Comparator) -> Comparison {
    match given {
        Comparator::Equal => Comparison::Equal,
        Comparator::NotEqual => Comparison::NotEqual,
        Comparator::Greater => Comparison::Greater,
        Comparator::GreaterOrEqual => Comparison::GreaterOrEqual,
        Comparator::Less => Comparison::Less,
        Comparator::LessOrEqual => Comparison::LessOrEqual,
    }
}

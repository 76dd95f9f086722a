//! Conditions on rows and their columns.

use bytes::Bytes;
use fastrand::Rng;
use prost::Message as _;
use souk_tablestore::messages::{
    self as pb, ComparatorType, Condition, FilterType, LogicalOperator, RowExistenceExpectation, VariantType,
};
use souk_tablestore::variant;

use super::datum::{Datum, NAMES};
use super::row::Row;

/// What has to hold of the columns of a row.
#[derive(Clone, Debug)]
pub(super) enum Test {
    Compare {
        column: &'static str,
        sign: ComparatorType,
        value: Datum,
        /// What holds of a row without the column.
        missing: bool,
        /// Whether older versions count, too.
        any_version: bool,
        /// Whether the first number in a text is compared.
        number_in_text: bool,
    },
    Has(&'static str),
    Lacks(&'static str),
    All(Vec<Test>),
    Any(Vec<Test>),
    Not(Box<Test>),
}

/// What has to hold of a row for a write to happen.
#[derive(Clone, Debug, Default)]
pub(super) struct When {
    pub(super) exists: Option<bool>,
    pub(super) test: Option<Test>,
}

impl When {
    pub(super) fn draw(random: &mut Rng) -> Self {
        let exists = match random.u8(..8) {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        };
        let test = (random.u8(..4) == 0).then(|| Test::draw(random, &NAMES, 0));
        Self { exists, test }
    }

    pub(super) fn is_any(&self) -> bool {
        self.exists.is_none() && self.test.is_none()
    }

    pub(super) fn holds(&self, row: Option<&Row>) -> bool {
        self.exists.is_none_or(|exists| exists == row.is_some())
            && self.test.as_ref().is_none_or(|test| test.holds(row))
    }

    pub(super) fn wire(&self) -> Condition {
        let existence = match self.exists {
            None => RowExistenceExpectation::Ignore,
            Some(true) => RowExistenceExpectation::ExpectExist,
            Some(false) => RowExistenceExpectation::ExpectNotExist,
        };
        Condition {
            row_existence: existence.into(),
            column_condition: self.test.as_ref().map(Test::wire),
        }
    }
}

impl Test {
    pub(super) fn draw(random: &mut Rng, columns: &[&'static str], depth: usize) -> Self {
        let column = random.choice(columns.iter().copied()).unwrap_or("none");
        let several = |random: &mut Rng| {
            let parts = 0..random.usize(2..4);
            parts.map(|_| Self::draw(random, columns, depth + 1)).collect()
        };
        match random.u8(..if depth < 2 { 10 } else { 7 }) {
            5 => Self::Has(column),
            6 => Self::Lacks(column),
            7 => Self::All(several(random)),
            8 => Self::Any(several(random)),
            9 => Self::Not(Box::new(Self::draw(random, columns, depth + 1))),
            _ => {
                let signs = [
                    ComparatorType::Equal,
                    ComparatorType::NotEqual,
                    ComparatorType::GreaterThan,
                    ComparatorType::GreaterEqual,
                    ComparatorType::LessThan,
                    ComparatorType::LessEqual,
                ];
                let number_in_text = column == "word" && random.u8(..3) == 0;
                let value = match number_in_text {
                    true => Datum::Integer(random.i64(6..13)),
                    false => Datum::draw(random, column),
                };
                Self::Compare {
                    column,
                    sign: random.choice(signs).expect("one"),
                    value,
                    missing: random.bool(),
                    any_version: random.u8(..3) == 0,
                    number_in_text,
                }
            }
        }
    }

    /// Whether it holds of a row; of none, as of one without columns.
    pub(super) fn holds(&self, row: Option<&Row>) -> bool {
        let has = |column: &str| row.is_some_and(|row| row.cells.contains_key(column));
        match self {
            Self::Has(column) => has(column),
            Self::Lacks(column) => !has(column),
            Self::All(parts) => parts.iter().all(|part| part.holds(row)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(row)),
            Self::Not(part) => !part.holds(row),
            Self::Compare { column, missing, .. } if !has(column) => *missing,
            Self::Compare {
                column,
                sign,
                value,
                any_version,
                number_in_text,
                ..
            } => {
                let versions = row.into_iter().flat_map(|row| row.cells[*column].values().rev());
                let mut looked_at = versions.take(if *any_version { usize::MAX } else { 1 });
                looked_at.any(|cell| match number_in_text {
                    false => compares(*sign, cell, value),
                    // What is no number isn't even different.
                    true => number_in(cell).is_some_and(|number| compares(*sign, &number, value)),
                })
            }
        }
    }

    pub(super) fn wire(&self) -> Bytes {
        self.message().encode_to_vec().into()
    }

    fn message(&self) -> pb::Filter {
        let composite = |combinator: LogicalOperator, parts: &[Self]| {
            let filter = pb::CompositeColumnValueFilter {
                combinator: combinator.into(),
                sub_filters: parts.iter().map(Self::message).collect(),
            };
            pb::Filter {
                r#type: FilterType::CompositeColumnValue.into(),
                filter: filter.encode_to_vec().into(),
            }
        };
        let single = |filter: pb::SingleColumnValueFilter| pb::Filter {
            r#type: FilterType::SingleColumnValue.into(),
            filter: filter.encode_to_vec().into(),
        };
        let existence = |comparator: ComparatorType, column: &str| {
            single(pb::SingleColumnValueFilter {
                comparator: comparator.into(),
                column_name: column.to_owned(),
                column_value: Bytes::new(),
                filter_if_missing: false,
                latest_version_only: true,
                value_trans_rule: None,
            })
        };
        match self {
            Self::Has(column) => existence(ComparatorType::Exist, column),
            Self::Lacks(column) => existence(ComparatorType::NotExist, column),
            Self::All(parts) => composite(LogicalOperator::And, parts),
            Self::Any(parts) => composite(LogicalOperator::Or, parts),
            Self::Not(part) => composite(LogicalOperator::Not, std::slice::from_ref(part)),
            Self::Compare {
                column,
                sign,
                value,
                missing,
                any_version,
                number_in_text,
            } => single(pb::SingleColumnValueFilter {
                comparator: (*sign).into(),
                column_name: (*column).to_owned(),
                column_value: variant::encode(&value.wire()),
                filter_if_missing: !missing,
                latest_version_only: !any_version,
                value_trans_rule: number_in_text.then(|| pb::ValueTransferRule {
                    regex: "[^0-9]*([0-9]+)".to_owned(),
                    cast_type: Some(VariantType::Integer.into()),
                }),
            }),
        }
    }
}

fn compares(sign: ComparatorType, left: &Datum, right: &Datum) -> bool {
    let order = left.against(right);
    match sign {
        ComparatorType::NotEqual => order.is_none_or(std::cmp::Ordering::is_ne),
        ComparatorType::Equal => order.is_some_and(std::cmp::Ordering::is_eq),
        ComparatorType::GreaterThan => order.is_some_and(std::cmp::Ordering::is_gt),
        ComparatorType::GreaterEqual => order.is_some_and(std::cmp::Ordering::is_ge),
        ComparatorType::LessThan => order.is_some_and(std::cmp::Ordering::is_lt),
        ComparatorType::LessEqual => order.is_some_and(std::cmp::Ordering::is_le),
        ComparatorType::Exist | ComparatorType::NotExist => panic!("{sign:?} compares nothing"),
    }
}

/// The first number in a text.
fn number_in(cell: &Datum) -> Option<Datum> {
    let Datum::Text(text) = cell else {
        return None;
    };
    let rest = text.trim_start_matches(|each: char| !each.is_ascii_digit());
    let digits = rest.split(|each: char| !each.is_ascii_digit()).next()?;
    digits.parse().ok().map(Datum::Integer)
}

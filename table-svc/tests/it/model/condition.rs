//! Conditions on rows and their columns.

use fastrand::Rng;
use souk_proto::table::v1::{
    ColumnFilter, Comparison, Condition, Existence, Filter, FilterList, ValueCast, ValueRule, filter,
};

use super::Fault;
use super::datum::{Datum, NAMES, one};
use super::row::Row;

/// What has to hold of the columns of a row.
#[derive(Clone, Debug)]
pub(super) enum Test {
    Compare {
        column: &'static str,
        sign: Comparison,
        value: Datum,
        /// What holds of a row without the column.
        missing: bool,
        /// Whether older versions count, too.
        any_version: bool,
        /// Whether the first number in a text is compared.
        number_in_text: bool,
    },
    Has(&'static str),
    All(Vec<Test>),
    Any(Vec<Test>),
    None(Vec<Test>),
}

/// What has to hold of a row for a write to happen.
#[derive(Clone, Debug, Default)]
pub(super) struct When {
    pub(super) exists: Option<bool>,
    pub(super) revision: Option<i64>,
    pub(super) test: Option<Test>,
}

const SIGNS: [Comparison; 7] = [
    Comparison::Unspecified,
    Comparison::Equal,
    Comparison::NotEqual,
    Comparison::Greater,
    Comparison::GreaterOrEqual,
    Comparison::Less,
    Comparison::LessOrEqual,
];

impl When {
    /// `present` is the row that is to be written.
    pub(super) fn draw(random: &mut Rng, present: Option<&Row>) -> Self {
        let exists = match random.u8(..10) {
            0 => Some(false),
            1 | 2 => Some(true),
            _ => None,
        };
        let revision = match random.u8(..12) {
            0 => Some(present.map_or(1, |row| row.revision)),
            1 => Some(present.map_or(0, |row| row.revision + 1)),
            _ => None,
        };
        let test = (random.u8(..4) == 0).then(|| Test::draw(random, &NAMES, 0));
        Self {
            exists,
            revision,
            test,
        }
    }

    pub(super) fn holds(&self, row: Option<&Row>) -> Result<(), Fault> {
        match (self.exists, row) {
            (Some(true), None) => return Err(Fault::Missing),
            (Some(false), Some(_)) => return Err(Fault::There),
            _ => {}
        }
        match (self.revision, row) {
            (Some(_), None) => return Err(Fault::Missing),
            (Some(revision), Some(row)) if row.revision != revision => return Err(Fault::Differs),
            _ => {}
        }
        match self.test.as_ref().is_none_or(|test| test.holds(row)) {
            true => Ok(()),
            false => Err(Fault::Differs),
        }
    }

    pub(super) fn wire(&self) -> Option<Condition> {
        let existence = match self.exists {
            None => Existence::Unspecified,
            Some(true) => Existence::MustExist,
            Some(false) => Existence::MustNotExist,
        };
        Some(Condition {
            existence: existence.into(),
            revision: self.revision,
            columns: self.test.as_ref().map(Test::wire),
        })
    }
}

impl Test {
    pub(super) fn draw(random: &mut Rng, columns: &[&'static str], depth: usize) -> Self {
        let column = random.choice(columns.iter().copied()).unwrap_or("none");
        let several = |random: &mut Rng| {
            let parts = 0..random.usize(..4);
            parts.map(|_| Self::draw(random, columns, depth + 1)).collect()
        };
        match random.u8(..if depth < 2 { 10 } else { 7 }) {
            5 | 6 => Self::Has(column),
            7 => Self::All(several(random)),
            8 => Self::Any(several(random)),
            9 => Self::None(several(random)),
            _ => {
                let number_in_text = column == "word" && random.u8(..3) == 0;
                Self::Compare {
                    column,
                    sign: one(random, &SIGNS),
                    value: match number_in_text {
                        true => Datum::Integer(random.i64(6..13)),
                        false => Datum::draw(random, column),
                    },
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
            Self::All(parts) => parts.iter().all(|part| part.holds(row)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(row)),
            Self::None(parts) => !parts.iter().any(|part| part.holds(row)),
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

    pub(super) fn wire(&self) -> Filter {
        let list = |parts: &[Self]| FilterList {
            filters: parts.iter().map(Self::wire).collect(),
        };
        let kind = match self {
            Self::Has(column) => filter::Kind::Exists((*column).to_owned()),
            Self::All(parts) => filter::Kind::AllOf(list(parts)),
            Self::Any(parts) => filter::Kind::AnyOf(list(parts)),
            Self::None(parts) => filter::Kind::NoneOf(list(parts)),
            Self::Compare {
                column,
                sign,
                value,
                missing,
                any_version,
                number_in_text,
            } => filter::Kind::Column(ColumnFilter {
                column: (*column).to_owned(),
                comparison: (*sign).into(),
                value: Some(value.given(column)),
                pass_if_missing: *missing,
                any_version: *any_version,
                rule: number_in_text.then(|| ValueRule {
                    pattern: "[^0-9]*([0-9]+)".to_owned(),
                    cast: ValueCast::Integer.into(),
                }),
            }),
        };
        Filter { kind: Some(kind) }
    }
}

fn compares(sign: Comparison, left: &Datum, right: &Datum) -> bool {
    let order = left.against(right);
    match sign {
        Comparison::NotEqual => order.is_none_or(std::cmp::Ordering::is_ne),
        Comparison::Unspecified | Comparison::Equal => order.is_some_and(std::cmp::Ordering::is_eq),
        Comparison::Greater => order.is_some_and(std::cmp::Ordering::is_gt),
        Comparison::GreaterOrEqual => order.is_some_and(std::cmp::Ordering::is_ge),
        Comparison::Less => order.is_some_and(std::cmp::Ordering::is_lt),
        Comparison::LessOrEqual => order.is_some_and(std::cmp::Ordering::is_le),
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

//! Conditions of writes, and what a write gives back.

use crate::error::Reason;
use crate::filter::ColumnFilter;
use crate::messages;
use crate::messages::{ReturnType, RowExistenceExpectation};
use crate::value::Text;

/// What must hold about the row's existence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowExistence {
    /// Nothing.
    #[default]
    Ignore,
    /// It exists.
    Expected,
    /// It doesn't exist.
    NotExpected,
}

/// What must hold of a row for a write to happen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowCondition {
    /// About the row as a whole.
    pub existence: RowExistence,
    /// About its columns.
    pub columns: Option<ColumnFilter>,
}

impl TryFrom<messages::Condition> for RowCondition {
    type Error = Reason;

    fn try_from(condition: messages::Condition) -> Result<Self, Reason> {
        let expectation = condition.row_existence;
        let existence = match RowExistenceExpectation::try_from(expectation) {
            Ok(RowExistenceExpectation::Ignore) => RowExistence::Ignore,
            Ok(RowExistenceExpectation::ExpectExist) => RowExistence::Expected,
            Ok(RowExistenceExpectation::ExpectNotExist) => RowExistence::NotExpected,
            Err(_) => return Err(Reason::InvalidExpectation { expectation }),
        };
        let columns = condition.column_condition.filter(|bytes| !bytes.is_empty());
        Ok(Self {
            existence,
            columns: columns.map(ColumnFilter::decode).transpose()?,
        })
    }
}

/// What a write gives back of its row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Returning {
    /// Nothing.
    #[default]
    Nothing,
    /// Its primary key: how a row learns its number.
    Key,
    /// These columns as they are after the write: how an increment tells its sum.
    AfterModify(Vec<Text>),
}

impl TryFrom<Option<messages::ReturnContent>> for Returning {
    type Error = Reason;

    fn try_from(content: Option<messages::ReturnContent>) -> Result<Self, Reason> {
        let Some(content) = content else {
            return Ok(Self::Nothing);
        };
        let kind = content.return_type.unwrap_or_default();
        match ReturnType::try_from(kind) {
            Ok(ReturnType::None) => Ok(Self::Nothing),
            Ok(ReturnType::Pk) => Ok(Self::Key),
            Ok(ReturnType::AfterModify) => Ok(Self::AfterModify(
                content.return_column_names.into_iter().map(Text::from).collect(),
            )),
            Err(_) => Err(Reason::InvalidReturnType { kind }),
        }
    }
}

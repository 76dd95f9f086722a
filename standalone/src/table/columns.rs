//! The columns of a file, and the rows of a table in them.
//!
//! A table's rows have any columns, of any types; those of a file are fixed. So a file has a column for each of the key, for each that is
//! declared or asked for, and a last one, `*`, with all that a row has besides: columns without one of their own, and values that
//! aren't of its type.

use std::collections::{BTreeMap, BTreeSet};

use souk_api::wire::time_to_wire;
use souk_proto::table::v1::{ColumnType, KeyType, PutRowRequest, Row, RowPut, Table};
use souk_proto::r#type::v1::{Value, value::Kind};

use crate::contract::{ContractError, MessageJson};

/// The name of the column that has what no other has.
pub(crate) const OTHERS: &str = "*";

/// What the cells of a column are, by the words of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellType {
    /// `string`: text.
    String,
    /// `integer`: a whole number of 64 bits.
    Integer,
    /// `double`: a finite floating point number of 64 bits.
    Double,
    /// `boolean`: true or false.
    Boolean,
    /// `binary`: bytes, as text in base64.
    Binary,
    /// `time`: a time to the nanosecond, as text by RFC 3339.
    Time,
    /// `json`: JSON, which is kept as text.
    Json,
    /// `columns`: an object of columns with their values, as over HTTP.
    Columns,
}

impl CellType {
    /// All of them.
    const ALL: [Self; 8] = [
        Self::String,
        Self::Integer,
        Self::Double,
        Self::Boolean,
        Self::Binary,
        Self::Time,
        Self::Json,
        Self::Columns,
    ];

    /// Its word in a header.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Double => "double",
            Self::Boolean => "boolean",
            Self::Binary => "binary",
            Self::Time => "time",
            Self::Json => "json",
            Self::Columns => "columns",
        }
    }

    fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == word)
    }

    fn of_key(of: KeyType) -> Self {
        match of {
            KeyType::Unspecified | KeyType::String => Self::String,
            KeyType::Integer => Self::Integer,
            KeyType::Binary => Self::Binary,
        }
    }

    fn of_declared(of: ColumnType) -> Self {
        match of {
            ColumnType::Unspecified | ColumnType::String => Self::String,
            ColumnType::Integer => Self::Integer,
            ColumnType::Double => Self::Double,
            ColumnType::Boolean => Self::Boolean,
            ColumnType::Binary => Self::Binary,
            ColumnType::Time => Self::Time,
            ColumnType::Json => Self::Json,
        }
    }

    /// The value as cells of this type hold it; `None` when they can't.
    fn holds(self, value: &Kind) -> Option<Kind> {
        match (self, value) {
            // How a time of a column that isn't declared is answered.
            (Self::Time, Kind::IntValue(nanos)) => Some(Kind::TimeValue(time_to_wire(*nanos))),
            (Self::String | Self::Json, Kind::StringValue(_))
            | (Self::Integer, Kind::IntValue(_))
            | (Self::Double, Kind::DoubleValue(_))
            | (Self::Boolean, Kind::BoolValue(_))
            | (Self::Binary, Kind::BytesValue(_))
            | (Self::Time, Kind::TimeValue(_)) => Some(value.clone()),
            _ => None,
        }
    }
}

/// Why the columns of a file aren't those of rows of a table.
#[derive(Debug, thiserror::Error)]
pub enum ColumnsError {
    /// No type is known of one.
    #[error(
        "the type of column {name:?} isn't known: it is neither in the key nor declared; name it `{name}:TYPE`, with string, \
         integer, double, boolean, binary, time or json"
    )]
    Untyped {
        /// Which.
        name: String,
    },
    /// Two have one name.
    #[error("column {name:?} is named twice; name each once")]
    Twice {
        /// The name.
        name: String,
    },
    /// One that the key needs isn't there.
    #[error(
        "there is no column {name:?}, which is in the key of {table}; CSV names its columns in the header"
    )]
    KeyMissing {
        /// Which.
        name: String,
        /// The table.
        table: String,
    },
    /// One of the key is of another type.
    #[error("column {name:?} is {given}, but in the key of {table} it is {wanted}")]
    KeyType {
        /// Which.
        name: String,
        /// The table.
        table: String,
        /// The type in the file.
        given: &'static str,
        /// The type in the table.
        wanted: &'static str,
    },
    /// `columns` is the type of another.
    #[error("column {name:?} can't have the type columns, which is that of `*` alone")]
    NotOthers {
        /// Which.
        name: String,
    },
    /// This binary isn't whole.
    #[error(transparent)]
    Contract(#[from] ContractError),
}

/// Where the values of a column are in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CellLocation {
    /// In the key, there.
    Key(usize),
    /// In the column of its name.
    Column,
    /// In all that have no column of their own.
    Others,
}

/// One column of a file.
#[derive(Clone, Debug)]
pub(crate) struct FileColumn {
    pub(crate) name: String,
    pub(crate) cells: CellType,
    location: CellLocation,
}

impl FileColumn {
    /// Whether each row that is read from a table has a value.
    pub(crate) fn is_key(&self) -> bool {
        matches!(self.location, CellLocation::Key(_))
    }
}

/// The columns of a file with rows of a table.
#[derive(Clone, Debug)]
pub struct FileColumns {
    table: Table,
    columns: Vec<FileColumn>,
    others: MessageJson,
}

impl FileColumns {
    /// Those of an export: the key, what is declared, what is `asked` for, as `name` or `name:type`, and `*`.
    ///
    /// # Errors
    /// [`ColumnsError`].
    pub fn of_table(table: &Table, asked: &[String]) -> Result<Self, ColumnsError> {
        let asked: Vec<_> = asked
            .iter()
            .map(|name| named(name, table))
            .collect::<Result<_, _>>()?;
        let is_asked = |name: &str| asked.iter().any(|(asked, _)| asked == name);
        let key = table.key.iter();
        // A declared one of the name of the last is in that.
        let declared = table
            .columns
            .iter()
            .filter(|column| column.name != OTHERS && !is_asked(&column.name));
        let mut columns: Vec<_> = key
            .map(|column| (column.name.clone(), CellType::of_key(column.r#type())))
            .chain(declared.map(|column| (column.name.clone(), CellType::of_declared(column.r#type()))))
            .collect();
        columns.extend(asked);
        columns.push((OTHERS.to_owned(), CellType::Columns));
        Self::new(columns, table)
    }

    /// Those that a header names, as `name:type`, or as `name` where the table tells the type.
    ///
    /// # Errors
    /// [`ColumnsError`].
    pub fn of_header(header: &[String], table: &Table) -> Result<Self, ColumnsError> {
        let columns = header.iter().map(|name| named(name, table));
        Self::new(columns.collect::<Result<_, _>>()?, table)
    }

    /// Columns of these names and types.
    ///
    /// # Errors
    /// [`ColumnsError`].
    pub(crate) fn new(columns: Vec<(String, CellType)>, table: &Table) -> Result<Self, ColumnsError> {
        let mut names = BTreeSet::new();
        let mut placed = Vec::with_capacity(columns.len());
        for (name, cells) in columns {
            if !names.insert(name.clone()) {
                return Err(ColumnsError::Twice { name });
            }
            let in_key = table.key.iter().position(|column| column.name == name);
            let location = match (in_key, cells) {
                (Some(nth), _) => CellLocation::Key(nth),
                (None, CellType::Columns) if name == OTHERS => CellLocation::Others,
                (None, CellType::Columns) => return Err(ColumnsError::NotOthers { name }),
                (None, _) => CellLocation::Column,
            };
            let wanted = in_key
                .and_then(|nth| table.key.get(nth))
                .map(|column| CellType::of_key(column.r#type()));
            if let Some(wanted) = wanted.filter(|wanted| *wanted != cells) {
                let (given, wanted, table) = (cells.word(), wanted.word(), table.name.clone());
                return Err(ColumnsError::KeyType {
                    name,
                    table,
                    given,
                    wanted,
                });
            }
            placed.push(FileColumn {
                name,
                cells,
                location,
            });
        }
        let mut needed = table.key.iter().filter(|column| !column.auto_increment);
        if let Some(missing) = needed.find(|column| !names.contains(&column.name)) {
            return Err(ColumnsError::KeyMissing {
                name: missing.name.clone(),
                table: table.name.clone(),
            });
        }
        Ok(Self {
            table: table.clone(),
            columns: placed,
            others: MessageJson::of("souk.table.v1.RowPut")?,
        })
    }

    /// They, in their order.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &FileColumn> {
        self.columns.iter()
    }

    /// The header that [`of_header`](Self::of_header) reads.
    pub(crate) fn header(&self) -> Vec<String> {
        self.iter()
            .map(|column| format!("{}:{}", column.name, column.cells.word()))
            .collect()
    }

    /// The cells of a row, in the order of the columns. Those of `*` are JSON.
    ///
    /// # Errors
    /// When the row can't be told in JSON.
    pub(crate) fn cells(&self, mut row: Row) -> Result<Vec<Option<Kind>>, String> {
        let mut cells: Vec<_> = self
            .iter()
            .map(|column| match column.location {
                CellLocation::Key(nth) => row.key.get(nth)?.kind.clone(),
                CellLocation::Column => {
                    let value = row.columns.get(&column.name)?.kind.as_ref()?;
                    let held = column.cells.holds(value)?;
                    row.columns.remove(&column.name);
                    Some(held)
                }
                CellLocation::Others => None,
            })
            .collect();
        let others = self
            .columns
            .iter()
            .position(|column| column.location == CellLocation::Others);
        if let Some(cell) = others.and_then(|nth| cells.get_mut(nth)) {
            *cell = self.others(row.columns)?.map(Kind::StringValue);
        }
        Ok(cells)
    }

    /// The row that cells are, in the order of the columns.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn row(
        &self,
        cells: impl IntoIterator<Item = Result<Option<Kind>, String>>,
    ) -> Result<PutRowRequest, String> {
        let mut key = vec![None; self.table.key.len()];
        let mut row = PutRowRequest {
            table: self.table.name.clone(),
            ..PutRowRequest::default()
        };
        let mut others = BTreeMap::new();
        for (column, cell) in self.iter().zip(cells) {
            let FileColumn { name, location, .. } = column;
            let cell = cell.map_err(|reason| format!("column {name:?}: {reason}"))?;
            match (location, cell) {
                (_, None) => {}
                (CellLocation::Key(nth), cell) => {
                    if let Some(value) = key.get_mut(*nth) {
                        *value = cell;
                    }
                }
                (CellLocation::Column, kind) => {
                    row.columns.insert(name.clone(), Value { kind });
                }
                (CellLocation::Others, Some(Kind::StringValue(json))) => {
                    others = self
                        .read_others(&json)
                        .map_err(|reason| format!("column {name:?}: {reason}"))?;
                }
                (CellLocation::Others, Some(_)) => return Err(format!("column {name:?} isn't JSON")),
            }
        }
        if let Some(twice) = others.keys().find(|name| row.columns.contains_key(*name)) {
            return Err(format!("column {twice:?} is given twice: by itself and in \"*\""));
        }
        row.columns.extend(others);
        for (value, column) in key.into_iter().zip(&self.table.key) {
            match value {
                Some(kind) => row.key.push(Value { kind: Some(kind) }),
                // The server numbers it.
                None if column.auto_increment => {}
                None => return Err(format!("column {:?} of the key is empty", column.name)),
            }
        }
        Ok(row)
    }

    /// Columns as an object of JSON; `None` without any.
    fn others(&self, columns: BTreeMap<String, Value>) -> Result<Option<String>, String> {
        if columns.is_empty() {
            return Ok(None);
        }
        let row = RowPut {
            columns,
            ..RowPut::default()
        };
        let json = self.others.write(&row)?;
        // The one field that is there.
        let object = json
            .strip_prefix(r#"{"columns":"#)
            .and_then(|rest| rest.strip_suffix('}'));
        object
            .map(|object| Some(object.to_owned()))
            .ok_or_else(|| format!("{json} has no columns"))
    }

    fn read_others(&self, json: &str) -> Result<BTreeMap<String, Value>, String> {
        let given: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(json).map_err(|error| format!("isn't a JSON object: {error}"))?;
        let row = serde_json::json!({ "columns": given });
        let row: RowPut = self.others.read(row.to_string().as_bytes())?;
        Ok(row.columns)
    }
}

/// A name and a type: as it says itself behind its last colon, else as the table knows.
fn named(text: &str, table: &Table) -> Result<(String, CellType), ColumnsError> {
    if let Some((name, word)) = text.rsplit_once(':')
        && let Some(cells) = CellType::of_word(word)
    {
        return Ok((name.to_owned(), cells));
    }
    let key = table.key.iter().find(|column| column.name == text);
    let declared = table.columns.iter().find(|column| column.name == text);
    let cells = match (key, declared) {
        (Some(column), _) => CellType::of_key(column.r#type()),
        (None, _) if text == OTHERS => CellType::Columns,
        (None, Some(column)) => CellType::of_declared(column.r#type()),
        (None, None) => {
            return Err(ColumnsError::Untyped {
                name: text.to_owned(),
            });
        }
    };
    Ok((text.to_owned(), cells))
}

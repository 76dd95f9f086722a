//! The formats of files with rows.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use souk_proto::table::v1::{PutRowRequest, Table};

use super::columns::ColumnsError;
use super::{csv, ndjson, parquet};
use crate::contract::ContractError;
use crate::load::source::Item;

/// A format of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FileFormat {
    /// A row in a line, in JSON.
    Ndjson,
    /// Comma-separated values, with a header.
    Csv,
    /// Apache Parquet.
    Parquet,
}

/// Why a file isn't read at all.
#[derive(Debug, thiserror::Error)]
pub enum TableFileError {
    /// The file.
    #[error("the file can't be read: {0}")]
    Io(#[from] io::Error),
    /// It doesn't even name its columns.
    #[error("the file is empty; its header has to name the columns")]
    Empty,
    /// The names aren't text.
    #[error("the header isn't UTF-8; convert the file")]
    HeaderEncoding,
    /// Its columns.
    #[error(transparent)]
    Columns(#[from] ColumnsError),
    /// It is no file of Parquet, or not all of one.
    #[error("not a complete Parquet file: {0}")]
    Parquet(#[from] ::parquet::errors::ParquetError),
    /// A column that rows can't have.
    #[error("column {name:?} is {what}, which isn't supported; write it as {instead}")]
    Untaken {
        /// Which.
        name: String,
        /// What it is.
        what: String,
        /// What is taken.
        instead: &'static str,
    },
    /// This binary isn't whole.
    #[error(transparent)]
    Contract(#[from] ContractError),
}

impl FileFormat {
    /// The format that the name of a file tells.
    #[must_use]
    pub fn of_name(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "ndjson" | "jsonl" | "json" => Some(Self::Ndjson),
            "csv" => Some(Self::Csv),
            "parquet" => Some(Self::Parquet),
            _ => None,
        }
    }

    /// The rows of a file, for a table.
    ///
    /// # Errors
    /// [`TableFileError`]. Rows that can't be read are among the items.
    pub fn rows(
        self,
        file: File,
        table: &Table,
    ) -> Result<Box<dyn Iterator<Item = Item<PutRowRequest>> + Send>, TableFileError> {
        Ok(match self {
            Self::Ndjson => Box::new(ndjson::rows(BufReader::new(file), table.name.clone())?),
            Self::Csv => Box::new(csv::rows(file, table)?),
            Self::Parquet => Box::new(parquet::rows(file, table)?),
        })
    }
}

//! Rows of tables that users define, from files and to them: NDJSON, CSV and Parquet. Nothing here holds a whole file.
//!
//! - [`columns`]: the columns of a file. `text`: values as text.
//! - [`rows`]: what the loader takes. `ndjson`, `csv`, `parquet`: the formats. [`format`](mod@format): which there are, and the rows of a file for [`crate::load`].
//! - [`export`]: writes a table to a file. `place`: how far that has come.

pub mod columns;
mod csv;
pub mod export;
mod export_checkpoint;
pub mod format;
mod ndjson;
mod parquet;
pub mod rows;
mod text;

#[cfg(test)]
mod tests;

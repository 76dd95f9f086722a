//! Reads and writes rows as Parquet: a record for each row, a flat column for each column of the file.
//!
//! The footer of a Parquet file comes last, so one that is cut short can't be resumed. An export writes pieces, each a file of
//! one row group, and puts them together in the end, without decoding them.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{
    Compression, ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel,
};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type, Int96};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnDescriptor, Type, TypePtr};
use souk_api::wire::{time, time_to_wire};
use souk_proto::table::v1::{PutRowRequest, Row, Table};
use souk_proto::r#type::v1::value::Kind;

use super::columns::{CellType, FileColumn, FileColumns, OTHERS};
use super::format::TableFileError;
use crate::load::checkpoint::sync_folder;
use crate::load::reject::Reject;
use crate::load::source::{Item, ROW_BYTES};

/// Rows that are decoded at a time.
const BATCH_ROWS: usize = 64;
/// Most bytes of the values of a row that is decoded: JSON takes more room than the row itself.
const VALUES_BYTES: usize = 2 * ROW_BYTES;
/// Values of a piece, in bytes, after which the next begins: what an export keeps in memory, uncompressed.
const PIECE_BYTES: usize = 32 << 20;
/// Rows of a piece after which the next begins.
const PIECE_ROWS: usize = 1 << 20;
/// Most pieces of an export: a file of Parquet has no more row groups.
pub(super) const PIECES_MAX: u64 = 32_767;

const NANOS_OF_DAY: i64 = 86_400_000_000_000;
/// 1970-01-01 in the days of INT96.
const JULIAN_DAY_OF_EPOCH: i64 = 2_440_588;
/// Why a time is none of a row.
const BEYOND_TIMES: &str = "the time is outside of 1677-09-21 to 2262-04-11";

/// A value of a row, or why it is none.
type Cell = Result<Option<Kind>, String>;

/// How the values of a column are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Boolean,
    Integer,
    Unsigned,
    /// A time in units of so many nanoseconds since the Unix epoch.
    Time(i64),
    Double,
    Text,
    Json,
    Bytes,
}

impl Reading {
    /// What the schema says of a column.
    fn of(column: &ColumnDescriptor) -> Result<Self, TableFileError> {
        let untaken = |what: &str, instead| TableFileError::Untaken {
            name: column.path().parts().first().cloned().unwrap_or_default(),
            what: what.to_owned(),
            instead,
        };
        if column.max_rep_level() > 0 || column.path().parts().len() > 1 {
            return Err(untaken("nested", "JSON in a string"));
        }
        let converted = column.converted_type();
        let (number, text) = ("INT64 or DOUBLE", "BYTE_ARRAY, with STRING or without");
        let nanos_of_unit = match (column.logical_type_ref(), converted) {
            (Some(LogicalType::Timestamp(of)), _) => match of.unit {
                TimeUnit::MILLIS => Some(1_000_000),
                TimeUnit::MICROS => Some(1_000),
                TimeUnit::NANOS => Some(1),
            },
            (_, ConvertedType::TIMESTAMP_MILLIS) => Some(1_000_000),
            (_, ConvertedType::TIMESTAMP_MICROS) => Some(1_000),
            _ => None,
        };
        if matches!(converted, ConvertedType::DECIMAL | ConvertedType::INTERVAL) {
            return Err(untaken(&format!("{converted:?}"), number));
        }
        if matches!(column.logical_type_ref(), Some(LogicalType::Time(_)))
            || matches!(converted, ConvertedType::TIME_MILLIS | ConvertedType::TIME_MICROS)
        {
            return Err(untaken("TIME", "TIMESTAMP or INT64"));
        }
        Ok(match (column.physical_type(), converted) {
            (Physical::BOOLEAN, _) => Self::Boolean,
            (Physical::INT32, ConvertedType::DATE) => Self::Time(NANOS_OF_DAY),
            (Physical::INT64, _) if nanos_of_unit.is_some() => Self::Time(nanos_of_unit.unwrap_or(1)),
            (
                Physical::INT32 | Physical::INT64,
                ConvertedType::UINT_8
                | ConvertedType::UINT_16
                | ConvertedType::UINT_32
                | ConvertedType::UINT_64,
            ) => Self::Unsigned,
            (Physical::INT32 | Physical::INT64, _) => Self::Integer,
            (Physical::INT96, _) => Self::Time(1),
            (Physical::FLOAT | Physical::DOUBLE, _) => Self::Double,
            (Physical::BYTE_ARRAY, ConvertedType::JSON) => Self::Json,
            (Physical::BYTE_ARRAY, ConvertedType::UTF8 | ConvertedType::ENUM) => Self::Text,
            (Physical::BYTE_ARRAY, ConvertedType::NONE) => Self::Bytes,
            (Physical::FIXED_LEN_BYTE_ARRAY, _)
                if matches!(column.logical_type_ref(), None | Some(LogicalType::Uuid)) =>
            {
                Self::Bytes
            }
            _ => return Err(untaken("of an unsupported type", text)),
        })
    }

    /// The cells that hold such values in a column of that name.
    fn cells(self, name: &str) -> CellType {
        match self {
            Self::Boolean => CellType::Boolean,
            Self::Integer | Self::Unsigned => CellType::Integer,
            Self::Time(_) => CellType::Time,
            Self::Double => CellType::Double,
            // As text too, which it becomes when another tool writes the file anew.
            Self::Text | Self::Json if name == OTHERS => CellType::Columns,
            Self::Text => CellType::String,
            Self::Json => CellType::Json,
            Self::Bytes => CellType::Binary,
        }
    }

    fn integer(self, number: i64) -> Result<Kind, String> {
        match self {
            Self::Time(nanos) => {
                let at = number.checked_mul(nanos);
                let at = at.ok_or(BEYOND_TIMES)?;
                Ok(Kind::TimeValue(time_to_wire(at)))
            }
            Self::Unsigned if number < 0 => {
                Err("the unsigned integer is above the largest signed one of 64 bits".to_owned())
            }
            _ => Ok(Kind::IntValue(number)),
        }
    }

    fn bytes(self, bytes: &[u8]) -> Result<Kind, String> {
        // Before they are copied: many rows may share a value of a page.
        if bytes.len() > VALUES_BYTES {
            return Err(too_large());
        }
        match self {
            Self::Bytes => Ok(Kind::BytesValue(Bytes::copy_from_slice(bytes))),
            _ => {
                let text = std::str::from_utf8(bytes).map_err(|_| "isn't UTF-8".to_owned())?;
                Ok(Kind::StringValue(text.to_owned()))
            }
        }
    }
}

/// The rows of a file, numbered from 1.
///
/// # Errors
/// When it is no Parquet, isn't whole, or has columns that rows can't have.
pub(super) fn rows(
    file: File,
    table: &Table,
) -> Result<impl Iterator<Item = Item<PutRowRequest>> + Send + use<>, TableFileError> {
    let reader = SerializedFileReader::new(file)?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let readings: Vec<_> = schema
        .columns()
        .iter()
        .map(|column| Reading::of(column))
        .collect::<Result<_, _>>()?;
    let columns = schema.columns().iter().zip(&readings);
    let columns = columns.map(|(column, reading)| (column.name().to_owned(), reading.cells(column.name())));
    let mut rows = Rows {
        columns: FileColumns::new(columns.collect(), table)?,
        readings,
        reader,
        groups: 0,
        open: Vec::new(),
        left: 0,
        batch: VecDeque::new(),
    };
    let (mut number, mut over) = (0, false);
    Ok(std::iter::from_fn(move || {
        if over {
            return None;
        }
        number += 1;
        match rows.next() {
            Ok(None) => None,
            Ok(Some(Ok(row))) => Some(Item::Row(number, row)),
            Ok(Some(Err(reason))) => Some(Item::Unreadable(Reject::new(number, "", "UNREADABLE", reason))),
            Err(error) => {
                over = true;
                Some(Item::Failed(io::Error::new(io::ErrorKind::InvalidData, error)))
            }
        }
    }))
}

/// Reads rows, a few at a time.
struct Rows {
    columns: FileColumns,
    readings: Vec<Reading>,
    reader: SerializedFileReader<File>,
    /// Row groups that were opened.
    groups: usize,
    /// The columns of the last of them.
    open: Vec<ColumnReader>,
    /// Rows of it that aren't read.
    left: usize,
    /// The cells of rows, by column.
    batch: VecDeque<Vec<Cell>>,
}

impl Rows {
    fn next(&mut self) -> ParquetResult<Option<Result<PutRowRequest, String>>> {
        while self.batch.is_empty() {
            if self.left > 0 {
                self.read()?;
            } else if self.groups < self.reader.num_row_groups() {
                self.open()?;
            } else {
                return Ok(None);
            }
        }
        Ok(self.batch.pop_front().map(|cells| self.columns.row(cells)))
    }

    /// Opens the next row group.
    fn open(&mut self) -> ParquetResult<()> {
        let group = self.reader.get_row_group(self.groups)?;
        self.groups += 1;
        self.left = usize::try_from(group.metadata().num_rows())
            .map_err(|_| ParquetError::General("a row group has a negative number of rows".to_owned()))?;
        self.open = (0..self.readings.len())
            .map(|nth| group.get_column_reader(nth))
            .collect::<ParquetResult<_>>()?;
        Ok(())
    }

    /// Reads the next rows of the row group.
    fn read(&mut self) -> ParquetResult<()> {
        let rows = self.left.min(BATCH_ROWS);
        let mut batch: Vec<_> = (0..rows).map(|_| Vec::with_capacity(self.open.len())).collect();
        let mut sizes = [0; BATCH_ROWS];
        for (reader, reading) in self.open.iter_mut().zip(&self.readings) {
            let cells = column(reader, *reading, rows)?;
            for ((row, size), cell) in batch.iter_mut().zip(&mut sizes).zip(cells) {
                *size += bytes(&cell);
                row.push(match *size > VALUES_BYTES {
                    true => Err(too_large()),
                    false => cell,
                });
            }
        }
        self.left -= rows;
        self.batch.extend(batch);
        Ok(())
    }
}

/// The next cells of a column.
fn column(reader: &mut ColumnReader, reading: Reading, rows: usize) -> ParquetResult<Vec<Cell>> {
    match reader {
        ColumnReader::BoolColumnReader(reader) => cells(reader, rows, |truth| Ok(Kind::BoolValue(truth))),
        ColumnReader::Int32ColumnReader(reader) => cells(reader, rows, |number| {
            reading.integer(match reading {
                Reading::Unsigned => i64::from(number.cast_unsigned()),
                _ => i64::from(number),
            })
        }),
        ColumnReader::Int64ColumnReader(reader) => cells(reader, rows, |number| reading.integer(number)),
        ColumnReader::Int96ColumnReader(reader) => cells(reader, rows, |at| int96(&at)),
        ColumnReader::FloatColumnReader(reader) => cells(reader, rows, |number| double(number.into())),
        ColumnReader::DoubleColumnReader(reader) => cells(reader, rows, double),
        ColumnReader::ByteArrayColumnReader(reader) => cells(reader, rows, |of| reading.bytes(of.data())),
        ColumnReader::FixedLenByteArrayColumnReader(reader) => {
            cells(reader, rows, |of| reading.bytes(of.data()))
        }
    }
}

fn cells<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    value: impl Fn(T::T) -> Result<Kind, String>,
) -> ParquetResult<Vec<Cell>> {
    let (mut values, mut levels) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    let (read, ..) = reader.read_records(rows, Some(&mut levels), None, &mut values)?;
    if read != rows {
        return Err(ParquetError::EOF(
            "a column ends before the rows of its row group".to_owned(),
        ));
    }
    // A column that each row has needs no levels.
    let is_there = |row: usize| levels.get(row).is_none_or(|level| *level > 0);
    let mut values = values.into_iter();
    let cells = (0..rows).map(|row| match is_there(row) {
        true => values.next().map(&value).transpose(),
        false => Ok(None),
    });
    Ok(cells.collect())
}

/// A time as a day and the nanoseconds in it. Those of other tools have years that no time of a row has.
fn int96(at: &Int96) -> Result<Kind, String> {
    let &[low, high, day] = at.data() else {
        return Err("isn't an INT96".to_owned());
    };
    let days = i64::from(day.cast_signed()) - JULIAN_DAY_OF_EPOCH;
    let nanos = (i64::from(high) << 32) | i64::from(low);
    let at = days
        .checked_mul(NANOS_OF_DAY)
        .and_then(|at| at.checked_add(nanos));
    Ok(Kind::TimeValue(time_to_wire(at.ok_or(BEYOND_TIMES)?)))
}

fn double(number: f64) -> Result<Kind, String> {
    match number.is_finite() {
        true => Ok(Kind::DoubleValue(number)),
        false => Err(format!("{number} isn't a finite number")),
    }
}

/// The bytes of a cell whose size isn't fixed.
fn bytes(cell: &Cell) -> usize {
    match cell {
        Ok(Some(Kind::StringValue(text))) => text.len(),
        Ok(Some(Kind::BytesValue(bytes))) => bytes.len(),
        _ => 0,
    }
}

fn too_large() -> String {
    format!("the values of a row have at most {VALUES_BYTES} bytes")
}

/// The values of a column of a piece, those of rows without one left out.
enum PieceValues {
    Booleans(Vec<bool>),
    Integers(Vec<i64>),
    Doubles(Vec<f64>),
    Bytes(Vec<ByteArray>),
}

/// A column of a piece.
struct PieceColumn {
    values: PieceValues,
    /// Parquet's definition levels: for each row 1 if it has a value, else 0.
    levels: Vec<i16>,
}

impl PieceColumn {
    fn new(cells: CellType) -> Self {
        let values = match cells {
            CellType::Boolean => PieceValues::Booleans(Vec::new()),
            CellType::Integer | CellType::Time => PieceValues::Integers(Vec::new()),
            CellType::Double => PieceValues::Doubles(Vec::new()),
            CellType::String | CellType::Binary | CellType::Json | CellType::Columns => {
                PieceValues::Bytes(Vec::new())
            }
        };
        let levels = Vec::new();
        Self { values, levels }
    }

    /// Adds the cell of a row; returns about the bytes that its value takes in memory.
    fn push(&mut self, cell: Option<Kind>) -> usize {
        self.levels.push(cell.is_some().into());
        match (&mut self.values, cell) {
            (PieceValues::Booleans(values), Some(Kind::BoolValue(truth))) => values.push(truth),
            (PieceValues::Integers(values), Some(Kind::IntValue(number))) => values.push(number),
            (PieceValues::Integers(values), Some(Kind::TimeValue(at))) => {
                values.push(time(&at).unwrap_or_default());
            }
            (PieceValues::Doubles(values), Some(Kind::DoubleValue(number))) => values.push(number),
            (PieceValues::Bytes(values), Some(Kind::StringValue(text))) => {
                let bytes = text.len();
                values.push(text.into_bytes().into());
                return bytes + size_of::<ByteArray>();
            }
            (PieceValues::Bytes(values), Some(Kind::BytesValue(of))) => {
                let bytes = of.len();
                values.push(of.into());
                return bytes + size_of::<ByteArray>();
            }
            _ => return 0,
        }
        size_of::<i64>()
    }

    /// Writes a chunk of a row group. A column that isn't optional has no definition levels.
    fn write(&self, is_optional: bool, mut to: SerializedColumnWriter<'_>) -> ParquetResult<()> {
        let levels = is_optional.then_some(&*self.levels);
        match &self.values {
            PieceValues::Booleans(values) => to.typed::<BoolType>().write_batch(values, levels, None)?,
            PieceValues::Integers(values) => to.typed::<Int64Type>().write_batch(values, levels, None)?,
            PieceValues::Doubles(values) => to.typed::<DoubleType>().write_batch(values, levels, None)?,
            PieceValues::Bytes(values) => to.typed::<ByteArrayType>().write_batch(values, levels, None)?,
        };
        to.close()
    }
}

/// Writes rows: in pieces, and in the end in one file.
pub(super) struct Pieces {
    columns: FileColumns,
    schema: TypePtr,
    properties: WriterPropertiesPtr,
    path: PathBuf,
    /// Whole pieces.
    count: u64,
    /// What the next has so far.
    next: Vec<PieceColumn>,
    rows: usize,
    bytes: usize,
}

impl Pieces {
    /// Of a file of that name, after so many pieces.
    pub(super) fn new(columns: FileColumns, path: &Path, count: u64) -> ParquetResult<Self> {
        let fields = columns.iter().map(field).collect::<ParquetResult<_>>()?;
        let schema = Type::group_type_builder("row").with_fields(fields).build()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(format!("souk {}", env!("CARGO_PKG_VERSION")))
            // Those of pages wouldn't be put together.
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .build();
        let next = columns
            .iter()
            .map(|column| PieceColumn::new(column.cells))
            .collect();
        Ok(Self {
            columns,
            schema: Arc::new(schema),
            properties: Arc::new(properties),
            path: path.to_owned(),
            count,
            next,
            rows: 0,
            bytes: 0,
        })
    }

    /// Adds a row.
    pub(super) fn push(&mut self, row: Row) -> Result<(), String> {
        let cells = self.columns.cells(row)?;
        for (column, cell) in self.next.iter_mut().zip(cells) {
            // And its level, which an empty cell has too.
            self.bytes += column.push(cell) + size_of::<i16>();
        }
        self.rows += 1;
        Ok(())
    }

    /// Writes a piece if there is enough for one; tells how many there are then.
    pub(super) fn settle(&mut self) -> ParquetResult<Option<u64>> {
        if self.bytes < PIECE_BYTES && self.rows < PIECE_ROWS {
            return Ok(None);
        }
        self.end_piece()?;
        Ok(Some(self.count))
    }

    /// The first of the whole pieces that isn't there.
    pub(super) fn missing(&self) -> Option<PathBuf> {
        let mut pieces = (1..=self.count).map(|nth| self.piece(nth));
        pieces.find(|piece| !piece.exists())
    }

    /// Puts the pieces together.
    pub(super) fn put_together(&mut self) -> ParquetResult<()> {
        if self.rows > 0 {
            self.end_piece()?;
        }
        let whole = beside(&self.path, "whole");
        let mut writer = self.writer(&whole)?;
        for nth in 1..=self.count {
            let piece = File::open(self.piece(nth))?;
            let read = SerializedFileReader::new(piece.try_clone()?)?;
            for group in read.metadata().row_groups() {
                let mut to = writer.next_row_group()?;
                for column in group.columns() {
                    let close = ColumnCloseResult {
                        bytes_written: column.compressed_size().unsigned_abs(),
                        rows_written: group.num_rows().unsigned_abs(),
                        metadata: column.clone(),
                        bloom_filter: None,
                        column_index: None,
                        offset_index: None,
                    };
                    to.append_column(&piece, close)?;
                }
                to.close()?;
            }
        }
        writer.finish()?;
        writer.inner().sync_data()?;
        fs::rename(&whole, &self.path)?;
        // Before the pieces are removed.
        sync_folder(&self.path)?;
        Ok(())
    }

    /// Removes the pieces, which aren't needed any more.
    pub(super) fn remove(&self) -> ParquetResult<()> {
        // The last first: what a kill leaves of them is found by the next export, which looks behind its own.
        for nth in (1..=self.count).rev() {
            fs::remove_file(self.piece(nth))?;
        }
        // Of a longer export that wasn't gone on with.
        let older = (self.count + 1..).take_while(|nth| fs::remove_file(self.piece(*nth)).is_ok());
        older.for_each(drop);
        Ok(())
    }

    /// Writes what there is as a piece.
    pub(super) fn end_piece(&mut self) -> ParquetResult<()> {
        if self.count >= PIECES_MAX {
            let text = format!(
                "a file of Parquet has at most {PIECES_MAX} pieces (PIECES_MAX); export to NDJSON or CSV"
            );
            return Err(ParquetError::General(text));
        }
        let mut writer = self.writer(&self.piece(self.count + 1))?;
        let mut group = writer.next_row_group()?;
        for (column, of) in self.next.iter().zip(self.columns.iter()) {
            let to = group.next_column()?;
            let to = to.ok_or_else(|| ParquetError::General("the schema has fewer columns".to_owned()))?;
            column.write(!of.is_key(), to)?;
        }
        group.close()?;
        writer.finish()?;
        writer.inner().sync_data()?;
        self.next = self
            .columns
            .iter()
            .map(|column| PieceColumn::new(column.cells))
            .collect();
        (self.rows, self.bytes) = (0, 0);
        self.count += 1;
        Ok(())
    }

    fn writer(&self, path: &Path) -> ParquetResult<SerializedFileWriter<File>> {
        let file = File::create(path)?;
        SerializedFileWriter::new(file, Arc::clone(&self.schema), Arc::clone(&self.properties))
    }

    fn piece(&self, nth: u64) -> PathBuf {
        beside(&self.path, &format!("{nth}.piece"))
    }
}

/// A file beside another, with a longer name.
fn beside(path: &Path, extension: &str) -> PathBuf {
    path.with_added_extension(extension)
}

/// A column in the schema.
fn field(column: &FileColumn) -> ParquetResult<TypePtr> {
    let (physical, logical) = match column.cells {
        CellType::String => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        CellType::Json | CellType::Columns => (Physical::BYTE_ARRAY, Some(LogicalType::Json)),
        CellType::Binary => (Physical::BYTE_ARRAY, None),
        CellType::Integer => (Physical::INT64, None),
        CellType::Time => (
            Physical::INT64,
            Some(LogicalType::timestamp(true, TimeUnit::NANOS)),
        ),
        CellType::Double => (Physical::DOUBLE, None),
        CellType::Boolean => (Physical::BOOLEAN, None),
    };
    let repetition = match column.is_key() {
        true => Repetition::REQUIRED,
        false => Repetition::OPTIONAL,
    };
    let field = Type::primitive_type_builder(&column.name, physical)
        .with_logical_type(logical)
        .with_repetition(repetition)
        .build()?;
    Ok(Arc::new(field))
}

//! Files of Parquet as other tools write them, and the pieces of an export.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int96, Int96Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use souk_proto::table::v1::{ColumnType, DefinedColumn, KeyType, PutRowRequest, Row, Table};
use souk_proto::r#type::v1::value::Kind;

use super::{TestResult, all_types, fault, key_column, numbered, string, value};
use crate::load::source::Item;
use crate::table::columns::FileColumns;
use crate::table::format::FileFormat;
use crate::table::parquet::Pieces;

#[test]
fn the_others_are_read_as_text_too() -> TestResult {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("file");
    let mut writer = parquet_writer(&path, "required binary who (UTF8); required binary * (UTF8);")?;
    let mut group = writer.next_row_group()?;
    for values in [["ann", "bob"], [r#"{"size":5}"#, "five"]] {
        write_column::<ByteArrayType>(&mut group, &values.map(ByteArray::from))?;
    }
    group.close()?;
    writer.close()?;
    let rows = parquet_rows(&path, &numbered("target"))?;
    let first = rows[0].as_ref().expect("a row");
    assert_eq!(first.columns["size"].kind, Some(Kind::IntValue(5)));
    let told = rows[1].as_ref().expect_err("no JSON");
    assert!(told.contains("isn't a JSON object"), "{told}");
    Ok(())
}

/// A file of Parquet with these columns, as another tool writes it.
fn parquet_writer(
    path: &Path,
    columns: &str,
) -> Result<SerializedFileWriter<File>, Box<dyn std::error::Error>> {
    let schema = parse_message_type(&format!("message row {{ {columns} }}"))?;
    let properties = WriterProperties::builder().build();
    let file = File::create(path)?;
    Ok(SerializedFileWriter::new(
        file,
        Arc::new(schema),
        Arc::new(properties),
    )?)
}

/// Writes a column of these values, which each row has.
fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("a column");
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}

/// The rows of a file of Parquet, or why they are none.
fn parquet_rows(
    path: &Path,
    table: &Table,
) -> Result<Vec<Result<PutRowRequest, String>>, Box<dyn std::error::Error>> {
    let rows = FileFormat::Parquet.rows(File::open(path)?, table)?;
    let rows = rows.map(|row| match row {
        Item::Row(_, row) => Ok(row),
        Item::Unreadable(reject) => Err(reject.reason),
        Item::Failed(error) => Err(error.to_string()),
    });
    Ok(rows.collect())
}

#[test]
fn times_of_int96_that_no_row_has_are_refused() -> TestResult {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("file");
    let mut writer = parquet_writer(&path, "required binary who (UTF8); required int96 at;")?;
    let mut group = writer.next_row_group()?;
    // 1970-01-02, and what other tools have for always and never: 9999-12-31 and 0001-01-01.
    let days = [2_440_589, 5_373_484, 1_721_426];
    write_column::<ByteArrayType>(&mut group, &days.map(|_| ByteArray::from("ann")))?;
    write_column::<Int96Type>(&mut group, &days.map(|day| Int96::from(vec![5, 0, day])))?;
    group.close()?;
    writer.close()?;
    let rows = parquet_rows(&path, &numbered("target"))?;
    let at = souk_api::wire::time_to_wire(86_400_000_000_005);
    let first = rows[0].as_ref().expect("a time");
    assert_eq!(first.columns["at"].kind, Some(Kind::TimeValue(at)));
    for refused in &rows[1..] {
        let told = refused.as_ref().expect_err("a time of no row");
        assert!(told.contains("1677"), "{told}");
    }
    Ok(())
}

#[test]
fn rows_of_parquet_that_are_too_large_are_refused_before_they_are_copied() -> TestResult {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("file");
    let columns = "required binary who (UTF8); required binary a; required binary b;";
    let mut writer = parquet_writer(&path, columns)?;
    let mut group = writer.next_row_group()?;
    write_column::<ByteArrayType>(&mut group, &[(); 3].map(|()| ByteArray::from("ann")))?;
    for sizes in [[7, 4, 1], [1, 4, 1]] {
        let values = sizes.map(|size: usize| ByteArray::from(vec![b'x'; size << 20]));
        write_column::<ByteArrayType>(&mut group, &values)?;
    }
    group.close()?;
    writer.close()?;
    let rows = parquet_rows(&path, &numbered("target"))?;
    for (row, column) in rows.iter().zip(["a", "b"]) {
        let told = row.as_ref().expect_err("too large");
        assert!(told.contains(&format!("{column:?}: the values")), "{told}");
    }
    let last = rows[2].as_ref().expect("a row of 2 MiB");
    assert_eq!(last.columns.len(), 2);
    Ok(())
}

#[test]
fn columns_of_parquet_that_rows_cant_have_are_named() -> TestResult {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("file");
    let key = "required binary who (UTF8); required int64 nth; required binary raw (UTF8);";
    let mut table = all_types("target");
    table.key[2] = key_column("raw", KeyType::String);
    table.columns.clear();
    for (column, words) in [
        (
            "optional group tags (LIST) { repeated group list { optional int64 element; } }",
            "nested",
        ),
        ("repeated int64 many;", "nested"),
        ("optional int64 price (DECIMAL(9,2));", "DECIMAL"),
        ("optional int32 at (TIME_MILLIS);", "TIME"),
        ("optional int64 at (TIMESTAMP(MICROS,true));", ""),
        ("optional int96 at;", ""),
        ("optional int32 day (DATE);", ""),
        ("optional float part;", ""),
        ("optional fixed_len_byte_array(16) id (UUID);", ""),
    ] {
        parquet_writer(&path, &format!("{key} {column}"))?.close()?;
        let told = fault(FileFormat::Parquet, &path, &table)?;
        assert!(
            told.contains(words) && words.is_empty() == told.is_empty(),
            "{column}: {told:?}"
        );
    }
    Ok(())
}

#[test]
fn empty_cells_fill_a_piece_too() -> TestResult {
    let folder = tempfile::tempdir()?;
    let mut table = all_types("wide");
    table.columns = (0..1_000)
        .map(|nth| DefinedColumn {
            name: format!("c{nth}"),
            r#type: ColumnType::Integer.into(),
        })
        .collect();
    let columns = FileColumns::of_table(&table, &[])?;
    let mut pieces = Pieces::new(columns, &folder.path().join("file"), 0)?;
    let row = Row {
        key: vec![
            value(string("ann")),
            value(Kind::IntValue(1)),
            value(Kind::BytesValue("x".into())),
        ],
        ..Row::default()
    };
    let mut rows = 0;
    while pieces.settle()?.is_none() {
        pieces.push(row.clone())?;
        rows += 1;
        // Each has a level for each of its cells.
        assert!(rows <= (32 << 20) / 2_000, "{rows} rows of 1,004 cells");
    }
    Ok(())
}

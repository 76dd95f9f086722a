//! Columns for tests.

use std::collections::BTreeSet;

use tantivy::columnar::{BytesColumn, ColumnarReader, ColumnarWriter, DynamicColumn};

/// A column of these strings.
pub(super) fn column(strings: &BTreeSet<Vec<u8>>) -> BytesColumn {
    let mut writer = ColumnarWriter::default();
    for (doc, string) in strings.iter().enumerate() {
        writer.record_bytes(doc as u32, "strings", string);
    }
    let mut bytes = Vec::new();
    writer
        .serialize(strings.len() as u32, None, &mut bytes)
        .expect("written");
    let reader = ColumnarReader::open(bytes).expect("opened");
    let columns = reader.read_columns("strings").expect("read");
    match columns.first().map(|column| column.open()) {
        Some(Ok(DynamicColumn::Bytes(column))) => column,
        other => panic!("no column of bytes: {other:?}"),
    }
}

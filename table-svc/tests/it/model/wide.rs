//! A row that is more than an answer holds: it is read by pieces.

use std::collections::BTreeMap;

use souk_proto::table::v1::{
    BatchGetRowsRequest, DeleteRowRequest, GetRowRequest, Key as WireKey, KeyRange, PutRowRequest,
    RangeRowsRequest, ReadOptions, RowChangeKind,
};

use super::Program;
use super::datum::{Datum, wire_key};
use super::row::{Change, Done};

/// Bytes of each of its columns: two are more than 3 MiB, and less than a request may have.
const COLUMN_BYTES: usize = 1_800_000;
const COLUMNS: [&str; 2] = ["wide1", "wide2"];

impl Program {
    /// Puts a wide row, reads it, and deletes it.
    pub(super) async fn widen(&mut self) {
        let name = self.table();
        let Some(table) = self.tables.get(name).cloned() else {
            return;
        };
        let key = table.draw_key(&mut self.random);
        if table.numbered.is_some() || self.kept_out(name, None, &key[0]).is_some() {
            return;
        }
        let values = COLUMNS.map(|column| {
            let bytes = vec![self.random.u8(..); COLUMN_BYTES];
            (column, Datum::Bytes(bytes), None)
        });
        let change = Change::Put(values.to_vec());
        let columns = values.map(|(column, value, _)| (column.to_owned(), value.wire()));
        let request = PutRowRequest {
            table: name.to_owned(),
            key: wire_key(&key),
            columns: BTreeMap::from(columns.clone()),
            ..PutRowRequest::default()
        };
        self.say(&("a wide row", name, &key));
        let sequence = self.client().put_row(request).await;
        let sequence = sequence.expect("written").into_inner().sequence;
        self.saw(sequence);
        let before = self.rows(name, None).remove(&key);
        let done = change
            .apply(before.as_ref(), &table.options, self.now)
            .expect("a row");
        self.happen(name, None, key.clone(), RowChangeKind::Put, done, sequence);
        let mut read = ReadOptions::default();
        for (nth, column) in columns.iter().enumerate() {
            let request = GetRowRequest {
                table: name.to_owned(),
                key: wire_key(&key),
                read: Some(read.clone()),
                ..GetRowRequest::default()
            };
            let piece = self
                .client()
                .get_row(request)
                .await
                .expect("a piece")
                .into_inner();
            let expected = BTreeMap::from([column.clone()]);
            assert!(piece.row.expect("a row").columns == expected, "the piece {nth}");
            assert_eq!(
                piece.next_column.as_str(),
                COLUMNS.get(nth + 1).copied().unwrap_or_default()
            );
            read.start_column = piece.next_column;
        }
        let values = wire_key(&key);
        let request = BatchGetRowsRequest {
            table: name.to_owned(),
            keys: vec![WireKey {
                values: values.clone(),
            }],
            ..BatchGetRowsRequest::default()
        };
        let read = self.client().batch_get_rows(request).await;
        let read = read.expect("an answer").into_inner().results.swap_remove(0);
        assert_eq!(read.next_column, COLUMNS[1]);
        assert!(read.row.expect("a row").columns == BTreeMap::from([columns[0].clone()]));
        let request = RangeRowsRequest {
            table: name.to_owned(),
            range: Some(KeyRange {
                prefix: Some(WireKey { values }),
                ..KeyRange::default()
            }),
            ..RangeRowsRequest::default()
        };
        let page = self.client().range_rows(request).await;
        let page = page.expect("a page").into_inner();
        assert_eq!((page.rows.len(), page.next_page_token.as_str()), (1, ""));
        assert!(page.rows[0].columns == BTreeMap::from(columns));
        let request = DeleteRowRequest {
            table: name.to_owned(),
            key: wire_key(&key),
            ..DeleteRowRequest::default()
        };
        let deleted = self.client().delete_row(request).await;
        let sequence = deleted.expect("deleted").into_inner().sequence;
        self.saw(sequence);
        self.happen(name, None, key, RowChangeKind::Delete, Done::Gone, sequence);
        self.met("a wide row");
    }
}

//! Watches: what they tell of the changes of a table; and what is freed, which is a change, too.

use std::sync::Arc;

use souk_api::hosting::Service as _;
use souk_proto::table::v1::{RangeRowsRequest, RowChangeKind, WatchRowsRequest};

use super::Program;
use super::datum::{Key, key_told};
use super::table::Life;

impl Program {
    /// Every change since the last watch is told, in order.
    pub(super) async fn watch(&mut self, name: &'static str) {
        let Some(table) = self.tables.get_mut(name).map(Arc::make_mut) else {
            return;
        };
        let Some(last) = table.changes.iter().map(|told| told.sequence).max() else {
            return;
        };
        let after = std::mem::replace(&mut table.watched, last);
        let changes = std::mem::take(&mut table.changes);
        let (life, has_times) = (table.life, table.options.has_times);
        let request = WatchRowsRequest {
            table: name.to_owned(),
            after_sequence: Some(after),
            since: None,
        };
        self.say(&request);
        let answer = self.client().watch_rows(request).await;
        let mut events = answer.expect("a stream").into_inner();
        let mut found = Vec::new();
        loop {
            let event = events.message().await.expect("an event").expect("more");
            for change in &event.changes {
                let row = change.row.as_ref().expect("a row");
                let is_deleted = change.kind() == RowChangeKind::Delete;
                let after = (!is_deleted).then(|| row.columns.clone());
                found.push((event.sequence, key_told(&row.key), change.kind(), after));
            }
            if event.sequence >= last {
                break;
            }
        }
        let expected = changes.into_iter().map(|told| {
            let row = told.row.map(|row| row.columns_told(has_times));
            (told.sequence, told.key, told.kind, row)
        });
        let mut expected: Vec<_> = expected.collect();
        let of = |told: &(i64, Key, RowChangeKind, _)| (told.0, told.1.clone());
        expected.sort_by_key(of);
        found.sort_by_key(of);
        if life != Life::Endless {
            // What expires is freed as changes of its own, and what is told of a row is what is left of it.
            let expected: Vec<_> = expected.iter().map(of).collect();
            found.retain(|told| expected.contains(&of(told)));
            assert_eq!(found.iter().map(of).collect::<Vec<_>>(), expected);
            return self.met("a watch of rows that expire");
        }
        assert_eq!(found, expected);
        self.met("a watch");
    }

    /// Frees what has expired, as the store does by itself from time to time, and tells how far its log is by then.
    pub(super) async fn free(&mut self) {
        let engine = self.running().service.engine().clone();
        engine.database().maintain().await.expect("freed");
        self.forget();
        let lived: Vec<&'static str> = self
            .tables
            .iter()
            .filter(|(_, table)| table.life != Life::Endless)
            .map(|(name, _)| *name)
            .collect();
        for name in lived {
            let found = self.exported(name).await;
            let rows = self.rows(name, None);
            assert_eq!(found.len(), rows.len());
            let table = Arc::make_mut(self.tables.get_mut(name).expect("a table"));
            for found in found {
                let key = key_told(&found.key);
                let expected = rows[&key].columns_told(table.options.has_times);
                assert_eq!(found.columns, expected, "{key:?}");
                let row = table.rows.get_mut(&key).expect("a row");
                assert!(found.revision >= row.revision, "{key:?}");
                row.revision = found.revision;
            }
            let request = RangeRowsRequest {
                table: name.to_owned(),
                page_size: 1,
                ..RangeRowsRequest::default()
            };
            let page = self.client().range_rows(request).await;
            let sequence = page.expect("a page").into_inner().sequence;
            self.saw(sequence);
        }
        self.met("what has expired freed");
    }
}

//! Writes, and changes of tables.

use std::time::Duration;

use souk_storage::{
    Backfill, Clock, Error, RowOperation, RowWrite, Table, TableSchema, TableUpdate, WriteBatch, WrittenRow,
};

use super::oracle::{Each, refusal};
use super::program::{Program, schemas};
use super::random;
use super::row::{Returned, stored};
use super::transactions::Handle;

/// What was given back, in the oracle's form.
pub(super) fn returned(row: &WrittenRow) -> Returned {
    (row.key.clone(), row.row.as_ref().map(stored))
}

fn code(error: &Error) -> &'static str {
    error.code()
}

impl Program {
    pub(super) async fn write(&mut self) {
        let now = self.now();
        let batch = random::batch(&mut self.random, &self.oracle.state, &self.tables, now);
        self.operations += batch.writes.len().max(1);
        let expected = self.oracle.write(&batch, now);
        let repeated = matches!(&expected, Ok((_, Some(_), _)));
        self.ends(
            if repeated {
                "batch repeated"
            } else {
                "batch written"
            },
            &expected,
        );
        let appends = |write: &RowWrite| matches!(write.operation, RowOperation::Append { .. });
        if expected.is_ok() && batch.writes.iter().any(appends) {
            self.happens("number appended");
        }
        let found = self.database.write(batch.clone()).await;
        let found = found
            .map(|done| {
                assert!(done.rows.iter().all(|row| row.sequence == Some(done.sequence)));
                (
                    done.sequence,
                    done.replayed,
                    done.rows.iter().map(returned).collect(),
                )
            })
            .map_err(|error| refusal(&error));
        assert_eq!(found, expected, "{batch:#?}");
    }

    pub(super) async fn write_rows(&mut self) {
        let now = self.now();
        let mut batch = random::batch(&mut self.random, &self.oracle.state, &self.tables, now);
        if self.random.u8(0..20) > 0 {
            batch.request = None;
        }
        self.operations += batch.writes.len().max(1);
        let expected = self.oracle.write_rows(&batch, now);
        self.count_rows("row written by itself", &expected);
        let found = self.database.write_rows(batch.clone()).await;
        let row = |row: Result<WrittenRow, Error>| {
            row.map(|row| (row.sequence.expect("a sequence"), returned(&row)))
                .map_err(|error| refusal(&error))
        };
        let found = found
            .map(|rows| rows.into_iter().map(row).collect())
            .map_err(|error| refusal(&error));
        assert_eq!(found, expected, "{batch:#?}");
    }

    /// Counts how rows end that are written each by itself.
    pub(super) fn count_rows<T>(&mut self, what: &'static str, ends: &Each<T>) {
        match ends {
            Ok(rows) => rows.iter().for_each(|row| self.ends(what, row)),
            refused => self.ends(what, refused),
        }
    }

    pub(super) async fn create_table(&mut self, schema: TableSchema) -> Table {
        let table = self.database.create_table(schema).await.expect("a table");
        for index in &table.schema().indexes {
            self.oracle.create_index(&table, &index.name, true);
        }
        self.operations += 1;
        table
    }

    fn random_table(&mut self) -> Table {
        self.random.choice(&self.tables).expect("a table").clone()
    }

    /// Deletes a table and creates it again: another one of that name.
    pub(super) async fn replace_table(&mut self) {
        let at = self.random.usize(0..self.tables.len());
        let old = self.tables[at].clone();
        self.database.delete_table(&old).await.expect("deleted");
        self.oracle.delete_table(&old);
        self.operations += 1;
        let key = random::key(&mut self.random, &self.oracle.state, &old, None);
        let snapshot = self.database.snapshot().await.expect("a snapshot");
        let read = snapshot.get(&old, &key).await;
        assert_eq!(read.as_ref().map_err(code), Err("TABLE_NOT_FOUND"));
        let write = random::write(&mut self.random, &self.oracle.state, &old, None, self.clock.now());
        let written = self.database.write(WriteBatch::new().row(write)).await;
        assert_eq!(written.as_ref().map_err(code), Err("TABLE_NOT_FOUND"));
        while let Some(place) = self
            .oracle
            .open
            .iter()
            .position(|open| open.table.id() == old.id())
        {
            let over = self.oracle.open.swap_remove(place).is_over(self.clock.now());
            if let Handle::Held(transaction) = self.handles.swap_remove(place) {
                let ended = transaction.commit().await;
                let expected = if over {
                    "TRANSACTION_NOT_FOUND"
                } else {
                    "TABLE_NOT_FOUND"
                };
                assert_eq!(ended.as_ref().map_err(code), Err(expected));
            }
        }
        self.happens("table replaced");
        let schema = schemas()[at].clone();
        assert_eq!(schema.name, old.name());
        self.tables[at] = self.create_table(schema).await;
        assert_ne!(self.tables[at].id(), old.id());
    }

    pub(super) async fn update_table(&mut self) {
        self.jobs_done().await;
        let table = self.random_table();
        let mut update = TableUpdate::new();
        if self.random.bool() {
            update = update.max_versions(self.random.u32(1..5));
        }
        if self.random.bool() {
            let lifetime = self.random.u64(5..60);
            let lives = self.random.bool();
            update = update.time_to_live(lives.then_some(Duration::from_millis(lifetime)));
        }
        if self.random.u8(0..4) == 0 {
            update = update.allow_update(self.random.bool());
        }
        let before = table.schema().max_versions;
        self.database
            .update_table(&table, update)
            .await
            .expect("an update");
        self.happens("table updated");
        if table.schema().max_versions < before {
            self.happens("versions trimmed");
            self.oracle.trim(&table);
        }
        self.operations += 1;
    }

    /// Creates or drops an index.
    pub(super) async fn change_indexes(&mut self) {
        self.jobs_done().await;
        let table = self.random_table();
        let index = random::index(&mut self.random, &table);
        let name = index.name.clone();
        let there = table.schema().indexes.iter().any(|index| index.name == name);
        self.operations += 1;
        if there && self.random.bool() {
            self.database.drop_index(&table, &name).await.expect("dropped");
            self.oracle.drop_index(&table, &name);
            self.happens("index dropped");
            return;
        }
        let backfill = *self
            .random
            .choice(&[Backfill::Existing, Backfill::None])
            .expect("one");
        let created = self.database.create_index(&table, index, backfill).await;
        if there {
            assert_eq!(created.as_ref().map_err(code), Err("INDEX_ALREADY_EXISTS"));
            return;
        }
        created.expect("an index");
        self.happens(match backfill {
            Backfill::Existing => "index filled",
            Backfill::None => "index not filled",
        });
        self.oracle
            .create_index(&table, &name, backfill == Backfill::Existing);
    }

    /// Writes to a table, nearly always inside of a partition.
    pub(super) fn random_writes(&mut self, at: usize) -> Vec<RowWrite> {
        let view = self.oracle.view(at);
        let now = self.clock.now();
        let open = &self.oracle.open[at];
        let count = self.random.usize(0..4);
        (0..count)
            .map(|_| {
                let inside = self.random.u8(0..40) > 0;
                let partition = inside.then_some(&open.partition);
                random::write(&mut self.random, &view, &open.table, partition, now)
            })
            .collect()
    }
}

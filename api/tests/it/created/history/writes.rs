//! Random writes of a history, alone and in batches; the ones that are refused change nothing.

use souk_engine::key::MAX_DOCUMENT_KEY_BYTES;
use souk_engine::storage::{
    CellPut, ColumnChange, Condition, KeyValue, PrimaryKey, ReturnRow, Row, RowOperation, Value,
};
use souk_engine::{EngineError, TableWrite};

use super::super::visit::{Number, Visit, WORDS};
use super::History;

impl History {
    /// One write, the row that it leaves, and whether it is to be refused.
    fn random_write(&mut self) -> (TableWrite, PrimaryKey, Option<Visit>, bool) {
        let key = self.key();
        let present = self.model.get(&key).cloned();
        let (condition, mut refused) = match self.random.u8(..4) {
            0 => (Condition::must_exist(), present.is_none()),
            1 => (Condition::must_not_exist(), present.is_some()),
            _ => (Condition::none(), false),
        };
        let (write, after) = match self.random.u8(..5) {
            0 => (TableWrite::delete(key.clone()), None),
            1 => {
                let visit = Visit::random(&mut self.random);
                (TableWrite::put(key.clone(), visit.columns()), Some(visit))
            }
            2 => {
                let visit = Visit::random(&mut self.random);
                let mut cells = Vec::new();
                for (column, value) in visit.columns() {
                    cells.extend(
                        self.versions(&column, &value)
                            .into_iter()
                            .map(|(value, version)| CellPut {
                                column: column.to_string(),
                                value,
                                version: Some(version),
                            }),
                    );
                }
                let key = key.clone();
                (
                    TableWrite::new(RowOperation::PutCells { key, cells }),
                    Some(visit),
                )
            }
            _ => {
                let mut visit = present.unwrap_or_default();
                let column = "number".to_owned();
                let number = match (self.random.bool(), visit.number) {
                    (true, Some(Number::Misfits)) => {
                        refused = true;
                        ColumnChange::Increment { column, by: 2 }
                    }
                    (true, number) => {
                        let before = match number {
                            Some(Number::Fits(number)) => number,
                            _ => 0,
                        };
                        visit.number = Some(Number::Fits(before + 2));
                        ColumnChange::Increment { column, by: 2 }
                    }
                    (false, _) => {
                        let number = Number::Fits(self.random.i64(0..10));
                        visit.number = Some(number);
                        let (value, version) = (number.value(), None);
                        ColumnChange::Put {
                            column,
                            value,
                            version,
                        }
                    }
                };
                let mut changes = vec![number];
                let column = || "word".to_owned();
                match self.random.u8(..3) {
                    0 => {
                        visit.word = None;
                        changes.push(ColumnChange::DeleteAll { column: column() });
                    }
                    1 => {
                        let word = self.random.choice(WORDS).expect("one");
                        visit.word = Some(word);
                        let versions = self.versions("word", &word.into()).into_iter();
                        changes.extend(versions.map(|(value, version)| ColumnChange::Put {
                            column: column(),
                            value,
                            version: Some(version),
                        }));
                    }
                    _ => {}
                }
                // An update doesn't touch what it doesn't name.
                refused |= !self.definition.schema.allow_update;
                (TableWrite::update(key.clone(), changes), Some(visit))
            }
        };
        (write.when(condition), key, after, refused)
    }

    /// A value of a column as its newest version, which may be listed first or last, and another one.
    fn versions(&mut self, column: &str, value: &Value) -> Vec<(Value, i64)> {
        self.met.versions += 1;
        let now = self.engine().now() / 1_000_000;
        let other = match column {
            "number" => Value::Integer(self.random.i64(0..10)),
            "data" => Visit::random(&mut self.random).data().into(),
            _ => self.random.choice(WORDS).expect("one").into(),
        };
        // One is newer than what was written without a version.
        let mut versions = vec![(value.clone(), now + 1), (other, now)];
        self.random.shuffle(&mut versions);
        versions
    }

    fn note(&mut self, key: PrimaryKey, after: Option<Visit>) {
        match after {
            Some(visit) => self.model.insert(key, visit),
            None => self.model.remove(&key),
        };
    }

    pub(super) async fn write(&mut self) {
        let (write, key, after, refused) = self.random_write();
        let write = write.returning(ReturnRow::All);
        let written = self.table().write(vec![write], None).await;
        if refused {
            assert!(written.is_err(), "{written:?}");
            self.met.refused += 1;
        } else {
            let written = written.expect("written");
            let [row] = written.value.as_slice() else {
                panic!("one row: {written:?}");
            };
            self.last = written.sequence;
            assert_eq!(row.key.as_ref(), Some(&key));
            self.check_row(row.row.as_ref(), after.as_ref());
            self.note(key.clone(), after);
            self.met.writes += 1;
        }
        let read = self
            .table()
            .get(&key, self.last.unsigned_abs())
            .await
            .expect("read");
        self.check_row(read.value.as_ref(), self.model.get(&key));
    }

    /// An updated row that had no data has none.
    pub(super) fn check_row(&self, row: Option<&Row>, visit: Option<&Visit>) {
        let (Some(row), Some(visit)) = (row, visit) else {
            assert_eq!((row.is_some(), visit.is_some()), (visit.is_some(), row.is_some()));
            return;
        };
        let (columns, _) = Visit::of(row);
        let mut expected = visit.sorted();
        if row.get("data").is_none() {
            assert_eq!((visit.city, visit.tags.len(), visit.parts.len()), (None, 0, 0));
            expected.retain(|(name, _)| name != "data");
        }
        assert_eq!(columns, expected);
    }

    /// Several writes: all or none.
    pub(super) async fn batch(&mut self) {
        let mut writes: Vec<(TableWrite, PrimaryKey, Option<Visit>, bool)> = Vec::new();
        for _ in 0..self.random.usize(2..5) {
            let write = self.random_write();
            if writes.iter().all(|other| other.1 != write.1) {
                writes.push(write);
            }
        }
        let refused = writes.iter().any(|write| write.3);
        let asked = writes.iter().map(|write| write.0.clone()).collect();
        let written = self.table().write(asked, None).await;
        assert_eq!(written.is_err(), refused, "{written:?}");
        if let Ok(written) = written {
            self.last = written.sequence;
            self.met.batches += 1;
            for (_, key, after, _) in writes {
                self.note(key, after);
            }
        }
        let keys: Vec<PrimaryKey> = self.model.keys().cloned().collect();
        let read = self.table().get_batch(&keys, 0).await.expect("read").value;
        for (row, visit) in read.iter().zip(self.model.values()) {
            self.check_row(row.as_ref(), Some(visit));
        }
    }

    /// A row that its index can't have isn't written, and nothing of its batch.
    pub(super) async fn write_too_long_a_key(&mut self) {
        // The values of a key take 3 and 9 bytes besides text.
        let shop = "x".repeat(MAX_DOCUMENT_KEY_BYTES - 11 + self.random.usize(..30));
        let key = PrimaryKey::new([KeyValue::from(shop), 1.into()]).expect("short enough for the store");
        let long = TableWrite::put(key.clone(), Vec::new());
        let beside = TableWrite::put(self.key(), Visit::random(&mut self.random).columns());
        let refused = self.table().write(vec![beside, long], None).await;
        assert!(
            matches!(
                refused,
                Err(EngineError::LimitExceeded {
                    limit: "MAX_DOCUMENT_KEY_BYTES",
                    ..
                })
            ),
            "{refused:?}"
        );
        self.table()
            .write(vec![TableWrite::delete(key)], None)
            .await
            .expect("it isn't there");
        self.met.long_keys += 1;
    }
}

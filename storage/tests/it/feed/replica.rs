//! A client of a feed that does what it is told, and a judge of what it is told.

use std::collections::BTreeMap;

use souk_storage::{Change, ChangeKind, FeedBatch, FeedPhase, PrimaryKey, RecordKind, Row, TableId};

pub(crate) type Id = (TableId, PrimaryKey);

/// Takes records in their order, without looking at their sequences. Keeps what it took when its acknowledgement
/// gets lost.
#[derive(Debug, Default)]
pub(crate) struct Replica {
    pub(crate) rows: BTreeMap<Id, Row>,
}

impl Replica {
    pub(crate) fn take(&mut self, batch: &FeedBatch) {
        for record in &batch.records {
            let id = (record.table, record.key.clone());
            match &record.row {
                Some(row) => self.rows.insert(id, row.clone()),
                None => self.rows.remove(&id),
            };
        }
    }
}

/// What was delivered along one line of batches.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// Sequence as of which each row was read.
    base: BTreeMap<Id, u64>,
    /// Sequence of the last that was delivered of each row.
    last: BTreeMap<Id, u64>,
    changes: BTreeMap<(Id, u64), (RecordKind, Option<Row>)>,
    /// Sequence as of which the last rows were read.
    base_end: u64,
    base_done: bool,
}

/// The acknowledged line, and what was read behind it.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    acknowledged: Line,
    ahead: Line,
}

impl Judge {
    /// Refuses what is delivered twice, out of order, or older than what was read.
    pub(crate) fn take(&mut self, batch: &FeedBatch) {
        for record in &batch.records {
            let id = (record.table, record.key.clone());
            let last = self.ahead.last.get(&id).or(self.acknowledged.last.get(&id));
            let last = last.copied().unwrap_or_default();
            assert!(record.sequence <= batch.sequence, "{record:?}");
            match record.kind {
                RecordKind::Base => {
                    assert!(!self.acknowledged.base.contains_key(&id), "{record:?} again");
                    assert!(last <= batch.sequence, "{record:?} after {last}");
                    let row = record.row.as_ref().expect("a row");
                    assert_eq!(row.revision, record.sequence);
                    let before = self.ahead.base.insert(id.clone(), batch.sequence);
                    assert_eq!(before, None, "{record:?} again");
                    self.ahead.last.insert(id, batch.sequence);
                }
                RecordKind::Change(kind) => {
                    if let FeedPhase::Base { table, next } = &batch.phase {
                        let is_read = (id.0, Some(&id.1)) < (*table, next.as_ref());
                        assert!(
                            is_read || kind == ChangeKind::Delete,
                            "{record:?} of a row that is to be read"
                        );
                    }
                    assert!(record.sequence > last, "{record:?} after {last}");
                    self.ahead.last.insert(id.clone(), record.sequence);
                    let said = (record.kind, record.row.clone());
                    self.ahead.changes.insert((id, record.sequence), said);
                }
            }
        }
        // The batch that ends the base stands at the sequence of the last rows.
        if !self.ahead.base_done && !self.acknowledged.base_done {
            self.ahead.base_end = batch.sequence;
            self.ahead.base_done = batch.phase == FeedPhase::Changes;
        }
    }

    /// What was read is acknowledged.
    pub(crate) fn acknowledge(&mut self) {
        let ahead = std::mem::take(&mut self.ahead);
        let Line {
            base,
            last,
            changes,
            base_end,
            base_done,
        } = ahead;
        let line = &mut self.acknowledged;
        line.base.extend(base);
        line.last.extend(last);
        line.changes.extend(changes);
        line.base_end = line.base_end.max(base_end);
        line.base_done |= base_done;
    }

    /// What was read got lost, and will be read again.
    pub(crate) fn lose(&mut self) {
        self.ahead = Line::default();
    }

    /// Refuses a line that lacks one of these changes, or tells it differently. Gives the number of rows and of
    /// changes.
    pub(crate) fn finish(self, log: &[Change], has: impl Fn(TableId) -> bool) -> (usize, usize) {
        let mut line = self.acknowledged;
        let found = (line.base.len(), line.changes.len());
        for change in log {
            for row in change.rows.iter().filter(|row| has(row.table)) {
                let id = (row.table, row.key.clone());
                let read = line.base.get(&id).copied().unwrap_or(line.base_end);
                match line.changes.remove(&(id, change.sequence)) {
                    Some(said) => assert_eq!(said, (RecordKind::Change(row.kind), row.row.clone())),
                    None => assert!(
                        change.sequence <= read,
                        "change {} of {row:?} lacks; it was read at {read}",
                        change.sequence
                    ),
                }
            }
        }
        assert!(line.changes.is_empty(), "never happened: {:?}", line.changes);
        found
    }
}

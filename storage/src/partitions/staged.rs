//! What a transaction has written and not committed.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::RwLock;
use souk_kv::{KvSnapshot, Mutation, Space};
use tokio::task::yield_now;

use super::view::{OwnWrites, Values};
use crate::batch::{RowWrite, WrittenRow};
use crate::catalog::{Catalog, Table};
use crate::change::ChangeKind;
use crate::error::{Error, Result};
use crate::limits;
use crate::metering::CapacityUnits;
use crate::plan::decide::{self, ChangedRow};
use crate::plan::numbers::Numbers;
use crate::plan::target;
use crate::plan::{self, LOGGED_ROW_BYTES, validate};
use crate::value::KeyValue;

/// Rows written by a transaction.
#[derive(Debug)]
pub(crate) struct Staged {
    pub(crate) table: Table,
    pub(crate) partition: KeyValue,
    /// The catalog's generation when the transaction began: an index that is ready since then lacks what is staged.
    pub(crate) generation: u64,
    /// What they cost so far.
    pub(crate) consumed: CapacityUnits,
    /// Rows and index entries as they will be.
    pub(crate) values: Arc<Values>,
    pub(crate) rows: BTreeMap<Bytes, StagedRow>,
    pub(crate) numbers: Numbers,
    /// Bytes of the writes so far.
    written: usize,
    /// Bytes of the values.
    memory: usize,
}

#[derive(Debug)]
pub(crate) struct StagedRow {
    /// How the row begins in the store; `None`: there is none.
    pub(crate) before: Option<Bytes>,
    pub(crate) kind: ChangeKind,
    /// What the log tells of it if it is deleted.
    pub(crate) parting: Option<Vec<u8>>,
}

/// A write that is decided and not staged yet.
type Decided = (Option<ChangedRow>, WrittenRow, Option<Bytes>);

impl Staged {
    /// Nothing is written yet.
    pub(crate) fn new(table: &Table, partition: KeyValue, generation: u64) -> Self {
        Self {
            table: table.clone(),
            partition,
            generation,
            consumed: CapacityUnits::TRANSACTION_STEP,
            values: Arc::default(),
            rows: BTreeMap::new(),
            numbers: Numbers::default(),
            written: 0,
            memory: 0,
        }
    }

    /// Stages all of the writes or none.
    pub(crate) async fn write(
        &mut self,
        catalog: &RwLock<Catalog>,
        below: Box<dyn KvSnapshot>,
        writes: &[RowWrite],
        now: i64,
        resize: impl Fn(usize) -> Result<()>,
    ) -> Result<Vec<WrittenRow>> {
        let (written, decided) = self.decide(catalog, below, writes, now).await?;
        let decided = decided.into_iter().collect::<Result<Vec<_>>>()?;
        let returned = decided.iter().map(|(_, row, _)| row.size()).sum();
        limits::check("MAX_SHOWN_BYTES", limits::MAX_SHOWN_BYTES, returned)?;
        self.reserve(decided.iter(), &resize)?;
        self.written = written;
        Ok(decided.into_iter().map(|each| self.stage(each)).collect())
    }

    /// Stages each of the writes that can be.
    pub(crate) async fn write_rows(
        &mut self,
        catalog: &RwLock<Catalog>,
        below: Box<dyn KvSnapshot>,
        writes: &[RowWrite],
        now: i64,
        resize: impl Fn(usize) -> Result<()>,
    ) -> Result<Vec<Result<WrittenRow>>> {
        let (written, decided) = self.decide(catalog, below, writes, now).await?;
        self.written = written;
        let mut returned = 0;
        let mut rows = Vec::with_capacity(decided.len());
        for decided in decided {
            rows.push(decided.and_then(|each| {
                let bytes = returned + each.1.size();
                limits::check("MAX_SHOWN_BYTES", limits::MAX_SHOWN_BYTES, bytes)?;
                self.reserve(std::iter::once(&each), &resize)?;
                returned = bytes;
                Ok(self.stage(each))
            }));
        }
        Ok(rows)
    }

    /// Decides the writes on top of what is staged; with the bytes of all writes so far.
    async fn decide(
        &mut self,
        catalog: &RwLock<Catalog>,
        below: Box<dyn KvSnapshot>,
        writes: &[RowWrite],
        now: i64,
    ) -> Result<(usize, Vec<Result<Decided>>)> {
        let valid = validate::writes(&catalog.read(), writes, now)?;
        for (position, write) in writes.iter().enumerate() {
            let inside = write.operation.partition() == Some(&self.partition);
            if write.table.id() != self.table.id() || !inside {
                return Err(Error::OutsidePartition {
                    write: position,
                    table: self.table.name().to_owned(),
                    partition: format!("{:?}", self.partition),
                });
            }
        }
        let written = self.written + valid.bytes;
        limits::check("MAX_TRANSACTION_BYTES", limits::MAX_TRANSACTION_BYTES, written)?;
        let view = OwnWrites::new(below, &self.values);
        let located = writes.iter().zip(&valid.locations).enumerate();
        let located = located.map(|(position, (write, location))| (position, write, location));
        let targets = target::find(&view, located, &mut self.numbers, now).await?;
        let (mut decided, mut matched) = (Vec::with_capacity(targets.len()), 0);
        for target in targets {
            if target.write.condition.matches_text() {
                yield_now().await;
            }
            let row = decide::row(&target, now, &mut matched);
            decided.push(row.map(|(changed, row)| (changed, row, target.found)));
        }
        Ok((written, decided))
    }

    /// Makes room for what is decided.
    fn reserve<'a>(
        &self,
        decided: impl Iterator<Item = &'a Decided>,
        resize: impl Fn(usize) -> Result<()>,
    ) -> Result<()> {
        let rows = decided.filter_map(|(changed, _, _)| changed.as_ref());
        let memory = self.memory + rows.map(size).sum::<usize>();
        limits::check("MAX_CHANGE_BYTES", limits::MAX_CHANGE_BYTES, memory)?;
        resize(memory)
    }

    /// Stages what was decided.
    fn stage(&mut self, (changed, row, found): Decided) -> WrittenRow {
        self.consumed += row.consumed;
        let Some(changed) = changed else {
            return row;
        };
        self.memory += size(&changed);
        let values = Arc::make_mut(&mut self.values);
        let mut replaced = 0;
        let mut set = |space, key: Bytes, value: Option<Bytes>| {
            let bytes = key.len();
            if let Some(before) = values.set(space, key, value) {
                replaced += bytes + before.map_or(0, |value| value.len());
            }
        };
        for mutation in changed.entries {
            match mutation {
                Mutation::Put {
                    space, key, value, ..
                } => set(space, key, Some(value.into())),
                Mutation::Delete { space, key } => set(space, key, None),
            }
        }
        set(Space::Rows, changed.key.clone(), changed.value.map(Bytes::from));
        self.memory = self.memory.saturating_sub(replaced);
        self.rows
            .entry(changed.key)
            .and_modify(|staged| {
                // A row that is put and then updated has been put as a whole.
                staged.kind = match (staged.kind, changed.kind) {
                    (ChangeKind::Put | ChangeKind::Delete, ChangeKind::Update) => ChangeKind::Put,
                    (_, kind) => kind,
                };
                staged.parting = changed.parting.clone();
            })
            .or_insert_with(|| StagedRow {
                // A copy: the row's value isn't kept for its first bytes.
                before: found.map(|value| Bytes::copy_from_slice(&plan::revision(&value))),
                kind: changed.kind,
                parting: changed.parting,
            });
        row
    }
}

/// Bytes of memory that a changed row and its entries take.
fn size(changed: &ChangedRow) -> usize {
    let entries = changed.entries.iter().map(|entry| match entry {
        Mutation::Put { key, value, .. } => key.len() + value.len(),
        Mutation::Delete { key, .. } => key.len(),
    });
    let row = LOGGED_ROW_BYTES + changed.key.len() + changed.told().map_or(0, <[u8]>::len);
    row + entries.sum::<usize>()
}

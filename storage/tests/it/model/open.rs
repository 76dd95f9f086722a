//! An open transaction, as the oracle sees it.

use std::collections::BTreeMap;

use souk_storage::limits::{MAX_TRANSACTION_IDLE, MAX_TRANSACTION_LIFE};
use souk_storage::{ChangeKind, KeyValue, PrimaryKey, RowWrite, Table};

use super::oracle::{self, Each, Logged, Oracle, Refusal, State};
use super::row::{self, Returned, Stored};

/// A row that a transaction has written.
#[derive(Debug, Clone)]
struct Staged {
    /// Whether there is one in the store.
    before: bool,
    kind: ChangeKind,
    row: Option<Stored>,
}

/// An open transaction.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) table: Table,
    pub(super) partition: KeyValue,
    started: i64,
    pub(super) used: i64,
    /// The indexes when it began, by their numbers: it reads no other.
    pub(super) indexes: Vec<u64>,
    staged: BTreeMap<PrimaryKey, Staged>,
    /// The last number given to an appended row.
    pub(super) last: Option<i64>,
}

impl Open {
    pub(super) fn is_over(&self, now: i64) -> bool {
        now - self.started >= MAX_TRANSACTION_LIFE.as_nanos() as i64
            || now - self.used >= MAX_TRANSACTION_IDLE.as_nanos() as i64
    }

    /// Whether so long a time has passed that a clock that steps back a little may change whether it is over.
    pub(super) fn is_nearly_over(&self, now: i64) -> bool {
        const MARGIN: i64 = 3_000_000_000;
        !self.is_over(now) && self.is_over(now + MARGIN)
    }
}

impl Oracle {
    pub(super) fn begin(&mut self, table: &Table, partition: &KeyValue, now: i64) -> Result<(), Refusal> {
        if self.is_held(table, partition, now) {
            return Err(("TRANSACTION_CONFLICT", None));
        }
        let indexes = self.state.indexes.iter();
        let indexes = indexes.filter(|((id, _), _)| *id == table.id().0);
        self.open.push(Open {
            table: table.clone(),
            partition: partition.clone(),
            started: now,
            used: now,
            indexes: indexes.map(|(_, index)| index.number).collect(),
            staged: BTreeMap::new(),
            last: None,
        });
        Ok(())
    }

    /// A call of a transaction: prolongs it, unless its time is up.
    pub(super) fn touch(&mut self, at: usize, now: i64) -> Result<(), Refusal> {
        if self.open[at].is_over(now) {
            return Err(("TRANSACTION_NOT_FOUND", None));
        }
        self.open[at].used = now;
        Ok(())
    }

    /// The store as a transaction sees it.
    pub(super) fn view(&self, at: usize) -> State {
        let open = &self.open[at];
        let mut state = self.state.clone();
        for (key, staged) in &open.staged {
            state.set(open.table.id().0, key, staged.row.clone());
        }
        state
    }

    /// Decides writes inside of a transaction, each by itself, and stages those that can be; with `together` all or
    /// none.
    pub(super) fn stage(
        &mut self,
        at: usize,
        writes: &[RowWrite],
        together: bool,
        now: i64,
    ) -> Each<Returned> {
        self.touch(at, now)?;
        if !oracle::are_valid(writes, now) {
            return Err(("INVALID_ARGUMENT", None));
        }
        let open = &mut self.open[at];
        let inside = |write: &RowWrite| {
            write.table.id() == open.table.id() && write.operation.partition() == Some(&open.partition)
        };
        if !writes.iter().all(inside) {
            return Err(("OUTSIDE_PARTITION", None));
        }
        let counter = (open.table.id().0, open.partition.clone());
        let mut decided = Vec::new();
        // Numbers are given before rows are looked at: what is refused leaves gaps.
        let mut numbers = BTreeMap::new();
        let last = open.last.or_else(|| self.numbers.get(&counter).copied());
        numbers.insert(counter.clone(), last.unwrap_or(0));
        for (position, write) in writes.iter().enumerate() {
            let key = oracle::target(write, &mut numbers);
            let stored = self.state.stored(&write.table, &key);
            let before = open.staged.get(&key).map_or(stored, |staged| staged.row.as_ref());
            let one = row::decide(write, &key, before, now);
            let exists = stored.is_some();
            decided.push(
                one.map_err(|code| oracle::refused(code, position))
                    .map(|(change, returned)| (key, exists, change, returned)),
            );
        }
        let last = numbers.get(&counter).copied();
        if last != self.numbers.get(&counter).copied().or(Some(0)) {
            open.last = last;
        }
        if together && let Some(refusal) = decided.iter().find_map(|one| one.as_ref().err()) {
            return Err(*refusal);
        }
        let mut results = Vec::new();
        for one in decided {
            results.push(one.map(|(key, before, change, returned)| {
                if let Some((kind, row)) = change {
                    let kind = match (open.staged.get(&key).map(|staged| staged.kind), kind) {
                        (Some(ChangeKind::Put | ChangeKind::Delete), ChangeKind::Update) => ChangeKind::Put,
                        _ => kind,
                    };
                    open.staged.insert(key, Staged { before, kind, row });
                }
                returned
            }));
        }
        Ok(results)
    }

    /// Takes the transaction out and commits it; gives the sequence.
    pub(super) fn end(&mut self, at: usize, now: i64) -> Result<u64, Refusal> {
        let open = self.open.swap_remove(at);
        if open.is_over(now) {
            return Err(("TRANSACTION_NOT_FOUND", None));
        }
        let id = open.table.id().0;
        let rows = open.staged.into_iter();
        let logged: Vec<Logged> = rows
            .filter(|(_, staged)| staged.before || staged.row.is_some())
            .map(|(key, staged)| {
                let kind = if staged.row.is_some() {
                    staged.kind
                } else {
                    ChangeKind::Delete
                };
                (id, key, kind, staged.row)
            })
            .collect();
        if let Some(last) = open.last {
            self.numbers.insert((id, open.partition), last);
        }
        Ok(self.commit(logged, now))
    }
}

//! A random program on a store and its oracle.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use souk_storage::limits::MAX_RETENTION;
use souk_storage::{
    ChangeKind, Clock, Database, DatabaseOptions, KeyKind, ManualClock, SecondaryIndexSchema, Snapshot,
    Table, TableSchema,
};

use super::checks;
use super::oracle::{Oracle, Refusal, State};
use super::transactions::Handle;

const START: i64 = 1_700_000_000_000_000_000;

/// By their names.
pub(super) fn schemas() -> [TableSchema; 4] {
    [
        TableSchema::new("journal")
            .key("shop", KeyKind::String)
            .auto_increment_key("number")
            .max_versions(2)
            .transactions()
            .index(SecondaryIndexSchema::new("by_a", ["shop", "a"]).local()),
        TableSchema::new("notes")
            .key("number", KeyKind::Integer)
            .max_versions(2),
        TableSchema::new("offers")
            .key("id", KeyKind::Binary)
            .max_versions(2)
            .time_to_live(Duration::from_millis(20))
            .transactions()
            .index(SecondaryIndexSchema::new("by_b", ["b", "a"]).include(["c"]))
            .index(SecondaryIndexSchema::new("by_id", ["id"]).include(["a", "b"])),
        TableSchema::new("products")
            .key("shop", KeyKind::String)
            .key("number", KeyKind::Integer)
            .max_versions(3)
            .transactions()
            .index(SecondaryIndexSchema::new("by_a", ["a"]).include(["c"]))
            .index(SecondaryIndexSchema::new("by_number", ["number", "b"])),
    ]
}

/// A snapshot that is kept, and what it ought to show.
pub(super) struct Kept {
    snapshot: Snapshot,
    state: State,
    sequence: u64,
}

pub(super) struct Program {
    pub(super) random: Rng,
    pub(super) clock: Arc<ManualClock>,
    pub(super) database: Database,
    directory: Option<PathBuf>,
    pub(super) tables: Vec<Table>,
    pub(super) oracle: Oracle,
    /// Of the open transactions, in the oracle's order.
    pub(super) handles: Vec<Handle>,
    kept: Vec<Kept>,
    /// How far the log has been compared.
    logged: u64,
    pub(super) operations: usize,
    /// What happened how many times: codes of errors, and names of what went well.
    pub(super) happened: BTreeMap<&'static str, usize>,
}

fn options(clock: &Arc<ManualClock>) -> DatabaseOptions {
    DatabaseOptions {
        clock: clock.clone(),
        maintenance_interval: Duration::from_secs(86_400),
        retention: MAX_RETENTION,
        request_retention: MAX_RETENTION * 10,
        ..DatabaseOptions::default()
    }
}

async fn open(directory: Option<&Path>, clock: &Arc<ManualClock>) -> Database {
    let database = match directory {
        Some(directory) => Database::open(directory, options(clock)).await,
        None => Database::in_memory(options(clock)).await,
    };
    database.expect("a database")
}

impl Program {
    pub(super) async fn new(directory: Option<&Path>) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let database = open(directory, &clock).await;
        let mut program = Self {
            random: crate::commits::random(),
            clock,
            database,
            directory: directory.map(Path::to_owned),
            tables: Vec::new(),
            oracle: Oracle::default(),
            handles: Vec::new(),
            kept: Vec::new(),
            logged: 0,
            operations: 0,
            happened: BTreeMap::new(),
        };
        for schema in schemas() {
            let table = program.create_table(schema).await;
            program.tables.push(table);
        }
        program
    }

    pub(super) fn happens(&mut self, what: &'static str) {
        *self.happened.entry(what).or_default() += 1;
    }

    /// Counts how something ends.
    pub(super) fn ends<T>(&mut self, what: &'static str, end: &Result<T, Refusal>) {
        self.happens(end.as_ref().map_or_else(|(code, _)| *code, |_| what));
    }

    /// Runs so many steps; gives the number of operations, and what happened.
    pub(super) async fn run(mut self, steps: usize) -> (usize, BTreeMap<&'static str, usize>) {
        for step in 0..steps {
            self.move_clock();
            match self.random.u16(0..1000) {
                0..400 => self.write().await,
                400..550 => self.write_rows().await,
                550..850 => self.transaction().await,
                850..870 => self.maintain().await,
                870..885 => self.update_table().await,
                885..900 => self.change_indexes().await,
                900..904 => self.replace_table().await,
                904..920 => self.keep().await,
                920..950 => self.check_kept().await,
                _ => self.check().await,
            }
            assert_eq!(
                self.database.last_sequence(),
                self.oracle.sequence(),
                "step {step}"
            );
            if self.directory.is_some() && self.random.usize(0..steps) < 8 {
                self.reopen().await;
            }
            if self.directory.is_some() && self.random.usize(0..steps) < 4 {
                self.database.quiesce().await.expect("quiesced");
                self.operations += 1;
            }
        }
        self.check().await;
        while !self.kept.is_empty() {
            self.check_kept().await;
        }
        let snapshot = self.database.snapshot().await.expect("a snapshot");
        checks::log(&snapshot, &self.oracle, 0, &mut self.random).await;
        (self.operations, self.happened)
    }

    pub(super) fn now(&self) -> i64 {
        self.clock.now()
    }

    /// By a few milliseconds, sometimes back, seldom by so much that transactions and everything that expires end.
    fn move_clock(&mut self) {
        let by = match self.random.u16(0..400) {
            0 => 25_000_000_000,
            1 => 70_000_000_000,
            _ => self.random.i64(-1..6) * 700_000,
        };
        self.clock.set(self.clock.now() + by);
        while self
            .oracle
            .open
            .iter()
            .any(|open| open.is_nearly_over(self.clock.now()))
        {
            self.clock.set(self.clock.now() + 4_000_000_000);
        }
    }

    /// Background jobs are done when it matters: before what depends on how far they are.
    pub(super) async fn jobs_done(&self) {
        self.database.jobs_done().await.expect("no jobs");
    }

    async fn maintain(&mut self) {
        self.jobs_done().await;
        let before = self.oracle.log.len();
        self.oracle.maintain(&self.tables, self.clock.now());
        self.database.maintain().await.expect("maintenance");
        for (_, _, kind, _) in self.oracle.log[before..].iter().flat_map(|(_, logged)| logged) {
            let what = match kind {
                ChangeKind::Delete => "row expired",
                ChangeKind::Put | ChangeKind::Update => "cells expired",
            };
            *self.happened.entry(what).or_default() += 1;
        }
        self.operations += 1;
    }

    /// Takes a snapshot to look at later.
    async fn keep(&mut self) {
        if self.kept.len() == 4 {
            return;
        }
        self.jobs_done().await;
        let snapshot = self.database.snapshot().await.expect("a snapshot");
        self.kept.push(Kept {
            snapshot,
            state: self.oracle.state.clone(),
            sequence: self.oracle.sequence(),
        });
        self.operations += 1;
    }

    /// Compares a snapshot that was taken long ago, and lets it go.
    async fn check_kept(&mut self) {
        if self.kept.is_empty() {
            return;
        }
        let at = self.random.usize(0..self.kept.len());
        let kept = self.kept.swap_remove(at);
        self.happens("kept snapshot compared");
        assert_eq!(kept.snapshot.sequence(), kept.sequence);
        self.check_state(&kept.snapshot, &kept.state).await;
        let after = kept.sequence.saturating_sub(20);
        self.operations += checks::log(&kept.snapshot, &self.oracle, after, &mut self.random).await;
    }

    /// Compares what is there now.
    async fn check(&mut self) {
        self.jobs_done().await;
        let snapshot = self.database.snapshot().await.expect("a snapshot");
        let state = self.oracle.state.clone();
        self.check_state(&snapshot, &state).await;
        checks::log(&snapshot, &self.oracle, self.logged, &mut self.random).await;
        self.logged = self.oracle.sequence();
    }

    /// Compares the tables that are there now, and their indexes, as a snapshot has them.
    async fn check_state(&mut self, snapshot: &Snapshot, state: &State) {
        for table in self.tables.clone() {
            self.check_table(snapshot, &table, state, None).await;
        }
    }

    /// Compares a table and its indexes; `only`: those of these numbers.
    pub(super) async fn check_table(
        &mut self,
        snapshot: &Snapshot,
        table: &Table,
        state: &State,
        only: Option<&[u64]>,
    ) {
        let now = self.now();
        self.operations += checks::rows(snapshot, table, state, &mut self.random, now).await;
        let mut names = Vec::new();
        for index in &table.schema().indexes {
            let key = (table.id().0, index.name.clone());
            let number = |state: &State| state.indexes.get(&key).map(|index| index.number);
            // Another one of that name may have taken its place.
            let there = number(state).filter(|_| number(state) == number(&self.oracle.state));
            if there.is_some_and(|number| only.is_none_or(|only| only.contains(&number))) {
                names.push(index.name.clone());
            }
        }
        self.operations += checks::indexes(snapshot, table, &names, state, &mut self.random, now).await;
    }

    /// Closes and opens; open transactions end.
    async fn reopen(&mut self) {
        self.handles.clear();
        self.oracle.open.clear();
        self.kept.clear();
        self.happens("reopened");
        self.database.close().await.expect("a close");
        let directory = self.directory.clone();
        // The engine lets go of the directory when the last handle is dropped.
        self.tables.clear();
        let memory = Database::in_memory(options(&self.clock))
            .await
            .expect("a database");
        drop(std::mem::replace(&mut self.database, memory));
        self.database = open(directory.as_deref(), &self.clock).await;
        self.tables = self.database.tables();
        assert_eq!(self.database.last_sequence(), self.oracle.sequence());
        self.operations += 2;
    }
}

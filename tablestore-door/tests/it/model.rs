//! Random programs of operations by the wire against an oracle, with restarts of the server over the same data between them.
//!
//! The oracle is ordered maps (`table`, `row`, `datum`), what conditions hold of rows (`condition`) and what reads show of them
//! (`read`): it shares nothing with the server but the wire's encoding. Its clock is the store's, so that versions and lives of cells
//! are known to the millisecond. A program depends on its seed alone; `SOUK_LONG=1` runs fifty times as many operations.

mod batches;
mod condition;
mod datum;
mod indexes;
mod ranges;
mod read;
mod row;
mod rows;
mod searches;
mod table;
mod tables;
mod transactions;
mod wanted;

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use prost::Message;
use souk_engine::storage::{DatabaseOptions, ManualClock};

use self::datum::{Datum, Key};
use self::row::Done;
use self::table::{Rows, Table};
use self::transactions::Held;
use crate::client::{Client, Refused};
use crate::server::Server;

/// Programs at a time: while one waits for the disk, others work.
const PROGRAMS: u64 = 8;
const LONG_PROGRAMS: u64 = 32;
const OPERATIONS: usize = 20_000;
const LONG_OPERATIONS: usize = 1_000_000;
/// A server is started again so often in each program.
const RESTARTS: usize = 4;
/// What is told of a program that fails: its last requests.
const SAID: usize = 8;

/// When a program begins, milliseconds since the Unix epoch.
const BEGINNING: i64 = 1_800_000_000_000;

const TABLES: [&str; 3] = ["_people", "notes", "orders7"];

/// Why an operation, or a row of it, is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// The table takes no such row.
    Invalid,
    /// The key isn't one of the table.
    Key,
    Condition,
    /// A transaction holds the partition.
    Held,
    /// It isn't of the transaction's partition.
    Outside,
    NoTransaction,
    NoTable,
    Exists,
}

impl Fault {
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::Invalid => "OTSParameterInvalid",
            Self::Key => "OTSInvalidPK",
            Self::Condition => "OTSConditionCheckFail",
            Self::Held => "OTSRowOperationConflict",
            Self::Outside => "OTSDataOutOfRange",
            Self::NoTransaction => "OTSSessionNotExist",
            Self::NoTable => "OTSObjectNotExist",
            Self::Exists => "OTSObjectAlreadyExist",
        }
    }

    fn status(self) -> u16 {
        match self {
            Self::Invalid | Self::Key | Self::Outside => 400,
            Self::Condition => 403,
            Self::Held | Self::Exists => 409,
            Self::NoTransaction | Self::NoTable => 404,
        }
    }

    pub(super) fn is(self, refused: &Refused) {
        assert_eq!(
            (refused.status, refused.code.as_str()),
            (self.status(), self.code()),
            "{}",
            refused.message
        );
    }
}

struct Program {
    server: Option<Server>,
    client: Client,
    clock: Arc<ManualClock>,
    /// What it shows, milliseconds.
    now: i64,
    tables: BTreeMap<&'static str, Table>,
    held: Vec<Held>,
    random: Rng,
    happened: BTreeMap<&'static str, usize>,
    said: VecDeque<String>,
}

/// A program that panics tells what it said last.
impl Drop for Program {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("at {}, with {:#?}", self.now, self.tables);
            eprintln!("in transactions: {:#?}", self.held);
            for said in &self.said {
                eprintln!("{said}\n");
            }
        }
    }
}

impl Program {
    async fn new(seed: u64) -> Self {
        let clock = Arc::new(ManualClock::new(BEGINNING * 1_000_000));
        let server = Server::start_with(DatabaseOptions {
            clock: Arc::clone(&clock) as _,
            ..DatabaseOptions::default()
        })
        .await;
        Self {
            client: server.client("demo"),
            server: Some(server),
            clock,
            now: BEGINNING,
            tables: BTreeMap::new(),
            held: Vec::new(),
            random: Rng::with_seed(seed),
            happened: BTreeMap::new(),
            said: VecDeque::new(),
        }
    }

    fn met(&mut self, what: &'static str) {
        *self.happened.entry(what).or_default() += 1;
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("it runs")
    }

    /// Calls an operation.
    async fn call<M: Message + Default>(
        &mut self,
        operation: &str,
        request: &(impl Message + Debug),
    ) -> Result<M, Refused> {
        self.say(operation, request);
        self.client.call(operation, request).await
    }

    fn say(&mut self, operation: &str, request: &impl Debug) {
        if self.said.len() == SAID {
            self.said.pop_front();
        }
        self.said
            .push_back(format!("{operation} at {}: {request:?}", self.now));
    }

    async fn run(mut self, operations: usize) -> BTreeMap<&'static str, usize> {
        for nth in 1..=operations {
            for held in self.pass() {
                self.ended(&held.id).await;
                self.met("a transaction whose time is up");
            }
            self.step().await;
            if nth % (operations / RESTARTS) == 0 {
                self.restart().await;
            }
        }
        self.server.take().expect("it runs").end().await;
        std::mem::take(&mut self.happened)
    }

    /// Lets time pass: often none, so that versions meet. Gives the transactions whose time is up.
    fn pass(&mut self) -> Vec<Held> {
        let milliseconds = match self.random.u16(..1_000) {
            0 => self.random.choice([30_000, 59_999, 60_000]).expect("one"),
            1..10 => self.random.i64(0..2_000),
            10..500 => self.random.i64(1..20),
            _ => 0,
        };
        self.clock
            .advance(Duration::from_millis(milliseconds.unsigned_abs()));
        self.now += milliseconds;
        let now = self.now;
        if milliseconds > 100 {
            self.forget();
        }
        let held = std::mem::take(&mut self.held).into_iter();
        let (lives, over) = held.partition(|held| held.lives(now));
        self.held = lives;
        over
    }

    /// Forgets rows that have expired.
    fn forget(&mut self) {
        let now = self.now;
        for table in self.tables.values_mut() {
            let options = &table.options;
            table.rows.retain(|_, row| row.visible(options, now).is_some());
        }
    }

    async fn step(&mut self) {
        match self.random.u8(..100) {
            0..30 => self.write().await,
            30..41 => self.write_batch().await,
            41..43 => self.import().await,
            43..55 => self.read().await,
            55..60 => self.read_batch().await,
            60..69 => self.range().await,
            69..71 => self.export().await,
            71 => self.split().await,
            72..77 => self.search().await,
            77..80 => self.scan().await,
            80..91 => self.transact().await,
            91..94 => self.change_search_index().await,
            _ => self.change_table().await,
        }
    }

    /// A table, that may not be there.
    fn table(&mut self) -> &'static str {
        self.random.choice(TABLES).expect("one")
    }

    /// One of the transactions of a table, or none.
    fn within(&mut self, table: &str) -> Option<usize> {
        let held = self.held.iter().enumerate();
        let own: Vec<usize> = held
            .filter(|(_, held)| held.table == table)
            .map(|(nth, _)| nth)
            .collect();
        self.random.choice(own).filter(|_| self.random.bool())
    }

    fn transaction_id(&self, within: Option<usize>) -> Option<String> {
        within.map(|nth| self.held[nth].id.clone())
    }

    /// The rows of a table as they are to be seen, by all or in a transaction.
    fn rows(&self, table: &str, within: Option<usize>) -> Rows {
        let table = &self.tables[table];
        let mut rows = table.rows.clone();
        for (key, row) in within.iter().flat_map(|nth| &self.held[*nth].rows) {
            match row {
                Some(row) => rows.insert(key.clone(), row.clone()),
                None => rows.remove(key),
            };
        }
        let rows = rows.into_iter();
        rows.filter_map(|(key, row)| Some((key, row.visible(&table.options, self.now)?)))
            .collect()
    }

    /// Why a transaction keeps a write out of a partition, if one does.
    fn kept_out(&self, table: &str, within: Option<usize>, partition: &Datum) -> Option<Fault> {
        match within {
            Some(nth) => (self.held[nth].partition != *partition).then_some(Fault::Outside),
            None => {
                let mut held = self.held.iter();
                let is_held = held.any(|held| held.table == table && held.partition == *partition);
                is_held.then_some(Fault::Held)
            }
        }
    }

    /// Notes what a write has made of a row.
    fn happen(&mut self, table: &str, within: Option<usize>, key: Key, done: Done) {
        let rows = self.tables.get_mut(table).expect("a table");
        if let (Some(place), Done::Row(_), None) = (rows.numbered, &done, within) {
            rows.note_number(place, &key);
        }
        let row = match done {
            Done::Nothing => return,
            Done::Row(row) => Some(row),
            Done::Gone => None,
        };
        match within {
            Some(nth) => _ = self.held[nth].rows.insert(key, row),
            None => rows.commit(key, row),
        }
    }

    /// The server ends and begins again over the same data.
    async fn restart(&mut self) {
        // They end with the process.
        let ended = std::mem::take(&mut self.held);
        let server = self.server.take().expect("it runs").reopen().await;
        self.client = server.client("demo");
        self.server = Some(server);
        for held in ended {
            self.ended(&held.id).await;
        }
        let tables = self.tables.iter();
        let searched: Vec<_> = tables
            .flat_map(|(name, table)| table.searched.keys().map(|index| (*name, index.clone())))
            .collect();
        for (name, index) in searched {
            self.until_it_answers(name, &index).await;
        }
        self.met("restarted");
    }
}

/// What a run must have met, so that it is known to be compared.
const WHAT: &[&str] = &[
    "a batch of reads",
    "a column page read to its end",
    "a condition fails",
    "a field added to a search index",
    "a field of a search index refused",
    "a missing table",
    "a partition that is held",
    "a range backward",
    "a range forward",
    "a range in a transaction",
    "a range of an index",
    "a range of an index that lacks rows",
    "a range of nothing",
    "a row appended",
    "a row deleted",
    "a row found",
    "a row given back",
    "a row imported",
    "a row imported and numbered",
    "a row in a batch refused",
    "a row in a batch written",
    "a row in a transaction read",
    "a row not shown",
    "a row of an import refused",
    "a row of an index found",
    "a row written",
    "a scan in a session",
    "a scan page by page",
    "a scan without a session",
    "a search",
    "a search by tokens",
    "a search index created",
    "a search index deleted",
    "a search index described",
    "a search index switched with itself",
    "a search that is shared out",
    "a secondary index created",
    "a secondary index dropped",
    "a secondary index of a column that isn't declared",
    "a secondary index that isn't filled",
    "a table created",
    "a table deleted",
    "a table described",
    "a table in one part",
    "a table in parts",
    "a table kept for its search index",
    "a table refused twice",
    "a transaction aborted",
    "a transaction begun",
    "a transaction committed",
    "a transaction of a deleted table",
    "a transaction whose time is up",
    "a write between the pages of a scan",
    "a write outside of its transaction",
    "a write that the table doesn't take",
    "a write to the key of another table",
    "a write without effect",
    "an atomic batch refused",
    "an atomic batch written",
    "an export",
    "an export of nothing",
    "an import into a missing table",
    "an import into an index",
    "columns declared",
    "columns that can't be declared",
    "columns that can't be undeclared",
    "columns undeclared",
    "options changed",
    "parts of nothing",
    "restarted",
    "search indexes of a table listed",
    "search indexes of all tables listed",
    "search indexes switched",
    "searches shared out",
    "searches shared out to none",
    "tables listed",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_of_operations_act_like_the_oracle() {
    let (programs, operations) = match std::env::var_os("SOUK_LONG") {
        Some(_) => (LONG_PROGRAMS, LONG_OPERATIONS),
        None => (PROGRAMS, OPERATIONS),
    };
    let seed = souk_seeds::seed();
    let programs = (0..programs).map(|nth| {
        let operations = operations / usize::try_from(programs).expect("few");
        tokio::spawn(async move { Program::new(seed.wrapping_add(nth)).await.run(operations).await })
    });
    let mut happened = BTreeMap::<&str, usize>::new();
    for program in programs.collect::<Vec<_>>() {
        for (what, often) in program.await.expect("a program that agrees with the oracle") {
            *happened.entry(what).or_default() += often;
        }
    }
    println!("{operations} operations: {happened:#?}");
    for what in WHAT {
        assert!(happened.contains_key(what), "this never happened: {what}");
    }
}

//! Random programs of calls on tables, rows, indexes and transactions against an oracle, with restarts of the service over the same
//! data between them.
//!
//! The oracle is ordered maps (`table`, `row`, `datum`), what conditions hold of rows (`condition`), what reads show of them (`read`)
//! and which of them searches find (`searches`): it shares nothing with the service but the contract's messages. Its clock is the
//! store's, so that versions and lives of cells are known to the millisecond. Indexes are built, changed and built anew while the
//! program goes on: until one is known to answer, a search may be told that it doesn't yet. `SOUK_LONG=1` runs fifty times as many
//! operations.

mod batches;
mod changes;
mod condition;
mod datum;
mod indexes;
mod ranges;
mod read;
mod repeats;
mod row;
mod rows;
mod searches;
mod table;
mod tables;
mod transactions;
mod wide;

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use souk_api::testing::{Running, reopen, serve_as};
use souk_chassis::status;
use souk_engine::storage::ManualClock;
use souk_engine::storage::limits::MIN_RETENTION;
use souk_proto::index::v1::index_service_client::IndexServiceClient;
use souk_proto::table::v1::RowChangeKind;
use souk_table_svc::TableServices;
use tonic::{Code, Status};

use self::datum::{Datum, Key};
use self::repeats::Answered;
use self::row::{Done, Row};
use self::table::{Rows, Table};
use self::transactions::Held;
use crate::{Client, client};

/// Programs at a time: while one waits for the disk, others work.
const PROGRAMS: u64 = 8;
const OPERATIONS: usize = 20_000;
const LONG_OPERATIONS: usize = 1_000_000;
/// A service is opened again so often in each program.
const RESTARTS: usize = 3;
/// What is told of a program that fails: its last requests.
const SAID: usize = 100;
/// How long the background may take for something.
const PATIENCE: Duration = Duration::from_secs(60);
/// Largest message: rows of some MiB come alone.
const MESSAGE_MAX: usize = 32 << 20;

/// When a program begins, milliseconds since the Unix epoch.
const BEGINNING: i64 = 1_800_000_000_000;

const TABLES: [&str; 3] = ["Orders7", "notes", "people"];

/// Why a call, or a row of it, is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// The table takes no such thing.
    Invalid,
    /// A value of the row is too long for a secondary index.
    TooLong,
    /// Of conditions: there is a row.
    There,
    /// There is none.
    Missing,
    /// It isn't as it has to be.
    Differs,
    /// A transaction holds the partition.
    Held,
    /// It isn't of the transaction's partition.
    Outside,
    NoTransaction,
    NoTable,
    NoRow,
    TableThere,
    NotSearched,
    /// The search index isn't there yet.
    Building,
    NoIndex,
    IndexThere,
    IndexNeeded,
}

impl Fault {
    fn code(self) -> Code {
        match self {
            Self::Invalid | Self::TooLong | Self::Outside => Code::InvalidArgument,
            Self::There | Self::TableThere | Self::IndexThere => Code::AlreadyExists,
            Self::Missing | Self::NoTransaction | Self::NoTable | Self::NoRow | Self::NoIndex => {
                Code::NotFound
            }
            Self::Differs | Self::Held => Code::Aborted,
            Self::NotSearched | Self::IndexNeeded => Code::FailedPrecondition,
            Self::Building => Code::Unavailable,
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Invalid => "INVALID_ARGUMENT",
            Self::TooLong => "LIMIT_EXCEEDED",
            Self::There | Self::Missing | Self::Differs => "CONDITION_FAILED",
            Self::Held => "TRANSACTION_CONFLICT",
            Self::Outside => "OUTSIDE_PARTITION",
            Self::NoTransaction => "TRANSACTION_NOT_FOUND",
            Self::NoTable => "TABLE_NOT_FOUND",
            Self::NoRow => "ROW_NOT_FOUND",
            Self::TableThere => "TABLE_EXISTS",
            Self::NotSearched => "NOT_SEARCHED",
            Self::Building => "INDEX_BUILDING",
            Self::NoIndex => "INDEX_NOT_FOUND",
            Self::IndexThere => "INDEX_ALREADY_EXISTS",
            Self::IndexNeeded => "INDEX_NEEDED",
        }
    }

    fn is(self, refused: &Status) {
        let reason = status::reason(refused).unwrap_or_default();
        self.is_told(refused.code().into(), &reason, refused.message());
    }

    fn is_told(self, code: i32, reason: &str, message: &str) {
        let expected = (i32::from(self.code()), self.reason());
        assert_eq!((code, reason), expected, "{message}");
    }

    fn of_a_write(self) -> &'static str {
        match self {
            Self::There | Self::Missing | Self::Differs => "a condition fails",
            Self::Held => "a partition that is held",
            Self::Outside => "a write outside of its transaction",
            Self::TooLong => "a write that an index doesn't take",
            _ => "a write that the table doesn't take",
        }
    }
}

struct Program {
    running: Option<Running<TableServices>>,
    client: Option<Client>,
    indexes: Option<IndexServiceClient<souk_chassis::server::Stack>>,
    clock: Arc<ManualClock>,
    /// What it shows, milliseconds.
    now: i64,
    tables: BTreeMap<&'static str, Arc<Table>>,
    held: Vec<Held>,
    answered: Vec<Answered>,
    /// The highest sequence that was answered.
    sequence: i64,
    random: Rng,
    happened: BTreeMap<&'static str, usize>,
    said: VecDeque<String>,
}

/// A program that panics tells what it said last.
impl Drop for Program {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for (name, table) in &self.tables {
                let Table {
                    keys,
                    options,
                    secondary,
                    searched,
                    ..
                } = &**table;
                eprintln!("{name}: {keys:?} {options:?} {secondary:?} {searched:?}");
            }
            eprintln!("at {}, in transactions: {:#?}", self.now, self.held);
            for said in &self.said {
                eprintln!("{said}\n");
            }
        }
    }
}

impl Program {
    async fn new(seed: u64) -> Self {
        let clock = Arc::new(ManualClock::new(BEGINNING * 1_000_000));
        let store = Arc::clone(&clock);
        let running = serve_as::<TableServices>(|config| {
            config.storage.clock = store;
            // What has expired is freed, and the log trimmed, when the program says so.
            config.storage.maintenance_interval = Duration::from_secs(86_400);
            config.storage.retention = MIN_RETENTION;
        });
        let mut program = Self {
            running: None,
            client: None,
            indexes: None,
            clock,
            now: BEGINNING,
            tables: BTreeMap::new(),
            held: Vec::new(),
            answered: Vec::new(),
            sequence: 0,
            random: Rng::with_seed(seed),
            happened: BTreeMap::new(),
            said: VecDeque::new(),
        };
        program.runs(running.await.expect("a service"));
        program
    }

    fn runs(&mut self, running: Running<TableServices>) {
        self.client = Some(client(&running).max_decoding_message_size(MESSAGE_MAX));
        self.indexes = Some(IndexServiceClient::new(running.stack.clone()));
        self.running = Some(running);
    }

    fn met(&mut self, what: &'static str) {
        *self.happened.entry(what).or_default() += 1;
    }

    fn running(&self) -> &Running<TableServices> {
        self.running.as_ref().expect("it runs")
    }

    fn client(&mut self) -> &mut Client {
        self.client.as_mut().expect("it runs")
    }

    fn indexes(&mut self) -> &mut IndexServiceClient<souk_chassis::server::Stack> {
        self.indexes.as_mut().expect("it runs")
    }

    /// Notes what is asked for.
    fn say(&mut self, request: &impl Debug) {
        if self.said.len() == SAID {
            self.said.pop_front();
        }
        self.said.push_back(format!("at {}: {request:?}", self.now));
    }

    /// Notes an answered sequence.
    fn saw(&mut self, sequence: i64) {
        self.sequence = self.sequence.max(sequence);
    }

    async fn run(mut self, operations: usize) -> BTreeMap<&'static str, usize> {
        for nth in 1..=operations {
            for held in self.pass() {
                self.ended(held.table, &held.id).await;
                self.met("a transaction whose time is up");
            }
            self.step().await;
            if nth % (operations / RESTARTS) == 0 {
                self.restart().await;
            }
        }
        for held in std::mem::take(&mut self.held) {
            self.end_transaction(held).await;
        }
        for name in TABLES {
            self.watch(name).await;
        }
        self.search_everywhere().await;
        std::mem::take(&mut self.happened)
    }

    /// Lets time pass: often none, so that versions meet. Gives the transactions whose time is up.
    fn pass(&mut self) -> Vec<Held> {
        let milliseconds = match self.random.u16(..1_000) {
            0 => 60_000,
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
        for table in self.tables.values_mut().map(Arc::make_mut) {
            let options = &table.options;
            table.rows.retain(|_, row| row.visible(options, now).is_some());
        }
    }

    async fn step(&mut self) {
        match self.random.u16(..1_000) {
            0..300 => self.write().await,
            300..340 => self.repeat().await,
            340..440 => self.write_batch().await,
            440..540 => self.read().await,
            540..580 => self.read_batch().await,
            580..680 => self.range().await,
            680..760 => self.search().await,
            760..880 => self.transact().await,
            880..930 => self.change_table().await,
            930..960 => self.change_index().await,
            960..990 => {
                let name = self.table();
                self.watch(name).await;
            }
            990..999 => self.free().await,
            _ => self.widen().await,
        }
    }

    /// A table, that may not be there.
    fn table(&mut self) -> &'static str {
        datum::one(&mut self.random, &TABLES)
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

    fn transaction_id(&self, within: Option<usize>) -> String {
        within.map(|nth| self.held[nth].id.clone()).unwrap_or_default()
    }

    /// The rows of a table as they are to be seen, by all or in a transaction.
    fn rows(&self, table: &str, within: Option<usize>) -> Rows {
        let table = &self.tables[table];
        let staged = within.map(|nth| &self.held[nth].rows);
        let is_staged = |key: &Key| staged.is_some_and(|staged| staged.contains_key(key));
        let rows = table.rows.iter().filter(|(key, _)| !is_staged(key));
        let staged = staged.into_iter().flatten();
        let staged = staged.filter_map(|(key, row)| Some((key, row.as_ref()?)));
        rows.chain(staged)
            .filter_map(|(key, row)| Some((key.clone(), row.visible(&table.options, self.now)?)))
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
    fn happen(
        &mut self,
        table: &str,
        within: Option<usize>,
        key: Key,
        kind: RowChangeKind,
        done: Done,
        sequence: i64,
    ) {
        // What a transaction has written and what has expired since is deleted, if nobody sees it.
        let is_staged = within.is_some_and(|nth| self.held[nth].rows.contains_key(&key));
        let row: Option<Row> = match done {
            Done::Nothing if is_staged && kind == RowChangeKind::Delete => None,
            Done::Nothing => return,
            Done::Row(row) => Some(row),
            Done::Gone => None,
        };
        match within {
            Some(nth) => self.held[nth].stage(key, kind, row),
            None => {
                let table = Arc::make_mut(self.tables.get_mut(table).expect("a table"));
                table.commit(sequence, key, kind, row);
            }
        }
    }

    /// The service ends and begins again over the same data.
    async fn restart(&mut self) {
        // They end with the process.
        let ended = std::mem::take(&mut self.held);
        // They hold the service.
        (self.client, self.indexes) = (None, None);
        let running = self.running.take().expect("it runs");
        self.runs(reopen(running).await.expect("opened again"));
        for held in ended {
            self.ended(held.table, &held.id).await;
        }
        for table in self.tables.values_mut().map(Arc::make_mut) {
            for index in table.searched.values_mut() {
                index.answers = false;
            }
        }
        self.met("restarted");
    }
}

/// What a run must have met, so that it is known to be compared.
const WHAT: &[&str] = &[
    "a batch of reads",
    "a batch of single writes",
    "a batch refused",
    "a batch repeated",
    "a condition fails",
    "a dry run",
    "a missing table",
    "a partition that is held",
    "a range backward",
    "a range forward",
    "a range in a transaction",
    "a range of an index",
    "a range of an index that lacks rows",
    "a read of nothing",
    "a request repeated",
    "a row appended",
    "a row deleted",
    "a row found",
    "a row given back",
    "a row in a batch refused",
    "a row in a batch written",
    "a row in a transaction read",
    "a row not shown",
    "a row read part by part",
    "a row written",
    "a search",
    "a search by weight",
    "a search index built anew",
    "a search index changed",
    "a search index created",
    "a search index deleted",
    "a search index described",
    "a search index that is needed",
    "a search of an index that changes",
    "a search of an index that has settled",
    "a search of an index that isn't there yet",
    "a search of rows that expire",
    "a search page by page",
    "a secondary index created",
    "a secondary index dropped",
    "a secondary index that can't be",
    "a secondary index that fails",
    "a secondary index that isn't filled",
    "a stream",
    "a stream that goes on",
    "a table created",
    "a table deleted",
    "a table described",
    "a table in parts",
    "a table refused twice",
    "a table without search indexes",
    "a table without transactions",
    "a transaction aborted",
    "a transaction begun",
    "a transaction committed",
    "a transaction of a deleted table",
    "a transaction whose time is up",
    "a watch",
    "a watch of rows that expire",
    "a wide row",
    "a write outside of its transaction",
    "a write that an index doesn't take",
    "a write that the table doesn't take",
    "a write without effect",
    "an atomic batch refused",
    "an atomic batch written",
    "an entry of an index found",
    "an export",
    "options changed",
    "restarted",
    "search indexes listed",
    "search indexes weighed",
    "tables listed",
    "the last weight kept",
    "what has expired freed",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_of_operations_act_like_the_oracle() {
    let operations = match std::env::var_os("SOUK_LONG") {
        Some(_) => LONG_OPERATIONS,
        None => OPERATIONS,
    };
    let seed = souk_seeds::seed();
    let programs = (0..PROGRAMS).map(|nth| {
        let operations = operations / usize::try_from(PROGRAMS).expect("few");
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

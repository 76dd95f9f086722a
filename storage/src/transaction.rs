//! Transactions inside a partition key: what is read stays as it is and what is written is seen by nobody else until
//! the commit, because a transaction holds its partition alone.

use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use souk_kv::{self as kv, Durability, KvSnapshot, Space};

use crate::batch::{Committed, RowWrite, WrittenRow};
use crate::catalog::Table;
use crate::change::ChangeKind;
use crate::database::{Database, DatabaseState};
use crate::error::{Error, Result};
use crate::feed::Acknowledgement;
use crate::feed::acknowledgement::Taken;
use crate::id::TransactionId;
use crate::key;
use crate::limits;
use crate::metering::CapacityUnits;
use crate::partitions::staged::Staged;
use crate::partitions::view::OwnWrites;
use crate::plan::CommitPlan;
use crate::plan::decide::{self, ChangedRow};
use crate::read::{RangePage, RangeRequest, Snapshot};
use crate::row::Row;
use crate::value::{KeyValue, PrimaryKey};
use crate::write::check_of;

impl FromStr for TransactionId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        u128::from_str_radix(text, 16)
            .ok()
            .filter(|_| digits)
            .map(Self)
            .ok_or_else(|| Error::invalid("transaction id", "is not 32 hexadecimal digits"))
    }
}

/// How a transaction is committed.
#[derive(Debug, Clone, Default)]
pub struct CommitOptions {
    /// W3C `traceparent` of the caller, kept with the change.
    pub trace: Option<String>,
    /// How safe the transaction is when its commit is acknowledged.
    pub durability: Durability,
    /// What is done with of a feed when the transaction happens.
    pub acknowledges: Option<Acknowledgement>,
}

/// A transaction. It holds one partition of one table, alone: until it ends, other writers of that partition get
/// [`Error::TransactionConflict`], and other readers see the rows as they were. It ends by [`Transaction::commit`],
/// by [`Transaction::abort`] or by being dropped, which aborts, and at the latest when its time is up:
/// [`crate::limits::MAX_TRANSACTION_LIFE`] after it began, [`crate::limits::MAX_TRANSACTION_IDLE`] after its last call.
/// It is kept in memory; the end of the process aborts it.
///
/// A call that fails changes nothing, and the transaction goes on.
///
/// ```
/// use souk_storage::{
///     Condition, Database, DatabaseOptions, Error, KeyKind, PrimaryKey, RowOperation, RowWrite, TableSchema,
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let database = Database::in_memory(DatabaseOptions::default()).await?;
/// let accounts = TableSchema::new("accounts")
///     .key("owner", KeyKind::String)
///     .key("name", KeyKind::String)
///     .transactions();
/// let accounts = database.create_table(accounts).await?;
///
/// let mut transaction = database.begin(&accounts, "alice".into()).await?;
/// for name in ["checking", "savings"] {
///     let key = PrimaryKey::new(vec!["alice".into(), name.into()])?;
///     let columns = vec![("balance".into(), 50.into())];
///     let put = RowOperation::Put { key: key.clone(), columns };
///     let write = RowWrite::new(&accounts, put, Condition::must_not_exist());
///     transaction.write(vec![write]).await?;
///     assert!(transaction.get(&key).await?.is_some());
///     assert!(database.snapshot().await?.get(&accounts, &key).await?.is_none());
/// }
/// transaction.commit().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Transaction {
    lease: Lease,
    staged: Staged,
}

impl Transaction {
    /// Its name.
    pub fn id(&self) -> TransactionId {
        self.lease.id
    }

    /// The table.
    pub fn table(&self) -> &Table {
        &self.staged.table
    }

    /// The partition key whose rows it holds.
    pub fn partition(&self) -> &KeyValue {
        &self.staged.partition
    }

    /// What it has cost so far, its beginning included.
    pub fn consumed(&self) -> CapacityUnits {
        self.staged.consumed
    }

    /// Writes rows of the partition, all of them or none. Versions that aren't given are of this moment. The revision
    /// of a written row stays what it was, 0 for a new one, until the commit.
    ///
    /// # Errors
    /// As [`crate::Database::write`]; [`Error::OutsidePartition`], [`Error::TransactionNotFound`] when its time is up,
    /// [`Error::LimitExceeded`] for [`crate::limits::MAX_TRANSACTION_BYTES`] of all its writes,
    /// [`crate::limits::MAX_CHANGE_BYTES`] of the rows they make, [`crate::limits::MAX_STAGED_BYTES`] of all
    /// transactions, [`crate::limits::MAX_STAGED_OF_CALLER_BYTES`] of those of its caller.
    pub async fn write(&mut self, writes: Vec<RowWrite>) -> Result<Vec<WrittenRow>> {
        let now = self.lease.touch()?;
        let below = self.below().await?;
        self.staged
            .write(&self.lease.shared.catalog, below, &writes, now, |bytes| {
                self.lease.resize(bytes)
            })
            .await
    }

    /// Writes rows of the partition, each by itself; what became of each, in their order.
    ///
    /// # Errors
    /// As [`Transaction::write`], but for what only refuses single rows.
    pub async fn write_rows(&mut self, writes: Vec<RowWrite>) -> Result<Vec<Result<WrittenRow>>> {
        let now = self.lease.touch()?;
        let below = self.below().await?;
        self.staged
            .write_rows(&self.lease.shared.catalog, below, &writes, now, |bytes| {
                self.lease.resize(bytes)
            })
            .await
    }

    /// A row of the table, as the transaction sees it.
    ///
    /// # Errors
    /// As [`Snapshot::get`]; [`Error::TransactionNotFound`] when its time is up.
    pub async fn get(&self, key: &PrimaryKey) -> Result<Option<Row>> {
        self.snapshot().await?.get(&self.staged.table, key).await
    }

    /// A page of the table's rows, as the transaction sees them.
    ///
    /// # Errors
    /// As [`Snapshot::range`]; [`Error::TransactionNotFound`] when its time is up.
    pub async fn range(&self, request: &RangeRequest) -> Result<RangePage> {
        self.snapshot().await?.range(&self.staged.table, request).await
    }

    /// One cut across rows and secondary indexes with what the transaction has written so far on top. Rows of other
    /// partitions and tables are as they are at this moment: only the partition is held.
    ///
    /// # Errors
    /// As [`crate::Database::snapshot`]; [`Error::TransactionNotFound`] when its time is up.
    pub async fn snapshot(&self) -> Result<Snapshot> {
        self.lease.touch()?;
        let kv = Arc::new(OwnWrites::new(self.below().await?, &self.staged.values));
        Ok(Snapshot {
            kv,
            generation: self.staged.generation,
            shared: Arc::clone(&self.lease.shared),
        })
    }

    /// Makes everything that was written happen, with one sequence and one change, and ends the transaction whatever
    /// the answer is. Dropping the future doesn't undo the commit: it may still happen.
    ///
    /// # Errors
    /// Nothing is written: [`Error::TransactionNotFound`] when its time is up, [`Error::LimitExceeded`],
    /// [`Error::TableNotFound`], [`Error::Contended`], [`Error::Unavailable`], [`Error::Corrupt`]. Not known:
    /// [`Error::OutcomeUnknown`], [`Error::DiskFull`].
    pub async fn commit(self) -> Result<Committed> {
        self.commit_with(CommitOptions::default()).await
    }

    /// [`Transaction::commit`] with a trace, another durability, or what it acknowledges.
    ///
    /// # Errors
    /// As there; of what it acknowledges as [`crate::Feed::acknowledge`].
    pub async fn commit_with(self, options: CommitOptions) -> Result<Committed> {
        let Self { lease, staged } = self;
        lease.begin_commit()?;
        // In a task of its own: the partition must be held until the outcome is known, whoever waits for it.
        let task = tokio::spawn(async move {
            let committed = commit(staged, &lease.shared, options).await;
            drop(lease);
            committed
        });
        task.await.map_err(|_| Error::OutcomeUnknown {
            reason: "the runtime shut down during the commit".to_owned(),
        })?
    }

    /// Forgets everything that was written, and ends the transaction.
    pub fn abort(self) {
        drop(self);
    }

    /// Lets go of the transaction without ending it; [`crate::Database::transaction`] takes it up again.
    pub fn detach(self) -> TransactionId {
        let Self { lease, staged } = self;
        lease.detach(staged)
    }

    async fn below(&self) -> Result<Box<dyn KvSnapshot>, kv::Error> {
        self.lease.shared.kv.snapshot().await
    }
}

impl Database {
    /// Begins a transaction that holds a partition, when the writes to it that are on their way have ended. The table
    /// must have [`crate::TableSchema::transactions`]. It costs [`crate::CapacityUnits::TRANSACTION_STEP`].
    ///
    /// # Errors
    /// [`Error::TransactionConflict`] while another transaction holds it, [`Error::Invalid`],
    /// [`Error::TableNotFound`], [`Error::LimitExceeded`] for [`crate::limits::MAX_TRANSACTIONS`].
    pub async fn begin(&self, table: &Table, partition: KeyValue) -> Result<Transaction> {
        begin(&self.shared, table, partition, None).await
    }

    /// [`Database::begin`] on behalf of a caller: what its transactions have staged takes at most
    /// [`crate::limits::MAX_STAGED_OF_CALLER_BYTES`] of memory together.
    ///
    /// # Errors
    /// As there.
    pub async fn begin_for(
        &self,
        caller: Option<Arc<str>>,
        table: &Table,
        partition: KeyValue,
    ) -> Result<Transaction> {
        begin(&self.shared, table, partition, caller).await
    }

    /// Takes up a transaction whose handle was given up by [`Transaction::detach`].
    ///
    /// # Errors
    /// [`Error::TransactionNotFound`], [`Error::TransactionBusy`] while somebody else has its handle.
    pub fn transaction(&self, id: TransactionId) -> Result<Transaction> {
        resume(&self.shared, id)
    }

    /// Whether a transaction is open, in whosever hands: not any more when it has ended, or its time is up.
    pub fn has_transaction(&self, id: TransactionId) -> bool {
        self.shared
            .partitions
            .is_open(id, self.shared.options.clock.now())
    }
}

/// Begins a transaction; see [`crate::Database::begin`].
async fn begin(
    shared: &Arc<DatabaseState>,
    table: &Table,
    partition: KeyValue,
    caller: Option<Arc<str>>,
) -> Result<Transaction> {
    shared.catalog.read().check_owned(table)?;
    let schema = table.schema();
    if !schema.transactions {
        return Err(Error::invalid(
            format!("transaction on table {:?}", schema.name),
            "is not possible: the table was created without transactions",
        ));
    }
    schema.check_key_prefix(&PrimaryKey::new(vec![partition.clone()])?)?;
    let now = shared.options.clock.now();
    let id = shared.partitions.claim(table, &partition, caller, now)?;
    let lease = Lease {
        shared: Arc::clone(shared),
        id,
        detached: false,
    };
    shared.partitions.drained(id).await;
    shared.partitions.start(id, shared.options.clock.now());
    let generation = shared.catalog.read().generation();
    let staged = Staged::new(table, partition, generation);
    Ok(Transaction { lease, staged })
}

/// Takes up a detached transaction; see [`crate::Database::transaction`].
pub(crate) fn resume(shared: &Arc<DatabaseState>, id: TransactionId) -> Result<Transaction> {
    let staged = shared.partitions.resume(id, shared.options.clock.now())?;
    let lease = Lease {
        shared: Arc::clone(shared),
        id,
        detached: false,
    };
    Ok(Transaction { lease, staged })
}

/// Commits everything. The index entries are those of the schema of this moment.
async fn commit(staged: Staged, shared: &Arc<DatabaseState>, options: CommitOptions) -> Result<Committed> {
    if let Some(trace) = &options.trace {
        limits::check("MAX_TRACE_BYTES", limits::MAX_TRACE_BYTES, trace.len())?;
    }
    let taken = match &options.acknowledges {
        Some(acknowledgement) => {
            check_of(shared, acknowledgement)?;
            Some(acknowledgement.take_once().await?)
        }
        None => None,
    };
    let _schemas = shared.schema_lock.read().await;
    shared.catalog.read().check_owned(&staged.table)?;
    let keys: Vec<Bytes> = staged.rows.keys().cloned().collect();
    // Trimming leaves revisions as they are, so that only the locks keep it away.
    let _rows = shared.locks.lock(keys.iter()).await;
    let snapshot = shared.kv.snapshot().await?;
    let sequence = snapshot.sequence();
    let stored = snapshot.multi_get(Space::Rows, keys).await?;
    drop(snapshot);
    let mut plan = CommitPlan::new(options.durability);
    for ((key, row), stored) in staged.rows.into_iter().zip(stored) {
        // Nobody else writes the partition; if somebody did, the commit is refused by this.
        plan.expect(&key, row.before.as_ref());
        let value = staged.values.get(Space::Rows, &key).cloned().flatten();
        let kind = match (&row.before, &value) {
            (None, None) => continue,
            (_, None) => ChangeKind::Delete,
            (_, Some(_)) => row.kind,
        };
        let primary_key = key::primary_key_of_row(&key)?;
        let entries = decide::entries(&staged.table, &primary_key, stored.as_deref(), value.as_deref())?;
        plan.change(ChangedRow {
            table: staged.table.id(),
            key,
            kind,
            parting: row.parting.filter(|_| value.is_none()),
            value: value.map(Vec::from),
            entries,
        });
    }
    let mut commit = plan.finish(options.trace.as_deref(), shared.options.clock.now())?;
    staged.numbers.keep(&mut commit);
    commit.mutations.extend(taken.as_ref().map(Taken::mutation));
    let mut done = Committed::new(sequence, Vec::new());
    done.consumed = CapacityUnits::TRANSACTION_STEP;
    if !commit.mutations.is_empty() {
        let logged = commit.log.is_some();
        let result = shared.kv.commit(commit).await?;
        if let Some(taken) = taken {
            taken.done();
        }
        if logged {
            done.sequence = result.sequence;
        }
    }
    Ok(done)
}

/// The hold of a transaction on its partition; ends it when dropped.
#[derive(Debug)]
struct Lease {
    shared: Arc<DatabaseState>,
    id: TransactionId,
    detached: bool,
}

impl Lease {
    /// Prolongs it; gives the time.
    fn touch(&self) -> Result<i64> {
        let now = self.shared.options.clock.now();
        self.shared.partitions.touch(self.id, now)?;
        Ok(now)
    }

    /// Says how many bytes of memory the transaction takes from here on.
    fn resize(&self, bytes: usize) -> Result<()> {
        self.shared.partitions.resize(self.id, bytes)
    }

    /// From here on its time can't run out.
    fn begin_commit(&self) -> Result<()> {
        let now = self.shared.options.clock.now();
        self.shared.partitions.begin_commit(self.id, now)
    }

    fn detach(mut self, staged: Staged) -> TransactionId {
        self.detached = true;
        let now = self.shared.options.clock.now();
        self.shared.partitions.detach(self.id, staged, now);
        self.id
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.detached {
            self.shared.partitions.end(self.id);
        }
    }
}

//! Writes of rows: with conditions, all or none; who loses a row by one is noted.

use bytes::Bytes;
use souk_storage::{
    Acknowledgement, ColumnChange, ColumnName, Columns, Committed, Condition, ConditionFailure,
    Error as StoreError, Existence, KeyValue, PrimaryKey, RequestRecord, ReturnRow, Row, RowOperation,
    RowWrite, Snapshot, Value, WriteBatch, WrittenRow,
};
use tokio::sync::MutexGuard;
use tracing::Span;

use super::{MAX_PAGE_BYTES, TableHandle};
use crate::consumer_groups::{Committing, ShardCheckpoint};
use crate::definition::check::limit;
use crate::error::{EngineError, Result};
use crate::handovers::{Lost, lost};
use crate::key::{self, MAX_DOCUMENT_KEY_BYTES};
use crate::open_table::Home;
use crate::owners::OwnerPlace;
use crate::resource::{RequestId, Written};
use crate::scope::Scope;
use crate::stored::signed;
use crate::trace;
use crate::undisturbed::undisturbed;

/// How often a write of what was looked at is repeated when others were faster.
pub(crate) const UPDATE_ATTEMPTS: u32 = 32;
/// The revision of no row.
const NEVER: u64 = 0;

/// A write of one row of a table.
#[derive(Clone, Debug)]
pub struct TableWrite {
    /// What to do.
    pub operation: RowOperation,
    /// On what condition.
    pub condition: Condition,
    /// What to give back.
    pub returning: ReturnRow,
}

impl TableWrite {
    /// A write without condition that gives back nothing.
    #[must_use]
    pub fn new(operation: RowOperation) -> Self {
        Self {
            operation,
            condition: Condition::none(),
            returning: ReturnRow::None,
        }
    }

    /// Replaces a whole row.
    #[must_use]
    pub fn put(key: PrimaryKey, columns: Vec<(ColumnName, Value)>) -> Self {
        Self::new(RowOperation::Put { key, columns })
    }

    /// Changes some columns of a row.
    #[must_use]
    pub fn update(key: PrimaryKey, changes: Vec<ColumnChange>) -> Self {
        Self::new(RowOperation::Update { key, changes })
    }

    /// Deletes a row.
    #[must_use]
    pub fn delete(key: PrimaryKey) -> Self {
        Self::new(RowOperation::Delete { key })
    }

    /// Says on what condition.
    #[must_use]
    pub fn when(mut self, condition: Condition) -> Self {
        self.condition = condition;
        self
    }

    /// Says what to give back.
    #[must_use]
    pub fn returning(mut self, returning: ReturnRow) -> Self {
        self.returning = returning;
        self
    }

    /// Whether somebody may lose the row by it, or a caller who meets own rows alone may not write it: then the row has to be
    /// looked at.
    fn concerns_owners(&self, scope: &Scope) -> bool {
        match &self.operation {
            RowOperation::Append { .. } => false,
            // Its row is nobody's any more, and the log tells whose it was.
            RowOperation::Delete { .. } => scope.is_limited(),
            _ => self.condition.existence != Existence::MustNotExist,
        }
    }

    /// Whether nothing is written where there is no row.
    fn needs_row(&self) -> bool {
        match self.condition.existence {
            Existence::MustExist => true,
            Existence::Ignore => self.condition.revision.is_some(),
            // Refused for the row, if there is one, before its revision is compared.
            Existence::MustNotExist => false,
        }
    }

    /// Whether it makes no row of none, as far as none was looked for.
    fn makes_nothing(&self) -> bool {
        let deletes = |change: &ColumnChange| match change {
            ColumnChange::DeleteVersion { .. } | ColumnChange::DeleteAll { .. } => true,
            ColumnChange::Put { .. } | ColumnChange::Increment { .. } => false,
        };
        match &self.operation {
            RowOperation::Update { changes, .. } => {
                self.condition.existence != Existence::MustNotExist && changes.iter().all(deletes)
            }
            _ => false,
        }
    }

    /// The text that becomes the newest of a column; `None` where it doesn't become one, or is given a version: whether it is
    /// the newest is known to the store alone.
    fn names(&self, column: &str) -> Option<&str> {
        let value = match &self.operation {
            RowOperation::Put { columns, .. } | RowOperation::Append { columns, .. } => {
                let (_, value) = only(columns.iter().filter(|(name, _)| name == column))?;
                value
            }
            RowOperation::PutCells { cells, .. } => {
                let cell = only(cells.iter().filter(|cell| cell.column == column))?;
                cell.version.is_none().then_some(&cell.value)?
            }
            RowOperation::Update { changes, .. } => {
                let change = only(changes.iter().filter(|change| column_of(change) == column))?;
                match change {
                    ColumnChange::Put {
                        value, version: None, ..
                    } => value,
                    _ => return None,
                }
            }
            RowOperation::Delete { .. } => return None,
        };
        value.as_str()
    }

    /// Whether it names versions of a column.
    fn has_versions_of(&self, column: &str) -> bool {
        match &self.operation {
            RowOperation::PutCells { cells, .. } => cells
                .iter()
                .any(|cell| cell.column == column && cell.version.is_some()),
            RowOperation::Update { changes, .. } => changes.iter().any(|change| match change {
                ColumnChange::Put { version, .. } => version.is_some() && column_of(change) == column,
                ColumnChange::DeleteVersion { column: of, .. } => of == column,
                ColumnChange::DeleteAll { .. } | ColumnChange::Increment { .. } => false,
            }),
            RowOperation::Put { .. } | RowOperation::Append { .. } | RowOperation::Delete { .. } => false,
        }
    }
}

/// The turn of an attempt at a request: see [`TableHandle::attempt`].
#[derive(Debug)]
#[must_use = "the turn ends when it is dropped"]
pub struct Attempt<'a> {
    _turn: MutexGuard<'a, ()>,
}

impl TableHandle {
    /// Waits for the turn of this attempt at a request, which lasts until what is given back is dropped: another attempt may be
    /// on its way. For services that look at other rows before they write.
    pub async fn attempt(&self, request_id: Option<RequestId>) -> Option<Attempt<'_>> {
        let turn = self.open.attempts.take(&request_id?.id()).await?;
        Some(Attempt { _turn: turn })
    }

    /// Writes rows: all or none. A repeated request is answered as the first time.
    ///
    /// # Errors
    /// [`EngineError::InvalidRow`], [`EngineError::TableOfCode`], [`EngineError::NotOwn`],
    /// [`EngineError::LimitExceeded`], [`EngineError::RequestIdReused`]; [`StoreError::Contended`] when rows with owners changed during
    /// each of 32 attempts; [`StoreError::ConditionFailed`] and what else the store refuses.
    pub async fn write(
        &self,
        writes: Vec<TableWrite>,
        request_id: Option<RequestId>,
    ) -> Result<Written<Vec<WrittenRow>>> {
        self.write_with(writes, request_id, None).await
    }

    /// The same, and the checkpoint of a shard is committed with the rows, or neither is: with that, a member of a consumer group
    /// writes what it makes of records exactly once. Not for tables whose rows have owners.
    ///
    /// # Errors
    /// As there; as [`TableHandle::commit_checkpoint`], also for a token that was committed before.
    pub async fn write_with(
        &self,
        writes: Vec<TableWrite>,
        request_id: Option<RequestId>,
        checkpoint: Option<&ShardCheckpoint>,
    ) -> Result<Written<Vec<WrittenRow>>> {
        let scope = self.scope()?;
        self.check_created()?;
        self.check_keys(&scope, &writes)?;
        let request = request_id.map(|id| self.request_record(id, "write", &scope));
        let places = self.open.owner_places();
        let committed = if let Some(checkpoint) = checkpoint {
            self.check_unowned()?;
            match self.committing(checkpoint) {
                Ok(committing) => {
                    let batch = self.batch(writes, &places, request);
                    self.commit_checkpointed(batch, committing).await?
                }
                // It may have been written before its member lost the shard.
                Err(refused) => self.written_before(request).await.ok_or(refused)?,
            }
        } else if places.is_empty() {
            self.commit(self.batch(writes, &places, request)).await?
        } else {
            match self.write_as_seen(&scope, writes, &places, request.clone()).await {
                Ok(committed) => committed,
                // What was the caller's the first time may be another's by now.
                Err(refused) => self.written_before(request).await.ok_or(refused)?,
            }
        };
        Ok(Written {
            value: committed.rows,
            sequence: signed(committed.sequence),
        })
    }

    /// Writes rows, each by itself: what became of each, in their order. Not for tables whose rows have owners.
    ///
    /// # Errors
    /// Of the call, and then no row is written: as [`TableHandle::write`], for an argument of any row. Of a row: as there.
    pub async fn write_each(&self, writes: Vec<TableWrite>) -> Result<Vec<Result<WrittenRow>>> {
        let scope = self.scope()?;
        self.check_created()?;
        self.check_keys(&scope, &writes)?;
        self.check_unowned()?;
        let batch = self.batch(writes, &[], None);
        let written = self
            .access("commit", async {
                self.inner.database.write_rows(self.traced(batch)).await
            })
            .await?;
        let written = written.into_iter();
        Ok(written
            .map(|written| written.map_err(EngineError::from))
            .collect())
    }

    /// Refuses a table of code: its rows are written as resources.
    pub(crate) fn check_created(&self) -> Result<()> {
        match self.open.home {
            Home::Catalog => Ok(()),
            Home::Code => Err(EngineError::TableOfCode {
                table: self.name().to_owned(),
            }),
        }
    }

    /// Refuses a table whose rows have owners: those are written all or none, as they were seen.
    pub(crate) fn check_unowned(&self) -> Result<()> {
        match self.open.owner_places().is_empty() {
            true => Ok(()),
            false => Err(EngineError::InvalidRow {
                table: self.name().to_owned(),
                problem: "has an owner: such rows are written all or none, outside of transactions"
                    .to_owned(),
            }),
        }
    }

    /// Refuses keys of partitions that the call was granted no access to, those of a hashed table whose hash isn't that of their id, and
    /// those that the index of a searched one can't have.
    pub(crate) fn check_keys(&self, scope: &Scope, writes: &[TableWrite]) -> Result<()> {
        for write in writes {
            scope.check_partition(self.name(), write.operation.partition())?;
        }
        let is_hashed = self.open.definition().is_hashed();
        let is_searched = self.open.is_searched();
        if !is_hashed && !is_searched {
            return Ok(());
        }
        for write in writes {
            let document_key = match &write.operation {
                // The number is still to come, and has the length of any other.
                RowOperation::Append { key, .. } => {
                    key::encode_values(key.iter().chain([&KeyValue::Integer(0)]))
                }
                other => other.key().map(key::to_document_key).unwrap_or_default(),
            };
            if is_hashed && key::hashed_document_id(&document_key).is_none() {
                return Err(EngineError::InvalidRow {
                    table: self.name().to_owned(),
                    problem: "has a key that isn't the md5 of its id and the id".to_owned(),
                });
            }
            // What is there from before may go.
            if is_searched && !matches!(write.operation, RowOperation::Delete { .. }) {
                limit(
                    "MAX_DOCUMENT_KEY_BYTES",
                    MAX_DOCUMENT_KEY_BYTES,
                    document_key.len(),
                )?;
            }
        }
        Ok(())
    }

    pub(crate) fn batch(
        &self,
        writes: Vec<TableWrite>,
        places: &[OwnerPlace],
        request: Option<RequestRecord>,
    ) -> WriteBatch {
        let rows = writes.into_iter().map(|write| {
            let row = RowWrite::new(&self.open.table, write.operation, write.condition);
            let row = row.returning(write.returning);
            match row.operation {
                RowOperation::Delete { .. } => row.parting(parting(places)),
                _ => row,
            }
        });
        let mut batch = WriteBatch::new();
        batch.writes = rows.collect();
        batch.request = request;
        batch.shown = true;
        batch
    }

    /// Looks at the rows that have owners, and writes under the condition that they still are what was looked at; repeated when
    /// others were faster.
    async fn write_as_seen(
        &self,
        scope: &Scope,
        writes: Vec<TableWrite>,
        places: &[OwnerPlace],
        request: Option<RequestRecord>,
    ) -> Result<Committed> {
        let keys = writes.iter().filter(|write| write.concerns_owners(scope));
        let keys: Vec<PrimaryKey> = keys.filter_map(|write| write.operation.key().cloned()).collect();
        let mut failed: Option<(Vec<Option<u64>>, StoreError)> = None;
        for _ in 0..UPDATE_ATTEMPTS {
            let snapshot = self.inner.database.snapshot().await?;
            let rows = self.owned_rows(&snapshot, &keys, places).await?;
            let seen: Vec<Option<u64>> = rows
                .iter()
                .map(|row| row.as_ref().map(|row| row.revision))
                .collect();
            if let Some((before, error)) = failed.take()
                && before == seen
            {
                // Nobody was faster: it is what the writer asked for that doesn't hold.
                return Err(as_asked(error).into());
            }
            let (mut conditional, mut lost) = (writes.clone(), Lost::new());
            let mut hidden = Vec::with_capacity(conditional.len());
            let mut rows = rows.iter();
            for (position, write) in conditional.iter_mut().enumerate() {
                let there = match write.concerns_owners(scope) {
                    true => rows.next().and_then(Option::as_ref),
                    false => None,
                };
                // One that the caller may not meet isn't there.
                let row = there.filter(|row| scope.sees(row));
                let others = there.filter(|_| row.is_none());
                hidden.push(scope.is_limited().then(|| others.map_or(0, |row| row.revision)));
                self.check_owner(scope, write, row)?;
                if !write.concerns_owners(scope) {
                    continue;
                }
                lost.extend(row.into_iter().flat_map(|row| lost_by(write, row, places)));
                let condition = &mut write.condition;
                match (row, condition.existence) {
                    (Some(row), _) => match condition.revision {
                        // One that has passed never comes again; who guesses one that is yet to come would write a row that wasn't
                        // looked at.
                        Some(expected) if expected != row.revision => {
                            let actual = row.revision;
                            let reason = ConditionFailure::RevisionMismatch { expected, actual };
                            let write = position;
                            return Err(StoreError::ConditionFailed { write, reason }.into());
                        }
                        given => condition.revision = given.or(Some(row.revision)),
                    },
                    (None, Existence::MustExist) => condition.revision = Some(NEVER),
                    (None, _) => condition.existence = Existence::MustNotExist,
                }
            }
            let mut batch = self.batch(conditional, places, request.clone());
            for (write, hidden) in batch.writes.iter_mut().zip(hidden) {
                write.hidden = hidden;
            }
            match self.commit_noted(batch, lost).await {
                Ok(committed) => return Ok(committed),
                Err(error @ StoreError::ConditionFailed { .. }) => failed = Some((seen, error)),
                Err(error) => return Err(error.into()),
            }
        }
        let attempts = UPDATE_ATTEMPTS as usize;
        Err(StoreError::Contended { attempts }.into())
    }

    /// Of some rows what tells whose they are. Read a few at a time: whole, they may be more than there is memory for.
    async fn owned_rows(
        &self,
        snapshot: &Snapshot,
        keys: &[PrimaryKey],
        places: &[OwnerPlace],
    ) -> Result<Vec<Option<Row>>> {
        let owned = |row: Row| {
            let columns = places.iter().filter(|place| place.key.is_none());
            let named = columns.filter_map(|place| {
                let newest = row.cells(&place.column).first()?;
                Some((place.column.as_str(), newest.clone()))
            });
            let columns: Columns = named.collect();
            Row::new(row.key.clone(), row.revision, row.written, columns)
        };
        let mut rows: Vec<Option<Row>> = Vec::with_capacity(keys.len());
        while let Some(rest) = keys.get(rows.len()..).filter(|rest| !rest.is_empty()) {
            let read = snapshot.multi_get_within(&self.open.table, rest, MAX_PAGE_BYTES);
            let read = self.access("get_batch", read).await?;
            rows.extend(read.into_iter().map(|(row, _)| row.map(owned)));
        }
        Ok(rows)
    }

    /// Refuses to a caller who meets own rows alone what would be another's afterwards. `row` is the one that is there for the caller.
    fn check_owner(&self, scope: &Scope, write: &TableWrite, row: Option<&Row>) -> Result<()> {
        if !scope.is_limited() {
            return Ok(());
        }
        let owner_column = scope.owner_column();
        if let Some(column) = owner_column.filter(|column| write.has_versions_of(column)) {
            let problem = format!(
                "is given versions of {column:?}, which says whose it is: callers who meet own rows alone leave them out"
            );
            return Err(EngineError::InvalidRow {
                table: self.name().to_owned(),
                problem,
            });
        }
        let definition = self.open.definition();
        let check = |key: &PrimaryKey| {
            let named = |place: &OwnerPlace| write.names(&place.column);
            // Writers of rows know columns.
            scope.check_named(&definition.item, key, named, |place| &place.column)
        };
        match &write.operation {
            RowOperation::Delete { .. } => Ok(()),
            RowOperation::Append { key, .. } => {
                let mut key = key.clone();
                // The number is still to come.
                let position = definition.schema.auto_increment.unwrap_or(key.len());
                key.insert(position.min(key.len()), KeyValue::Integer(0));
                check(&PrimaryKey::new(key)?)
            }
            // Nothing is written: it needs a row, and there is none, or nothing of it makes one.
            _ if row.is_none() && (write.needs_row() || write.makes_nothing()) => Ok(()),
            // It stays his, unless what names him is touched.
            RowOperation::Update { changes, .. }
                if row.is_some() && !owner_column.is_some_and(|column| touches(changes, column)) =>
            {
                Ok(())
            }
            other => match other.key() {
                Some(key) => check(key),
                None => Ok(()),
            },
        }
    }

    /// What is kept of a request, to know it again.
    pub(crate) fn request_record(&self, id: RequestId, operation: &str, scope: &Scope) -> RequestRecord {
        RequestRecord {
            id: id.id(),
            fingerprint: scope.bind(id.fingerprint_for(self.name(), operation)),
            // The rows that are given back are kept, too.
            reply: Bytes::new(),
        }
    }

    /// Commits a write, and notes who lost a row by it. That is a task of its own: a caller who gives up while the write waits
    /// for the disk doesn't stop it.
    pub(crate) async fn commit_noted(&self, batch: WriteBatch, lost: Lost) -> Result<Committed, StoreError> {
        if lost.is_empty() {
            return self.commit(batch).await;
        }
        let table = self.clone();
        let committing = async move {
            let committed = table.commit(batch).await?;
            table.open.handovers.note(&lost, committed.sequence);
            Ok::<_, StoreError>(committed)
        };
        let committing = tokio::spawn(trace::brought(committing)).await;
        committing.map_err(|_| StoreError::OutcomeUnknown {
            reason: "the runtime shut down during the commit".to_owned(),
        })?
    }

    /// What a write with this request gave, if there was one.
    async fn written_before(&self, request: Option<RequestRecord>) -> Option<Committed> {
        let first = self.inner.database.replayed(&request?).await;
        first.ok().flatten()
    }

    /// Commits a write with a checkpoint. That is a task of its own: nobody gets the shard before it is known what became of it.
    async fn commit_checkpointed(&self, batch: WriteBatch, committing: Committing) -> Result<Committed> {
        let table = self.clone();
        undisturbed(async move {
            let acknowledgement = committing.acknowledgement.clone();
            let committed = table.committed(batch, Some(acknowledgement)).await;
            committed.map_err(|error| committing.refused(error))
        })
        .await
    }

    pub(crate) async fn commit(&self, batch: WriteBatch) -> Result<Committed, StoreError> {
        self.committed(batch, None).await
    }

    /// Writes a batch, with what it acknowledges, as an access that is measured. Its span tells the sequence, and is the one that the index
    /// links to.
    async fn committed(
        &self,
        batch: WriteBatch,
        acknowledgement: Option<Acknowledgement>,
    ) -> Result<Committed, StoreError> {
        self.access("commit", async {
            let (batch, database) = (self.traced(batch), &self.inner.database);
            let committed = match acknowledgement {
                None => database.write(batch).await?,
                Some(acknowledgement) => database.write_acknowledging(batch, acknowledgement).await?,
            };
            Span::current().record("souk.sequence", committed.sequence);
            Ok(committed)
        })
        .await
    }

    /// A batch that names the span that is current: of the access, not of the call.
    fn traced(&self, batch: WriteBatch) -> WriteBatch {
        match trace::current_traceparent() {
            Some(traceparent) => batch.trace(traceparent),
            None => batch,
        }
    }

    /// A row that the call may meet, and its turn: others who write what they see of it wait.
    pub(crate) async fn turn(&self, key: &PrimaryKey) -> Option<MutexGuard<'_, ()>> {
        self.open.turns.take(&key::to_document_key(key)).await
    }

    /// Deletes a row; the log tells whose it was.
    pub(crate) fn deletion(&self, key: PrimaryKey, condition: Condition) -> WriteBatch {
        let write = RowWrite::new(&self.open.table, RowOperation::Delete { key }, condition);
        WriteBatch::new().row(write.parting(parting(&self.open.owner_places())))
    }
}

/// Why a write failed, as its writer asked for it: another's row, which came and went meanwhile, isn't there for him.
fn as_asked(error: StoreError) -> StoreError {
    match error {
        StoreError::ConditionFailed {
            write,
            reason: ConditionFailure::RevisionMismatch { expected: NEVER, .. },
        } => StoreError::ConditionFailed {
            write,
            reason: ConditionFailure::NotFound,
        },
        error => error,
    }
}

/// The columns that name owners; the key is in the log anyway.
fn parting(places: &[OwnerPlace]) -> impl Iterator<Item = &str> {
    let columns = places.iter().filter(|place| place.key.is_none());
    columns.map(|place| place.column.as_str())
}

/// The owners who lose a row by a write, or might.
fn lost_by(write: &TableWrite, row: &Row, places: &[OwnerPlace]) -> Lost {
    lost(row, places, |place, owner| match &write.operation {
        RowOperation::Update { changes, .. } if !touches(changes, &place.column) => true,
        _ => write.names(&place.column) == Some(owner),
    })
}

/// Whether changes are of a column.
fn touches(changes: &[ColumnChange], name: &str) -> bool {
    changes.iter().any(|change| column_of(change) == name)
}

fn column_of(change: &ColumnChange) -> &str {
    match change {
        ColumnChange::Put { column, .. }
        | ColumnChange::DeleteVersion { column, .. }
        | ColumnChange::DeleteAll { column }
        | ColumnChange::Increment { column, .. } => column,
    }
}

/// What there is, if that is one.
fn only<T>(mut values: impl Iterator<Item = T>) -> Option<T> {
    let value = values.next()?;
    values.next().is_none().then_some(value)
}

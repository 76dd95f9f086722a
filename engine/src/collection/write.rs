//! Writes: conditions that make them what they are called, and answers that a repeated request gets again.

use std::collections::HashSet;

use souk_storage::{
    Committed, Condition, ConditionFailure, Error as StoreError, PrimaryKey, ReturnRow, Row, RowOperation,
    RowWrite, WriteBatch,
};

use super::{Collection, key_of, not_found};
use crate::error::{EngineError, Result};
use crate::etag;
use crate::handovers::{Lost, lost};
use crate::key;
use crate::owners::named_by;
use crate::resource::{RequestId, Resource, Stored, Written};
use crate::scope::Scope;
use crate::stored::{ResourceMetadata, signed, to_row};
use crate::table::UPDATE_ATTEMPTS;

/// Which call creates: the same request id under another call is another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Creation {
    /// [`Collection::create`].
    One,
    /// [`Collection::create_batch`].
    Batch,
}

impl Creation {
    /// What fingerprints are made of; kept in databases.
    fn operation(self) -> &'static str {
        match self {
            Self::One => "create",
            Self::Batch => "create_batch",
        }
    }
}

impl<R: Resource> Collection<R> {
    /// Refuses what the caller may not write, before a service looks up what it needs for it: what it finds would tell of
    /// rows that the caller may not meet.
    ///
    /// # Errors
    /// [`EngineError::NotOwn`], [`EngineError::NoOwnRows`].
    pub fn check_writable<'a>(&self, resources: impl IntoIterator<Item = &'a R::Record>) -> Result<()> {
        let scope = self.table.scope()?;
        resources
            .into_iter()
            .try_for_each(|resource| check_written::<R>(&scope, resource))
    }

    /// What a creation with this request id answered the first time; `None` when there was none. For services that
    /// complete a resource from rows that may have gone since: a repeated request needs them no more. Of a request that an
    /// older version recorded the rows aren't known: unless they are left out (`omit`), that is `None`, too, and the
    /// creation then answers with the rows as they are by now.
    ///
    /// # Errors
    /// [`EngineError::RequestIdReused`].
    pub async fn created_before(
        &self,
        request_id: Option<RequestId>,
        creation: Creation,
        omit: bool,
    ) -> Result<Option<Written<Vec<Stored<R::Record>>>>> {
        let Some(id) = request_id else {
            return Ok(None);
        };
        let request = self
            .table
            .request_record(id, creation.operation(), &self.table.scope()?);
        let Some(committed) = self.table.inner.database.replayed(&request).await? else {
            return Ok(None);
        };
        let value = if omit {
            Vec::new()
        } else {
            self.first_answer(&committed)?
        };
        Ok((omit || !value.is_empty()).then(|| Written {
            value,
            sequence: signed(committed.sequence),
        }))
    }

    /// Creates one resource. With `validate_only` nothing is written, and the revision is 0.
    ///
    /// # Errors
    /// [`EngineError::AlreadyExists`], [`EngineError::RequestIdReused`]; [`EngineError::NotFound`] for a repeated request
    /// that an older version recorded without its answer, when the resource has gone since.
    pub async fn create(
        &self,
        resource: R::Record,
        request_id: Option<RequestId>,
        validate_only: bool,
    ) -> Result<Written<Stored<R::Record>>> {
        if validate_only {
            return self.rehearse_creation(resource).await;
        }
        let id = R::id(&resource).to_owned();
        let written = self
            .create_all(vec![resource], request_id, Creation::One, true)
            .await?;
        let first = written.value.into_iter().next();
        Ok(Written {
            value: first.ok_or_else(|| not_found::<R>(&id))?,
            sequence: written.sequence,
        })
    }

    /// Creates several resources: all or none. With `omit` the answer holds none.
    ///
    /// # Errors
    /// [`EngineError::AlreadyExists`] for the first that is taken, [`EngineError::DuplicateIds`],
    /// [`EngineError::RequestIdReused`].
    pub async fn create_batch(
        &self,
        resources: Vec<R::Record>,
        request_id: Option<RequestId>,
        omit: bool,
    ) -> Result<Written<Vec<Stored<R::Record>>>> {
        self.create_all(resources, request_id, Creation::Batch, !omit)
            .await
    }

    async fn rehearse_creation(&self, resource: R::Record) -> Result<Written<Stored<R::Record>>> {
        check_written::<R>(&self.table.scope()?, &resource)?;
        let snapshot = self.table.snapshot(0).await?;
        let key = key_of::<R>(&resource)?;
        if snapshot.get(&self.table.open.table, &key).await?.is_some() {
            return Err(already_exists::<R>(R::id(&resource)));
        }
        let metadata = ResourceMetadata::created(self.table.inner.clock.now());
        Ok(Written {
            value: metadata.with(resource, 0, &self.table.inner.database),
            sequence: signed(snapshot.sequence()),
        })
    }

    async fn create_all(
        &self,
        resources: Vec<R::Record>,
        request_id: Option<RequestId>,
        creation: Creation,
        answer: bool,
    ) -> Result<Written<Vec<Stored<R::Record>>>> {
        check_distinct::<R>(&resources)?;
        let scope = self.table.scope()?;
        resources
            .iter()
            .try_for_each(|resource| check_written::<R>(&scope, resource))?;
        let metadata = ResourceMetadata::created(self.table.inner.clock.now());
        let mut batch = WriteBatch::new();
        for resource in &resources {
            let operation = RowOperation::Put {
                key: key_of::<R>(resource)?,
                columns: to_row::<R>(resource, metadata),
            };
            let write = RowWrite::new(&self.table.open.table, operation, Condition::must_not_exist());
            // Kept with the request: it is answered so again, whatever becomes of the rows.
            let keeps = answer && request_id.is_some();
            let returning = if keeps { ReturnRow::All } else { ReturnRow::None };
            batch = batch.row(write.returning(returning));
        }
        if let Some(id) = request_id {
            batch = batch.request(self.table.request_record(id, creation.operation(), &scope));
        }
        let committed = self.table.commit(batch).await.map_err(|error| {
            let StoreError::ConditionFailed { write, .. } = error else {
                return error.into();
            };
            match resources.get(write) {
                Some(taken) => already_exists::<R>(R::id(taken)),
                None => EngineError::Defect("the store refused a write that isn't in the batch"),
            }
        })?;
        let value = if !answer {
            Vec::new()
        } else if committed.replayed.is_some() {
            let first = self.first_answer(&committed)?;
            if first.is_empty() {
                self.answer_of_now(&resources).await?
            } else {
                first
            }
        } else {
            let stored = |resource| metadata.with(resource, committed.sequence, &self.table.inner.database);
            resources.into_iter().map(stored).collect()
        };
        Ok(Written {
            value,
            sequence: signed(committed.sequence),
        })
    }

    /// The resources of a repeated request of which nothing was kept, an older version's: as they are by now.
    async fn answer_of_now(&self, resources: &[R::Record]) -> Result<Vec<Stored<R::Record>>> {
        let keys = resources.iter().map(key_of::<R>).collect::<Result<Vec<_>>>()?;
        let snapshot = self.table.inner.database.snapshot().await?;
        let rows = self.table.read(&snapshot, &keys).await?.into_iter().flatten();
        rows.map(|row| Ok(self.resource(&row)?)).collect()
    }

    /// What the write of a repeated request answered the first time: the rows as it left them; none if it left them out, or an
    /// older version made it.
    fn first_answer(&self, committed: &Committed) -> Result<Vec<Stored<R::Record>>> {
        let rows = committed.rows.iter().filter_map(|written| written.row.as_ref());
        rows.map(|row| Ok(self.resource(row)?)).collect()
    }

    /// Reads, changes and writes one resource. Without `etag` it is repeated when others were faster, so `change`
    /// may run several times; the id must stay the same.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::EtagMismatch`], [`EngineError::Contended`], what `change` gives.
    pub async fn update<E: From<EngineError>>(
        &self,
        id: &str,
        etag: Option<&str>,
        change: impl Fn(R::Record) -> Result<R::Record, E> + Send + Sync,
    ) -> Result<Written<Stored<R::Record>>, E> {
        let scope = self.table.scope()?;
        let places = self.table.open.owner_places();
        let changes = |row: &Row, current: R::Record| -> Result<_, E> {
            let changed = change(current)?;
            check_written::<R>(&scope, &changed)?;
            if R::id(&changed) != id {
                return Err(EngineError::Defect("an update changed the id of its resource").into());
            }
            let metadata = ResourceMetadata::of(row)
                .map_err(EngineError::from)?
                .changed(self.table.inner.clock.now());
            let columns = to_row::<R>(&changed, metadata);
            let lost = lost(row, &places, |place, owner| {
                named_by(place, &columns) == Some(owner)
            });
            let key = row.key.clone();
            let operation = RowOperation::Put { key, columns };
            let condition = Condition::revision(row.revision);
            let batch = WriteBatch::of(&self.table.open.table, operation, condition);
            Ok((batch, lost, (metadata, changed)))
        };
        let ((metadata, changed), sequence) = self.write_as_seen(&scope, id, etag, changes).await?;
        Ok(Written {
            value: metadata.with(changed, sequence, &self.table.inner.database),
            sequence: signed(sequence),
        })
    }

    /// Deletes one resource.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::EtagMismatch`].
    pub async fn delete(&self, id: &str, etag: Option<&str>) -> Result<Written<()>> {
        let scope = self.table.scope()?;
        if scope.is_limited() {
            // As it was looked at: the condition can't say whose it is.
            let deletes = |row: &Row, _| {
                let condition = Condition::revision(row.revision);
                Ok::<_, EngineError>((self.table.deletion(row.key.clone(), condition), Lost::new(), ()))
            };
            let ((), sequence) = self.write_as_seen(&scope, id, etag, deletes).await?;
            return Ok(Written {
                value: (),
                sequence: signed(sequence),
            });
        }
        let mut condition = Condition::must_exist();
        if let Some(given) = etag {
            // An etag that isn't one equals no revision: no sequence gets there.
            condition.revision = Some(self.revision(given).unwrap_or(u64::MAX));
        }
        let batch = self.table.deletion(key::hashed(id)?, condition);
        match self.table.commit(batch).await {
            Ok(committed) => Ok(Written {
                value: (),
                sequence: signed(committed.sequence),
            }),
            Err(StoreError::ConditionFailed { reason, .. }) => Err(match (reason, etag) {
                (ConditionFailure::NotFound, _) | (_, None) => not_found::<R>(id),
                (_, Some(given)) => etag_mismatch::<R>(id, given),
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// Looks at a resource that the call may meet, and writes what `decide` makes of it, under the condition that it still
    /// is what was looked at; repeated when others were faster. `decide` also says who loses the row by it. What it gave
    /// with that, and the sequence.
    async fn write_as_seen<T, E: From<EngineError>>(
        &self,
        scope: &Scope,
        id: &str,
        etag: Option<&str>,
        decide: impl Fn(&Row, R::Record) -> Result<(WriteBatch, Lost, T), E> + Send + Sync,
    ) -> Result<(T, u64), E> {
        let key = key::hashed(id).map_err(EngineError::from)?;
        let _turn = self.table.turn(&key).await;
        for _ in 0..UPDATE_ATTEMPTS {
            let (row, current) = self.look_at(scope, &key, id, etag).await?;
            let (batch, lost, decided) = decide(&row, current)?;
            match self.table.commit_noted(batch, lost).await {
                Ok(committed) => return Ok((decided, committed.sequence)),
                // Somebody was faster: with an etag the next look says so; it may be another's by now, or gone.
                Err(StoreError::ConditionFailed { .. }) => {}
                Err(error) => return Err(EngineError::from(error).into()),
            }
        }
        let contended = EngineError::Contended {
            name: R::NAME,
            id: id.to_owned(),
            attempts: UPDATE_ATTEMPTS,
        };
        Err(contended.into())
    }

    /// A row that the call may meet, and that has an etag.
    async fn look_at(
        &self,
        scope: &Scope,
        key: &PrimaryKey,
        id: &str,
        etag: Option<&str>,
    ) -> Result<(Row, R::Record)> {
        let snapshot = self.table.inner.database.snapshot().await?;
        let row = snapshot.get(&self.table.open.table, key);
        let row = self.table.access("get", row).await?;
        let row = row.filter(|row| scope.sees(row));
        let row = row.ok_or_else(|| not_found::<R>(id))?;
        let current = self.resource(&row)?.resource;
        if let Some(given) = etag
            && self.revision(given) != Some(row.revision)
        {
            return Err(etag_mismatch::<R>(id, given));
        }
        Ok((row, current))
    }

    /// The revision that an etag names, if one of this database does.
    fn revision(&self, etag: &str) -> Option<u64> {
        etag::revision(etag, |revision| self.table.inner.database.history_of(revision))
    }
}

/// Refuses to write what the caller couldn't meet afterwards.
fn check_written<R: Resource>(scope: &Scope, resource: &R::Record) -> Result<()> {
    match scope.is_limited() {
        true => scope.check_written(
            R::NAME,
            &key_of::<R>(resource)?,
            &R::to_columns(resource).into_cells(),
        ),
        false => Ok(()),
    }
}

/// Refuses a batch with an id twice.
fn check_distinct<R: Resource>(resources: &[R::Record]) -> Result<()> {
    let mut seen = HashSet::with_capacity(resources.len());
    let ids = resources.iter().enumerate();
    let at: Vec<usize> = ids
        .filter_map(|(at, resource)| (!seen.insert(R::id(resource))).then_some(at))
        .collect();
    match at.is_empty() {
        true => Ok(()),
        false => Err(EngineError::DuplicateIds {
            table: R::TABLE,
            id_field: R::ID_FIELD,
            at,
        }),
    }
}

fn etag_mismatch<R: Resource>(id: &str, given: &str) -> EngineError {
    EngineError::EtagMismatch {
        name: R::NAME,
        id: id.to_owned(),
        given: given.to_owned(),
    }
}

fn already_exists<R: Resource>(id: &str) -> EngineError {
    EngineError::AlreadyExists {
        name: R::NAME,
        id: id.to_owned(),
    }
}

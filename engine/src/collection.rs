//! Typed views of a table: what services hold.
//!
//! Reads see the latest write. A search that carries `min_sequence` waits until its view includes that write, until the
//! deadline of the [`Call`]. A sequence that no write has been given yet is refused by every call: nobody can have it from
//! here.

mod find;
mod list;
mod write;

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use souk_index::{Schema, SearchRequest};
use souk_storage::limits::MAX_SCANNED_BYTES;
use souk_storage::{PrimaryKey, Row, Snapshot};
use tracing::{Instrument as _, Span, info_span};

pub use self::find::{IndexAnswer, Search, SearchHit, SearchProfile, SearchResults};
pub use self::list::{ListPage, ListQuery};
pub use self::write::{Attempt, Creation};
use crate::call::Call;
use crate::columns::CorruptRow;
use crate::deadline::Wait;
use crate::design::Design;
use crate::error::{EngineError, Result};
use crate::inner::Inner;
use crate::observer::ErrorType;
use crate::resource::{Found, Resource, Stored, Written};
use crate::scope::Scope;
use crate::stored::{from_row, signed};
use crate::table::OpenTable;
use crate::trace;

/// One table with its index, as resources. Clones share it.
#[derive(Debug)]
pub struct Collection<R> {
    pub(crate) inner: Arc<Inner>,
    pub(crate) open: Arc<OpenTable>,
    call: Call,
    resource: PhantomData<fn() -> R>,
}

impl<R> Clone for Collection<R> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            open: Arc::clone(&self.open),
            call: self.call.clone(),
            resource: PhantomData,
        }
    }
}

impl<R: Resource> Collection<R> {
    pub(crate) fn new(inner: Arc<Inner>, open: Arc<OpenTable>) -> Self {
        Self {
            inner,
            open,
            call: Call::default(),
            resource: PhantomData,
        }
    }

    /// The same collection for a call: it meets the rows of the call's principal, and waits until its deadline.
    #[must_use]
    pub fn for_call(&self, call: Call) -> Self {
        Self { call, ..self.clone() }
    }

    /// What searches find things by: the schema of the index that answers.
    #[must_use]
    pub fn schema(&self) -> impl Deref<Target = Schema> + use<R> {
        ServedSchema(self.open.served())
    }

    /// Which rows the call meets here.
    ///
    /// # Errors
    /// [`EngineError::NoOwnRows`] when it may only meet own ones, and there is nothing like that here.
    pub(crate) fn scope(&self) -> Result<Scope> {
        Scope::of_call::<R>(&self.call.principal, self.inner.guarded)
    }

    /// By which the shares of the call's caller are counted.
    pub(crate) fn caller(&self) -> Option<Arc<str>> {
        self.call.principal.name().map(Arc::clone)
    }

    /// How long the call may wait.
    fn wait(&self) -> Wait {
        Wait::new(self.call.deadline)
    }

    /// Refuses what the caller may not write, before a service looks up what it needs for it: what it finds would tell of
    /// rows that the caller may not meet.
    ///
    /// # Errors
    /// [`EngineError::NotOwn`], [`EngineError::NoOwnRows`].
    pub fn check_writable<'a>(&self, resources: impl IntoIterator<Item = &'a R>) -> Result<()> {
        let scope = self.scope()?;
        resources
            .into_iter()
            .try_for_each(|resource| scope.check_written(resource))
    }

    /// The scope of the call, and the search that stays in it.
    ///
    /// # Errors
    /// As [`Collection::scope`]; [`EngineError::OwnerNotIndexed`].
    fn scoped_search(&self, mut request: SearchRequest) -> Result<(Scope, SearchRequest)> {
        let scope = self.scope()?;
        scope.restrict(&mut request, &self.open.served(), R::TABLE)?;
        Ok((scope, request))
    }

    /// Reads one resource.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::SequenceAhead`].
    pub async fn get(&self, id: &str, min_sequence: u64) -> Result<Written<Stored<R>>> {
        self.access("get", async {
            let scope = self.scope()?;
            let key = R::key(id)?;
            let snapshot = self.snapshot(min_sequence).await?;
            let row = snapshot.get(&self.open.table, &key).await?;
            let stored = row.as_ref().map(|row| self.resource(row)).transpose()?;
            let stored = stored.filter(|stored| scope.sees(&stored.resource));
            Ok(Written {
                value: stored.ok_or_else(|| not_found::<R>(id))?,
                sequence: signed(snapshot.sequence()),
            })
        })
        .await
    }

    /// Reads several resources from one snapshot.
    ///
    /// # Errors
    /// [`EngineError::SequenceAhead`].
    pub async fn get_batch(&self, ids: &[String], min_sequence: u64) -> Result<Written<Found<R>>> {
        self.access("get_batch", async {
            let scope = self.scope()?;
            let keys = ids.iter().map(|id| R::key(id)).collect::<Result<Vec<_>, _>>()?;
            let snapshot = self.snapshot(min_sequence).await?;
            let rows = snapshot.multi_get(&self.open.table, &keys).await?;
            let mut found = Found {
                found: Vec::with_capacity(ids.len()),
                missing: Vec::new(),
            };
            for (id, row) in ids.iter().zip(rows) {
                let stored = row.as_ref().map(|row| self.resource(row)).transpose()?;
                match stored.filter(|stored| scope.sees(&stored.resource)) {
                    Some(stored) => found.found.push(stored),
                    None => found.missing.push(id.clone()),
                }
            }
            Ok(Written {
                value: found,
                sequence: signed(snapshot.sequence()),
            })
        })
        .await
    }

    /// A snapshot that includes a write. Nobody waits for it: who knows a sequence knows it from a write that is there.
    ///
    /// # Errors
    /// [`EngineError::SequenceAhead`].
    pub(crate) async fn snapshot(&self, min_sequence: u64) -> Result<Snapshot> {
        let snapshot = self.inner.database.snapshot().await?;
        refuse_ahead(MIN_SEQUENCE, min_sequence, snapshot.sequence())?;
        Ok(snapshot)
    }

    /// Refuses a sequence that no write has been given yet.
    ///
    /// # Errors
    /// [`EngineError::SequenceAhead`].
    pub(crate) async fn check_sequence(&self, field: &'static str, given: u64) -> Result<()> {
        if given <= self.inner.database.last_sequence() {
            return Ok(());
        }
        // A snapshot, and with it an index, may see a write a moment before its sequence is told.
        refuse_ahead(field, given, self.inner.database.snapshot().await?.sequence())
    }

    /// The resources of some keys, as they are in one snapshot: those that the call may meet.
    pub(crate) async fn read(
        &self,
        snapshot: &Snapshot,
        keys: &[PrimaryKey],
    ) -> Result<Vec<Option<Stored<R>>>> {
        let rows = snapshot.multi_get(&self.open.table, keys);
        self.seen(self.access("get_batch", rows).await?)
    }

    /// The same of as many of the first keys as are read at once from a range, and of one at least: what a page holds.
    pub(crate) async fn read_page(
        &self,
        snapshot: &Snapshot,
        keys: &[PrimaryKey],
    ) -> Result<Vec<Option<Stored<R>>>> {
        let rows = snapshot.multi_get_within(&self.open.table, keys, MAX_SCANNED_BYTES);
        self.seen(self.access("get_batch", rows).await?)
    }

    /// What the call may meet of some rows.
    fn seen(&self, rows: Vec<Option<Row>>) -> Result<Vec<Option<Stored<R>>>> {
        let scope = self.scope()?;
        rows.iter()
            .map(|row| {
                let stored = row.as_ref().map(|row| self.resource(row)).transpose()?;
                Ok(stored.filter(|stored| scope.sees(&stored.resource)))
            })
            .collect()
    }

    /// What a row of the table holds.
    pub(crate) fn resource(&self, row: &Row) -> Result<Stored<R>, CorruptRow> {
        from_row(row, &self.open.declaration.places, &self.inner.database)
    }

    /// One access to the store: it has a span, which says why it failed, and its duration is measured.
    pub(crate) async fn access<T, E: ErrorType>(
        &self,
        operation: &'static str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let timed = async {
            let began = Instant::now();
            let result = work.await;
            let error = result.as_ref().err().and_then(ErrorType::error_type);
            if let Some(error) = error {
                let span = Span::current();
                span.record("error.type", error);
                span.record("otel.status_code", "ERROR");
            }
            self.inner
                .observer
                .accessed(operation, R::TABLE, error, began.elapsed());
            result
        };
        timed.instrument(self.storage_span(operation)).await
    }

    /// The span of one access to the store, by the conventions for databases.
    fn storage_span(&self, operation: &'static str) -> Span {
        let span = || {
            info_span!(
                "storage",
                otel.name = format_args!("{operation} {}", R::TABLE),
                otel.kind = "client",
                db.system.name = "souk",
                db.operation.name = operation,
                db.collection.name = R::TABLE,
                souk.sequence = tracing::field::Empty,
                "error.type" = tracing::field::Empty,
                otel.status_code = tracing::field::Empty,
            )
        };
        trace::recorded(span)
    }
}

/// The schema of a design.
struct ServedSchema(Arc<Design>);

impl Deref for ServedSchema {
    type Target = Schema;

    fn deref(&self) -> &Schema {
        &self.0.schema
    }
}

/// The field by which calls name the write that they have to see.
pub(crate) const MIN_SEQUENCE: &str = "min_sequence";

fn refuse_ahead(field: &'static str, given: u64, last: u64) -> Result<()> {
    match given > last {
        true => Err(EngineError::SequenceAhead { field, given, last }),
        false => Ok(()),
    }
}

fn not_found<R: Resource>(id: &str) -> EngineError {
    EngineError::NotFound {
        name: R::NAME,
        id: id.to_owned(),
    }
}

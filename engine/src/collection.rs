//! Typed views of a table: what services hold.
//!
//! Reads see the latest write. A call that carries `min_sequence` waits until its view includes that write, bounded
//! by the deadline of the call ([`souk_chassis::layers::deadline::Deadline::current`]).

mod clusters;
mod find;
mod list;
mod suggest;
mod write;

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Instant;

use souk_chassis::status::Violations;
use souk_chassis::telemetry;
use souk_storage::{PrimaryKey, Row, Snapshot};
use tracing::{Instrument as _, Span, info_span};

pub use self::list::{ListPage, ListRequest};
pub use self::write::{Attempt, Creation};
use crate::columns::CorruptRow;
use crate::deadline::Wait;
use crate::engine::Inner;
use crate::error::{EngineError, Result, Waiting};
use crate::metrics::ErrorType;
use crate::resource::{Found, Resource, Stored, Written};
use crate::stored::{from_row, signed};
use crate::table::OpenTable;
use crate::wire;

/// One table with its index, as resources. Clones share it.
#[derive(Debug)]
pub struct Collection<R> {
    pub(crate) inner: Arc<Inner>,
    pub(crate) open: Arc<OpenTable>,
    resource: PhantomData<fn() -> R>,
}

impl<R> Clone for Collection<R> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            open: Arc::clone(&self.open),
            resource: PhantomData,
        }
    }
}

impl<R: Resource> Collection<R> {
    pub(crate) fn new(inner: Arc<Inner>, open: Arc<OpenTable>) -> Self {
        Self {
            inner,
            open,
            resource: PhantomData,
        }
    }

    /// Reads one resource.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::DeadlineExceeded`].
    pub async fn get(&self, id: &str, min_sequence: i64) -> Result<Written<Stored<R>>> {
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

    /// Reads up to [`crate::wire::GET_BATCH_MAX`] resources from one snapshot.
    ///
    /// # Errors
    /// [`EngineError::DeadlineExceeded`].
    pub async fn get_batch(&self, ids: &[String], min_sequence: i64) -> Result<Written<Found<R>>> {
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

    /// A snapshot that includes a write.
    pub(crate) async fn snapshot(&self, min_sequence: i64) -> Result<Snapshot> {
        let mut violations = Violations::new();
        let wanted = wire::min_sequence(min_sequence, "min_sequence", &mut violations);
        wire::settled(violations)?;
        let mut sequences = self.inner.database.subscribe();
        let reached = *sequences.borrow() >= wanted
            || Wait::of_call()
                .for_value(&mut sequences, |reached| *reached >= wanted)
                .await;
        if !reached {
            return Err(EngineError::DeadlineExceeded(Waiting::Store {
                wanted,
                reached: self.inner.database.last_sequence(),
            }));
        }
        Ok(self.inner.database.snapshot().await?)
    }

    /// The resources of some keys, as they are in one snapshot: those that the call may meet.
    pub(crate) async fn read(
        &self,
        snapshot: &Snapshot,
        keys: &[PrimaryKey],
    ) -> Result<Vec<Option<Stored<R>>>> {
        let scope = self.scope()?;
        let rows = self
            .access("get_batch", snapshot.multi_get(&self.open.table, keys))
            .await?;
        rows.iter()
            .map(|row| {
                let stored = row.as_ref().map(|row| self.resource(row)).transpose()?;
                Ok(stored.filter(|stored| scope.sees(&stored.resource)))
            })
            .collect()
    }

    /// What a row of the table holds.
    pub(crate) fn resource(&self, row: &Row) -> Result<Stored<R>, CorruptRow> {
        from_row(row, &self.open.places, &self.inner.database)
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
                .metrics
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
        telemetry::recorded(span)
    }
}

fn not_found<R: Resource>(id: &str) -> EngineError {
    EngineError::NotFound {
        name: R::NAME,
        id: id.to_owned(),
    }
}

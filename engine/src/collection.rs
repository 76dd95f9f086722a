//! Typed views of a table: what services hold.
//!
//! Reads see the latest write. A call that carries `min_sequence` waits until its view includes that write, bounded
//! by the deadline of the call ([`souk_chassis::layers::deadline::Deadline::current`]).

use std::marker::PhantomData;
use std::sync::Arc;

use futures_util::Stream;
use souk_index::GeoPoint;
use souk_proto::search::v1 as pb;
use souk_storage::{Direction, Value};

use crate::engine::Inner;
use crate::error::{EngineError, Result};
use crate::export::{ExportBlock, ExportRequest};
use crate::resource::{Found, Resource, Stored, Written};
use crate::search::{NearPage, NearbyRequest, SearchPage};
use crate::watch::WatchEvent;
use crate::wire::RequestId;

/// One table with its index, as resources. Clones share it.
#[derive(Debug)]
pub struct Collection<R> {
    inner: Arc<Inner>,
    resource: PhantomData<fn() -> R>,
}

impl<R> Clone for Collection<R> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            resource: PhantomData,
        }
    }
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListPage<R> {
    /// The resources in the order of the secondary index.
    pub items: Vec<Stored<R>>,
    /// Gives the next page; empty at the end.
    pub next_page_token: String,
    /// The last write that the list sees.
    pub sequence: i64,
}

/// What to list: a prefix of a secondary index.
#[derive(Clone, Debug)]
pub struct ListRequest<'a> {
    /// The secondary index.
    pub index: &'a str,
    /// Values of its first columns.
    pub prefix: &'a [Value],
    /// Which way.
    pub direction: Direction,
    /// How many resources; see [`crate::wire::LIST_SIZE_DEFAULT`] and [`crate::wire::LIST_SIZE_MAX`].
    pub page_size: i32,
    /// The token of the page before; empty for the first.
    pub page_token: &'a str,
    /// Wait until the list sees this write.
    pub min_sequence: i64,
}

impl<R: Resource> Collection<R> {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self {
            inner,
            resource: PhantomData,
        }
    }

    /// Creates one resource. With `validate_only` nothing is written, and the revision is 0.
    ///
    /// # Errors
    /// [`EngineError::AlreadyExists`], [`EngineError::RequestIdReused`].
    pub async fn create(
        &self,
        resource: R,
        request_id: Option<RequestId>,
        validate_only: bool,
    ) -> Result<Written<Stored<R>>> {
        let _ = (resource, request_id, validate_only);
        Err(EngineError::Defect("not built yet"))
    }

    /// Creates up to [`crate::wire::WRITE_BATCH_MAX`] resources: all or none. With `omit` the answer holds none.
    ///
    /// # Errors
    /// [`EngineError::AlreadyExists`] for the first that is taken, [`EngineError::RequestIdReused`].
    pub async fn create_batch(
        &self,
        resources: Vec<R>,
        request_id: Option<RequestId>,
        omit: bool,
    ) -> Result<Written<Vec<Stored<R>>>> {
        let _ = (resources, request_id, omit);
        Err(EngineError::Defect("not built yet"))
    }

    /// Reads one resource.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::DeadlineExceeded`].
    pub async fn get(&self, id: &str, min_sequence: i64) -> Result<Written<Stored<R>>> {
        let _ = (id, min_sequence);
        Err(EngineError::Defect("not built yet"))
    }

    /// Reads up to [`crate::wire::GET_BATCH_MAX`] resources from one snapshot.
    ///
    /// # Errors
    /// [`EngineError::DeadlineExceeded`].
    pub async fn get_batch(&self, ids: &[String], min_sequence: i64) -> Result<Written<Found<R>>> {
        let _ = (ids, min_sequence);
        Err(EngineError::Defect("not built yet"))
    }

    /// Reads, changes and writes one resource. Without `etag` it is repeated when others were faster, so `change`
    /// may run several times; the id must stay the same. `change` may fail with anything that is an [`EngineError`],
    /// [`souk_chassis::status::Violations`] among it.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::EtagMismatch`], [`EngineError::Contended`], what `change` gives.
    pub async fn update<E: Into<EngineError>>(
        &self,
        id: &str,
        etag: Option<&str>,
        change: impl Fn(R) -> Result<R, E> + Send + Sync,
    ) -> Result<Written<Stored<R>>> {
        let _ = (id, etag, change);
        Err(EngineError::Defect("not built yet"))
    }

    /// Deletes one resource.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::EtagMismatch`].
    pub async fn delete(&self, id: &str, etag: Option<&str>) -> Result<Written<()>> {
        let _ = (id, etag);
        Err(EngineError::Defect("not built yet"))
    }

    /// Lists resources by a secondary index: no search involved, always the latest writes.
    ///
    /// # Errors
    /// [`EngineError::PageTokenInvalid`], [`EngineError::Invalid`].
    pub async fn list_by(&self, request: ListRequest<'_>) -> Result<ListPage<R>> {
        let _ = request;
        Err(EngineError::Defect("not built yet"))
    }

    /// Finds resources. `path` is where the search stands in the request, usually `search`. `None` finds everything.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] with every violation, [`EngineError::Unsupported`], [`EngineError::PageTokenInvalid`],
    /// [`EngineError::IndexBuilding`], [`EngineError::TooBusy`], [`EngineError::DeadlineExceeded`].
    pub async fn search(&self, search: Option<pb::Search>, path: &str) -> Result<SearchPage<R>> {
        let _ = (search, path);
        Err(EngineError::Defect("not built yet"))
    }

    /// Finds the resources nearest to a point, nearest first, each with its distance.
    ///
    /// # Errors
    /// As [`Collection::search`].
    pub async fn nearby(&self, request: NearbyRequest<'_>) -> Result<NearPage<R>> {
        let _ = request;
        Err(EngineError::Defect("not built yet"))
    }

    /// Streams every resource of one snapshot, in the order of the stored keys.
    ///
    /// # Errors
    /// [`EngineError::ExportExpired`], [`EngineError::TooManyExports`], [`EngineError::ExportTokenInvalid`],
    /// [`EngineError::Invalid`].
    pub async fn export(
        &self,
        request: ExportRequest,
    ) -> Result<impl Stream<Item = Result<ExportBlock<R>>> + Send + use<R>> {
        let _ = request;
        Ok(futures_util::stream::once(async {
            Err(EngineError::Defect("not built yet"))
        }))
    }

    /// Streams every change of the table after a sequence; `None` is from now on, and then begins with an event
    /// without changes that says where that is.
    ///
    /// # Errors
    /// [`EngineError::ChangesTrimmed`], [`EngineError::SequenceAhead`], [`EngineError::Invalid`].
    pub async fn watch(
        &self,
        after_sequence: Option<i64>,
    ) -> Result<impl Stream<Item = Result<WatchEvent<R>>> + Send + use<R>> {
        let _ = after_sequence;
        Ok(futures_util::stream::once(async {
            Err(EngineError::Defect("not built yet"))
        }))
    }
}

/// Where a search around a point begins.
pub type Center = GeoPoint;

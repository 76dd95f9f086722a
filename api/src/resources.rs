//! Calls of RPCs on one table: they take the numbers and messages of requests, and run on behalf of the RPC's caller, until
//! its deadline.

mod clusters;
mod nearby;
pub(crate) mod search;
mod suggest;

use futures_util::Stream;
use souk_access::{CallPrincipal, RowAccess, TableNames};
use souk_chassis::layers::deadline::Deadline;
use souk_engine::storage::{Direction, Value};
use souk_engine::{
    Attempt, Call, Collection, Creation, Engine, EngineError, ExportBlock, Found, ListPage, ListQuery, Owner,
    Principal, RequestId, Resource, ResourceChange, Stored, WatchEvent, Written,
};

use crate::error::{Error, Result};
use crate::export::ExportRequest;
use crate::wire::{LIST_SIZE_DEFAULT, LIST_SIZE_MAX, page_size, unsigned};

/// The resources of one table, for RPCs on them: a [`Collection`] that knows each call's caller and deadline. Clones share
/// it.
#[derive(Debug)]
pub struct Resources<R> {
    collection: Collection<R>,
}

impl<R> Clone for Resources<R> {
    fn clone(&self) -> Self {
        Self {
            collection: self.collection.clone(),
        }
    }
}

/// A list of the resources under a prefix of a secondary index; the other fields are those of `ListXxxRequest`.
#[derive(Clone, Debug)]
pub struct ListRequest<'a> {
    /// Name of the secondary index.
    pub index: &'a str,
    /// Values of its first columns.
    pub prefix: &'a [Value],
    /// The order along the index.
    pub direction: Direction,
    /// Most resources of the page; 0 is [`LIST_SIZE_DEFAULT`], and more than [`LIST_SIZE_MAX`] is that.
    pub page_size: i32,
    /// The token of the page before; empty for the first.
    pub page_token: &'a str,
    /// A sequence that the list has to include; 0 for any.
    pub min_sequence: i64,
}

impl<R: Resource> Resources<R> {
    /// The resources `R` of an engine.
    ///
    /// # Errors
    /// [`EngineError::UndeclaredTable`] when the engine wasn't opened with their table.
    pub fn new(engine: &Engine) -> Result<Self, EngineError> {
        Ok(Self {
            collection: engine.collection()?,
        })
    }

    /// The collection for the call that this task serves.
    fn of_call(&self) -> Collection<R> {
        self.collection.for_call(current_call())
    }

    /// See [`Collection::check_writable`].
    ///
    /// # Errors
    /// [`EngineError::NotOwn`], [`EngineError::NoOwnRows`].
    pub fn check_writable<'a>(&self, resources: impl IntoIterator<Item = &'a R::Record>) -> Result<()> {
        Ok(self.of_call().check_writable(resources)?)
    }

    /// See [`Collection::attempt`].
    pub async fn attempt(&self, request_id: Option<RequestId>) -> Option<Attempt<'_>> {
        self.collection.attempt(request_id).await
    }

    /// See [`Collection::created_before`].
    ///
    /// # Errors
    /// [`EngineError::RequestIdReused`].
    pub async fn created_before(
        &self,
        request_id: Option<RequestId>,
        creation: Creation,
        omit: bool,
    ) -> Result<Option<Written<Vec<Stored<R::Record>>>>> {
        Ok(self.of_call().created_before(request_id, creation, omit).await?)
    }

    /// See [`Collection::create`].
    ///
    /// # Errors
    /// [`EngineError::AlreadyExists`], [`EngineError::RequestIdReused`], [`EngineError::NotFound`].
    pub async fn create(
        &self,
        resource: R::Record,
        request_id: Option<RequestId>,
        validate_only: bool,
    ) -> Result<Written<Stored<R::Record>>> {
        Ok(self.of_call().create(resource, request_id, validate_only).await?)
    }

    /// See [`Collection::create_batch`].
    ///
    /// # Errors
    /// [`EngineError::AlreadyExists`], [`EngineError::RequestIdReused`]; [`Error::Invalid`] for ids that are there twice.
    pub async fn create_batch(
        &self,
        resources: Vec<R::Record>,
        request_id: Option<RequestId>,
        omit: bool,
    ) -> Result<Written<Vec<Stored<R::Record>>>> {
        Ok(self.of_call().create_batch(resources, request_id, omit).await?)
    }

    /// See [`Collection::get`].
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::SequenceAhead`], [`Error::Invalid`].
    pub async fn get(&self, id: &str, min_sequence: i64) -> Result<Written<Stored<R::Record>>> {
        Ok(self.of_call().get(id, unsigned(min_sequence)).await?)
    }

    /// See [`Collection::get_batch`]; up to [`crate::wire::GET_BATCH_MAX`].
    ///
    /// # Errors
    /// [`EngineError::SequenceAhead`], [`Error::Invalid`].
    pub async fn get_batch(&self, ids: &[String], min_sequence: i64) -> Result<Written<Found<R::Record>>> {
        Ok(self.of_call().get_batch(ids, unsigned(min_sequence)).await?)
    }

    /// See [`Collection::update`].
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::EtagMismatch`], [`EngineError::Contended`], the errors of `change`.
    pub async fn update(
        &self,
        id: &str,
        etag: Option<&str>,
        change: impl Fn(R::Record) -> Result<R::Record> + Send + Sync,
    ) -> Result<Written<Stored<R::Record>>> {
        self.of_call().update(id, etag, change).await
    }

    /// See [`Collection::delete`].
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::EtagMismatch`].
    pub async fn delete(&self, id: &str, etag: Option<&str>) -> Result<Written<()>> {
        Ok(self.of_call().delete(id, etag).await?)
    }

    /// See [`Collection::list_by`].
    ///
    /// # Errors
    /// [`Error::PageTokenInvalid`], [`EngineError::SequenceAhead`], [`Error::Invalid`].
    pub async fn list_by(&self, request: ListRequest<'_>) -> Result<ListPage<Stored<R::Record>>> {
        let list = ListQuery {
            index: request.index,
            prefix: request.prefix,
            direction: request.direction,
            page_size: page_size(request.page_size, LIST_SIZE_DEFAULT, LIST_SIZE_MAX),
            page_token: request.page_token,
            min_sequence: unsigned(request.min_sequence),
        };
        Ok(self.of_call().list_by(list).await?)
    }

    /// See [`Collection::export`].
    ///
    /// # Errors
    /// [`EngineError::ExportExpired`], [`EngineError::TooManyExports`], [`EngineError::ExportTokenInvalid`],
    /// [`EngineError::SequenceAhead`], [`Error::Invalid`].
    pub async fn export(
        &self,
        request: ExportRequest,
    ) -> Result<impl Stream<Item = Result<ExportBlock<Stored<R::Record>>, EngineError>> + Send + use<R>> {
        Ok(self.of_call().export(request.start()?).await?)
    }

    /// See [`Collection::watch`]; 0 begins with the oldest change that is kept.
    ///
    /// # Errors
    /// [`EngineError::ChangesTrimmed`], [`EngineError::SequenceAhead`], [`EngineError::TooManyWatches`],
    /// [`Error::Invalid`].
    pub async fn watch(
        &self,
        after_sequence: Option<i64>,
    ) -> Result<impl Stream<Item = Result<WatchEvent<ResourceChange<R::Record>>, EngineError>> + Send + use<R>>
    {
        let after = after_sequence.map(unsigned);
        Ok(self.of_call().watch(after).await?)
    }
}

/// Principal and deadline of the call that this task serves, for the engine.
pub(crate) fn current_call() -> Call {
    let principal = match CallPrincipal::current() {
        CallPrincipal::Caller(caller) => Principal::Caller {
            name: caller.name(),
            owner: (caller.row_access() == RowAccess::Own).then(|| Owner {
                kind: caller.role().word(),
                id: caller.subject().into(),
            }),
            tables: caller.tables().map(TableNames::names),
        },
        CallPrincipal::Service => Principal::Service,
        CallPrincipal::Unknown => Principal::Unknown,
    };
    Call {
        principal,
        deadline: Deadline::current().map(|deadline| deadline.at),
    }
}

/// Translates an error of a search. `at_request_paths` does so for an error of the index, and names the paths of the
/// request.
fn searched(error: EngineError, at_request_paths: impl FnOnce(souk_index::Error) -> Error) -> Error {
    match error {
        EngineError::Index(error) => at_request_paths(error),
        EngineError::PageTokenInvalid { detail } => {
            at_request_paths(souk_index::Error::PageTokenInvalid { detail })
        }
        other => other.into(),
    }
}

/// A text of a request that was given: an empty one wasn't.
pub(crate) fn given(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

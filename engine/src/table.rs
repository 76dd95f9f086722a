//! One table with its search indexes, as rows: what the engine does on any table.
//!
//! Reads see the latest write. A search that carries `min_sequence` waits until its view includes that write, until the
//! deadline of the [`Call`]. A sequence that no write has been given yet is refused by every call: nobody can have it from
//! here.

mod consumer_group;
mod list;
mod page;
mod range;
mod rows;
mod search;
mod transaction;
mod write;

use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use souk_index::{Schema, SearchRequest, token_design};
use souk_storage::limits::{MAX_BATCH_GET_BYTES, MAX_MULTI_GET_ROWS};
use souk_storage::{PrimaryKey, Row, Snapshot};
use tracing::{Instrument as _, Span, info_span};

pub use self::consumer_group::READ_WAIT_MAX;
pub use self::list::{ListPage, ListQuery};
pub use self::page::MAX_PAGE_BYTES;
pub use self::range::SCANS_MAX;
pub use self::rows::{IndexView, RowsPage, SPLITS_MAX};
pub use self::search::{IndexAnswer, RowHit, Search, SearchProfile, SearchResults};
pub(crate) use self::write::UPDATE_ATTEMPTS;
pub use self::write::{Attempt, TableWrite};
use crate::call::{Call, Grant};
use crate::deadline::Wait;
use crate::definition::TableDefinition;
use crate::design::Design;
use crate::error::{EngineError, Result};
use crate::index_state::Phase;
use crate::inner::Inner;
use crate::key;
use crate::observer::ErrorType;
use crate::open_index::OpenIndex;
use crate::open_table::{Home, OpenTable};
use crate::resource::Written;
use crate::scope::Scope;
use crate::stored::signed;
use crate::trace;
use crate::views::{self, ViewToken};

/// One table with its search indexes. Clones share it.
#[derive(Clone, Debug)]
pub struct TableHandle {
    pub(crate) inner: Arc<Inner>,
    pub(crate) open: Arc<OpenTable>,
    /// The index that its searches are sent to; without, [`Self::for_search`] chooses one for each.
    target: Option<SearchTarget>,
    call: Call,
}

/// The index that a search is sent to.
#[derive(Clone, Debug)]
struct SearchTarget {
    index: Arc<OpenIndex>,
    /// Whether it was picked by weight: any other could answer, too.
    by_weight: bool,
}

/// Which index of a table gave a page token.
enum TokenOrigin {
    /// It isn't a token of any index: the search tells what is wrong with it.
    Unknown,
    /// An index that has been dropped or redesigned since.
    Gone,
    Index(Arc<OpenIndex>),
}

impl TableHandle {
    pub(crate) fn new(inner: Arc<Inner>, open: Arc<OpenTable>) -> Self {
        Self {
            inner,
            open,
            target: None,
            call: Call::default(),
        }
    }

    /// The same table for a call: it meets the rows of the call's principal, and waits until its deadline.
    #[must_use]
    pub fn for_call(&self, call: Call) -> Self {
        Self { call, ..self.clone() }
    }

    /// The table's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.open.name()
    }

    /// What the table is at this moment.
    #[must_use]
    pub fn definition(&self) -> Arc<TableDefinition> {
        self.open.definition()
    }

    /// The same table for a search, which is sent to the index that it names, or to the one that gave its page tokens (that of its hits, and
    /// those of its composite aggregations), or else to one that is picked by weight.
    ///
    /// # Errors
    /// As [`TableHandle::check_call`]; [`EngineError::NotSearched`]; [`EngineError::NotFound`] of an index;
    /// [`EngineError::PageTokenInvalid`] of tokens of another index than the one that is named, of several, or of one that is no
    /// more; [`EngineError::ViewExpired`].
    pub fn for_search<'a>(
        &self,
        index: Option<&str>,
        page_tokens: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self> {
        // First: which indexes a table has is told to those alone who meet it.
        self.check_call()?;
        let mut chosen = match index {
            Some(name) => Some(self.open.index(name).ok_or_else(|| EngineError::no_index(name))?),
            None => None,
        };
        let indexes = self.open.indexes();
        // A table's only index judges its tokens itself.
        let tokens = page_tokens.into_iter().filter(|_| indexes.len() > 1);
        let mut is_gone = false;
        for token in tokens {
            match self.token_origin(token, &indexes)? {
                TokenOrigin::Unknown => {}
                TokenOrigin::Gone => is_gone = true,
                TokenOrigin::Index(giver) => {
                    let known = chosen.get_or_insert_with(|| Arc::clone(&giver));
                    if !Arc::ptr_eq(known, &giver) {
                        return Err(EngineError::PageTokenInvalid {
                            detail: "it is of another index than the one that is named, or that gave another token",
                        });
                    }
                }
            }
        }
        if is_gone && chosen.is_none() {
            return Err(EngineError::PageTokenInvalid {
                detail: "the index that gave it has been redesigned since, or is no more",
            });
        }
        match chosen {
            Some(index) => Ok(self.with_target(index, false)),
            None => Ok(self.with_target(self.open.pick_index()?, true)),
        }
    }

    fn with_target(&self, index: Arc<OpenIndex>, by_weight: bool) -> Self {
        Self {
            target: Some(SearchTarget { index, by_weight }),
            ..self.clone()
        }
    }

    /// Which of some indexes gave a page token.
    fn token_origin(&self, token: &str, indexes: &[Arc<OpenIndex>]) -> Result<TokenOrigin> {
        let fingerprint = self.scope()?.bind(self.fingerprint());
        let giver = match (ViewToken::open(fingerprint, token), token_design(token)) {
            (Some(token), _) => {
                let view = views::kept(&self.inner.views, token.number, None)?;
                indexes.iter().find(|index| Arc::ptr_eq(index, &view.index))
            }
            (None, Some(design)) => {
                let history = self.inner.database.history();
                indexes.iter().find(|index| index.gave(design, history))
            }
            (None, None) => return Ok(TokenOrigin::Unknown),
        };
        Ok(giver.map_or(TokenOrigin::Gone, |index| TokenOrigin::Index(Arc::clone(index))))
    }

    /// The same table to try a search again that has failed with `error`: if its index was picked by weight, and has been dropped
    /// meanwhile, another one is picked.
    ///
    /// # Errors
    /// `error`, in any other case; [`EngineError::NotSearched`].
    fn retargeted(&self, error: EngineError) -> Result<Self> {
        let is_gone =
            |target: &SearchTarget| target.by_weight && matches!(target.index.state.phase(), Phase::Absent);
        match (&error, &self.target) {
            (EngineError::NotFound { .. }, Some(target)) if is_gone(target) => {
                Ok(self.with_target(self.open.pick_index()?, true))
            }
            _ => Err(error),
        }
    }

    /// The index that a search is sent to.
    fn target_index(&self) -> Result<Arc<OpenIndex>> {
        match &self.target {
            Some(target) => Ok(Arc::clone(&target.index)),
            None => self.open.pick_index(),
        }
    }

    /// What searches find things by: the schema of the index that answers [the search](Self::for_search).
    ///
    /// # Errors
    /// [`EngineError::NotSearched`].
    pub fn schema(&self) -> Result<impl Deref<Target = Schema> + use<>> {
        Ok(ServedSchema(self.target_index()?.served_design()))
    }

    /// Refuses a call that doesn't meet the table, or may only meet own rows where there is nothing like that.
    ///
    /// # Errors
    /// [`EngineError::NoOwnRows`], [`EngineError::TableNotFound`], [`EngineError::TableNotAllowed`],
    /// [`EngineError::PartitionNotAllowed`].
    pub fn check_call(&self) -> Result<()> {
        self.scope().map(drop)
    }

    /// Which rows the call meets here.
    ///
    /// # Errors
    /// [`EngineError::NoOwnRows`] when it may only meet own ones, and there is nothing like that here;
    /// [`EngineError::TableNotFound`], also where the principal may not access the table; [`EngineError::TableNotAllowed`],
    /// [`EngineError::PartitionNotAllowed`].
    pub(crate) fn scope(&self) -> Result<Scope> {
        self.open.check_there()?;
        let principal = &self.call.principal;
        let table = || self.name().to_owned();
        match (principal.grant(self.name()), self.open.home) {
            (Grant::Whole, _) => Scope::of_call(principal, self.inner.guarded, &self.open.definition()),
            (Grant::Partitions(partitions), Home::Catalog) => {
                Scope::of_partitions(principal, partitions, &self.open.definition())
            }
            (Grant::Nothing, Home::Catalog) => Err(EngineError::TableNotFound { table: table() }),
            // That there is one is no secret.
            (_, Home::Code) => Err(EngineError::TableNotAllowed { table: table() }),
        }
    }

    /// The caller whose share of each limit the call counts against.
    pub(crate) fn caller(&self) -> Option<Arc<str>> {
        self.call.principal.name().map(Arc::clone)
    }

    /// How far one of its secondary indexes is.
    ///
    /// # Errors
    /// [`souk_storage::Error::IndexNotFound`].
    pub fn secondary_index_state(&self, index: &str) -> Result<souk_storage::SecondaryIndexState> {
        Ok(self.open.table.index_state(index)?)
    }

    /// Whether one of its secondary indexes was created without the rows that were there.
    ///
    /// # Errors
    /// [`souk_storage::Error::IndexNotFound`].
    pub fn secondary_index_is_partial(&self, index: &str) -> Result<bool> {
        Ok(self.open.table.index_is_partial(index)?)
    }

    /// The row behind the key of a document as people name it: its id, or the values of its key.
    ///
    /// # Errors
    /// When the key isn't one of a document.
    pub fn name_of(document_key: &[u8]) -> Result<String> {
        key::document_name(document_key).ok_or(EngineError::Defect("the index holds a key that isn't one"))
    }

    /// How long the call may wait.
    fn wait(&self) -> Wait {
        Wait::new(self.call.deadline)
    }

    /// The scope of the call, and the search of an index that stays in it.
    ///
    /// # Errors
    /// As [`TableHandle::scope`]; [`EngineError::OwnerNotIndexed`].
    fn scoped_search(&self, index: &OpenIndex, mut request: SearchRequest) -> Result<(Scope, SearchRequest)> {
        let scope = self.scope()?;
        scope.restrict(&mut request, &index.served_design(), index.name())?;
        Ok((scope, request))
    }

    /// Reads one row; `None` when there is none that the call may meet.
    ///
    /// # Errors
    /// [`EngineError::SequenceAhead`], [`EngineError::TableNotFound`]; what the store refuses.
    pub async fn get(&self, key: &PrimaryKey, min_sequence: u64) -> Result<Written<Option<Row>>> {
        self.access("get", async {
            let scope = self.scope()?;
            let snapshot = self.snapshot(min_sequence).await?;
            let row = snapshot.get(&self.open.table, key).await?;
            Ok(Written {
                value: row.filter(|row| scope.sees(row)),
                sequence: signed(snapshot.sequence()),
            })
        })
        .await
    }

    /// Reads several rows from one snapshot, in the order of the keys.
    ///
    /// # Errors
    /// As [`TableHandle::get`]; [`EngineError::RowsTooLarge`].
    pub async fn get_batch(
        &self,
        keys: &[PrimaryKey],
        min_sequence: u64,
    ) -> Result<Written<Vec<Option<Row>>>> {
        self.access("get_batch", async {
            let scope = self.scope()?;
            let snapshot = self.snapshot(min_sequence).await?;
            let rows = self.read_bounded(&snapshot, keys).await?.into_iter();
            let rows = rows.map(|row| row.filter(|row| scope.sees(row)));
            Ok(Written {
                value: rows.collect(),
                sequence: signed(snapshot.sequence()),
            })
        })
        .await
    }

    /// A snapshot that includes a write, which isn't waited for: clients learn its sequence once it is committed.
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

    /// The rows of some keys in one snapshot; `None` also for those that the call may not meet.
    pub(crate) async fn read(&self, snapshot: &Snapshot, keys: &[PrimaryKey]) -> Result<Vec<Option<Row>>> {
        let rows = snapshot.multi_get(&self.open.table, keys);
        self.met(self.access("get_batch", rows).await?)
    }

    /// [`Self::read`] of as many of the first keys as fit a page of [`MAX_PAGE_BYTES`], at least one; with each row's bytes as stored, or, if rows
    /// are `shown` in a message for rows of any shape, its bytes there where they are more.
    async fn read_page(
        &self,
        snapshot: &Snapshot,
        keys: &[PrimaryKey],
        shown: bool,
    ) -> Result<(Vec<Option<Row>>, Vec<usize>)> {
        let rows = snapshot.multi_get_within(&self.open.table, keys, MAX_PAGE_BYTES);
        let (rows, mut bytes): (Vec<Option<Row>>, Vec<usize>) =
            self.access("get_batch", rows).await?.into_iter().unzip();
        if shown && self.open.home == Home::Catalog {
            for (bytes, row) in bytes.iter_mut().zip(&rows) {
                *bytes = row.as_ref().map_or(0, Row::message_bytes).max(*bytes);
            }
        }
        Ok((self.met(rows)?, bytes))
    }

    /// The rows of all of some keys, at most [`MAX_BATCH_GET_BYTES`], whether the call may meet them or not.
    ///
    /// # Errors
    /// [`EngineError::RowsTooLarge`]; what the store refuses.
    async fn read_bounded(&self, snapshot: &Snapshot, keys: &[PrimaryKey]) -> Result<Vec<Option<Row>>> {
        let (mut all, mut left) = (Vec::with_capacity(keys.len()), MAX_BATCH_GET_BYTES);
        for keys in keys.chunks(MAX_MULTI_GET_ROWS) {
            let rows = snapshot.multi_get_within(&self.open.table, keys, left).await?;
            let read = rows.len();
            for (row, bytes) in rows {
                let rest = left.checked_sub(bytes);
                left = rest.ok_or(EngineError::RowsTooLarge { field: None })?;
                all.push(row);
            }
            if read < keys.len() {
                return Err(EngineError::RowsTooLarge { field: None });
            }
        }
        Ok(all)
    }

    /// Those of some rows that the call may meet.
    fn met(&self, rows: Vec<Option<Row>>) -> Result<Vec<Option<Row>>> {
        let scope = self.scope()?;
        let met = rows.into_iter().map(|row| row.filter(|row| scope.sees(row)));
        Ok(met.collect())
    }

    /// What tokens of the table have in common, before they belong to a caller's scope.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.open.fingerprint()
    }

    /// One access to the store: it has a span, which says why it failed, and its duration is measured.
    pub(crate) async fn access<T, E: ErrorType>(
        &self,
        operation: &'static str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        // Pinned, so that what is put around it doesn't move the future: that of a write has 4 KB.
        let work = pin!(work);
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
                .accessed(operation, self.open.shared_name(), error, began.elapsed());
            result
        };
        timed.instrument(self.storage_span(operation)).await
    }

    /// The span of one access to the store, by the conventions for databases.
    fn storage_span(&self, operation: &'static str) -> Span {
        let span = || {
            info_span!(
                "storage",
                otel.name = format_args!("{operation} {}", self.name()),
                otel.kind = "client",
                db.system.name = "souk",
                db.operation.name = operation,
                db.collection.name = self.name(),
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

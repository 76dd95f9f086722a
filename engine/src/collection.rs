//! Typed views of a table: what services hold. Ids become keys and resources become rows here; all else is the
//! [table's](TableHandle).

mod write;

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use futures_util::{Stream, TryStreamExt as _, future};
use souk_index::{Fragment, InnerHitList, Schema, SearchRequest, SortValue};
use souk_storage::{PrimaryKey, Row, RowChange};

pub use self::write::Creation;
use crate::call::Call;
use crate::columns::{ColumnPlaces, CorruptRow};
use crate::error::{EngineError, Result};
use crate::export::{ExportBlock, ExportStart};
use crate::key;
use crate::read_ahead::WatchEvent;
use crate::resource::{Found, RequestId, Resource, Stored, Written};
use crate::stored::{ResourceMetadata, from_row};
use crate::table::{Attempt, IndexAnswer, ListPage, ListQuery, RowHit, Search, SearchResults, TableHandle};

/// One table with its index, as resources. Clones share it.
#[derive(Debug)]
pub struct Collection<R> {
    table: TableHandle,
    /// Where rows have their columns.
    places: Arc<ColumnPlaces>,
    resource: PhantomData<fn() -> R>,
}

/// One hit.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchHit<T> {
    /// The resource, if it is shown.
    pub resource: Option<Stored<T>>,
    /// Its id.
    pub id: String,
    /// Its score; `None` when the order doesn't need one.
    pub score: Option<f64>,
    /// The values by which it was sorted, in the order of the search's sorts.
    pub sort_values: Vec<SortValue>,
    /// What matched, by field.
    pub highlights: Vec<(String, Vec<Fragment>)>,
    /// The nested objects that matched, by the names of their lists.
    pub inner_hits: Vec<(String, InnerHitList)>,
}

/// What can happen to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was created.
    Created,
    /// It was changed.
    Updated,
    /// It was deleted.
    Deleted,
}

/// What happened to one resource.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceChange<T> {
    /// What happened.
    pub kind: ChangeKind,
    /// Its id.
    pub id: String,
    /// How it is after the change; `None` when it was deleted.
    pub stored: Option<Stored<T>>,
}

impl<R> Clone for Collection<R> {
    fn clone(&self) -> Self {
        Self {
            table: self.table.clone(),
            places: Arc::clone(&self.places),
            resource: PhantomData,
        }
    }
}

impl<R: Resource> Collection<R> {
    pub(crate) fn new(table: TableHandle) -> Self {
        Self {
            table,
            places: Arc::default(),
            resource: PhantomData,
        }
    }

    /// The same collection for a call: it meets the rows of the call's principal, and waits until its deadline.
    #[must_use]
    pub fn for_call(&self, call: Call) -> Self {
        Self {
            table: self.table.for_call(call),
            places: Arc::clone(&self.places),
            resource: PhantomData,
        }
    }

    /// See [`TableHandle::for_search`].
    ///
    /// # Errors
    /// As there.
    pub fn for_search<'a>(
        &self,
        index: Option<&str>,
        page_tokens: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self> {
        Ok(Self {
            table: self.table.for_search(index, page_tokens)?,
            places: Arc::clone(&self.places),
            resource: PhantomData,
        })
    }

    /// See [`TableHandle::schema`].
    ///
    /// # Errors
    /// As there.
    pub fn schema(&self) -> Result<impl Deref<Target = Schema> + use<R>> {
        self.table.schema()
    }

    /// See [`TableHandle::attempt`].
    pub async fn attempt(&self, request_id: Option<RequestId>) -> Option<Attempt<'_>> {
        self.table.attempt(request_id).await
    }

    /// Reads one resource.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::SequenceAhead`].
    pub async fn get(&self, id: &str, min_sequence: u64) -> Result<Written<Stored<R::Record>>> {
        let read = self.table.get(&key::hashed(id)?, min_sequence).await?;
        let row = read.value.ok_or_else(|| not_found::<R>(id))?;
        Ok(Written {
            value: self.resource(&row)?,
            sequence: read.sequence,
        })
    }

    /// Reads several resources from one snapshot.
    ///
    /// # Errors
    /// [`EngineError::SequenceAhead`].
    pub async fn get_batch(&self, ids: &[String], min_sequence: u64) -> Result<Written<Found<R::Record>>> {
        let keys = ids.iter().map(|id| key::hashed(id));
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        let read = self.table.get_batch(&keys, min_sequence).await?;
        let mut found = Found {
            found: Vec::with_capacity(ids.len()),
            missing: Vec::new(),
        };
        for (id, row) in ids.iter().zip(read.value) {
            match row {
                Some(row) => found.found.push(self.resource(&row)?),
                None => found.missing.push(id.clone()),
            }
        }
        Ok(Written {
            value: found,
            sequence: read.sequence,
        })
    }

    /// See [`TableHandle::list_by`].
    ///
    /// # Errors
    /// [`EngineError::PageTokenInvalid`], [`EngineError::SequenceAhead`].
    pub async fn list_by(&self, request: ListQuery<'_>) -> Result<ListPage<Stored<R::Record>>> {
        let page = self.table.list_by(request).await?;
        Ok(ListPage {
            items: self.resources(&page.items)?,
            next_page_token: page.next_page_token,
            sequence: page.sequence,
        })
    }

    /// See [`TableHandle::search`].
    ///
    /// # Errors
    /// As there.
    pub async fn search(&self, search: Search) -> Result<SearchResults<SearchHit<R::Record>>> {
        self.table.search(search).await?.try_map(|hit| self.hit(hit))
    }

    /// See [`TableHandle::find`].
    ///
    /// # Errors
    /// As there.
    pub async fn find(&self, request: SearchRequest, min_sequence: u64) -> Result<IndexAnswer> {
        self.table.find(request, min_sequence).await
    }

    /// See [`TableHandle::rows`].
    ///
    /// # Errors
    /// As there.
    pub async fn rows(
        &self,
        document_keys: &[&[u8]],
        sequence: u64,
    ) -> Result<Vec<Option<Stored<R::Record>>>> {
        let rows = self.table.rows(document_keys, sequence).await?;
        let resource = |row: &Option<Row>| row.as_ref().map(|row| Ok(self.resource(row)?)).transpose();
        rows.iter().map(resource).collect()
    }

    /// The id of the resource behind a document's key.
    ///
    /// # Errors
    /// When the key isn't one of the table's.
    pub fn id_of(document_key: &[u8]) -> Result<String> {
        let id = key::hashed_document_id(document_key).map(str::to_owned);
        id.ok_or(EngineError::Defect("the index holds a key that isn't an id"))
    }

    /// See [`TableHandle::export`].
    ///
    /// # Errors
    /// As there.
    pub async fn export(
        &self,
        start: ExportStart<'_>,
    ) -> Result<impl Stream<Item = Result<ExportBlock<Stored<R::Record>>>> + Send + use<R>> {
        let collection = self.clone();
        let blocks = self.table.export(start).await?;
        Ok(blocks.and_then(move |block| {
            let typed = block.try_map(|row| Ok(collection.resource(&row)?));
            future::ready(typed)
        }))
    }

    /// See [`TableHandle::watch`].
    ///
    /// # Errors
    /// As there.
    pub async fn watch(
        &self,
        after_sequence: Option<u64>,
    ) -> Result<impl Stream<Item = Result<WatchEvent<ResourceChange<R::Record>>>> + Send + use<R>> {
        let collection = self.clone();
        let events = self.table.watch(after_sequence).await?;
        Ok(events.and_then(move |event| {
            let typed = event.try_map(|change| Ok(collection.change(&change)?));
            future::ready(typed)
        }))
    }

    fn change(&self, change: &RowChange) -> Result<ResourceChange<R::Record>, CorruptRow> {
        let id = key::hashed_id(&change.key)?;
        let Some(row) = &change.row else {
            return Ok(ResourceChange {
                kind: ChangeKind::Deleted,
                id,
                stored: None,
            });
        };
        let kind = if ResourceMetadata::of(row)?.is_new() {
            ChangeKind::Created
        } else {
            ChangeKind::Updated
        };
        Ok(ResourceChange {
            kind,
            id,
            stored: Some(self.resource(row)?),
        })
    }

    fn hit(&self, hit: RowHit) -> Result<SearchHit<R::Record>> {
        Ok(SearchHit {
            resource: hit.row.map(|row| self.resource(&row)).transpose()?,
            id: Self::id_of(&hit.key)?,
            score: hit.score,
            sort_values: hit.sort_values,
            highlights: hit.highlights,
            inner_hits: hit.inner_hits,
        })
    }

    /// What a row of the table holds.
    fn resource(&self, row: &Row) -> Result<Stored<R::Record>, CorruptRow> {
        from_row::<R>(row, &self.places, &self.table.inner.database)
    }

    fn resources(&self, rows: &[Row]) -> Result<Vec<Stored<R::Record>>> {
        rows.iter().map(|row| Ok(self.resource(row)?)).collect()
    }
}

fn key_of<R: Resource>(resource: &R::Record) -> Result<PrimaryKey> {
    Ok(key::hashed(R::id(resource))?)
}

fn not_found<R: Resource>(id: &str) -> EngineError {
    EngineError::NotFound {
        name: R::NAME,
        id: id.to_owned(),
    }
}

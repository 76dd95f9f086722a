//! The calls on one table whose rows its users write themselves, as RPCs make them: on behalf of the caller whom the gateway let in,
//! until the deadline of the call.

use std::ops::Deref;

use futures_util::Stream;
use souk_engine::storage::{Error as StoreError, Row};
use souk_engine::{Call, Engine, EngineError, ExportBlock, RowHit, TableHandle, TablesPage};
use souk_index::SortValue;
use souk_proto::search::v1 as pb;

use crate::error::{Error, Result};
use crate::export::ExportRequest;
use crate::resources::search::{SortOrders, asked, failed, page};
use crate::resources::{current_call, given};
use crate::search::{FoundRow, SearchPage};
use crate::search_wire;

/// One table, for the call that this task serves. What isn't here are the calls of [`TableHandle`]; their errors are
/// [`refused`].
#[derive(Clone, Debug)]
pub struct Rows {
    table: TableHandle,
}

impl Deref for Rows {
    type Target = TableHandle;

    fn deref(&self) -> &TableHandle {
        &self.table
    }
}

impl Rows {
    /// Opens a table by name for the current call. A caller who meets own rows alone is refused if the table has no owners of its role.
    ///
    /// # Errors
    /// [`EngineError::TableNotFound`], [`EngineError::TableClosed`], [`EngineError::NoOwnRows`].
    pub fn open(engine: &Engine, table: &str) -> Result<Self> {
        // First: nor does a table that it doesn't meet tell that it is closed.
        let call = call_on(engine, table)?;
        let table = engine.table(table)?.for_call(call);
        table.check_call()?;
        Ok(Self { table })
    }

    /// The same table for what is read after the call was answered, for as long as its client goes on.
    #[must_use]
    pub fn without_deadline(&self) -> Self {
        let call = Call {
            deadline: None,
            ..current_call()
        };
        Self {
            table: self.table.for_call(call),
        }
    }

    /// Finds rows. `path` is where the search stands in the request. `None` finds everything. See [`TableHandle::search`].
    ///
    /// # Errors
    /// As there; [`Error::Invalid`] with every violation, [`Error::PageTokenInvalid`].
    pub async fn search(&self, search: Option<pb::Search>, path: &str) -> Result<SearchPage<FoundRow>> {
        let search = search.unwrap_or_default();
        let table = self
            .table
            .for_search(given(&search.index), search_wire::page_tokens(&search))
            .map_err(|error| failed(error, path))?;
        let (search, orders) = asked(search, path, &*table.schema()?)?;
        let found = table.search(search).await;
        let found = found.map_err(|error| failed(error, path))?;
        page(found, &TableHandle::name_of, |hit| found_row(hit, &orders))
    }

    /// See [`TableHandle::export`].
    ///
    /// # Errors
    /// As there; [`Error::Invalid`].
    pub async fn export(
        &self,
        request: ExportRequest,
    ) -> Result<impl Stream<Item = Result<ExportBlock<Row>, EngineError>> + Send + use<>> {
        Ok(self.table.export(request.start()?).await?)
    }
}

/// The current call, which is about a table: one that its caller doesn't meet isn't there.
///
/// # Errors
/// [`EngineError::TableNotFound`]; as [`Engine::may_access`].
pub(crate) fn call_on(engine: &Engine, table: &str) -> Result<Call, EngineError> {
    let call = current_call();
    match engine.may_access(&call.principal, table)? {
        true => Ok(call),
        false => Err(EngineError::TableNotFound {
            table: table.to_owned(),
        }),
    }
}

/// Refuses a call about all of a table, which its caller doesn't meet, or not all of: one that it doesn't meet isn't there.
///
/// # Errors
/// [`EngineError::TableNotFound`], [`EngineError::PartitionNotAllowed`]; as [`Engine::may_access`].
pub fn check_whole(engine: &Engine, table: &str) -> Result<()> {
    let call = call_on(engine, table)?;
    match engine.may_access_all(&call.principal, table)? {
        true => Ok(()),
        false => Err(Error::Engine(EngineError::PartitionNotAllowed {
            table: table.to_owned(),
        })),
    }
}

/// Refuses to create a table that the caller of the current call wouldn't meet all of, whether there is one or not.
///
/// # Errors
/// [`EngineError::TableNotAllowed`]; as [`Engine::may_access`].
pub fn check_creatable(engine: &Engine, table: &str) -> Result<()> {
    match engine.may_access_all(&current_call().principal, table)? {
        true => Ok(()),
        false => Err(Error::Engine(EngineError::TableNotAllowed {
            table: table.to_owned(),
        })),
    }
}

/// A page of the tables that the current call meets. See [`Engine::tables_page`].
///
/// # Errors
/// As there.
pub fn tables_page(engine: &Engine, page_size: usize, page_token: &str) -> Result<TablesPage> {
    Ok(engine.tables_page(&current_call().principal, page_size, page_token)?)
}

/// Drops a table, also one that couldn't be opened, for the current call. See [`Engine::drop_table`].
///
/// # Errors
/// As there.
pub async fn drop_table(engine: &Engine, table: &str) -> Result<()> {
    check_whole(engine, table)?;
    Ok(engine.drop_table(table).await?)
}

/// An error of a call on rows: what the store refuses of them is the caller's, who made them.
#[must_use]
pub fn refused(error: EngineError) -> Error {
    match error {
        EngineError::Storage(StoreError::Invalid { subject, problem }) => Error::Refused { subject, problem },
        error => error.into(),
    }
}

fn found_row(hit: RowHit, orders: &SortOrders) -> souk_engine::Result<FoundRow> {
    let is_by_key = |value: &SortValue| matches!(value, SortValue::Key(_));
    let name = match hit.sort_values.iter().any(is_by_key) {
        true => TableHandle::name_of(&hit.key)?,
        false => String::new(),
    };
    let key = match &hit.row {
        Some(row) => row.key.clone(),
        None => TableHandle::key_of(&hit.key)?,
    };
    Ok(FoundRow {
        row: hit.row,
        key,
        score: hit.score,
        sort_values: search_wire::sort_values(&hit.sort_values, &orders.hits, &name),
        highlights: search_wire::fragments(hit.highlights),
        inner_hits: search_wire::inner_hits(&hit.inner_hits, &orders.inner),
    })
}

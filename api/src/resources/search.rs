//! Searches.

use souk_chassis::status::FieldPath;
use souk_engine::{Collection, EngineError, Resource, Search, SearchHit, SearchResults};
use souk_index::{Schema, Sort};
use souk_proto::search::v1 as pb;

use super::{Resources, given, searched};
use crate::error::{Error, Result, view_behind};
use crate::search::{FoundHit, SearchPage};
use crate::search_wire::{self, InnerSorts, WireSearch};

impl<R: Resource> Resources<R> {
    /// Finds resources, by the index that the search names, or one by weight. `path` is where the search stands in the request, usually
    /// `search`. `None` finds everything. See [`Collection::search`].
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] with every violation, [`crate::Error::PageTokenInvalid`], [`EngineError::NotFound`] of an index,
    /// [`EngineError::IndexBuilding`], [`EngineError::TooBusy`], [`EngineError::DeadlineExceeded`],
    /// [`EngineError::ViewExpired`], [`EngineError::TooManyViews`], [`EngineError::SequenceAhead`].
    pub async fn search(
        &self,
        search: Option<pb::Search>,
        path: &str,
    ) -> Result<SearchPage<FoundHit<R::Record>>> {
        let search = search.unwrap_or_default();
        let collection = self
            .of_call()
            .for_search(given(&search.index), search_wire::page_tokens(&search))
            .map_err(|error| failed(error, path))?;
        let (search, orders) = asked(search, path, &*collection.schema()?)?;
        let found = collection.search(search).await;
        let found = found.map_err(|error| failed(error, path))?;
        page(found, &Collection::<R>::id_of, |hit| Ok(to_wire(hit, &orders)))
    }
}

/// The sort orders whose values are told with hits.
pub(crate) struct SortOrders {
    /// That of the hits.
    pub(crate) hits: Vec<Sort>,
    /// Those of the nested objects in them.
    pub(crate) inner: InnerSorts,
}

/// Reads a search that stands at `path` of a request.
///
/// # Errors
/// [`Error::Invalid`], [`Error::InvalidQuery`].
pub(crate) fn asked(search: pb::Search, path: &str, schema: &Schema) -> Result<(Search, SortOrders)> {
    let WireSearch {
        request,
        min_sequence,
        hits,
        highlight,
        keep_view,
        inner_sorts,
    } = search_wire::read(search, path, schema)?;
    let orders = SortOrders {
        hits: request.sort.clone(),
        inner: inner_sorts,
    };
    let search = Search {
        request,
        min_sequence,
        rows: hits == pb::HitsMode::Full,
        highlight,
        keep_view,
    };
    Ok((search, orders))
}

/// Why a search that stands at `path` of a request failed.
pub(crate) fn failed(error: EngineError, path: &str) -> Error {
    match error {
        EngineError::ViewBehind { wanted, reached } => {
            view_behind(FieldPath::root(path).field("min_sequence"), wanted, reached)
        }
        error => searched(error, |error| search_wire::index_error(error, path)),
    }
}

/// A page of hits on the wire. `name_of` tells what is behind a document's key.
///
/// # Errors
/// Those of `name_of` and `to_wire`.
pub(crate) fn page<H, W>(
    found: SearchResults<H>,
    name_of: &dyn Fn(&[u8]) -> souk_engine::Result<String>,
    mut to_wire: impl FnMut(H) -> souk_engine::Result<W>,
) -> Result<SearchPage<W>> {
    // See `SearchResults::try_map`.
    let mut hits = Vec::with_capacity(found.hits.len());
    for hit in found.hits {
        hits.push(to_wire(hit)?);
    }
    Ok(SearchPage {
        hits,
        next_page_token: found.next_page_token,
        total: found.total.map(search_wire::total),
        aggregations: search_wire::aggregations(found.aggregations, name_of)?,
        sequence: found.sequence,
        profile: found.profile.as_ref().map(search_wire::profile),
    })
}

fn to_wire<T>(hit: SearchHit<T>, orders: &SortOrders) -> FoundHit<T> {
    FoundHit {
        resource: hit.resource,
        score: hit.score,
        sort_values: search_wire::sort_values(&hit.sort_values, &orders.hits, &hit.id),
        id: hit.id,
        highlights: search_wire::fragments(hit.highlights),
        inner_hits: search_wire::inner_hits(&hit.inner_hits, &orders.inner),
    }
}

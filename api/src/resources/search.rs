//! Searches.

use souk_chassis::status::FieldPath;
use souk_engine::{Collection, EngineError, Resource, Search, SearchHit};
use souk_index::Sort;
use souk_proto::search::v1 as pb;

use super::{Resources, given, searched};
use crate::error::{Result, view_behind};
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
    pub async fn search(&self, search: Option<pb::Search>, path: &str) -> Result<SearchPage<R::Record>> {
        let search = search.unwrap_or_default();
        let placed = |error| search_wire::index_error(error, path);
        let collection = self
            .of_call()
            .for_search(given(&search.index), given(&search.page_token))
            .map_err(|error| searched(error, placed))?;
        let WireSearch {
            request,
            min_sequence,
            hits,
            highlight,
            keep_view,
            inner_sorts,
        } = search_wire::read(search, path, &*collection.schema()?)?;
        let sort = request.sort.clone();
        let search = Search {
            request,
            min_sequence,
            rows: hits == pb::HitsMode::Full,
            highlight,
            keep_view,
        };
        let found = collection.search(search).await.map_err(|error| match error {
            EngineError::ViewBehind { wanted, reached } => {
                view_behind(FieldPath::root(path).field("min_sequence"), wanted, reached)
            }
            error => searched(error, placed),
        })?;
        let hits = found
            .hits
            .into_iter()
            .map(|hit| to_wire(hit, &sort, &inner_sorts));
        Ok(SearchPage {
            hits: hits.collect(),
            next_page_token: found.next_page_token,
            total: found.total.map(search_wire::total),
            aggregations: search_wire::aggregations(found.aggregations, &Collection::<R>::id_of)?,
            sequence: found.sequence,
            profile: found.profile.as_ref().map(search_wire::profile),
        })
    }
}

fn to_wire<T>(hit: SearchHit<T>, sort: &[Sort], inner_sorts: &InnerSorts) -> FoundHit<T> {
    FoundHit {
        resource: hit.resource,
        score: hit.score,
        sort_values: search_wire::sort_values(&hit.sort_values, sort, &hit.id),
        id: hit.id,
        highlights: search_wire::fragments(hit.highlights),
        inner_hits: search_wire::inner_hits(&hit.inner_hits, inner_sorts),
    }
}

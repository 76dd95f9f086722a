//! What is near a point.

use souk_chassis::status::Violations;
use souk_engine::{EngineError, Resource, Search};
use souk_index::SortValue;

use super::{Resources, given, searched};
use crate::error::Result;
use crate::search::{NearPage, NearbyRequest};
use crate::search_wire;

impl<R: Resource> Resources<R> {
    /// Finds the resources nearest to a point, nearest first, each with its distance.
    ///
    /// # Errors
    /// As [`Resources::search`].
    pub async fn nearby(
        &self,
        request: NearbyRequest<'_>,
        violations: Violations,
    ) -> Result<NearPage<R::Record>> {
        let collection = self
            .of_call()
            .for_search(None, given(request.page_token))
            .map_err(|error| searched(error, search_wire::nearby_error))?;
        let search = search_wire::nearby(request, &*collection.schema()?, violations)?;
        let search = Search {
            min_sequence: search.min_sequence,
            ..Search::new(search.request)
        };
        let page = collection
            .search(search)
            .await
            .map_err(|error| searched(error, search_wire::nearby_error))?;
        let mut hits = Vec::with_capacity(page.hits.len());
        for hit in page.hits {
            let Some(SortValue::Double(meters)) = hit.sort_values.first() else {
                let detail = "a search by distance answered without distances";
                return Err(EngineError::Defect(detail).into());
            };
            hits.extend(hit.resource.map(|resource| (resource, *meters)));
        }
        Ok(NearPage {
            hits,
            next_page_token: page.next_page_token,
            sequence: page.sequence,
        })
    }
}

//! What is near a point.

use souk_chassis::status::Violations;
use souk_engine::{EngineError, Resource};
use souk_index::SortValue;

use super::{Resources, searched};
use crate::error::Result;
use crate::search::{NearPage, NearbyRequest};
use crate::search_wire;
use crate::wire::signed;

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
        let collection = self.of_call();
        let search = search_wire::nearby(request, &collection.schema(), violations)?;
        let answer = collection
            .find(search.request, search.min_sequence)
            .await
            .map_err(|error| searched(error, search_wire::nearby_error))?;
        let found = answer.result.hits;
        let keys: Vec<&[u8]> = found.iter().map(|hit| hit.key.as_slice()).collect();
        let resources = collection.rows(&keys, answer.sequence).await?;
        let distances = found.iter().map(|hit| match hit.sort_values.first() {
            Some(SortValue::Double(meters)) => Ok(*meters),
            _ => Err(EngineError::Defect(
                "a search by distance answered without distances",
            )),
        });
        let mut hits = Vec::with_capacity(resources.len());
        for (stored, distance) in resources.into_iter().zip(distances) {
            let distance = distance?;
            hits.extend(stored.map(|stored| (stored, distance)));
        }
        Ok(NearPage {
            hits,
            next_page_token: answer.result.next_page_token.unwrap_or_default(),
            sequence: signed(answer.sequence),
        })
    }
}

//! Clusters: what a map shows of many resources.

use souk_chassis::status::Violations;
use souk_engine::{Collection, EngineError, Resource};

use super::{Resources, searched};
use crate::error::Result;
use crate::search::{ClusterPage, ClusterRequest, FoundCluster};
use crate::search_wire;
use crate::wire::{point_to_wire, signed};

impl<R: Resource> Resources<R> {
    /// Groups the resources of a viewport by H3 cell: how many, where, which is the best, and aggregations over them.
    ///
    /// # Errors
    /// As [`Resources::search`].
    pub async fn clusters(
        &self,
        request: ClusterRequest<'_>,
        violations: Violations,
    ) -> Result<ClusterPage<R::Record>> {
        let collection = self.of_call().for_search(None, None)?;
        let wire = search_wire::clusters(request, &*collection.schema()?, violations)?;
        let place = |error| search_wire::cluster_error(error, wire.sized_by);
        let answer = collection
            .find(wire.request, wire.min_sequence)
            .await
            .map_err(|error| searched(error, place))?;
        let total = answer.result.total.map_or(0, |total| total.value);
        let found = search_wire::found_clusters(answer.result.aggregations)?;
        let keys: Vec<&[u8]> = found.iter().map(|cluster| cluster.best.as_slice()).collect();
        let best = collection.rows(&keys, answer.sequence).await;
        let best = best.map_err(|error| match error {
            EngineError::RowsTooLarge { .. } => EngineError::RowsTooLarge {
                field: Some("max_clusters"),
            },
            other => other,
        })?;
        let mut clusters = Vec::with_capacity(found.len());
        for (cluster, best) in found.into_iter().zip(best) {
            clusters.push(FoundCluster {
                cell: cluster.cell,
                center: cluster.center.map(point_to_wire),
                count: signed(cluster.count),
                best,
                aggregations: search_wire::aggregations(cluster.aggregations, &Collection::<R>::id_of)?,
            });
        }
        Ok(ClusterPage {
            clusters,
            h3_resolution: i32::from(wire.resolution),
            total: signed(total),
            sequence: signed(answer.sequence),
        })
    }
}

//! Clusters: what a map shows of many resources.

use souk_storage::PrimaryKey;

use super::Collection;
use super::find::{id_of, primary_key};
use crate::error::Result;
use crate::resource::Resource;
use crate::search::{ClusterPage, ClusterRequest, FoundCluster};
use crate::search_wire;
use crate::stored::signed;
use crate::wire::point_to_wire;

impl<R: Resource> Collection<R> {
    /// Groups the resources of a viewport by H3 cell: how many, where, which is the best, and aggregations over them.
    ///
    /// # Errors
    /// As [`Collection::search`].
    pub async fn clusters(&self, request: ClusterRequest<'_>) -> Result<ClusterPage<R>> {
        let wire = search_wire::clusters(request, &self.open.served().schema)?;
        let place = |error| search_wire::cluster_error(error, wire.sized_by);
        let answer = self.find(wire.request, wire.min_sequence, None, place).await?;
        let total = answer.result.total.map_or(0, |total| total.value);
        let found = search_wire::found_clusters(answer.result.aggregations)?;
        let keys = found.iter().map(|cluster| primary_key(&cluster.best));
        let keys: Vec<PrimaryKey> = keys.collect::<Result<_>>()?;
        let best = self.hydrate(&keys, answer.sequence).await?;
        let mut clusters = Vec::with_capacity(found.len());
        for (cluster, best) in found.into_iter().zip(best) {
            clusters.push(FoundCluster {
                cell: cluster.cell,
                center: cluster.center.map(point_to_wire),
                count: signed(cluster.count),
                best,
                aggregations: search_wire::aggregations(cluster.aggregations, &id_of::<R>)?,
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

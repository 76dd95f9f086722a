//! Shops on the map: the nearest ones, suggestions of their names, and their clusters.

use souk_api::wire::received;
use souk_api::{
    ClusterRequest, ClusterSize, Domain, FoundCluster, NearbyRequest, Resources, SuggestFields, SuggestOrder,
    SuggestRequest, Suggestion, message,
};
use souk_proto::shop::v1 as pb;
use souk_proto::shop::v1::cluster_shops_request::Size;
use tonic::{Request, Response, Status};

use crate::{ShopMethods, Shops};

/// The geo field of nearby searches, suggestions and clusters.
const POSITION: &str = "position";
/// The field that ranks shops of the same suggested name or cluster: the highest is the best.
const RATING: &str = "rating";

/// How shops' names are suggested.
const SUGGEST: SuggestFields<'static> = SuggestFields {
    folded: "name_folded",
    written: "name.keyword",
    words: "name",
    order: SuggestOrder::HighestOrNearest {
        highest: RATING,
        position: POSITION,
    },
};

/// The hand-written RPCs of shops; adds no rules to the contract's.
#[derive(Clone, Copy, Debug)]
pub struct ShopDomain;

impl Domain<Shops> for ShopDomain {}

#[tonic::async_trait]
impl ShopMethods for ShopDomain {
    async fn nearby_shops(
        &self,
        shops: &Resources<Shops>,
        request: Request<pb::NearbyShopsRequest>,
    ) -> Result<Response<pb::NearbyShopsResponse>, Status> {
        let (request, violations) = received(request);
        let wanted = NearbyRequest {
            field: POSITION,
            center: request.center,
            max_distance_meters: request.max_distance_meters,
            query: request.query,
            page_size: request.page_size,
            page_token: &request.page_token,
            min_sequence: request.min_sequence,
        };
        let page = shops.nearby(wanted, violations).await?;
        let hit = |(shop, distance_meters)| pb::NearbyShop {
            resource: Some(message::to_wire::<Shops>(shop)),
            distance_meters,
        };
        Ok(Response::new(pb::NearbyShopsResponse {
            hits: page.hits.into_iter().map(hit).collect(),
            next_page_token: page.next_page_token,
            sequence: page.sequence,
        }))
    }

    async fn suggest_shops(
        &self,
        shops: &Resources<Shops>,
        request: Request<pb::SuggestShopsRequest>,
    ) -> Result<Response<pb::SuggestShopsResponse>, Status> {
        let (request, violations) = received(request);
        let wanted = SuggestRequest {
            prefix: &request.prefix,
            size: request.size,
            query: request.query,
            center: request.center,
            min_sequence: request.min_sequence,
        };
        let page = shops.suggest(wanted, &SUGGEST, violations).await?;
        let suggestion = |suggestion: Suggestion| pb::ShopSuggestion {
            name: suggestion.name,
            shop_id: suggestion.id,
            distance_meters: suggestion.distance_meters,
        };
        Ok(Response::new(pb::SuggestShopsResponse {
            suggestions: page.suggestions.into_iter().map(suggestion).collect(),
            corrected: page.corrected,
            sequence: page.sequence,
        }))
    }

    async fn cluster_shops(
        &self,
        shops: &Resources<Shops>,
        request: Request<pb::ClusterShopsRequest>,
    ) -> Result<Response<pb::ClusterShopsResponse>, Status> {
        let (request, violations) = received(request);
        let size = request.size.map(|size| match size {
            Size::Zoom(zoom) => ClusterSize::Zoom(zoom),
            Size::H3Resolution(resolution) => ClusterSize::Resolution(resolution),
        });
        let wanted = ClusterRequest {
            field: POSITION,
            viewport: request.viewport,
            size,
            query: request.query,
            aggregations: request.aggregations,
            best_by: request.best_by,
            best_field: RATING,
            max_clusters: request.max_clusters,
            min_sequence: request.min_sequence,
        };
        let page = shops.clusters(wanted, violations).await?;
        let cluster = |cluster: FoundCluster<pb::Shop>| pb::ShopCluster {
            cell: cluster.cell,
            center: cluster.center,
            count: cluster.count,
            best_shop: cluster.best.map(message::to_wire::<Shops>),
            aggregations: cluster.aggregations,
        };
        Ok(Response::new(pb::ClusterShopsResponse {
            clusters: page.clusters.into_iter().map(cluster).collect(),
            h3_resolution: page.h3_resolution,
            total: page.total,
            sequence: page.sequence,
        }))
    }
}

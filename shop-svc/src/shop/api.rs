//! The RPCs of shops.

use souk_api::wire::{
    Answers, answers, batch, check_id, check_ids, checked, endless_answers, etag, request_id, required,
    settled,
};
use souk_api::{ClusterRequest, ClusterSize, ExportRequest, NearbyRequest, Resources, SuggestRequest};
use souk_chassis::status::Violations;
use souk_proto::shop::v1 as pb;
use souk_proto::shop::v1::cluster_shops_request::Size;
use souk_proto::shop::v1::shop_service_server::ShopService;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use super::{Shop, table, wire};

/// Shops over gRPC.
#[derive(Debug)]
pub struct ShopApi {
    shops: Resources<Shop>,
    draining: CancellationToken,
}

impl ShopApi {
    /// The RPCs on a table; watches end with `draining`.
    pub fn new(shops: Resources<Shop>, draining: CancellationToken) -> Self {
        Self { shops, draining }
    }
}

#[tonic::async_trait]
impl ShopService for ShopApi {
    type ExportShopsStream = Answers<pb::ExportShopsResponse>;
    type WatchShopsStream = Answers<pb::WatchShopsResponse>;

    async fn create_shop(
        &self,
        request: Request<pb::CreateShopRequest>,
    ) -> Result<Response<pb::CreateShopResponse>, Status> {
        let request = request.into_inner();
        let mut violations = Violations::new();
        let id = request_id(&request.request_id, &request, "request_id", &mut violations);
        let shop = required(request.shop.as_ref(), "shop", &mut violations, wire::from_wire);
        let shop = checked(shop, violations)?;
        let written = self.shops.create(shop, id, request.validate_only).await?;
        Ok(Response::new(pb::CreateShopResponse {
            shop: Some(wire::stored(written.value)),
            sequence: written.sequence,
        }))
    }

    async fn batch_create_shops(
        &self,
        request: Request<pb::BatchCreateShopsRequest>,
    ) -> Result<Response<pb::BatchCreateShopsResponse>, Status> {
        let request = request.into_inner();
        let mut violations = Violations::new();
        let id = request_id(&request.request_id, &request, "request_id", &mut violations);
        let shops = batch(&request.shops, "shops", &mut violations, wire::from_wire);
        let shops = checked(shops, violations)?;
        let written = self.shops.create_batch(shops, id, request.omit_resources).await?;
        Ok(Response::new(pb::BatchCreateShopsResponse {
            shops: wire::all(written.value),
            sequence: written.sequence,
        }))
    }

    async fn get_shop(
        &self,
        request: Request<pb::GetShopRequest>,
    ) -> Result<Response<pb::GetShopResponse>, Status> {
        let request = request.into_inner();
        let mut violations = Violations::new();
        check_id(&request.shop_id, "shop_id", &mut violations);
        settled(violations)?;
        let read = self.shops.get(&request.shop_id, request.min_sequence).await?;
        Ok(Response::new(pb::GetShopResponse {
            shop: Some(wire::stored(read.value)),
            sequence: read.sequence,
        }))
    }

    async fn batch_get_shops(
        &self,
        request: Request<pb::BatchGetShopsRequest>,
    ) -> Result<Response<pb::BatchGetShopsResponse>, Status> {
        let request = request.into_inner();
        let mut violations = Violations::new();
        check_ids(&request.shop_ids, "shop_ids", &mut violations);
        settled(violations)?;
        let read = self
            .shops
            .get_batch(&request.shop_ids, request.min_sequence)
            .await?;
        Ok(Response::new(pb::BatchGetShopsResponse {
            shops: wire::all(read.value.found),
            missing_ids: read.value.missing,
            sequence: read.sequence,
        }))
    }

    async fn update_shop(
        &self,
        request: Request<pb::UpdateShopRequest>,
    ) -> Result<Response<pb::UpdateShopResponse>, Status> {
        let change = wire::change(request.into_inner())?;
        let written = self
            .shops
            .update(change.id(), change.etag(), |shop| wire::apply(&change, shop))
            .await?;
        Ok(Response::new(pb::UpdateShopResponse {
            shop: Some(wire::stored(written.value)),
            sequence: written.sequence,
        }))
    }

    async fn delete_shop(
        &self,
        request: Request<pb::DeleteShopRequest>,
    ) -> Result<Response<pb::DeleteShopResponse>, Status> {
        let request = request.into_inner();
        let mut violations = Violations::new();
        check_id(&request.shop_id, "shop_id", &mut violations);
        settled(violations)?;
        let etag = etag(&request.etag, "");
        let written = self.shops.delete(&request.shop_id, etag).await?;
        Ok(Response::new(pb::DeleteShopResponse {
            sequence: written.sequence,
        }))
    }

    async fn search_shops(
        &self,
        request: Request<pb::SearchShopsRequest>,
    ) -> Result<Response<pb::SearchShopsResponse>, Status> {
        let found = self.shops.search(request.into_inner().search, "search").await?;
        Ok(Response::new(wire::page(found)))
    }

    async fn nearby_shops(
        &self,
        request: Request<pb::NearbyShopsRequest>,
    ) -> Result<Response<pb::NearbyShopsResponse>, Status> {
        let request = request.into_inner();
        let near = NearbyRequest {
            field: table::POSITION,
            center: request.center,
            max_distance_meters: request.max_distance_meters,
            query: request.query,
            page_size: request.page_size,
            page_token: &request.page_token,
            min_sequence: request.min_sequence,
        };
        let page = self.shops.nearby(near).await?;
        Ok(Response::new(wire::near(page)))
    }

    async fn suggest_shops(
        &self,
        request: Request<pb::SuggestShopsRequest>,
    ) -> Result<Response<pb::SuggestShopsResponse>, Status> {
        let request = request.into_inner();
        let wanted = SuggestRequest {
            prefix: &request.prefix,
            size: request.size,
            query: request.query,
            center: request.center,
            min_sequence: request.min_sequence,
        };
        let page = self.shops.suggest(wanted, &table::SUGGEST).await?;
        Ok(Response::new(wire::suggested(page)))
    }

    async fn cluster_shops(
        &self,
        request: Request<pb::ClusterShopsRequest>,
    ) -> Result<Response<pb::ClusterShopsResponse>, Status> {
        let request = request.into_inner();
        let size = request.size.map(|size| match size {
            Size::Zoom(zoom) => ClusterSize::Zoom(zoom),
            Size::H3Resolution(resolution) => ClusterSize::Resolution(resolution),
        });
        let wanted = ClusterRequest {
            field: table::POSITION,
            viewport: request.viewport,
            size,
            query: request.query,
            aggregations: request.aggregations,
            best_by: request.best_by,
            best_field: table::RATING,
            max_clusters: request.max_clusters,
            min_sequence: request.min_sequence,
        };
        let page = self.shops.clusters(wanted).await?;
        Ok(Response::new(wire::clustered(page)))
    }

    async fn export_shops(
        &self,
        request: Request<pb::ExportShopsRequest>,
    ) -> Result<Response<Self::ExportShopsStream>, Status> {
        let request = request.into_inner();
        let blocks = self
            .shops
            .export(ExportRequest {
                slice_count: request.slice_count,
                slice: request.slice,
                snapshot_token: request.snapshot_token,
                resume_token: request.resume_token,
                min_sequence: request.min_sequence,
            })
            .await?;
        Ok(Response::new(answers(blocks, wire::block)))
    }

    async fn watch_shops(
        &self,
        request: Request<pb::WatchShopsRequest>,
    ) -> Result<Response<Self::WatchShopsStream>, Status> {
        let events = self.shops.watch(request.into_inner().after_sequence).await?;
        let draining = self.draining.clone();
        Ok(Response::new(endless_answers(events, draining, wire::event)))
    }
}

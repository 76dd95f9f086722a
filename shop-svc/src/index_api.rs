//! The RPCs about the service's indexes.

use souk_api::indexes;
use souk_api::wire::received;
use souk_engine::Engine;
use souk_proto::shop::v1 as pb;
use souk_proto::shop::v1::shop_index_service_server::ShopIndexService;
use tonic::{Request, Response, Status};

/// `souk.shop.v1.ShopIndexService`.
#[derive(Clone, Debug)]
pub(crate) struct IndexApi(pub(crate) Engine);

#[tonic::async_trait]
impl ShopIndexService for IndexApi {
    async fn list_shop_indexes(
        &self,
        _: Request<pb::ListShopIndexesRequest>,
    ) -> Result<Response<pb::ListShopIndexesResponse>, Status> {
        let indexes = indexes::list(&self.0).await?;
        Ok(Response::new(pb::ListShopIndexesResponse { indexes }))
    }

    async fn get_shop_index(
        &self,
        request: Request<pb::GetShopIndexRequest>,
    ) -> Result<Response<pb::GetShopIndexResponse>, Status> {
        let index = indexes::get(&self.0, &request.into_inner().index).await?;
        Ok(Response::new(pb::GetShopIndexResponse { index: Some(index) }))
    }

    async fn update_shop_index(
        &self,
        request: Request<pb::UpdateShopIndexRequest>,
    ) -> Result<Response<pb::UpdateShopIndexResponse>, Status> {
        let (request, violations) = received(request);
        let changes = &request.changes;
        let update = indexes::update(
            &self.0,
            &request.index,
            changes,
            request.validate_only,
            violations,
        );
        let (index, effect) = update.await?;
        Ok(Response::new(pb::UpdateShopIndexResponse {
            index: Some(index),
            effect: Some(effect),
        }))
    }
}

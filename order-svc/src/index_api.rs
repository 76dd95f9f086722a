//! The RPCs about the service's indexes.

use souk_api::indexes;
use souk_api::wire::received;
use souk_engine::Engine;
use souk_proto::order::v1 as pb;
use souk_proto::order::v1::order_index_service_server::OrderIndexService;
use tonic::{Request, Response, Status};

/// `souk.order.v1.OrderIndexService`.
#[derive(Clone, Debug)]
pub(crate) struct IndexApi(pub(crate) Engine);

#[tonic::async_trait]
impl OrderIndexService for IndexApi {
    async fn list_order_indexes(
        &self,
        _: Request<pb::ListOrderIndexesRequest>,
    ) -> Result<Response<pb::ListOrderIndexesResponse>, Status> {
        let indexes = indexes::list(&self.0).await?;
        Ok(Response::new(pb::ListOrderIndexesResponse { indexes }))
    }

    async fn get_order_index(
        &self,
        request: Request<pb::GetOrderIndexRequest>,
    ) -> Result<Response<pb::GetOrderIndexResponse>, Status> {
        let index = indexes::get(&self.0, &request.into_inner().index).await?;
        Ok(Response::new(pb::GetOrderIndexResponse { index: Some(index) }))
    }

    async fn update_order_index(
        &self,
        request: Request<pb::UpdateOrderIndexRequest>,
    ) -> Result<Response<pb::UpdateOrderIndexResponse>, Status> {
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
        Ok(Response::new(pb::UpdateOrderIndexResponse {
            index: Some(index),
            effect: Some(effect),
        }))
    }
}

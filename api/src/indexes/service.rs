//! `souk.index.v1.IndexService`, which every process serves for the tables of its engine.

use souk_engine::Engine;
use souk_proto::index::v1 as pb;
use souk_proto::index::v1::index_service_server::IndexService;
use tonic::{Request, Response, Status};

use super::{create, delete, get, list, rebuild, update};
use crate::wire::received;

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(crate) struct IndexApi(pub(crate) Engine);

#[tonic::async_trait]
impl IndexService for IndexApi {
    async fn list_indexes(
        &self,
        _: Request<pb::ListIndexesRequest>,
    ) -> Result<Response<pb::ListIndexesResponse>, Status> {
        let indexes = list(&self.0).await?;
        Ok(Response::new(pb::ListIndexesResponse { indexes }))
    }

    async fn get_index(
        &self,
        request: Request<pb::GetIndexRequest>,
    ) -> Result<Response<pb::GetIndexResponse>, Status> {
        let index = get(&self.0, &request.into_inner().index).await?;
        Ok(Response::new(pb::GetIndexResponse { index: Some(index) }))
    }

    async fn create_index(
        &self,
        request: Request<pb::CreateIndexRequest>,
    ) -> Result<Response<pb::CreateIndexResponse>, Status> {
        let (request, violations) = received(request);
        let (index, effect) = create(&self.0, &request, violations).await?;
        Ok(Response::new(pb::CreateIndexResponse {
            index: Some(index),
            effect: Some(effect),
        }))
    }

    async fn delete_index(
        &self,
        request: Request<pb::DeleteIndexRequest>,
    ) -> Result<Response<pb::DeleteIndexResponse>, Status> {
        delete(&self.0, &request.into_inner().index).await?;
        Ok(Response::new(pb::DeleteIndexResponse {}))
    }

    async fn update_index(
        &self,
        request: Request<pb::UpdateIndexRequest>,
    ) -> Result<Response<pb::UpdateIndexResponse>, Status> {
        let (request, violations) = received(request);
        let (changes, weights, only_asked) = (&request.changes, &request.weights, request.validate_only);
        let (index, effect) =
            update(&self.0, &request.index, changes, weights, only_asked, violations).await?;
        Ok(Response::new(pb::UpdateIndexResponse {
            index: Some(index),
            effect: Some(effect),
        }))
    }

    async fn rebuild_index(
        &self,
        request: Request<pb::RebuildIndexRequest>,
    ) -> Result<Response<pb::RebuildIndexResponse>, Status> {
        let request = request.into_inner();
        let (index, effect) = rebuild(&self.0, &request.index, request.validate_only).await?;
        Ok(Response::new(pb::RebuildIndexResponse {
            index: Some(index),
            effect: Some(effect),
        }))
    }
}

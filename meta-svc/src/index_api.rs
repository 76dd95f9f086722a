//! The RPCs about the service's indexes.

use souk_api::indexes;
use souk_api::wire::received;
use souk_engine::Engine;
use souk_proto::media::v1 as pb;
use souk_proto::media::v1::media_index_service_server::MediaIndexService;
use tonic::{Request, Response, Status};

/// `souk.media.v1.MediaIndexService`.
#[derive(Clone, Debug)]
pub(crate) struct IndexApi(pub(crate) Engine);

#[tonic::async_trait]
impl MediaIndexService for IndexApi {
    async fn list_media_indexes(
        &self,
        _: Request<pb::ListMediaIndexesRequest>,
    ) -> Result<Response<pb::ListMediaIndexesResponse>, Status> {
        let indexes = indexes::list(&self.0).await?;
        Ok(Response::new(pb::ListMediaIndexesResponse { indexes }))
    }

    async fn get_media_index(
        &self,
        request: Request<pb::GetMediaIndexRequest>,
    ) -> Result<Response<pb::GetMediaIndexResponse>, Status> {
        let index = indexes::get(&self.0, &request.into_inner().index).await?;
        Ok(Response::new(pb::GetMediaIndexResponse { index: Some(index) }))
    }

    async fn update_media_index(
        &self,
        request: Request<pb::UpdateMediaIndexRequest>,
    ) -> Result<Response<pb::UpdateMediaIndexResponse>, Status> {
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
        Ok(Response::new(pb::UpdateMediaIndexResponse {
            index: Some(index),
            effect: Some(effect),
        }))
    }
}

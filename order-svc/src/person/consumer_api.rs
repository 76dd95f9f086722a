//! The RPCs of consumers.

use souk_api::wire::{batch, checked, etag, one, received, request_id, valid};
use souk_api::{FoundHit, Resources, SearchPage};
use souk_proto::order::v1 as pb;
use souk_proto::order::v1::consumer_service_server::ConsumerService;
use tonic::{Request, Response, Status};

use super::{Consumer, Person, wire};

/// Consumers over gRPC.
#[derive(Debug)]
pub struct ConsumerApi {
    consumers: Resources<Person<Consumer>>,
}

impl ConsumerApi {
    /// The RPCs on a table.
    pub fn new(consumers: Resources<Person<Consumer>>) -> Self {
        Self { consumers }
    }
}

#[tonic::async_trait]
impl ConsumerService for ConsumerApi {
    async fn create_consumer(
        &self,
        request: Request<pb::CreateConsumerRequest>,
    ) -> Result<Response<pb::CreateConsumerResponse>, Status> {
        let (request, mut violations) = received(request);
        let id = request_id(&request.request_id, &request);
        let consumer = one(
            request.consumer.as_ref(),
            "consumer",
            &mut violations,
            wire::from_wire,
        );
        let consumer = checked(consumer, violations)?;
        let written = self.consumers.create(consumer, id, request.validate_only).await?;
        Ok(Response::new(pb::CreateConsumerResponse {
            consumer: Some(wire::stored(written.value)),
            sequence: written.sequence,
        }))
    }

    async fn batch_create_consumers(
        &self,
        request: Request<pb::BatchCreateConsumersRequest>,
    ) -> Result<Response<pb::BatchCreateConsumersResponse>, Status> {
        let (request, mut violations) = received(request);
        let id = request_id(&request.request_id, &request);
        let consumers = batch(&request.consumers, "consumers", &mut violations, wire::from_wire);
        let consumers = checked(consumers, violations)?;
        let written = self
            .consumers
            .create_batch(consumers, id, request.omit_resources)
            .await?;
        Ok(Response::new(pb::BatchCreateConsumersResponse {
            consumers: wire::all(written.value),
            sequence: written.sequence,
        }))
    }

    async fn get_consumer(
        &self,
        request: Request<pb::GetConsumerRequest>,
    ) -> Result<Response<pb::GetConsumerResponse>, Status> {
        let request = valid(request)?;
        let read = self.consumers.get(&request.id, request.min_sequence).await?;
        Ok(Response::new(pb::GetConsumerResponse {
            consumer: Some(wire::stored(read.value)),
            sequence: read.sequence,
        }))
    }

    async fn batch_get_consumers(
        &self,
        request: Request<pb::BatchGetConsumersRequest>,
    ) -> Result<Response<pb::BatchGetConsumersResponse>, Status> {
        let request = valid(request)?;
        let read = self
            .consumers
            .get_batch(&request.ids, request.min_sequence)
            .await?;
        Ok(Response::new(pb::BatchGetConsumersResponse {
            consumers: wire::all(read.value.found),
            missing_ids: read.value.missing,
            sequence: read.sequence,
        }))
    }

    async fn update_consumer(
        &self,
        request: Request<pb::UpdateConsumerRequest>,
    ) -> Result<Response<pb::UpdateConsumerResponse>, Status> {
        let (request, violations) = received(request);
        let mask = request.update_mask.as_ref();
        let change = wire::change::<Consumer>(request.consumer, mask, &request.etag, violations)?;
        let written = self
            .consumers
            .update(change.id(), change.etag(), |consumer| {
                wire::apply(&change, consumer)
            })
            .await?;
        Ok(Response::new(pb::UpdateConsumerResponse {
            consumer: Some(wire::stored(written.value)),
            sequence: written.sequence,
        }))
    }

    async fn delete_consumer(
        &self,
        request: Request<pb::DeleteConsumerRequest>,
    ) -> Result<Response<pb::DeleteConsumerResponse>, Status> {
        let request = valid(request)?;
        let etag = etag(&request.etag, "");
        let written = self.consumers.delete(&request.id, etag).await?;
        Ok(Response::new(pb::DeleteConsumerResponse {
            sequence: written.sequence,
        }))
    }

    async fn search_consumers(
        &self,
        request: Request<pb::SearchConsumersRequest>,
    ) -> Result<Response<pb::SearchConsumersResponse>, Status> {
        let found = self
            .consumers
            .search(request.into_inner().search, "search")
            .await?;
        Ok(Response::new(page(found)))
    }
}

fn page(page: SearchPage<Person<Consumer>>) -> pb::SearchConsumersResponse {
    pb::SearchConsumersResponse {
        hits: page.hits.into_iter().map(hit).collect(),
        next_page_token: page.next_page_token,
        total: page.total,
        aggregations: page.aggregations,
        sequence: page.sequence,
        profile: page.profile,
    }
}

fn hit(hit: FoundHit<Person<Consumer>>) -> pb::ConsumerHit {
    pb::ConsumerHit {
        resource: Some(wire::found(hit.resource, hit.id)),
        score: hit.score,
        sort_values: hit.sort_values,
        highlights: hit.highlights,
        inner_hits: hit.inner_hits,
    }
}

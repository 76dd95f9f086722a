//! The RPCs of salespersons.

use souk_api::wire::{batch, checked, etag, one, received, request_id, valid};
use souk_api::{FoundHit, Resources, SearchPage};
use souk_proto::order::v1 as pb;
use souk_proto::order::v1::salesperson_service_server::SalespersonService;
use tonic::{Request, Response, Status};

use super::{Person, Salesperson, wire};

/// Salespersons over gRPC.
#[derive(Debug)]
pub struct SalespersonApi {
    salespersons: Resources<Person<Salesperson>>,
}

impl SalespersonApi {
    /// The RPCs on a table.
    pub fn new(salespersons: Resources<Person<Salesperson>>) -> Self {
        Self { salespersons }
    }
}

#[tonic::async_trait]
impl SalespersonService for SalespersonApi {
    async fn create_salesperson(
        &self,
        request: Request<pb::CreateSalespersonRequest>,
    ) -> Result<Response<pb::CreateSalespersonResponse>, Status> {
        let (request, mut violations) = received(request);
        let id = request_id(&request.request_id, &request);
        let salesperson = one(
            request.salesperson.as_ref(),
            "salesperson",
            &mut violations,
            wire::from_wire,
        );
        let salesperson = checked(salesperson, violations)?;
        let written = self
            .salespersons
            .create(salesperson, id, request.validate_only)
            .await?;
        Ok(Response::new(pb::CreateSalespersonResponse {
            salesperson: Some(wire::stored(written.value)),
            sequence: written.sequence,
        }))
    }

    async fn batch_create_salespersons(
        &self,
        request: Request<pb::BatchCreateSalespersonsRequest>,
    ) -> Result<Response<pb::BatchCreateSalespersonsResponse>, Status> {
        let (request, mut violations) = received(request);
        let id = request_id(&request.request_id, &request);
        let salespersons = batch(
            &request.salespersons,
            "salespersons",
            &mut violations,
            wire::from_wire,
        );
        let salespersons = checked(salespersons, violations)?;
        let written = self
            .salespersons
            .create_batch(salespersons, id, request.omit_resources)
            .await?;
        Ok(Response::new(pb::BatchCreateSalespersonsResponse {
            salespersons: wire::all(written.value),
            sequence: written.sequence,
        }))
    }

    async fn get_salesperson(
        &self,
        request: Request<pb::GetSalespersonRequest>,
    ) -> Result<Response<pb::GetSalespersonResponse>, Status> {
        let request = valid(request)?;
        let read = self.salespersons.get(&request.id, request.min_sequence).await?;
        Ok(Response::new(pb::GetSalespersonResponse {
            salesperson: Some(wire::stored(read.value)),
            sequence: read.sequence,
        }))
    }

    async fn batch_get_salespersons(
        &self,
        request: Request<pb::BatchGetSalespersonsRequest>,
    ) -> Result<Response<pb::BatchGetSalespersonsResponse>, Status> {
        let request = valid(request)?;
        let read = self
            .salespersons
            .get_batch(&request.ids, request.min_sequence)
            .await?;
        Ok(Response::new(pb::BatchGetSalespersonsResponse {
            salespersons: wire::all(read.value.found),
            missing_ids: read.value.missing,
            sequence: read.sequence,
        }))
    }

    async fn update_salesperson(
        &self,
        request: Request<pb::UpdateSalespersonRequest>,
    ) -> Result<Response<pb::UpdateSalespersonResponse>, Status> {
        let (request, violations) = received(request);
        let mask = request.update_mask.as_ref();
        let change = wire::change::<Salesperson>(request.salesperson, mask, &request.etag, violations)?;
        let written = self
            .salespersons
            .update(change.id(), change.etag(), |salesperson| {
                wire::apply(&change, salesperson)
            })
            .await?;
        Ok(Response::new(pb::UpdateSalespersonResponse {
            salesperson: Some(wire::stored(written.value)),
            sequence: written.sequence,
        }))
    }

    async fn delete_salesperson(
        &self,
        request: Request<pb::DeleteSalespersonRequest>,
    ) -> Result<Response<pb::DeleteSalespersonResponse>, Status> {
        let request = valid(request)?;
        let etag = etag(&request.etag, "");
        let written = self.salespersons.delete(&request.id, etag).await?;
        Ok(Response::new(pb::DeleteSalespersonResponse {
            sequence: written.sequence,
        }))
    }

    async fn search_salespersons(
        &self,
        request: Request<pb::SearchSalespersonsRequest>,
    ) -> Result<Response<pb::SearchSalespersonsResponse>, Status> {
        let found = self
            .salespersons
            .search(request.into_inner().search, "search")
            .await?;
        Ok(Response::new(page(found)))
    }
}

fn page(page: SearchPage<Person<Salesperson>>) -> pb::SearchSalespersonsResponse {
    pb::SearchSalespersonsResponse {
        hits: page.hits.into_iter().map(hit).collect(),
        next_page_token: page.next_page_token,
        total: page.total,
        aggregations: page.aggregations,
        sequence: page.sequence,
        profile: page.profile,
    }
}

fn hit(hit: FoundHit<Person<Salesperson>>) -> pb::SalespersonHit {
    pb::SalespersonHit {
        resource: Some(wire::found(hit.resource, hit.id)),
        score: hit.score,
        sort_values: hit.sort_values,
        highlights: hit.highlights,
        inner_hits: hit.inner_hits,
    }
}

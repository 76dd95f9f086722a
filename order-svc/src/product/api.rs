//! The RPCs of products.

use souk_api::wire::{batch, checked, etag, one, received, request_id, valid};
use souk_api::{Resources, SuggestRequest};
use souk_proto::order::v1 as pb;
use souk_proto::order::v1::product_service_server::ProductService;
use tonic::{Request, Response, Status};

use super::{Product, table, wire};

/// Products over gRPC.
#[derive(Debug)]
pub struct ProductApi {
    products: Resources<Product>,
}

impl ProductApi {
    /// The RPCs on a table.
    pub fn new(products: Resources<Product>) -> Self {
        Self { products }
    }
}

#[tonic::async_trait]
impl ProductService for ProductApi {
    async fn create_product(
        &self,
        request: Request<pb::CreateProductRequest>,
    ) -> Result<Response<pb::CreateProductResponse>, Status> {
        let (request, mut violations) = received(request);
        let id = request_id(&request.request_id, &request);
        let product = one(
            request.product.as_ref(),
            "product",
            &mut violations,
            wire::from_wire,
        );
        let product = checked(product, violations)?;
        let written = self.products.create(product, id, request.validate_only).await?;
        Ok(Response::new(pb::CreateProductResponse {
            product: Some(wire::stored(written.value)),
            sequence: written.sequence,
        }))
    }

    async fn batch_create_products(
        &self,
        request: Request<pb::BatchCreateProductsRequest>,
    ) -> Result<Response<pb::BatchCreateProductsResponse>, Status> {
        let (request, mut violations) = received(request);
        let id = request_id(&request.request_id, &request);
        let products = batch(&request.products, "products", &mut violations, wire::from_wire);
        let products = checked(products, violations)?;
        let written = self
            .products
            .create_batch(products, id, request.omit_resources)
            .await?;
        Ok(Response::new(pb::BatchCreateProductsResponse {
            products: wire::all(written.value),
            sequence: written.sequence,
        }))
    }

    async fn get_product(
        &self,
        request: Request<pb::GetProductRequest>,
    ) -> Result<Response<pb::GetProductResponse>, Status> {
        let request = valid(request)?;
        let read = self
            .products
            .get(&request.product_id, request.min_sequence)
            .await?;
        Ok(Response::new(pb::GetProductResponse {
            product: Some(wire::stored(read.value)),
            sequence: read.sequence,
        }))
    }

    async fn batch_get_products(
        &self,
        request: Request<pb::BatchGetProductsRequest>,
    ) -> Result<Response<pb::BatchGetProductsResponse>, Status> {
        let request = valid(request)?;
        let read = self
            .products
            .get_batch(&request.product_ids, request.min_sequence)
            .await?;
        Ok(Response::new(pb::BatchGetProductsResponse {
            products: wire::all(read.value.found),
            missing_ids: read.value.missing,
            sequence: read.sequence,
        }))
    }

    async fn update_product(
        &self,
        request: Request<pb::UpdateProductRequest>,
    ) -> Result<Response<pb::UpdateProductResponse>, Status> {
        let (request, violations) = received(request);
        let change = wire::change(request, violations)?;
        let written = self
            .products
            .update(change.id(), change.etag(), |product| {
                wire::apply(&change, product)
            })
            .await?;
        Ok(Response::new(pb::UpdateProductResponse {
            product: Some(wire::stored(written.value)),
            sequence: written.sequence,
        }))
    }

    async fn delete_product(
        &self,
        request: Request<pb::DeleteProductRequest>,
    ) -> Result<Response<pb::DeleteProductResponse>, Status> {
        let request = valid(request)?;
        let etag = etag(&request.etag, "");
        let written = self.products.delete(&request.product_id, etag).await?;
        Ok(Response::new(pb::DeleteProductResponse {
            sequence: written.sequence,
        }))
    }

    async fn suggest_products(
        &self,
        request: Request<pb::SuggestProductsRequest>,
    ) -> Result<Response<pb::SuggestProductsResponse>, Status> {
        let (request, violations) = received(request);
        let wanted = SuggestRequest {
            prefix: &request.prefix,
            size: request.size,
            query: request.query,
            center: None,
            min_sequence: request.min_sequence,
        };
        let page = self.products.suggest(wanted, &table::SUGGEST, violations).await?;
        Ok(Response::new(wire::suggested(page)))
    }

    async fn search_products(
        &self,
        request: Request<pb::SearchProductsRequest>,
    ) -> Result<Response<pb::SearchProductsResponse>, Status> {
        let found = self
            .products
            .search(request.into_inner().search, "search")
            .await?;
        Ok(Response::new(wire::page(found)))
    }
}

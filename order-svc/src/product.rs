//! Products: suggestions of their names.

use souk_api::wire::received;
use souk_api::{Domain, Resources, SuggestFields, SuggestOrder, SuggestRequest, Suggestion};
use souk_proto::order::v1 as pb;
use tonic::{Request, Response, Status};

use crate::{ProductMethods, Products};

/// How products' names are suggested.
const SUGGEST: SuggestFields<'static> = SuggestFields {
    folded: "name_folded",
    written: "name.keyword",
    words: "name",
    order: SuggestOrder::Alphabetical,
};

/// The hand-written RPC of products; adds no rules to the contract's.
#[derive(Clone, Copy, Debug)]
pub struct ProductDomain;

impl Domain<Products> for ProductDomain {}

#[tonic::async_trait]
impl ProductMethods for ProductDomain {
    async fn suggest_products(
        &self,
        products: &Resources<Products>,
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
        let page = products.suggest(wanted, &SUGGEST, violations).await?;
        let suggestion = |suggestion: Suggestion| pb::ProductSuggestion {
            name: suggestion.name,
            product_id: suggestion.id,
        };
        Ok(Response::new(pb::SuggestProductsResponse {
            suggestions: page.suggestions.into_iter().map(suggestion).collect(),
            corrected: page.corrected,
            sequence: page.sequence,
        }))
    }
}

//! Products on the wire.

use souk_api::wire::{self, Change, Updatable, broken, time_to_wire};
use souk_api::{FoundHit, Result, SearchPage, SuggestPage, Suggestion};
use souk_chassis::status::{FieldPath, Violations};
use souk_engine::Stored;
use souk_proto::order::v1 as pb;

use super::Product;

/// What an update request may change.
const UPDATABLE: Updatable<'_> = Updatable {
    resource: "product",
    id: "product_id",
    fields: &["name", "brand", "type", "unit_price_cents", "attributes"],
};

/// Reads a product that keeps its rules.
pub(super) fn from_wire(
    product: &pb::Product,
    path: &FieldPath,
    violations: &mut Violations,
) -> Option<Product> {
    let attributes = wire::attributes(&product.attributes, path, violations);
    Some(Product {
        product_id: product.product_id.clone(),
        name: product.name.clone(),
        brand: product.brand.clone(),
        kind: product.r#type.clone(),
        unit_price_cents: product.unit_price_cents,
        attributes,
    })
}

/// Checks an update request.
pub(super) fn change(
    request: pb::UpdateProductRequest,
    violations: Violations,
) -> Result<Change<pb::Product>> {
    let (product, mask) = (request.product, request.update_mask.as_ref());
    Change::from_wire(&UPDATABLE, product, mask, &request.etag, violations, |product| {
        (&product.product_id, &product.etag)
    })
}

/// The product after a change.
pub(super) fn apply(change: &Change<pb::Product>, current: Product) -> Result<Product> {
    let (mask, given) = (change.mask(), change.given());
    let mut changed = to_wire(current);
    mask.put("name", &mut changed.name, &given.name);
    mask.put("brand", &mut changed.brand, &given.brand);
    mask.put("type", &mut changed.r#type, &given.r#type);
    mask.put(
        "unit_price_cents",
        &mut changed.unit_price_cents,
        &given.unit_price_cents,
    );
    mask.put("attributes", &mut changed.attributes, &given.attributes);
    let path = FieldPath::root("product");
    let mut violations = broken(&changed, &path);
    let product = from_wire(&changed, &path, &mut violations);
    wire::checked(product, violations)
}

fn to_wire(product: Product) -> pb::Product {
    pb::Product {
        product_id: product.product_id,
        name: product.name,
        brand: product.brand,
        r#type: product.kind,
        unit_price_cents: product.unit_price_cents,
        attributes: wire::attributes_to_wire(product.attributes),
        ..pb::Product::default()
    }
}

pub(super) fn stored(stored: Stored<Product>) -> pb::Product {
    pb::Product {
        create_time: Some(time_to_wire(stored.create_time)),
        update_time: Some(time_to_wire(stored.update_time)),
        revision: stored.revision,
        etag: stored.etag(),
        ..to_wire(stored.resource)
    }
}

pub(super) fn all(products: Vec<Stored<Product>>) -> Vec<pb::Product> {
    products.into_iter().map(stored).collect()
}

fn hit(hit: FoundHit<Product>) -> pb::ProductHit {
    let only_id = |product_id| pb::Product {
        product_id,
        ..pb::Product::default()
    };
    pb::ProductHit {
        resource: Some(hit.resource.map_or_else(|| only_id(hit.id), stored)),
        score: hit.score,
        sort_values: hit.sort_values,
        highlights: hit.highlights,
        inner_hits: hit.inner_hits,
    }
}

pub(super) fn page(page: SearchPage<Product>) -> pb::SearchProductsResponse {
    pb::SearchProductsResponse {
        hits: page.hits.into_iter().map(hit).collect(),
        next_page_token: page.next_page_token,
        total: page.total,
        aggregations: page.aggregations,
        sequence: page.sequence,
        profile: page.profile,
    }
}

pub(super) fn suggested(page: SuggestPage) -> pb::SuggestProductsResponse {
    let suggestion = |suggestion: Suggestion| pb::ProductSuggestion {
        name: suggestion.name,
        product_id: suggestion.id,
    };
    pb::SuggestProductsResponse {
        suggestions: page.suggestions.into_iter().map(suggestion).collect(),
        corrected: page.corrected,
        sequence: page.sequence,
    }
}

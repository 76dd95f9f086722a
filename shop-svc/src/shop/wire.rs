//! Shops on the wire.

use std::ops::RangeInclusive;

use souk_api::wire::{
    self, Change, Updatable, check_id, check_len, check_name, check_not_negative, check_range, check_text,
    point, point_to_wire, time_to_wire,
};
use souk_api::{ClusterPage, FoundCluster, FoundHit, NearPage, Result, SearchPage, SuggestPage, Suggestion};
use souk_chassis::status::{FieldPath, Violations};
use souk_engine::{ExportBlock, ResourceChange, Stored, WatchEvent};
use souk_proto::shop::v1 as pb;

use super::Shop;

/// Longest name, in characters.
const NAME_CHARS_MAX: usize = 256;
/// Longest type, city or label, in characters.
const WORD_CHARS_MAX: usize = 256;
/// Longest address or opening hours, in characters: 4 bytes each still are a KEYWORD.
const TEXT_CHARS_MAX: usize = 1_024;
/// Longest telephone number, in characters.
const PHONE_CHARS_MAX: usize = 64;
/// Most labels.
const TAGS_MAX: usize = 256;
/// Worst and best rating.
const RATINGS: RangeInclusive<f64> = 0.0..=5.0;

/// What an update request may change.
const UPDATABLE: Updatable<'_> = Updatable {
    resource: "shop",
    id: "shop_id",
    fields: &[
        "name",
        "type",
        "position",
        "rating",
        "average_price_cents",
        "address",
        "city",
        "phone",
        "opening_hours",
        "tags",
        "attributes",
    ],
};

/// Checks a shop.
pub(super) fn from_wire(shop: &pb::Shop, path: &FieldPath, violations: &mut Violations) -> Option<Shop> {
    let before = violations.len();
    check_id(&shop.shop_id, path.field("shop_id"), violations);
    check_name(&shop.name, NAME_CHARS_MAX, path.field("name"), violations);
    for (field, text, chars_max) in [
        ("type", &shop.r#type, WORD_CHARS_MAX),
        ("address", &shop.address, TEXT_CHARS_MAX),
        ("city", &shop.city, WORD_CHARS_MAX),
        ("phone", &shop.phone, PHONE_CHARS_MAX),
        ("opening_hours", &shop.opening_hours, TEXT_CHARS_MAX),
    ] {
        check_text(text, chars_max, path.field(field), violations);
    }
    let position = path.field("position");
    let position = wire::required(
        shop.position.as_ref(),
        position,
        violations,
        |given, path, violations| point(given, path, violations),
    );
    check_range(shop.rating, &RATINGS, path.field("rating"), violations);
    let price = shop.average_price_cents;
    check_not_negative(price, path.field("average_price_cents"), violations);
    let tags = path.field("tags");
    check_len(shop.tags.len(), TAGS_MAX, &tags, violations);
    for (at, tag) in shop.tags.iter().enumerate().take(TAGS_MAX) {
        check_name(tag, WORD_CHARS_MAX, tags.index(at), violations);
    }
    let attributes = wire::attributes(&shop.attributes, path.field("attributes"), violations);
    if violations.len() > before {
        return None;
    }
    Some(Shop {
        shop_id: shop.shop_id.clone(),
        name: shop.name.clone(),
        kind: shop.r#type.clone(),
        position: position?,
        rating: shop.rating,
        average_price_cents: price,
        address: shop.address.clone(),
        city: shop.city.clone(),
        phone: shop.phone.clone(),
        opening_hours: shop.opening_hours.clone(),
        tags: shop.tags.clone(),
        attributes,
    })
}

/// Checks an update request.
pub(super) fn change(request: pb::UpdateShopRequest) -> Result<Change<pb::Shop>> {
    let (shop, mask) = (request.shop, request.update_mask.as_ref());
    Change::from_wire(&UPDATABLE, shop, mask, &request.etag, |shop| {
        (&shop.shop_id, &shop.etag)
    })
}

/// The shop after a change.
pub(super) fn apply(change: &Change<pb::Shop>, current: Shop) -> Result<Shop> {
    let (mask, given) = (change.mask(), change.given());
    let mut changed = to_wire(current);
    mask.put("name", &mut changed.name, &given.name);
    mask.put("type", &mut changed.r#type, &given.r#type);
    mask.put("position", &mut changed.position, &given.position);
    mask.put("rating", &mut changed.rating, &given.rating);
    mask.put(
        "average_price_cents",
        &mut changed.average_price_cents,
        &given.average_price_cents,
    );
    mask.put("address", &mut changed.address, &given.address);
    mask.put("city", &mut changed.city, &given.city);
    mask.put("phone", &mut changed.phone, &given.phone);
    mask.put("opening_hours", &mut changed.opening_hours, &given.opening_hours);
    mask.put("tags", &mut changed.tags, &given.tags);
    mask.put("attributes", &mut changed.attributes, &given.attributes);
    let mut violations = Violations::new();
    let shop = from_wire(&changed, &FieldPath::root("shop"), &mut violations);
    wire::checked(shop, violations)
}

fn to_wire(shop: Shop) -> pb::Shop {
    pb::Shop {
        shop_id: shop.shop_id,
        name: shop.name,
        r#type: shop.kind,
        position: Some(point_to_wire(shop.position)),
        rating: shop.rating,
        average_price_cents: shop.average_price_cents,
        address: shop.address,
        city: shop.city,
        phone: shop.phone,
        opening_hours: shop.opening_hours,
        tags: shop.tags,
        attributes: wire::attributes_to_wire(shop.attributes),
        ..pb::Shop::default()
    }
}

pub(super) fn stored(stored: Stored<Shop>) -> pb::Shop {
    pb::Shop {
        create_time: Some(time_to_wire(stored.create_time)),
        update_time: Some(time_to_wire(stored.update_time)),
        revision: stored.revision,
        etag: stored.etag(),
        ..to_wire(stored.resource)
    }
}

pub(super) fn all(shops: Vec<Stored<Shop>>) -> Vec<pb::Shop> {
    shops.into_iter().map(stored).collect()
}

fn only_id(shop_id: String) -> pb::Shop {
    pb::Shop {
        shop_id,
        ..pb::Shop::default()
    }
}

fn hit(hit: FoundHit<Shop>) -> pb::ShopHit {
    pb::ShopHit {
        resource: Some(hit.resource.map_or_else(|| only_id(hit.id), stored)),
        score: hit.score,
        sort_values: hit.sort_values,
        highlights: hit.highlights,
        inner_hits: hit.inner_hits,
    }
}

pub(super) fn page(page: SearchPage<Shop>) -> pb::SearchShopsResponse {
    pb::SearchShopsResponse {
        hits: page.hits.into_iter().map(hit).collect(),
        next_page_token: page.next_page_token,
        total: page.total,
        aggregations: page.aggregations,
        sequence: page.sequence,
        profile: page.profile,
    }
}

pub(super) fn near(page: NearPage<Shop>) -> pb::NearbyShopsResponse {
    let hit = |(shop, distance_meters)| pb::NearbyShop {
        resource: Some(stored(shop)),
        distance_meters,
    };
    pb::NearbyShopsResponse {
        hits: page.hits.into_iter().map(hit).collect(),
        next_page_token: page.next_page_token,
        sequence: page.sequence,
    }
}

pub(super) fn clustered(page: ClusterPage<Shop>) -> pb::ClusterShopsResponse {
    let cluster = |cluster: FoundCluster<Shop>| pb::ShopCluster {
        cell: cluster.cell,
        center: cluster.center,
        count: cluster.count,
        best_shop: cluster.best.map(stored),
        aggregations: cluster.aggregations,
    };
    pb::ClusterShopsResponse {
        clusters: page.clusters.into_iter().map(cluster).collect(),
        h3_resolution: page.h3_resolution,
        total: page.total,
        sequence: page.sequence,
    }
}

pub(super) fn suggested(page: SuggestPage) -> pb::SuggestShopsResponse {
    let suggestion = |suggestion: Suggestion| pb::ShopSuggestion {
        name: suggestion.name,
        shop_id: suggestion.id,
        distance_meters: suggestion.distance_meters,
    };
    pb::SuggestShopsResponse {
        suggestions: page.suggestions.into_iter().map(suggestion).collect(),
        corrected: page.corrected,
        sequence: page.sequence,
    }
}

pub(super) fn block(block: ExportBlock<Stored<Shop>>) -> pb::ExportShopsResponse {
    pb::ExportShopsResponse {
        shops: all(block.items),
        resume_token: block.resume_token,
        snapshot_token: block.snapshot_token,
        sequence: block.sequence,
    }
}

fn watched(change: ResourceChange<Shop>) -> pb::ShopChange {
    pb::ShopChange {
        kind: wire::change_kind(change.kind),
        shop: Some(change.stored.map_or_else(|| only_id(change.id), stored)),
    }
}

pub(super) fn event(event: WatchEvent<ResourceChange<Shop>>) -> pb::WatchShopsResponse {
    pb::WatchShopsResponse {
        sequence: event.sequence,
        commit_time: Some(time_to_wire(event.commit_time)),
        changes: event.changes.into_iter().map(watched).collect(),
    }
}

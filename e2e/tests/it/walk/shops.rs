//! Shops.

use souk_e2e::data::{self, SeededRandom};
use souk_e2e::rejection::Rejection;
use souk_e2e::suite::Suite;
use souk_proto::search::v1::{GeoDistanceQuery, Query, query};
use souk_proto::shop::v1 as shop;
use souk_proto::r#type::v1::{GeoPoint, GeoRectangle};

use super::search;

pub(super) async fn shops(suite: &Suite) -> anyhow::Result<()> {
    let mut shops = suite.shops()?;
    let mut random = SeededRandom::new(2);
    let all: Vec<_> = (0..200).map(|number| data::shop(number, &mut random)).collect();
    let batch = shop::BatchCreateShopsRequest {
        shops: all,
        ..Default::default()
    };
    let answer = shops.batch_create_shops(batch).await?.into_inner();
    assert_eq!(answer.shops.len(), 200);
    let center = Some(GeoPoint {
        latitude: 30.2741,
        longitude: 120.1551,
    });
    let near = GeoDistanceQuery {
        field: "position".to_owned(),
        center,
        distance_meters: 5_000.0,
    };
    let near = Some(Query {
        kind: Some(query::Kind::GeoDistance(near)),
    });
    let request = shop::SearchShopsRequest {
        search: search(near, answer.sequence),
    };
    assert!(!shops.search_shops(request).await?.into_inner().hits.is_empty());
    let request = shop::NearbyShopsRequest {
        center,
        page_size: 200,
        min_sequence: answer.sequence,
        ..Default::default()
    };
    let nearby = shops.nearby_shops(request).await?.into_inner();
    let distances: Vec<_> = nearby.hits.iter().map(|hit| hit.distance_meters).collect();
    assert_eq!(distances.len(), 200, "without a greatest distance, all of them");
    assert!(distances.is_sorted(), "{distances:?}");
    let first = nearby.hits[0].resource.clone().unwrap_or_default().name;
    let request = shop::SuggestShopsRequest {
        prefix: first.chars().take(1).collect(),
        center,
        min_sequence: answer.sequence,
        ..Default::default()
    };
    let suggested = shops.suggest_shops(request).await?.into_inner().suggestions;
    assert_eq!(
        suggested.first().map(|one| &one.name),
        Some(&first),
        "the nearest comes first"
    );
    let viewport = GeoRectangle {
        top_left: Some(GeoPoint {
            latitude: 31.0,
            longitude: 119.0,
        }),
        bottom_right: Some(GeoPoint {
            latitude: 29.0,
            longitude: 121.0,
        }),
    };
    let request = shop::ClusterShopsRequest {
        viewport: Some(viewport),
        size: Some(shop::cluster_shops_request::Size::Zoom(9)),
        min_sequence: answer.sequence,
        ..Default::default()
    };
    let clusters = shops.cluster_shops(request).await?.into_inner();
    let counted: i64 = clusters.clusters.iter().map(|cluster| cluster.count).sum();
    assert!(counted > 0 && counted == clusters.total, "{clusters:?}");
    let one = shops.create_shop(shop::CreateShopRequest {
        shop: Some(data::shop(900, &mut random)),
        validate_only: true,
        ..Default::default()
    });
    one.await?;
    let request = shop::GetShopRequest {
        shop_id: "h00000900".to_owned(),
        min_sequence: 0,
    };
    let missing = shops
        .get_shop(request)
        .await
        .expect_err("validate_only writes nothing");
    assert_eq!(Rejection::of(&missing)?.reason, "SHOP_NOT_FOUND");
    let mut blocks = shops
        .export_shops(shop::ExportShopsRequest::default())
        .await?
        .into_inner();
    let mut exported = 0;
    while let Some(block) = blocks.message().await? {
        exported += block.shops.len();
    }
    assert_eq!(exported, 200);
    Ok(())
}

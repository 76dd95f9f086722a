//! The shop service on a real engine, behind all layers of a server, called by a generated client.

use std::error::Error;

use souk_engine::testing::serve;
use souk_proto::shop::v1 as pb;
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use souk_proto::r#type::v1::GeoPoint;
use souk_shop_svc::ShopServices;
use tonic::Code;
use tonic_types::StatusExt as _;

type TestResult = Result<(), Box<dyn Error>>;

/// Shop `number`, `number` hundredths of a degree north of the equator.
fn shop(number: i32) -> pb::Shop {
    pb::Shop {
        shop_id: format!("h{number}"),
        name: "沈家面馆".to_owned(),
        position: Some(GeoPoint {
            latitude: f64::from(number) / 100.0,
            longitude: 20.0,
        }),
        rating: 4.5,
        tags: vec!["wifi".to_owned(), "夜宵".to_owned()],
        ..pb::Shop::default()
    }
}

#[tokio::test]
async fn the_nearest_shops_come_first_page_by_page() -> TestResult {
    let running = serve::<ShopServices>().await?;
    let mut shops = ShopServiceClient::new(running.stack.clone());
    let request = pb::BatchCreateShopsRequest {
        shops: [3, 1, 5, 2, 4].map(shop).to_vec(),
        ..Default::default()
    };
    let created = shops.batch_create_shops(request).await?.into_inner();
    let ids: Vec<_> = created.shops.iter().map(|shop| shop.shop_id.as_str()).collect();
    assert_eq!(ids, ["h3", "h1", "h5", "h2", "h4"]);

    let mut near = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = pb::NearbyShopsRequest {
            center: Some(GeoPoint {
                latitude: 0.0,
                longitude: 20.0,
            }),
            // Four of them lie within 4.5 hundredths of a degree, at some 1.11 km each.
            max_distance_meters: Some(5_000.0),
            page_size: 3,
            page_token,
            min_sequence: created.sequence,
            ..Default::default()
        };
        let page = shops.nearby_shops(request).await?.into_inner();
        near.extend(page.hits);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    let ids: Vec<_> = near
        .iter()
        .filter_map(|hit| hit.resource.as_ref())
        .map(|shop| shop.shop_id.as_str())
        .collect();
    assert_eq!(ids, ["h1", "h2", "h3", "h4"]);
    // One hundredth of a degree on a sphere of 6,371,008.77 m.
    assert!((near[0].distance_meters - 1_111.950_8).abs() < 0.01, "{near:?}");
    Ok(())
}

#[tokio::test]
async fn clusters_are_refused_as_not_supported() -> TestResult {
    let running = serve::<ShopServices>().await?;
    let mut shops = ShopServiceClient::new(running.stack.clone());
    let refused = shops.cluster_shops(pb::ClusterShopsRequest::default()).await;
    let refused = refused.expect_err("not built yet");
    let reason = refused.get_details_error_info().map(|info| info.reason);
    assert_eq!(
        (refused.code(), reason.as_deref()),
        (Code::Unimplemented, Some("UNSUPPORTED_FEATURE"))
    );
    Ok(())
}

#[tokio::test]
async fn a_shop_comes_back_as_it_was_given() -> TestResult {
    let running = serve::<ShopServices>().await?;
    let mut shops = ShopServiceClient::new(running.stack.clone());
    let request = pb::CreateShopRequest {
        shop: Some(shop(7)),
        ..Default::default()
    };
    let created = shops.create_shop(request).await?.into_inner().shop;
    let request = pb::GetShopRequest {
        shop_id: "h7".to_owned(),
        min_sequence: 0,
    };
    let read = shops.get_shop(request).await?.into_inner().shop;
    assert_eq!(read, created);
    let mut read = read.ok_or("a shop")?;
    (read.create_time, read.update_time, read.revision) = (None, None, 0);
    read.etag.clear();
    assert_eq!(read, shop(7));
    Ok(())
}

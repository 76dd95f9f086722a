//! The shop service on a real engine, behind all layers of a server, called by a generated client.

use std::error::Error;

use prost::Message as _;
use souk_api::testing::{reopen_trimmed, serve};
use souk_proto::search::v1::{
    Aggregation, AvgAggregation, ExistsQuery, FieldSort, MissingOrder, Query, RangeQuery, Search, Sort,
    aggregation, aggregation_result, field_sort, query, range_query, sort,
};
use souk_proto::shop::v1 as pb;
use souk_proto::shop::v1::cluster_shops_request::Size;
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use souk_proto::r#type::v1::{GeoPoint, GeoRectangle, Value, value};
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
        rating: Some(4.5),
        tags: vec!["wifi".to_owned(), "夜宵".to_owned()],
        ..pb::Shop::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_is_answered_alike_when_the_log_has_forgotten_it() -> TestResult {
    let running = serve::<ShopServices>().await?;
    let mut shops = ShopServiceClient::new(running.stack.clone());
    let placed = pb::Shop {
        position: Some(GeoPoint {
            latitude: -12.345_678_949,
            longitude: 0.000_000_04,
        }),
        ..shop(3)
    };
    let request = pb::BatchCreateShopsRequest {
        request_id: "0b1d5d5e-55ad-4f4c-8d0e-3f6c1b7a9e02".to_owned(),
        shops: vec![shop(1), shop(2), placed],
        ..Default::default()
    };
    let first = shops.batch_create_shops(request.clone()).await?.into_inner();
    for shop_id in ["h1", "h3"].map(str::to_owned) {
        let etag = String::new();
        shops.delete_shop(pb::DeleteShopRequest { shop_id, etag }).await?;
    }
    drop(shops);
    let running = reopen_trimmed(running).await?;
    let mut shops = ShopServiceClient::new(running.stack.clone());
    let again = shops.batch_create_shops(request).await?.into_inner();
    assert_eq!(again.encode_to_vec(), first.encode_to_vec());
    Ok(())
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

/// The largest there is: a third of a megabyte.
fn large_shop(number: i32) -> pb::Shop {
    let value = Value {
        kind: Some(value::Kind::StringValue("x".repeat((4 << 10) - 3))),
    };
    pb::Shop {
        tags: (0..256).map(|tag| format!("{tag:0>256}")).collect(),
        attributes: (0..64)
            .map(|place| (format!("{place:0>128}"), value.clone()))
            .collect(),
        ..shop(number)
    }
}

#[tokio::test]
async fn near_shops_clusters_and_batches_have_no_more_bytes_than_are_borne() -> TestResult {
    /// Of which 12 have less than 4 MiB, and all have more than 32 MiB.
    const SHOPS: i32 = 108;
    let running = serve::<ShopServices>().await?;
    let mut shops = ShopServiceClient::new(running.stack.clone()).max_decoding_message_size(usize::MAX);
    let mut sequence = 0;
    let numbers: Vec<i32> = (1..=SHOPS).collect();
    for part in numbers.chunks(12) {
        let request = pb::BatchCreateShopsRequest {
            shops: part.iter().copied().map(large_shop).collect(),
            ..Default::default()
        };
        sequence = shops.batch_create_shops(request).await?.into_inner().sequence;
    }
    let mut request = pb::NearbyShopsRequest {
        center: shop(0).position,
        page_size: 1_000,
        min_sequence: sequence,
        ..Default::default()
    };
    let mut near = Vec::new();
    loop {
        let page = shops.nearby_shops(request.clone()).await?.into_inner();
        assert!(page.encoded_len() <= 4 << 20, "{} bytes", page.encoded_len());
        near.extend(
            page.hits
                .into_iter()
                .filter_map(|hit| Some(hit.resource?.shop_id)),
        );
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            break;
        }
    }
    assert_eq!(
        near,
        numbers
            .iter()
            .map(|number| format!("h{number}"))
            .collect::<Vec<_>>()
    );

    let corner = |latitude, longitude| Some(GeoPoint { latitude, longitude });
    let mut request = pb::ClusterShopsRequest {
        viewport: Some(GeoRectangle {
            top_left: corner(2.0, 19.0),
            bottom_right: corner(-1.0, 21.0),
        }),
        size: Some(Size::H3Resolution(12)),
        min_sequence: sequence,
        ..Default::default()
    };
    let refused = shops
        .cluster_shops(request.clone())
        .await
        .expect_err("too many bytes");
    assert_eq!(refused.code(), Code::InvalidArgument);
    let details = refused.get_error_details();
    assert_eq!(
        details.error_info().ok_or("an ErrorInfo")?.reason,
        "LIMIT_EXCEEDED"
    );
    let broken = &details.bad_request().ok_or("a field")?.field_violations;
    assert_eq!(broken[0].field, "max_clusters");
    request.max_clusters = 50;
    assert_eq!(
        shops.cluster_shops(request).await?.into_inner().clusters.len(),
        50
    );

    let mut request = pb::BatchGetShopsRequest {
        shop_ids: near.split_off(8),
        ..Default::default()
    };
    let refused = shops
        .batch_get_shops(request.clone())
        .await
        .expect_err("too many bytes");
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert_eq!(
        refused
            .get_error_details()
            .error_info()
            .ok_or("an ErrorInfo")?
            .reason,
        "LIMIT_EXCEEDED"
    );
    request.shop_ids.truncate(90);
    assert_eq!(shops.batch_get_shops(request).await?.into_inner().shops.len(), 90);
    Ok(())
}

#[tokio::test]
async fn clusters_count_shops_by_cell_and_show_the_best() -> TestResult {
    let running = serve::<ShopServices>().await?;
    let mut shops = ShopServiceClient::new(running.stack.clone());
    // Three in one cell, of which two are equally good, and one in another.
    let placed = [
        ("h1", 0.0, 4.0),
        ("h3", 0.002, 4.8),
        ("h2", 0.001, 4.8),
        ("h4", 5.0, 3.0),
    ];
    let made = placed.map(|(id, latitude, rating)| pb::Shop {
        shop_id: id.to_owned(),
        position: Some(GeoPoint {
            latitude,
            longitude: 20.0,
        }),
        rating: Some(rating),
        ..shop(0)
    });
    let request = pb::BatchCreateShopsRequest {
        shops: made.to_vec(),
        ..Default::default()
    };
    let created = shops.batch_create_shops(request).await?.into_inner();
    let request = pb::ClusterShopsRequest {
        viewport: Some(GeoRectangle {
            top_left: Some(GeoPoint {
                latitude: 6.0,
                longitude: 19.0,
            }),
            bottom_right: Some(GeoPoint {
                latitude: -1.0,
                longitude: 21.0,
            }),
        }),
        size: Some(Size::H3Resolution(4)),
        min_sequence: created.sequence,
        ..Default::default()
    };
    let answer = shops.cluster_shops(request).await?.into_inner();
    assert_eq!((answer.total, answer.h3_resolution), (4, 4));
    assert!(answer.sequence >= created.sequence);
    let [three, one] = answer.clusters.as_slice() else {
        return Err(format!("not two clusters: {answer:?}").into());
    };
    assert_eq!((three.count, one.count), (3, 1));
    let center = three.center.ok_or("a centre")?;
    assert!((center.latitude - 0.001).abs() < 1e-6 && (center.longitude - 20.0).abs() < 1e-6);
    let second = created.shops.iter().find(|shop| shop.shop_id == "h2");
    assert_eq!(
        three.best_shop.as_ref(),
        second,
        "of two equally good ones that with the lower primary key"
    );
    assert_eq!(
        one.center,
        placed.last().map(|_| GeoPoint {
            latitude: 5.0,
            longitude: 20.0
        })
    );

    let refused = shops.cluster_shops(pb::ClusterShopsRequest::default()).await;
    let refused = refused.expect_err("no viewport");
    assert_eq!(refused.code(), Code::InvalidArgument);
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

#[tokio::test]
async fn names_are_suggested_by_rating_by_distance_and_by_their_spelling() -> TestResult {
    let running = serve::<ShopServices>().await?;
    let mut shops = ShopServiceClient::new(running.stack.clone());
    let named = [
        ("Luckin Coffee", 4.0, 1),
        ("luckin tea", 4.9, 5),
        ("LUCKIN COFFEE", 3.0, 2),
        ("Blue Luckin", 5.0, 3),
        ("瑞幸咖啡", 4.1, 4),
        ("瑞幸茶", 4.6, 6),
    ];
    let request = pb::BatchCreateShopsRequest {
        shops: named
            .iter()
            .zip(1..)
            .map(|((name, rating, hundredths), number)| pb::Shop {
                shop_id: format!("h{number}"),
                name: (*name).to_owned(),
                rating: Some(*rating),
                ..shop(*hundredths)
            })
            .collect(),
        ..Default::default()
    };
    let created = shops.batch_create_shops(request).await?.into_inner();
    let asked = |prefix: &str| pb::SuggestShopsRequest {
        prefix: prefix.to_owned(),
        min_sequence: created.sequence,
        ..Default::default()
    };
    let names = |answer: &pb::SuggestShopsResponse| -> Vec<String> {
        answer.suggestions.iter().map(|one| one.name.clone()).collect()
    };

    let answer = shops.suggest_shops(asked("LUCK")).await?.into_inner();
    assert_eq!(
        names(&answer),
        ["luckin tea", "Luckin Coffee"],
        "each name once, by rating"
    );
    assert!(!answer.corrected && answer.sequence >= created.sequence);
    assert_eq!(answer.suggestions[1].shop_id, "h1", "the better of that name");

    let near = pb::SuggestShopsRequest {
        center: Some(GeoPoint {
            latitude: 0.0,
            longitude: 20.0,
        }),
        ..asked("luckin ")
    };
    let answer = shops.suggest_shops(near).await?.into_inner();
    assert_eq!(
        names(&answer),
        ["Luckin Coffee", "luckin tea"],
        "the nearest first"
    );
    let meters: Vec<_> = answer
        .suggestions
        .iter()
        .filter_map(|one| one.distance_meters)
        .collect();
    assert!((meters[0] - 1_111.950_8).abs() < 0.01, "{meters:?}");

    let answer = shops.suggest_shops(asked("瑞幸")).await?.into_inner();
    assert_eq!(names(&answer), ["瑞幸茶", "瑞幸咖啡"]);
    let one = pb::SuggestShopsRequest {
        size: 1,
        ..asked("瑞")
    };
    assert_eq!(names(&shops.suggest_shops(one).await?.into_inner()), ["瑞幸茶"]);

    let answer = shops.suggest_shops(asked("lukcin cofee")).await?.into_inner();
    assert_eq!(
        (names(&answer), answer.corrected),
        (vec!["Luckin Coffee".to_owned()], true)
    );
    let answer = shops.suggest_shops(asked("nothing like it")).await?.into_inner();
    assert_eq!(names(&answer), [""; 0]);

    let refused = shops
        .suggest_shops(asked(""))
        .await
        .expect_err("nothing was typed");
    assert_eq!(refused.code(), Code::InvalidArgument);
    Ok(())
}

/// Searches, and gives ids and answer.
async fn found(
    shops: &mut ShopServiceClient<souk_chassis::server::Stack>,
    search: Search,
) -> Result<(Vec<String>, pb::SearchShopsResponse), tonic::Status> {
    let search = Some(search);
    let answer = shops
        .search_shops(pb::SearchShopsRequest { search })
        .await?
        .into_inner();
    let ids = answer.hits.iter().filter_map(|hit| hit.resource.as_ref());
    Ok((ids.map(|shop| shop.shop_id.clone()).collect(), answer))
}

#[tokio::test]
async fn a_shop_that_nobody_rated_has_no_rating() -> TestResult {
    let running = serve::<ShopServices>().await?;
    let mut shops = ShopServiceClient::new(running.stack.clone());
    let unknown = pb::Shop {
        rating: Default::default(),
        ..shop(2)
    };
    let request = pb::BatchCreateShopsRequest {
        shops: vec![shop(1), unknown],
        ..Default::default()
    };
    let mut min_sequence = shops.batch_create_shops(request).await?.into_inner().sequence;
    let exists = query::Kind::Exists(ExistsQuery {
        field: "rating".to_owned(),
    });
    let poor = query::Kind::Range(RangeQuery {
        field: "rating".to_owned(),
        upper: Some(range_query::Upper::Lt(Value {
            kind: Some(value::Kind::DoubleValue(2.4)),
        })),
        ..RangeQuery::default()
    });
    let of = |kind: &query::Kind, min_sequence| Search {
        query: Some(Query {
            kind: Some(kind.clone()),
        }),
        min_sequence,
        ..Search::default()
    };
    assert_eq!(found(&mut shops, of(&exists, min_sequence)).await?.0, ["h1"]);
    assert_eq!(found(&mut shops, of(&poor, min_sequence)).await?.0, [""; 0]);

    let mean = Aggregation {
        kind: Some(aggregation::Kind::Avg(AvgAggregation {
            field: "rating".to_owned(),
            missing: None,
        })),
    };
    let by_rating = |first: bool| Search {
        sort: vec![Sort {
            kind: Some(sort::Kind::Field(FieldSort {
                field: "rating".to_owned(),
                missing: first.then_some(field_sort::Missing::MissingOrder(MissingOrder::First.into())),
                ..FieldSort::default()
            })),
        }],
        aggregations: [("mean".to_owned(), mean.clone())].into(),
        min_sequence,
        ..Search::default()
    };
    let (ids, answer) = found(&mut shops, by_rating(false)).await?;
    assert_eq!(ids, ["h1", "h2"], "what is unknown comes last");
    let Some(aggregation_result::Kind::Value(mean)) = &answer.aggregations["mean"].kind else {
        return Err(format!("no mean: {answer:?}").into());
    };
    let mean = mean.value.as_ref().and_then(|mean| mean.kind.clone());
    assert_eq!(mean, Some(value::Kind::DoubleValue(4.5)));
    assert_eq!(found(&mut shops, by_rating(true)).await?.0, ["h2", "h1"]);

    // A mask takes the rating away again.
    let request = pb::UpdateShopRequest {
        shop: Some(pb::Shop {
            shop_id: "h1".to_owned(),
            ..pb::Shop::default()
        }),
        update_mask: Some(prost_types::FieldMask {
            paths: vec!["rating".to_owned()],
        }),
        ..Default::default()
    };
    let updated = shops.update_shop(request).await?.into_inner();
    min_sequence = updated.sequence;
    assert_eq!(
        updated.shop.map(|shop| (shop.rating, shop.name)),
        Some((Default::default(), "沈家面馆".to_owned()))
    );
    assert_eq!(found(&mut shops, of(&exists, min_sequence)).await?.0, [""; 0]);
    Ok(())
}

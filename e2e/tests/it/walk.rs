//! Every RPC of every service once through the gateway, in one process and in four.

use souk_e2e::data::{self, Numbers};
use souk_e2e::rejection::Rejection;
use souk_e2e::suite::{Layout, Suite};
use souk_proto::media::v1 as media;
use souk_proto::order::v1 as order;
use souk_proto::search::v1::{FieldSort, GeoDistanceQuery, Query, Search, Sort, TermQuery, query, sort};
use souk_proto::shop::v1 as shop;
use souk_proto::r#type::v1::{ChangeKind, GeoPoint, GeoRectangle, Value, value};
use tonic::Code;

use crate::SOUK;

fn mask(paths: &[&str]) -> Option<prost_types::FieldMask> {
    Some(prost_types::FieldMask {
        paths: paths.iter().map(|&path| path.to_owned()).collect(),
    })
}

fn term(field: &str, text: &str) -> Option<Query> {
    let value = Some(Value {
        kind: Some(value::Kind::StringValue(text.to_owned())),
    });
    Some(Query {
        kind: Some(query::Kind::Term(TermQuery {
            field: field.to_owned(),
            value,
            weight: None,
        })),
    })
}

fn search(query: Option<Query>, min_sequence: i64) -> Option<Search> {
    Some(Search {
        query,
        min_sequence,
        ..Search::default()
    })
}

fn id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// Consumers, salespersons and products; then an order with ids only is filled in.
async fn people_and_products(suite: &Suite) -> anyhow::Result<()> {
    let mut consumers = suite.consumers()?;
    let consumer = Some(data::person("c0001", "消陈九"));
    let created = consumers
        .create_consumer(order::CreateConsumerRequest {
            consumer,
            ..Default::default()
        })
        .await?;
    assert_eq!(
        created.get_ref().consumer.as_ref().expect("a consumer").name,
        "消陈九"
    );
    let more = vec![data::person("c0002", "Ann Lee"), data::person("c0003", "Bo Ek")];
    let batch = order::BatchCreateConsumersRequest {
        consumers: more,
        ..Default::default()
    };
    let sequence = consumers
        .batch_create_consumers(batch)
        .await?
        .into_inner()
        .sequence;
    let request = order::GetConsumerRequest {
        id: "c0002".to_owned(),
        min_sequence: sequence,
    };
    assert_eq!(
        consumers
            .get_consumer(request)
            .await?
            .into_inner()
            .consumer
            .expect("a consumer")
            .name,
        "Ann Lee"
    );
    let ids = vec!["c0003".to_owned(), "c0009".to_owned()];
    let found = consumers
        .batch_get_consumers(order::BatchGetConsumersRequest { ids, min_sequence: 0 })
        .await?;
    assert_eq!(
        (
            found.get_ref().consumers.len(),
            found.get_ref().missing_ids.clone()
        ),
        (1, vec!["c0009".to_owned()])
    );
    let changed = order::Person {
        region: "北方".to_owned(),
        ..data::person("c0002", "")
    };
    let update = order::UpdateConsumerRequest {
        consumer: Some(changed),
        update_mask: mask(&["region"]),
        etag: String::new(),
    };
    let updated = consumers.update_consumer(update).await?.into_inner();
    let person = updated.consumer.expect("a consumer");
    assert_eq!(
        (person.name.as_str(), person.region.as_str()),
        ("Ann Lee", "北方")
    );
    let request = order::SearchConsumersRequest {
        search: search(term("region", "北方"), updated.sequence),
    };
    assert_eq!(
        consumers.search_consumers(request).await?.into_inner().hits.len(),
        1
    );
    let delete = order::DeleteConsumerRequest {
        id: "c0003".to_owned(),
        etag: String::new(),
    };
    consumers.delete_consumer(delete).await?;

    let mut salespersons = suite.salespersons()?;
    let salesperson = Some(data::person("s0020", "售楚十"));
    let request = order::CreateSalespersonRequest {
        salesperson,
        ..Default::default()
    };
    let sequence = salespersons
        .create_salesperson(request)
        .await?
        .into_inner()
        .sequence;
    let request = order::SearchSalespersonsRequest {
        search: search(term("name", "售楚十"), sequence),
    };
    assert_eq!(
        salespersons
            .search_salespersons(request)
            .await?
            .into_inner()
            .hits
            .len(),
        1
    );

    let mut products = suite.products()?;
    let product = Some(data::product("p0003004", "vivo x21 手机", 249_899));
    let request = order::CreateProductRequest {
        product,
        ..Default::default()
    };
    let sequence = products.create_product(request).await?.into_inner().sequence;
    let request = order::SearchProductsRequest {
        search: search(term("brand", "vivo"), sequence),
    };
    assert_eq!(
        products.search_products(request).await?.into_inner().hits.len(),
        1
    );
    Ok(())
}

async fn orders(suite: &Suite) -> anyhow::Result<()> {
    let mut orders = suite.orders()?;
    let mut changes = orders
        .watch_orders(order::WatchOrdersRequest {
            after_sequence: Some(0),
        })
        .await?
        .into_inner();
    let incomplete = order::Order {
        order_id: "o0000000000".to_owned(),
        consumer_id: "c0001".to_owned(),
        salesperson_id: "s0020".to_owned(),
        product_id: "p0003004".to_owned(),
        quantity: 2,
        ..Default::default()
    };
    let request = order::CreateOrderRequest {
        order: Some(incomplete),
        request_id: id(),
        validate_only: false,
    };
    let created = orders.create_order(request.clone()).await?.into_inner();
    let first = created.order.clone().expect("an order");
    assert_eq!(first.consumer_name, "消陈九");
    assert_eq!(first.product_name, "vivo x21 手机");
    assert_eq!(first.total_price_cents, Some(499_798));
    assert_eq!(first.revision, created.sequence);
    assert!(first.order_time.is_some() && first.create_time.is_some() && !first.etag.is_empty());
    // A retry gives the first answer again.
    assert_eq!(orders.create_order(request).await?.into_inner(), created);

    let mut numbers = Numbers::new(1);
    let complete: Vec<_> = (1..=120)
        .map(|number| data::order(number, &mut numbers))
        .collect();
    let mine = complete
        .iter()
        .filter(|order| order.consumer_id == "c0001")
        .count()
        + 1;
    let batch = order::BatchCreateOrdersRequest {
        orders: complete,
        request_id: id(),
        omit_resources: true,
    };
    let sequence = orders.batch_create_orders(batch).await?.into_inner().sequence;

    let mut listed = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = order::ListConsumerOrdersRequest {
            consumer_id: "c0001".to_owned(),
            page_size: 2,
            page_token,
            min_sequence: sequence,
        };
        let page = orders.list_consumer_orders(request).await?.into_inner();
        listed.extend(page.orders);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    let times: Vec<_> = listed
        .iter()
        .map(|order| order.order_time.expect("a time").seconds)
        .collect();
    assert_eq!(listed.len(), mine);
    assert!(times.is_sorted_by(|a, b| a >= b), "newest first: {times:?}");

    let by_price = FieldSort {
        field: "total_price_cents".to_owned(),
        descending: true,
        ..Default::default()
    };
    let request = order::SearchOrdersRequest {
        search: Some(Search {
            query: term("consumer_id", "c0001"),
            sort: vec![Sort {
                kind: Some(sort::Kind::Field(by_price)),
            }],
            min_sequence: sequence,
            page_size: 1_000,
            ..Search::default()
        }),
    };
    assert_eq!(orders.search_orders(request).await?.into_inner().hits.len(), mine);

    let changed = order::Order {
        order_id: first.order_id.clone(),
        paid: true,
        ..Default::default()
    };
    let update = order::UpdateOrderRequest {
        order: Some(changed),
        update_mask: mask(&["paid"]),
        etag: first.etag,
    };
    let updated = orders
        .update_order(update.clone())
        .await?
        .into_inner()
        .order
        .expect("an order");
    assert!(updated.paid && updated.consumer_name == "消陈九");
    let stale = orders.update_order(update).await.expect_err("the etag is stale");
    let rejection = Rejection::of(&stale)?;
    assert_eq!(
        (rejection.code, rejection.reason.as_str()),
        (Code::Aborted, "ETAG_MISMATCH")
    );

    let delete = order::DeleteOrderRequest {
        order_id: first.order_id.clone(),
        etag: updated.etag,
    };
    let last = orders.delete_order(delete).await?.into_inner().sequence;
    let gone = order::GetOrderRequest {
        order_id: first.order_id.clone(),
        min_sequence: 0,
    };
    let rejection = Rejection::of(&orders.get_order(gone).await.expect_err("it is deleted"))?;
    assert_eq!(
        (rejection.code, rejection.reason.as_str()),
        (Code::NotFound, "ORDER_NOT_FOUND")
    );

    let mut exported = 0;
    let mut snapshot_token = String::new();
    for slice in 0..2 {
        let request = order::ExportOrdersRequest {
            slice_count: 2,
            slice,
            snapshot_token,
            ..Default::default()
        };
        let mut blocks = orders.export_orders(request).await?.into_inner();
        snapshot_token = String::new();
        while let Some(block) = blocks.message().await? {
            exported += block.orders.len();
            snapshot_token = block.snapshot_token;
        }
    }
    assert_eq!(exported, 120);

    let mut kinds = Vec::new();
    while let Some(event) = changes.message().await? {
        let mine = event
            .changes
            .iter()
            .filter(|c| c.order.as_ref().is_some_and(|o| o.order_id == first.order_id));
        kinds.extend(mine.map(order::OrderChange::kind));
        if event.sequence >= last {
            break;
        }
    }
    assert_eq!(
        kinds,
        [ChangeKind::Created, ChangeKind::Updated, ChangeKind::Deleted]
    );
    Ok(())
}

async fn shops(suite: &Suite) -> anyhow::Result<()> {
    let mut shops = suite.shops()?;
    let mut numbers = Numbers::new(2);
    let all: Vec<_> = (0..200).map(|number| data::shop(number, &mut numbers)).collect();
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
        shop: Some(data::shop(900, &mut numbers)),
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

async fn media_items(suite: &Suite) -> anyhow::Result<()> {
    let mut client = suite.media()?;
    let mut item = data::media(1, &mut Numbers::new(3));
    item.tags = vec![media::Tag {
        tag: "car".to_owned(),
        score: 0.5,
    }];
    let request = media::CreateMediaRequest {
        media: Some(item),
        ..Default::default()
    };
    let created = client
        .create_media(request)
        .await?
        .into_inner()
        .media
        .expect("a media item");
    let analysed = media::Media {
        media_id: created.media_id.clone(),
        tags: vec![media::Tag {
            tag: "开心".to_owned(),
            score: 0.9,
        }],
        ..Default::default()
    };
    let request = media::UpdateMediaRequest {
        media: Some(analysed),
        update_mask: mask(&["tags"]),
        append: true,
        ..Default::default()
    };
    let updated = client.update_media(request).await?.into_inner();
    let tags: Vec<_> = updated
        .media
        .expect("a media item")
        .tags
        .into_iter()
        .map(|tag| tag.tag)
        .collect();
    assert_eq!(tags, ["car", "开心"]);
    let both = |tag: &str| {
        let nested = souk_proto::search::v1::NestedQuery {
            path: "tags".to_owned(),
            query: term("tags.tag", tag).map(Box::new),
            ..Default::default()
        };
        Some(Query {
            kind: Some(query::Kind::Nested(Box::new(nested))),
        })
    };
    for (tag, hits) in [("开心", 1), ("car", 1), ("cat", 0)] {
        let request = media::SearchMediaRequest {
            search: search(both(tag), updated.sequence),
        };
        assert_eq!(
            client.search_media(request).await?.into_inner().hits.len(),
            hits,
            "{tag}"
        );
    }
    let mut changes = client
        .watch_media(media::WatchMediaRequest {
            after_sequence: Some(0),
        })
        .await?
        .into_inner();
    let event = changes.message().await?.expect("an event");
    assert!(event.sequence > 0);
    Ok(())
}

async fn walk(layout: Layout) -> anyhow::Result<()> {
    let mut suite = Suite::start(SOUK, layout).await?;
    people_and_products(&suite).await?;
    orders(&suite).await?;
    shops(&suite).await?;
    media_items(&suite).await?;
    suite.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_rpc_answers_in_one_process() -> anyhow::Result<()> {
    walk(Layout::OneProcess).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_rpc_answers_in_four_processes() -> anyhow::Result<()> {
    walk(Layout::FourProcesses).await
}

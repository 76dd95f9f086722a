//! The order services on a real engine, behind all layers of a server, called by generated clients.

use std::error::Error;

use prost::Message as _;
use prost_types::{FieldMask, Timestamp};
use souk_api::testing::{Running, reopen_trimmed, serve};
use souk_chassis::server::Stack;
use souk_order_svc::OrderServices;
use souk_proto::order::v1 as pb;
use souk_proto::order::v1::consumer_service_client::ConsumerServiceClient;
use souk_proto::order::v1::order_service_client::OrderServiceClient;
use souk_proto::order::v1::product_service_client::ProductServiceClient;
use souk_proto::order::v1::salesperson_service_client::SalespersonServiceClient;
use souk_proto::search::v1::{Query, Search, TermQuery, query};
use souk_proto::r#type::v1::{ChangeKind, Value, value};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

type TestResult = Result<(), Box<dyn Error>>;

fn reason(status: &Status) -> (Code, String) {
    let reason = status.get_details_error_info().map(|info| info.reason);
    (status.code(), reason.unwrap_or_default())
}

fn mask(paths: &[&str]) -> Option<FieldMask> {
    Some(FieldMask {
        paths: paths.iter().map(|path| (*path).to_owned()).collect(),
    })
}

fn search(field: &str, text: &str, min_sequence: i64) -> Option<Search> {
    let value = Some(Value {
        kind: Some(value::Kind::StringValue(text.to_owned())),
    });
    let term = TermQuery {
        field: field.to_owned(),
        value,
        weight: None,
    };
    Some(Search {
        query: Some(Query {
            kind: Some(query::Kind::Term(term)),
        }),
        min_sequence,
        ..Search::default()
    })
}

fn person(id: &str, name: &str) -> pb::Person {
    pb::Person {
        id: id.to_owned(),
        name: name.to_owned(),
        ..pb::Person::default()
    }
}

/// An order with ids and a quantity alone.
fn ids_only(id: &str) -> pb::Order {
    pb::Order {
        order_id: id.to_owned(),
        consumer_id: "c1".to_owned(),
        salesperson_id: "s1".to_owned(),
        product_id: "p1".to_owned(),
        quantity: 2,
        ..pb::Order::default()
    }
}

fn complete(id: &str, consumer: &str, seconds: i64) -> pb::Order {
    pb::Order {
        consumer_id: consumer.to_owned(),
        consumer_name: "C".to_owned(),
        salesperson_name: "S".to_owned(),
        product_name: "vivo x21 手机".to_owned(),
        unit_price_cents: Some(5),
        order_time: Some(Timestamp { seconds, nanos: 0 }),
        ..ids_only(id)
    }
}

/// Services with one consumer, one salesperson and one product.
async fn running() -> Result<Running<OrderServices>, Box<dyn Error>> {
    let running = serve::<OrderServices>().await?;
    let stack = || running.stack.clone();
    let consumer = Some(person("c1", "消陈九"));
    let request = pb::CreateConsumerRequest {
        consumer,
        ..Default::default()
    };
    ConsumerServiceClient::new(stack())
        .create_consumer(request)
        .await?;
    let salesperson = Some(person("s1", "售楚十"));
    let request = pb::CreateSalespersonRequest {
        salesperson,
        ..Default::default()
    };
    SalespersonServiceClient::new(stack())
        .create_salesperson(request)
        .await?;
    let product = pb::Product {
        product_id: "p1".to_owned(),
        name: "vivo x21 手机".to_owned(),
        brand: "vivo".to_owned(),
        r#type: "手机".to_owned(),
        unit_price_cents: Some(249_899),
        ..pb::Product::default()
    };
    let request = pb::CreateProductRequest {
        product: Some(product),
        ..Default::default()
    };
    ProductServiceClient::new(stack()).create_product(request).await?;
    Ok(running)
}

fn create(order: pb::Order) -> pb::CreateOrderRequest {
    pb::CreateOrderRequest {
        order: Some(order),
        ..Default::default()
    }
}

async fn create_all(orders: &mut OrderServiceClient<Stack>, all: Vec<pb::Order>) -> Result<i64, Status> {
    let request = pb::BatchCreateOrdersRequest {
        orders: all,
        omit_resources: true,
        ..Default::default()
    };
    let created = orders.batch_create_orders(request).await?.into_inner();
    assert_eq!(created.orders, [], "omitted");
    Ok(created.sequence)
}

#[tokio::test]
async fn an_order_with_ids_alone_is_filled_in_once() -> TestResult {
    let running = running().await?;
    let mut orders = OrderServiceClient::new(running.stack.clone());
    let request = pb::CreateOrderRequest {
        request_id: "6f1c9a7e-0f0e-4c57-9d5c-3b8f6a2b1c4d".to_owned(),
        ..create(ids_only("o1"))
    };
    let created = orders.create_order(request.clone()).await?.into_inner();
    let order = created.order.clone().ok_or("an order")?;
    assert_eq!(
        (order.consumer_name.as_str(), order.salesperson_name.as_str()),
        ("消陈九", "售楚十")
    );
    assert_eq!(
        (
            order.product_name.as_str(),
            order.product_brand.as_str(),
            order.product_type.as_str()
        ),
        ("vivo x21 手机", "vivo", "手机")
    );
    assert_eq!(
        (order.unit_price_cents, order.total_price_cents),
        (Some(249_899), Some(499_798))
    );
    assert_eq!(order.revision, created.sequence);
    assert!(order.order_time.is_some() && order.create_time.is_some());
    // A retry gives the first answer again; other content under the same id is refused.
    assert_eq!(orders.create_order(request.clone()).await?.into_inner(), created);
    let other = pb::CreateOrderRequest {
        order: Some(ids_only("o2")),
        ..request
    };
    let refused = orders
        .create_order(other)
        .await
        .expect_err("the request id is used");
    assert_eq!(
        reason(&refused),
        (Code::InvalidArgument, "REQUEST_ID_REUSED".to_owned())
    );
    Ok(())
}

#[tokio::test]
async fn a_retry_is_answered_although_what_it_refers_to_is_gone() -> TestResult {
    let running = running().await?;
    let mut orders = OrderServiceClient::new(running.stack.clone());
    let one = pb::CreateOrderRequest {
        request_id: "0b1d5d5e-55ad-4f4c-8d0e-3f6c1b7a9e01".to_owned(),
        ..create(ids_only("o1"))
    };
    let batch = pb::BatchCreateOrdersRequest {
        request_id: "0b1d5d5e-55ad-4f4c-8d0e-3f6c1b7a9e02".to_owned(),
        orders: vec![ids_only("o2"), ids_only("o3")],
        ..Default::default()
    };
    let first = orders.create_order(one.clone()).await?.into_inner();
    let firsts = orders.batch_create_orders(batch.clone()).await?.into_inner();
    let delete = pb::DeleteProductRequest {
        product_id: "p1".to_owned(),
        ..Default::default()
    };
    let mut products = ProductServiceClient::new(running.stack.clone());
    products.delete_product(delete).await?;
    assert_eq!(orders.create_order(one).await?.into_inner(), first);
    assert_eq!(orders.batch_create_orders(batch).await?.into_inner(), firsts);
    let fresh = orders.create_order(create(ids_only("o4"))).await;
    let fresh = fresh.expect_err("the product is gone");
    assert_eq!(
        reason(&fresh),
        (Code::FailedPrecondition, "UNKNOWN_REFERENCE".to_owned())
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_is_answered_alike_when_the_log_has_forgotten_it() -> TestResult {
    let running = running().await?;
    let mut orders = OrderServiceClient::new(running.stack.clone());
    let one = pb::CreateOrderRequest {
        request_id: "0b1d5d5e-55ad-4f4c-8d0e-3f6c1b7a9e01".to_owned(),
        ..create(ids_only("o1"))
    };
    let batch = pb::BatchCreateOrdersRequest {
        request_id: "0b1d5d5e-55ad-4f4c-8d0e-3f6c1b7a9e02".to_owned(),
        orders: vec![ids_only("o2"), complete("o3", "c9", 7), ids_only("o4")],
        ..Default::default()
    };
    let short = pb::BatchCreateOrdersRequest {
        request_id: "0b1d5d5e-55ad-4f4c-8d0e-3f6c1b7a9e03".to_owned(),
        orders: vec![ids_only("o5")],
        omit_resources: true,
    };
    let first = orders.create_order(one.clone()).await?.into_inner();
    let firsts = orders.batch_create_orders(batch.clone()).await?.into_inner();
    let shorts = orders.batch_create_orders(short.clone()).await?.into_inner();
    let update = pb::UpdateOrderRequest {
        order: Some(pb::Order {
            paid: true,
            ..ids_only("o2")
        }),
        update_mask: mask(&["paid"]),
        ..Default::default()
    };
    orders.update_order(update).await?;
    for order_id in ["o1", "o4", "o5"].map(str::to_owned) {
        let etag = String::new();
        orders
            .delete_order(pb::DeleteOrderRequest { order_id, etag })
            .await?;
    }
    let delete = pb::DeleteProductRequest {
        product_id: "p1".to_owned(),
        ..Default::default()
    };
    let mut products = ProductServiceClient::new(running.stack.clone());
    products.delete_product(delete).await?;
    drop((orders, products));

    let running = reopen_trimmed(running).await?;
    let mut orders = OrderServiceClient::new(running.stack.clone());
    let again = orders.create_order(one).await?.into_inner();
    assert_eq!(again.encode_to_vec(), first.encode_to_vec());
    let again = orders.batch_create_orders(batch).await?.into_inner();
    assert_eq!(again.encode_to_vec(), firsts.encode_to_vec());
    let again = orders.batch_create_orders(short).await?.into_inner();
    assert_eq!(again.encode_to_vec(), shorts.encode_to_vec());
    Ok(())
}

/// Attempts at one request that meet, while what it refers to goes away: all of them are answered alike.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attempts_that_meet_are_answered_alike() -> TestResult {
    let running = running().await?;
    let mut answered = [0, 0];
    for round in 0..60_u32 {
        let product_id = format!("q{round}");
        let product = pb::Product {
            product_id: product_id.clone(),
            name: "vivo".to_owned(),
            unit_price_cents: Some(7),
            ..pb::Product::default()
        };
        let mut products = ProductServiceClient::new(running.stack.clone());
        let request = pb::CreateProductRequest {
            product: Some(product),
            ..Default::default()
        };
        products.create_product(request).await?;
        let request = pb::CreateOrderRequest {
            request_id: format!("0b1d5d5e-55ad-4f4c-8d0e-{round:012}"),
            ..create(pb::Order {
                product_id: product_id.clone(),
                ..ids_only(&format!("o{round}"))
            })
        };
        let attempts: Vec<_> = (0..4)
            .map(|_| {
                let mut orders = OrderServiceClient::new(running.stack.clone());
                let request = request.clone();
                tokio::spawn(async move { orders.create_order(request).await })
            })
            .collect();
        for _ in 0..round % 6 {
            tokio::task::yield_now().await;
        }
        let request = pb::DeleteProductRequest {
            product_id,
            ..Default::default()
        };
        products.delete_product(request).await?;
        let mut answers = Vec::new();
        for attempt in attempts {
            answers.push(match attempt.await? {
                Ok(created) => Ok(created.into_inner()),
                Err(refused) => Err(reason(&refused)),
            });
        }
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
        answered[usize::from(answers[0].is_ok())] += 1;
    }
    println!("refused and created: {answered:?}");
    Ok(())
}

#[tokio::test]
async fn an_unknown_reference_is_named_and_nothing_is_written() -> TestResult {
    let running = running().await?;
    let mut orders = OrderServiceClient::new(running.stack.clone());
    let unknown = pb::Order {
        product_id: "p9".to_owned(),
        ..ids_only("o2")
    };
    let batch = pb::BatchCreateOrdersRequest {
        orders: vec![ids_only("o1"), unknown],
        ..Default::default()
    };
    let refused = orders
        .batch_create_orders(batch)
        .await
        .expect_err("p9 is unknown");
    assert_eq!(
        reason(&refused),
        (Code::FailedPrecondition, "UNKNOWN_REFERENCE".to_owned())
    );
    assert!(
        refused.message().contains("p9") && refused.message().contains("orders[1].product_id"),
        "{refused:?}"
    );
    let order_ids = vec!["o1".to_owned(), "o2".to_owned()];
    let request = pb::BatchGetOrdersRequest {
        order_ids: order_ids.clone(),
        min_sequence: 0,
    };
    let read = orders.batch_get_orders(request).await?.into_inner();
    assert_eq!((read.orders, read.missing_ids), (Vec::new(), order_ids));
    // What is complete is taken as it is.
    orders.create_order(create(complete("o3", "c9", 1))).await?;
    Ok(())
}

#[tokio::test]
async fn validation_alone_writes_nothing() -> TestResult {
    let running = running().await?;
    let mut orders = OrderServiceClient::new(running.stack.clone());
    let request = pb::CreateOrderRequest {
        validate_only: true,
        ..create(ids_only("o1"))
    };
    let order = orders
        .create_order(request)
        .await?
        .into_inner()
        .order
        .ok_or("an order")?;
    assert_eq!((order.total_price_cents, order.revision), (Some(499_798), 0));
    let request = pb::GetOrderRequest {
        order_id: "o1".to_owned(),
        min_sequence: 0,
    };
    let refused = orders.get_order(request).await.expect_err("it wasn't written");
    assert_eq!(reason(&refused), (Code::NotFound, "ORDER_NOT_FOUND".to_owned()));
    Ok(())
}

#[tokio::test]
async fn a_consumers_orders_are_listed_newest_first() -> TestResult {
    let running = running().await?;
    let mut orders = OrderServiceClient::new(running.stack.clone());
    let times = [30, 10, 50, 20, 40];
    let mine = times.map(|seconds| complete(&format!("o{seconds}"), "c1", seconds));
    let others = [complete("o60", "c10", 60), complete("o61", "c", 61)];
    create_all(&mut orders, mine.into_iter().chain(others).collect()).await?;
    let mut listed = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = pb::ListConsumerOrdersRequest {
            consumer_id: "c1".to_owned(),
            page_size: 2,
            page_token,
            min_sequence: 0,
        };
        let page = orders.list_consumer_orders(request).await?.into_inner();
        listed.extend(page.orders.into_iter().map(|order| order.order_id));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    assert_eq!(listed, ["o50", "o40", "o30", "o20", "o10"]);
    let request = pb::ListConsumerOrdersRequest {
        consumer_id: "nobody".to_owned(),
        ..Default::default()
    };
    assert_eq!(
        orders.list_consumer_orders(request).await?.into_inner().orders,
        []
    );
    Ok(())
}

#[tokio::test]
async fn an_update_is_found_and_a_stale_etag_is_refused() -> TestResult {
    let running = running().await?;
    let mut orders = OrderServiceClient::new(running.stack.clone());
    let created = orders.create_order(create(ids_only("o1"))).await?.into_inner();
    let first = created.order.ok_or("an order")?;
    let update = pb::UpdateOrderRequest {
        order: Some(pb::Order {
            order_id: "o1".to_owned(),
            product_type: "phone".to_owned(),
            ..pb::Order::default()
        }),
        update_mask: mask(&["product_type"]),
        etag: first.etag.clone(),
    };
    let updated = orders.update_order(update.clone()).await?.into_inner();
    for (text, hits) in [("phone", 1), ("手机", 0)] {
        let request = pb::SearchOrdersRequest {
            search: search("product_type", text, updated.sequence),
        };
        let found = orders.search_orders(request).await?.into_inner();
        assert_eq!(found.hits.len(), hits, "{text}");
    }
    let refused = orders.update_order(update).await.expect_err("the etag is stale");
    assert_eq!(reason(&refused), (Code::Aborted, "ETAG_MISMATCH".to_owned()));
    let delete = |etag: &str| pb::DeleteOrderRequest {
        order_id: "o1".to_owned(),
        etag: etag.to_owned(),
    };
    let refused = orders
        .delete_order(delete(&first.etag))
        .await
        .expect_err("the etag is stale");
    assert_eq!(reason(&refused), (Code::Aborted, "ETAG_MISMATCH".to_owned()));
    orders.delete_order(delete("")).await?;
    Ok(())
}

#[tokio::test]
async fn every_order_is_exported_and_a_watch_ends_with_the_drain() -> TestResult {
    let running = running().await?;
    let mut orders = OrderServiceClient::new(running.stack.clone());
    let all = (0..150).map(|number| complete(&format!("o{number}"), "c1", number));
    let sequence = create_all(&mut orders, all.collect()).await?;
    let mut blocks = orders
        .export_orders(pb::ExportOrdersRequest::default())
        .await?
        .into_inner();
    let mut exported = 0;
    while let Some(block) = blocks.message().await? {
        exported += block.orders.len();
    }
    assert_eq!(exported, 150);

    let request = pb::WatchOrdersRequest {
        after_sequence: Some(0),
    };
    let mut events = orders.watch_orders(request).await?.into_inner();
    let mut kinds = Vec::new();
    while let Some(event) = events.message().await? {
        kinds.extend(event.changes.iter().map(pb::OrderChange::kind));
        if event.sequence >= sequence {
            break;
        }
    }
    assert_eq!(kinds, [ChangeKind::Created; 150]);
    running.draining.cancel();
    let end = loop {
        match events.message().await {
            Ok(Some(event)) => assert_eq!(event.changes, []),
            Ok(None) => return Err("the watch ended without a word".into()),
            Err(status) => break status,
        }
    };
    assert_eq!(end.code(), Code::Unavailable, "{end:?}");
    Ok(())
}

#[tokio::test]
async fn product_names_are_suggested_in_alphabetical_order() -> TestResult {
    let running = running().await?;
    let mut products = ProductServiceClient::new(running.stack.clone());
    let named = ["Vivo X20", "vivo x21 手机", "VIVO", "oppo"];
    let request = pb::BatchCreateProductsRequest {
        products: named
            .iter()
            .zip(2..)
            .map(|(name, number)| pb::Product {
                product_id: format!("p{number}"),
                name: (*name).to_owned(),
                r#type: if *name == "VIVO" { "电脑" } else { "手机" }.to_owned(),
                ..pb::Product::default()
            })
            .collect(),
        ..Default::default()
    };
    let created = products.batch_create_products(request).await?.into_inner();
    let phone = Query {
        kind: Some(query::Kind::Term(TermQuery {
            field: "type".to_owned(),
            value: Some(Value {
                kind: Some(value::Kind::StringValue("手机".to_owned())),
            }),
            weight: None,
        })),
    };
    for (prefix, query, expected, corrected) in [
        ("vi", None, &["VIVO", "Vivo X20", "vivo x21 手机"][..], false),
        ("VIVO ", Some(phone), &["Vivo X20", "vivo x21 手机"], false),
        ("ovpo", None, &["oppo"], true),
    ] {
        let request = pb::SuggestProductsRequest {
            prefix: prefix.to_owned(),
            query,
            min_sequence: created.sequence,
            ..Default::default()
        };
        let answer = products.suggest_products(request).await?.into_inner();
        let names: Vec<_> = answer.suggestions.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(
            (names.as_slice(), answer.corrected),
            (expected, corrected),
            "{prefix}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn an_order_of_a_product_without_a_price_has_to_say_it() -> TestResult {
    let running = running().await?;
    let request = pb::CreateProductRequest {
        product: Some(pb::Product {
            product_id: "p2".to_owned(),
            name: "to be had on request".to_owned(),
            ..pb::Product::default()
        }),
        ..Default::default()
    };
    ProductServiceClient::new(running.stack.clone())
        .create_product(request)
        .await?;
    let mut orders = OrderServiceClient::new(running.stack.clone());
    let order = pb::Order {
        product_id: "p2".to_owned(),
        ..ids_only("o1")
    };
    let refused = orders.create_order(create(order.clone())).await;
    let refused = refused.expect_err("nobody says what it costs");
    let violations = refused
        .get_details_bad_request()
        .ok_or("what is wrong")?
        .field_violations;
    let fields: Vec<_> = violations
        .iter()
        .map(|violation| violation.field.as_str())
        .collect();
    assert_eq!(fields, ["order.unit_price_cents"]);
    let order = pb::Order {
        unit_price_cents: Some(0),
        ..order
    };
    let given = orders.create_order(create(order)).await?.into_inner().order;
    assert_eq!(given.ok_or("an order")?.total_price_cents, Some(0), "a gift");
    Ok(())
}

//! Metrics say what happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use souk_e2e::data::{self, SeededRandom};
use souk_e2e::scrape::Scrape;
use souk_proto::index::v1::UpdateIndexRequest;
use souk_proto::index::v1::index_service_client::IndexServiceClient;
use souk_proto::order::v1::BatchCreateOrdersRequest;
use souk_proto::order::v1::order_service_client::OrderServiceClient;
use souk_proto::search::v1::index_change::Kind;
use souk_proto::search::v1::{AddIndexField, IndexChange, IndexFieldType};
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use souk_proto::shop::v1::{BatchCreateShopsRequest, CreateShopRequest, GetShopRequest, WatchShopsRequest};
use souk_proto::r#type::v1::{Value, value};
use tonic::Code;
use tonic::transport::Channel;

use super::souk::Souk;

const SHOP: (&str, &str) = ("service_name", "souk-shop");
const SHOPS: (&str, &str) = ("db_collection_name", "shops");
const GATEWAY: (&str, &str) = ("service_name", "souk-gateway");

async fn create(
    shops: &mut ShopServiceClient<Channel>,
    random: &mut SeededRandom,
    number: u64,
) -> anyhow::Result<()> {
    let shop = Some(data::shop(number, random));
    let request = CreateShopRequest {
        shop,
        ..Default::default()
    };
    shops.create_shop(request).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_calls_and_documents_are_counted() -> anyhow::Result<()> {
    const WRITES: u64 = 20;
    let souk = Souk::start(&[], &[]).await?;
    let mut shops = ShopServiceClient::new(souk.channel()?);
    let mut random = SeededRandom::new(7);
    let syncs = |scrape: &Scrape| {
        scrape
            .sum("souk_store_sync_duration_seconds_count", &[SHOP])
            .unwrap_or(0.0)
    };
    let before = syncs(&souk.scrape().await?);
    for number in 0..WRITES {
        create(&mut shops, &mut random, number).await?;
    }
    let missing = shops
        .get_shop(GetShopRequest {
            shop_id: "nobody".to_owned(),
            ..Default::default()
        })
        .await
        .expect_err("there is none");
    assert_eq!(missing.code(), Code::NotFound);
    let wrote = WRITES as f64;
    let scrape = souk
        .wait_for("every shop in the index", |scrape| {
            scrape.sum("souk_index_documents", &[SHOP, SHOPS]) == Some(wrote)
        })
        .await?;
    // One after the other: each of them is a group with a sync of its own.
    assert!(syncs(&scrape) - before >= wrote, "{}", syncs(&scrape));
    let count = |name: &str, labels: &[(&str, &str)]| scrape.sum(name, labels);
    let created = ("rpc_method", "souk.shop.v1.ShopService/CreateShop");
    let got = ("rpc_method", "souk.shop.v1.ShopService/GetShop");
    for service in [SHOP, GATEWAY] {
        let name = "rpc_server_call_duration_seconds_count";
        assert_eq!(
            count(name, &[service, created, ("rpc_status_code", "OK")]),
            Some(wrote)
        );
        assert_eq!(
            count(name, &[service, got, ("rpc_status_code", "NOT_FOUND")]),
            Some(1.0)
        );
    }
    assert_eq!(
        count("rpc_client_call_duration_seconds_count", &[GATEWAY, created]),
        Some(wrote)
    );
    assert_eq!(
        count(
            "db_client_operation_duration_seconds_count",
            &[SHOP, SHOPS, ("db_operation_name", "commit")]
        ),
        Some(wrote)
    );
    assert!(
        count("rpc_server_response_size_bytes_sum", &[SHOP, created])
            .is_some_and(|bytes| bytes > 100.0 * wrote)
    );
    assert_eq!(count("souk_store_writable", &[SHOP]), Some(1.0));
    assert_eq!(count("souk_index_serving", &[SHOP, SHOPS]), Some(1.0));
    assert_eq!(count("souk_index_weight", &[SHOP, SHOPS]), Some(100.0));
    assert_eq!(count("souk_index_misfits_total", &[SHOP, SHOPS]), Some(0.0));
    assert!(count("souk_store_disk_used_bytes", &[SHOP]).is_some_and(|bytes| bytes > 0.0));
    assert!(count("souk_store_disk_free_bytes", &[SHOP]).is_some_and(|bytes| bytes > 0.0));
    assert_eq!(count("souk_gateway_backend_serving", &[]), Some(4.0));
    assert!(count("souk_server_connections", &[GATEWAY]).is_some_and(|open| open >= 1.0));
    let examples = scrape.samples().iter().filter(|sample| {
        sample.name == "rpc_server_call_duration_seconds_bucket"
            && sample.trace.as_ref().is_some_and(|trace| trace.len() == 32)
    });
    assert!(examples.count() > 0, "buckets have traces");
    souk.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lag_rises_while_an_index_is_behind_and_goes_back_to_nothing() -> anyhow::Result<()> {
    let souk = Souk::start(&[], &[]).await?;
    let done = Arc::new(AtomicBool::new(false));
    let mut shops = ShopServiceClient::new(souk.channel()?);
    let writing = tokio::spawn({
        let done = Arc::clone(&done);
        async move {
            let mut random = SeededRandom::new(8);
            let mut written = 0_u64;
            while !done.load(Ordering::Acquire) {
                let batch = (written..written + 200).map(|number| data::shop(number, &mut random));
                let request = BatchCreateShopsRequest {
                    shops: batch.collect(),
                    omit_resources: true,
                    ..Default::default()
                };
                shops.batch_create_shops(request).await?;
                written += 200;
            }
            anyhow::Ok(written)
        }
    });
    let behind = souk
        .wait_for("a lag", |scrape| {
            let lag = |name| scrape.sum(name, &[SHOP, SHOPS]).unwrap_or(0.0);
            lag("souk_index_lag_changes") > 0.0 && lag("souk_index_lag_time_seconds") > 0.0
        })
        .await;
    done.store(true, Ordering::Release);
    let written = writing.await??;
    let behind = behind?;
    assert!(
        behind.sum("souk_store_sequence", &[SHOP]) >= behind.sum("souk_index_lag_changes", &[SHOP, SHOPS])
    );
    let after = souk
        .wait_for("no lag", |scrape| {
            let lag = |name| scrape.sum(name, &[SHOP, SHOPS]);
            let documents = scrape.sum("souk_index_documents", &[SHOP, SHOPS]);
            lag("souk_index_lag_changes") == Some(0.0)
                && lag("souk_index_lag_time_seconds") == Some(0.0)
                && documents == Some(written as f64)
        })
        .await?;
    assert!(after.sum("souk_index_apply_duration_seconds_count", &[SHOP, SHOPS]) > Some(0.0));
    assert!(after.sum("souk_index_segments", &[SHOP, SHOPS]) >= Some(1.0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_shed_is_counted_and_what_waits_is_seen() -> anyhow::Result<()> {
    let limits = ["server.rate.calls_per_second=1", "server.rate.burst=2"];
    let souk = Souk::start(&["--set", limits[0], "--set", limits[1]], &[]).await?;
    let mut shops = ShopServiceClient::new(souk.channel()?);
    let mut shed = 0.0;
    for _ in 0..20 {
        let request = GetShopRequest {
            shop_id: "nobody".to_owned(),
            ..Default::default()
        };
        let refused = shops.get_shop(request).await.expect_err("there is none");
        shed += f64::from(u8::from(refused.code() == Code::ResourceExhausted));
    }
    assert!(shed > 0.0, "twenty calls at once are too many");
    let scrape = souk.scrape().await?;
    let counted = scrape.sum("souk_server_sheds_total", &[("error_type", "RATE_LIMIT")]);
    assert_eq!(counted, Some(shed));
    assert_eq!(
        scrape.sum("souk_server_sheds_total", &[("error_type", "CONCURRENCY_LIMIT")]),
        Some(0.0)
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_watches_are_seen_while_they_are_open() -> anyhow::Result<()> {
    let souk = Souk::start(&[], &[]).await?;
    let mut shops = ShopServiceClient::new(souk.channel()?);
    let streams = |scrape: &Scrape| scrape.sum("souk_watch_streams", &[SHOP]);
    assert_eq!(streams(&souk.scrape().await?), Some(0.0));
    let watch = shops.watch_shops(WatchShopsRequest::default()).await?;
    let open = souk
        .wait_for("the watch", |scrape| streams(scrape) == Some(1.0))
        .await?;
    assert!(open.sum("souk_server_calls_active", &[SHOP]) >= Some(1.0));
    drop(watch);
    souk.wait_for("the end of the watch", |scrape| {
        streams(scrape) == Some(0.0) && scrape.sum("souk_server_calls_active", &[SHOP]) == Some(0.0)
    })
    .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_that_fit_no_field_are_counted() -> anyhow::Result<()> {
    const ORDERS: u64 = 12;
    let souk = Souk::start(&[], &[]).await?;
    let mut random = SeededRandom::new(9);
    let coloured = |number| {
        let mut order = data::order(number, &mut random);
        let red = Value {
            kind: Some(value::Kind::StringValue("red".to_owned())),
        };
        order.attributes.insert("colour".to_owned(), red);
        order
    };
    let request = BatchCreateOrdersRequest {
        orders: (0..ORDERS).map(coloured).collect(),
        omit_resources: true,
        ..Default::default()
    };
    let mut orders = OrderServiceClient::new(souk.channel()?);
    orders.batch_create_orders(request).await?;
    let add = AddIndexField {
        field: "colour".to_owned(),
        r#type: IndexFieldType::Long.into(),
        ..AddIndexField::default()
    };
    let request = UpdateIndexRequest {
        index: "orders".to_owned(),
        changes: vec![IndexChange {
            kind: Some(Kind::AddField(add)),
        }],
        ..UpdateIndexRequest::default()
    };
    let mut indexes = IndexServiceClient::new(souk.channel()?);
    indexes.update_index(request).await?;
    let labels = [("service_name", "souk-order"), ("db_collection_name", "orders")];
    souk.wait_for("a misfit of each order", |scrape| {
        scrape.sum("souk_index_misfits_total", &labels) == Some(ORDERS as f64)
    })
    .await?;
    Ok(())
}

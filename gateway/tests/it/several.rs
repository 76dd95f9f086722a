//! A backend of two processes, restarted one after the other under load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use souk_chassis::config::{ClientConfig, ServerConfig};
use souk_gateway::Gateway;
use souk_gateway::backend::{Backends, Target};
use souk_gateway::config::GatewayConfig;
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;

use crate::backends;
use crate::setting::{Running, any_port, connect, serve, shop_request};

/// Clients that call one after the other.
const CLIENTS: usize = 8;

/// Calls between two steps of the restart.
const CALLS: u32 = 200;

async fn shop(address: std::net::SocketAddr) -> Running {
    let server = ServerConfig::behind_a_gateway();
    serve(
        backends::shop(&server).stack,
        &server,
        address,
        Duration::from_secs(5),
    )
    .await
}

#[tokio::test]
async fn a_rolling_restart_costs_no_safe_call() {
    crate::traces::install();
    let mut shops = [shop(any_port()).await, shop(any_port()).await];
    let uris = shops
        .each_ref()
        .map(|shop| format!("http://{}", shop.address))
        .join(",");
    let backends = Backends::default().with("shop", Target::remote(&uris).expect("addresses"));
    let config = GatewayConfig {
        client: ClientConfig {
            connections: 2,
            ..ClientConfig::default()
        },
        ..GatewayConfig::default()
    };
    let stack = Gateway::new(&config, backends).expect("good backends").stack;
    let gateway = serve(stack, &config.server, any_port(), Duration::from_secs(5)).await;

    let (calls, stop) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let mut shops = ShopServiceClient::new(connect(gateway.address));
            let (calls, stop) = (Arc::clone(&calls), Arc::clone(&stop));
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    shops.get_shop(shop_request("h1")).await?;
                    calls.fetch_add(1, Ordering::Relaxed);
                }
                Ok::<_, tonic::Status>(())
            })
        })
        .collect();
    let more_calls = async || {
        let before = calls.load(Ordering::Relaxed);
        let done = || {
            calls.load(Ordering::Relaxed) - before >= CALLS
                || clients.iter().any(|client| client.is_finished())
        };
        while !done() {
            tokio::task::yield_now().await;
        }
    };
    more_calls().await;
    for shop_process in &mut shops {
        let address = shop_process.address;
        shop_process.stop();
        let ended = (&mut shop_process.task).await.expect("no panic");
        assert_eq!(ended.calls_cut_off, 0);
        more_calls().await;
        *shop_process = shop(address).await;
        more_calls().await;
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.expect("no panic").expect("every call is answered");
    }
}

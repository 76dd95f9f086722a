//! The gateway as a process, with TLS in front and mutual TLS behind.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use souk_chassis::client::channel;
use souk_chassis::config::{ClientConfig, ClientTlsConfig, ServerConfig, ServerTlsConfig};
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use tonic::{Code, Status};

use crate::backends;
use crate::certificates::Authority;
use crate::process::{listening, spawn, terminate};
use crate::setting::{any_port, serve, shop_request};

/// Gets a shop over a connection of its own.
async fn get_shop(address: SocketAddr, ca: &Path, server_name: &str) -> Result<String, Status> {
    let config = ClientConfig {
        tls: ClientTlsConfig {
            ca: ca.to_owned(),
            server_name: server_name.to_owned(),
            ..ClientTlsConfig::default()
        },
        ..ClientConfig::default()
    };
    let uri = format!("https://{address}").parse().expect("an address");
    let mut shops = ShopServiceClient::new(channel(&uri, &config).expect("good files"));
    let shop = shops.get_shop(shop_request("h1")).await?.into_inner().shop;
    Ok(shop.expect("a shop").shop_id)
}

#[tokio::test]
async fn tls_goes_all_the_way_and_new_certificates_need_no_restart() {
    let (inside, outside) = (Authority::new(), Authority::new());
    let (cert, key) = inside.issue("shop", &["127.0.0.1"]);
    let server = ServerConfig {
        tls: ServerTlsConfig {
            cert,
            key,
            client_ca: inside.ca(),
            ..ServerTlsConfig::default()
        },
        ..ServerConfig::default()
    };
    let shop = serve(
        backends::shop(&server).stack,
        &server,
        any_port(),
        Duration::from_secs(5),
    )
    .await;
    let (gateway_cert, gateway_key) = inside.issue("gateway", &["gateway.internal"]);
    let (cert, key) = outside.issue("front", &["one.example"]);
    let text = |path: &Path| path.display().to_string();
    let files = [&cert, &key, &inside.ca(), &gateway_cert, &gateway_key].map(|file| text(file));
    let [cert, key, ca, gateway_cert, gateway_key] = files.each_ref().map(String::as_str);
    let shop_uri = format!("shop=https://{}", shop.address);
    let flags = [
        ["--listen", "127.0.0.1:0"],
        ["--backend", &shop_uri],
        ["--tls-cert", cert],
        ["--tls-key", key],
        ["--backend-ca", ca],
        ["--backend-cert", gateway_cert],
        ["--backend-key", gateway_key],
    ];
    let mut gateway = spawn(flags.as_flattened(), &[]);
    let (address, _stdout) = listening(&mut gateway);

    let got = get_shop(address, &outside.ca(), "one.example").await;
    assert_eq!(got.expect("a shop"), "h1");
    let status = get_shop(address, &inside.ca(), "one.example").await;
    assert_eq!(status.expect_err("of somebody else").code(), Code::Unavailable);

    outside.issue("front", &["two.example"]);
    let id = gateway.0.id().to_string();
    let hangup = Command::new("kill").args(["-HUP", &id]).status().expect("kill");
    assert!(hangup.success());
    // Taken up by the signal or, a second later, with a connection: which of them comes first doesn't matter.
    let renewed = async {
        while get_shop(address, &outside.ca(), "two.example").await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    let renewed = tokio::time::timeout(Duration::from_secs(20), renewed).await;
    renewed.expect("the new certificate is in force");
    let status = get_shop(address, &outside.ca(), "one.example").await;
    assert_eq!(status.expect_err("the old name").code(), Code::Unavailable);
    assert_eq!(terminate(gateway).await, Some(0));
}

#[tokio::test]
async fn what_others_can_reach_needs_tls_or_a_word() {
    let arguments = [
        "--listen",
        "0.0.0.0:0",
        "--backend",
        "shop=http://127.0.0.1:9",
        "--insecure-allow-anonymous",
    ];
    let (code, text) = crate::process::fails(&arguments);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("--tls-cert") && text.contains("--allow-plaintext"),
        "{text}"
    );
    // Plain text is one thing, callers that nobody knows are another: each has its word.
    let (code, text) = crate::process::fails(&[&arguments[..4], &["--allow-plaintext"]].concat());
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("--insecure-allow-anonymous"), "{text}");
    let mut process = spawn(&[&arguments[..], &["--allow-plaintext"]].concat(), &[]);
    listening(&mut process);
    assert_eq!(terminate(process).await, Some(0));
}

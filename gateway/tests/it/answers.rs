//! What a backend answers arrives as it is: messages, metadata, streams, errors; what nobody serves has words.

use souk_proto::media::v1::GetMediaRequest;
use souk_proto::order::v1::GetOrderRequest;
use souk_proto::order::v1::order_service_client::OrderServiceClient;
use souk_proto::shop::v1::{DeleteShopRequest, ExportShopsRequest};
use tonic::metadata::MetadataValue;
use tonic::{Code, Request};

use crate::backends::{EXPORTED, FAILING, MISSING};
use crate::setting::{BOTH, Setting, info, shop_request};

#[tokio::test]
async fn calls_reach_the_backend_of_their_service() {
    for layout in BOTH {
        let setting = Setting::start(layout).await;
        assert_eq!(
            setting.get_shop("h1").await.expect("a shop").shop_id,
            "h1",
            "{layout:?}"
        );
        let request = GetMediaRequest {
            media_id: "m1".to_owned(),
            ..Default::default()
        };
        let media = setting
            .media()
            .get_media(request)
            .await
            .expect("a media item")
            .into_inner();
        assert_eq!(media.media.expect("a media item").media_id, "m1", "{layout:?}");
    }
}

#[tokio::test]
async fn metadata_passes_both_ways() {
    for layout in BOTH {
        let setting = Setting::start(layout).await;
        let mut request = Request::new(shop_request("h1"));
        request
            .metadata_mut()
            .insert("x-echo", MetadataValue::from_static("text"));
        request
            .metadata_mut()
            .insert_bin("x-echo-bin", MetadataValue::from_bytes(&[0, 255]));
        let response = setting.shops().get_shop(request).await.expect("a shop");
        assert_eq!(
            response.metadata().get("x-echo").expect("the header"),
            "text",
            "{layout:?}"
        );
        let bytes = response.metadata().get_bin("x-echo-bin").expect("the header");
        assert_eq!(
            bytes.to_bytes().expect("base64"),
            [0, 255].as_slice(),
            "{layout:?}"
        );
    }
}

#[tokio::test]
async fn an_error_keeps_code_message_and_details() {
    for layout in BOTH {
        let setting = Setting::start(layout).await;
        let status = setting.get_shop(MISSING).await.expect_err("it is missing");
        assert_eq!(
            (status.code(), status.message()),
            (Code::NotFound, "no such shop: 没有"),
            "{layout:?}"
        );
        let info = info(&status);
        assert_eq!(info.reason, "SHOP_NOT_FOUND", "{layout:?}");
        assert_eq!(
            info.metadata.get("shop_id").map(String::as_str),
            Some(MISSING),
            "{layout:?}"
        );
    }
}

#[tokio::test]
async fn a_stream_arrives_whole_and_so_does_its_error() {
    for layout in BOTH {
        let setting = Setting::start(layout).await;
        for (snapshot_token, code) in [("", Code::Ok), (FAILING, Code::DataLoss)] {
            let request = ExportShopsRequest {
                snapshot_token: snapshot_token.to_owned(),
                ..Default::default()
            };
            let mut stream = setting
                .shops()
                .export_shops(request)
                .await
                .expect("a stream")
                .into_inner();
            let mut sequences = Vec::new();
            let end = loop {
                match stream.message().await {
                    Ok(Some(message)) => sequences.push(message.sequence),
                    Ok(None) => break Code::Ok,
                    Err(status) => {
                        assert_eq!(info(&status).reason, "SNAPSHOT_DAMAGED", "{layout:?}");
                        break status.code();
                    }
                }
            };
            assert_eq!((sequences.len(), end), (EXPORTED, code), "{layout:?}");
            assert!(sequences.is_sorted(), "{layout:?}");
        }
    }
}

#[tokio::test]
async fn what_nobody_serves_is_unimplemented_and_says_what_there_is() {
    for layout in BOTH {
        let setting = Setting::start(layout).await;
        let mut orders = OrderServiceClient::new(setting.channel());
        let status = orders
            .get_order(GetOrderRequest::default())
            .await
            .expect_err("no backend");
        assert_eq!(status.code(), Code::Unimplemented, "{layout:?}");
        assert_eq!(info(&status).reason, "SERVICE_UNKNOWN", "{layout:?}");
        for service in [
            "souk.shop.v1.ShopService",
            "souk.media.v1.MediaService",
            "grpc.health.v1.Health",
        ] {
            assert!(
                status.message().contains(service),
                "{layout:?}: {}",
                status.message()
            );
        }
        assert!(
            !status.message().contains("souk.order.v1.Consumer"),
            "{layout:?}: {}",
            status.message()
        );

        // The service is there, and the method in the contract, but its backend doesn't have it.
        let request = DeleteShopRequest::default();
        let status = setting.shops().delete_shop(request).await.expect_err("not built");
        assert_eq!(status.code(), Code::Unimplemented, "{layout:?}");
        assert_eq!(info(&status).domain, "souk", "{layout:?}");
    }
}

#[tokio::test]
async fn an_unknown_method_names_the_known_ones() {
    for layout in BOTH {
        let setting = Setting::start(layout).await;
        let mut grpc = tonic::client::Grpc::new(setting.channel());
        // The second names none.
        for path in ["/souk.shop.v1.ShopService/PaintShop", "/souk.shop.v1.ShopService"] {
            grpc.ready().await.expect("a channel");
            let codec = tonic_prost::ProstCodec::<DeleteShopRequest, DeleteShopRequest>::default();
            let request = Request::new(DeleteShopRequest::default());
            let status = grpc
                .unary(request, http::uri::PathAndQuery::from_static(path), codec)
                .await
                .expect_err("no such method");
            assert_eq!(status.code(), Code::Unimplemented, "{layout:?} {path}");
            assert_eq!(info(&status).reason, "METHOD_UNKNOWN", "{layout:?} {path}");
            assert!(
                status.message().contains("GetShop"),
                "{layout:?} {path}: {}",
                status.message()
            );
        }
    }
}

//! Reflection shows what is routed, and nothing else.

use tokio_stream::StreamExt as _;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1alpha::ServerReflectionRequest as AlphaRequest;
use tonic_reflection::pb::v1alpha::server_reflection_client::ServerReflectionClient as AlphaClient;
use tonic_reflection::pb::v1alpha::server_reflection_request::MessageRequest as AlphaMessageRequest;
use tonic_reflection::pb::v1alpha::server_reflection_response::MessageResponse as AlphaMessageResponse;

use crate::setting::{Layout, Setting};

const ROUTED: [&str; 7] = [
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
    "souk.figures.v1.FiguresService",
    "souk.index.v1.IndexService",
    "souk.media.v1.MediaService",
    "souk.shop.v1.ShopService",
];

async fn ask(setting: &Setting, message: MessageRequest) -> MessageResponse {
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(message),
    };
    let mut client = ServerReflectionClient::new(setting.channel());
    let answers = client.server_reflection_info(tokio_stream::once(request)).await;
    let answer = answers
        .expect("a stream")
        .into_inner()
        .next()
        .await
        .expect("an answer");
    answer.expect("no error").message_response.expect("a message")
}

#[tokio::test]
async fn both_versions_list_the_routed_services() {
    let setting = Setting::start(Layout::Local).await;
    let MessageResponse::ListServicesResponse(list) =
        ask(&setting, MessageRequest::ListServices(String::new())).await
    else {
        panic!("not a list");
    };
    let mut names: Vec<_> = list.service.into_iter().map(|service| service.name).collect();
    names.sort();
    assert_eq!(names, ROUTED);

    let request = AlphaRequest {
        host: String::new(),
        message_request: Some(AlphaMessageRequest::ListServices(String::new())),
    };
    let mut client = AlphaClient::new(setting.channel());
    let answers = client.server_reflection_info(tokio_stream::once(request)).await;
    let answer = answers
        .expect("a stream")
        .into_inner()
        .next()
        .await
        .expect("an answer");
    let Some(AlphaMessageResponse::ListServicesResponse(list)) = answer.expect("no error").message_response
    else {
        panic!("not a list");
    };
    let mut names: Vec<_> = list.service.into_iter().map(|service| service.name).collect();
    names.sort();
    assert_eq!(names, ROUTED);
}

#[tokio::test]
async fn the_types_of_routed_services_are_described() {
    let setting = Setting::start(Layout::Remote).await;
    for symbol in [
        "souk.shop.v1.ShopService",
        "souk.search.v1.Query",
        "google.rpc.ErrorInfo",
    ] {
        let answer = ask(&setting, MessageRequest::FileContainingSymbol(symbol.to_owned())).await;
        assert!(
            matches!(answer, MessageResponse::FileDescriptorResponse(_)),
            "{symbol}: {answer:?}"
        );
    }
}

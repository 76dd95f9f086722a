use std::time::Duration;

use http::Response;
use tonic_types::StatusExt as _;
use tower::Layer as _;

use super::*;
use crate::layers::testing::{CHECK, answering, call, methods, read_to_end, request, stream};

fn service(answer: impl Fn() -> Response<Body> + Clone + Send + Sync + 'static) -> impl Inner {
    ErrorInfoLayer(methods()).layer(answering(move |_| std::future::ready(answer())))
}

async fn ends(path: &str, answer: impl Fn() -> Response<Body> + Clone + Send + Sync + 'static) -> Status {
    read_to_end(call(&service(answer), request(path)).await).await.1
}

#[tokio::test]
async fn a_bare_error_gets_its_code_as_reason_in_headers_and_trailers() {
    for streamed in [false, true] {
        let status = ends(CHECK, move || match streamed {
            true => stream(1, Duration::ZERO, Code::ResourceExhausted),
            false => refuse(Status::resource_exhausted("Too many active requests")),
        })
        .await;
        assert_eq!(status.code(), Code::ResourceExhausted);
        let info = status.get_details_error_info().expect("an ErrorInfo");
        assert_eq!(
            (info.reason.as_str(), info.domain.as_str()),
            ("RESOURCE_EXHAUSTED", "souk")
        );
    }
}

#[tokio::test]
async fn a_complete_error_and_a_success_stay_as_they_are() {
    let complete = || StatusBuilder::not_found("ORDER_NOT_FOUND", "no order o1").build();
    let status = ends(CHECK, move || refuse(complete())).await;
    assert_eq!(crate::status::reason(&status).as_deref(), Some("ORDER_NOT_FOUND"));
    let status = ends(CHECK, || stream(2, Duration::ZERO, Code::Ok)).await;
    assert_eq!((status.code(), status.details()), (Code::Ok, &b""[..]));
}

#[tokio::test]
async fn what_the_client_got_wrong_on_the_wire_is_its_mistake() {
    for words in CLIENT_MISTAKES {
        let status = ends(CHECK, move || refuse(Status::internal(format!("{words}: …")))).await;
        assert_eq!(status.code(), Code::InvalidArgument, "{words}");
        assert_eq!(
            crate::status::reason(&status).as_deref(),
            Some("MESSAGE_MALFORMED")
        );
    }
    let status = ends(CHECK, || refuse(Status::internal("something of ours"))).await;
    assert_eq!(status.code(), Code::Internal);
}

#[tokio::test]
async fn a_message_nested_too_deep_is_told_where_it_begins() {
    let words = format!(
        "failed to decode Protobuf message: {}Query.kind: Search.query: SearchShopsRequest.search: recursion limit reached",
        "Query.kind: BoolQuery.must: ".repeat(90)
    );
    let status = ends(CHECK, move || refuse(Status::internal(words.clone()))).await;
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(
        crate::status::reason(&status).as_deref(),
        Some("MESSAGE_TOO_DEEP")
    );
    assert!(
        status
            .message()
            .starts_with("search.query.must is nested deeper than the 100 levels")
    );
    let request = status.get_details_bad_request().expect("a BadRequest");
    assert_eq!(request.field_violations[0].field, "search.query.must");
}

#[tokio::test]
async fn unknown_calls_learn_what_there_is() {
    let unimplemented = || refuse(Status::unimplemented(""));
    let status = ends("/souk.NoService/Do", unimplemented).await;
    assert_eq!(crate::status::reason(&status).as_deref(), Some("SERVICE_UNKNOWN"));
    assert!(
        status.message().contains("grpc.health.v1.Health"),
        "{}",
        status.message()
    );
    let status = ends("/grpc.health.v1.Health/Chuck", unimplemented).await;
    assert_eq!(crate::status::reason(&status).as_deref(), Some("METHOD_UNKNOWN"));
    assert!(
        status.message().contains("Check, List, Watch"),
        "{}",
        status.message()
    );
    let known = ends(CHECK, unimplemented).await;
    assert_eq!(crate::status::reason(&known).as_deref(), Some("UNIMPLEMENTED"));
}

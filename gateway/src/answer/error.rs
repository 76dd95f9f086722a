//! Errors as JSON: `google.rpc.Status` with its details.

use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use prost_reflect::{DescriptorPool, DynamicMessage, Value};
use serde_json::json;
use tonic::body::Body;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use super::{JSON, whole};

/// The client cancelled the call. Not a standard status, but the one that google.rpc.Code gives.
const CLIENT_CLOSED_REQUEST: u16 = 499;

/// `status` as the JSON of `google.rpc.Status`, without the details of types that `pool` doesn't know.
pub(crate) fn json(pool: &DescriptorPool, status: &Status) -> Vec<u8> {
    // For that its type has to be known.
    let has_json = |detail: &DynamicMessage| serde_json::to_writer(std::io::sink(), detail).is_ok();
    let full = pool
        .get_message_by_name("google.rpc.Status")
        .filter(|_| !status.details().is_empty())
        .and_then(|kind| DynamicMessage::decode(kind, status.details()).ok())
        .and_then(|mut message| {
            let details = message.get_field_by_name_mut("details");
            if let Some(details) = details.and_then(Value::as_list_mut) {
                details.retain(|detail| detail.as_message().is_some_and(has_json));
            }
            serde_json::to_vec(&message).ok()
        });
    full.unwrap_or_else(|| {
        let plain = json!({"code": i32::from(status.code()), "message": status.message()});
        plain.to_string().into_bytes()
    })
}

/// The HTTP response to a call that failed with `status`.
pub(crate) fn response(pool: &DescriptorPool, status: &Status) -> Response<Body> {
    failure(status, json(pool, status))
}

/// Like [`response`], with another JSON body for `status`.
pub(crate) fn failure(status: &Status, json: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(whole(json));
    *response.status_mut() = http_status(status.code());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, JSON);
    if status.code() == Code::Unauthenticated {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if let Some(delay) = status.get_details_retry_info().and_then(|info| info.retry_delay) {
        // Whole seconds, rounded up.
        let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// The HTTP status of a code, by google.rpc.Code.
fn http_status(code: Code) -> StatusCode {
    match code {
        Code::Ok => StatusCode::OK,
        Code::Cancelled => StatusCode::from_u16(CLIENT_CLOSED_REQUEST).unwrap_or(StatusCode::BAD_REQUEST),
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => StatusCode::BAD_REQUEST,
        Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::AlreadyExists | Code::Aborted => StatusCode::CONFLICT,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::Unknown | Code::Internal | Code::DataLoss => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use serde_json::Value as Json;
    use tonic_types::pb;

    use super::*;

    fn detail(kind: &str, message: &impl prost::Message) -> prost_types::Any {
        prost_types::Any {
            type_url: format!("type.googleapis.com/{kind}"),
            value: message.encode_to_vec(),
        }
    }

    #[test]
    fn a_detail_of_an_unknown_type_takes_no_other_with_it() {
        let info = pb::ErrorInfo {
            reason: "ORDER_NOT_FOUND".to_owned(),
            ..pb::ErrorInfo::default()
        };
        let resource = pb::ResourceInfo {
            resource_type: "order".to_owned(),
            ..pb::ResourceInfo::default()
        };
        let known = [
            json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "ORDER_NOT_FOUND"}),
            json!({"@type": "type.googleapis.com/google.rpc.ResourceInfo", "resourceType": "order"}),
        ];
        let unknown = detail("of.another.Contract", &info);
        let pool = crate::json::pool(souk_proto::FILE_DESCRIPTOR_SET).expect("our own descriptors");
        let written = |details: Vec<prost_types::Any>| -> Json {
            let full = pb::Status {
                code: Code::NotFound.into(),
                message: "no order".to_owned(),
                details,
            };
            let status = Status::with_details(Code::NotFound, "no order", full.encode_to_vec().into());
            serde_json::from_slice(&json(&pool, &status)).expect("JSON")
        };
        let mixed = vec![
            detail("google.rpc.ErrorInfo", &info),
            unknown.clone(),
            detail("google.rpc.ResourceInfo", &resource),
        ];
        assert_eq!(
            written(mixed),
            json!({"code": 5, "message": "no order", "details": known})
        );
        assert_eq!(written(vec![unknown]), json!({"code": 5, "message": "no order"}));
    }

    #[test]
    fn codes_have_the_status_that_google_gives_them() {
        let statuses: Vec<u16> = (0..=16)
            .map(|code| http_status(Code::from(code)).as_u16())
            .collect();
        assert_eq!(
            statuses,
            [
                200, 499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401
            ]
        );
    }
}

//! Makes responses: status, headers, signature, compression.

use std::io::Write as _;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use http::{HeaderValue, Response, StatusCode, header::AUTHORIZATION};
use md5::{Digest as _, Md5};
use prost::Message;

use crate::error::ServiceError;
use crate::request::{DEFLATE, PREFIX, RequestHead, header};
use crate::signature::{SigningKey, answer_text};
use crate::timestamp;

/// Value of [`header::CONTENT_TYPE`]: clients want the header, whatever its value.
const CONTENT_TYPE: &str = "protocol buffer";
/// Smallest body that is compressed, in bytes.
const COMPRESSED_FROM: usize = 1024;

/// The response to a request, before its headers.
#[derive(Clone, Debug)]
pub struct Answer {
    status: StatusCode,
    body: Bytes,
}

impl Answer {
    /// 200 with a message.
    pub fn ok(message: &impl Message) -> Self {
        Self {
            status: StatusCode::OK,
            body: message.encode_to_vec().into(),
        }
    }

    /// An error, with the HTTP status of its code.
    #[must_use]
    pub fn error(error: &ServiceError) -> Self {
        Self {
            status: error.code.status(),
            body: error.encode(),
        }
    }

    /// The answer as HTTP, signed by `signer`: the request and its signing key, once its signature is verified. Clients accept answers without
    /// a signature for errors alone.
    #[must_use]
    pub fn into_response(
        self,
        request_id: &str,
        now: SystemTime,
        signer: Option<(&RequestHead, &SigningKey)>,
    ) -> Response<Bytes> {
        let md5 = BASE64.encode(Md5::digest(&self.body));
        let date = timestamp::format(now);
        let size = self.body.len().to_string();
        // Sorted by name, as the signature wants them.
        let mut headers = vec![
            (header::CONTENT_MD5, md5.as_str()),
            (header::CONTENT_TYPE, CONTENT_TYPE),
            (header::DATE, date.as_str()),
            (header::REQUEST_ID, request_id),
        ];
        let mut body = self.body;
        let compress = signer.is_some_and(|(head, _)| head.accepts_deflate) && body.len() >= COMPRESSED_FROM;
        if compress && let Some(deflated) = deflate(&body) {
            // The MD5 stays that of the inflated body: clients inflate first.
            body = deflated;
            headers.push((header::RESPONSE_COMPRESS_SIZE, size.as_str()));
            headers.push((header::RESPONSE_COMPRESS_TYPE, DEFLATE));
        }
        debug_assert!(headers.is_sorted(), "{headers:?}");
        debug_assert!(headers.iter().all(|(name, _)| name.starts_with(PREFIX)));
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        if let Some((head, key)) = signer {
            let path = format!("/{}", head.operation.name());
            let signature = key.sign_answer(&answer_text(&path, headers.iter().copied()));
            let authorization = format!("OTS {}:{signature}", head.access_key_id);
            response
                .headers_mut()
                .insert(AUTHORIZATION, header_value(&authorization));
        }
        for (name, text) in headers {
            response.headers_mut().insert(name, header_value(text));
        }
        response
    }
}

/// Text as a header's value. The fallback is never taken: the server's texts are ASCII, and the access key id was a header's value.
fn header_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

fn deflate(bytes: &[u8]) -> Option<Bytes> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

//! The console: a page at `/` that shows what is here. Its files are in the binary.
//!
//! The page is nothing but a client: it calls the RPCs at its own address as everybody does, and everybody may read its files. So a link
//! to it may stand on any page. What it may do in the browser is bounded by its policy: scripts, styles and calls of this server alone.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    ETAG, HeaderName, HeaderValue, IF_NONE_MATCH, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use ring::digest::{SHA256, digest};
use souk_chassis::layers::messages::Encoding;
use souk_console::{FILES, File};
use tonic::body::Body;

use crate::answer::{empty, whole};

/// What the page may do: nothing but what is named.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'",
);

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Of files whose names have a hash of their content.
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// Of those that may be another after the next start: browsers ask whether they are.
const ASK_AGAIN: HeaderValue = HeaderValue::from_static("no-cache");

/// The files of the page by their paths. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Console(Arc<HashMap<&'static str, Kept>>);

/// A file and the tag of its content.
#[derive(Debug)]
struct Kept {
    file: File,
    tag: HeaderValue,
}

impl Console {
    /// All files.
    pub(crate) fn new() -> Self {
        let files = FILES.iter().filter_map(|file| {
            let hash = digest(&SHA256, file.plain);
            let tag = format!("\"{}\"", URL_SAFE_NO_PAD.encode(hash));
            let tag = HeaderValue::try_from(tag).ok()?;
            Some((file.path, Kept { file: *file, tag }))
        });
        Self(Arc::new(files.collect()))
    }

    /// The answer to a request for one of the files; `None` when it isn't for one.
    pub(crate) fn answer<B>(&self, request: &Request<B>) -> Option<Response<Body>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return None;
        }
        let kept = self.0.get(request.uri().path())?;
        let known = request.headers().get(IF_NONE_MATCH);
        let mut response = if known.is_some_and(|known| names(known, &kept.tag)) {
            empty(StatusCode::NOT_MODIFIED)
        } else {
            kept.whole(request)
        };
        kept.describe(response.headers_mut());
        Some(response)
    }
}

impl Kept {
    fn whole<B>(&self, request: &Request<B>) -> Response<Body> {
        let packed = Encoding::Gzip.is_accepted(request.headers(), &ACCEPT_ENCODING);
        let bytes = if packed { self.file.gzip } else { self.file.plain };
        let body = match *request.method() {
            Method::HEAD => Body::empty(),
            _ => whole(bytes),
        };
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.file.content_type));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes.len()));
        if packed {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    }

    /// What holds of the file however it is sent.
    fn describe(&self, headers: &mut HeaderMap) {
        let for_ever = self.file.path.starts_with("/assets/");
        headers.insert(CACHE_CONTROL, if for_ever { FOR_EVER } else { ASK_AGAIN });
        headers.insert(ETAG, self.tag.clone());
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        headers.insert(CONTENT_SECURITY_POLICY, POLICY);
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        for name in [OPENER_POLICY, RESOURCE_POLICY] {
            headers.insert(name, HeaderValue::from_static("same-origin"));
        }
    }
}

/// Whether a list of tags names this one, which proxies may have made a weak one.
fn names(list: &HeaderValue, tag: &HeaderValue) -> bool {
    let (Ok(list), Ok(tag)) = (list.to_str(), tag.to_str()) else {
        return false;
    };
    list.split(',')
        .map(str::trim)
        .any(|one| one.trim_start_matches("W/") == tag)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;
    use http_body_util::BodyExt as _;

    use super::*;

    async fn get(path: &str, headers: &[(HeaderName, &str)]) -> Option<(Response<()>, Vec<u8>)> {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        let answer = Console::new().answer(&request.body(()).expect("a request"))?;
        let (head, body) = answer.into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        Some((Response::from_parts(head, ()), body.to_vec()))
    }

    #[tokio::test]
    async fn the_page_comes_packed_or_plain_with_its_policy() {
        let (plain, page) = get("/", &[]).await.expect("the page");
        let (packed, content) = get("/?x=1", &[(ACCEPT_ENCODING, "gzip, deflate, br, zstd")])
            .await
            .expect("the page");
        assert!(page.starts_with(b"<!doctype html>"));
        assert_eq!(plain.headers().get(CONTENT_ENCODING), None);
        assert_eq!(packed.headers()[CONTENT_ENCODING], "gzip");
        let mut unpacked = Vec::new();
        GzDecoder::new(&content[..])
            .read_to_end(&mut unpacked)
            .expect("gzip");
        assert_eq!(unpacked, page);
        for answer in [plain, packed] {
            assert_eq!(answer.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
            assert_eq!(answer.headers()[CACHE_CONTROL], "no-cache");
            let policy = answer.headers()[CONTENT_SECURITY_POLICY].to_str().expect("text");
            assert!(
                policy.starts_with("default-src 'none'; script-src 'self';"),
                "{policy}"
            );
            assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
        }
    }

    #[tokio::test]
    async fn files_with_a_hash_in_their_names_are_kept_and_others_asked_for_again() {
        for file in FILES {
            let (first, content) = get(file.path, &[]).await.expect("the file");
            assert_eq!(content, file.plain);
            let kept = first.headers()[CACHE_CONTROL]
                .to_str()
                .expect("text")
                .contains("immutable");
            assert_eq!(kept, file.path.starts_with("/assets/"), "{}", file.path);
            let tag = first.headers()[ETAG].to_str().expect("text");
            let (again, nothing) = get(file.path, &[(IF_NONE_MATCH, &format!("\"other\", W/{tag}"))])
                .await
                .expect("the file");
            assert_eq!(
                (again.status(), nothing.len()),
                (StatusCode::NOT_MODIFIED, 0),
                "{}",
                file.path
            );
            let (changed, _) = get(file.path, &[(IF_NONE_MATCH, "\"other\"")])
                .await
                .expect("the file");
            assert_eq!(changed.status(), StatusCode::OK);
        }
    }

    #[tokio::test]
    async fn nothing_else_is_a_file_of_the_page() {
        for path in ["/index.html", "/assets/", "/assets/../", "//", "/v1/orders"] {
            assert!(get(path, &[]).await.is_none(), "{path}");
        }
        let post = Request::post("/").body(()).expect("a request");
        assert!(Console::new().answer(&post).is_none());
    }
}

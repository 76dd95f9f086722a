//! Heads and bodies of requests, and answers to them.

use std::io::{Read as _, Write as _};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use md5::{Digest as _, Md5};
use ring::hmac;
use souk_tablestore::messages::ListTableResponse;
use souk_tablestore::{
    Answer, Operation, Reason, RequestHead, ServiceError, SignatureScheme, SigningKey, limits,
};

const SECRET: &str = "demo-secret";

/// 2024-08-08T03:22:47Z.
fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_723_087_367)
}

fn md5(body: &[u8]) -> String {
    BASE64.encode(Md5::digest(body))
}

fn headers(body: &[u8]) -> Vec<(&'static str, String)> {
    vec![
        ("x-ots-accesskeyid", "demo".to_owned()),
        ("x-ots-apiversion", "2015-12-31".to_owned()),
        ("x-ots-contentmd5", md5(body)),
        ("x-ots-date", "2024-08-08T03:22:47.000Z".to_owned()),
        ("x-ots-instancename", "demo".to_owned()),
        ("user-agent", "a test".to_owned()),
    ]
}

fn map(headers: &[(&'static str, String)]) -> HeaderMap {
    let header = |(name, value): &(&'static str, String)| {
        (
            HeaderName::from_static(name),
            HeaderValue::from_bytes(value.as_bytes()).expect("a value"),
        )
    };
    headers.iter().map(header).collect()
}

/// What a client signs by V2, independently of what the crate makes of it.
fn sign(path: &str, headers: &mut Vec<(&'static str, String)>) {
    headers.sort();
    let lines = headers.iter().filter(|(name, _)| name.starts_with("x-ots-"));
    let lines: Vec<String> = lines.map(|(name, value)| format!("{name}:{value}")).collect();
    let text = format!("{path}\nPOST\n\n{}\n", lines.join("\n"));
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, SECRET.as_bytes());
    headers.push((
        "x-ots-signature",
        BASE64.encode(hmac::sign(&key, text.as_bytes())),
    ));
}

fn parse(headers: &[(&'static str, String)]) -> Result<RequestHead, Reason> {
    RequestHead::parse(&Method::POST, "/ListTable", &map(headers), now())
}

/// The head of a good request, with changes.
fn head(change: impl FnOnce(&mut Vec<(&'static str, String)>)) -> Result<RequestHead, Reason> {
    let mut headers = headers(b"");
    change(&mut headers);
    sign("/ListTable", &mut headers);
    parse(&headers)
}

fn set(headers: &mut [(&'static str, String)], name: &str, value: &str) {
    for header in headers.iter_mut().filter(|header| header.0 == name) {
        header.1 = value.to_owned();
    }
}

#[test]
fn a_request_of_the_secret_is_let_in_and_no_other() {
    let key = SigningKey::new(SECRET, &SignatureScheme::V2);
    let good = head(|_| {}).expect("a head");
    assert_eq!(
        (
            good.operation,
            good.instance.as_str(),
            good.access_key_id.as_str()
        ),
        (Operation::ListTable, "demo", "demo")
    );
    assert_eq!(
        (good.scheme(), &good.security_token, good.min_sequence),
        (&SignatureScheme::V2, &None, None)
    );
    assert_eq!(key.verify(&good), Ok(()));
    assert_eq!(
        SigningKey::new("other", good.scheme()).verify(&good),
        Err(Reason::SignatureMismatch)
    );

    // Whatever is signed and changed.
    let signed = || {
        let mut headers = headers(b"");
        sign("/ListTable", &mut headers);
        headers
    };
    for (name, value) in [
        ("x-ots-accesskeyid", "demo2"),
        ("x-ots-contentmd5", "XUFAKrxLKna5cZ2REBfFkg=="),
        ("x-ots-date", "2024-08-08T03:22:48.000Z"),
        ("x-ots-instancename", "demo2"),
    ] {
        let mut headers = signed();
        set(&mut headers, name, value);
        assert_eq!(
            key.verify(&parse(&headers).expect("a head")),
            Err(Reason::SignatureMismatch),
            "{name}"
        );
    }
    let mut more = signed();
    more.push(("x-ots-ststoken", "t".to_owned()));
    assert_eq!(
        key.verify(&parse(&more).expect("a head")),
        Err(Reason::SignatureMismatch)
    );
    let other = RequestHead::parse(&Method::POST, "/DeleteTable", &map(&signed()), now()).expect("a head");
    assert_eq!(key.verify(&other), Err(Reason::SignatureMismatch));
    // What isn't signed.
    let mut unsigned = signed();
    set(&mut unsigned, "user-agent", "another");
    unsigned.push(("x-souk-min-sequence", "7".to_owned()));
    let unsigned = parse(&unsigned).expect("a head");
    assert_eq!((key.verify(&unsigned), unsigned.min_sequence), (Ok(()), Some(7)));
}

#[test]
fn heads_are_refused_with_the_texts_of_the_original() {
    let refused = |method: Method, path: &str| {
        RequestHead::parse(&method, path, &map(&headers(b"")), now()).map(|_| ())
    };
    assert_eq!(refused(Method::GET, "/ListTable"), Err(Reason::MethodNotAllowed));
    for path in [
        "/listTable",
        "/SQLQuery",
        "/PutTimeseriesData",
        "/CreateDeliveryTask",
        "/CreateGlobalTable",
        "/",
        "",
        "/ListTable/",
        "/ListTable?x=1",
        "//ListTable",
    ] {
        let reason = refused(Method::POST, path).expect_err(path);
        assert!(
            matches!(reason, Reason::UnsupportedOperation { .. }),
            "{path}: {reason}"
        );
    }
    let long = refused(Method::POST, &format!("/{}", "x".repeat(10_000))).expect_err("no operation");
    assert!(long.to_string().len() < 200, "{long}");
    assert_eq!(
        refused(Method::POST, "/ListTable"),
        Err(Reason::MissingHeader {
            name: "x-ots-signature".into()
        })
    );

    for name in [
        "x-ots-accesskeyid",
        "x-ots-apiversion",
        "x-ots-contentmd5",
        "x-ots-date",
        "x-ots-instancename",
    ] {
        let reason = head(|headers| headers.retain(|header| header.0 != name)).map(|_| ());
        assert_eq!(reason, Err(Reason::MissingHeader { name: name.into() }));
    }
    let cases = [
        (
            "x-ots-date",
            "yesterday",
            Reason::InvalidDate {
                date: "yesterday".into(),
            },
        ),
        (
            "x-ots-date",
            "2024-08-08T04:22:47.000Z",
            Reason::DateMismatch {
                date: "2024-08-08T04:22:47.000Z".into(),
            },
        ),
        (
            "x-ots-date",
            "2024-08-08T03:07:46.999Z",
            Reason::DateMismatch {
                date: "2024-08-08T03:07:46.999Z".into(),
            },
        ),
        (
            "x-ots-apiversion",
            "2014-08-08",
            Reason::UnsupportedApiVersion {
                version: "2014-08-08".into(),
            },
        ),
        (
            "x-ots-instancename",
            "1demo",
            Reason::InvalidInstanceName { name: "1demo".into() },
        ),
        (
            "x-ots-instancename",
            "a_b",
            Reason::InvalidInstanceName { name: "a_b".into() },
        ),
        ("x-ots-contentmd5", "x", Reason::BodyMismatch),
        (
            "x-ots-accesskeyid",
            "ä",
            Reason::InvalidHeader {
                name: "x-ots-accesskeyid".into(),
            },
        ),
    ];
    for (name, value, reason) in cases {
        assert_eq!(
            head(|headers| set(headers, name, value)).map(|_| ()),
            Err(reason),
            "{name}: {value}"
        );
    }
    let edge = head(|headers| set(headers, "x-ots-date", "2024-08-08T03:37:47.000Z"));
    assert!(edge.is_ok(), "{edge:?}");
    let twice =
        head(|headers| headers.push(("x-ots-date", "2024-08-08T03:22:47.000Z".to_owned()))).map(|_| ());
    assert_eq!(
        twice,
        Err(Reason::InvalidHeader {
            name: "x-ots-date".into()
        })
    );
    let sequence = head(|headers| headers.push(("x-souk-min-sequence", "-1".to_owned()))).map(|_| ());
    assert_eq!(
        sequence,
        Err(Reason::InvalidHeader {
            name: "x-souk-min-sequence".into()
        })
    );
}

#[test]
fn headers_and_names_of_instances_have_so_many_bytes() {
    let (key, instance) = ("x-ots-accesskeyid", "x-ots-instancename");
    let too_long = |name: String| Reason::InvalidInstanceName { name: name.into() };
    for (header, most, refused) in [
        (
            key,
            limits::MAX_HEADER_BYTES,
            Reason::InvalidHeader { name: key.into() },
        ),
        (
            instance,
            limits::MAX_INSTANCE_BYTES,
            too_long("x".repeat(limits::MAX_INSTANCE_BYTES + 1)),
        ),
    ] {
        let with = |bytes| head(|headers| set(headers, header, &"x".repeat(bytes))).map(|_| ());
        assert_eq!(with(most), Ok(()), "{header}");
        assert_eq!(with(most + 1), Err(refused), "{header}");
    }
}

#[test]
fn a_derived_key_is_for_its_day_and_region() {
    let v4 = |date: &str| {
        head(|headers| {
            headers.push(("x-ots-signdate", date.to_owned()));
            headers.push(("x-ots-signregion", "cn-hangzhou".to_owned()));
            headers.push(("x-ots-signaturev4", "AAAA".to_owned()));
        })
    };
    let scheme = SignatureScheme::V4 {
        date: "20240807".into(),
        region: "cn-hangzhou".into(),
    };
    assert_eq!(v4("20240807").map(|head| head.scheme().clone()), Ok(scheme));
    assert_eq!(
        v4("20240731").map(|_| ()),
        Err(Reason::DateMismatch {
            date: "20240731".into()
        })
    );
    assert_eq!(
        v4("2024-08-07").map(|_| ()),
        Err(Reason::InvalidDate {
            date: "2024-08-07".into()
        })
    );
}

#[test]
fn a_body_is_the_one_that_was_signed() {
    let with = |body: &[u8]| head(|headers| set(headers, "x-ots-contentmd5", &md5(body))).expect("a head");
    let body = Bytes::from_static(b"abc");
    assert_eq!(with(&body).body(body.clone()), Ok(body));
    assert_eq!(
        with(b"abc").body(Bytes::from_static(b"abd")),
        Err(Reason::BodyMismatch)
    );
    let most = Bytes::from(vec![0; limits::MAX_BODY_BYTES]);
    assert_eq!(
        with(&most).body(most.clone()).map(|body| body.len()),
        Ok(limits::MAX_BODY_BYTES)
    );
    let more = Bytes::from(vec![0; limits::MAX_BODY_BYTES + 1]);
    assert_eq!(with(&more).body(more.clone()), Err(Reason::BodyTooLarge));
}

fn deflated(bytes: &[u8]) -> Bytes {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory").into()
}

#[test]
fn a_compressed_body_is_as_large_as_it_says() {
    let compressed = |body: &[u8], kind: &str, size: &str| {
        head(|headers| {
            set(headers, "x-ots-contentmd5", &md5(body));
            headers.push(("x-ots-request-compress-type", kind.to_owned()));
            headers.push(("x-ots-request-compress-size", size.to_owned()));
        })
        .and_then(|head| head.body(Bytes::copy_from_slice(body)))
    };
    let body = deflated(&[7; 1000]);
    assert_eq!(
        compressed(&body, "deflate", "1000"),
        Ok(Bytes::from(vec![7; 1000]))
    );
    for size in ["999", "1001", "0"] {
        assert_eq!(
            compressed(&body, "deflate", size),
            Err(Reason::UndecodableRequest),
            "{size}"
        );
    }
    assert_eq!(
        compressed(b"no zlib", "deflate", "7"),
        Err(Reason::UndecodableRequest)
    );
    assert_eq!(
        compressed(&body, "gzip", "1000"),
        Err(Reason::InvalidHeader {
            name: "x-ots-request-compress-type".into()
        })
    );
    assert_eq!(
        compressed(&body, "deflate", "x"),
        Err(Reason::InvalidHeader {
            name: "x-ots-request-compress-size".into()
        })
    );
    let bomb = deflated(&vec![0; limits::MAX_BODY_BYTES * 4]);
    assert_eq!(
        compressed(&bomb, "deflate", &(limits::MAX_BODY_BYTES * 4).to_string()),
        Err(Reason::BodyTooLarge)
    );
    assert_eq!(
        compressed(&bomb, "deflate", "1000"),
        Err(Reason::UndecodableRequest)
    );
}

#[test]
fn answers_are_framed_and_signed() {
    let head = head(|_| {}).expect("a head");
    let key = SigningKey::new(SECRET, head.scheme());
    let tables = ListTableResponse {
        table_names: vec!["t".to_owned()],
    };
    let response = Answer::ok(&tables).into_response("r-1", now(), Some((&head, &key)));
    assert_eq!(
        (response.status().as_u16(), response.body().as_ref()),
        (200, &b"\x0a\x01t"[..])
    );
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    assert_eq!(header("x-ots-contentmd5"), Some(md5(b"\x0a\x01t").as_str()));
    assert_eq!(header("x-ots-date"), Some("2024-08-08T03:22:47.000Z"));
    assert_eq!(header("x-ots-requestid"), Some("r-1"));
    assert_eq!(header("x-ots-contenttype"), Some("protocol buffer"));
    // Made by SignV2 of Python's package 6.4.8.
    assert_eq!(header("authorization"), Some(SIGNED_ANSWER));

    let error = ServiceError::from(Reason::SignatureMismatch);
    let response = Answer::error(&error).into_response("r-2", now(), None);
    assert_eq!(response.status(), 403);
    assert!(response.headers().get("authorization").is_none());
    assert_eq!(response.body(), &error.encode());
}

const SIGNED_ANSWER: &str = "OTS demo:bav4ze8BuP+unzRE2Z5hrLRdgwY=";

#[test]
fn large_answers_are_compressed_for_those_who_take_it() {
    let accepting =
        head(|headers| headers.push(("x-ots-response-compress-type", "deflate".to_owned()))).expect("a head");
    let plain = head(|_| {}).expect("a head");
    let key = SigningKey::new(SECRET, plain.scheme());
    let answer = Answer::ok(&ListTableResponse {
        table_names: vec!["x".repeat(100); 100],
    });
    let whole = answer.clone().into_response("r", now(), Some((&plain, &key)));
    assert!(whole.headers().get("x-ots-response-compress-type").is_none());
    let small = answer.into_response("r", now(), Some((&accepting, &key)));
    let header = |name: &str| small.headers().get(name).and_then(|value| value.to_str().ok());
    assert_eq!(header("x-ots-response-compress-type"), Some("deflate"));
    assert_eq!(
        header("x-ots-response-compress-size"),
        Some(whole.body().len().to_string().as_str())
    );
    assert_eq!(header("x-ots-contentmd5"), Some(md5(whole.body()).as_str()));
    assert!(small.body().len() < whole.body().len() / 10);
    let mut inflated = Vec::new();
    flate2::read::ZlibDecoder::new(small.body().as_ref())
        .read_to_end(&mut inflated)
        .expect("zlib");
    assert_eq!(&inflated[..], &whole.body()[..]);

    let none = Answer::ok(&ListTableResponse::default()).into_response("r", now(), Some((&accepting, &key)));
    assert!(
        none.headers().get("x-ots-response-compress-type").is_none(),
        "an empty answer has no size"
    );
}

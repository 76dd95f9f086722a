use super::*;

#[test]
fn every_error_has_one_error_info_of_our_domain() {
    let status = StatusBuilder::aborted("ETAG_MISMATCH", "read again")
        .metadata("etag", "\"7\"")
        .build();
    let details = status.get_error_details_vec();
    assert_eq!(details.len(), 1);
    let info = status.get_details_error_info().expect("an ErrorInfo");
    assert_eq!(
        (info.reason.as_str(), info.domain.as_str()),
        ("ETAG_MISMATCH", DOMAIN)
    );
    assert_eq!(info.metadata.get("etag").map(String::as_str), Some("\"7\""));
}

#[test]
fn details_of_each_kind_arrive() {
    let status = StatusBuilder::failed_precondition("PRODUCT_UNKNOWN", "create it first")
        .precondition("PRODUCT", "p1", "does not exist")
        .resource("souk.order.v1.Product", "p1", "no such row")
        .retry_after(Duration::from_millis(1500))
        .field_violation("product_id", "names no product")
        .build();
    let details = status.get_error_details();
    assert_eq!(
        details
            .precondition_failure()
            .map(|p| p.violations[0].subject.as_str()),
        Some("p1")
    );
    assert_eq!(
        details.resource_info().map(|r| r.resource_name.as_str()),
        Some("p1")
    );
    assert_eq!(
        details.retry_info().and_then(|r| r.retry_delay),
        Some(Duration::from_millis(1500))
    );
    assert_eq!(
        details
            .bad_request()
            .map(|b| b.field_violations[0].field.as_str()),
        Some("product_id")
    );
}

#[test]
fn what_isnt_available_of_a_process_is_no_refusal_of_the_process() {
    let building = StatusBuilder::unavailable("INDEX_BUILDING", "search again later");
    let missing = StatusBuilder::not_found("ORDER_NOT_FOUND", "check the id");
    for (status, expected) in [
        (
            StatusBuilder::unavailable("DRAINING", "retry elsewhere").build(),
            true,
        ),
        (Status::unavailable("not now"), true),
        (
            building.resource("index", "shops", "is being built").build(),
            false,
        ),
        (missing.resource("order", "o1", "doesn't exist").build(), false),
        (Status::ok(""), false),
    ] {
        let headers = status.clone().into_http::<()>().into_parts().0.headers;
        assert_eq!(is_refusal(&headers), expected, "{status:?}");
    }
}

#[test]
fn the_source_is_kept_but_not_sent() {
    let status = StatusBuilder::internal("the call failed")
        .source("disk on fire")
        .build();
    assert_eq!(
        Error::source(&status).map(ToString::to_string).as_deref(),
        Some("disk on fire")
    );
    let headers = status.into_http::<()>().into_parts().0.headers;
    assert!(!format!("{headers:?}").contains("fire"));
}

#[test]
fn details_stay_below_the_bound_whatever_the_client_sent() {
    let mut violations = Violations::default();
    for index in 0..10_000 {
        let path = FieldPath::root("orders").index(index).field(&"长".repeat(300));
        violations.push(path, "FIELD_UNKNOWN", "x".repeat(5_000));
    }
    assert_eq!(violations.len(), 10_000);
    let status = violations.into_result("INVALID_ARGUMENT").unwrap_err();
    assert!(
        status.details().len() < DETAIL_BYTES_MAX + 1024,
        "{}",
        status.details().len()
    );
    assert!(status.message().len() <= MESSAGE_BYTES_MAX);
    let info = status.get_details_error_info().expect("an ErrorInfo");
    assert_eq!(info.metadata.get("violations").map(String::as_str), Some("10000"));
}

#[test]
fn violations_have_their_own_reasons_under_that_of_the_answer() {
    let mut mixed = Violations::default();
    mixed.required("a");
    assert_eq!(mixed.take("b", "NOT_A_NUMBER", "x".parse::<i32>()), None);
    let status = mixed.into_result("INVALID_ARGUMENT").unwrap_err();
    assert_eq!(reason(&status).as_deref(), Some("INVALID_ARGUMENT"));
    let listed = status
        .get_details_bad_request()
        .expect("violations")
        .field_violations;
    let [first, second] = listed.as_slice() else {
        panic!("{listed:?}");
    };
    assert_eq!((first.field.as_str(), second.field.as_str()), ("a", "b"));
    assert_eq!(first.description, "FIELD_REQUIRED: is required");
    assert!(second.description.starts_with("NOT_A_NUMBER: "), "{second:?}");
    assert!(Violations::default().into_result("INVALID_ARGUMENT").is_ok());
}

#[test]
fn paths_read_like_the_request() {
    let path = FieldPath::message()
        .field("attributes")
        .key("a\"b")
        .field("int_value");
    assert_eq!(path.as_str(), r#"attributes["a\"b"].int_value"#);
    let must = FieldPath::root("search")
        .field("query")
        .field("bool")
        .field("must")
        .index(1)
        .field("range")
        .field("field");
    assert_eq!(must.to_string(), "search.query.bool.must[1].range.field");
}

#[test]
fn reasons_follow_aip_193() {
    for good in ["OK", "PAGE_TOKEN_INVALID", "A1"] {
        assert!(is_reason(good), "{good}");
    }
    for bad in ["", "A", "a_b", "A_", "1A", "A-B", &"A".repeat(64)] {
        assert!(!is_reason(bad), "{bad}");
    }
}

#[test]
fn cutting_keeps_characters_whole() {
    assert_eq!(cut("短文".into(), 6), "短文");
    let shortened = cut("奶茶奶茶".into(), 8);
    assert_eq!(shortened, "奶…");
}

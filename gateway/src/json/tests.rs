use http::header::{self, HeaderName, HeaderValue};
use http::{Method, Uri};

use super::*;
use crate::answer::JSON;

fn routes() -> Vec<Route> {
    read_all(&pool(souk_proto::FILE_DESCRIPTOR_SET).expect("our own descriptors")).expect("our own rules")
}

#[test]
fn every_rpc_has_a_path_and_no_path_is_of_two() {
    let pool = pool(souk_proto::FILE_DESCRIPTOR_SET).expect("our own descriptors");
    let routes = read_all(&pool).expect("our own rules");
    for service in pool
        .services()
        .filter(|service| service.full_name().starts_with("souk."))
    {
        for method in service.methods() {
            let known = routes.iter().any(|route| route.method == method);
            assert!(known, "{} can't be called by HTTP", method.full_name());
        }
    }
    for (index, one) in routes.iter().enumerate() {
        for other in routes
            .iter()
            .skip(index + 1)
            .filter(|other| other.http == one.http)
        {
            assert!(
                !one.template.overlaps(&other.template),
                "{} and {} share a path",
                one.method.full_name(),
                other.method.full_name()
            );
        }
    }
}

#[test]
fn streams_go_on_by_fields_that_their_messages_have() {
    for route in routes().iter().filter(|route| route.streams()) {
        let headers = [(
            HeaderName::from_static(events::LAST_EVENT_ID),
            HeaderValue::from_static("7"),
        )];
        let resumed = events::resumed(route, &headers.into_iter().collect());
        assert!(resumed.is_some(), "{}", route.path);
    }
}

/// The request that `method path` with `body` becomes, as JSON again; or the reason and the message of its refusal.
fn request(method: Method, path: &str, body: &str) -> Result<serde_json::Value, (String, String)> {
    let uri: Uri = path.parse().expect("a path");
    let route = routes()
        .into_iter()
        .find(|route| route.http == method && route.template.matches(uri.path()).is_some())
        .expect("a route");
    let variables = route.template.matches(uri.path()).expect("a match");
    let headers = [(header::CONTENT_TYPE, JSON)];
    let call = JsonCall {
        route: Arc::new(route),
        variables,
        query: uri.query().unwrap_or_default().to_owned(),
        form: BodyForm::read(&headers.into_iter().collect()).expect("JSON"),
        bytes_max: 1 << 20,
    };
    match call.message(body.as_bytes()) {
        Ok(message) => Ok(serde_json::to_value(message).expect("JSON")),
        Err(status) => {
            let reason = souk_chassis::status::reason(&status).expect("a reason");
            Err((reason, status.message().to_owned()))
        }
    }
}

#[test]
fn path_query_and_body_make_one_message() {
    use serde_json::json;
    let cases = [
        (
            Method::GET,
            "/v1/orders/o%2F1?min_sequence=7",
            "",
            json!({"orderId": "o/1", "minSequence": "7"}),
        ),
        (
            Method::GET,
            "/v1/shops:batchGet?shop_ids=a&shop_ids=b+c",
            "",
            json!({"shopIds": ["a", "b c"]}),
        ),
        (
            Method::GET,
            "/v1/shops:nearby?center.latitude=60.5&center.longitude=-2&query.term.field=type&query.term.value.string_value=%E5%A5%B6",
            "",
            json!({"center": {"latitude": 60.5, "longitude": -2.0},
                "query": {"term": {"field": "type", "value": {"stringValue": "奶"}}}}),
        ),
        (
            Method::POST,
            "/v1/shops?validate_only=true",
            r#"{"shop_id":"h1","averagePriceCents":"900"}"#,
            json!({"shop": {"shopId": "h1", "averagePriceCents": "900"}, "validateOnly": true}),
        ),
        (
            Method::PATCH,
            "/v1/shops/h1?update_mask=name,average_price_cents&etag=e",
            r#"{"name":"n","shop_id":"other"}"#,
            json!({"shop": {"shopId": "h1", "name": "n"}, "updateMask": "name,averagePriceCents", "etag": "e"}),
        ),
        (Method::POST, "/v1/shops:search", "", json!({})),
        (
            Method::POST,
            "/v1/shops:search",
            r#"{"search":{"query":{"matchAll":{}},"pageSize":3,"hitsMode":"HITS_MODE_KEYS"}}"#,
            json!({"search": {"query": {"matchAll": {}}, "pageSize": 3, "hitsMode": "HITS_MODE_KEYS"}}),
        ),
        (
            Method::GET,
            "/v1/orders:watch?after_sequence=0",
            "",
            json!({"afterSequence": "0"}),
        ),
    ];
    for (method, path, body, message) in cases {
        assert_eq!(request(method, path, body), Ok(message), "{path}");
    }
}

#[test]
fn values_may_be_written_plainly() {
    use serde_json::json;
    let cases = [
        (
            "/v1/tables/notes/rows:put",
            json!({"key": ["ann", 1], "columns": {"a": "x", "b": -5, "c": 0.5, "d": true, "e": {"bytesValue": "AA=="}}}),
            json!({"table": "notes", "key": [{"stringValue": "ann"}, {"intValue": "1"}], "columns": {
                "a": {"stringValue": "x"}, "b": {"intValue": "-5"}, "c": {"doubleValue": 0.5},
                "d": {"boolValue": true}, "e": {"bytesValue": "AA=="},
            }}),
        ),
        (
            "/v1/shops:search",
            json!({"search": {"query": {"bool": {"must": [{"term": {"field": "type", "value": "奶茶"}}]}}}}),
            json!({"search": {"query": {"bool": {"must": [
                {"term": {"field": "type", "value": {"stringValue": "奶茶"}}},
            ]}}}}),
        ),
    ];
    for (path, body, message) in cases {
        assert_eq!(
            request(Method::POST, path, &body.to_string()),
            Ok(message),
            "{path}"
        );
    }
    // Nothing else is taken that wasn't: what is wrong is told as without it.
    for body in [
        json!({"key": ["ann"], "columns": {"a": null}, "colour": 1}),
        json!({"key": [["ann"]]}),
        json!({"key": [u64::MAX], "page": 1}),
        json!({"condition": 5}),
    ] {
        let refused = request(Method::POST, "/v1/tables/notes/rows:put", &body.to_string());
        assert_eq!(refused.expect_err("no message").0, "JSON_MALFORMED", "{body}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    let cases = [
        (
            Method::GET,
            "/v1/orders/o1?colour=red",
            "",
            "PARAMETER_UNKNOWN",
            "\"colour\"",
        ),
        (
            Method::GET,
            "/v1/orders/o1?min_sequence=many",
            "",
            "PARAMETER_MALFORMED",
            "\"min_sequence\"",
        ),
        (
            Method::GET,
            "/v1/orders/o1?min_sequence=1&min_sequence=2",
            "",
            "PARAMETER_MALFORMED",
            "once",
        ),
        (
            Method::GET,
            "/v1/shops:nearby?center=1",
            "",
            "PARAMETER_MALFORMED",
            "center.latitude",
        ),
        (
            Method::GET,
            "/v1/orders/o1?min_sequence=%ff",
            "",
            "QUERY_MALFORMED",
            "UTF-8",
        ),
        (Method::GET, "/v1/orders/o1", "{}", "BODY_UNEXPECTED", "query"),
        (
            Method::POST,
            "/v1/shops?shop.name=n",
            "{}",
            "PARAMETER_UNKNOWN",
            "body",
        ),
        (
            Method::POST,
            "/v1/shops:search?page_size=1",
            "{}",
            "PARAMETER_UNKNOWN",
            "body",
        ),
        (
            Method::POST,
            "/v1/shops:search",
            r#"{"search":{"colour":1}}"#,
            "JSON_MALFORMED",
            "\"colour\"",
        ),
        (
            Method::POST,
            "/v1/shops:search",
            r#"{"search":"#,
            "JSON_MALFORMED",
            "line 1",
        ),
        (
            Method::POST,
            "/v1/shops:search",
            "{} {}",
            "JSON_MALFORMED",
            "trailing",
        ),
        (
            Method::POST,
            "/v1/shops",
            r#"{"rating":"high"}"#,
            "JSON_MALFORMED",
            "line 1",
        ),
    ];
    for (method, path, body, reason, words) in cases {
        let (given, message) = request(method, path, body).expect_err(path);
        assert_eq!(given, reason, "{path}: {message}");
        assert!(message.contains(words), "{path}: {message}");
    }
    let many = "min_sequence=1&".repeat(parameters::PARAMETERS_MAX + 1);
    let (reason, _) = request(Method::GET, &format!("/v1/orders/o1?{many}"), "").expect_err("too many");
    assert_eq!(reason, "TOO_MANY_PARAMETERS");
    let deep = r#"{"search":{"query":"#.to_owned() + &r#"{"bool":{"must":["#.repeat(100);
    let (reason, _) = request(Method::POST, "/v1/shops:search", &deep).expect_err("too deep");
    assert_eq!(reason, "MESSAGE_TOO_DEEP");
}

#[test]
fn what_is_wrong_around_plain_values_is_named_by_its_path() {
    for (body, words) in [
        (
            r#"{"key":["ann"],"colums":{"a":5}}"#,
            r#"there is no field "colums"; souk.table.v1.PutRowRequest has "#,
        ),
        (
            r#"{"key":["ann"],"columns":{"size":[1]}}"#,
            r#"columns["size"]: a list isn't a value; write a text"#,
        ),
        (
            r#"{"key":["ann"],"columns":{"size":null}}"#,
            r#"columns["size"]: null isn't a value; leave out"#,
        ),
        (
            r#"{"key":["ann",99999999999999999999]}"#,
            "key[1]: this number isn't a value; a whole one has 64 bits",
        ),
        (r#"{"key":"ann","columns":{"a":5}}"#, "key: a text isn't a list"),
        (
            r#"{"key":["ann"],"columns":[5]}"#,
            "columns: a list isn't an object",
        ),
        (
            r#"{"key":["ann"],"columns":{"a":{"int_valu":5}}}"#,
            r#"columns["a"]: there is no field "int_valu"; souk.type.v1.Value has "string_value", "int_value""#,
        ),
        (
            r#"{"key":["ann"],"columns":{"a":{"int_value":"x"}}}"#,
            r#"columns["a"].int_value: "#,
        ),
        (
            r#"{"key":["ann"],"columns":{"a":{"int_value":5,"bool_value":true}}}"#,
            r#"columns["a"]: "#,
        ),
        (
            r#"{"key":["ann"],"columns":{"a":{"time_value":"yesterday"}}}"#,
            r#"columns["a"].time_value: "#,
        ),
        (
            r#"{"key":["ann"],"request_id":5}"#,
            "request_id: invalid type: integer `5`, expected a string",
        ),
        // What isn't JSON, though the first value is a plain one.
        (
            r#"{"key":["ann"],"columns":{"a":5}"#,
            "EOF while parsing an object at line 1 column",
        ),
        (
            r#"{"key":["ann"],"columns":{"a":5.}}"#,
            "invalid number at line 1",
        ),
    ] {
        let refused = request(Method::POST, "/v1/tables/notes/rows:put", body);
        let (reason, told) = refused.expect_err(body);
        assert_eq!(reason, "JSON_MALFORMED", "{body}");
        assert!(told.contains(words), "{body}: {told}");
    }
}

#[test]
fn plain_values_take_what_messages_take() {
    let put = |values: usize| format!(r#"{{"key":[{}0]}}"#, "0,".repeat(values - 1));
    let path = "/v1/tables/notes/rows:put";
    request(Method::POST, path, &put(1_000)).expect("a row");
    let (reason, _) = request(Method::POST, path, &put(100_000)).expect_err("100,000 messages");
    assert_eq!(reason, "DECODED_TOO_LARGE");
}

#[test]
fn plain_numbers_without_a_fraction_are_whole() {
    let path = "/v1/tables/notes/rows:put";
    let key = |number: &str| request(Method::POST, path, &format!(r#"{{"key":[{number}]}}"#));
    for (number, kind, told) in [
        ("9223372036854775807", "intValue", "9223372036854775807"),
        ("-9223372036854775808", "intValue", "-9223372036854775808"),
        ("-0", "intValue", "0"),
        ("-0.0", "doubleValue", "-0.0"),
        ("0e-0", "doubleValue", "0.0"),
        ("0.5", "doubleValue", "0.5"),
        ("1.0", "doubleValue", "1.0"),
    ] {
        let value = key(number).expect("a value")["key"][0][kind].to_string();
        assert_eq!(value.trim_matches('"'), told);
    }
    let text = request(Method::POST, path, r#"{"key":["\"-0,",-0 ]}"#).expect("a text and a number");
    assert_eq!(text["key"][0]["stringValue"], "\"-0,");
    assert_eq!(text["key"][1]["intValue"], "0");
    for number in [
        "9223372036854775808",
        "-9223372036854775809",
        "100000000000000000000",
    ] {
        let (reason, _) = key(number).expect_err(number);
        assert_eq!(reason, "JSON_MALFORMED", "{number}");
    }
}

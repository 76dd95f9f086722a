use super::*;

/// What makes a good trace a bad one.
type Change<'a> = &'a dyn Fn(&mut Vec<Span>);

const METHOD: &str = "souk.shop.v1.ShopService/GetShop";

/// A span of a call: kind, id, parent, code, from when to when.
fn span(kind: SpanKind, [id, parent]: [&str; 2], code: &str, time: std::ops::Range<u64>) -> Span {
    let error = match kind {
        SpanKind::Server => SERVER_FAULTS.contains(&code),
        _ => code != "OK",
    };
    let mut attributes = vec![
        ("rpc.system.name", "grpc"),
        ("rpc.method", METHOD),
        ("rpc.status_code", code),
    ];
    if kind == SpanKind::Client {
        attributes.push(("server.address", "127.0.0.1"));
    }
    if error {
        attributes.push(("error.type", code));
    }
    Span {
        service: "souk-gateway".to_owned(),
        name: METHOD.to_owned(),
        kind,
        trace_id: "t".to_owned(),
        span_id: id.to_owned(),
        parent_id: Some(parent.to_owned()),
        start_ns: time.start,
        end_ns: time.end,
        attributes: attributes
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect(),
        error,
        links: Vec::new(),
        trace_state: String::new(),
    }
}

fn good() -> Vec<Span> {
    vec![
        span(SpanKind::Server, ["a", "root"], "OK", 0..100),
        span(SpanKind::Client, ["b", "a"], "OK", 10..90),
        Span {
            service: "souk-shop".to_owned(),
            ..span(SpanKind::Server, ["c", "b"], "OK", 20..80)
        },
    ]
}

#[test]
fn a_good_trace_keeps_all_laws() {
    let trace = Trace::new(good());
    all(&trace, "root").expect("good");
    let expected = [("souk-gateway".to_owned(), "souk-shop".to_owned())];
    assert_eq!(edges(&trace), BTreeSet::from(expected));
    assert_eq!(attempts(&trace, "a", METHOD).len(), 1);
}

#[test]
fn each_law_sees_its_breach() {
    let breach = |change: Change<'_>| {
        let mut spans = good();
        change(&mut spans);
        let error = all(&Trace::new(spans), "root").expect_err("a breach");
        format!("{error:#}")
    };
    let cases: [(Change<'_>, &str); 7] = [
        (&|spans| drop(spans.remove(1)), "1 orphans"),
        (
            &|spans| spans.push(span(SpanKind::Server, ["d", "root"], "OK", 0..1)),
            "2 roots",
        ),
        (
            &|spans| spans.push(span(SpanKind::Client, ["b", "a"], "OK", 0..1)),
            "come twice",
        ),
        (&|spans| spans[2].start_ns = 5, "isn't inside"),
        (&|spans| spans[2].end_ns = 91 + SLACK_NS, "isn't inside"),
        (&|spans| spans[2].error = true, "is an error"),
        (
            &|spans| {
                spans[2]
                    .attributes
                    .insert("rpc.status_code".to_owned(), "NOT_FOUND".to_owned());
            },
            "OK at the client and NOT_FOUND",
        ),
    ];
    for (change, words) in cases {
        let error = breach(change);
        assert!(error.contains(words), "{words} isn't in {error}");
    }
}

#[test]
fn secrets_are_found_anywhere() {
    let spans = good();
    keeps_secrets(words(&spans), &["token-7"]).expect("none");
    keeps_secrets(words(&spans), &["127.0.0.1"]).expect_err("it is there");
}

use super::*;
use crate::spans::SpanKind;

fn span(name: &str, kind: SpanKind, attributes: &[(&str, &str)]) -> Span {
    Span {
        service: "souk-shop".to_owned(),
        name: name.to_owned(),
        kind,
        trace_id: String::new(),
        span_id: String::new(),
        parent_id: None,
        start_ns: 0,
        end_ns: 0,
        attributes: attributes
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
        error: false,
        links: Vec::new(),
        trace_state: String::new(),
    }
}

const COMMIT: [(&str, &str); 3] = [
    ("db.system.name", "souk"),
    ("db.operation.name", "commit"),
    ("db.collection.name", "shops"),
];

#[test]
fn a_span_as_it_should_be_is_one() {
    let schema = SpanSchema::souk().expect("the file");
    let good = span("commit shops", SpanKind::Client, &COMMIT);
    schema.check(&good).expect("all is there");
}

#[test]
fn everything_else_is_told() {
    let schema = SpanSchema::souk().expect("the file");
    let with = |more: (&'static str, &'static str)| [&COMMIT[..], &[more]].concat();
    let cases = [
        (
            span("commit orders", SpanKind::Client, &COMMIT),
            "the schema has no CLIENT span",
        ),
        (
            span("commit shops", SpanKind::Server, &COMMIT),
            "the schema has no SERVER span",
        ),
        (
            span("index.search", SpanKind::Internal, &COMMIT[..1]),
            "lacks db.collection.name",
        ),
        (
            span("commit shops", SpanKind::Client, &with(("souk.sequence", "many"))),
            "souk.sequence is `many`",
        ),
        (
            span("commit shops", SpanKind::Client, &with(("phone", "1"))),
            "has phone, which the schema doesn't name",
        ),
        (
            Span {
                service: "souk-gateway".to_owned(),
                ..span("commit shops", SpanKind::Client, &COMMIT)
            },
            "is no span of souk-gateway",
        ),
    ];
    for (span, words) in cases {
        let error = format!("{:#}", schema.check(&span).expect_err(words));
        assert!(error.contains(words), "{error}");
    }
}

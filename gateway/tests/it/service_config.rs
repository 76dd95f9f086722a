//! The published service configs are what the contract says: all safe methods, and no others.

use std::collections::BTreeSet;

use prost::Message as _;
use prost_types::FileDescriptorSet;
use prost_types::method_options::IdempotencyLevel;
use serde_json::{Value, json};

const PUBLISHED: &str = include_str!("../../../docs/service-config.json");
const HEDGING: &str = include_str!("../../../docs/service-config-hedging.json");

/// A method of the contract that changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Safe {
    service: String,
    method: String,
    /// Its answer is one message.
    is_unary: bool,
}

impl Safe {
    /// As service configs name it.
    fn name(&self) -> Value {
        json!({"service": self.service, "method": self.method})
    }

    /// Is it worth to be asked for twice at once? What reads rows or searches is: its time is that of the luck of a moment.
    /// Streams take what they take, indexes and figures are told to operators, members of consumer groups wait for what is to come, and a table
    /// is walked through once.
    fn is_hedged(&self) -> bool {
        let of_operators = [
            "souk.index.v1.IndexService",
            "souk.figures.v1.FiguresService",
            "souk.table.v1.ConsumerGroupService",
        ];
        let is_quick = !of_operators.contains(&self.service.as_str()) && self.method != "GetSplitPoints";
        self.is_unary && is_quick
    }
}

/// The methods that the contract says change nothing.
fn safe_methods() -> BTreeSet<Safe> {
    let set = FileDescriptorSet::decode(souk_proto::FILE_DESCRIPTOR_SET).expect("our own descriptors");
    let mut safe = BTreeSet::new();
    for file in set.file.iter().filter(|file| file.package().starts_with("souk.")) {
        for service in &file.service {
            for method in &service.method {
                let level = method.options.as_ref().map(|options| options.idempotency_level());
                if level == Some(IdempotencyLevel::NoSideEffects) {
                    safe.insert(Safe {
                        service: format!("{}.{}", file.package(), service.name()),
                        method: method.name().to_owned(),
                        is_unary: !method.server_streaming() && !method.client_streaming(),
                    });
                }
            }
        }
    }
    safe
}

/// Repeats what a backend has refused.
fn retry_policy() -> Value {
    json!({
        "maxAttempts": 4,
        "initialBackoff": "0.1s",
        "maxBackoff": "1s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": ["UNAVAILABLE"],
    })
}

/// Asks a second time when the first answer is late, or is that nobody can answer.
fn hedging_policy() -> Value {
    json!({
        "maxAttempts": 2,
        "hedgingDelay": "0.1s",
        "nonFatalStatusCodes": ["UNAVAILABLE"],
    })
}

/// Neither retries nor hedges while more than one of ten attempts fails (gRFC A6).
fn throttling() -> Value {
    json!({"maxTokens": 100, "tokenRatio": 0.1})
}

fn assert_published(file: &str, published: &str, expected: &Value) {
    let text = serde_json::to_string_pretty(expected).expect("text");
    let published: Value = serde_json::from_str(published).expect("JSON");
    assert!(published == *expected, "docs/{file} has to be:\n{text}");
}

#[test]
fn the_published_config_repeats_what_is_safe() {
    let names: Vec<Value> = safe_methods().iter().map(Safe::name).collect();
    let expected = json!({
        "methodConfig": [{"name": names, "retryPolicy": retry_policy()}],
        "retryThrottling": throttling(),
    });
    assert_published("service-config.json", PUBLISHED, &expected);
}

/// A method has one of the two policies (gRFC A6).
#[test]
fn the_hedging_config_hedges_reads_and_repeats_what_else_is_safe() {
    let (hedged, repeated): (Vec<Safe>, Vec<Safe>) = safe_methods().into_iter().partition(Safe::is_hedged);
    let names = |methods: &[Safe]| methods.iter().map(Safe::name).collect::<Vec<Value>>();
    let expected = json!({
        "methodConfig": [
            {"name": names(&hedged), "hedgingPolicy": hedging_policy()},
            {"name": names(&repeated), "retryPolicy": retry_policy()},
        ],
        "retryThrottling": throttling(),
    });
    assert_published("service-config-hedging.json", HEDGING, &expected);
}

#[test]
fn what_reads_is_safe_and_what_writes_is_not() {
    let reads = [
        "Get", "BatchGet", "Search", "List", "Suggest", "Nearby", "Cluster", "Export", "Watch", "Range",
        "Read", "Stream",
    ];
    let writes = [
        "Create",
        "BatchCreate",
        "Update",
        "Delete",
        "BatchWrite",
        "BatchDelete",
        "BatchUpdate",
        "Rebuild",
        "Put",
        "Begin",
        "Commit",
        "Abort",
        "Join",
        "Send",
        "Leave",
    ];
    let safe = safe_methods();
    for name in souk_chassis::methods::Methods::read(&[souk_proto::FILE_DESCRIPTOR_SET], |_| true)
        .expect("our own descriptors")
        .names()
        .filter(|name| name.starts_with("souk."))
    {
        let (service, method) = name.split_once('/').expect("a method");
        let is_safe = safe
            .iter()
            .any(|safe| safe.service == service && safe.method == method);
        let reads = reads.iter().any(|verb| method.starts_with(verb));
        let writes = writes.iter().any(|verb| method.starts_with(verb));
        assert!(reads != writes, "{name}: a verb that nobody knows: is it safe?");
        assert_eq!(is_safe, reads, "{name}");
    }
}

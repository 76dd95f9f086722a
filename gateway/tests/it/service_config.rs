//! The published service config is what the contract says: all safe methods, and no others.

use std::collections::BTreeSet;

use prost::Message as _;
use prost_types::FileDescriptorSet;
use prost_types::method_options::IdempotencyLevel;
use serde_json::{Value, json};

const PUBLISHED: &str = include_str!("../../../docs/service-config.json");

/// The methods that the contract says change nothing, as service configs name them.
fn safe_methods() -> Vec<Value> {
    let set = FileDescriptorSet::decode(souk_proto::FILE_DESCRIPTOR_SET).expect("our own descriptors");
    let mut names = BTreeSet::new();
    for file in set.file.iter().filter(|file| file.package().starts_with("souk.")) {
        for service in &file.service {
            let full = format!("{}.{}", file.package(), service.name());
            for method in &service.method {
                let level = method.options.as_ref().map(|options| options.idempotency_level());
                if level == Some(IdempotencyLevel::NoSideEffects) {
                    names.insert((full.clone(), method.name().to_owned()));
                }
            }
        }
    }
    let name = |(service, method)| json!({"service": service, "method": method});
    names.into_iter().map(name).collect()
}

#[test]
fn the_published_config_repeats_what_is_safe() {
    let expected = json!({
        "methodConfig": [{
            "name": safe_methods(),
            "retryPolicy": {
                "maxAttempts": 4,
                "initialBackoff": "0.1s",
                "maxBackoff": "1s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }],
        "retryThrottling": {"maxTokens": 100, "tokenRatio": 0.1},
    });
    let published: Value = serde_json::from_str(PUBLISHED).expect("JSON");
    let text = serde_json::to_string_pretty(&expected).expect("text");
    assert!(
        published == expected,
        "docs/service-config.json has to be:\n{text}"
    );
}

#[test]
fn what_reads_is_safe_and_what_writes_is_not() {
    let reads = [
        "Get", "BatchGet", "Search", "List", "Suggest", "Nearby", "Cluster", "Export", "Watch",
    ];
    let writes = [
        "Create",
        "BatchCreate",
        "Update",
        "Delete",
        "BatchWrite",
        "BatchDelete",
        "BatchUpdate",
    ];
    let safe = safe_methods();
    for name in souk_chassis::methods::Methods::read(&[souk_proto::FILE_DESCRIPTOR_SET], |_| true)
        .expect("our own descriptors")
        .iter()
        .filter(|name| name.starts_with("souk."))
    {
        let (service, method) = name.split_once('/').expect("a method");
        let is_safe = safe.contains(&json!({"service": service, "method": method}));
        let reads = reads.iter().any(|verb| method.starts_with(verb));
        let writes = writes.iter().any(|verb| method.starts_with(verb));
        assert!(reads != writes, "{name}: a verb that nobody knows: is it safe?");
        assert_eq!(is_safe, reads, "{name}");
    }
}

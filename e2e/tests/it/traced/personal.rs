//! 14, on every RPC of the contract: whatever text a caller sends, in whichever field, isn't in spans, logs or labels.

use std::collections::BTreeSet;

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value, json};
use souk_e2e::collector::Collector;
use souk_e2e::dynamic::Dynamic;
use souk_e2e::log::Log;
use souk_e2e::suite::{Layout, Plan};

use super::keeps_secrets;
use crate::SOUK;
use crate::access::cells::{CELLS, OWN, numbers, seed};

/// What is sent in every field that people fill.
const PERSONAL: &str = "Zebulon 13800138000";

/// What nobody may find: of the text, of credentials.
const SECRETS: [&str; 5] = ["Zebulon", "13800138000", "tok-5f2c", "key-77aa", "session-91"];

/// Messages within messages that are filled. The deepest texts of queries lie at the fourth level.
const DEPTH: usize = 5;

/// Requests of each RPC: as many as the member with the most choices, a query, has.
const ROUNDS: usize = 24;

/// Ids, tokens, and names out of the contract say which row or field is meant: telemetry may tell those.
fn is_name(field: &FieldDescriptor) -> bool {
    let name = field.name();
    let names = [
        "id", "ids", "etag", "field", "fields", "path", "paths", "source", "index", "table",
    ];
    names.contains(&name)
        || ["_id", "_ids", "_token", "_field", "_fields"]
            .iter()
            .any(|end| name.ends_with(end))
}

/// A message with text in every field that takes some; of choices the one whose turn it is.
fn filled(message: &MessageDescriptor, round: usize, depth: usize) -> Value {
    let mut object = Map::new();
    for field in message.fields() {
        let is_its_turn = field.containing_oneof().is_none_or(|choice| {
            let count = choice.fields().len().max(1);
            choice.fields().nth(round % count).as_ref() == Some(&field)
        });
        if is_its_turn && let Some(value) = value(&field, round, depth) {
            object.insert(field.name().to_owned(), value);
        }
    }
    Value::Object(object)
}

fn value(field: &FieldDescriptor, round: usize, depth: usize) -> Option<Value> {
    let one = |kind: &Kind| match kind {
        Kind::String if !is_name(field) => Some(json!(PERSONAL)),
        // Rows there are, so that a call gets further than to its id.
        Kind::String => Some(json!(OWN.consumer)),
        Kind::Message(message) if message.full_name().starts_with("google.protobuf.") => None,
        Kind::Message(message) => (depth > 0).then(|| filled(message, round, depth - 1)),
        _ => None,
    };
    if field.is_map() {
        let Kind::Message(entry) = field.kind() else {
            return None;
        };
        return Some(json!({"a": one(&entry.map_entry_value_field().kind())?}));
    }
    let value = one(&field.kind())?;
    Some(if field.is_list() { json!([value]) } else { value })
}

/// Puts text into the fields of a request that works, where it has none.
fn overlay(request: &mut Value, message: &MessageDescriptor) {
    let Value::Object(object) = request else { return };
    for field in message.fields() {
        match (object.get_mut(field.name()), field.kind()) {
            (Some(Value::Array(items)), Kind::Message(inner)) => {
                items.iter_mut().for_each(|item| overlay(item, &inner));
            }
            (Some(Value::Object(_)), _) if field.is_map() => {}
            (Some(item), Kind::Message(inner)) => overlay(item, &inner),
            (Some(_), _) => {}
            (None, Kind::String) if !is_name(&field) && field.containing_oneof().is_none() => {
                let text = json!(PERSONAL);
                let text = if field.is_list() { json!([text]) } else { text };
                object.insert(field.name().to_owned(), text);
            }
            (None, _) => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a14_nothing_that_a_caller_sends_to_any_rpc_is_in_telemetry() -> anyhow::Result<()> {
    let (collector, log) = (Collector::start().await?, Log::default());
    let mut suite = Plan::new(SOUK, Layout::SeveralProcesses)
        .traced(&collector)
        .heard(&log)
        .start()
        .await?;
    let client = Dynamic::new(suite.channel()?)?
        .with("authorization", "Bearer tok-5f2c")?
        .with("x-api-key", "key-77aa")?
        .with("cookie", "sid=session-91")?;
    let methods: BTreeSet<String> = client.methods().into_iter().collect();
    let known: BTreeSet<String> = CELLS.iter().map(|cell| cell.method.to_owned()).collect();
    assert_eq!(known, methods, "every RPC has a request that works");
    let mut answered = 0;
    for (number, cell) in CELLS.iter().enumerate() {
        let sequences = seed(&client, true).await?;
        let input = client.input(cell.method)?;
        // One that works, and the same with text wherever there was none.
        let works = (cell.request)(&numbers(&OWN, &sequences, 2 * number));
        let mut texts = (cell.request)(&numbers(&OWN, &sequences, 2 * number + 1));
        overlay(&mut texts, &input);
        let mut requests = vec![works, texts];
        let shapes: BTreeSet<String> = (0..ROUNDS)
            .map(|round| filled(&input, round, DEPTH).to_string())
            .collect();
        for shape in shapes {
            requests.push(serde_json::from_str(&shape)?);
        }
        for request in requests {
            let answer = client.call(cell.method, &request).await?;
            answered += usize::from(answer.is_ok());
        }
    }
    assert!(answered > CELLS.len(), "{answered} calls got through");
    // The end sends what there is.
    suite.stop().await?;

    let spans = collector.spans();
    let seen: BTreeSet<&str> = spans.iter().map(|span| span.attribute("rpc.method")).collect();
    for method in &methods {
        assert!(
            seen.contains(method.as_str()),
            "{method} was driven without a span"
        );
    }
    let lines = log.lines().len();
    assert!(lines > methods.len(), "{lines} lines");
    keeps_secrets(&collector, &log, &SECRETS)
}

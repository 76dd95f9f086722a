//! What fields take stands beside them in the contract, and in the OpenAPI document that is made of it. Here each rule is held
//! against the services: what breaks it is refused with the field's path, what just keeps it isn't.

use anyhow::Context as _;
use prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Value, json};
use souk_e2e::dynamic::Dynamic;
use souk_e2e::rejection::Rejection;
use souk_e2e::suite::{Layout, Suite};
use tonic::Code;

use crate::SOUK;
use crate::access::cells::{CELLS, OWN, numbers, seed};

/// What a search says is held against its own rules; what it asks for is the language of queries, which has its own tests.
const SEARCH: &str = "souk.search.v1.Search";

/// The rules of the contract.
struct Contract {
    pool: DescriptorPool,
}

impl Contract {
    /// What the rules of a field (`buf.validate`) come to; `Null` without any.
    fn rule(&self, field: &FieldDescriptor) -> Value {
        let rules = self
            .pool
            .get_extension_by_name("buf.validate.field")
            .expect("the option");
        let options = field.options();
        if !options.has_extension(&rules) {
            return Value::Null;
        }
        let rules = options.get_extension(&rules);
        let rules = serde_json::to_value(rules.as_message().expect("rules")).expect("JSON");
        let text = match &rules["repeated"]["items"]["string"] {
            Value::Null => &rules["string"],
            items => items,
        };
        let number = ["double", "int32", "int64", "uint32"]
            .into_iter()
            .find(|kind| rules[kind].is_object());
        let bound = |end: &str| number.map_or(Value::Null, |kind| as_number(&rules[kind][end]));
        json!({
            // A resource that an update changes is checked by parts, and has to be there.
            "required": rules["required"] == true
                || as_number(&rules["repeated"]["minItems"]).as_f64() > Some(0.0)
                || rules["ignore"] == "IGNORE_ALWAYS",
            "charsMin": as_number(&rules["repeated"]["items"]["string"]["minLen"]),
            "charsMax": as_number(&text["maxLen"]),
            "pattern": text["pattern"].is_string() || text["uuid"] == true,
            "minimum": bound("gte"),
            "maximum": bound("lte"),
            "itemsMax": match as_number(&rules["repeated"]["maxItems"]) {
                Value::Null => as_number(&rules["map"]["maxPairs"]),
                items => items,
            },
            "unique": rules["repeated"]["unique"],
            "notIn": rules["enum"]["notIn"],
            "nameCharsMax": as_number(&rules["map"]["keys"]["string"]["maxLen"]),
        })
    }

    /// The least that a message has to hold; `number` tells one from another.
    fn least(&self, message: &MessageDescriptor, number: usize) -> Value {
        let mut least = serde_json::Map::new();
        for field in message
            .fields()
            .filter(|field| self.rule(field)["required"] == true)
        {
            let valid = self.valid(&field, number);
            let valid = if field.is_list() { json!([valid]) } else { valid };
            least.insert(field.name().to_owned(), valid);
        }
        let choice = message.oneofs().find(|choice| !choice.is_synthetic());
        if let Some(field) = choice.and_then(|choice| choice.fields().next()) {
            least.insert(field.name().to_owned(), self.valid(&field, number));
        }
        Value::Object(least)
    }

    /// One value that a field takes.
    fn valid(&self, field: &FieldDescriptor, number: usize) -> Value {
        match field.kind() {
            Kind::Message(message) => self.least(&message, number),
            Kind::Enum(kind) => {
                let refused = self.rule(field)["notIn"].clone();
                let refused =
                    |number: i32| refused.as_array().is_some_and(|all| all.contains(&json!(number)));
                let mut values = kind.values().skip(1);
                let value = values.find(|value| !refused(value.number()));
                json!(value.expect("a value").name())
            }
            Kind::String => json!(format!("x{number}")),
            Kind::Bool => json!(true),
            _ => json!(1),
        }
    }

    fn list(&self, field: &FieldDescriptor, count: usize) -> Value {
        if let (true, Kind::Message(entry)) = (field.is_map(), field.kind()) {
            let value = self.valid(&entry.map_entry_value_field(), 0);
            return (0..count).map(|nth| (format!("x{nth}"), value.clone())).collect();
        }
        (0..count).map(|nth| self.valid(field, nth)).collect()
    }

    /// Values that a field refuses, and values that it just takes.
    fn cases(&self, field: &FieldDescriptor) -> (Vec<Value>, Vec<Value>) {
        let rule = self.rule(field);
        let (mut bad, mut good) = (Vec::new(), Vec::new());
        let count = |name: &str| {
            rule[name]
                .as_f64()
                .map(|count| count as usize)
                .filter(|count| *count > 0)
        };
        let several = |text: String| {
            if field.is_list() {
                json!([text])
            } else {
                json!(text)
            }
        };
        if rule["required"] == true {
            bad.push(match field.kind() {
                _ if field.is_list() => json!([]),
                Kind::String => json!(""),
                Kind::Enum(kind) => json!(kind.default_value().name()),
                Kind::Message(_) => Value::Null,
                _ => json!(0),
            });
        }
        if let Some(chars) = count("charsMax") {
            bad.extend([several("奶".repeat(chars + 1)), several("a\u{7}b".to_owned())]);
            good.push(several("奶".repeat(chars)));
        }
        if count("charsMin").is_some() {
            bad.push(json!([""]));
        }
        if rule["pattern"] == true {
            bad.push(json!("!"));
        }
        let step = if matches!(field.kind(), Kind::Double) {
            0.5
        } else {
            1.0
        };
        for (name, sign) in [("minimum", -1.0), ("maximum", 1.0)] {
            if let Some(bound) = rule[name].as_f64() {
                let number = |number: f64| {
                    if step < 1.0 {
                        json!(number)
                    } else {
                        json!(number as i64)
                    }
                };
                bad.push(number(bound + sign * step));
                good.push(number(bound));
            }
        }
        if let Some(items) = count("itemsMax") {
            bad.push(self.list(field, items + 1));
            good.push(self.list(field, items));
        }
        if rule["unique"] == true {
            bad.push(json!(["x", "x"]));
        }
        if let (Some(chars), Kind::Message(entry)) = (count("nameCharsMax"), field.kind()) {
            let value = self.valid(&entry.map_entry_value_field(), 0);
            let named = |name: String| Value::Object([(name, value.clone())].into_iter().collect());
            bad.extend([named("x".repeat(chars + 1)), named(String::new())]);
            good.push(named("x".repeat(chars)));
        }
        (bad, good)
    }
}

/// A number of a rule: those of 64 bits are texts in JSON.
fn as_number(number: &Value) -> Value {
    match number {
        Value::String(text) => text.parse::<f64>().map_or(Value::Null, Value::from),
        number => number.clone(),
    }
}

/// A field of a request: its path as violations name it, and as JSON pointers do.
struct Place {
    path: String,
    pointer: String,
    field: FieldDescriptor,
}

/// The fields with rules in what `message` holds, as far as its own messages go; once, where a message holds itself.
fn places(
    contract: &Contract,
    inside: &[MessageDescriptor],
    path: &str,
    pointer: &str,
    found: &mut Vec<Place>,
) {
    let fields = inside.last().into_iter().flat_map(MessageDescriptor::fields);
    for field in fields {
        let path = format!("{path}{}", field.name());
        let pointer = format!("{pointer}/{}", field.name());
        if let Kind::Message(inner) = field.kind()
            && !field.is_map()
            && !inner.full_name().starts_with("google.")
            && (!inner.full_name().starts_with("souk.search.") || inner.full_name() == SEARCH)
            && !inside.contains(&inner)
        {
            let (path, pointer) = if field.is_list() {
                (format!("{path}[0]."), format!("{pointer}/0"))
            } else {
                (format!("{path}."), pointer.clone())
            };
            let inside = [inside, std::slice::from_ref(&inner)].concat();
            places(contract, &inside, &path, &pointer, found);
        }
        let rule = contract.rule(&field);
        if !rule.is_null() {
            found.push(Place { path, pointer, field });
        }
    }
}

/// `request` with `value` at a place; what leads there is made where it isn't there.
fn with(
    contract: &Contract,
    request: &Value,
    input: &MessageDescriptor,
    place: &Place,
    value: Value,
) -> Value {
    let mut request = request.clone();
    let mut message = input.clone();
    let mut node = &mut request;
    let mut names: Vec<&str> = place.pointer.split('/').skip(1).collect();
    let last = names.pop().expect("a name");
    for name in names {
        if let Ok(index) = name.parse::<usize>() {
            node = &mut node[index];
            continue;
        }
        let field = message.get_field_by_name(name).expect(name);
        let Kind::Message(inner) = field.kind() else {
            unreachable!("{name} leads somewhere")
        };
        alone(&field, node);
        if node[name].is_null() {
            let least = contract.least(&inner, 0);
            node[name] = if field.is_list() { json!([least]) } else { least };
        }
        node = &mut node[name];
        message = inner;
    }
    alone(&place.field, node);
    node[last] = value;
    request
}

/// Takes away what can't stand beside a field.
fn alone(field: &FieldDescriptor, node: &mut Value) {
    if let (Some(choice), Some(node)) = (field.containing_oneof(), node.as_object_mut()) {
        for other in choice.fields().filter(|other| other != field) {
            node.remove(other.name());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_breaks_a_rule_is_refused_and_what_keeps_it_isnt() -> anyhow::Result<()> {
    let suite = Suite::start(SOUK, Layout::OneProcess).await?;
    let client = Dynamic::new(suite.channel()?)?;
    let contract = Contract {
        pool: DescriptorPool::decode(souk_proto::FILE_DESCRIPTOR_SET)?,
    };
    let (mut refused, mut taken) = (0, 0);
    for (nth, cell) in CELLS.iter().enumerate() {
        let sequences = seed(&client, true).await?;
        let request = (cell.request)(&numbers(&OWN, &sequences, nth));
        let input = client.input(cell.method)?;
        let mut found = Vec::new();
        places(&contract, std::slice::from_ref(&input), "", "", &mut found);
        let (_, name) = cell.method.split_once('/').context("a method")?;
        for place in found {
            // An update needs only what it changes, and changes only what its mask names.
            if name.starts_with("Update") && place.path.contains('.') {
                continue;
            }
            let (bad, good) = contract.cases(&place.field);
            let cases = bad.into_iter().map(|value| (value, true));
            for (value, is_bad) in cases.chain(good.into_iter().map(|value| (value, false))) {
                let request = with(&contract, &request, &input, &place, value);
                let (answer, _) = client.responses(cell.method, &request, |_| true).await?;
                let fields = match &answer {
                    Ok(_) => Vec::new(),
                    Err(status)
                        if status.code() == Code::InvalidArgument
                            && !status.message().contains("is no index of") =>
                    {
                        Rejection::of(status)?.fields
                    }
                    // There is no such row or index: what was asked for is nothing that can't be asked.
                    Err(_) => Vec::new(),
                };
                let named = fields.iter().any(|field| field.starts_with(&place.path));
                let text = request.to_string();
                let shown: String = text.chars().take(300).collect();
                assert_eq!(
                    named, is_bad,
                    "{} {}: {fields:?} {answer:?} of {shown}",
                    cell.method, place.path
                );
                *(if is_bad { &mut refused } else { &mut taken }) += 1;
            }
        }
    }
    println!("{refused} requests that break a rule, {taken} that just keep it");
    assert!(
        refused > 300 && taken > 150,
        "{refused} and {taken}: the contract has more rules"
    );
    Ok(())
}

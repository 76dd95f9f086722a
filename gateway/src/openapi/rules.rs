//! The rules of fields, read from the options of the contract: `buf.validate` and `google.api.field_behavior`.

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, OneofDescriptor, Value};

use super::text;
use crate::contract::option;

/// The value of `google.api.FieldBehavior` for fields that only the server sets.
const OUTPUT_ONLY: i32 = 3;
/// The value of `buf.validate.Ignore` for rules that an unset field needn't keep.
const IF_ZERO_VALUE: i32 = 1;
/// The value of `buf.validate.Ignore` that turns all rules of a field off.
const ALWAYS: i32 = 3;

/// What a field takes; everything by default. Characters are those of a text, or of each text of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rule {
    pub(crate) required: bool,
    pub(crate) chars_min: Option<u64>,
    pub(crate) chars_max: Option<u64>,
    pub(crate) printable: bool,
    pub(crate) pattern: Option<String>,
    pub(crate) minimum: Option<f64>,
    pub(crate) above: Option<f64>,
    pub(crate) maximum: Option<f64>,
    pub(crate) below: Option<f64>,
    pub(crate) items_max: Option<u64>,
    pub(crate) unique: bool,
    pub(crate) name_chars_max: Option<u64>,
    pub(crate) output_only: bool,
}

/// The rule of a field.
pub(crate) fn rule(field: &FieldDescriptor) -> Rule {
    let options = field.options();
    let behavior = option(&options, "google.api.field_behavior");
    let behaviors = behavior.as_ref().and_then(Value::as_list).unwrap_or_default();
    let mut rule = Rule {
        output_only: behaviors.contains(&Value::EnumNumber(OUTPUT_ONLY)),
        ..Rule::default()
    };
    let rules = option(&options, "buf.validate.field");
    let Some(rules) = rules.as_ref().and_then(Value::as_message) else {
        return rule;
    };
    let ignore = set(rules, &["ignore"]).and_then(|ignore| ignore.as_enum_number());
    if ignore == Some(ALWAYS) {
        return rule;
    }
    let is = |path: &[&str]| set(rules, path).and_then(|is| is.as_bool()).unwrap_or_default();
    // JSON may leave an empty list out, so a list that mustn't be empty is required.
    rule.required = is(&["required"]) || count(rules, &["repeated", "min_items"]).is_some();
    rule.items_max = count(rules, &["repeated", "max_items"]).max(count(rules, &["map", "max_pairs"]));
    rule.unique = is(&["repeated", "unique"]);
    rule.name_chars_max = count(rules, &["map", "keys", "string", "max_len"]);
    for path in [&["string"][..], &["repeated", "items", "string"]] {
        if let Some(Value::Message(text)) = set(rules, path) {
            add_text(&text, ignore == Some(IF_ZERO_VALUE), &mut rule);
        }
    }
    for kind in ["double", "int32", "int64", "uint32"] {
        let bound = |end| set(rules, &[kind, end]).as_ref().and_then(number);
        let (above, below) = (bound("gt"), bound("lt"));
        rule.minimum = rule.minimum.or(bound("gte"));
        rule.maximum = rule.maximum.or(bound("lte"));
        if kind == "double" {
            (rule.above, rule.below) = (above, below);
        } else {
            rule.minimum = rule.minimum.or(above.map(|above| above + 1.0));
            rule.maximum = rule.maximum.or(below.map(|below| below - 1.0));
        }
    }
    rule
}

/// Adds the rules of a text; `or_empty` lets an empty one pass.
fn add_text(text: &DynamicMessage, or_empty: bool, rule: &mut Rule) {
    // JSON Schema has no length that is either 0 or at least the minimum.
    rule.chars_min = count(text, &["min_len"]).filter(|_| !or_empty);
    rule.chars_max = count(text, &["max_len"]);
    let printable = option(text, "souk.rule.v1.printable");
    rule.printable = printable.as_ref().and_then(Value::as_bool).unwrap_or_default();
    let pattern = match set(text, &["pattern"]) {
        Some(Value::String(pattern)) => Some(pattern),
        _ => set(text, &["uuid"]).map(|_| text::UUID.to_owned()),
    };
    rule.pattern = pattern.map(|pattern| match or_empty {
        true => format!("^$|{pattern}"),
        false => pattern,
    });
}

/// Whether one of the oneof's fields has to be set.
pub(crate) fn one_required(choice: &OneofDescriptor) -> bool {
    let rule = option(&choice.options(), "buf.validate.oneof");
    let rule = rule.as_ref().and_then(Value::as_message);
    let required = rule.and_then(|rule| set(rule, &["required"]));
    required.is_some_and(|required| required == Value::Bool(true))
}

/// Whether a field of `message`, or of a message in it at any depth, has a rule.
pub(crate) fn constrain(message: &MessageDescriptor) -> bool {
    let mut known = vec![message.clone()];
    let mut at = 0;
    while let Some(message) = known.get(at).cloned() {
        if message.oneofs().any(|choice| one_required(&choice)) {
            return true;
        }
        for field in message.fields() {
            if rule(&field) != Rule::default() {
                return true;
            }
            if let Kind::Message(inner) = field.kind()
                && !known.contains(&inner)
            {
                known.push(inner);
            }
        }
        at += 1;
    }
    false
}
/// The value at a path of fields, if all of them are set.
fn set(message: &DynamicMessage, path: &[&str]) -> Option<Value> {
    let (name, rest) = path.split_first()?;
    if !message.has_field_by_name(name) {
        return None;
    }
    let value = message.get_field_by_name(name)?;
    if rest.is_empty() {
        return Some(value.into_owned());
    }
    set(value.as_message()?, rest)
}

/// A count at a path of fields; 0 counts as unset.
fn count(message: &DynamicMessage, path: &[&str]) -> Option<u64> {
    set(message, path)?.as_u64().filter(|count| *count > 0)
}

fn number(value: &Value) -> Option<f64> {
    Some(match value {
        Value::F64(number) => *number,
        Value::I32(number) => f64::from(*number),
        Value::U32(number) => f64::from(*number),
        Value::I64(number) => *number as f64,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use prost_reflect::DescriptorPool;
    use serde_json::json;

    use super::*;

    /// The rule of a field of this type with these options.
    fn rule(kind: &str, options: serde_json::Value) -> Rule {
        let mut pool = DescriptorPool::decode(souk_proto::FILE_DESCRIPTOR_SET).expect("our own");
        let files = json!({"file": [{
            "name": "t.proto", "package": "t", "syntax": "proto3", "dependency": ["buf/validate/validate.proto"],
            "messageType": [{"name": "M", "field": [{
                "name": "a", "number": 1, "label": "LABEL_OPTIONAL", "type": kind,
                "options": {"[buf.validate.field]": options},
            }]}],
        }]});
        let set = pool.get_message_by_name("google.protobuf.FileDescriptorSet");
        let set = DynamicMessage::deserialize(set.expect("descriptors"), files).expect("a file");
        pool.decode_file_descriptor_set(set.encode_to_vec().as_slice())
            .expect("a contract");
        let message = pool.get_message_by_name("t.M").expect("a message");
        super::rule(&message.get_field(1).expect("a field"))
    }

    #[test]
    fn bounds_that_are_left_out_and_lengths_of_what_may_be_empty() {
        let between = rule("TYPE_DOUBLE", json!({"double": {"gt": 1.5, "lt": 3}}));
        assert_eq!((between.above, between.below), (Some(1.5), Some(3.0)));
        let whole = rule("TYPE_INT32", json!({"int32": {"gt": 1, "lt": 3}}));
        assert_eq!((whole.minimum, whole.maximum), (Some(2.0), Some(2.0)));
        let text = json!({"string": {"minLen": "3"}});
        assert_eq!(rule("TYPE_STRING", text.clone()).chars_min, Some(3));
        let mut or_empty = text;
        or_empty["ignore"] = json!("IGNORE_IF_ZERO_VALUE");
        assert_eq!(rule("TYPE_STRING", or_empty).chars_min, None);
    }
}

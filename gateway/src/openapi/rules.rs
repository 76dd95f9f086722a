//! What fields take, by the options of the contract: `buf.validate` and `google.api.field_behavior`.

use prost_reflect::{
    DescriptorPool, DynamicMessage, ExtensionDescriptor, FieldDescriptor, Kind, MessageDescriptor,
    OneofDescriptor, Value,
};

use super::text;
use crate::contract::option;

/// The value of `google.api.FieldBehavior` for what the server says.
const OUTPUT_ONLY: i32 = 3;
/// The value of `buf.validate.Ignore` for rules that aren't of what is unset.
const IF_ZERO_VALUE: i32 = 1;
/// The value of `buf.validate.Ignore` for no rules.
const ALWAYS: i32 = 3;

/// The rule of a field; without one it takes everything. Characters are those of a text, or of each text of a list.
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
    pub(crate) items_max: Option<u64>,
    pub(crate) unique: bool,
    pub(crate) name_chars_max: Option<u64>,
    pub(crate) output_only: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Rules {
    field: Option<ExtensionDescriptor>,
    oneof: Option<ExtensionDescriptor>,
    behavior: Option<ExtensionDescriptor>,
    printable: Option<ExtensionDescriptor>,
}

impl Rules {
    pub(crate) fn read(pool: &DescriptorPool) -> Self {
        Self {
            field: pool.get_extension_by_name("buf.validate.field"),
            oneof: pool.get_extension_by_name("buf.validate.oneof"),
            behavior: pool.get_extension_by_name("google.api.field_behavior"),
            printable: pool.get_extension_by_name("souk.rule.v1.printable"),
        }
    }

    pub(crate) fn of(&self, field: &FieldDescriptor) -> Rule {
        let options = field.options();
        let behavior = option(&options, self.behavior.as_ref());
        let behaviors = behavior.as_ref().and_then(Value::as_list).unwrap_or_default();
        let mut rule = Rule {
            output_only: behaviors.contains(&Value::EnumNumber(OUTPUT_ONLY)),
            ..Rule::default()
        };
        let rules = option(&options, self.field.as_ref());
        let Some(rules) = rules.as_ref().and_then(Value::as_message) else {
            return rule;
        };
        let ignore = set(rules, &["ignore"]).and_then(|ignore| ignore.as_enum_number());
        if ignore == Some(ALWAYS) {
            return rule;
        }
        let is = |path: &[&str]| set(rules, path).and_then(|is| is.as_bool()).unwrap_or_default();
        // Absent is empty.
        rule.required = is(&["required"]) || count(rules, &["repeated", "min_items"]).is_some();
        rule.items_max = count(rules, &["repeated", "max_items"]).max(count(rules, &["map", "max_pairs"]));
        rule.unique = is(&["repeated", "unique"]);
        rule.name_chars_max = count(rules, &["map", "keys", "string", "max_len"]);
        for path in [&["string"][..], &["repeated", "items", "string"]] {
            if let Some(Value::Message(text)) = set(rules, path) {
                self.text(&text, ignore == Some(IF_ZERO_VALUE), &mut rule);
            }
        }
        for kind in ["double", "int32", "int64", "uint32"] {
            let bound = |end| set(rules, &[kind, end]).as_ref().and_then(number);
            rule.minimum = rule.minimum.or(bound("gte"));
            rule.above = rule.above.or(bound("gt"));
            rule.maximum = rule.maximum.or(bound("lte"));
        }
        rule
    }

    fn text(&self, text: &DynamicMessage, or_empty: bool, rule: &mut Rule) {
        rule.chars_min = count(text, &["min_len"]);
        rule.chars_max = count(text, &["max_len"]);
        let printable = option(text, self.printable.as_ref());
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

    /// Has one of the fields to be set?
    pub(crate) fn one_required(&self, choice: &OneofDescriptor) -> bool {
        let rule = option(&choice.options(), self.oneof.as_ref());
        let rule = rule.as_ref().and_then(Value::as_message);
        let required = rule.and_then(|rule| set(rule, &["required"]));
        required.is_some_and(|required| required == Value::Bool(true))
    }

    /// Is there a rule in `message`, or in what it holds?
    pub(crate) fn reach(&self, message: &MessageDescriptor) -> bool {
        let mut known = vec![message.clone()];
        let mut at = 0;
        while let Some(message) = known.get(at).cloned() {
            if message.oneofs().any(|choice| self.one_required(&choice)) {
                return true;
            }
            for field in message.fields() {
                if self.of(&field) != Rule::default() {
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
}

/// What is set at a path of fields.
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

//! What fields take, by the option `souk.rule.v1.rule` of the contract.

use prost_reflect::{
    DescriptorPool, ExtensionDescriptor, FieldDescriptor, Kind, MessageDescriptor, OneofDescriptor, Value,
};
use serde::Deserialize;

/// The options that hold the rules.
const RULE: &str = "souk.rule.v1.rule";
const ONE_REQUIRED: &str = "souk.rule.v1.one_required";

/// The rule of a field; without one it takes everything.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Rule {
    pub(crate) required: bool,
    pub(crate) chars_min: u32,
    pub(crate) chars_max: u32,
    pub(crate) pattern: String,
    pub(crate) minimum: Option<f64>,
    pub(crate) maximum: Option<f64>,
    pub(crate) items_max: u32,
    pub(crate) unique: bool,
    pub(crate) name_chars_max: u32,
    pub(crate) output_only: bool,
}

/// The rules of a contract.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    rule: Option<ExtensionDescriptor>,
    one_required: Option<ExtensionDescriptor>,
}

impl Rules {
    pub(crate) fn read(pool: &DescriptorPool) -> Self {
        Self {
            rule: pool.get_extension_by_name(RULE),
            one_required: pool.get_extension_by_name(ONE_REQUIRED),
        }
    }

    /// What a field takes.
    pub(crate) fn of(&self, field: &FieldDescriptor) -> Rule {
        let rule = self
            .rule
            .as_ref()
            .map(|rule| field.options().get_extension(rule).into_owned());
        let rule = rule.as_ref().and_then(Value::as_message);
        // The rule as JSON is the rule as it is here.
        let rule = rule.and_then(|rule| serde_json::to_value(rule).ok());
        rule.and_then(|rule| serde_json::from_value(rule).ok())
            .unwrap_or_default()
    }

    /// Has one of the fields to be set?
    pub(crate) fn one_required(&self, choice: &OneofDescriptor) -> bool {
        self.one_required
            .as_ref()
            .is_some_and(|required| choice.options().get_extension(required).as_bool() == Some(true))
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

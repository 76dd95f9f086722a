//! Reads options as dynamic messages: their types don't exist yet, the build that this is part of generates them.

use prost_reflect::{DescriptorPool, DynamicMessage, ExtensionDescriptor, ReflectMessage as _, Value};

use crate::Result;

/// The extension that declares the option `name`.
pub(crate) fn extension(pool: &DescriptorPool, name: &str) -> Result<ExtensionDescriptor, String> {
    let option = pool.get_extension_by_name(name);
    option.ok_or_else(|| format!("nothing declares the option {name}"))
}

/// The option `name`, which is a message, among the options of a field, message, RPC or service; `None` when unset.
pub(crate) fn option(options: &DynamicMessage, name: &str) -> Result<Option<DynamicMessage>, String> {
    let option = extension(options.descriptor().parent_pool(), name)?;
    let given = options.has_extension(&option);
    Ok(given
        .then(|| options.get_extension(&option).as_message().cloned())
        .flatten())
}

/// A field that is a string; empty when unset.
pub(crate) fn text(message: &DynamicMessage, name: &str) -> String {
    let value = message.get_field_by_name(name);
    value
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// A field that is a bool; `false` when unset.
pub(crate) fn flag(message: &DynamicMessage, name: &str) -> bool {
    let value = message.get_field_by_name(name);
    value.and_then(|value| value.as_bool()).unwrap_or_default()
}

/// A field that is an int32, uint32 or int64; 0 when unset.
pub(crate) fn integer(message: &DynamicMessage, name: &str) -> i64 {
    match message.get_field_by_name(name).as_deref() {
        Some(Value::I32(number)) => i64::from(*number),
        Some(Value::U32(number)) => i64::from(*number),
        Some(Value::I64(number)) => *number,
        _ => 0,
    }
}

/// A field that is a message; `None` when unset.
pub(crate) fn message(parent: &DynamicMessage, name: &str) -> Option<DynamicMessage> {
    let is_set = parent.has_field_by_name(name);
    let value = parent.get_field_by_name(name).filter(|_| is_set)?;
    value.as_message().cloned()
}

/// A field of repeated strings.
pub(crate) fn texts(message: &DynamicMessage, name: &str) -> Vec<String> {
    let values = list(message, name).into_iter();
    values
        .filter_map(|value| value.as_str().map(str::to_owned))
        .collect()
}

/// A field of repeated messages.
pub(crate) fn messages(message: &DynamicMessage, name: &str) -> Vec<DynamicMessage> {
    let values = list(message, name).into_iter();
    values.filter_map(|value| value.as_message().cloned()).collect()
}

/// The names of the values of an enum field, which may be repeated.
pub(crate) fn enum_names(message: &DynamicMessage, name: &str) -> Vec<String> {
    let kind = message
        .descriptor()
        .get_field_by_name(name)
        .map(|field| field.kind());
    let Some(descriptor) = kind.as_ref().and_then(|kind| kind.as_enum()) else {
        return Vec::new();
    };
    let one = message.get_field_by_name(name).map(|value| value.into_owned());
    let values = match one {
        Some(Value::List(values)) => values,
        one => one.into_iter().collect(),
    };
    let numbers = values.iter().filter_map(Value::as_enum_number);
    let values = numbers.filter_map(|number| descriptor.get_value(number));
    values.map(|value| value.name().to_owned()).collect()
}

fn list(message: &DynamicMessage, name: &str) -> Vec<Value> {
    let value = message.get_field_by_name(name);
    value
        .and_then(|value| value.as_list().map(<[Value]>::to_vec))
        .unwrap_or_default()
}

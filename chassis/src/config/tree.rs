//! Settings as a tree of JSON values, addressed by dotted paths.

use serde_json::{Map, Value};

/// Puts `value` at `path`, replacing what is no table on the way there.
pub(super) fn put(tree: &mut Value, path: &[String], value: Value) {
    match path.split_first() {
        None => *tree = value,
        Some((key, rest)) => {
            if !tree.is_object() {
                *tree = Value::Object(Map::new());
            }
            if let Value::Object(map) = tree {
                put(map.entry(key.clone()).or_insert(Value::Null), rest, value);
            }
        }
    }
}

/// The value at `path`.
pub(super) fn get<'a>(tree: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(tree, |node, key| node.get(key))
}

/// Every path of `tree` that ends in something other than a filled table, with its value.
pub(super) fn leaves(tree: Value) -> Vec<(Vec<String>, Value)> {
    fn walk(path: &[String], node: Value, out: &mut Vec<(Vec<String>, Value)>) {
        match node {
            Value::Object(map) if !map.is_empty() => {
                for (key, value) in map {
                    let path: Vec<String> = path.iter().cloned().chain([key]).collect();
                    walk(&path, value, out);
                }
            }
            leaf @ (Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_)) => out.push((path.to_vec(), leaf)),
        }
    }
    let mut out = Vec::new();
    walk(&[], tree, &mut out);
    out
}

/// The keys of `given`, as paths below it, that `kept` lost on its way through the struct.
pub(super) fn lost(given: &Value, kept: &Value) -> Vec<String> {
    fn walk(path: &str, given: &Value, kept: Option<&Value>, out: &mut Vec<String>) {
        match (given, kept) {
            (_, None) => out.push(path.to_owned()),
            (Value::Object(given), Some(kept)) => {
                for (key, value) in given {
                    let path = if path.is_empty() {
                        key.clone()
                    } else {
                        format!("{path}.{key}")
                    };
                    walk(&path, value, kept.get(key), out);
                }
            }
            (Value::Array(given), Some(kept)) => {
                for (index, value) in given.iter().enumerate() {
                    walk(&format!("{path}[{index}]"), value, kept.get(index), out);
                }
            }
            (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), Some(_)) => {}
        }
    }
    let mut out = Vec::new();
    walk("", given, Some(kept), &mut out);
    out
}

//! Settings as a tree of JSON values, addressed by paths.

use serde_json::{Map, Value};

/// The value at `path`, made if there is none, in the place of what is no table on the way there.
pub(super) fn at<'a>(tree: &'a mut Value, path: &[String]) -> &'a mut Value {
    path.iter().fold(tree, |node, key| {
        if !node.is_object() {
            *node = Value::Object(Map::new());
        }
        &mut node[key]
    })
}

/// Adds every path of `tree` that ends in something other than a filled table, behind `path`, with its value.
pub(super) fn leaves(path: &[String], tree: Value, out: &mut Vec<(Vec<String>, Value)>) {
    match tree {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                leaves(&[path, &[key]].concat(), value, out);
            }
        }
        leaf => out.push((path.to_vec(), leaf)),
    }
}

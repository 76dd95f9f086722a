//! What an answer has at least, and values that earlier answers had.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde_json::Value;

/// Stands for anything that is there.
const ANY: &str = "*";

/// Does `found` have everything that `expected` has? Objects may have more; lists have the same length; `"*"` is anything.
///
/// # Errors
/// When it doesn't, with the path.
pub(super) fn like(expected: &Value, found: &Value, path: &str) -> anyhow::Result<()> {
    match (expected, found) {
        (Value::String(any), found) if any == ANY && !found.is_null() => Ok(()),
        (Value::Object(expected), Value::Object(found)) => {
            for (name, expected) in expected {
                let path = format!("{path}.{name}");
                let value = found.get(name);
                like(
                    expected,
                    value.with_context(|| format!("{path} isn't there"))?,
                    &path,
                )?;
            }
            Ok(())
        }
        (Value::Array(expected), Value::Array(found)) => {
            anyhow::ensure!(
                expected.len() == found.len(),
                "{path} has {} values, not {}",
                found.len(),
                expected.len()
            );
            for (index, (expected, found)) in expected.iter().zip(found).enumerate() {
                like(expected, found, &format!("{path}[{index}]"))?;
            }
            Ok(())
        }
        (expected, found) => {
            anyhow::ensure!(expected == found, "{path} is {found}, not {expected}");
            Ok(())
        }
    }
}

/// `text` with every `${name}` replaced.
///
/// # Errors
/// When a name isn't known.
pub(super) fn replaced(text: &str, known: &BTreeMap<String, String>) -> anyhow::Result<String> {
    let mut parts = text.split("${");
    let mut replaced = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once('}').context("a ${ without its }")?;
        let value = known.get(name);
        replaced.push_str(value.with_context(|| format!("nothing was kept as {name}"))?);
        replaced.push_str(rest);
    }
    Ok(replaced)
}

/// The same in all texts of a value.
///
/// # Errors
/// When a name isn't known.
pub(super) fn filled(value: &Value, known: &BTreeMap<String, String>) -> anyhow::Result<Value> {
    Ok(match value {
        Value::String(text) => Value::String(replaced(text, known)?),
        Value::Array(values) => values
            .iter()
            .map(|value| filled(value, known))
            .collect::<Result<_, _>>()?,
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| Ok((name.clone(), filled(value, known)?)));
            Value::Object(fields.collect::<anyhow::Result<_>>()?)
        }
        other => other.clone(),
    })
}

/// The value at a path as `order.etag` or `hits.0.resource`, as text.
pub(super) fn at(value: &Value, path: &str) -> Option<String> {
    let step = |value: &Value, name: &str| match value {
        Value::Array(values) => values.get(name.parse::<usize>().ok()?).cloned(),
        value => value.get(name).cloned(),
    };
    let found = path
        .split('.')
        .try_fold(value.clone(), |value, name| step(&value, name))?;
    Some(match found {
        Value::String(text) => text,
        other => other.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_may_have_more_but_not_less() {
        let found = json!({"a": 1, "b": [{"c": "x", "d": 2}], "e": null});
        for good in [
            json!({}),
            json!({"a": 1}),
            json!({"a": "*", "b": "*"}),
            json!({"b": [{"c": "x"}]}),
        ] {
            like(&good, &found, "answer").expect("alike");
        }
        for (bad, words) in [
            (json!({"a": 2}), "answer.a is 1"),
            (json!({"z": "*"}), "answer.z isn't there"),
            (json!({"e": "*"}), "answer.e is null"),
            (json!({"b": []}), "answer.b has 1 values"),
            (json!({"b": [{"c": "y"}]}), "answer.b[0].c is"),
        ] {
            let error = like(&bad, &found, "answer").expect_err(words).to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn what_was_kept_is_put_in() {
        let known = BTreeMap::from([("n".to_owned(), "7".to_owned())]);
        let value = filled(&json!({"a": ["x${n}y${n}"], "b": 1}), &known).expect("known");
        assert_eq!(value, json!({"a": ["x7y7"], "b": 1}));
        replaced("${m}", &known).expect_err("unknown");
        replaced("${n", &known).expect_err("open");
        assert_eq!(at(&json!({"a": [{"b": 7}]}), "a.0.b").as_deref(), Some("7"));
        assert_eq!(at(&json!({"a": "t"}), "a").as_deref(), Some("t"));
    }
}

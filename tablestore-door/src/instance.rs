//! Instances: each has tables of its own, whose names in the engine begin with its name.

use std::fmt;

use souk_engine::definition::MAX_TABLE_NAME_BYTES;
use souk_tablestore::{Reason, limits};

/// Between the name of an instance and that of its table.
const SEPARATOR: &str = "__";

/// An instance, by what the names of its tables in the engine begin with. No two of them have the same: names of instances have no `_`, so
/// that [`SEPARATOR`] ends them, and their `-` are written `_d`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instance {
    prefix: String,
}

impl Instance {
    /// The instance of a name: a letter, then letters, digits and `-`.
    pub(crate) fn new(name: &str) -> Option<Self> {
        let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
        let is_name = name
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_alphanumeric());
        let fits = (3..=limits::MAX_INSTANCE_BYTES).contains(&name.len());
        (begins && is_name && fits).then(|| Self {
            prefix: format!("{}{SEPARATOR}", name.replace('-', "_d")),
        })
    }

    /// What the engine calls a table of this instance.
    ///
    /// # Errors
    /// [`Reason::InvalidTableName`]: it isn't a letter or `_`, then letters, digits and `_`; or is too long.
    pub(crate) fn engine_name(&self, table: &str) -> Result<String, Reason> {
        let begins = table
            .bytes()
            .next()
            .is_some_and(|byte| byte == b'_' || byte.is_ascii_alphabetic());
        let is_name = table
            .bytes()
            .all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
        if !begins || !is_name || self.prefix.len() + table.len() > MAX_TABLE_NAME_BYTES {
            return Err(Reason::InvalidTableName {
                name: table.chars().take(limits::MAX_NAME_BYTES).collect(),
            });
        }
        Ok(format!("{}{table}", self.prefix))
    }

    /// What the clients of this instance call a table of the engine; `None` when it isn't one of theirs.
    pub(crate) fn client_name<'a>(&self, table: &'a str) -> Option<&'a str> {
        table.strip_prefix(&self.prefix)
    }
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.prefix.trim_end_matches(SEPARATOR))
    }
}

#[cfg(test)]
mod tests {
    use super::Instance;

    #[test]
    fn an_instance_has_tables_of_its_own() {
        let demo = Instance::new("demo").expect("a name");
        assert_eq!(demo.engine_name("orders").expect("a name"), "demo__orders");
        assert_eq!(demo.client_name("demo__orders"), Some("orders"));
        assert_eq!(demo.client_name("orders"), None);
        // Whatever its tables are called.
        let names = ["demo", "demo-", "demo-d", "demod", "demo--x"];
        let tables = ["x", "_x", "__x", "d__x", "_d__x", "_dx"];
        let mut all: Vec<String> = Vec::new();
        for name in names {
            let instance = Instance::new(name).expect("a name");
            all.extend(
                tables
                    .iter()
                    .map(|table| instance.engine_name(table).expect("a name")),
            );
        }
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn names_that_cant_be_are_refused() {
        for name in ["", "ab", "1ab", "a_b", "-ab", "ab c", &"a".repeat(65)] {
            assert_eq!(Instance::new(name), None, "{name}");
        }
        let demo = Instance::new("demo").expect("a name");
        for table in ["", "1a", "a-b", "a b", "表", &"a".repeat(200)] {
            assert!(demo.engine_name(table).is_err(), "{table}");
        }
    }
}

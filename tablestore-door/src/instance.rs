//! Instances: each has tables of its own, whose names in the engine begin with its name.

use souk_engine::definition::MAX_TABLE_NAME_BYTES;
use souk_tablestore::{Reason, name};

/// Between the name of an instance and that of its table.
const SEPARATOR: &str = "__";

/// An instance, by what the names of its tables in the engine begin with. No two of them have the same: names of instances have no `_`, so
/// that [`SEPARATOR`] ends them, and their `-` are written `_d`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instance {
    prefix: String,
}

impl Instance {
    /// The instance of a name.
    pub(crate) fn new(name: &str) -> Option<Self> {
        name::is_instance_name(name).then(|| Self {
            prefix: format!("{}{SEPARATOR}", name.replace('-', "_d")),
        })
    }

    /// Its name.
    pub(crate) fn name(&self) -> String {
        let written = self.prefix.strip_suffix(SEPARATOR).unwrap_or_default();
        written.replace("_d", "-")
    }

    /// What the engine calls a table of this instance.
    ///
    /// # Errors
    /// [`Reason::InvalidTableName`]: it is none, or is too long.
    pub(crate) fn engine_name(&self, table: &str) -> Result<String, Reason> {
        match name::is_name(table) && self.prefix.len() + table.len() <= MAX_TABLE_NAME_BYTES {
            true => Ok(format!("{}{table}", self.prefix)),
            false => Err(Reason::InvalidTableName {
                name: name::told(table),
            }),
        }
    }

    /// What the clients of this instance call a table of the engine; `None` when it isn't one of theirs.
    pub(crate) fn client_name<'a>(&self, table: &'a str) -> Option<&'a str> {
        table.strip_prefix(&self.prefix)
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
        for table in ["", "1a", "a-b", "a b", "表", &"a".repeat(195)] {
            assert!(demo.engine_name(table).is_err(), "{table}");
        }
        assert!(demo.engine_name(&"a".repeat(194)).is_ok());
    }
}

//! Table grants: the names, and prefixes of names, of the tables that a caller is limited to.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Most names in a grant.
pub const TABLE_NAMES_MAX: usize = 64;

/// Longest grant as text, in bytes: each call's credential carries it.
pub const TABLE_NAMES_BYTES_MAX: usize = 1_024;

/// Between names in the text of a grant.
const SEPARATOR: &str = ",";

/// A table grant: at least one name of a table, or prefix that ends with `*`. Its text has commas between them: `metrics,logs_*`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TableNames(Arc<[Box<str>]>);

/// Why names make no [`TableNames`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableNamesError {
    /// There are none, or too many.
    #[error(
        "a caller is limited to 1 to {TABLE_NAMES_MAX} names of tables, of {TABLE_NAMES_BYTES_MAX} bytes with commas between them"
    )]
    Size,
    /// One can't be of a table.
    #[error("a name of a table has letters, digits and _ alone; a * at its end stands for any rest")]
    Name,
}

impl TableNames {
    /// Checks names.
    ///
    /// # Errors
    /// [`TableNamesError`].
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, TableNamesError> {
        let names: Arc<[Box<str>]> = names.into_iter().map(Box::from).collect();
        // One separator more than the text has.
        let bytes: usize = names.iter().map(|name| name.len() + SEPARATOR.len()).sum();
        if !(1..=TABLE_NAMES_MAX).contains(&names.len()) || bytes > TABLE_NAMES_BYTES_MAX + SEPARATOR.len() {
            return Err(TableNamesError::Size);
        }
        match names.iter().all(|name| is_name(name)) {
            true => Ok(Self(names)),
            false => Err(TableNamesError::Name),
        }
    }

    /// The names, shared.
    pub fn names(&self) -> Arc<[Box<str>]> {
        Arc::clone(&self.0)
    }
}

fn is_name(name: &str) -> bool {
    let beginning = name.strip_suffix('*').unwrap_or(name);
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && beginning.bytes().all(fits)
}

impl FromStr for TableNames {
    type Err = TableNamesError;

    fn from_str(text: &str) -> Result<Self, TableNamesError> {
        Self::new(text.split(SEPARATOR))
    }
}

impl fmt::Display for TableNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, name) in self.0.iter().enumerate() {
            let separator = if nth > 0 { SEPARATOR } else { "" };
            write!(f, "{separator}{name}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_its_text() {
        for text in [
            "notes",
            "Notes_2",
            "logs_*",
            "*",
            "metrics,logs_*,a",
            &"n".repeat(TABLE_NAMES_BYTES_MAX),
        ] {
            let names: TableNames = text.parse().expect(text);
            assert_eq!(names.to_string(), text);
        }
        let most = vec!["n"; TABLE_NAMES_MAX];
        assert!(TableNames::new(most).is_ok());
    }

    #[test]
    fn a_grant_of_no_table_or_of_too_much_is_refused() {
        let none: [&str; 0] = [];
        assert_eq!(TableNames::new(none), Err(TableNamesError::Size));
        let many = vec!["n"; TABLE_NAMES_MAX + 1];
        assert_eq!(TableNames::new(many), Err(TableNamesError::Size));
        let half = "n".repeat(TABLE_NAMES_BYTES_MAX / 2);
        assert_eq!(
            format!("{half},{half}").parse::<TableNames>(),
            Err(TableNamesError::Size)
        );
        for wrong in [
            "", ",", "notes,", "a b", "a-b", "a.b", "**", "*a", "a*b", "é", "a\n",
        ] {
            assert_eq!(
                wrong.parse::<TableNames>(),
                Err(TableNamesError::Name),
                "{wrong:?}"
            );
        }
    }
}

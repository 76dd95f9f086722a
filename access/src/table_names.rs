//! Table grants: the names, and prefixes of names, of the tables that a caller is limited to, and partitions of tables.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Most names in a grant.
pub const TABLE_NAMES_MAX: usize = 64;

/// Longest grant as text, in bytes: each call's credential carries it.
pub const TABLE_NAMES_BYTES_MAX: usize = 1_024;

/// Longest partition key, or prefix of partition keys, in a grant, in bytes: as a part of a search it has to be a prefix of a KEYWORD.
pub const PARTITION_BYTES_MAX: usize = 256;

/// Between names in the text of a grant.
const SEPARATOR: &str = ",";
/// Between the name of a table and its partitions.
const PARTITION_SEPARATOR: char = '/';

/// A table grant: at least one name of a table, or prefix that ends with `*`. Its text has commas between them: `metrics,logs_*`. Behind a
/// name may stand which partitions of the table alone, once for a table: a partition key, or a prefix that ends with `*`, as in
/// `notes/eu-*`.
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
    /// Partitions that can't be granted.
    #[error(
        "partitions of a table are granted once, behind its whole name and /: 1 to {PARTITION_BYTES_MAX} bytes of a key without blanks, commas and *"
    )]
    Partitions,
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
        let mut limited = HashSet::new();
        for name in names.iter() {
            match name.split_once(PARTITION_SEPARATOR) {
                None if is_name(name) => {}
                None => return Err(TableNamesError::Name),
                Some((table, partitions)) => {
                    let is_whole = is_name(table) && !table.ends_with('*');
                    if !is_whole || !are_partitions(partitions) || !limited.insert(table) {
                        return Err(TableNamesError::Partitions);
                    }
                }
            }
        }
        drop(limited);
        Ok(Self(names))
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

fn are_partitions(pattern: &str) -> bool {
    let beginning = pattern.strip_suffix('*').unwrap_or(pattern);
    // A line of a file of keys has blanks between its parts.
    let fits = |letter: char| !letter.is_whitespace() && !letter.is_control() && !matches!(letter, ',' | '*');
    (1..=PARTITION_BYTES_MAX).contains(&beginning.len()) && beginning.chars().all(fits)
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
            "notes/eu-*,logs_*,letters/Café/é:1",
            &format!("notes/{}*", "n".repeat(PARTITION_BYTES_MAX)),
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
        let long = format!("a/{}", "n".repeat(PARTITION_BYTES_MAX + 1));
        for wrong in [
            "a/",
            "a/*",
            "/x",
            "a*/x",
            "*/x",
            "é/x",
            "a/x*y",
            "a/x**",
            "a/x y",
            "a/x\u{a0}y",
            "a/x\u{7f}",
            "a/x,a/y",
            "a/x,b,a/x",
            &long,
        ] {
            assert_eq!(
                wrong.parse::<TableNames>(),
                Err(TableNamesError::Partitions),
                "{wrong:?}"
            );
        }
    }
}

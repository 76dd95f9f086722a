//! Names of search indexes. The first index of a table has the table's name, `orders`; each other one has a name of its own behind
//! that, `orders.trial`. So an index is known by its name alone, and its table by it, too.
//!
//! The store takes no dots: there it is `_trial__orders`. As no table's name begins with an underscore, and no index's own
//! name has two in a row, that is nobody else's.

use super::check::limit;
use crate::error::Result;

/// Longest own name of an index, bytes: with the longest name of a table around it, it is still a name to the store.
pub const MAX_INDEX_NAME_BYTES: usize = 28;

/// Between the name of a table and the own name of an index.
const DOT: char = '.';
/// The same in the store.
const BARS: &str = "__";

/// The table of an index.
#[must_use]
pub fn table_of(index: &str) -> &str {
    index.split_once(DOT).map_or(index, |(table, _)| table)
}

/// Whether an index of a table may be called so: as the table, or behind its name by lower-case letters, digits and single
/// underscores between them, with a letter first.
///
/// # Errors
/// [`crate::EngineError::LimitExceeded`].
pub(crate) fn is_name(index: &str, table: &str) -> Result<bool> {
    let Some((of, own)) = index.split_once(DOT) else {
        return Ok(index == table);
    };
    limit("MAX_INDEX_NAME_BYTES", MAX_INDEX_NAME_BYTES, own.len())?;
    let fits = |each: char| each.is_ascii_lowercase() || each.is_ascii_digit() || each == '_';
    let is_own = own.starts_with(|first: char| first.is_ascii_lowercase())
        && own.chars().all(fits)
        && !own.ends_with('_')
        && !own.contains(BARS);
    Ok(of == table && is_own)
}

/// What the store knows an index by.
pub(crate) fn stored(index: &str) -> String {
    match index.split_once(DOT) {
        Some((table, own)) => format!("_{own}{BARS}{table}"),
        None => index.to_owned(),
    }
}

/// The index that the store knows by this.
pub(crate) fn of_stored(stored: &str) -> Option<String> {
    let Some(rest) = stored.strip_prefix('_') else {
        return Some(stored.to_owned());
    };
    let (own, table) = rest.split_once(BARS)?;
    Some(format!("{table}{DOT}{own}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::MAX_TABLE_NAME_BYTES;

    #[test]
    fn indexes_are_named_by_their_table_and_behind_it() {
        for right in ["orders", "orders.trial", "orders.a", "orders.second_of_2"] {
            assert!(is_name(right, "orders").expect("short"), "{right}");
            assert_eq!(table_of(right), "orders", "{right}");
        }
        for wrong in [
            "",
            "order",
            "orders.",
            "orders.Trial",
            "orders.2nd",
            "orders._a",
            "orders.a_",
            "orders.a__b",
            "orders.a.b",
            "shops.trial",
            ".trial",
            "orders.ä",
            "orders.a b",
        ] {
            assert!(!is_name(wrong, "orders").expect("short"), "{wrong}");
        }
        assert!(is_name(&format!("orders.{}", "a".repeat(29)), "orders").is_err());
    }

    #[test]
    fn the_store_tells_the_names_of_indexes_apart() {
        let longest = format!(
            "{}.{}",
            "t".repeat(MAX_TABLE_NAME_BYTES),
            "a".repeat(MAX_INDEX_NAME_BYTES)
        );
        let names = [
            "orders",
            "orders.trial",
            "orders.a_b",
            "a__b",
            "a__b.c_d",
            "a_",
            "a_.b",
            &longest,
        ];
        for name in names {
            let kept = stored(name);
            assert_eq!(of_stored(&kept).as_deref(), Some(name));
            let others = names.iter().filter(|other| **other != name);
            assert!(others.into_iter().all(|other| stored(other) != kept), "{name}");
            let fits = |each: char| each.is_ascii_alphanumeric() || each == '_';
            // The longest that is put around it is that of feeds.
            assert!(
                kept.chars().all(fits) && kept.len() + "_index__".len() + 16 <= 255,
                "{kept}"
            );
        }
        assert_eq!(of_stored("_trial"), None);
    }
}

//! Grants of partitions: the values of a table's first key column that a caller may access.

use std::fmt;

/// One partition key, or all that begin with a text.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Partitions {
    text: Box<str>,
    is_prefix: bool,
}

impl Partitions {
    /// Reads a grant: a partition key, or a prefix that ends with `*`.
    pub(crate) fn of(pattern: &str) -> Self {
        let prefix = pattern.strip_suffix('*');
        Self {
            text: prefix.unwrap_or(pattern).into(),
            is_prefix: prefix.is_some(),
        }
    }

    /// The least text among them, which all of them begin with.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether they are all that begin with [`Self::text`].
    pub(crate) fn is_prefix(&self) -> bool {
        self.is_prefix
    }

    pub(crate) fn contain(&self, key: &str) -> bool {
        match self.is_prefix {
            true => key.starts_with(&*self.text),
            false => key == &*self.text,
        }
    }

    /// The least text behind all that begin with [`Self::text`]; `None` where there is none.
    pub(crate) fn successor(&self) -> Option<String> {
        let mut text = self.text.to_string();
        while let Some(last) = text.pop() {
            // UTF-8 is ordered as its characters are. A range steps over the surrogates, which are none.
            if let Some(next) = (last..=char::MAX).nth(1) {
                text.push(next);
                return Some(text);
            }
        }
        None
    }
}

/// Tells the kind alone: a partition key may be personal data.
impl fmt::Debug for Partitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Partitions")
            .field("is_prefix", &self.is_prefix)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_one_key_or_all_that_begin_with_a_text() {
        for (pattern, key, expected) in [
            ("eu", "eu", true),
            ("eu", "eu-1", false),
            ("eu", "e", false),
            ("eu-*", "eu-", true),
            ("eu-*", "eu-1", true),
            ("eu-*", "eu", false),
            ("eu-*", "EU-1", false),
            ("eu-*", "", false),
        ] {
            assert_eq!(Partitions::of(pattern).contain(key), expected, "{pattern} {key}");
        }
    }

    #[test]
    fn what_begins_with_a_text_lies_before_its_successor() {
        for (text, expected) in [
            ("a", Some("b")),
            ("az", Some("a{")),
            ("a\u{7f}", Some("a\u{80}")),
            ("a\u{d7ff}", Some("a\u{e000}")),
            ("a\u{10ffff}", Some("b")),
            ("\u{10ffff}\u{10ffff}", None),
        ] {
            let partitions = Partitions::of(&format!("{text}*"));
            let successor = partitions.successor();
            assert_eq!(successor.as_deref(), expected, "{text:?}");
            for rest in ["", "\0", "a", "\u{10ffff}\u{10ffff}"] {
                let key = format!("{text}{rest}");
                let before = successor.as_ref().is_none_or(|successor| key < *successor);
                assert!(text <= key.as_str() && before, "{key:?}");
            }
        }
    }
}

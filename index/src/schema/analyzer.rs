//! The analyzers that a TEXT field can have, with their parameters.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::hash_text;

/// How a TEXT field's values, and the texts of queries on it, become tokens. Behaviour and parameters are Tablestore's.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Analyzer {
    /// Each CJK character is a token; runs of letters and digits are one token.
    SingleWord {
        /// Keep upper case.
        case_sensitive: bool,
        /// Cut between letters and digits: `iphone6` → `iphone`, `6`.
        delimit_word: bool,
    },
    /// Split at a delimiter.
    Split {
        /// The delimiter; white space when absent.
        delimiter: Option<String>,
        /// Keep upper case.
        case_sensitive: bool,
    },
    /// Chinese words of the dictionary, the longest ones, without overlaps.
    MinWord,
    /// Chinese words of the dictionary, all of them, overlapping.
    MaxWord,
    /// All runs of `min_chars` to `max_chars` characters of each word; query texts are only split into words.
    Fuzzy {
        /// Characters of the shortest token, from 1.
        min_chars: u8,
        /// Characters of the longest token; at most 7, at most `min_chars + 6`.
        max_chars: u8,
        /// Keep upper case.
        case_sensitive: bool,
    },
    /// What another analyzer makes, its English words (tokens of ASCII letters) cut to their stems by Snowball's
    /// English stemmer: `running` and `runs` → `run`. The other one neither is `Fuzzy` nor keeps upper case. Patterns
    /// and terms are compared with stems.
    Stemmed(Box<Analyzer>),
}

impl Analyzer {
    /// The default of Tablestore: single words, lower case.
    pub fn single_word() -> Self {
        Self::SingleWord {
            case_sensitive: false,
            delimit_word: false,
        }
    }

    /// This analyzer, with English words cut to their stems.
    #[must_use]
    pub fn stemmed(self) -> Self {
        Self::Stemmed(Box::new(self))
    }

    /// The analyzer that makes the tokens, before stems are taken.
    pub fn base(&self) -> &Self {
        let mut base = self;
        while let Self::Stemmed(inside) = base {
            base = inside;
        }
        base
    }

    /// Whether tokens keep upper case.
    pub fn is_case_sensitive(&self) -> bool {
        match self.base() {
            Self::SingleWord { case_sensitive, .. }
            | Self::Split { case_sensitive, .. }
            | Self::Fuzzy { case_sensitive, .. } => *case_sensitive,
            Self::MinWord | Self::MaxWord | Self::Stemmed(_) => false,
        }
    }

    /// Feeds everything that tells this analyzer from others to the hash.
    pub(super) fn feed(&self, hash: &mut Xxh3) {
        match self {
            Self::SingleWord {
                case_sensitive,
                delimit_word,
            } => {
                hash.update(&[0, u8::from(*case_sensitive), u8::from(*delimit_word)]);
            }
            Self::Split {
                delimiter,
                case_sensitive,
            } => {
                hash.update(&[1, u8::from(delimiter.is_some()), u8::from(*case_sensitive)]);
                hash_text(delimiter.as_deref().unwrap_or_default(), hash);
            }
            Self::MinWord => hash.update(&[2]),
            Self::MaxWord => hash.update(&[3]),
            Self::Fuzzy {
                min_chars,
                max_chars,
                case_sensitive,
                // 4 was it when a separator took as many positions as a character.
            } => hash.update(&[6, *min_chars, *max_chars, u8::from(*case_sensitive)]),
            Self::Stemmed(inside) => {
                hash.update(&[5]);
                inside.feed(hash);
            }
        }
    }
}

//! The tokens of texts, as the definitions of single_word and split make them of ASCII, Chinese and a few accented letters.

use souk_index::Analyzer;

/// How a text becomes words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    /// Each Chinese character alone; letters and digits next to each other are one word, or one each with `apart`.
    Single { cased: bool, apart: bool },
    /// What stands between white space, or between commas.
    Split { cased: bool, commas: bool },
}

impl Words {
    pub(crate) fn analyzer(self) -> Analyzer {
        match self {
            Self::Single { cased, apart } => Analyzer::SingleWord {
                case_sensitive: cased,
                delimit_word: apart,
            },
            Self::Split { cased, commas } => Analyzer::Split {
                delimiter: commas.then(|| ",".to_owned()),
                case_sensitive: cased,
            },
        }
    }

    /// The words of a text, in their order.
    pub(crate) fn of(self, text: &str) -> Vec<String> {
        let (words, cased) = match self {
            Self::Single { cased, apart } => (single(text, apart), cased),
            Self::Split { cased, commas: true } => (parts(text, &[',']), cased),
            Self::Split { cased, commas: false } => (parts(text, &[' ', '\n', '\t']), cased),
        };
        if cased {
            words
        } else {
            words.iter().map(|word| word.to_lowercase()).collect()
        }
    }
}

fn parts(text: &str, between: &[char]) -> Vec<String> {
    text.split(|c| between.contains(&c))
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Cuts a text wherever two characters don't belong to one word.
fn single(text: &str, apart: bool) -> Vec<String> {
    let chinese = |c: char| ('\u{4e00}'..='\u{9fff}').contains(&c);
    let mut words: Vec<String> = Vec::new();
    let mut last: Option<char> = None;
    for c in text.chars() {
        // An accent that is written apart belongs to its letter.
        if matches!(c, '\u{300}'..='\u{36f}')
            && last.is_some_and(|last| last.is_alphanumeric() && !chinese(last))
        {
            words.last_mut().expect("a letter").push(c);
            continue;
        }
        if c.is_alphanumeric() {
            let joined = last.is_some_and(|last| {
                last.is_alphanumeric()
                    && !chinese(last)
                    && !chinese(c)
                    && (!apart || last.is_numeric() == c.is_numeric())
            });
            match words.last_mut().filter(|_| joined) {
                Some(word) => word.push(c),
                None => words.push(c.to_string()),
            }
        }
        last = Some(c);
    }
    words
}

/// The length of a text as it is kept in one byte: exact up to 40, then 4 significant bits of what is above 24 (Lucene's
/// `SmallFloat.intToByte4`).
pub(crate) fn kept_length(tokens: u64) -> u64 {
    let above = tokens.saturating_sub(24);
    let bits = u64::BITS - above.leading_zeros();
    let dropped = bits.saturating_sub(4);
    tokens.min(24) + ((above >> dropped) << dropped)
}

#[test]
fn lengths_keep_four_bits() {
    assert!((0..=40).all(|length| kept_length(length) == length));
    assert_eq!(
        [41, 42, 55, 56, 59, 60].map(kept_length),
        [40, 42, 54, 56, 56, 60]
    );
}

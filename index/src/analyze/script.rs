//! What kind of character stands where: the one place that says what a word is made of.

/// Whether this is a Han character, of which dictionary words are made.
pub(super) fn is_han(c: char) -> bool {
    matches!(c,
        '\u{4E00}'..='\u{9FFF}'
        | '\u{3400}'..='\u{4DBF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{2A6DF}'
        | '\u{2A700}'..='\u{2EBEF}'
        | '\u{2F800}'..='\u{2FA1F}'
        | '\u{30000}'..='\u{323AF}')
}

/// Whether this character is a token of its own: Han, kana, Hangul.
pub(super) fn is_cjk(c: char) -> bool {
    is_han(c)
        || (c.is_alphanumeric()
            && matches!(c,
                '\u{3005}'..='\u{3007}'
                | '\u{3040}'..='\u{30FF}'
                | '\u{31F0}'..='\u{31FF}'
                | '\u{AC00}'..='\u{D7AF}'
                | '\u{FF66}'..='\u{FF9F}'))
}

/// Whether this character belongs to a word: letters, digits, CJK. All others separate.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || is_han(c)
}

/// Whether this character continues a word that has begun: also accents that are written apart.
pub(super) fn continues_word(c: char) -> bool {
    is_word(c) || matches!(c, '\u{300}'..='\u{36F}')
}

/// A stretch of text of one kind, from a byte to the one behind the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScriptRun {
    /// Han characters that follow each other, at most [`MAX_HAN_RUN`].
    Han { from: usize, to: usize },
    /// Letters and digits of other scripts that follow each other, or one kana or Hangul character.
    Word { from: usize, to: usize },
}

/// Characters after which a run of Han characters is cut: bounds the memory of its segmentation. No sentence comes
/// near.
pub(super) const MAX_HAN_RUN: usize = 4096;

/// The runs of a text, from its beginning to its end.
pub(super) fn runs(text: &str) -> impl Iterator<Item = ScriptRun> + '_ {
    let mut chars = text.char_indices().peekable();
    std::iter::from_fn(move || {
        loop {
            let (from, first) = chars.next()?;
            let mut to = from + first.len_utf8();
            if is_han(first) {
                for _ in 1..MAX_HAN_RUN {
                    let Some((at, c)) = chars.next_if(|(_, c)| is_han(*c)) else {
                        break;
                    };
                    to = at + c.len_utf8();
                }
                return Some(ScriptRun::Han { from, to });
            }
            if is_cjk(first) {
                return Some(ScriptRun::Word { from, to });
            }
            if is_word(first) {
                while let Some((at, c)) = chars.next_if(|(_, c)| continues_word(*c) && !is_cjk(*c)) {
                    to = at + c.len_utf8();
                }
                return Some(ScriptRun::Word { from, to });
            }
        }
    })
}

/// Whether a cut at the byte `at` of `text` would cut a word in two; CJK characters are words of their own.
pub(crate) fn inside_word(text: &str, at: usize) -> bool {
    let before = text.get(..at).and_then(|text| text.chars().next_back());
    let behind = text.get(at..).and_then(|text| text.chars().next());
    let joins = |c: Option<char>| c.is_some_and(|c| continues_word(c) && !is_cjk(c));
    joins(before) && joins(behind)
}

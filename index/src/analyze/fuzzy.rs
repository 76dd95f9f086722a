//! The fuzzy analyzer: finds a word by any part of it.
//!
//! A document's words are cut into all runs of `min_chars` to `max_chars` characters; the words of a query stay whole,
//! so a query word that is shorter than `min_chars` or longer than `max_chars` equals no token. A longer query word is
//! found as a phrase of its consecutive parts.
//!
//! A character takes two positions, and what separates two words, however long it is, takes one: so an even distance is
//! one inside of a word, and an odd one leads over one separator (three and more of them are further apart than the word
//! between them is long). A run stands at its first character. The end of a text takes one position as a separator does,
//! and the index counts another between two texts of an array: no phrase goes from one to the next.

use super::script::{continues_word, is_word};
use super::token_stream::Piece;

/// Characters of a text that the fuzzy analyzer looks at; what comes behind isn't found.
pub const MAX_FUZZY_CHARS: usize = 1024;

/// Positions of a character.
pub(super) const CHAR_POSITIONS: usize = 2;

/// Positions of what separates two words.
const SEPARATOR_POSITIONS: usize = 1;

/// Positions of a word or run of so many characters, with what ends it.
fn positions(chars: usize) -> usize {
    CHAR_POSITIONS * chars + SEPARATOR_POSITIONS
}

/// The words of `text`.
pub(super) fn words(text: &str) -> impl Iterator<Item = Piece> + Send + '_ {
    let mut chars = text.char_indices().take(MAX_FUZZY_CHARS).peekable();
    let mut position = 0;
    std::iter::from_fn(move || {
        let (from, first) = chars.find(|(_, c)| is_word(*c))?;
        let mut to = from + first.len_utf8();
        let mut length = 1;
        while let Some((at, c)) = chars.next_if(|(_, c)| continues_word(*c)) {
            to = at + c.len_utf8();
            length += 1;
        }
        let units = positions(length);
        let piece = Piece {
            from,
            to,
            position,
            units,
        };
        position += units;
        Some(piece)
    })
}

/// The runs of `min_chars` to `max_chars` characters of each word of `text`, by where they begin, then by length.
pub(super) fn runs(
    text: &str,
    min_chars: usize,
    max_chars: usize,
) -> impl Iterator<Item = Piece> + Send + '_ {
    words(text).flat_map(move |word| {
        let spelled = text.get(word.from..word.to).unwrap_or_default();
        // Where each character of the word begins, and where the last one ends.
        let mut bounds: Vec<usize> = spelled.char_indices().map(|(at, _)| word.from + at).collect();
        bounds.push(word.to);
        let mut pieces = Vec::new();
        for (start, from) in bounds.iter().enumerate() {
            let ends = bounds.iter().skip(start).enumerate();
            for (length, to) in ends.take(max_chars + 1).skip(min_chars) {
                pieces.push(Piece {
                    from: *from,
                    to: *to,
                    position: word.position + CHAR_POSITIONS * start,
                    units: positions(length),
                });
            }
        }
        pieces
    })
}

/// The consecutive parts of a word that together are as long as it, each as long as the longest token, and how many
/// positions behind the word's they begin.
pub(super) fn parts(word: &str, max_chars: usize, case_sensitive: bool) -> Vec<(usize, String)> {
    let chars: Vec<char> = word.chars().collect();
    let length = max_chars.max(1);
    // The last part overlaps the one before, so that it isn't shorter than any token is.
    let last = chars.len().saturating_sub(length);
    let starts = (0..last).step_by(length).chain([last]);
    let parts = starts.map(|from| {
        let part = chars.iter().skip(from).take(length);
        let spelled = match case_sensitive {
            true => part.collect(),
            false => part.flat_map(|c| c.to_lowercase()).collect(),
        };
        (CHAR_POSITIONS * from, spelled)
    });
    parts.collect()
}

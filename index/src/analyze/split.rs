//! The split analyzer. A position counts tokens; empty ones (delimiters in a row) don't count.

use super::token_stream::Piece;

/// What stands between white space.
pub(super) fn at_white_space(text: &str) -> impl Iterator<Item = Piece> + Send + '_ {
    numbered(text, text.split_whitespace())
}

/// What stands between occurrences of `delimiter`, which isn't empty.
pub(super) fn at_delimiter<'a>(text: &'a str, delimiter: &'a str) -> impl Iterator<Item = Piece> + Send + 'a {
    numbered(text, text.split(delimiter).filter(|part| !part.is_empty()))
}

/// Finds where each part, a slice of `text`, lies, and numbers it.
fn numbered<'a>(
    text: &'a str,
    parts: impl Iterator<Item = &'a str> + Send + 'a,
) -> impl Iterator<Item = Piece> + Send + 'a {
    let start = text.as_ptr().addr();
    parts.enumerate().map(move |(position, part)| {
        let from = part.as_ptr().addr() - start;
        Piece::single(from, from + part.len(), position)
    })
}

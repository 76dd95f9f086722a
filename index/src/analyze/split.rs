//! The split analyzer. A position counts tokens; empty ones (delimiters in a row) don't count.

use super::token_stream::Piece;

/// Finds where each part, a slice of `text`, lies, and numbers it; empty ones are left out.
pub(super) fn pieces<'a>(
    text: &'a str,
    parts: impl Iterator<Item = &'a str> + Send + 'a,
) -> impl Iterator<Item = Piece> + Send + 'a {
    let start = text.as_ptr().addr();
    let parts = parts.filter(|part| !part.is_empty());
    parts.enumerate().map(move |(position, part)| {
        let from = part.as_ptr().addr() - start;
        Piece::single(from, from + part.len(), position)
    })
}

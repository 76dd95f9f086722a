//! The single_word analyzer. A position counts tokens; what separates them doesn't count.

use super::script::{continues_word, is_cjk, is_word};
use super::token_stream::Piece;

/// The tokens of `text`. With `delimit_word`, "iPhone6" is "iPhone" and "6".
pub(super) fn pieces(text: &str, delimit_word: bool) -> impl Iterator<Item = Piece> + Send + '_ {
    let mut chars = text.char_indices().peekable();
    let mut position = 0;
    std::iter::from_fn(move || {
        let (from, first) = chars.find(|(_, c)| is_word(*c))?;
        let mut to = from + first.len_utf8();
        if !is_cjk(first) {
            let parts = |c: char| delimit_word && is_word(c) && c.is_numeric() != first.is_numeric();
            while let Some((at, c)) = chars.next_if(|(_, c)| continues_word(*c) && !is_cjk(*c) && !parts(*c))
            {
                to = at + c.len_utf8();
            }
        }
        let piece = Piece::single(from, to, position);
        position += 1;
        Some(piece)
    })
}

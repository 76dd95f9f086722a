//! From pieces of a text to the search library's tokens.

use frostem::Stemmer;
use tantivy::tokenizer::{Token, TokenStream};

/// How a token is spelled, given how it is written.
pub(super) enum Spelling {
    AsWritten,
    /// In lower case.
    Lower,
    /// In lower case; the stem of an English word.
    Stem(Stemmer),
}

/// A part of a text that is a token: where it is, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Position of the first unit.
    pub(super) position: usize,
    pub(super) units: usize,
}

impl Piece {
    /// A token that takes one position.
    pub(super) fn single(from: usize, to: usize, position: usize) -> Self {
        Self {
            from,
            to,
            position,
            units: 1,
        }
    }
}

/// Turns pieces into tokens one at a time, so that a long text is never held twice.
pub(super) struct PieceStream<'a> {
    pub(super) text: &'a str,
    pub(super) spelling: Spelling,
    pub(super) pieces: Box<dyn Iterator<Item = Piece> + Send + 'a>,
    pub(super) token: Token,
}

impl TokenStream for PieceStream<'_> {
    fn advance(&mut self) -> bool {
        let Some(piece) = self.pieces.next() else {
            return false;
        };
        let spelled = self.text.get(piece.from..piece.to).unwrap_or_default();
        self.token.text.clear();
        if matches!(self.spelling, Spelling::AsWritten) {
            self.token.text.push_str(spelled);
        } else {
            // Not str::to_lowercase, whose final sigma depends on where a word ends: a run of characters has to be
            // spelled alike inside a word and alone.
            let lower = spelled.chars().flat_map(char::to_lowercase);
            self.token.text.extend(lower);
        }
        if let Spelling::Stem(stemmer) = &self.spelling
            && is_english(&self.token.text)
        {
            self.token.text = stemmer.stem(&self.token.text).into_owned();
        }
        self.token.offset_from = piece.from;
        self.token.offset_to = piece.to;
        self.token.position = piece.position;
        self.token.position_length = piece.units;
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

/// Whether a token in lower case may be an English word: the stemmer's rules are for nothing else.
fn is_english(token: &str) -> bool {
    let mut bytes = token.bytes();
    bytes.all(|byte| byte.is_ascii_lowercase() || byte == b'\'')
}

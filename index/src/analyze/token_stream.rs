//! From pieces of a text to the search library's tokens.

use tantivy::tokenizer::{Token, TokenStream};

/// A part of a text that is a token: where it is, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// First byte.
    pub(super) from: usize,
    /// Byte behind the last.
    pub(super) to: usize,
    /// Position of the first unit.
    pub(super) position: usize,
    /// Number of units.
    pub(super) units: usize,
}

/// Turns pieces into tokens one at a time, so that a long text is never held twice.
pub(super) struct PieceStream<'a> {
    text: &'a str,
    keep_case: bool,
    pieces: Box<dyn Iterator<Item = Piece> + Send + 'a>,
    token: Token,
}

impl<'a> PieceStream<'a> {
    pub(super) fn new(
        text: &'a str,
        keep_case: bool,
        pieces: Box<dyn Iterator<Item = Piece> + Send + 'a>,
    ) -> Self {
        Self {
            text,
            keep_case,
            pieces,
            token: Token::default(),
        }
    }
}

impl TokenStream for PieceStream<'_> {
    fn advance(&mut self) -> bool {
        let Some(piece) = self.pieces.next() else {
            return false;
        };
        let spelled = self.text.get(piece.from..piece.to).unwrap_or_default();
        self.token.text.clear();
        if self.keep_case {
            self.token.text.push_str(spelled);
        } else {
            // Not str::to_lowercase, whose final sigma depends on where a word ends: a run of characters has to be
            // spelled alike inside a word and alone.
            self.token
                .text
                .extend(spelled.chars().flat_map(char::to_lowercase));
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

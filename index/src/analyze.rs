//! Analyzers: how the text of a TEXT field, and the text of a query on it, becomes tokens.
//!
//! What each makes of a text is said in [`Analyzer`] and in docs/SEARCH.md.
//!
//! All that aren't case-sensitive lower the case, character by character, so that a part of a word and the
//! whole word agree. A token knows the bytes of the text that it stands for (for highlights) and a position (for
//! phrases). What a position counts is said in each analyzer's module.
//!
//! The search library keeps analyzers by name in memory only: `register` has to be called each time that an index is
//! opened. Names are derived from the parameters, so equal analyzers share one.

mod chinese;
mod fuzzy;
mod script;
mod single_word;
mod split;
mod token_stream;

use std::collections::BTreeSet;
use std::convert::Infallible;

use frostem::{Algorithm, Stemmer};
use tantivy::tokenizer::{TextAnalyzer, TokenStream as _, Tokenizer, TokenizerManager};

pub use fuzzy::MAX_FUZZY_CHARS;
pub(crate) use script::inside_word;
/// One token of an analyzed text: what is looked up, the bytes of the text that it stands for, its position, which is never
/// less than that of the token before, and how many positions it takes.
pub use tantivy::tokenizer::Token;
use token_stream::{Piece, PieceStream, Spelling};

use crate::attribute::hexadecimal;
use crate::limits::MAX_TOKEN_BYTES;
use crate::schema::Analyzer;

/// How many times longer a token may be in lower case: U+0130 becomes three bytes of two, and nothing grows more.
const LOWER_CASE_GROWTH: usize = 2;

/// On which side a text is analyzed. Only the fuzzy analyzer makes a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The text of a document.
    Index,
    /// The text of a query.
    Query,
}

/// The tokens of `text`, in the order of their positions.
pub fn analyze(analyzer: &Analyzer, phase: Phase, text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let Ok(()) = each_token(analyzer, phase, text, |token| {
        tokens.push(token.clone());
        Ok::<_, Infallible>(())
    });
    tokens
}

/// Gives the tokens of `text` to `take`, in the order of their positions, until that fails.
pub(crate) fn each_token<E>(
    analyzer: &Analyzer,
    phase: Phase,
    text: &str,
    mut take: impl FnMut(&Token) -> Result<(), E>,
) -> Result<(), E> {
    let analyzer = analyzer.clone();
    let mut tokenizer = AnalyzerTokenizer { analyzer, phase };
    let mut stream = tokenizer.token_stream(text);
    while stream.advance() {
        take(stream.token())?;
    }
    Ok(())
}

/// Bytes of the tokens of a text that are too long for the index ([`MAX_TOKEN_BYTES`]), those by which phrases are found
/// only where no other is.
pub(crate) fn long_tokens(analyzer: &Analyzer, text: &str) -> Vec<usize> {
    let splits_at_white_space =
        !matches!(analyzer.base(), Analyzer::Split { delimiter, .. } if delimiter.is_some());
    let shortest = MAX_TOKEN_BYTES / LOWER_CASE_GROWTH;
    let may_be_long = |part: &[u8]| part.len() > shortest;
    let parts = || text.as_bytes().split(u8::is_ascii_whitespace);
    if !may_be_long(text.as_bytes()) || splits_at_white_space && !parts().any(may_be_long) {
        return Vec::new();
    }
    let of = |analyzer: &Analyzer| {
        let mut long = Vec::new();
        let Ok(()) = each_token(analyzer, Phase::Index, text, |token| {
            long.extend(Some(token.text.len()).filter(|bytes| *bytes > MAX_TOKEN_BYTES));
            Ok::<_, Infallible>(())
        });
        long
    };
    let long = of(analyzer);
    match phrase_analyzer(analyzer) {
        Some(analyzer) if long.is_empty() => of(&analyzer),
        _ => long,
    }
}

/// A token of a query, and its position.
pub(crate) type Placed = (usize, String);

/// The parts under which a token of a query's text is looked up, at positions relative to its own. A word that is longer
/// than the fuzzy analyzer's tokens has several, every other token is its own.
pub(crate) fn query_parts(analyzer: &Analyzer, text: &str, token: &Token) -> Vec<Placed> {
    let Analyzer::Fuzzy {
        max_chars,
        case_sensitive,
        ..
    } = analyzer
    else {
        return vec![(0, token.text.clone())];
    };
    let spelled = text.get(token.offset_from..token.offset_to).unwrap_or_default();
    fuzzy::parts(spelled, usize::from(*max_chars), *case_sensitive)
}

/// The tokens of a phrase, each once at each of its positions.
pub(crate) fn phrase_words(analyzer: &Analyzer, text: &str) -> BTreeSet<Placed> {
    let tokens = analyze(analyzer, Phase::Query, text);
    let placed = |token: &Token| {
        let at = token.position;
        let parts = query_parts(analyzer, text, token).into_iter();
        parts.map(move |(offset, part)| (at + offset, part))
    };
    tokens.iter().flat_map(placed).collect()
}

/// By how many positions the tokens of a phrase may be apart for a slop of so many words. Where words are found by their
/// parts, `slop` counts characters, and what separates two words is half a one.
pub(crate) fn slop_positions(analyzer: &Analyzer, slop: u32) -> usize {
    let positions = match analyzer {
        Analyzer::Fuzzy { .. } => fuzzy::CHAR_POSITIONS,
        _ => 1,
    };
    positions.saturating_mul(slop as usize)
}

/// A text in lower case, character by character: as texts are compared whose case doesn't matter.
pub fn folded(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// The name under which [`register`] makes `analyzer` known: the same for equal parameters, in every version that reads
/// this version's indexes. It stands for [`Phase::Index`]; query texts go through [`analyze`].
pub(crate) fn tokenizer_name(analyzer: &Analyzer) -> String {
    let case = if analyzer.is_case_sensitive() { ".case" } else { "" };
    match analyzer {
        Analyzer::SingleWord {
            case_sensitive,
            delimit_word,
        } => {
            let (case, delimit) = (u8::from(*case_sensitive), u8::from(*delimit_word));
            format!("souk.single_word.{case}.{delimit}")
        }
        Analyzer::Split { delimiter, .. } => match delimiter {
            None => format!("souk.split{case}"),
            Some(delimiter) => format!("souk.split.{}{case}", hexadecimal(delimiter.as_bytes())),
        },
        Analyzer::MinWord => "souk.min_word".to_owned(),
        Analyzer::MaxWord => "souk.max_word".to_owned(),
        Analyzer::Fuzzy {
            min_chars, max_chars, ..
        } => format!("souk.fuzzy2.{min_chars}.{max_chars}{case}"),
        Analyzer::Stemmed(inside) => format!("{}.english", tokenizer_name(inside)),
    }
}

/// The analyzer by which phrases are found in a field of `analyzer`, if it is another one.
///
/// Which words min_word and max_word see depends on what stands around them, so that the words of a phrase needn't be
/// words of a text that contains it. Single characters don't depend on anything.
///
/// A phrase then is found where its characters (words of other scripts: its words) follow each other, whatever separates
/// them. The characters take some 2 bytes each on the disk: 12.4 bytes for a name of 6.7 characters.
pub fn phrase_analyzer(analyzer: &Analyzer) -> Option<Analyzer> {
    match analyzer {
        Analyzer::MinWord | Analyzer::MaxWord => Some(Analyzer::single_word()),
        Analyzer::Stemmed(inside) => phrase_analyzer(inside).map(Analyzer::stemmed),
        Analyzer::SingleWord { .. } | Analyzer::Split { .. } | Analyzer::Fuzzy { .. } => None,
    }
}

/// Makes `analyzer`, and that of its phrases, known to `manager`.
pub(crate) fn register(manager: &TokenizerManager, analyzer: &Analyzer) {
    let analyzers = [Some(analyzer.clone()), phrase_analyzer(analyzer)];
    for analyzer in analyzers.into_iter().flatten() {
        let name = tokenizer_name(&analyzer);
        let phase = Phase::Index;
        manager.register(&name, TextAnalyzer::from(AnalyzerTokenizer { analyzer, phase }));
    }
}

/// An [`Analyzer`] in the shape that the search library takes.
#[derive(Clone, Debug)]
struct AnalyzerTokenizer {
    analyzer: Analyzer,
    phase: Phase,
}

impl Tokenizer for AnalyzerTokenizer {
    type TokenStream<'a> = PieceStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> PieceStream<'a> {
        let pieces: Box<dyn Iterator<Item = Piece> + Send + 'a> = match (self.analyzer.base(), self.phase) {
            (Analyzer::SingleWord { delimit_word, .. }, _) => {
                Box::new(single_word::pieces(text, *delimit_word))
            }
            (Analyzer::Split { delimiter, .. }, _) => match delimiter.as_deref() {
                None => Box::new(split::pieces(text, text.split_whitespace())),
                Some(delimiter) => Box::new(split::pieces(text, text.split(delimiter))),
            },
            (Analyzer::MinWord, _) => Box::new(chinese::min_words(text)),
            (Analyzer::MaxWord, _) => Box::new(chinese::max_words(text)),
            (Analyzer::Fuzzy { .. }, Phase::Query) => Box::new(fuzzy::words(text)),
            (
                Analyzer::Fuzzy {
                    min_chars, max_chars, ..
                },
                Phase::Index,
            ) => Box::new(fuzzy::runs(text, (*min_chars).into(), (*max_chars).into())),
            // A base is never one.
            (Analyzer::Stemmed(_), _) => Box::new(std::iter::empty()),
        };
        let spelling = match &self.analyzer {
            Analyzer::Stemmed(_) => Spelling::Stem(Stemmer::new(Algorithm::English)),
            analyzer if analyzer.is_case_sensitive() => Spelling::AsWritten,
            _ => Spelling::Lower,
        };
        PieceStream {
            text,
            spelling,
            pieces,
            token: Token::default(),
        }
    }
}

#[cfg(test)]
mod tests;

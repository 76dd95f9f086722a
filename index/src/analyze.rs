//! Analyzers: how the text of a TEXT field, and the text of a query on it, becomes tokens.
//!
//! | analyzer | tokens |
//! |---|---|
//! | single_word | each CJK character; each run of other letters and digits (`delimit_word`: letters and digits apart) |
//! | split | what stands between delimiters |
//! | min_word | the fewest, longest dictionary words, without overlaps |
//! | max_word | all dictionary words, overlapping |
//! | fuzzy | all runs of `min_chars` to `max_chars` characters inside each word; a query's words stay whole |
//!
//! All but a case-sensitive single_word lower the case, character by character, so that a part of a word and the
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

use tantivy::tokenizer::{TextAnalyzer, TokenStream as _, Tokenizer, TokenizerManager};

pub use fuzzy::MAX_FUZZY_CHARS;
use token_stream::{Piece, PieceStream};

use crate::schema::Analyzer;

/// On which side a text is analyzed. Only the fuzzy analyzer makes a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The text of a document.
    Index,
    /// The text of a query.
    Query,
}

/// One token of an analyzed text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnalyzedToken {
    /// What is looked up.
    pub text: String,
    /// The first byte of the text that the token stands for.
    pub from: usize,
    /// The byte behind the last one that the token stands for.
    pub to: usize,
    /// Where the token stands; never less than that of the token before.
    pub position: usize,
    /// How many positions it takes.
    pub position_length: usize,
}

/// The tokens of `text`, in the order of their positions.
#[must_use]
pub fn analyze(analyzer: &Analyzer, phase: Phase, text: &str) -> Vec<AnalyzedToken> {
    let mut tokenizer = AnalyzerTokenizer {
        analyzer: analyzer.clone(),
        phase,
    };
    let mut stream = tokenizer.token_stream(text);
    let mut tokens = Vec::new();
    while stream.advance() {
        let token = stream.token();
        tokens.push(AnalyzedToken {
            text: token.text.clone(),
            from: token.offset_from,
            to: token.offset_to,
            position: token.position,
            position_length: token.position_length,
        });
    }
    tokens
}

/// The name under which [`register`] makes `analyzer` known: the same for equal parameters, in every version that reads
/// this version's indexes. It stands for [`Phase::Index`]; query texts go through [`analyze`].
#[must_use]
pub(crate) fn tokenizer_name(analyzer: &Analyzer) -> String {
    match analyzer {
        Analyzer::SingleWord {
            case_sensitive,
            delimit_word,
        } => {
            format!(
                "souk.single_word.{}.{}",
                u8::from(*case_sensitive),
                u8::from(*delimit_word)
            )
        }
        Analyzer::Split { delimiter: None } => "souk.split".to_owned(),
        Analyzer::Split {
            delimiter: Some(delimiter),
        } => {
            let hex: String = delimiter.bytes().map(|byte| format!("{byte:02x}")).collect();
            format!("souk.split.{hex}")
        }
        Analyzer::MinWord => "souk.min_word".to_owned(),
        Analyzer::MaxWord => "souk.max_word".to_owned(),
        Analyzer::Fuzzy { min_chars, max_chars } => format!("souk.fuzzy.{min_chars}.{max_chars}"),
    }
}

/// Makes `analyzer` known to `manager`.
pub(crate) fn register(manager: &TokenizerManager, analyzer: &Analyzer) {
    let tokenizer = AnalyzerTokenizer {
        analyzer: analyzer.clone(),
        phase: Phase::Index,
    };
    manager.register(&tokenizer_name(analyzer), TextAnalyzer::from(tokenizer));
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
        let pieces: Box<dyn Iterator<Item = Piece> + Send + 'a> = match (&self.analyzer, self.phase) {
            (Analyzer::SingleWord { delimit_word, .. }, _) => {
                Box::new(single_word::pieces(text, *delimit_word))
            }
            (Analyzer::Split { delimiter }, _) => match delimiter.as_deref() {
                None => Box::new(split::at_white_space(text)),
                Some(delimiter) => Box::new(split::at_delimiter(text, delimiter)),
            },
            (Analyzer::MinWord, _) => Box::new(chinese::min_words(text)),
            (Analyzer::MaxWord, _) => Box::new(chinese::max_words(text)),
            (Analyzer::Fuzzy { min_chars, max_chars }, Phase::Index) => Box::new(fuzzy::runs(
                text,
                usize::from(*min_chars),
                usize::from(*max_chars),
            )),
            (Analyzer::Fuzzy { .. }, Phase::Query) => Box::new(fuzzy::words(text)),
        };
        let keep_case = matches!(
            self.analyzer,
            Analyzer::SingleWord {
                case_sensitive: true,
                ..
            }
        );
        PieceStream::new(text, keep_case, pieces)
    }
}

#[cfg(test)]
mod tests;

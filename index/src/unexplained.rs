//! The part of the library's weights that nobody asks for: profiles tell what clauses cost, and no search explains scores.

use tantivy::SeekDangerResult;
use tantivy::query::{EnableScoring, Scorer};

/// What [`tantivy::query::Weight::scorer_danger`] answers: a scorer, and what it says of a document.
pub(crate) type Standing = tantivy::Result<(SeekDangerResult, Box<dyn Scorer>)>;

/// The same without scores.
pub(crate) fn unscored<'a>(scoring: &EnableScoring<'a>) -> EnableScoring<'a> {
    match *scoring {
        EnableScoring::Enabled { searcher, .. } => EnableScoring::disabled_from_searcher(searcher),
        disabled @ EnableScoring::Disabled { .. } => disabled,
    }
}

/// A method of [`tantivy::query::Weight`] that has to be there.
macro_rules! unexplained {
    () => {
        fn explain(
            &self,
            _: &tantivy::SegmentReader,
            _: tantivy::DocId,
        ) -> tantivy::Result<tantivy::query::Explanation> {
            let message = "scores are not explained".to_owned();
            Err(tantivy::TantivyError::InvalidArgument(message))
        }
    };
}

pub(crate) use unexplained;

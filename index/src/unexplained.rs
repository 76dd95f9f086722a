//! The part of the library's weights that nobody asks for: profiles tell what clauses cost, and no search explains scores.

/// What [`tantivy::query::Weight::scorer_danger`] answers: a scorer, and what it says of a document.
pub(crate) type Standing = tantivy::Result<(tantivy::SeekDangerResult, Box<dyn tantivy::query::Scorer>)>;

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

//! The part of the library's weights that nobody asks for: profiles tell what clauses cost, and no search explains scores.

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

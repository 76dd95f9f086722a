//! The nested objects of a document, found by the block that they share with it (see [`crate::join`]).

use std::sync::Arc;

use tantivy::query::{Scorer, Weight};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, SegmentReader, TERMINATED, Term};

use crate::bits::Bits;
use crate::doc_walk::go_to;
use crate::join::ParentCache;

/// Walks the objects of documents, which have to be asked for in ascending order.
pub(super) struct Objects {
    documents: Arc<Bits>,
    objects: Box<dyn Scorer>,
}

impl Objects {
    /// The objects that `filter` matches, or all objects of the kind.
    pub(super) fn open(
        reader: &SegmentReader,
        parents: &ParentCache,
        root: &Term,
        kind: &Term,
        filter: Option<&dyn Weight>,
    ) -> tantivy::Result<Self> {
        let objects = match filter {
            Some(filter) => filter.scorer(reader, 1.0)?,
            None => {
                let all = tantivy::query::TermQuery::new(kind.clone(), IndexRecordOption::Basic);
                let scoring = tantivy::query::EnableScoring::disabled_from_schema(reader.schema());
                tantivy::query::Query::weight(&all, scoring)?.scorer(reader, 1.0)?
            }
        };
        Ok(Self {
            documents: parents.get(reader, root)?,
            objects,
        })
    }

    /// The next object of `document`, which lies after those of the documents asked for before.
    pub(super) fn next(&mut self, document: DocId) -> Option<DocId> {
        let object = self.objects.doc();
        if object >= document || object == TERMINATED {
            return None;
        }
        self.objects.advance();
        Some(object)
    }

    /// Passes over the objects of earlier documents.
    pub(super) fn seek(&mut self, document: DocId) {
        let first = self.documents.block_start(document);
        go_to(&mut self.objects, first);
    }
}

//! Documents of one segment that were gathered with their scores.

use tantivy::query::{EmptyScorer, Scorer};
use tantivy::{DocId, DocSet, Score, TERMINATED};

/// Documents in order, each once, with what it scores.
pub(super) struct ScoredList {
    list: Vec<(DocId, Score)>,
    at: usize,
}

impl ScoredList {
    /// Documents in any order; what one scores several times is added up in that order.
    pub(super) fn scorer(mut list: Vec<(DocId, Score)>) -> Box<dyn Scorer> {
        list.sort_by_key(|(doc, _)| *doc);
        list.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        if list.is_empty() {
            return Box::new(EmptyScorer);
        }
        Box::new(Self { list, at: 0 })
    }
}

impl DocSet for ScoredList {
    fn advance(&mut self) -> DocId {
        self.at = (self.at + 1).min(self.list.len());
        self.doc()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        let rest = self.list.get(self.at..).unwrap_or_default();
        self.at += rest.partition_point(|(doc, _)| *doc < target);
        self.doc()
    }

    fn doc(&self) -> DocId {
        self.list.get(self.at).map_or(TERMINATED, |(doc, _)| *doc)
    }

    fn size_hint(&self) -> u32 {
        self.list.len() as u32
    }
}

impl Scorer for ScoredList {
    fn score(&mut self) -> Score {
        self.list.get(self.at).map_or(0.0, |(_, score)| *score)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_come_in_order_with_their_sums() {
        let mut scorer = ScoredList::scorer(vec![(7, 1.0), (3, 0.5), (7, 0.25), (9, 2.0)]);
        assert_eq!((scorer.doc(), scorer.score()), (3, 0.5));
        assert_eq!((scorer.advance(), scorer.score()), (7, 1.25));
        assert_eq!(scorer.seek(7), 7);
        assert_eq!(scorer.seek(8), 9);
        assert_eq!((scorer.advance(), scorer.advance()), (TERMINATED, TERMINATED));
        assert_eq!(ScoredList::scorer(Vec::new()).doc(), TERMINATED);
    }
}

//! Documents with the tokens of a phrase near each other.
//!
//! Moving each occurrence of a token back by the token's place in the phrase puts an exact phrase on one position. A
//! document matches when it has an occurrence for each token such that these positions lie within `slop` of each
//! other, and no occurrence stands for two tokens: the definition of Lucene's sloppy phrase. (The search library's own
//! adds up distances between neighbours only, finds other documents for three and more tokens, and overflows at 256.)

use std::sync::Arc;

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{Postings, SegmentPostings};
use tantivy::query::{EmptyScorer, EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, DocSet, Score, Searcher, SegmentReader, TERMINATED, Term};

use super::no_match;
use crate::bm25::{Bm25, Norms, average, idf};
use crate::run::Run;

/// Candidates between two looks at the deadline: with the longest phrase one may take 0.2 ms.
const LOOKS_PER_CHECK: u32 = 128;

/// The documents with all of some terms, each at its place give or take `slop`.
#[derive(Clone, Debug)]
pub(super) struct SloppyPhraseQuery {
    field: Field,
    terms: Vec<(u64, Term)>,
    slop: u64,
    run: Arc<Run>,
}

impl SloppyPhraseQuery {
    /// At least two terms with their places.
    pub(super) fn new(field: Field, terms: Vec<(u64, Term)>, slop: u64, run: &Arc<Run>) -> Self {
        Self {
            field,
            terms,
            slop,
            run: Arc::clone(run),
        }
    }

    /// A phrase is as rare as its terms are together: their weights add up.
    fn similarity(&self, searcher: &Searcher) -> tantivy::Result<Bm25> {
        let statistics = self.run.statistics();
        let texts = statistics.texts(searcher, self.field)?;
        let weights = self.terms.iter().map(|(_, term)| {
            let having = statistics.having(searcher, term)?;
            Ok(f64::from(idf(texts.documents, having)))
        });
        let weight = weights.sum::<tantivy::Result<f64>>()? as Score;
        Ok(Norms::new(average(texts.documents, texts.tokens)).weigh(weight))
    }
}

impl Query for SloppyPhraseQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let similarity = match scoring {
            EnableScoring::Enabled { searcher, .. } => Some(self.similarity(searcher)?),
            EnableScoring::Disabled { .. } => None,
        };
        Ok(Box::new(SloppyPhraseWeight {
            query: self.clone(),
            similarity,
        }))
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        self.terms.iter().for_each(|(_, term)| visitor(term, true));
    }
}

struct SloppyPhraseWeight {
    query: SloppyPhraseQuery,
    similarity: Option<Bm25>,
}

impl Weight for SloppyPhraseWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let index = reader.inverted_index(self.query.field)?;
        let mut tokens: Vec<Occurrences> = Vec::new();
        let mut sorted: Vec<&(u64, Term)> = self.query.terms.iter().collect();
        sorted.sort_by(|(a_place, a), (b_place, b)| (a, a_place).cmp(&(b, b_place)));
        for same in sorted.chunk_by(|(_, a), (_, b)| a == b) {
            let Some((_, term)) = same.first() else { continue };
            let Some(postings) = index.read_postings(term, IndexRecordOption::WithFreqsAndPositions)? else {
                return Ok(Box::new(EmptyScorer));
            };
            let places = same.iter().map(|(place, _)| *place).collect();
            tokens.push(Occurrences {
                postings,
                places,
                positions: Vec::new(),
            });
        }
        tokens.sort_by_key(|token| token.postings.size_hint());
        let norms = match self.similarity {
            Some(_) => reader.fieldnorms_readers().get_field(self.query.field)?,
            None => None,
        };
        let mut scorer = SloppyPhraseScorer {
            tokens,
            slop: self.query.slop,
            doc: 0,
            looks: 0,
            run: Arc::clone(&self.query.run),
            frequency: 0,
            norms: norms.unwrap_or_else(|| FieldNormReader::constant(reader.max_doc(), 1)),
            similarity: self
                .similarity
                .as_ref()
                .map(|similarity| similarity.boosted(boost)),
        };
        scorer.settle(0);
        Ok(Box::new(scorer))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        let mut scorer = self.scorer(reader, 1.0)?;
        if scorer.doc() > doc || scorer.seek(doc) != doc {
            return Err(no_match(doc));
        }
        Ok(Explanation::new("sloppy phrase", scorer.score()))
    }
}

/// A term, its places in the phrase in order, and its positions in the document in order.
struct Occurrences {
    postings: SegmentPostings,
    places: Vec<u64>,
    positions: Vec<u32>,
}

struct SloppyPhraseScorer {
    /// The rarest first.
    tokens: Vec<Occurrences>,
    slop: u64,
    doc: DocId,
    /// To look at the deadline now and then.
    looks: u32,
    run: Arc<Run>,
    frequency: u32,
    norms: FieldNormReader,
    similarity: Option<Bm25>,
}

impl SloppyPhraseScorer {
    /// Goes to the first match from `target` on. A search that has to stop finds no more: it will be told.
    fn settle(&mut self, target: DocId) -> DocId {
        self.doc = self.align(target);
        while self.doc != TERMINATED && !self.matches() {
            self.doc = self.align(self.doc + 1);
        }
        self.doc
    }

    /// The first document from `candidate` on that has all terms.
    fn align(&mut self, mut candidate: DocId) -> DocId {
        let mut agreed = 0;
        while agreed < self.tokens.len() {
            agreed = 0;
            self.looks = self.looks.wrapping_add(1);
            if self.looks.is_multiple_of(LOOKS_PER_CHECK) && self.run.check_inside().is_err() {
                return TERMINATED;
            }
            for token in &mut self.tokens {
                let doc = match token.postings.doc() {
                    doc if doc < candidate => token.postings.seek(candidate),
                    doc => doc,
                };
                if doc == TERMINATED {
                    return TERMINATED;
                }
                if doc > candidate {
                    candidate = doc;
                    break;
                }
                agreed += 1;
            }
        }
        candidate
    }

    fn matches(&mut self) -> bool {
        for token in &mut self.tokens {
            token.postings.positions(&mut token.positions);
        }
        let parts: Vec<(&[u64], &[u32])> = self
            .tokens
            .iter()
            .map(|token| (token.places.as_slice(), token.positions.as_slice()))
            .collect();
        let enough = if self.similarity.is_some() { u32::MAX } else { 1 };
        self.frequency = occurrences(&parts, self.slop, enough);
        self.frequency > 0
    }
}

/// How often a phrase occurs, without overlaps, counting up to `enough`: its terms, each with its places and positions.
fn occurrences(terms: &[(&[u64], &[u32])], slop: u64, enough: u32) -> u32 {
    // All positions are moved up by the last place, so that moving them back stays above zero.
    let last = terms
        .iter()
        .flat_map(|(places, _)| places.iter())
        .copied()
        .max()
        .unwrap_or_default();
    let mut starts: Vec<u64> = terms
        .iter()
        .flat_map(|(places, positions)| {
            places.iter().flat_map(move |place| {
                positions
                    .iter()
                    .map(move |position| u64::from(*position) + last - place)
            })
        })
        .collect();
    starts.sort_unstable();
    starts.dedup();
    let mut count = 0;
    let mut free_from = 0;
    for start in starts {
        if start < free_from {
            continue;
        }
        if terms.iter().all(|term| placed(term, start, last, slop)) {
            count += 1;
            if count >= enough {
                break;
            }
            free_from = start + slop + 1;
        }
    }
    count
}

/// Whether a term has a position of its own for each of its places, moved back to between `start` and `start + slop`.
/// The intervals that the positions have to lie in are equally long, so taking the first free position for each in order
/// finds an assignment if there is one.
fn placed((places, positions): &(&[u64], &[u32]), start: u64, last: u64, slop: u64) -> bool {
    let mut free = *positions;
    places.iter().all(|place| {
        let from = start + place;
        let skipped = free.partition_point(|position| u64::from(*position) + last < from);
        free = free.get(skipped..).unwrap_or_default();
        match free.split_first() {
            Some((position, rest)) => {
                free = rest;
                u64::from(*position) + last <= from + slop
            }
            None => false,
        }
    })
}

impl DocSet for SloppyPhraseScorer {
    fn advance(&mut self) -> DocId {
        if self.doc == TERMINATED {
            return TERMINATED;
        }
        self.settle(self.doc + 1)
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if self.doc >= target {
            return self.doc;
        }
        self.settle(target)
    }

    fn doc(&self) -> DocId {
        self.doc
    }

    fn size_hint(&self) -> u32 {
        self.tokens
            .first()
            .map_or(0, |token| token.postings.size_hint() / 4)
    }

    /// Reading positions is dear.
    fn cost(&self) -> u64 {
        u64::from(self.size_hint()).saturating_mul(20 * self.tokens.len() as u64)
    }
}

impl Scorer for SloppyPhraseScorer {
    fn score(&mut self) -> Score {
        self.similarity.as_ref().map_or(1.0, |similarity| {
            similarity.score(self.norms.fieldnorm_id(self.doc), self.frequency)
        })
    }
}

#[cfg(test)]
mod tests;

//! Documents with the tokens of a phrase near each other (see [`crate::phrase`]).
//!
//! (The search library's own adds up distances between neighbours only, finds other documents for three and more tokens,
//! and overflows at 256.)

use std::sync::Arc;

use smallvec::SmallVec;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{Postings, SegmentPostings};
use tantivy::query::{EmptyScorer, EnableScoring, Query, Scorer, Weight};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, DocSet, Score, Searcher, SegmentReader, TERMINATED, Term};

use crate::allowance::Grant;
use crate::bm25::{Bm25, Norms, average, idf};
use crate::pace::Pace;
use crate::phrase::{Occurrences, PhraseWord};
use crate::run::Run;
use crate::unexplained::unexplained;

/// Lists that are moved on, and places that are looked at, between two looks at the deadline.
const STEPS_PER_CHECK: u32 = 2_048;
/// Positions that are read in the time of such a step.
const POSITIONS_PER_STEP: u32 = 16;

/// The documents with all of some terms, each at its place give or take `slop`.
#[derive(Clone, Debug)]
pub(super) struct SloppyPhraseQuery {
    field: Field,
    terms: Vec<(u32, Term)>,
    slop: u64,
    run: Arc<Run>,
}

impl SloppyPhraseQuery {
    /// At least two terms with their places.
    pub(super) fn new(field: Field, terms: Vec<(u32, Term)>, slop: u64, run: &Arc<Run>) -> Self {
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
}

struct SloppyPhraseWeight {
    query: SloppyPhraseQuery,
    similarity: Option<Bm25>,
}

impl Weight for SloppyPhraseWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let index = reader.inverted_index(self.query.field)?;
        let mut tokens: Vec<Token> = Vec::new();
        let mut sorted: Vec<&(u32, Term)> = self.query.terms.iter().collect();
        sorted.sort_by(|(a_place, a), (b_place, b)| (a, a_place).cmp(&(b, b_place)));
        for same in sorted.chunk_by(|(_, a), (_, b)| a == b) {
            let Some((_, term)) = same.first() else { continue };
            let Some(postings) = index.read_postings(term, IndexRecordOption::WithFreqsAndPositions)? else {
                return Ok(Box::new(EmptyScorer));
            };
            let places = same.iter().map(|(place, _)| *place).collect();
            tokens.push(Token {
                postings,
                places,
                positions: Vec::new(),
            });
        }
        tokens.sort_by_key(|token| token.postings.size_hint());
        let held = tokens.len() * size_of::<Token>();
        let norms = match self.similarity {
            Some(_) => reader.fieldnorms_readers().get_field(self.query.field)?,
            None => None,
        };
        let mut scorer = SloppyPhraseScorer {
            tokens,
            slop: self.query.slop,
            doc: 0,
            pace: Pace::new(Arc::clone(&self.query.run), STEPS_PER_CHECK),
            held: self.query.run.allowance().take(held)?,
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

    unexplained!();
}

/// A term, its places in the phrase in order, and its positions in the document in order.
struct Token {
    postings: SegmentPostings,
    places: Vec<u32>,
    positions: Vec<u32>,
}

struct SloppyPhraseScorer {
    /// The rarest first.
    tokens: Vec<Token>,
    slop: u64,
    doc: DocId,
    pace: Pace<Arc<Run>>,
    /// The memory of the positions.
    held: Grant,
    frequency: u32,
    norms: FieldNormReader,
    similarity: Option<Bm25>,
}

impl SloppyPhraseScorer {
    /// Goes to the first match from `target` on. A search that has to stop finds no more: it will be told.
    fn settle(&mut self, target: DocId) -> DocId {
        self.doc = self.align(target);
        while self.doc != TERMINATED {
            match self.count() {
                Ok(0) => self.doc = self.align(self.doc + 1),
                Ok(frequency) => {
                    self.frequency = frequency;
                    break;
                }
                Err(error) => {
                    self.pace.run().leave("looking for a phrase", error);
                    self.doc = TERMINATED;
                }
            }
        }
        self.doc
    }

    /// The first document from `candidate` on that has all terms.
    fn align(&mut self, mut candidate: DocId) -> DocId {
        let mut agreed = 0;
        while agreed < self.tokens.len() {
            if self.pace.stops(agreed as u32) {
                return TERMINATED;
            }
            agreed = 0;
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

    /// How often the phrase occurs in the document, without overlaps; at most once where nobody asks for scores.
    fn count(&mut self) -> tantivy::Result<u32> {
        for token in &mut self.tokens {
            let count = token.postings.term_freq();
            self.pace.step(count / POSITIONS_PER_STEP)?;
            token.positions.clear();
            self.held.reserve(&mut token.positions, count as usize)?;
            token.postings.positions(&mut token.positions);
        }
        let words = self.tokens.iter().map(|token| PhraseWord {
            places: &token.places,
            positions: &token.positions,
        });
        let words: SmallVec<[PhraseWord<'_>; 8]> = words.collect();
        let enough = if self.similarity.is_some() { u32::MAX } else { 1 };
        let pace = &mut self.pace;
        occurrences(&words, self.slop, enough, |steps| pace.step(steps))
    }
}

/// How often a phrase occurs, without overlaps, counting up to `enough`.
fn occurrences<E>(
    words: &[PhraseWord<'_>],
    slop: u64,
    enough: u32,
    mut work: impl FnMut(u32) -> Result<(), E>,
) -> Result<u32, E> {
    let mut found = Occurrences::new(words, slop);
    let (mut count, mut from) = (0, 0);
    while count < enough
        && let Some(start) = found.next(from, &mut work)?
    {
        count += 1;
        from = start + slop + 1;
    }
    Ok(count)
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

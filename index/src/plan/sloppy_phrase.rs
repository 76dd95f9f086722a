//! Documents with the tokens of a phrase near each other (see [`crate::phrase`]).
//!
//! (tantivy's own adds up distances between neighbours only, finds other documents for three and more tokens,
//! and overflows at 256. Without a slop it holds as many positions as a document has of a word, which nothing accounts for.)

use std::sync::Arc;

use smallvec::SmallVec;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{Postings, SegmentPostings};
use tantivy::query::{EmptyScorer, EnableScoring, Query, Scorer, Weight};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, DocSet, Score, Searcher, SeekDangerResult, SegmentReader, TERMINATED, Term};

use crate::allowance::Grant;
use crate::bm25::{Bm25, Norms, average, idf};
use crate::doc_walk::{go_to, settles};
use crate::pace::Pace;
use crate::phrase::{Occurrences, PhraseWord};
use crate::run::Run;
use crate::unexplained::{Standing, unexplained};

/// Lists that are moved on, and places that are looked at, between two looks at the deadline.
const STEPS_PER_CHECK: u32 = 2_048;
/// Positions that are read in the time of such a step.
const POSITIONS_PER_STEP: u32 = 16;

/// The documents with all of some terms, each at its place give or take `slop`.
#[derive(Clone, Debug)]
pub(super) struct SloppyPhraseQuery {
    pub(super) field: Field,
    pub(super) terms: Vec<(u32, Term)>,
    slop: u64,
    pub(super) run: Arc<Run>,
}

impl SloppyPhraseQuery {
    /// At least one term, with their places.
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
            self.run.check_inside()?;
            let having = statistics.having(searcher, term)?;
            Ok(f64::from(idf(texts.documents, having)))
        });
        let weight = weights.sum::<tantivy::Result<f64>>()? as Score;
        Ok(Norms::new(average(texts.documents, texts.tokens)).weigh(weight))
    }

    /// Stands on no document yet; `None` when the segment lacks a term.
    pub(super) fn open(
        &self,
        reader: &SegmentReader,
        similarity: Option<Bm25>,
    ) -> tantivy::Result<Option<SloppyPhraseScorer>> {
        let index = reader.inverted_index(self.field)?;
        let mut terms: Vec<PhraseTerm> = Vec::new();
        let mut sorted: Vec<&(u32, Term)> = self.terms.iter().collect();
        sorted.sort_by(|(a_place, a), (b_place, b)| (a, a_place).cmp(&(b, b_place)));
        for same in sorted.chunk_by(|(_, a), (_, b)| a == b) {
            let Some((_, term)) = same.first() else { continue };
            let Some(postings) = index.read_postings(term, IndexRecordOption::WithFreqsAndPositions)? else {
                return Ok(None);
            };
            let places = same.iter().map(|(place, _)| *place).collect();
            let positions = Vec::new();
            terms.push(PhraseTerm {
                postings,
                places,
                positions,
            });
        }
        terms.sort_by_key(|term| term.postings.size_hint());
        let having = terms.iter().map(|term| f64::from(term.postings.size_hint()));
        let candidates = having.reduce(|all, having| all * having / f64::from(reader.max_doc()));
        let held = terms.len() * size_of::<PhraseTerm>();
        let places = self.terms.iter().map(|(place, _)| *place);
        let norms = match similarity {
            Some(_) => reader.fieldnorms_readers().get_field(self.field)?,
            None => None,
        };
        Ok(Some(SloppyPhraseScorer {
            candidates: candidates.unwrap_or_default(),
            ends: Vec::new(),
            last: places.max().unwrap_or_default(),
            terms,
            slop: self.slop,
            doc: 0,
            pace: Pace::new(Arc::clone(&self.run), STEPS_PER_CHECK),
            held: self.run.allowance().take(held)?,
            frequency: 0,
            norms: norms.unwrap_or_else(|| FieldNormReader::constant(reader.max_doc(), 1)),
            similarity,
        }))
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

impl SloppyPhraseWeight {
    fn open(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Option<SloppyPhraseScorer>> {
        let similarity = self.similarity.as_ref();
        let similarity = similarity.map(|similarity| similarity.boosted(boost));
        self.query.open(reader, similarity)
    }
}

impl Weight for SloppyPhraseWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let Some(mut scorer) = self.open(reader, boost)? else {
            return Ok(Box::new(EmptyScorer));
        };
        scorer.settle(0);
        Ok(Box::new(scorer))
    }

    fn scorer_danger(&self, reader: &SegmentReader, target: DocId, boost: Score) -> Standing {
        let Some(mut scorer) = self.open(reader, boost)? else {
            let nothing = SeekDangerResult::SeekLowerBound(TERMINATED);
            return Ok((nothing, Box::new(EmptyScorer)));
        };
        let found = scorer.seek_danger(target);
        Ok((found, Box::new(scorer)))
    }

    unexplained!();
}

/// A term, its places in the phrase in order, and its positions in the document in order.
struct PhraseTerm {
    postings: SegmentPostings,
    places: Vec<u32>,
    positions: Vec<u32>,
}

pub(super) struct SloppyPhraseScorer {
    /// The rarest first.
    terms: Vec<PhraseTerm>,
    /// About how many documents have all of them.
    candidates: f64,
    slop: u64,
    /// The last place of the phrase.
    pub(super) last: u32,
    /// Without a slop: the positions of the phrase's last place, where it ends.
    ends: Vec<u32>,
    doc: DocId,
    pace: Pace<Arc<Run>>,
    /// The memory of the positions.
    held: Grant,
    frequency: u32,
    norms: FieldNormReader,
    similarity: Option<Bm25>,
}

impl SloppyPhraseScorer {
    /// Without a slop: the positions in the document that lie `distance` behind the phrase's last place.
    pub(super) fn behind(&self, distance: u32) -> impl Iterator<Item = u32> + '_ {
        self.ends.iter().map(move |end| end.wrapping_add(distance))
    }

    /// Goes to the first match from `target` on. A search that has to stop finds no more; its [`Run`] keeps the error.
    pub(super) fn settle(&mut self, target: DocId) -> DocId {
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
        while agreed < self.terms.len() {
            if self.pace.stops(agreed as u32) {
                return TERMINATED;
            }
            agreed = 0;
            for term in &mut self.terms {
                let doc = go_to(&mut term.postings, candidate);
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

    /// How often the phrase occurs in the document; at most once without scoring.
    fn count(&mut self) -> tantivy::Result<u32> {
        if self.slop == 0 {
            return self.count_exact();
        }
        for term in &mut self.terms {
            let count = term.postings.term_freq();
            self.pace.step(count / POSITIONS_PER_STEP)?;
            term.positions.clear();
            self.held.reserve(&mut term.positions, count as usize)?;
            term.postings.positions(&mut term.positions);
        }
        let words = self.terms.iter().map(|term| PhraseWord {
            places: &term.places,
            positions: &term.positions,
        });
        let words: SmallVec<[PhraseWord<'_>; 8]> = words.collect();
        let enough = if self.similarity.is_some() { u32::MAX } else { 1 };
        let pace = &mut self.pace;
        occurrences(&words, self.slop, enough, |steps| pace.step(steps))
    }

    /// How often the phrase occurs in the document without a slop. Stops reading positions once no end is left.
    fn count_exact(&mut self) -> tantivy::Result<u32> {
        self.ends.clear();
        for (nth, term) in self.terms.iter_mut().enumerate() {
            let (count, positions) = (term.postings.term_freq(), &mut term.positions);
            self.pace.step(count / POSITIONS_PER_STEP)?;
            let mut places = term.places.iter().map(|place| self.last - place);
            if nth == 0
                && let Some(moved_by) = places.next()
            {
                self.held.reserve(&mut self.ends, count as usize)?;
                term.postings.positions_with_offset(moved_by, &mut self.ends);
            }
            for (nth_place, moved_by) in places.enumerate() {
                if nth_place == 0 {
                    positions.clear();
                    self.held.reserve(positions, count as usize)?;
                    term.postings.positions_with_offset(0, positions);
                } else {
                    self.pace.step(count / POSITIONS_PER_STEP)?;
                }
                keep_common(&mut self.ends, positions, moved_by);
                if self.ends.is_empty() {
                    return Ok(0);
                }
            }
        }
        Ok(self.ends.len() as u32)
    }
}

/// Keeps the ends that are among `positions` plus `moved_by`; both ascend.
fn keep_common(ends: &mut Vec<u32>, positions: &[u32], moved_by: u32) {
    let moved = positions.iter().map(|position| position.wrapping_add(moved_by));
    let mut moved = moved.peekable();
    ends.retain(|end| {
        while moved.next_if(|other| other < end).is_some() {}
        moved.next_if_eq(end).is_some()
    });
}

/// How often a phrase occurs, counting up to `enough`. Each occurrence starts more than the slop behind the one before. Where a
/// phrase repeats a word, they may share one: without a slop, `a a` occurs twice in `a a a`.
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
    settles!();

    fn seek_danger(&mut self, target: DocId) -> SeekDangerResult {
        if target >= TERMINATED || self.pace.stops(self.terms.len() as u32) {
            return SeekDangerResult::SeekLowerBound(TERMINATED);
        }
        for term in &mut self.terms {
            let doc = go_to(&mut term.postings, target);
            if doc > target {
                return SeekDangerResult::SeekLowerBound(doc);
            }
        }
        match self.count() {
            Ok(0) => SeekDangerResult::SeekLowerBound(target + 1),
            Ok(frequency) => {
                (self.doc, self.frequency) = (target, frequency);
                SeekDangerResult::Found
            }
            Err(error) => {
                self.pace.run().leave("looking for a phrase", error);
                SeekDangerResult::SeekLowerBound(TERMINATED)
            }
        }
    }

    /// tantivy's estimate for its own: a phrase is rarer than documents with all of its words.
    fn size_hint(&self) -> u32 {
        (self.candidates / (10 * self.terms.len()) as f64) as u32
    }

    /// tantivy's estimate for its own: reading positions is dear.
    fn cost(&self) -> u64 {
        (self.candidates * (10 * self.terms.len()) as f64) as u64
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

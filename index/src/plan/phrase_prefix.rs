//! `match_phrase_prefix`: documents with a phrase of which the last word may be unfinished.
//!
//! Where the whole words stand one after the other, the last one has to follow. The places at which it would have to
//! stand are gathered, a part of the segment at a time; then each term that begins with it is looked up at those places,
//! one after the other, so that memory is held for some places, and not for terms. Nothing is cut off: above
//! [`MAX_EXPANSIONS`] terms the search fails.
//!
//! [`MAX_EXPANSIONS`]: crate::limits::MAX_EXPANSIONS

use crate::error::AllowanceExceeded;
use std::sync::Arc;

use tantivy::postings::{Postings, SegmentPostings};
use tantivy::query::{Bm25Weight, EmptyScorer, EnableScoring, Query, Scorer, Weight};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED, Term};

use super::Planner;
use super::clause::Clause;
use super::doc_set::DocSetBuilder;
use super::glob::GlobForm;
use super::multi_term::{FieldStatistics, MultiTerm, MultiTermQuery, SCALE, expand};
use super::sloppy_phrase::SloppyPhraseQuery;
use crate::allowance::Grant;
use crate::doc_walk::go_to;
use crate::pace::Pace;
use crate::request::Operator;
use crate::run::Run;
use crate::schema::FieldKind;
use crate::unexplained::unexplained;

/// Places that are gathered before the terms are looked up at them; one document may have more.
const PLACES_TOGETHER: usize = 1 << 20;
/// Places, words and terms that are looked at between two looks at the deadline.
const STEPS_PER_CHECK: u32 = 1_024;
/// Positions that are read in the time of such a step.
const POSITIONS_PER_STEP: u32 = 16;

impl Planner<'_> {
    pub(super) fn match_phrase_prefix(
        &mut self,
        at: &str,
        field: &str,
        text: &str,
        weight: Score,
    ) -> Option<Clause> {
        let any = (Operator::Or, None);
        let (field, single, weight, _) = self.matched(at, field, text, any, weight)?;
        let FieldKind::Text(analyzer) = &field.kind else {
            return self.form(field, "", GlobForm::Prefix(text.to_owned()), weight);
        };
        let (single, mut placed) = self.placed(field, single, analyzer, text);
        self.tokens_fit(at, placed.len())?;
        let Some((last_place, prefix)) = placed.pop_last() else {
            return Some(Clause::nothing());
        };
        let run = Arc::clone(self.run);
        let multi_term = MultiTerm::Prefix(prefix);
        let query: Box<dyn Query> = if placed.is_empty() {
            Box::new(MultiTermQuery {
                field: single,
                multi_term,
                at: at.to_owned(),
                run,
            })
        } else {
            let whole = placed
                .into_iter()
                .map(|(place, word)| (place as u32, Term::from_field_text(single, &word)));
            Box::new(PhrasePrefixQuery {
                whole: SloppyPhraseQuery::new(single, whole.collect(), 0, &run),
                last_place: last_place as u32,
                multi_term,
                at: at.to_owned(),
            })
        };
        Some(Clause::scored(query, weight))
    }
}

/// The documents with all of some terms at their places, and a term that begins with a prefix at its own.
#[derive(Clone, Debug)]
struct PhrasePrefixQuery {
    whole: SloppyPhraseQuery,
    /// Not before the last of `whole`.
    last_place: u32,
    multi_term: MultiTerm,
    at: String,
}

impl Query for PhrasePrefixQuery {
    /// Scores like Lucene's phrase of several terms at a place: the inverse document frequencies of all terms, those
    /// that the last word stands for included, are added up, and each occurrence of the phrase counts.
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let SloppyPhraseQuery {
            field, terms, run, ..
        } = &self.whole;
        let mut held = run.allowance().grant();
        let last = expand(&self.multi_term, *field, &scoring, &self.at, run, &mut held)?;
        let similarity = match scoring {
            EnableScoring::Enabled { searcher, .. } if !last.is_empty() => {
                let whole = terms.iter().map(|(_, term)| term.clone());
                let last = last.keys().filter_map(|term| std::str::from_utf8(term).ok());
                let last = last.map(|term| Term::from_field_text(*field, term));
                let terms: Vec<Term> = whole.chain(last).collect();
                let statistics = FieldStatistics::new(run, searcher, *field)?;
                Some(Bm25Weight::for_terms(&statistics, &terms)?)
            }
            EnableScoring::Enabled { .. } | EnableScoring::Disabled { .. } => None,
        };
        Ok(Box::new(PhrasePrefixWeight {
            query: self.clone(),
            similarity,
        }))
    }
}

struct PhrasePrefixWeight {
    query: PhrasePrefixQuery,
    similarity: Option<Bm25Weight>,
}

impl Weight for PhrasePrefixWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let (whole, multi_term) = (&self.query.whole, &self.query.multi_term);
        let SloppyPhraseQuery { field, run, .. } = whole;
        let index = reader.inverted_index(*field)?;
        let Some(mut beginnings) = whole.open(reader, None)? else {
            return Ok(Box::new(EmptyScorer));
        };
        beginnings.settle(0);
        let distance = self.query.last_place - beginnings.last;
        let norms = match self.similarity {
            Some(_) => reader.fieldnorms_readers().get_field(*field)?,
            None => None,
        };
        let similarity = self.similarity.as_ref();
        let similarity = similarity.map(|similarity| similarity.boost_by(boost * SCALE));
        let score = |doc, frequency| {
            let norm = norms.as_ref().map_or(1, |norms| norms.fieldnorm_id(doc));
            let similarity = similarity.as_ref();
            similarity.map_or(boost, |similarity| similarity.score(norm, frequency))
        };
        let mut sums = DocSetBuilder::<Score>::new(reader.max_doc(), run.allowance());
        let mut open = OpenPlaces {
            docs: Vec::new(),
            positions: Vec::new(),
            pace: Pace::new(Arc::clone(run), STEPS_PER_CHECK),
            held: run.allowance().grant(),
        };
        let mut positions = Vec::new();
        while beginnings.doc() != TERMINATED {
            open.clear();
            while beginnings.doc() != TERMINATED && open.positions.len() < PLACES_TOGETHER {
                for position in beginnings.behind(distance) {
                    open.add(beginnings.doc(), position)?;
                }
                beginnings.advance();
            }
            multi_term.each(*field, &index, run, |_, info| {
                let option = IndexRecordOption::WithFreqsAndPositions;
                open.fill(
                    &mut index.read_postings_from_terminfo(info, option)?,
                    &mut positions,
                )
            })?;
            for (doc, frequency) in open.filled() {
                sums.add(doc, score(doc, frequency))?;
            }
        }
        Ok(sums.into_scorer()?)
    }

    unexplained!();
}

/// The positions at which the last word is missing.
struct OpenPlaces {
    /// Each document, and where its positions begin.
    docs: Vec<(DocId, usize)>,
    /// Positions in order, document by document, and whether the last word was found there.
    positions: Vec<(u32, bool)>,
    pace: Pace<Arc<Run>>,
    held: Grant,
}

impl OpenPlaces {
    /// Forgets all of them, but not their room.
    fn clear(&mut self) {
        self.docs.clear();
        self.positions.clear();
    }

    /// Documents in order, and positions in order.
    fn add(&mut self, doc: DocId, position: u32) -> Result<(), AllowanceExceeded> {
        if self.docs.last().is_none_or(|(last, _)| *last != doc) {
            self.held.push(&mut self.docs, (doc, self.positions.len()))?;
        }
        self.held.push(&mut self.positions, (position, false))
    }

    /// Notes where a term stands at an open place.
    fn fill(&mut self, term: &mut SegmentPostings, buffer: &mut Vec<u32>) -> tantivy::Result<()> {
        let mut nth = 0;
        while let Some((wanted, from)) = self.docs.get(nth).copied() {
            let doc = go_to(term, wanted);
            if doc == TERMINATED {
                break;
            }
            if doc > wanted {
                self.pace.step(1)?;
                let rest = self.docs.get(nth..).unwrap_or_default();
                nth += rest.partition_point(|(other, _)| *other < doc);
                continue;
            }
            let to = self.docs.get(nth + 1).map_or(self.positions.len(), |(_, to)| *to);
            let positions = term.term_freq();
            let places = (to - from) as u32;
            self.pace
                .step(places.saturating_add(positions / POSITIONS_PER_STEP))?;
            buffer.clear();
            self.held.reserve(buffer, positions as usize)?;
            term.positions(buffer);
            for (position, found) in self.positions.get_mut(from..to).unwrap_or_default() {
                *found |= buffer.binary_search(position).is_ok();
            }
            nth += 1;
        }
        self.pace.step(1)
    }

    /// The documents in which the whole phrase stands, and how often.
    fn filled(&self) -> impl Iterator<Item = (DocId, u32)> + '_ {
        let ends = self.docs.iter().skip(1).map(|(_, from)| *from);
        let ends = ends.chain([self.positions.len()]);
        self.docs.iter().zip(ends).filter_map(|((doc, from), to)| {
            let positions = self.positions.get(*from..to).unwrap_or_default();
            let found = positions.iter().filter(|(_, found)| *found).count() as u32;
            (found > 0).then_some((*doc, found))
        })
    }
}

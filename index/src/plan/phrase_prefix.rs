//! `match_phrase_prefix`: documents with a phrase of which the last word may be unfinished.
//!
//! Where the whole words stand one after the other, the last one has to follow. All places at which it would have to
//! stand are gathered first; then each term that begins with it is looked up at those places, one after the other, so
//! that memory is held for places and not for terms. Nothing is cut off: above [`MAX_EXPANSIONS`] terms the search
//! fails.
//!
//! [`MAX_EXPANSIONS`]: crate::limits::MAX_EXPANSIONS

use std::sync::Arc;

use tantivy::postings::{Postings, SegmentPostings};
use tantivy::query::{Bm25Weight, EmptyScorer, EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, DocSet, InvertedIndexReader, Score, SegmentReader, TERMINATED, Term};

use super::clause::Clause;
use super::expansion::{Expansion, ExpansionQuery, expand};
use super::glob::Form;
use super::phrase_score::{FieldStatistics, SCALE};
use super::scored_list::ScoredList;
use super::{Planner, no_match};
use crate::limits::DOCUMENTS_PER_CHECK;
use crate::run::Run;
use crate::schema::FieldKind;

impl Planner<'_> {
    pub(super) fn match_phrase_prefix(
        &mut self,
        at: &str,
        scope: Option<&str>,
        field: &str,
        text: &str,
        weight: Score,
    ) -> Option<Clause> {
        let weighed = self.weight(at, weight);
        let field = self.text_field(at, scope, field);
        let fits = self.text_fits(at, text);
        let (weight, field, ()) = (weighed?, field?, fits?);
        let single = self.single(field)?;
        let FieldKind::Text(analyzer) = &field.kind else {
            return self.form(field, Form::Prefix(text.to_owned()), weight);
        };
        let (single, mut placed) = self.placed(field, single, analyzer, text);
        self.tokens_fit(at, placed.len())?;
        let Some((last_place, prefix)) = placed.pop_last() else {
            return Some(Clause::nothing());
        };
        let run = Arc::clone(self.run);
        let expansion = Expansion::Prefix(prefix);
        let query: Box<dyn Query> = if placed.is_empty() {
            Box::new(ExpansionQuery {
                field: single,
                expansion,
                at: at.to_owned(),
                run,
            })
        } else {
            let whole = placed
                .into_iter()
                .map(|(place, word)| (place as u32, Term::from_field_text(single, &word)));
            Box::new(PhrasePrefixQuery {
                field: single,
                whole: whole.collect(),
                last_place: last_place as u32,
                expansion,
                at: at.to_owned(),
                run,
            })
        };
        Some(Clause::scored(query, weight))
    }
}

/// The documents with all of some terms at their places, and a term that begins with a prefix at its own.
#[derive(Clone, Debug)]
struct PhrasePrefixQuery {
    field: Field,
    /// At least one, in the order of their places.
    whole: Vec<(u32, Term)>,
    /// Not before the last of `whole`.
    last_place: u32,
    expansion: Expansion,
    at: String,
    run: Arc<Run>,
}

impl Query for PhrasePrefixQuery {
    /// Scores like Lucene's phrase of several terms at a place: the inverse document frequencies of all terms, those
    /// that the last word stands for included, are added up, and each occurrence of the phrase counts.
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let last = expand(&self.expansion, self.field, &scoring, &self.at, &self.run)?;
        let similarity = match scoring {
            EnableScoring::Enabled { searcher, .. } if !last.is_empty() => {
                let whole = self.whole.iter().map(|(_, term)| term.clone());
                let last = last.keys().filter_map(|term| std::str::from_utf8(term).ok());
                let last = last.map(|term| Term::from_field_text(self.field, term));
                let terms: Vec<Term> = whole.chain(last).collect();
                let statistics = FieldStatistics::new(self.run.statistics(), searcher, self.field)?;
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
        let PhrasePrefixQuery {
            field,
            whole,
            last_place,
            expansion,
            run,
            ..
        } = &self.query;
        let index = reader.inverted_index(*field)?;
        let Some(mut beginnings) = Beginnings::open(&index, whole)? else {
            return Ok(Box::new(EmptyScorer));
        };
        let mut open = OpenPlaces::default();
        let mut visited = 0_u32;
        while let Some(doc) = beginnings.next_doc() {
            visited = visited.wrapping_add(1);
            if visited.is_multiple_of(DOCUMENTS_PER_CHECK) {
                run.check_inside()?;
            }
            open.add(doc, beginnings.starts().iter().map(|start| start + last_place));
        }
        let mut positions = Vec::new();
        expansion.each(*field, &index, |_, info| {
            run.check_inside()?;
            let mut postings =
                index.read_postings_from_terminfo(info, IndexRecordOption::WithFreqsAndPositions)?;
            open.fill(&mut postings, &mut positions);
            Ok(())
        })?;
        let norms = match self.similarity {
            Some(_) => reader.fieldnorms_readers().get_field(*field)?,
            None => None,
        };
        let similarity = self
            .similarity
            .as_ref()
            .map(|similarity| similarity.boost_by(boost * SCALE));
        let score = |(doc, frequency)| {
            let norm = norms.as_ref().map_or(1, |norms| norms.fieldnorm_id(doc));
            let score = similarity
                .as_ref()
                .map_or(boost, |similarity| similarity.score(norm, frequency));
            (doc, score)
        };
        Ok(ScoredList::scorer(open.filled().map(score).collect()))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        let mut scorer = self.scorer(reader, 1.0)?;
        if scorer.doc() > doc || scorer.seek(doc) != doc {
            return Err(no_match(doc));
        }
        Ok(Explanation::new("phrase with a prefix", scorer.score()))
    }
}

/// Where phrases of whole words begin.
struct Beginnings {
    /// Each word's place and documents; the rarest first.
    words: Vec<(u32, SegmentPostings)>,
    started: bool,
    starts: Vec<u32>,
}

impl Beginnings {
    /// `None` when the segment lacks a word.
    fn open(index: &InvertedIndexReader, whole: &[(u32, Term)]) -> tantivy::Result<Option<Self>> {
        let mut words = Vec::with_capacity(whole.len());
        for (place, term) in whole {
            let Some(postings) = index.read_postings(term, IndexRecordOption::WithFreqsAndPositions)? else {
                return Ok(None);
            };
            words.push((*place, postings));
        }
        words.sort_by_key(|(_, postings)| postings.size_hint());
        Ok(Some(Self {
            words,
            started: false,
            starts: Vec::new(),
        }))
    }

    /// The next document in which the words stand one after the other.
    fn next_doc(&mut self) -> Option<DocId> {
        loop {
            let (_, first) = self.words.first_mut()?;
            let mut candidate = if self.started {
                first.advance()
            } else {
                first.doc()
            };
            self.started = true;
            if !self.align(&mut candidate) {
                return None;
            }
            self.read();
            if !self.starts.is_empty() {
                return Some(candidate);
            }
        }
    }

    /// Moves all words to the first document from `candidate` on that has them all.
    fn align(&mut self, candidate: &mut DocId) -> bool {
        let mut agreed = 0;
        while agreed < self.words.len() {
            agreed = 0;
            for (_, postings) in &mut self.words {
                if postings.doc() < *candidate {
                    postings.seek(*candidate);
                }
                if postings.doc() != *candidate {
                    *candidate = postings.doc();
                    break;
                }
                agreed += 1;
            }
            if *candidate == TERMINATED {
                return false;
            }
        }
        true
    }

    /// Reads the beginnings in the document that all words are at.
    fn read(&mut self) {
        self.starts.clear();
        let mut positions = Vec::new();
        for (nth, (place, postings)) in self.words.iter_mut().enumerate() {
            postings.positions(&mut positions);
            let starts = positions
                .iter()
                .filter_map(|position| position.checked_sub(*place));
            if nth == 0 {
                self.starts.extend(starts);
            } else {
                let here: Vec<u32> = starts.collect();
                self.starts.retain(|start| here.binary_search(start).is_ok());
            }
        }
    }

    /// The positions at which the phrase begins in the document.
    fn starts(&self) -> &[u32] {
        &self.starts
    }
}

/// The positions at which the last word is missing.
#[derive(Default)]
struct OpenPlaces {
    /// Each document, and where its positions begin.
    docs: Vec<(DocId, usize)>,
    /// Positions in order, document by document, and whether the last word was found there.
    positions: Vec<(u32, bool)>,
}

impl OpenPlaces {
    /// Documents in order, positions in order.
    fn add(&mut self, doc: DocId, positions: impl Iterator<Item = u32>) {
        self.docs.push((doc, self.positions.len()));
        self.positions.extend(positions.map(|position| (position, false)));
    }

    /// Notes where a term stands at an open place.
    fn fill(&mut self, term: &mut SegmentPostings, buffer: &mut Vec<u32>) {
        let mut nth = 0;
        while let Some((wanted, from)) = self.docs.get(nth).copied() {
            if term.doc() < wanted {
                term.seek(wanted);
            }
            let doc = term.doc();
            if doc == TERMINATED {
                return;
            }
            if doc > wanted {
                let rest = self.docs.get(nth..).unwrap_or_default();
                nth += rest.partition_point(|(other, _)| *other < doc);
                continue;
            }
            let to = self.docs.get(nth + 1).map_or(self.positions.len(), |(_, to)| *to);
            term.positions(buffer);
            for (position, found) in self.positions.get_mut(from..to).unwrap_or_default() {
                *found |= buffer.binary_search(position).is_ok();
            }
            nth += 1;
        }
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

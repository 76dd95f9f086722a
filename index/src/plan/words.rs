//! Words of a text, scored by BM25: documents with any of them, with some of them, or with all.
//!
//! A word that the text repeats counts as often, in scores and towards the number that is asked for, as the clauses of
//! Lucene's do. Scores of words add up in double precision in the order of the text, and are rounded once: they don't
//! depend on which word was looked at first. Where only the best documents are wanted, the scorers pass over those that
//! can't be among them (see [`raise_min_score`]).

mod all;
mod any;
mod cursor;

use crate::error::AllowanceExceeded;
use std::sync::Arc;

use tantivy::query::{BooleanQuery, EmptyScorer, EnableScoring, Occur, Query, Scorer, TermQuery, Weight};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{Score, Searcher, SegmentReader, Term};

use self::all::AllWords;
use self::any::AnyWords;
use self::cursor::{CODES, PostingsCursor};
use super::min_score::MinScore;
use super::observed::{ClauseObserver, Observed};
use crate::allowance::Grant;
use crate::bm25::{Norms, average, idf};
use crate::doc_walk::count;
use crate::pace::Pace;
use crate::run::Run;
use crate::unexplained::unexplained;

const STEPS_PER_CHECK: u32 = 1_024;

/// Tells a scorer which scores are wanted from now on. It may then pass over documents with others; it doesn't have to.
pub(crate) fn raise_min_score(scorer: &mut dyn Scorer, min_score: MinScore) -> tantivy::Result<()> {
    if let Some(all) = scorer.downcast_mut::<AllWords>() {
        return all.raise_min_score(min_score);
    }
    if let Some(any) = scorer.downcast_mut::<AnyWords>() {
        return any.raise_min_score(min_score);
    }
    Ok(())
}

/// The documents with `needed` of some words of one field.
#[derive(Clone, Debug)]
pub(super) struct WordsQuery {
    field: Field,
    /// Different words, and how often each counts.
    words: Vec<(Term, u32)>,
    needed: u32,
    run: Arc<Run>,
}

impl WordsQuery {
    /// At least one word; repeated ones count as often. `needed` is at least 1.
    pub(super) fn new(field: Field, words: &[&str], needed: u32, run: &Arc<Run>) -> Self {
        let mut counted: Vec<(Term, u32)> = Vec::new();
        let mut places = std::collections::HashMap::new();
        for word in words {
            let place = *places.entry(*word).or_insert(counted.len());
            match counted.get_mut(place) {
                Some((_, count)) => *count += 1,
                None => counted.push((Term::from_field_text(field, word), 1)),
            }
        }
        Self {
            field,
            words: counted,
            needed,
            run: Arc::clone(run),
        }
    }

    fn held(&self) -> Result<Grant, AllowanceExceeded> {
        let cursors: u32 = self.words.iter().map(|(_, count)| *count).sum();
        self.run
            .allowance()
            .take(cursors as usize * size_of::<PostingsCursor>())
    }

    /// What matches, without scores: the library's own scorers, which know bit sets.
    fn unscored(&self) -> Box<dyn Query> {
        let having = |word: &Term| Box::new(TermQuery::new(word.clone(), IndexRecordOption::Basic));
        if let [(word, _)] = self.words.as_slice() {
            return having(word);
        }
        let clauses = self.words.iter().flat_map(|(word, count)| {
            (0..*count).map(move |_| (Occur::Should, having(word) as Box<dyn Query>))
        });
        let (clauses, needed) = (clauses.collect(), self.needed as usize);
        Box::new(BooleanQuery::with_minimum_required_clauses(clauses, needed))
    }

    fn scored(&self, searcher: &Searcher) -> tantivy::Result<WordsWeight> {
        let statistics = self.run.statistics();
        let texts = statistics.texts(searcher, self.field)?;
        let average = average(texts.documents, texts.tokens);
        let words = self.words.iter().map(|(word, count)| {
            self.run.check_inside()?;
            let having = statistics.having(searcher, word)?;
            Ok(WeighedWord {
                word: word.clone(),
                count: *count,
                weight: *count as Score * idf(texts.documents, having),
            })
        });
        Ok(WordsWeight {
            words: words.collect::<tantivy::Result<_>>()?,
            field: self.field,
            needed: self.needed,
            average,
            norms: Norms::new(average),
            run: Arc::clone(&self.run),
            _held: self.held()?,
        })
    }
}

impl Query for WordsQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        match scoring {
            EnableScoring::Enabled { searcher, .. } => Ok(Box::new(self.scored(searcher)?)),
            EnableScoring::Disabled { .. } => {
                let observer = ClauseObserver {
                    _held: Some(Arc::new(self.held()?)),
                    ..ClauseObserver::default()
                };
                let of = self.unscored().weight(scoring)?;
                Ok(Box::new(Observed { observer, of }))
            }
        }
    }
}

struct WeighedWord {
    word: Term,
    count: u32,
    weight: Score,
}

struct WordsWeight {
    words: Vec<WeighedWord>,
    field: Field,
    needed: u32,
    average: Score,
    norms: Norms,
    run: Arc<Run>,
    _held: Grant,
}

impl Weight for WordsWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let index = reader.inverted_index(self.field)?;
        let lengths = reader.fieldnorms_readers().get_field(self.field)?;
        let mut cursors = Vec::with_capacity(self.words.len());
        if let Some(lengths) = &lengths {
            for word in &self.words {
                let Some(postings) = index.read_postings(&word.word, IndexRecordOption::WithFreqs)? else {
                    continue;
                };
                cursors.push(PostingsCursor {
                    postings,
                    lengths: lengths.clone(),
                    bm25: self.norms.weigh(boost * word.weight),
                    count: word.count,
                    reader: reader.clone(),
                    word: word.word.clone(),
                    average: self.average,
                    ceiling: None,
                    too_long: CODES,
                });
            }
        }
        let counts = || cursors.iter().map(|cursor| cursor.count);
        let (there, least) = (counts().sum::<u32>(), counts().min().unwrap_or_default());
        if cursors.is_empty() || there < self.needed {
            return Ok(Box::new(EmptyScorer));
        }
        let pace = Pace::new(Arc::clone(&self.run), STEPS_PER_CHECK);
        Ok(if there - least < self.needed {
            Box::new(AllWords::new(cursors, pace))
        } else {
            Box::new(AnyWords::new(cursors, self.needed, pace))
        })
    }

    unexplained!();

    fn count(&self, reader: &SegmentReader) -> tantivy::Result<u32> {
        if let ([word], None) = (self.words.as_slice(), reader.alive_bitset()) {
            return Ok(reader.inverted_index(self.field)?.doc_freq(&word.word)?);
        }
        Ok(count(&mut *self.scorer(reader, 1.0)?, reader))
    }
}

#[cfg(test)]
mod tests;

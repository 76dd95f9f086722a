//! Documents that match a query and have values that are selected, where nobody asks for scores.
//!
//! The library's intersections ask each clause about one document after the other. Here a block of documents of the clause
//! with the fewest is taken at a time, and one column after the other strikes out what it doesn't select. Blocks of which
//! it is known that nothing is selected are passed over unread.

use std::sync::Arc;

use tantivy::query::{
    AllScorer, ConstScorer, EmptyScorer, EnableScoring, Query, Scorer, Weight, intersect_scorers,
};
use tantivy::{COLLECT_BLOCK_BUFFER_LEN, DocId, DocSet, Score, SegmentReader, TERMINATED};

use super::selection::{READING, Select, Selected, Selection};
use crate::columns::{Cover, behind_block};
use crate::doc_walk::go_to;
use crate::pace::Pace;
use crate::run::Run;
use crate::unexplained::{unexplained, unscored};

/// Documents of the leading clause up to which it isn't worth finding out whether a column has fewer.
const FEW_LEADING: u32 = 16_384;
/// A column leads when it has so many times fewer documents.
const CLEARLY_FEWER: u32 = 4;
const LOOKS_PER_CHECK: u32 = 256;

/// The documents of another query, without scores.
#[derive(Clone, Debug)]
pub(super) struct Unscored(pub(super) Arc<dyn Query>);

impl Query for Unscored {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        self.0.weight(unscored(&scoring))
    }
}

/// Documents that match `query`, if there is one, and that all of `selects` select.
#[derive(Clone, Debug)]
pub(super) struct Filtered<T = Arc<dyn Query>> {
    pub(super) query: Option<T>,
    pub(super) selects: Vec<Arc<dyn Select>>,
}

impl Query for Filtered {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let unscored = unscored(&scoring);
        let weight = self.query.as_ref().map(|query| query.weight(unscored));
        Ok(Box::new(Filtered {
            query: weight.transpose()?,
            selects: self.selects.clone(),
        }))
    }
}

impl Weight for Filtered<Box<dyn Weight>> {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let mut leads: Vec<Box<dyn Scorer>> = Vec::new();
        let mut checks: Vec<Selection> = Vec::new();
        for select in &self.selects {
            match select.open(reader)? {
                Selected::Nothing => return Ok(Box::new(EmptyScorer)),
                Selected::Everything => {}
                Selected::Values(selection) => checks.push(selection),
                Selected::Documents(documents) => leads.push(documents.into_scorer(1.0)?),
            }
        }
        if let Some(weight) = &self.query {
            let lead = weight.scorer(reader, 1.0)?;
            if lead.doc() == TERMINATED {
                return Ok(Box::new(EmptyScorer));
            }
            leads.push(lead);
        }
        let fewest = leads.iter().map(|lead| lead.size_hint()).min();
        if fewest.is_none_or(|fewest| fewest > FEW_LEADING) {
            let mut best: Option<(u32, usize)> = None;
            for (nth, check) in checks.iter().enumerate() {
                let matches = check.estimate()?.0;
                if best.is_none_or(|(least, _)| matches < least) {
                    best = Some((matches, nth));
                }
            }
            let leads_on =
                |matches: u32| fewest.is_none_or(|fewest| matches.saturating_mul(CLEARLY_FEWER) < fewest);
            if let Some((_, nth)) = best.filter(|(matches, _)| leads_on(*matches)) {
                leads.push(Box::new(checks.swap_remove(nth).scorer(None, 1.0)?));
            }
        }
        if leads.is_empty() {
            leads.push(Box::new(AllScorer::new(reader.max_doc())));
        }
        let lead = intersect_scorers(leads, reader.num_docs());
        let Some(first) = checks.first() else {
            return Ok(Box::new(ConstScorer::new(lead, boost)));
        };
        let mut scorer = FilteredScorer {
            lead,
            pace: Pace::new(Arc::clone(&first.run), LOOKS_PER_CHECK),
            checks,
            docs: Vec::with_capacity(COLLECT_BLOCK_BUFFER_LEN),
            at: 0,
            score: boost,
        };
        scorer.refill()?;
        Ok(Box::new(scorer))
    }

    unexplained!();
}

struct FilteredScorer {
    /// Stands behind the last of `docs`.
    lead: Box<dyn Scorer>,
    checks: Vec<Selection>,
    /// Matches, the current one at `at`.
    docs: Vec<DocId>,
    at: usize,
    pace: Pace<Arc<Run>>,
    score: Score,
}

impl FilteredScorer {
    fn refill(&mut self) -> tantivy::Result<()> {
        self.docs.clear();
        self.at = 0;
        while self.docs.is_empty() {
            if self.lead.doc() == TERMINATED {
                return Ok(());
            }
            self.pace.step(1)?;
            if !self.pass_over()? {
                continue;
            }
            let mut buffer = [0; COLLECT_BLOCK_BUFFER_LEN];
            let filled = self.lead.fill_buffer(&mut buffer);
            self.docs.extend(buffer.iter().take(filled));
            for check in &self.checks {
                check.retain(&mut self.docs)?;
            }
        }
        Ok(())
    }

    /// Goes on to the next block in which each column may have something; whether the lead's document lies in one.
    fn pass_over(&mut self) -> tantivy::Result<bool> {
        let doc = self.lead.doc();
        for check in &self.checks {
            if check.cover(doc)? == Cover::None {
                self.lead.seek(behind_block(doc).min(TERMINATED));
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// [`FilteredScorer::refill`]. A search that has to stop finds no more: it will be told.
    fn next_block(&mut self) -> DocId {
        if let Err(error) = self.refill() {
            self.pace.run().leave(READING, error);
            self.docs.clear();
        }
        self.doc()
    }
}

impl DocSet for FilteredScorer {
    fn advance(&mut self) -> DocId {
        self.at += 1;
        match self.docs.get(self.at) {
            Some(doc) => *doc,
            None => self.next_block(),
        }
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if self.doc() >= target {
            return self.doc();
        }
        let rest = self.docs.get(self.at..).unwrap_or_default();
        self.at += rest.partition_point(|doc| *doc < target);
        if let Some(doc) = self.docs.get(self.at) {
            return *doc;
        }
        go_to(&mut self.lead, target);
        self.next_block()
    }

    fn fill_buffer(&mut self, buffer: &mut [DocId; COLLECT_BLOCK_BUFFER_LEN]) -> usize {
        let mut filled = 0;
        while let Some(found) = self.docs.get(self.at..).filter(|found| !found.is_empty()) {
            let Some(room) = buffer.get_mut(filled..).filter(|room| !room.is_empty()) else {
                break;
            };
            let count = found.len().min(room.len());
            for (to, from) in room.iter_mut().zip(found) {
                *to = *from;
            }
            filled += count;
            self.at += count;
            if self.at >= self.docs.len() {
                self.next_block();
            }
        }
        filled
    }

    fn doc(&self) -> DocId {
        self.docs.get(self.at).copied().unwrap_or(TERMINATED)
    }

    fn size_hint(&self) -> u32 {
        self.lead.size_hint()
    }

    fn cost(&self) -> u64 {
        self.lead.cost().saturating_mul(2)
    }
}

impl Scorer for FilteredScorer {
    fn score(&mut self) -> Score {
        self.score
    }
}

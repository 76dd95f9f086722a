//! The window scorer: clauses counted and summed over windows of documents.
//!
//! Each clause goes through the whole window before the next one does: no order among the clauses has to be kept, and
//! documents with the same score are taken many at a time. A column of which it is known that a block has nothing else
//! isn't read. Scores are added in the order of the clauses, as everywhere.

use std::ops::Range;
use std::sync::Arc;

use tantivy::query::{AllScorer, Scorer};
use tantivy::{COLLECT_BLOCK_BUFFER_LEN, DocId, DocSet, Score, TERMINATED};

use super::Together;
use super::shared::{SharedColumn, share};
use crate::columns::{Cover, behind_block};
use crate::doc_walk::go_to;
use crate::plan::selection::Selection;
use crate::run::Run;

/// Documents of the first window, and of one that was sought: perhaps the next is far away.
const SPAN_MIN: u32 = 64;
/// Documents of a window at most; each has three numbers.
const SPAN_MAX: u32 = 4_096;
/// How many times larger the next window is.
const SPAN_GROWTH: u32 = 4;

/// A clause, opened for a segment.
pub(super) enum ClauseScorer {
    /// All documents, each with this score.
    Everything(Score),
    /// What a column selects.
    Column {
        selection: Selection,
        score: Score,
        /// Its place in [`WindowScorer::shared`], if other clauses select from the same column, too.
        shared: Option<usize>,
        docs: Vec<DocId>,
    },
    /// Documents with the same score.
    Constant { docs: Buffered, score: Score },
    /// Documents with scores of their own.
    Scored(Box<dyn Scorer>),
}

impl ClauseScorer {
    pub(super) fn column(selection: Selection, score: Score) -> Self {
        Self::Column {
            selection,
            score,
            shared: None,
            docs: Vec::new(),
        }
    }

    pub(super) fn constant(scorer: Box<dyn Scorer>, score: Score) -> Self {
        Self::Constant {
            docs: Buffered {
                scorer,
                docs: Box::new([0; COLLECT_BLOCK_BUFFER_LEN]),
                at: 0,
                filled: 0,
            },
            score,
        }
    }

    /// The score of each document, if all have the same.
    fn score(&self) -> Option<Score> {
        match self {
            Self::Everything(score) | Self::Column { score, .. } | Self::Constant { score, .. } => {
                Some(*score)
            }
            Self::Scored(_) => None,
        }
    }

    /// The same documents, one after the other. Nothing was read so far.
    pub(super) fn into_scorer(self, max_doc: DocId) -> tantivy::Result<Box<dyn Scorer>> {
        Ok(match self {
            Self::Everything(score) => {
                Box::new(tantivy::query::ConstScorer::new(AllScorer::new(max_doc), score))
            }
            Self::Column { selection, score, .. } => Box::new(selection.scorer(None, score)?),
            Self::Constant { docs, .. } => docs.scorer,
            Self::Scored(scorer) => scorer,
        })
    }
}

/// A doc set, read a block at a time.
pub(super) struct Buffered {
    /// Stands behind the last of `docs`.
    scorer: Box<dyn Scorer>,
    docs: Box<[DocId; COLLECT_BLOCK_BUFFER_LEN]>,
    at: usize,
    filled: usize,
}

impl Buffered {
    /// Calls `found` with each document in the window. Windows come in order.
    fn take(&mut self, window: &Range<DocId>, mut found: impl FnMut(DocId)) {
        loop {
            let rest = self.docs.get(self.at..self.filled).unwrap_or_default();
            for doc in rest {
                if *doc >= window.end {
                    return;
                }
                self.at += 1;
                if *doc >= window.start {
                    found(*doc);
                }
            }
            (self.at, self.filled) = (0, 0);
            if go_to(&mut self.scorer, window.start) >= window.end {
                return;
            }
            self.filled = self.scorer.fill_buffer(&mut self.docs);
        }
    }
}

/// What a document scores.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scoring {
    /// Scores aren't asked for.
    Unasked,
    /// Each clause scores this: how many match is all there is to know. (Sums of equal numbers of 24 bits are exact.)
    Each(Score, Together),
    /// Clauses score differently: each document's scores are combined.
    Own(Together),
}

impl Scoring {
    pub(super) fn of(clauses: &[ClauseScorer], together: Option<Together>) -> Self {
        let Some(together) = together else {
            return Self::Unasked;
        };
        let first = clauses.first().and_then(ClauseScorer::score);
        match first.filter(|_| clauses.iter().all(|clause| clause.score() == first)) {
            Some(score) => Self::Each(score, together),
            None => Self::Own(together),
        }
    }
}

/// What is known of a document of the window.
#[derive(Clone, Copy, Debug, Default)]
struct WindowEntry {
    count: u32,
    sum: f64,
    best: f64,
}

impl WindowEntry {
    fn add(&mut self, score: Score) {
        let score = f64::from(score);
        self.count += 1;
        self.sum += score;
        self.best = f64::max(self.best, score);
    }
}

/// The documents that enough of the clauses match.
pub(super) struct WindowScorer {
    clauses: Vec<ClauseScorer>,
    shared: Vec<SharedColumn>,
    /// About how many documents the clauses match, summed over them.
    matches: u64,
    needed: u32,
    scoring: Scoring,
    run: Arc<Run>,
    max_doc: DocId,
    window: Range<DocId>,
    /// Documents of the next window.
    span: u32,
    /// Of each document of the window.
    entries: Vec<WindowEntry>,
    /// Clauses that match all of the window and aren't in `entries`.
    everywhere: u32,
    /// Matches in the window, the current one at `at`.
    found: Vec<DocId>,
    at: usize,
}

impl WindowScorer {
    /// Stands on the first match.
    pub(super) fn new(
        mut clauses: Vec<ClauseScorer>,
        matches: u64,
        needed: u32,
        scoring: Scoring,
        run: &Arc<Run>,
        max_doc: DocId,
    ) -> Self {
        let mut scorer = Self {
            shared: share(&mut clauses),
            clauses,
            matches,
            needed,
            scoring,
            run: Arc::clone(run),
            max_doc,
            window: 0..0,
            span: SPAN_MIN,
            entries: Vec::new(),
            everywhere: 0,
            found: Vec::new(),
            at: 0,
        };
        scorer.find(0);
        scorer
    }

    /// Goes to the first match from `from` on, where a window begins. A search that has to stop finds no more; its
    /// [`Run`] keeps the error.
    fn find(&mut self, mut from: DocId) -> DocId {
        self.found.clear();
        self.at = 0;
        while self.found.is_empty() {
            self.window = from.min(self.max_doc)..from.saturating_add(self.span).min(self.max_doc);
            if self.window.is_empty() {
                return TERMINATED;
            }
            self.span = self.span.saturating_mul(SPAN_GROWTH).min(SPAN_MAX);
            if let Err(error) = self.run.check_inside().and_then(|()| self.score_window()) {
                self.run.leave("reading a column", error);
                self.found.clear();
                self.window = self.max_doc..self.max_doc;
                return TERMINATED;
            }
            from = self.window.end;
        }
        self.doc()
    }

    /// Asks all clauses about the window.
    fn score_window(&mut self) -> tantivy::Result<()> {
        let window = self.window.clone();
        self.entries.clear();
        self.entries.resize(window.len(), WindowEntry::default());
        self.everywhere = 0;
        let counts = matches!(self.scoring, Scoring::Unasked | Scoring::Each(..));
        for clause in &mut self.clauses {
            let entries = self.entries.as_mut_slice();
            let mut add = |doc: DocId, score: Score| {
                let place = doc.checked_sub(window.start).map(|place| place as usize);
                let Some(entry) = place.and_then(|place| entries.get_mut(place)) else {
                    return;
                };
                if counts {
                    entry.count += 1;
                } else {
                    entry.add(score);
                }
            };
            match clause {
                ClauseScorer::Everything(_) if counts => self.everywhere += 1,
                ClauseScorer::Everything(score) => window.clone().for_each(|doc| add(doc, *score)),
                ClauseScorer::Column {
                    selection,
                    score,
                    shared,
                    docs,
                } => {
                    let cover = cover(selection, &window)?;
                    if counts && cover == Cover::All {
                        self.everywhere += 1;
                        continue;
                    }
                    let shared = shared.and_then(|place| self.shared.get_mut(place));
                    if let (Some(shared), Cover::Some, Some((_, range))) = (shared, cover, selection.range())
                    {
                        shared.read(&window);
                        shared.select(range, |doc| add(doc, *score));
                        continue;
                    }
                    for piece in blocks(&window) {
                        match selection.cover(piece.start)? {
                            Cover::None => {}
                            Cover::All => piece.for_each(|doc| add(doc, *score)),
                            Cover::Some => {
                                docs.clear();
                                selection.collect(piece.start, piece.end, docs);
                                docs.iter().for_each(|doc| add(*doc, *score));
                            }
                        }
                    }
                }
                ClauseScorer::Constant { docs, score } => docs.take(&window, |doc| add(doc, *score)),
                ClauseScorer::Scored(scorer) => {
                    let mut doc = go_to(scorer, window.start);
                    while doc < window.end {
                        add(doc, scorer.score());
                        doc = scorer.advance();
                    }
                }
            }
        }
        let needed = self.needed.saturating_sub(self.everywhere);
        let enough = window
            .zip(&self.entries)
            .filter(|(_, entry)| entry.count >= needed);
        self.found.extend(enough.map(|(doc, _)| doc));
        Ok(())
    }
}

/// How the values in a window lie to what is selected.
fn cover(selection: &Selection, window: &Range<DocId>) -> tantivy::Result<Cover> {
    let mut all = None;
    for piece in blocks(window) {
        let cover = selection.cover(piece.start)?;
        if *all.get_or_insert(cover) != cover {
            return Ok(Cover::Some);
        }
    }
    Ok(all.unwrap_or(Cover::None))
}

/// The parts of a window that lie in one block of a column each.
fn blocks(window: &Range<DocId>) -> impl Iterator<Item = Range<DocId>> {
    let end = window.end;
    let behind = move |from: DocId| behind_block(from).min(end);
    let starts = std::iter::successors(Some(window.start), move |from| Some(behind(*from)));
    starts
        .take_while(move |from| *from < end)
        .map(move |from| from..behind(from))
}

impl DocSet for WindowScorer {
    fn advance(&mut self) -> DocId {
        self.at += 1;
        match self.found.get(self.at) {
            Some(doc) => *doc,
            None => self.find(self.window.end),
        }
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if self.doc() >= target {
            return self.doc();
        }
        let rest = self.found.get(self.at..).unwrap_or_default();
        self.at += rest.partition_point(|doc| *doc < target);
        match self.found.get(self.at) {
            Some(doc) => *doc,
            None if target <= self.window.end => self.find(self.window.end),
            None => {
                self.span = SPAN_MIN;
                self.find(target)
            }
        }
    }

    fn doc(&self) -> DocId {
        self.found.get(self.at).copied().unwrap_or(TERMINATED)
    }

    fn size_hint(&self) -> u32 {
        let most = self.matches / u64::from(self.needed.max(1));
        u32::try_from(most).map_or(self.max_doc, |most| most.min(self.max_doc))
    }

    fn cost(&self) -> u64 {
        self.matches
    }
}

impl Scorer for WindowScorer {
    fn score(&mut self) -> Score {
        let place = self.doc().checked_sub(self.window.start);
        let entry = place.and_then(|place| self.entries.get(place as usize));
        let entry = entry.copied().unwrap_or_default();
        match self.scoring {
            Scoring::Unasked => 0.0,
            Scoring::Each(score, together) => {
                let score = f64::from(score);
                let count = f64::from(entry.count.saturating_add(self.everywhere));
                together.of(count * score, score.max(0.0))
            }
            Scoring::Own(together) => together.of(entry.sum, entry.best),
        }
    }
}

#[cfg(test)]
mod tests;

//! Documents that have some of the words: block-max WAND (Ding and Suel, "Faster Top-k Document Retrieval Using Block-Max
//! Indexes", 2011), which without a min_score is a plain union.

use std::sync::Arc;

use tantivy::query::Scorer;
use tantivy::{DocId, DocSet, Score, TERMINATED};

use super::all::AllWords;
use super::cursor::{PostingsCursor, first_too_long};
use crate::pace::Pace;
use crate::plan::min_score::MinScore;
use crate::run::Run;

/// The union of words, of which `needed` have to be there.
pub(super) struct AnyWords {
    /// In the order of the text.
    cursors: Vec<PostingsCursor>,
    needed: u32,
    /// Documents and the words that stand on them, by document.
    order: Vec<(DocId, usize)>,
    doc: DocId,
    /// What the scores of a document's words have to be in all.
    min_score: Option<f64>,
    /// What goes on with the cursors when every word is needed to reach the min_score.
    all: Option<AllWords>,
    pace: Pace<Arc<Run>>,
}

/// The documents that come next: those that stand before `end` in the order are at `doc` or before it.
struct Pivot {
    doc: DocId,
    end: usize,
}

impl AnyWords {
    /// At least one word.
    pub(super) fn new(cursors: Vec<PostingsCursor>, needed: u32, pace: Pace<Arc<Run>>) -> Self {
        let docs = cursors.iter().map(PostingsCursor::doc);
        let mut order: Vec<_> = docs.zip(0..).collect();
        order.sort_unstable();
        let mut any = Self {
            cursors,
            needed,
            order,
            doc: 0,
            min_score: None,
            all: None,
            pace,
        };
        any.settle();
        any
    }

    pub(super) fn raise_min_score(&mut self, min_score: MinScore) -> tantivy::Result<()> {
        if let Some(all) = &mut self.all {
            return all.raise_min_score(min_score);
        }
        let mut cursors = self.cursors.iter_mut();
        cursors.try_for_each(|cursor| cursor.measure(self.pace.run()))?;
        let least = min_score.sum();
        self.min_score = Some(least);
        if self.without_the_lowest() < least {
            let cursors = std::mem::take(&mut self.cursors);
            let mut all = AllWords::standing_on(self.doc, cursors, self.pace.clone());
            all.raise_min_score(min_score)?;
            self.all = Some(all);
            return Ok(());
        }
        let at_length = |code| {
            let of = self.cursors.iter().map(|cursor| cursor.highest_at_length(code));
            of.sum::<f64>()
        };
        let too_long = first_too_long(|code| at_length(code) >= least);
        let cursors = self.cursors.iter_mut();
        cursors.for_each(|cursor| cursor.too_long = too_long);
        Ok(())
    }

    /// What any document without the word that scores least scores at most. Added up, not taken off the sum of all: a
    /// word that is repeated may score a billion times what one in every document does, whose score would be lost in the
    /// rounding of that sum.
    /// Below the min_score, no word may be missing: without another one, whose highest score is no lower, a document has no
    /// higher bound. [`MinScore::sum`] has the proof that rounding loses no document.
    fn without_the_lowest(&self) -> f64 {
        let highest = || self.cursors.iter().map(PostingsCursor::highest).enumerate();
        let lowest = highest().min_by(|(_, one), (_, other)| one.total_cmp(other));
        let others = highest().filter(|(nth, _)| lowest.is_none_or(|(lowest, _)| lowest != *nth));
        others.map(|(_, highest)| highest).sum()
    }

    /// Goes to the first match that the cursors haven't passed. A search that has to stop finds no more: it will be told.
    fn settle(&mut self) -> DocId {
        loop {
            let pivot = self.pivot().filter(|pivot| !self.pace.stops(pivot.end as u32));
            let Some(pivot) = pivot else {
                self.doc = TERMINATED;
                return TERMINATED;
            };
            if let Some(skip) = self.hopeless(&pivot) {
                self.move_first(pivot.end, skip);
            } else if self.too_long(&pivot) {
                self.move_first(pivot.end, pivot.doc + 1);
            } else if self.order.first().is_some_and(|(doc, _)| *doc == pivot.doc) {
                self.doc = pivot.doc;
                return pivot.doc;
            } else {
                self.move_first(pivot.end, pivot.doc);
            }
        }
    }

    /// The first document that has enough words, and could score enough, as far as the cursors' places tell.
    fn pivot(&self) -> Option<Pivot> {
        let (mut words, mut most) = (0, 0.0);
        let mut pivot: Option<Pivot> = None;
        for (place, (doc, nth)) in self.order.iter().enumerate() {
            if *doc == TERMINATED {
                break;
            }
            match &mut pivot {
                Some(pivot) if pivot.doc == *doc => pivot.end = place + 1,
                Some(_) => break,
                None => {
                    let cursor = self.cursors.get(*nth)?;
                    words += cursor.count;
                    let enough = match self.min_score {
                        Some(min_score) => {
                            most += cursor.highest();
                            most >= min_score
                        }
                        None => true,
                    };
                    if words >= self.needed && enough {
                        pivot = Some(Pivot {
                            doc: *doc,
                            end: place + 1,
                        });
                    }
                }
            }
        }
        pivot
    }

    /// If no document from the pivot on to the end of the words' blocks can reach the min_score: where to go on.
    fn hopeless(&mut self, pivot: &Pivot) -> Option<DocId> {
        let min_score = self.min_score?;
        let (mut bound, mut until, mut shortest) = (0.0, TERMINATED, u8::MAX);
        for (_, nth) in self.order.iter().take(pivot.end) {
            let cursor = self.cursors.get_mut(*nth)?;
            let (most, last) = cursor.bound(pivot.doc);
            bound += most;
            until = until.min(last);
            shortest = shortest.min(cursor.shortest());
        }
        if bound >= min_score && self.at_length(pivot, shortest) >= min_score {
            return None;
        }
        // Behind the next word's document, that word counts too.
        let next = self.order.get(pivot.end).map_or(TERMINATED, |(doc, _)| *doc);
        Some(until.saturating_add(1).min(next))
    }

    /// Whether the pivot's text is too long to reach the min_score with the words that may be in it. After [`Self::hopeless`],
    /// which leaves the words' bounds on the pivot's blocks.
    fn too_long(&self, pivot: &Pivot) -> bool {
        let Some(min_score) = self.min_score else {
            return false;
        };
        let length = self.order.first().and_then(|(_, nth)| self.cursors.get(*nth));
        let length = length.map_or(0, |cursor| cursor.length_of(pivot.doc));
        self.at_length(pivot, length) < min_score
    }

    /// What documents of the blocks of the pivot's words score at most when their lengths have this code.
    fn at_length(&self, pivot: &Pivot, code: u8) -> f64 {
        let words = self.order.iter().take(pivot.end);
        let most = words.filter_map(|(_, nth)| Some(self.cursors.get(*nth)?.at_length(code)));
        most.sum()
    }

    /// Moves the first `count` cursors that stand before `target` to it.
    fn move_first(&mut self, count: usize, target: DocId) {
        for (doc, nth) in self.order.iter_mut().take(count) {
            if *doc < target
                && let Some(cursor) = self.cursors.get_mut(*nth)
            {
                *doc = cursor.seek(target);
            }
        }
        self.sort(count);
    }

    /// Sorts again after the first `count` moved on.
    fn sort(&mut self, count: usize) {
        for from in (0..count).rev() {
            let mut at = from;
            while at + 1 < self.order.len() && self.order.get(at) > self.order.get(at + 1) {
                self.order.swap(at, at + 1);
                at += 1;
            }
        }
    }

    /// Those that stand on the document go on.
    fn leave(&mut self) {
        let mut count = 0;
        for (doc, nth) in &mut self.order {
            if *doc > self.doc {
                break;
            }
            count += 1;
            if let Some(cursor) = self.cursors.get_mut(*nth) {
                *doc = cursor.advance();
            }
        }
        self.sort(count);
    }
}

impl DocSet for AnyWords {
    fn advance(&mut self) -> DocId {
        if let Some(all) = &mut self.all {
            return all.advance();
        }
        if self.doc == TERMINATED {
            return TERMINATED;
        }
        self.leave();
        self.settle()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if let Some(all) = &mut self.all {
            return all.seek(target);
        }
        if self.doc >= target {
            return self.doc;
        }
        self.move_first(self.order.len(), target);
        self.settle()
    }

    fn doc(&self) -> DocId {
        self.all.as_ref().map_or(self.doc, AllWords::doc)
    }

    fn size_hint(&self) -> u32 {
        let most = self.cursors.iter().map(PostingsCursor::len).max();
        most.unwrap_or_default()
    }

    fn cost(&self) -> u64 {
        self.cursors.iter().map(|cursor| u64::from(cursor.len())).sum()
    }
}

impl Scorer for AnyWords {
    fn score(&mut self) -> Score {
        if let Some(all) = &mut self.all {
            return all.score();
        }
        let here = self.cursors.iter().filter(|cursor| cursor.doc() == self.doc);
        here.map(|cursor| f64::from(cursor.score())).sum::<f64>() as Score
    }
}

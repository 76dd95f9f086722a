//! Documents that have every word.

use std::sync::Arc;

use tantivy::query::Scorer;
use tantivy::{DocId, DocSet, Score, TERMINATED};

use super::cursor::{CODES, PostingsCursor, first_too_long};
use crate::doc_walk::settles;
use crate::pace::Pace;
use crate::plan::min_score::MinScore;
use crate::run::Run;

/// The intersection of words: the rarest leads.
///
/// All words lie in one text, so its length bounds what each of them can score: with a min_score, most documents of the leading
/// word are passed over by their lengths, and the other words aren't asked about them.
pub(super) struct AllWords {
    /// In the order of the text.
    cursors: Vec<PostingsCursor>,
    /// The rarest first.
    order: Vec<usize>,
    doc: DocId,
    /// What the scores of a document's words have to be in all.
    min_score: Option<f64>,
    window: Window,
    pace: Pace<Arc<Run>>,
}

/// Documents up to one of which the same bounds apply: a block of the leading word.
#[derive(Clone, Copy)]
struct Window {
    last: DocId,
    /// Texts with this code of their length, or a higher one, can't reach the min_score.
    too_long: u16,
}

impl Window {
    /// Everything, with nothing known of it.
    const WHOLE: Self = Self {
        last: TERMINATED,
        too_long: CODES,
    };
}

impl AllWords {
    /// At least one word.
    pub(super) fn new(cursors: Vec<PostingsCursor>, pace: Pace<Arc<Run>>) -> Self {
        let mut all = Self::standing_on(0, cursors, pace);
        all.settle(0);
        all
    }

    /// Goes on from a document, which need not have all words.
    pub(super) fn standing_on(doc: DocId, cursors: Vec<PostingsCursor>, pace: Pace<Arc<Run>>) -> Self {
        let mut order: Vec<usize> = (0..cursors.len()).collect();
        order.sort_by_key(|nth| cursors.get(*nth).map(PostingsCursor::len));
        Self {
            cursors,
            order,
            doc,
            min_score: None,
            window: Window::WHOLE,
            pace,
        }
    }

    pub(super) fn raise_min_score(&mut self, min_score: MinScore) -> tantivy::Result<()> {
        let mut cursors = self.cursors.iter_mut();
        cursors.try_for_each(|cursor| cursor.measure(self.pace.run()))?;
        self.min_score = Some(min_score.sum());
        self.window = self.window_from(self.doc.saturating_add(1).min(TERMINATED));
        Ok(())
    }

    /// Goes to the first match from `target` on. A search that has to stop finds no more: it will be told.
    fn settle(&mut self, target: DocId) -> DocId {
        let mut candidate = target;
        while candidate < TERMINATED && !self.pace.stops(1) {
            if candidate > self.window.last {
                self.window = self.window_from(candidate);
            }
            let Window { last, too_long } = self.window;
            if too_long == 0 {
                candidate = last.saturating_add(1);
                continue;
            }
            let Some(leading) = self.leading() else {
                break;
            };
            candidate = leading.seek_short(candidate, last, too_long);
            if candidate > last || candidate == TERMINATED {
                continue;
            }
            if !self.hopeful(candidate) {
                candidate += 1;
                continue;
            }
            let Some(behind) = self.missed(candidate) else {
                self.doc = candidate;
                return candidate;
            };
            candidate = behind;
        }
        self.doc = TERMINATED;
        TERMINATED
    }

    /// How many documents have the rarest word.
    fn fewest(&self) -> u32 {
        let all = self.cursors.iter().map(PostingsCursor::len);
        all.min().unwrap_or_default()
    }

    fn leading(&mut self) -> Option<&mut PostingsCursor> {
        self.cursors.get_mut(*self.order.first()?)
    }

    /// Asks the words behind the leading one for a document: where the first that lacks it goes on.
    fn missed(&mut self, doc: DocId) -> Option<DocId> {
        self.order.iter().skip(1).find_map(|nth| {
            let found = self.cursors.get_mut(*nth)?.seek(doc);
            (found > doc).then_some(found)
        })
    }

    /// Whether the document that the leading word stands on can reach the min_score, as far as its length and the blocks of
    /// the other words tell.
    fn hopeful(&mut self, doc: DocId) -> bool {
        let Some(min_score) = self.min_score else {
            return true;
        };
        let mut sum = 0.0;
        for (place, nth) in self.order.iter().enumerate() {
            let Some(cursor) = self.cursors.get_mut(*nth) else {
                continue;
            };
            sum += if place == 0 {
                f64::from(cursor.score())
            } else {
                cursor.bound(doc);
                cursor.at_length(cursor.length_of(doc))
            };
        }
        sum >= min_score
    }

    /// What is known of the documents from `doc` on.
    fn window_from(&mut self, doc: DocId) -> Window {
        let Some(min_score) = self.min_score else {
            return Window::WHOLE;
        };
        let (mut bound, mut last, mut shortest) = (0.0, TERMINATED, 0);
        for (place, nth) in self.order.iter().enumerate() {
            let Some(cursor) = self.cursors.get_mut(*nth) else {
                continue;
            };
            if place == 0 {
                (bound, last) = cursor.bound(doc);
                shortest = u16::from(cursor.shortest());
            } else {
                bound += cursor.highest();
            }
        }
        if bound < min_score {
            return Window { last, too_long: 0 };
        }
        let at_length = |code: u8| {
            let of = |(place, nth): (usize, &usize)| {
                self.cursors.get(*nth).map_or(0.0, |cursor| match place {
                    0 => cursor.at_length(code),
                    _ => cursor.highest_at_length(code),
                })
            };
            self.order.iter().enumerate().map(of).sum::<f64>()
        };
        let too_long = first_too_long(|code| at_length(code) >= min_score);
        Window {
            last,
            // Lengths of texts are looked at one by one; that every one of the block is too long is known at once.
            too_long: if shortest >= too_long { 0 } else { too_long },
        }
    }
}

impl DocSet for AllWords {
    settles!();

    fn size_hint(&self) -> u32 {
        // Words are rarely together in every document that has the rarest.
        self.fewest() / self.cursors.len().max(1) as u32
    }

    fn cost(&self) -> u64 {
        u64::from(self.fewest())
    }
}

impl Scorer for AllWords {
    fn score(&mut self) -> Score {
        let here = self.cursors.iter().filter(|cursor| cursor.doc() == self.doc);
        here.map(|cursor| f64::from(cursor.score())).sum::<f64>() as Score
    }
}

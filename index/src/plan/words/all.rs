//! Documents that have every word.

use tantivy::query::Scorer;
use tantivy::{DocId, DocSet, Score, TERMINATED};

use super::cursor::Cursor;

/// The intersection of words: the rarest leads.
///
/// All words lie in one text, so its length bounds what each of them can score: with a floor, most documents of the leading
/// word are passed over by their lengths, and the other words aren't asked about them.
pub(super) struct AllWords {
    /// In the order of the text.
    cursors: Vec<Cursor>,
    /// The rarest first.
    order: Vec<usize>,
    doc: DocId,
    floor: Option<f64>,
    window: Window,
}

/// Documents up to one of which the same bounds apply.
#[derive(Clone, Copy)]
struct Window {
    last: DocId,
    /// Texts with this code of their length, or a higher one, can't reach the floor.
    too_long: u16,
}

impl Window {
    /// Everything, with nothing known of it.
    const WHOLE: Self = Self {
        last: TERMINATED,
        too_long: u8::MAX as u16 + 1,
    };
}

impl AllWords {
    /// At least one word.
    pub(super) fn new(cursors: Vec<Cursor>) -> Self {
        let mut all = Self::standing_on(0, cursors);
        all.settle(0);
        all
    }

    /// Goes on from a document, which need not have all words.
    pub(super) fn standing_on(doc: DocId, cursors: Vec<Cursor>) -> Self {
        let mut order: Vec<usize> = (0..cursors.len()).collect();
        order.sort_by_key(|nth| cursors.get(*nth).map(Cursor::len));
        Self {
            cursors,
            order,
            doc,
            floor: None,
            window: Window::WHOLE,
        }
    }

    pub(super) fn raise_floor(&mut self, floor: Score) -> tantivy::Result<()> {
        self.cursors.iter_mut().try_for_each(Cursor::measure)?;
        self.floor = Some(f64::from(floor));
        self.window = self.window_from(self.doc.saturating_add(1).min(TERMINATED));
        Ok(())
    }

    /// Goes to the first match from `target` on.
    fn settle(&mut self, target: DocId) -> DocId {
        let mut candidate = target;
        'candidates: while candidate < TERMINATED {
            if candidate > self.window.last {
                self.window = self.window_from(candidate);
            }
            if self.window.too_long == 0 {
                candidate = self.window.last.saturating_add(1);
                continue;
            }
            let mut leads = true;
            for nth in &self.order {
                let Some(cursor) = self.cursors.get_mut(*nth) else {
                    continue;
                };
                let doc = cursor.seek(candidate);
                if doc > candidate && !leads {
                    candidate = doc;
                    continue 'candidates;
                }
                if leads {
                    if doc > self.window.last {
                        candidate = doc;
                        continue 'candidates;
                    }
                    candidate = doc;
                    if doc == TERMINATED {
                        break 'candidates;
                    }
                    if u16::from(cursor.length()) >= self.window.too_long {
                        candidate += 1;
                        continue 'candidates;
                    }
                    leads = false;
                }
            }
            self.doc = candidate;
            return candidate;
        }
        self.doc = TERMINATED;
        TERMINATED
    }

    /// What is known of the documents from `doc` on.
    fn window_from(&mut self, doc: DocId) -> Window {
        let Some(floor) = self.floor else {
            return Window::WHOLE;
        };
        let (mut bound, mut last) = (0.0, TERMINATED);
        for cursor in &mut self.cursors {
            let (most, until) = cursor.bound(doc);
            bound += most;
            last = last.min(until);
        }
        let reaches = |code: u16| {
            let code = u8::try_from(code).unwrap_or(u8::MAX);
            self.cursors
                .iter()
                .map(|cursor| cursor.at_length(code))
                .sum::<f64>()
                >= floor
        };
        let (mut low, mut high) = (0, Window::WHOLE.too_long);
        if bound < floor {
            high = 0;
        }
        // Scores fall with lengths: the first code that is too long lies between the two.
        while low < high {
            let middle = u16::midpoint(low, high);
            if reaches(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Window { last, too_long: high }
    }
}

impl DocSet for AllWords {
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
        let rarest = self.cursors.iter().map(Cursor::len).min().unwrap_or_default();
        // Words are rarely together in every document that has the rarest.
        rarest / self.cursors.len().max(1) as u32
    }

    fn cost(&self) -> u64 {
        u64::from(self.cursors.iter().map(Cursor::len).min().unwrap_or_default())
    }
}

impl Scorer for AllWords {
    fn score(&mut self) -> Score {
        let here = self.cursors.iter().filter(|cursor| cursor.doc() == self.doc);
        here.map(|cursor| f64::from(cursor.score())).sum::<f64>() as Score
    }
}

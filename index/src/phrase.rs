//! Occurrences of a phrase in one text.
//!
//! Moving each occurrence of a word back by the word's place in the phrase puts an exact phrase on one position. A phrase
//! occurs where each word has a position for each of its places such that the moved positions lie within `slop` of each
//! other, and no position stands for two places: the definition of Lucene's sloppy phrase.
//!
//! An occurrence starts at the lowest moved position. For a start, the first free position for each place in order is an
//! assignment if there is one, as the intervals are equally long. When a place's position lies too far behind, no start
//! before that position minus the slop can do, as positions only grow with starts: so starts are leapt over, and none is
//! ever listed. (Word by word and place by place: a phrase of a thousand times the same word in a text of a million takes
//! no memory, and time in proportion to both.)

/// A word of a phrase in one text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PhraseWord<'a> {
    /// Its places in the phrase, in order; at least one.
    pub(crate) places: &'a [u32],
    /// Its positions in the text, in order.
    pub(crate) positions: &'a [u32],
}

/// Finds the occurrences of a phrase, first to last.
pub(crate) struct Occurrences<'a> {
    words: &'a [PhraseWord<'a>],
    slop: u64,
    /// Positions are moved up by the last place, so that moving them back stays above zero.
    last: u64,
    /// Of each word, how many positions lie before the start for its first place.
    passed: Vec<usize>,
    /// Of each place of each word, which of the word's positions stands for it.
    assigned: Vec<usize>,
}

/// What a start comes to.
enum Start {
    /// Every place has a position; the lowest, moved, is this.
    Lowest(u64),
    /// The first start that can do is not before this one.
    NotBefore(u64),
    /// No start behind it can do.
    Last,
}

impl<'a> Occurrences<'a> {
    /// The occurrences of the words, whose moved positions lie at most `slop` apart.
    pub(crate) fn new(words: &'a [PhraseWord<'a>], slop: u64) -> Self {
        let places = || words.iter().flat_map(|word| word.places);
        Self {
            words,
            slop,
            last: u64::from(places().copied().max().unwrap_or_default()),
            passed: vec![0; words.len()],
            assigned: Vec::with_capacity(places().count()),
        }
    }

    /// The first start from `from` on; `from` may only grow. Tells `work` before it looks at so many places, and fails
    /// when that does.
    pub(crate) fn next<E>(
        &mut self,
        from: u64,
        mut work: impl FnMut(u32) -> Result<(), E>,
    ) -> Result<Option<u64>, E> {
        let mut start = from;
        loop {
            match self.assign(start, &mut work)? {
                Start::Lowest(lowest) if lowest == start => return Ok(Some(start)),
                // Between the two a position may begin an occurrence that this one's places contain, too.
                Start::Lowest(lowest) => return Ok(Some(self.first_from(start).unwrap_or(lowest))),
                Start::NotBefore(later) => start = later,
                Start::Last => return Ok(None),
            }
        }
    }

    /// Which word, and which of its positions, stands for each place of the occurrence that was found last.
    pub(crate) fn assigned(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let words = self.words.iter().enumerate();
        let places = words.flat_map(|(nth, word)| word.places.iter().map(move |_| nth));
        places.zip(self.assigned.iter().copied())
    }

    fn assign<E>(&mut self, start: u64, work: &mut impl FnMut(u32) -> Result<(), E>) -> Result<Start, E> {
        let (last, slop) = (self.last, self.slop);
        if self.words.is_empty() {
            return Ok(Start::Last);
        }
        let mut lowest = u64::MAX;
        self.assigned.clear();
        for (word, passed) in self.words.iter().zip(&mut self.passed) {
            work(word.places.len() as u32)?;
            let mut free = *passed;
            for (nth, place) in word.places.iter().enumerate() {
                let from = start + u64::from(*place);
                let rest = word.positions.get(free..).unwrap_or_default();
                free += before(rest, |position| position + last < from);
                if nth == 0 {
                    *passed = free;
                }
                let Some(position) = word.positions.get(free) else {
                    return Ok(Start::Last);
                };
                let moved = u64::from(*position) + last - u64::from(*place);
                if moved > start + slop {
                    return Ok(Start::NotBefore(moved - slop));
                }
                lowest = lowest.min(moved);
                self.assigned.push(free);
                free += 1;
            }
        }
        Ok(Start::Lowest(lowest))
    }

    /// The first moved position from `start` on.
    fn first_from(&self, start: u64) -> Option<u64> {
        let of_word = |word: &PhraseWord<'_>| {
            let moved = word.places.iter().filter_map(|place| {
                let from = start + u64::from(*place);
                let passed = before(word.positions, |position| position + self.last < from);
                let position = word.positions.get(passed)?;
                Some(u64::from(*position) + self.last - u64::from(*place))
            });
            moved.min()
        };
        self.words.iter().filter_map(of_word).min()
    }
}

/// How many of the first positions are `passed`; mostly few.
fn before(positions: &[u32], passed: impl Fn(u64) -> bool) -> usize {
    let passed = |position: &u32| passed(u64::from(*position));
    let mut bound = 1;
    while positions.get(bound - 1).is_some_and(passed) {
        bound *= 2;
    }
    let from = bound / 2;
    let among = positions.get(from..bound.min(positions.len()));
    from + among.unwrap_or_default().partition_point(passed)
}

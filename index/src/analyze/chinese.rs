//! The min_word and max_word analyzers: words of a Chinese dictionary.
//!
//! Both look at nothing but the dictionary and the run of Han characters at hand: no statistics of unknown words,
//! whose cut depends on what stands around them, so that a document and a query cut the same characters alike as
//! often as can be. Other scripts are cut as by single_word.
//!
//! - **max_word**: every dictionary word of two and more characters, and each character that no word covers. Words
//!   that contain shorter words don't count as covering: 国 is a token of its own in 中华人民共和国, as 共和国 has
//!   共和 inside. A position counts characters (a word of another script counts one), and words overlap.
//! - **min_word**: the segmentation into the fewest words; of several, the one with the most even words, then the one
//!   whose longer words stand later (梨花茶 is 梨, 花茶). A position counts tokens.

use std::sync::OnceLock;

use jieba_rs::Jieba;

use super::script::{ScriptRun, runs};
use super::token_stream::Piece;

/// The dictionary: some 80 ms to load, so only when the first text needs it, and once.
fn dictionary() -> &'static Jieba {
    static DICTIONARY: OnceLock<Jieba> = OnceLock::new();
    DICTIONARY.get_or_init(Jieba::new)
}

/// A dictionary word of two and more characters inside a run, counted in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word {
    start: usize,
    end: usize,
}

impl Word {
    /// A character by itself.
    fn alone(start: usize) -> Self {
        let end = start + 1;
        Self { start, end }
    }
}

/// A run of Han characters and the dictionary words in it.
struct HanRun {
    /// Where in the text each character begins, and where the last one ends.
    bounds: Vec<usize>,
    /// Words by where they begin, longest first.
    words: Vec<Word>,
}

impl HanRun {
    fn new(text: &str, from: usize, to: usize) -> Self {
        let spelled = text.get(from..to).unwrap_or_default();
        let mut bounds: Vec<usize> = spelled.char_indices().map(|(at, _)| from + at).collect();
        bounds.push(to);
        let words = dictionary().cut_all(spelled).into_iter();
        let words = words
            .map(|token| (token.start, token.end))
            .filter(|(start, end)| end - start >= 2);
        let mut words: Vec<Word> = words.map(|(start, end)| Word { start, end }).collect();
        words.sort_unstable_by_key(|word| (word.start, std::cmp::Reverse(word.end)));
        words.dedup();
        Self { bounds, words }
    }

    fn len(&self) -> usize {
        self.bounds.len().saturating_sub(1)
    }

    fn piece(&self, word: Word, position: usize, units: usize) -> Option<Piece> {
        Some(Piece {
            from: *self.bounds.get(word.start)?,
            to: *self.bounds.get(word.end)?,
            position,
            units,
        })
    }

    /// All words, and the characters that no smallest word covers, by where they begin, longest first.
    fn overlapping(&self) -> Vec<Word> {
        let mut covered = vec![false; self.len()];
        for (at, word) in self.words.iter().enumerate() {
            // Words inside this one begin not before it: they follow in the list, up to where this one ends.
            let behind = self.words.get(at + 1..).unwrap_or_default();
            let mut overlapping = behind.iter().take_while(|other| other.start < word.end);
            if !overlapping.any(|other| other.end <= word.end)
                && let Some(covered) = covered.get_mut(word.start..word.end)
            {
                covered.fill(true);
            }
        }
        let alone = covered.iter().zip(0..).filter(|(covered, _)| !**covered);
        let alone = alone.map(|(_, start)| Word::alone(start));
        let mut all: Vec<Word> = self.words.iter().copied().chain(alone).collect();
        all.sort_unstable_by_key(|word| (word.start, std::cmp::Reverse(word.end)));
        all
    }

    /// The words of the coarsest segmentation.
    fn coarsest(&self) -> Vec<Word> {
        // best[end]: the best way to cut the first `end` characters. Every way to `end` is compared when all words that
        // end there are known, which is so once all earlier starts were visited.
        let mut best: Vec<Option<Way>> = vec![None; self.len() + 1];
        if let Some(origin) = best.first_mut() {
            *origin = Some(Way::default());
        }
        let mut words = self.words.iter().peekable();
        for start in 0..self.len() {
            let Some(way) = best.get(start).copied().flatten() else {
                continue;
            };
            let here = std::iter::from_fn(|| words.next_if(|word| word.start == start).copied());
            for word in here.chain([Word::alone(start)]) {
                let candidate = way.extended(word);
                if let Some(slot) = best.get_mut(word.end)
                    && slot.is_none_or(|known| candidate.beats(&known))
                {
                    *slot = Some(candidate);
                }
            }
        }
        let mut cut = Vec::new();
        let mut end = self.len();
        while end > 0 {
            let Some(way) = best.get(end).copied().flatten() else {
                break;
            };
            let start = way.last_start;
            cut.push(Word { start, end });
            end = start;
        }
        cut.reverse();
        cut
    }
}

/// How good a segmentation of the beginning of a run is.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    /// Number of words: fewer are better.
    words: usize,
    /// Sum of the squares of the words' lengths: less is more even.
    squares: usize,
    /// Sum of length times ordinal: more has longer words later.
    weight: usize,
    /// Where the last word begins.
    last_start: usize,
}

impl Way {
    fn extended(&self, word: Word) -> Self {
        let length = word.end - word.start;
        let words = self.words + 1;
        Self {
            words,
            squares: self.squares + length * length,
            weight: self.weight + words * length,
            last_start: word.start,
        }
    }

    fn beats(&self, other: &Self) -> bool {
        (self.words, self.squares, other.weight) < (other.words, other.squares, self.weight)
    }
}

/// Every dictionary word of `text`.
pub(super) fn max_words(text: &str) -> impl Iterator<Item = Piece> + Send + '_ {
    cut(text, |han, first| {
        let words = han.overlapping().into_iter();
        let pieces = words.filter_map(|word| han.piece(word, first + word.start, word.end - word.start));
        (pieces.collect(), han.len())
    })
}

/// The coarsest segmentation of `text`.
pub(super) fn min_words(text: &str) -> impl Iterator<Item = Piece> + Send + '_ {
    cut(text, |han, first| {
        let words = han.coarsest().into_iter().enumerate();
        let pieces: Vec<Piece> = words
            .filter_map(|(at, word)| han.piece(word, first + at, 1))
            .collect();
        let positions = pieces.len();
        (pieces, positions)
    })
}

/// Cuts runs of Han characters as `words` does, which is told their first position, and says how many they take.
fn cut(
    text: &str,
    words: impl Fn(&HanRun, usize) -> (Vec<Piece>, usize) + Send,
) -> impl Iterator<Item = Piece> + Send {
    let mut position = 0;
    runs(text).flat_map(move |run| {
        let first = position;
        let (pieces, positions) = match run {
            ScriptRun::Han { from, to } => words(&HanRun::new(text, from, to), first),
            ScriptRun::Word { from, to } => (vec![Piece::single(from, to, first)], 1),
        };
        position += positions;
        pieces
    })
}

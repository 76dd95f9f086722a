//! The tokens of an object's texts as the index has them, and which of them are found.

use crate::error::AllowanceExceeded;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tantivy::TantivyError;

use super::seek::{Seek, What, Word};
use crate::allowance::Grant;
use crate::analyze::{Phase, Placed, each_token};
use crate::bits::Bits;
use crate::edit_distance::edits_within;
use crate::limits::MAX_TOKEN_BYTES;
use crate::pace::Pace;
use crate::phrase::{Occurrences, PhraseWord};
use crate::run::Run;
use crate::schema::Analyzer;

/// Positions that the search library leaves free between two texts of a field.
const GAP: usize = 1;
/// Tokens, spellings and places of phrases that are looked at between two looks at the deadline.
const STEPS_PER_CHECK: u32 = 1_024;
/// Memory of a spelling besides its bytes: an entry of a hash table that has just grown, and its string's.
const SPELLING_BYTES: usize = 128;
/// What a token counts that wasn't found.
const NOT_FOUND: f32 = f32::NEG_INFINITY;

/// A token that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mark {
    /// First byte.
    pub(super) from: u32,
    /// Byte behind the last.
    pub(super) to: u32,
    /// How the index spells it: the same for equal spellings of the same texts.
    pub(super) spelling: u32,
    /// How much it counts.
    pub(super) weight: f32,
}

/// The marks in each of the texts that one object has in a field, in the order of the texts. `held` takes their memory.
pub(super) fn marks(
    analyzer: &Analyzer,
    seeks: &[Seek],
    texts: &[&str],
    run: &Arc<Run>,
    held: &mut Grant,
) -> tantivy::Result<Vec<Vec<Mark>>> {
    let mut spellings = Spellings {
        ids: HashMap::new(),
        held: run.allowance().grant(),
    };
    let mut own = Tokens::new(analyzer, texts, &mut spellings, run)?;
    let mut others: HashMap<&Analyzer, Tokens> = HashMap::new();
    for seek in seeks {
        match &seek.what {
            What::Tokens(matcher) => {
                let mut found = own.none()?;
                own.add_spelled(&spellings, |token| matcher.matches(token), &mut found)?;
                own.mark(&found, seek.weight)?;
            }
            What::Words { words, needed } => {
                let (there, found) = own.words(words, &spellings)?;
                if there >= *needed {
                    own.mark(&found, seek.weight)?;
                }
            }
            What::Phrase(phrase) => {
                let tokens = match &phrase.analyzer {
                    Some(analyzer) => match others.entry(analyzer) {
                        Entry::Occupied(known) => known.into_mut(),
                        Entry::Vacant(new) => new.insert(Tokens::new(analyzer, texts, &mut spellings, run)?),
                    },
                    None => &mut own,
                };
                let mut found = tokens.none()?;
                let (words, slop, is_prefix) = (&phrase.words, phrase.slop, phrase.last_is_prefix);
                if tokens.phrase(words, slop, is_prefix, &spellings, &mut found)? {
                    tokens.mark(&found, seek.weight)?;
                }
            }
        }
    }
    let mut marks = vec![Vec::new(); texts.len()];
    for tokens in [&own].into_iter().chain(others.values()) {
        let found = tokens.tokens.iter().zip(&tokens.weights);
        for (token, weight) in found.filter(|(_, weight)| **weight > NOT_FOUND) {
            if let Some(marks) = marks.get_mut(token.text as usize) {
                let mark = Mark {
                    from: token.from,
                    to: token.to,
                    spelling: token.spelling,
                    weight: *weight,
                };
                held.push(marks, mark)?;
            }
        }
    }
    for marks in &mut marks {
        let place = |mark: &Mark| (mark.from, mark.to, mark.spelling);
        marks.sort_unstable_by(|a, b| place(a).cmp(&place(b)).then(b.weight.total_cmp(&a.weight)));
        // The same token found in two ways of analyzing the text counts once, as the weightier has it.
        marks.dedup_by(|next, kept| place(next) == place(kept));
    }
    Ok(marks)
}

/// The different spellings of tokens, numbered as they appear.
struct Spellings {
    ids: HashMap<String, u32>,
    held: Grant,
}

impl Spellings {
    fn id(&mut self, spelling: &str) -> Result<u32, AllowanceExceeded> {
        if let Some(id) = self.ids.get(spelling) {
            return Ok(*id);
        }
        self.held.grow(spelling.len() + SPELLING_BYTES)?;
        let id = self.ids.len() as u32;
        self.ids.insert(spelling.to_owned(), id);
        Ok(id)
    }
}

/// One token of one of the texts.
struct HighlightToken {
    text: u32,
    from: u32,
    to: u32,
    position: u32,
    spelling: u32,
}

/// All tokens of an object's texts.
struct Tokens {
    /// In the order of the texts, by position.
    tokens: Vec<HighlightToken>,
    /// What each of them counts, as far as it was found.
    weights: Vec<f32>,
    /// The tokens of each spelling, in order, one spelling behind the other.
    by_spelling: Vec<u32>,
    /// Where those of each spelling begin.
    begins: Vec<u32>,
    pace: Pace<Arc<Run>>,
    _held: Grant,
}

impl Tokens {
    fn new(
        analyzer: &Analyzer,
        texts: &[&str],
        spellings: &mut Spellings,
        run: &Arc<Run>,
    ) -> tantivy::Result<Self> {
        let mut held = run.allowance().grant();
        let mut pace = Pace::new(Arc::clone(run), STEPS_PER_CHECK);
        let mut tokens: Vec<HighlightToken> = Vec::new();
        let mut base = 0;
        for (nth, text) in texts.iter().enumerate() {
            let mut end = base;
            each_token::<TantivyError>(analyzer, Phase::Index, text, |token| {
                pace.step(1)?;
                if token.text.len() > MAX_TOKEN_BYTES {
                    return Ok(());
                }
                let position = base + token.position;
                end = end.max(position + token.position_length);
                let token = HighlightToken {
                    text: nth as u32,
                    from: token.offset_from as u32,
                    to: token.offset_to as u32,
                    position: position as u32,
                    spelling: spellings.id(&token.text)?,
                };
                Ok(held.push(&mut tokens, token)?)
            })?;
            base = end + GAP;
        }
        let kinds = spellings.ids.len();
        held.grow(tokens.len() * (size_of::<u32>() + size_of::<f32>()) + (kinds + 2) * size_of::<u32>())?;
        // First how many there are of each, two places on; then, while they are placed, where the next one goes.
        let mut begins = vec![0; kinds + 2];
        for token in &tokens {
            if let Some(count) = begins.get_mut(token.spelling as usize + 2) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for begin in &mut begins {
            sum += *begin;
            *begin = sum;
        }
        let mut by_spelling = vec![0; tokens.len()];
        for (nth, token) in tokens.iter().enumerate() {
            if let Some(next) = begins.get_mut(token.spelling as usize + 1) {
                if let Some(place) = by_spelling.get_mut(*next as usize) {
                    *place = nth as u32;
                }
                *next += 1;
            }
        }
        Ok(Self {
            weights: vec![NOT_FOUND; tokens.len()],
            tokens,
            by_spelling,
            begins,
            pace,
            _held: held,
        })
    }

    /// The tokens of a spelling, in order.
    fn of(&self, spelling: u32) -> &[u32] {
        let spelling = spelling as usize;
        let ends = self.begins.get(spelling).zip(self.begins.get(spelling + 1));
        let ends = ends.map(|(from, to)| *from as usize..*to as usize);
        let tokens = ends.and_then(|ends| self.by_spelling.get(ends));
        tokens.unwrap_or_default()
    }

    /// The tokens of a word, in order.
    fn of_word(&self, word: &str, spellings: &Spellings) -> &[u32] {
        let spelling = spellings.ids.get(word);
        spelling.map(|spelling| self.of(*spelling)).unwrap_or_default()
    }

    /// A set of tokens without any.
    fn none(&self) -> Result<Bits, AllowanceExceeded> {
        Bits::within(self.tokens.len() as u32, self.pace.run().allowance())
    }

    /// Notes that tokens were found by something that counts `weight`.
    fn mark(&mut self, found: &Bits, weight: f32) -> tantivy::Result<()> {
        let mut nth = found.next(0);
        while let Some(known) = self.weights.get_mut(nth as usize) {
            self.pace.step(1)?;
            *known = known.max(weight);
            nth = found.next(nth + 1);
        }
        Ok(())
    }

    /// Adds the tokens whose spelling is wanted; whether there is one.
    fn add_spelled(
        &mut self,
        spellings: &Spellings,
        wanted: impl Fn(&str) -> bool,
        found: &mut Bits,
    ) -> tantivy::Result<bool> {
        let mut any = false;
        for (token, spelling) in &spellings.ids {
            self.pace.step(1)?;
            if wanted(token) {
                let tokens = self.of(*spelling);
                tokens.iter().for_each(|nth| found.insert(*nth));
                any |= !tokens.is_empty();
            }
        }
        Ok(any)
    }

    /// How many of the words are there, and their tokens. A word that is repeated counts as often.
    fn words(&mut self, words: &[Word], spellings: &Spellings) -> tantivy::Result<(usize, Bits)> {
        let mut found = self.none()?;
        let mut known: HashMap<&Word, bool> = HashMap::new();
        let mut there = 0;
        for word in words {
            let is_there = match known.entry(word) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => *new.insert(self.word(word, spellings, &mut found)?),
            };
            there += usize::from(is_there);
        }
        Ok((there, found))
    }

    /// Adds the tokens of a word; whether there is one.
    fn word(&mut self, word: &Word, spellings: &Spellings, found: &mut Bits) -> tantivy::Result<bool> {
        match word {
            Word::Parts(parts) => match parts.as_slice() {
                [(_, token)] => {
                    let tokens = self.of_word(token, spellings);
                    tokens.iter().for_each(|nth| found.insert(*nth));
                    let count = tokens.len();
                    self.pace.step(count as u32)?;
                    Ok(count > 0)
                }
                parts => self.phrase(parts, 0, false, spellings, found),
            },
            Word::Near { word, edits, prefix } => {
                let near = |token: &str| {
                    token.starts_with(prefix.as_str()) && edits_within(word, token, *edits).is_some()
                };
                self.add_spelled(spellings, near, found)
            }
        }
    }

    /// Adds the tokens of all occurrences of a phrase; whether there is one. Of each occurrence those nearest to its start
    /// are taken.
    fn phrase(
        &mut self,
        words: &[Placed],
        slop: usize,
        last_is_prefix: bool,
        spellings: &Spellings,
        found: &mut Bits,
    ) -> tantivy::Result<bool> {
        // The same word at several places needs as many tokens.
        let mut places: BTreeMap<(&str, bool), Vec<u32>> = BTreeMap::new();
        for (nth, (place, word)) in words.iter().enumerate() {
            let is_prefix = last_is_prefix && nth + 1 == words.len();
            places.entry((word, is_prefix)).or_default().push(*place as u32);
        }
        let mut held = self.pace.run().allowance().grant();
        let mut standing = Vec::new();
        for ((word, is_prefix), places) in &places {
            let mut tokens = Vec::new();
            if *is_prefix {
                let mut begun = self.none()?;
                self.add_spelled(spellings, |token| token.starts_with(word), &mut begun)?;
                let mut nth = begun.next(0);
                while (nth as usize) < self.tokens.len() {
                    held.push(&mut tokens, nth)?;
                    nth = begun.next(nth + 1);
                }
            } else {
                let spelled = self.of_word(word, spellings);
                held.reserve(&mut tokens, spelled.len())?;
                tokens.extend(spelled);
            }
            if tokens.is_empty() {
                return Ok(false);
            }
            self.pace.step(tokens.len() as u32)?;
            let mut positions = Vec::new();
            held.reserve(&mut positions, tokens.len())?;
            let at = |nth: &u32| self.tokens.get(*nth as usize).map(|token| token.position);
            positions.extend(tokens.iter().filter_map(at));
            standing.push((places, tokens, positions));
        }
        standing.sort_by_key(|(_, tokens, _)| tokens.len());
        let words = standing
            .iter()
            .map(|(places, _, positions)| PhraseWord { places, positions });
        let words: Vec<PhraseWord<'_>> = words.collect();
        let mut occurrences = Occurrences::new(&words, slop as u64);
        let (mut from, mut any) = (0, false);
        let pace = &mut self.pace;
        while let Some(start) = occurrences.next(from, |steps| pace.step(steps))? {
            any = true;
            from = start + 1;
            for (word, at) in occurrences.assigned() {
                let Some((_, tokens, positions)) = standing.get(word) else {
                    continue;
                };
                let here = positions.get(at);
                let alike = positions.get(at..).unwrap_or_default();
                let alike = alike.iter().take_while(|position| Some(*position) == here);
                for (nth, _) in tokens.get(at..).unwrap_or_default().iter().zip(alike) {
                    found.insert(*nth);
                }
            }
        }
        Ok(any)
    }
}

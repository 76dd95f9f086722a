//! The tokens of an object's texts as the index has them, and which of them are found.

use std::collections::HashMap;

use super::seek::{Phrase, Seek, What, Word};
use crate::analyze::{Phase, analyze};
use crate::schema::Analyzer;

/// Positions that the search library leaves free between two texts of a field.
const GAP: usize = 1;
/// Bytes above which the search library drops a token.
const MAX_TOKEN_BYTES: usize = 65_530;

/// A token that was found.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mark {
    /// First byte.
    pub(super) from: usize,
    /// Byte behind the last.
    pub(super) to: usize,
    /// How the index spells it.
    pub(super) token: String,
    /// How much it counts.
    pub(super) weight: f32,
}

/// The marks in each of the texts that one object has in a field, in the order of the texts.
pub(super) fn marks(analyzer: &Analyzer, seeks: &[Seek], texts: &[&str]) -> Vec<Vec<Mark>> {
    let own = Tokens::new(analyzer, texts);
    let mut others: HashMap<&Analyzer, Tokens> = HashMap::new();
    let mut marks = vec![Vec::new(); texts.len()];
    for seek in seeks {
        let (tokens, found) = match &seek.what {
            What::Tokens(form) => (&own, own.of_spelling(|token| form.matches(token))),
            What::Words { words, needed } => (&own, own.words(words, *needed)),
            What::Phrase(phrase) => {
                let tokens = match &phrase.analyzer {
                    Some(analyzer) => &*others
                        .entry(analyzer)
                        .or_insert_with(|| Tokens::new(analyzer, texts)),
                    None => &own,
                };
                (tokens, tokens.phrase(phrase))
            }
        };
        for token in found.into_iter().filter_map(|nth| tokens.tokens.get(nth)) {
            if let Some(marks) = marks.get_mut(token.text) {
                marks.push(Mark {
                    from: token.from,
                    to: token.to,
                    token: token.spelling.clone(),
                    weight: seek.weight,
                });
            }
        }
    }
    for marks in &mut marks {
        marks.sort_by(|a, b| {
            (a.from, a.to, &a.token)
                .cmp(&(b.from, b.to, &b.token))
                .then(b.weight.total_cmp(&a.weight))
        });
        // The same token found by several clauses counts once, as the weightiest of them has it.
        marks.dedup_by(|next, kept| (next.from, next.to, &next.token) == (kept.from, kept.to, &kept.token));
    }
    marks
}

/// One token of one of the texts.
struct Token {
    text: usize,
    from: usize,
    to: usize,
    position: usize,
    spelling: String,
}

/// All tokens of an object's texts.
struct Tokens {
    /// In the order of the texts, by position.
    tokens: Vec<Token>,
    /// Which tokens are spelled like this, in order.
    by_spelling: HashMap<String, Vec<usize>>,
}

impl Tokens {
    fn new(analyzer: &Analyzer, texts: &[&str]) -> Self {
        let mut tokens = Vec::new();
        let mut by_spelling: HashMap<String, Vec<usize>> = HashMap::new();
        let mut base = 0;
        for (nth, text) in texts.iter().enumerate() {
            let mut end = base;
            for token in analyze(analyzer, Phase::Index, text) {
                if token.text.len() > MAX_TOKEN_BYTES {
                    continue;
                }
                let position = base + token.position;
                end = end.max(position + token.position_length);
                by_spelling
                    .entry(token.text.clone())
                    .or_default()
                    .push(tokens.len());
                tokens.push(Token {
                    text: nth,
                    from: token.from,
                    to: token.to,
                    position,
                    spelling: token.text,
                });
            }
            base = end + GAP;
        }
        Self { tokens, by_spelling }
    }

    fn of_spelling(&self, wanted: impl Fn(&str) -> bool) -> Vec<usize> {
        let found = self.by_spelling.iter().filter(|(token, _)| wanted(token));
        found.flat_map(|(_, tokens)| tokens.iter().copied()).collect()
    }

    fn words(&self, words: &[Word], needed: usize) -> Vec<usize> {
        let mut all = Vec::new();
        let mut there = 0;
        for word in words {
            let found = match word {
                Word::Parts(parts) => match parts.as_slice() {
                    [(_, token)] => self.by_spelling.get(token).cloned().unwrap_or_default(),
                    parts => self.adjacent(&self.placed(parts, false)),
                },
                Word::Near { word, edits, prefix } => {
                    self.of_spelling(|token| Word::is_near(word, *edits, prefix, token))
                }
            };
            there += usize::from(!found.is_empty());
            all.extend(found);
        }
        all.sort_unstable();
        all.dedup();
        if there < needed { Vec::new() } else { all }
    }

    fn phrase(&self, phrase: &Phrase) -> Vec<usize> {
        let words = self.placed(&phrase.words, phrase.last_is_prefix);
        if phrase.slop == 0 || words.len() < 2 {
            self.adjacent(&words)
        } else {
            near(phrase, &words)
        }
    }

    /// Where the words of a phrase stand.
    fn placed(&self, words: &[(usize, String)], last_is_prefix: bool) -> Vec<Standing> {
        let last = words.len().saturating_sub(1);
        let standing = |(nth, (place, word)): (usize, &(usize, String))| {
            let mut found = if last_is_prefix && nth == last {
                self.of_spelling(|token| token.starts_with(word.as_str()))
            } else {
                self.by_spelling.get(word).cloned().unwrap_or_default()
            };
            found.sort_unstable();
            let at = |nth: usize| self.tokens.get(nth).map(|token| (token.position, nth));
            Standing {
                place: *place,
                at: found.into_iter().filter_map(at).collect(),
            }
        };
        words.iter().enumerate().map(standing).collect()
    }

    /// The tokens of all occurrences of a phrase whose words stand exactly at their places.
    fn adjacent(&self, words: &[Standing]) -> Vec<usize> {
        let Some(rarest) = words.iter().min_by_key(|word| word.at.len()) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for (position, _) in &rarest.at {
            let Some(start) = position.checked_sub(rarest.place) else {
                continue;
            };
            let before = found.len();
            for word in words {
                let here = word.standing_at(start + word.place);
                if here.is_empty() {
                    found.truncate(before);
                    break;
                }
                found.extend(here.iter().map(|(_, nth)| *nth));
            }
        }
        found
    }
}

/// Where one word of a phrase stands.
struct Standing {
    /// Its place in the phrase.
    place: usize,
    /// Positions in order, and which token each is.
    at: Vec<(usize, usize)>,
}

impl Standing {
    fn standing_at(&self, position: usize) -> &[(usize, usize)] {
        let from = self.at.partition_point(|(at, _)| *at < position);
        let to = self.at.partition_point(|(at, _)| *at <= position);
        self.at.get(from..to).unwrap_or_default()
    }
}

/// The tokens of all occurrences of a phrase whose words may be apart: an occurrence is a start such that, moved back by
/// its place, each word stands between the start and `slop` positions behind it, no token standing for two words. Of
/// each occurrence the tokens nearest to its start are taken.
fn near(phrase: &Phrase, words: &[Standing]) -> Vec<usize> {
    // The same word at several places needs as many tokens: those places together, in order.
    let mut same: HashMap<&str, Vec<&Standing>> = HashMap::new();
    for ((_, word), standing) in phrase.words.iter().zip(words) {
        same.entry(word).or_default().push(standing);
    }
    let mut starts: Vec<usize> = words
        .iter()
        .flat_map(|word| word.at.iter().map(|(at, _)| at + phrase_end(words) - word.place))
        .collect();
    starts.sort_unstable();
    starts.dedup();
    let mut found = Vec::new();
    for start in starts {
        let before = found.len();
        let all = same
            .values()
            .all(|places| assign(places, start, phrase_end(words), phrase.slop, &mut found));
        if !all {
            found.truncate(before);
        }
    }
    found
}

/// The last place of a phrase: positions are moved up by it, so that moving them back stays above zero.
fn phrase_end(words: &[Standing]) -> usize {
    words.iter().map(|word| word.place).max().unwrap_or_default()
}

/// Takes the first free token for each place of a word, all within `slop` of the start; whether there is one for each.
fn assign(places: &[&Standing], start: usize, moved: usize, slop: usize, found: &mut Vec<usize>) -> bool {
    let mut free = places.first().map(|word| word.at.as_slice()).unwrap_or_default();
    places.iter().all(|word| {
        let from = start + word.place;
        let skipped = free.partition_point(|(at, _)| at + moved < from);
        free = free.get(skipped..).unwrap_or_default();
        match free.split_first() {
            Some(((at, nth), rest)) if at + moved <= from + slop => {
                found.push(*nth);
                free = rest;
                true
            }
            _ => false,
        }
    })
}

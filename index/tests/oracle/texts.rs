//! Full text: which texts have the words of a query, and their scores by BM25 over all texts of the field.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use souk_index::{Fuzziness, Object, Operator, Query};

use crate::interval::Interval;
use crate::matching::{objects_at, string, sum, values};
use crate::tokens::{Words, kept_length};
use crate::universe::{Documents, Kind, Universe};

/// A token with its position. Between two texts of an array one position stays free.
type Placed = (i64, String);

/// The texts of all documents and objects, cut into words.
#[derive(Default)]
pub(crate) struct Texts {
    /// Of each object, by its address, and field, by its place in the universe.
    words: HashMap<(usize, usize), Vec<Placed>>,
    fields: HashMap<usize, Statistics>,
}

/// What scores depend on besides the text.
#[derive(Default)]
struct Statistics {
    /// Objects with a word in the field.
    texts: u64,
    /// Their lengths, as they are kept.
    tokens: u64,
    /// How many of them have a word.
    having: HashMap<String, u64>,
}

impl Texts {
    pub(crate) fn new(universe: &Universe, documents: &Documents) -> Self {
        let mut texts = Self::default();
        for (nth, leaf) in universe.leaves.iter().enumerate() {
            let Kind::Text(words) = leaf.kind else { continue };
            let mut statistics = Statistics::default();
            for document in documents.values() {
                let objects = if leaf.scope.is_empty() {
                    vec![document]
                } else {
                    objects_at(document, "", &leaf.scope)
                };
                for object in objects {
                    let placed = placed(words, values(object, leaf).iter().map(string));
                    if placed.is_empty() {
                        continue;
                    }
                    statistics.texts += 1;
                    statistics.tokens += kept_length(placed.len() as u64);
                    let mut different: Vec<&String> = placed.iter().map(|(_, word)| word).collect();
                    different.sort();
                    different.dedup();
                    for word in different {
                        *statistics.having.entry(word.clone()).or_default() += 1;
                    }
                    texts.words.insert((address(object), nth), placed);
                }
            }
            texts.fields.insert(nth, statistics);
        }
        texts
    }

    /// The words of an object's field.
    pub(crate) fn tokens(&self, universe: &Universe, object: &Object, field: &str) -> &[Placed] {
        let nth = place(universe, field);
        self.words.get(&(address(object), nth)).map_or(&[], Vec::as_slice)
    }

    /// The score of something in a text: how rare it is, how often it is there, how long the text is.
    fn bm25(&self, universe: &Universe, object: &Object, field: &str, rarity: f64, often: usize) -> Interval {
        let statistics = &self.fields[&place(universe, field)];
        let average = statistics.tokens as f64 / statistics.texts as f64;
        let length = kept_length(self.tokens(universe, object, field).len() as u64) as f64;
        let (often, norm) = (often as f64, 1.2 * (1.0 - 0.75 + 0.75 * length / average));
        // Single precision subtracts from the weight what is left of it: the less of it is left, the less is known.
        Interval::exact(rarity * often / (often + norm)).wider(1e-6 * (1.0 + norm / often))
    }

    /// ln(1 + (N − n + 0.5) / (n + 0.5)).
    fn rarity(&self, universe: &Universe, field: &str, word: &str) -> f64 {
        let statistics = &self.fields[&place(universe, field)];
        let having = statistics.having.get(word).copied().unwrap_or(0) as f64;
        (1.0 + (statistics.texts as f64 - having + 0.5) / (having + 0.5)).ln()
    }

    /// The score of a word of a TEXT; `None` if it isn't there.
    pub(crate) fn word(
        &self,
        universe: &Universe,
        object: &Object,
        field: &str,
        word: &str,
    ) -> Option<Interval> {
        let often = self
            .tokens(universe, object, field)
            .iter()
            .filter(|(_, own)| own == word)
            .count();
        let rarity = || self.rarity(universe, field, word);
        (often > 0).then(|| self.bm25(universe, object, field, rarity(), often))
    }

    /// The score of a full-text query.
    pub(crate) fn score(&self, universe: &Universe, query: &Query, object: &Object) -> Option<Interval> {
        let (Query::Match {
            field, text, weight, ..
        }
        | Query::MatchFuzzy {
            field, text, weight, ..
        }
        | Query::MatchPhrase {
            field, text, weight, ..
        }
        | Query::MatchPhrasePrefix {
            field, text, weight, ..
        }) = query
        else {
            panic!("no full text: {query:?}")
        };
        let leaf = universe.leaf(field);
        let Kind::Text(words) = leaf.kind else {
            // A KEYWORD is one word, and all scores are alike.
            let least = match query {
                Query::Match {
                    minimum_should_match, ..
                }
                | Query::MatchFuzzy {
                    minimum_should_match, ..
                } => minimum_should_match.unwrap_or(1),
                _ => 1,
            };
            let fits = |value: &str| match query {
                Query::MatchPhrasePrefix { .. } => value.starts_with(text.as_str()),
                Query::MatchFuzzy {
                    fuzziness,
                    prefix_length,
                    ..
                } => near(text, value, *fuzziness, *prefix_length),
                _ => value == text,
            };
            let found = least == 1 && values(object, leaf).iter().map(string).any(fits);
            return found.then(|| Interval::exact(f64::from(*weight)));
        };
        let asked = words.of(text);
        let score = match query {
            Query::Match {
                operator,
                minimum_should_match,
                ..
            } => {
                let scores = asked
                    .iter()
                    .filter_map(|word| self.word(universe, object, field, word));
                enough(
                    &asked,
                    &scores.collect::<Vec<_>>(),
                    *operator,
                    *minimum_should_match,
                )
            }
            Query::MatchFuzzy {
                operator,
                minimum_should_match,
                fuzziness,
                prefix_length,
                ..
            } => {
                let own = self.tokens(universe, object, field);
                let scores = asked.iter().filter_map(|word| {
                    if edits(*fuzziness, word) == 0 {
                        return self.word(universe, object, field, word);
                    }
                    let mut own = own.iter();
                    let found = own.any(|(_, own)| near(word, own, *fuzziness, *prefix_length));
                    found.then(Interval::unknown)
                });
                enough(
                    &asked,
                    &scores.collect::<Vec<_>>(),
                    *operator,
                    *minimum_should_match,
                )
            }
            Query::MatchPhrase { slop, .. } => {
                // A single word is no phrase.
                let slop = if asked.len() == 1 { 0 } else { i64::from(*slop) };
                let often = self.phrases(universe, object, field, &asked, slop);
                let rarity = asked.iter().map(|word| self.rarity(universe, field, word)).sum();
                (often > 0).then(|| self.bm25(universe, object, field, rarity, often))
            }
            _ => {
                let own = self.tokens(universe, object, field);
                let (last, whole) = asked.split_last()?;
                let follows = |start: i64| {
                    let at = |nth: usize| start + nth as i64;
                    let there = |nth: usize, fits: &dyn Fn(&str) -> bool| {
                        own.iter().any(|(place, word)| *place == at(nth) && fits(word))
                    };
                    whole
                        .iter()
                        .enumerate()
                        .all(|(nth, word)| there(nth, &|own| own == word))
                        && there(whole.len(), &|own| own.starts_with(last.as_str()))
                };
                own.iter()
                    .any(|(place, _)| follows(*place))
                    .then(Interval::unknown)
            }
        };
        score.map(|score| score.times(f64::from(*weight)))
    }

    /// How often a text has a phrase, without overlaps: windows in which each word of the phrase has an occurrence of its
    /// own that is at most `slop` positions behind where the phrase would have it.
    fn phrases(
        &self,
        universe: &Universe,
        object: &Object,
        field: &str,
        asked: &[String],
        slop: i64,
    ) -> usize {
        let own = self.tokens(universe, object, field);
        let moved = own.iter().flat_map(|(place, word)| {
            let here = asked.iter().enumerate().filter(move |(_, asked)| *asked == word);
            here.map(move |(nth, _)| place - nth as i64)
        });
        let mut starts: Vec<i64> = moved.collect();
        starts.sort_unstable();
        starts.dedup();
        let (mut often, mut free) = (0, i64::MIN);
        for start in starts {
            if start >= free && fits(own, asked, start, slop) {
                often += 1;
                free = start + slop + 1;
            }
        }
        often
    }
}

/// Whether each word of a phrase finds an occurrence that no other word has: by augmenting paths, since trying all ways takes hours where
/// a word is repeated.
fn fits(own: &[Placed], asked: &[String], start: i64, slop: i64) -> bool {
    let mut holders = BTreeMap::new();
    let near = |nth: usize, (place, word): &Placed| {
        let from = start + nth as i64;
        *word == asked[nth] && (from..=from + slop).contains(place)
    };
    (0..asked.len()).all(|nth| finds(own, &near, nth, &mut BTreeSet::new(), &mut holders))
}

/// Whether the `nth` word of a phrase finds an occurrence, for which others may have to move.
fn finds(
    own: &[Placed],
    near: &impl Fn(usize, &Placed) -> bool,
    nth: usize,
    tried: &mut BTreeSet<i64>,
    holders: &mut BTreeMap<i64, usize>,
) -> bool {
    for placed in own.iter().filter(|placed| near(nth, placed)) {
        let place = placed.0;
        if !tried.insert(place) {
            continue;
        }
        let holder = holders.get(&place).copied();
        if holder.is_none_or(|holder| finds(own, near, holder, tried, holders)) {
            holders.insert(place, nth);
            return true;
        }
    }
    false
}

/// The sum of the scores of the words that were found, if they are enough.
fn enough(
    asked: &[String],
    found: &[Interval],
    operator: Operator,
    minimum: Option<u32>,
) -> Option<Interval> {
    let least = match operator {
        Operator::And => asked.len(),
        Operator::Or => minimum.unwrap_or(1) as usize,
    };
    (found.len() >= least.max(1)).then(|| sum(found).rounded())
}

fn placed<'t>(words: Words, texts: impl Iterator<Item = &'t str>) -> Vec<Placed> {
    let mut next = 0;
    let mut placed = Vec::new();
    for text in texts {
        for word in words.of(text) {
            placed.push((next, word));
            next += 1;
        }
        next += 1;
    }
    placed
}

fn place(universe: &Universe, field: &str) -> usize {
    universe
        .leaves
        .iter()
        .position(|leaf| leaf.path == field)
        .expect("a field of the schema")
}

fn address(object: &Object) -> usize {
    std::ptr::from_ref(object).addr()
}

fn edits(fuzziness: Fuzziness, word: &str) -> usize {
    match (fuzziness, word.chars().count()) {
        (Fuzziness::Edits(edits), _) => usize::from(edits),
        (Fuzziness::Auto, ..=2) => 0,
        (Fuzziness::Auto, ..=5) => 1,
        (Fuzziness::Auto, _) => 2,
    }
}

/// Whether a word is spelled much like another.
fn near(word: &str, other: &str, fuzziness: Fuzziness, prefix: u32) -> bool {
    let beginning: String = word.chars().take(prefix as usize).collect();
    let (word_chars, other_chars): (Vec<char>, Vec<char>) = (word.chars().collect(), other.chars().collect());
    other.starts_with(&beginning)
        && distance(&word_chars, &other_chars, edits(fuzziness, word)) <= edits(fuzziness, word)
}

/// The least number of characters to insert, remove, replace, or swap with their neighbours, so that a word becomes
/// another; no character is edited twice. Above `most`, some number above it.
fn distance(a: &[char], b: &[char], most: usize) -> usize {
    match (a, b) {
        ([], rest) | (rest, []) => rest.len(),
        ([x, a @ ..], [y, b @ ..]) if x == y => distance(a, b, most),
        _ if most == 0 => 1,
        ([x, a_rest @ ..], [y, b_rest @ ..]) => {
            let mut least = distance(a_rest, b_rest, most - 1)
                .min(distance(a, b_rest, most - 1))
                .min(distance(a_rest, b, most - 1));
            if let ([x2, a_rest @ ..], [y2, b_rest @ ..]) = (a_rest, b_rest)
                && (x, x2) == (y2, y)
            {
                least = least.min(distance(a_rest, b_rest, most - 1));
            }
            1 + least
        }
    }
}

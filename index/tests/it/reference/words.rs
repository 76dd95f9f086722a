//! The reference for full text: what a text has of the words and phrases of a query.
//!
//! Tokens of other analyzers than `single_word` are the analyzers' own, which have their own tests; how tokens make a match
//! is written down here again.

use souk_index::Analyzer;
use souk_index::analyze::{Phase, analyze, phrase_analyzer};

/// The tokens of a document's text.
pub(crate) fn tokens(analyzer: &Analyzer, text: &str) -> Vec<String> {
    placed(analyzer, Phase::Index, text)
        .into_iter()
        .map(|(_, token)| token)
        .collect()
}

/// What `single_word` makes of ASCII and Chinese: runs of ASCII letters and digits in lower case, and single other letters.
pub(crate) fn single_words(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut open = false;
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            if !open {
                tokens.push(String::new());
            }
            tokens
                .last_mut()
                .expect("a token is open")
                .push(c.to_ascii_lowercase());
            open = true;
        } else {
            open = false;
            if c.is_alphanumeric() {
                tokens.push(c.to_string());
            }
        }
    }
    tokens
}

/// The different tokens of a text with their positions.
fn placed(analyzer: &Analyzer, phase: Phase, text: &str) -> Vec<(usize, String)> {
    let simple = |c: char| c.is_ascii() || ('\u{4e00}'..'\u{9fff}').contains(&c);
    if *analyzer == Analyzer::single_word() && text.chars().all(simple) {
        let mut placed: Vec<_> = single_words(text).into_iter().enumerate().collect();
        placed.sort();
        return placed;
    }
    let tokens = analyze(analyzer, phase, text).into_iter();
    let mut placed: Vec<(usize, String)> = tokens.map(|token| (token.position, token.text)).collect();
    placed.sort();
    placed.dedup();
    placed
}

/// The words of a text as the fuzzy analyzer sees queries.
fn whole_words(analyzer: &Analyzer, text: &str) -> Vec<String> {
    placed(analyzer, Phase::Query, text)
        .into_iter()
        .map(|(_, word)| word)
        .collect()
}

/// Whether some texts have enough of the words of a query.
pub(crate) fn matches(
    analyzer: &Analyzer,
    query: &str,
    texts: &[&str],
    needed: impl FnOnce(usize) -> usize,
) -> bool {
    // A word that the query repeats counts as often.
    let wanted = whole_words(analyzer, query);
    let found = if let Analyzer::Fuzzy { min_chars, .. } = analyzer {
        // A word is found inside of others, unless it is shorter than every token.
        let there: Vec<String> = texts
            .iter()
            .flat_map(|text| whole_words(analyzer, text))
            .collect();
        let inside = |word: &&String| {
            word.chars().count() >= usize::from(*min_chars)
                && there.iter().any(|there| there.contains(word.as_str()))
        };
        wanted.iter().filter(inside).count()
    } else {
        let there: Vec<String> = texts.iter().flat_map(|text| tokens(analyzer, text)).collect();
        wanted.iter().filter(|word| there.contains(word)).count()
    };
    !wanted.is_empty() && found >= needed(wanted.len())
}

/// Whether one of some texts has the tokens of a phrase at their places, give or take `slop` in all.
pub(crate) fn has_phrase(analyzer: &Analyzer, phrase: &str, slop: u64, texts: &[&str]) -> bool {
    if let Analyzer::Fuzzy { min_chars, .. } = analyzer {
        // The last word may go on, the first one may have begun: a part of the words, one space between them.
        let wanted = whole_words(analyzer, phrase);
        let long_enough = |word: &String| word.chars().count() >= usize::from(*min_chars);
        assert!(
            slop == 0 || wanted.len() < 2,
            "slop on parts of words isn't asked for"
        );
        return !wanted.is_empty()
            && wanted.iter().all(long_enough)
            && texts
                .iter()
                .any(|text| whole_words(analyzer, text).join(" ").contains(&wanted.join(" ")));
    }
    let analyzer = &phrase_analyzer(analyzer).unwrap_or_else(|| analyzer.clone());
    let wanted = placed(analyzer, Phase::Query, phrase);
    !wanted.is_empty()
        && texts.iter().any(|text| {
            let there = placed(analyzer, Phase::Index, text);
            fits(&wanted, &there, slop, &mut Vec::new())
        })
}

/// Whether one of some texts has a phrase of which the last word may go on.
pub(crate) fn begins_phrase(analyzer: &Analyzer, phrase: &str, texts: &[&str]) -> bool {
    let analyzer = &phrase_analyzer(analyzer).unwrap_or_else(|| analyzer.clone());
    let wanted = placed(analyzer, Phase::Query, phrase);
    let Some(((last_place, last), before)) = wanted.split_last() else {
        return false;
    };
    texts.iter().any(|text| {
        let there = placed(analyzer, Phase::Index, text);
        there.iter().any(|(end, word)| {
            let stands = |(place, token): &(usize, String)| {
                let distance = last_place - place;
                there
                    .iter()
                    .any(|(at, word)| at + distance == *end && word == token)
            };
            word.starts_with(last.as_str()) && before.iter().all(stands)
        })
    })
}

/// Whether each token has an occurrence of its own such that the occurrences, moved back by the tokens' places, lie
/// within `slop`.
fn fits(
    wanted: &[(usize, String)],
    there: &[(usize, String)],
    slop: u64,
    chosen: &mut Vec<(usize, i64)>,
) -> bool {
    let Some(((place, token), rest)) = wanted.split_first() else {
        return true;
    };
    for (at, (position, word)) in there.iter().enumerate() {
        let moved = *position as i64 - *place as i64;
        let free = chosen.iter().all(|(taken, _)| *taken != at);
        let near = chosen.iter().all(|(_, other)| moved.abs_diff(*other) <= slop);
        if word == token && free && near {
            chosen.push((at, moved));
            let fitting = fits(rest, there, slop, chosen);
            chosen.pop();
            if fitting {
                return true;
            }
        }
    }
    false
}

//! Words and phrases of texts.

use souk_index::{Fuzziness, Operator, Query, Sort, limits};

use super::asked::{
    Bomb,
    Expected::{Done, Either, Refused, Slow},
    any_of, counted,
};

pub(super) fn phrase(text: &str, slop: u32) -> Query {
    Query::MatchPhrase {
        field: "text".to_owned(),
        text: text.to_owned(),
        slop,
        weight: 1.0,
    }
}

pub(super) fn phrase_prefix(text: &str) -> Query {
    Query::MatchPhrasePrefix {
        field: "text".to_owned(),
        text: text.to_owned(),
        weight: 1.0,
    }
}

pub(super) fn words_of(count: usize) -> String {
    let words: Vec<String> = (0..count).map(|nth| format!("w{nth}")).collect();
    words.join(" ")
}

/// Phrases, and words of the text of a million times the same.
pub(super) fn phrases() -> Vec<Bomb> {
    let same = "a ".repeat(limits::MAX_MATCH_TOKENS);
    let unscored = |query| counted(Query::all(vec![query])).sorted(vec![Sort::field("n", true)]);
    let slow = Either("DEADLINE");
    vec![
        (
            "a phrase of 1,024 times a word, slop 1",
            counted(phrase(&same, 1)),
            slow,
        ),
        ("the same, as a filter", unscored(phrase(&same, 1)), slow),
        (
            "the same, slop 256",
            counted(phrase(&same, limits::MAX_SLOP)),
            slow,
        ),
        (
            "the same, slop 257",
            counted(phrase(&same, limits::MAX_SLOP + 1)),
            Refused("MAX_SLOP"),
        ),
        ("the same without slop", counted(phrase(&same, 0)), slow),
        ("the same unfinished", counted(phrase_prefix(&same)), slow),
        (
            "a word 1,024 times",
            counted(Query::match_text("text", same.clone())),
            Done,
        ),
        (
            "1,025 times a word",
            counted(Query::match_text("text", format!("{same}a"))),
            Refused("MAX_MATCH_TOKENS"),
        ),
        (
            "100 phrases of common words",
            counted(any_of((0..100).map(|nth| phrase("b c a b", nth % 3)).collect())),
            slow,
        ),
        (
            "1,000 phrases of two times a word",
            counted(any_of((0..1_000).map(|_| phrase("a a", 0)).collect())),
            Refused("MAX_SEARCH_BYTES"),
        ),
        (
            "1,000 clauses of 1,024 times a word",
            counted(any_of(
                (0..1_000)
                    .map(|_| Query::match_text("text", "a ".repeat(limits::MAX_MATCH_TOKENS)))
                    .collect(),
            )),
            Slow("MAX_SEARCH_BYTES"),
        ),
        (
            "an unfinished common word",
            counted(phrase_prefix("w")),
            Either("MAX_EXPANSIONS"),
        ),
        (
            "a common phrase, unfinished",
            counted(phrase_prefix("a b c w")),
            Either("MAX_EXPANSIONS"),
        ),
        (
            "1,000 unfinished words",
            counted(any_of((0..1_000).map(|_| phrase_prefix("w1")).collect())),
            Either("MAX_SEARCH_BYTES"),
        ),
        (
            "1,000 prefixes of a word",
            counted(any_of((0..1_000).map(|_| Query::prefix("text", "w")).collect())),
            slow,
        ),
        (
            "the best of 1,000 clauses",
            counted(Query::DisMax {
                queries: (0..1_000)
                    .map(|nth| Query::match_text("text", format!("a w{nth}")))
                    .collect(),
                tie_breaker: 0.5,
                weight: 1.0,
            }),
            slow,
        ),
    ]
}

/// Words as far from those of documents as they may be.
fn near(field: &str, text: String) -> Query {
    Query::MatchFuzzy {
        field: field.to_owned(),
        text,
        operator: Operator::Or,
        minimum_should_match: None,
        fuzziness: Fuzziness::Edits(limits::MAX_FUZZY_EDITS),
        prefix_length: 0,
        weight: 1.0,
    }
}

pub(super) fn misspelled() -> Vec<Bomb> {
    let most = || words_of(limits::MAX_FUZZY_WORDS);
    let words = |operator, minimum_should_match, prefix_length| Query::MatchFuzzy {
        field: "text".to_owned(),
        text: most(),
        operator,
        minimum_should_match,
        fuzziness: Fuzziness::Edits(limits::MAX_FUZZY_EDITS),
        prefix_length,
        weight: 1.0,
    };
    let of_any_field = |nth: usize| match nth % 4 {
        0 => near("text", most()),
        1 => near("words", most()),
        2 => near("kind", most()),
        _ => Query::nested("parts", near("parts.title", most())),
    };
    let too_much = Slow("MAX_SEARCH_BYTES");
    vec![
        ("64 misspelled words", counted(near("text", most())), too_much),
        (
            "64 misspelled words that all have to match",
            counted(words(Operator::And, None, 0)),
            too_much,
        ),
        (
            "32 of 64 misspelled words that begin as they should",
            counted(words(Operator::Or, Some(32), 1)),
            too_much,
        ),
        (
            "65 misspelled words",
            counted(near("text", words_of(limits::MAX_FUZZY_WORDS + 1))),
            Refused("MAX_FUZZY_WORDS"),
        ),
        (
            "misspelled words of every field, 800 times",
            counted(any_of((0..800).map(of_any_field).collect())),
            too_much,
        ),
        (
            "a misspelled value of 1,300 different characters",
            counted(near(
                "words",
                (0..1_300)
                    .filter_map(|nth| char::from_u32(0x4e00 + nth))
                    .collect(),
            )),
            Done,
        ),
    ]
}

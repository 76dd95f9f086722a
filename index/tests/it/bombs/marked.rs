//! The highlights.

use souk_index::{Encoder, Fuzziness, Highlight, Highlighter, Object, Operator, Query, limits};

use super::asked::{
    Expected::{self, Done, Either},
    any_of,
};
use super::texts::{phrase, phrase_prefix, words_of};
use super::{SAME_WORDS, Work, schema};

/// As much of each as may be asked for.
fn most(field: &str) -> Highlight {
    Highlight {
        fragment_size: limits::MAX_FRAGMENT_CHARS,
        number_of_fragments: limits::MAX_HIGHLIGHT_FRAGMENTS,
        pre_tag: "<".repeat(limits::MAX_TAG_BYTES),
        post_tag: ">".repeat(limits::MAX_TAG_BYTES),
        encoder: Encoder::Html,
        ..Highlight::new(vec![field.to_owned()])
    }
}

fn marking(query: Query, highlight: Highlight, text: String) -> Work<'static> {
    let document = Object::new().with("text", text);
    Box::new(move |cancellation| {
        let highlighter = Highlighter::new(&schema(), &query, highlight.clone()).expect("a highlighter");
        highlighter
            .fragments(&document, cancellation)
            .map(|found| found.len())
    })
}

/// Name, highlight, and what has to come of it.
pub(super) fn all() -> Vec<(&'static str, Work<'static>, Expected)> {
    let short = || Highlight::new(vec!["text".to_owned()]);
    let same = || "a ".repeat(SAME_WORDS);
    let different = || {
        (0..limits::MAX_TEXT_BYTES / 8)
            .map(|nth| format!("w{nth:06x} "))
            .collect::<String>()
    };
    let repeated = || Query::match_text("text", "a ".repeat(limits::MAX_MATCH_TOKENS));
    let fuzzy = Query::MatchFuzzy {
        field: "text".to_owned(),
        text: words_of(limits::MAX_FUZZY_WORDS),
        operator: Operator::Or,
        minimum_should_match: None,
        fuzziness: Fuzziness::Edits(limits::MAX_FUZZY_EDITS),
        prefix_length: 0,
        weight: 1.0,
    };
    let too_much = Either("MAX_SEARCH_BYTES");
    let slow = Either("DEADLINE");
    vec![
        (
            "marks of a word 1,024 times in a text of it",
            marking(repeated(), short(), same()),
            Done,
        ),
        (
            "as many fragments as may be of them",
            marking(repeated(), most("text"), same()),
            too_much,
        ),
        (
            "a fragment for each of them",
            marking(
                repeated(),
                Highlight {
                    fragment_size: 1,
                    ..short()
                },
                same(),
            ),
            Done,
        ),
        (
            "marks of a phrase of 1,024 words",
            marking(phrase(&"a ".repeat(limits::MAX_MATCH_TOKENS), 0), short(), same()),
            slow,
        ),
        (
            "marks of the same with a slop",
            marking(phrase(&"a ".repeat(limits::MAX_MATCH_TOKENS), 1), short(), same()),
            slow,
        ),
        (
            "marks of the same unfinished",
            marking(
                phrase_prefix(&"a ".repeat(limits::MAX_MATCH_TOKENS)),
                short(),
                same(),
            ),
            slow,
        ),
        (
            "marks of 1,000 clauses",
            marking(any_of((0..1_000).map(|_| repeated()).collect()), short(), same()),
            slow,
        ),
        (
            "marks of misspelled words",
            marking(fuzzy, short(), different()),
            slow,
        ),
        (
            "marks of 1,000 patterns",
            marking(
                any_of(
                    (0..1_000)
                        .map(|nth| Query::wildcard("text", format!("*{nth}*f*")))
                        .collect(),
                ),
                short(),
                different(),
            ),
            slow,
        ),
        (
            "marks of all words",
            marking(Query::prefix("text", "w"), most("text"), different()),
            too_much,
        ),
    ]
}

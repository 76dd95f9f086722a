//! The highlights.

use std::ops::Bound;

use souk_index::{
    Analyzer, Encoder, Field, FieldValue, Fuzziness, Highlight, Highlighter, Object, Operator, Query,
    QueryValue, Schema, limits,
};

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
    marking_in(schema(), query, highlight, Object::new().with("text", text))
}

fn marking_in(schema: Schema, query: Query, highlight: Highlight, document: Object) -> Work<'static> {
    Box::new(move |cancellation| {
        let highlighter = Highlighter::new(&schema, &query, highlight.clone()).expect("a highlighter");
        highlighter
            .fragments(&document, cancellation)
            .map(|found| found.len())
    })
}

/// Marks in as many fields as a highlight may have, whose texts together are as long as one may be.
fn of_fields(highlight: Highlight) -> Work<'static> {
    let names = || (0..limits::MAX_HIGHLIGHT_FIELDS).map(|nth| format!("text{nth}"));
    let fields = names().map(|name| Field::text(name, Analyzer::single_word()));
    let schema = Schema::new(fields.collect()).expect("the schema is valid");
    let words = |name: String| Query::match_text(name, "a ".repeat(limits::MAX_MATCH_TOKENS));
    let text = "a ".repeat(SAME_WORDS / limits::MAX_HIGHLIGHT_FIELDS);
    let document = names().fold(Object::new(), |document, name| document.with(name, text.as_str()));
    let highlight = Highlight {
        fields: names().collect(),
        number_of_fragments: highlight
            .number_of_fragments
            .div_ceil(limits::MAX_HIGHLIGHT_FIELDS),
        ..highlight
    };
    marking_in(schema, any_of(names().map(words).collect()), highlight, document)
}

/// Marks in as many objects as are indexed.
fn of_objects(highlight: Highlight) -> Work<'static> {
    let words = SAME_WORDS / limits::MAX_NESTED_ROWS;
    let part = || Object::new().with("title", "a b ".repeat(words / 2));
    let parts: Vec<Object> = (0..limits::MAX_NESTED_ROWS).map(|_| part()).collect();
    let document = Object::new().with("parts", FieldValue::Objects(parts));
    let text = "a b ".repeat(limits::MAX_MATCH_TOKENS / 2);
    let query = Query::nested("parts", Query::match_text("parts.title", text));
    marking_in(schema(), query, highlight, document)
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
    let list = |nth: usize| {
        let words = (0..limits::MAX_TERMS).map(|own| format!("w{:06x}", nth * limits::MAX_TERMS + own));
        Query::terms("text", words.map(QueryValue::String))
    };
    let word = |nth: usize| Bound::Included(QueryValue::String(format!("w{nth:06x}")));
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
        (
            "marks of 1,000 words",
            marking(
                any_of(
                    (0..1_000)
                        .map(|nth| Query::term("text", format!("w{nth:06x}").as_str()))
                        .collect(),
                ),
                short(),
                different(),
            ),
            slow,
        ),
        (
            "marks of 100 times as many words as a list may have",
            marking(any_of((0..100).map(list).collect()), short(), different()),
            slow,
        ),
        (
            "marks of 1,000 ranges",
            marking(
                any_of(
                    (0..1_000)
                        .map(|nth| Query::range("text", word(nth), Bound::Unbounded))
                        .collect(),
                ),
                short(),
                different(),
            ),
            slow,
        ),
        (
            "marks of 1,000 suffixes",
            marking(
                any_of(
                    (0..1_000)
                        .map(|nth| Query::suffix("text", format!("{:x}", nth % 16)))
                        .collect(),
                ),
                short(),
                different(),
            ),
            slow,
        ),
        ("marks in 10 fields", of_fields(short()), Done),
        (
            "as many fragments as may be of 10 fields",
            of_fields(most("text")),
            too_much,
        ),
        (
            "marks in 256 objects",
            of_objects(Highlight::new(vec!["parts.title".to_owned()])),
            Done,
        ),
        (
            "as many fragments as may be of 256 objects",
            of_objects(most("parts.title")),
            too_much,
        ),
    ]
}

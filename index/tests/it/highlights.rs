//! Highlights against brute force: what is marked is what matches, and a fragment is a part of its text.

use std::collections::BTreeSet;
use std::ops::Bound;

use fastrand::Rng;
use souk_index::analyze::{Phase, analyze};
use souk_index::{
    Analyzer, Cancellation, Encoder, Field, Fragment, FragmentOrder, Fuzziness, Highlight, Highlighter,
    Index, IndexOptions, Object, Operator, Query, QueryValue, Schema,
};

use crate::{commit, keys, random_numbers, upsert};

const PIECES: &[&str] = &[
    "tea",
    "Teas",
    "house",
    "hous",
    "奶",
    "茶",
    "中国",
    "科学",
    "共和国",
    "é",
    "e\u{301}x",
    " ",
    " ",
    " ",
    "-",
    ", ",
    "<b>",
    "&",
    "𠀀",
    "ß",
    "9",
    "a1",
    "🦀",
    "of",
    "the",
];

fn text(rng: &mut Rng, pieces: usize) -> String {
    (0..rng.usize(..=pieces))
        .map(|_| PIECES[rng.usize(..PIECES.len())])
        .collect()
}

fn analyzers() -> Vec<Analyzer> {
    let fuzzy = |min_chars, max_chars, case_sensitive| Analyzer::Fuzzy {
        min_chars,
        max_chars,
        case_sensitive,
    };
    let split = Analyzer::Split {
        delimiter: Some("-".to_owned()),
        case_sensitive: false,
    };
    vec![
        Analyzer::single_word(),
        Analyzer::single_word().stemmed(),
        split,
        Analyzer::MinWord,
        Analyzer::MaxWord,
        Analyzer::MaxWord.stemmed(),
        fuzzy(1, 2, false),
        fuzzy(2, 4, true),
    ]
}

/// A query without clauses on the field.
fn leaf(rng: &mut Rng) -> Query {
    let field = || "text".to_owned();
    let wanted = text(rng, 3);
    let wanted = if wanted.is_empty() {
        "tea".to_owned()
    } else {
        wanted
    };
    let weight = 1.0;
    let or = rng.bool();
    let operator = if or { Operator::Or } else { Operator::And };
    let minimum_should_match = (or && rng.bool()).then(|| rng.u32(1..3));
    match rng.u8(..10) {
        0 => Query::term("text", wanted.to_lowercase().as_str()),
        1 => Query::terms("text", ["tea", "茶", wanted.as_str()]),
        2 => Query::prefix("text", wanted),
        3 => Query::suffix("text", wanted),
        4 => Query::wildcard("text", "?*e?"),
        5 => Query::range(
            "text",
            Bound::Included(QueryValue::from("f")),
            Bound::Excluded(QueryValue::from("科")),
        ),
        6 => Query::Match {
            field: field(),
            text: wanted,
            operator,
            minimum_should_match,
            weight,
        },
        7 => Query::MatchFuzzy {
            field: field(),
            text: wanted,
            operator,
            minimum_should_match,
            fuzziness: Fuzziness::Auto,
            prefix_length: rng.u32(..2),
            weight,
        },
        8 => Query::MatchPhrasePrefix {
            field: field(),
            text: wanted,
            weight,
        },
        _ => Query::MatchPhrase {
            field: field(),
            text: wanted,
            slop: rng.u32(..3),
            weight,
        },
    }
}

fn check(texts: &[String], fragments: &[Fragment], highlight: &Highlight) {
    assert!(fragments.len() <= highlight.number_of_fragments);
    let mut seen: BTreeSet<(usize, usize)> = BTreeSet::new();
    for fragment in fragments {
        let text = &texts[fragment.value];
        let part = text
            .get(fragment.range.clone())
            .expect("a fragment's ends are char boundaries");
        let plain = fragment.text.replace(['⟦', '⟧'], "");
        assert_eq!(plain, part, "without tags a fragment is a part of its text");
        assert!(!fragment.marks.is_empty() && fragment.score > 0.0);
        let mut tagged = String::new();
        let mut at = fragment.range.start;
        for mark in &fragment.marks {
            assert!(at <= mark.start && mark.start < mark.end && mark.end <= fragment.range.end);
            assert!(
                at == fragment.range.start || at < mark.start,
                "marks that touch are joined"
            );
            tagged += &format!("{}⟦{}⟧", &text[at..mark.start], &text[mark.clone()]);
            at = mark.end;
        }
        tagged += &text[at..fragment.range.end];
        assert_eq!(fragment.text, tagged);
        let longest = fragment
            .marks
            .iter()
            .map(|mark| text[mark.clone()].chars().count());
        assert!(part.chars().count() <= highlight.fragment_size.max(longest.max().unwrap_or_default()));
        for at in fragment.range.clone() {
            assert!(seen.insert((fragment.value, at)), "fragments don't overlap");
        }
    }
    if highlight.order == FragmentOrder::Text {
        assert!(fragments.is_sorted_by_key(|fragment| (fragment.value, fragment.range.start)));
    } else {
        assert!(fragments.is_sorted_by(|a, b| a.score >= b.score));
    }
}

/// Queries on single tokens: what they mark is the tokens of that form.
fn tokens_of(query: &Query, token: &str) -> Option<bool> {
    let value = |value: &QueryValue| matches!(value, QueryValue::String(text) if text == token);
    match query {
        Query::Term { value: wanted, .. } => Some(value(wanted)),
        Query::Terms { values, .. } => Some(values.iter().any(value)),
        Query::Prefix { value, .. } => Some(token.starts_with(value)),
        Query::Suffix { value, .. } => Some(token.ends_with(value)),
        Query::Range { .. } => Some(("f".."科").contains(&token)),
        Query::Wildcard { .. } => {
            let chars: Vec<char> = token.chars().collect();
            Some(chars.len() >= 3 && chars[chars.len() - 2] == 'e')
        }
        _ => None,
    }
}

#[test]
fn what_is_marked_is_what_matches() {
    let mut rng = random_numbers();
    let (mut marked, mut searched) = (0, 0);
    for analyzer in analyzers() {
        let schema = || Schema::new(vec![Field::text("text", analyzer.clone()).array()]).expect("valid");
        let index = Index::create_in_ram(schema(), IndexOptions::default()).expect("an index");
        let mut writer = index.writer().expect("a writer");
        let rows: Vec<Vec<String>> = (0..40)
            .map(|_| (0..rng.usize(1..4)).map(|_| text(&mut rng, 12)).collect())
            .collect();
        let document = |texts: &[String]| Object::new().with_all("text", texts.iter().map(String::as_str));
        let upserts = rows
            .iter()
            .enumerate()
            .map(|(nth, texts)| upsert(&format!("{nth:03}"), document(texts)));
        commit(&mut writer, upserts.collect(), 1);
        for _ in 0..60 {
            let query = leaf(&mut rng);
            let highlight = Highlight {
                pre_tag: "⟦".to_owned(),
                post_tag: "⟧".to_owned(),
                fragment_size: rng.usize(1..30),
                number_of_fragments: rng.usize(1..5),
                order: if rng.bool() {
                    FragmentOrder::Text
                } else {
                    FragmentOrder::Score
                },
                encoder: Encoder::Plain,
                ..Highlight::new(vec!["text".to_owned()])
            };
            let everything = Highlight {
                fragment_size: 10_000,
                number_of_fragments: 500,
                ..highlight.clone()
            };
            let found: BTreeSet<String> = keys(&index, query.clone()).into_iter().collect();
            let some = Highlighter::new(&schema(), &query, highlight.clone()).expect("a highlighter");
            let all = Highlighter::new(&schema(), &query, everything.clone()).expect("a highlighter");
            for (nth, texts) in rows.iter().enumerate() {
                let of = |highlighter: &Highlighter| {
                    let found = highlighter.fragments(&document(texts), &Cancellation::none());
                    let found = found.expect("not cancelled").into_iter();
                    found.flat_map(|(_, fragments)| fragments).collect::<Vec<_>>()
                };
                let (some, all) = (of(&some), of(&all));
                check(texts, &some, &highlight);
                check(texts, &all, &everything);
                searched += 1;
                marked += usize::from(!all.is_empty());
                assert_eq!(
                    !all.is_empty(),
                    found.contains(&format!("{nth:03}")),
                    "{analyzer:?} {query:?} {texts:?}"
                );
                assert_eq!(some.is_empty(), all.is_empty());
                // Byte by byte: what is marked lies in a token that matches, and the other way round.
                for (value, text) in texts.iter().enumerate() {
                    let tokens = analyze(&analyzer, Phase::Index, text);
                    let mut expected = vec![false; text.len()];
                    let mut decided = true;
                    for token in &tokens {
                        match tokens_of(&query, &token.text) {
                            Some(true) => expected[token.offset_from..token.offset_to].fill(true),
                            Some(false) => {}
                            None => decided = false,
                        }
                    }
                    let mut actual = vec![false; text.len()];
                    let here = all.iter().filter(|fragment| fragment.value == value);
                    for mark in here.flat_map(|fragment| &fragment.marks) {
                        actual[mark.clone()].fill(true);
                    }
                    assert!(
                        !decided || tokens.is_empty() || actual == expected,
                        "{query:?} {text:?}"
                    );
                }
            }
        }
    }
    println!("{searched} highlights, {marked} with marks");
    assert!(marked > searched / 20, "the queries find something");
}

//! Phrases with an unfinished last word and words that are misspelled, against brute force over the texts.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use souk_index::analyze::{Phase, Token, analyze};
use souk_index::limits::MAX_EXPANSIONS;
use souk_index::{
    Analyzer, Cancellation, Error, Field, Fuzziness, Index, IndexOptions, MisfitReason, Object, Operator,
    Query, Schema, SearchRequest, Sort,
};

use crate::{commit, find, keys, random_numbers, upsert};

const WORDS: &[&str] = &[
    "tea", "teas", "team", "tee", "eta", "house", "hours", "hose", "t", "te", "奶", "茶", "奶茶", "中国",
    "中华", "科学", "国", "shop", "shops", "shpo", "a1", "A1b",
];

#[test]
fn a_keyword_is_one_token_of_which_no_two_can_match() {
    let schema = Schema::new(vec![Field::keyword("kind")]).expect("the schema is valid");
    let index = Index::create_in_ram(schema, IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("the writer");
    let fields = Object::new().with("kind", "oolong tea");
    commit(&mut writer, vec![upsert("one", fields)], 1);
    for (minimum, found) in [(None, 1), (Some(1), 1), (Some(2), 0)] {
        let matched = Query::Match {
            field: "kind".to_owned(),
            text: "oolong tea".to_owned(),
            operator: Operator::Or,
            minimum_should_match: minimum,
            weight: 1.0,
        };
        assert_eq!(keys(&index, matched).len(), found, "{minimum:?}");
    }
}

fn text(rng: &mut Rng) -> String {
    let words = (0..rng.usize(1..7)).map(|_| WORDS[rng.usize(..WORDS.len())]);
    let words: Vec<_> = words.collect();
    words.join(if rng.u8(..3) == 0 { "" } else { " " })
}

fn indexed(analyzer: &Analyzer, texts: &[String], segments: usize) -> Index {
    let schema = Schema::new(vec![
        Field::text("text", analyzer.clone()).sub_field("raw", souk_index::FieldKind::Keyword),
    ]);
    let schema = schema.expect("the schema is valid");
    let index = Index::create_in_ram(schema, IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("a writer");
    for (segment, chunk) in texts.chunks(texts.len().div_ceil(segments).max(1)).enumerate() {
        let upserts = chunk.iter().enumerate().map(|(nth, text)| {
            let key = format!("{segment:02}-{nth:04}");
            upsert(&key, Object::new().with("text", text.as_str()))
        });
        commit(&mut writer, upserts.collect(), segment as u64 + 1);
    }
    index
}

/// The keys of the texts that pass, as [`indexed`] gives them.
fn passing(texts: &[String], segments: usize, passes: impl Fn(&str) -> bool) -> Vec<String> {
    let chunks = texts.chunks(texts.len().div_ceil(segments).max(1)).enumerate();
    let all = chunks.flat_map(|(segment, chunk)| {
        let named = chunk.iter().enumerate();
        named.map(move |(nth, text)| (format!("{segment:02}-{nth:04}"), text))
    });
    all.filter(|(_, text)| passes(text)).map(|(key, _)| key).collect()
}

fn begun(text: &str) -> Query {
    Query::MatchPhrasePrefix {
        field: "text".to_owned(),
        text: text.to_owned(),
        weight: 1.0,
    }
}

fn positions(tokens: &[Token]) -> BTreeMap<usize, BTreeSet<&str>> {
    let mut at: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
    for token in tokens {
        at.entry(token.position).or_default().insert(&token.text);
    }
    at
}

/// How often the phrase stands in the text.
fn occurrences(analyzer: &Analyzer, text: &str, phrase: &str) -> usize {
    let text = analyze(analyzer, Phase::Index, text);
    let phrase = analyze(analyzer, Phase::Query, phrase);
    let Some((last, whole)) = phrase.split_last() else {
        return 0;
    };
    let text = positions(&text);
    let starts = 0..=text.keys().copied().max().unwrap_or_default();
    let at = |position: usize| text.get(&position).cloned().unwrap_or_default();
    let stands = |start: &usize| {
        whole
            .iter()
            .all(|word| at(start + word.position).contains(word.text.as_str()))
            && at(start + last.position)
                .iter()
                .any(|word| word.starts_with(&last.text))
    };
    starts.filter(stands).count()
}

#[test]
fn phrases_with_a_prefix_are_found_as_by_brute_force() {
    let mut rng = random_numbers();
    let split = Analyzer::Split {
        delimiter: None,
        case_sensitive: true,
    };
    let analyzers = [
        Analyzer::single_word(),
        split,
        Analyzer::MinWord,
        Analyzer::MaxWord,
        Analyzer::MaxWord.stemmed(),
    ];
    for analyzer in &analyzers {
        // Phrases on dictionary words are looked up character by character.
        let of_phrases = match analyzer {
            Analyzer::MinWord | Analyzer::MaxWord => Analyzer::single_word(),
            Analyzer::Stemmed(_) => Analyzer::single_word().stemmed(),
            other => other.clone(),
        };
        let texts: Vec<String> = (0..120).map(|_| text(&mut rng)).collect();
        let index = indexed(analyzer, &texts, 3);
        for _ in 0..150 {
            let whole = text(&mut rng);
            let cut = rng.usize(1..=whole.chars().count());
            let phrase: String = whole.chars().take(cut).collect();
            let expected = passing(&texts, 3, |text| occurrences(&of_phrases, text, &phrase) > 0);
            assert_eq!(keys(&index, begun(&phrase)), expected, "{analyzer:?} {phrase:?}");
        }
    }
}

#[test]
fn a_keyword_begins_with_the_text() {
    let texts = ["tea house", "tea", "the tea house"].map(str::to_owned);
    let index = indexed(&Analyzer::single_word(), &texts, 1);
    let query = Query::MatchPhrasePrefix {
        field: "text.raw".to_owned(),
        text: "tea ho".to_owned(),
        weight: 1.0,
    };
    assert_eq!(keys(&index, query), ["00-0000"]);
}

/// BM25 as Lucene computes it for a phrase of several terms at a place: the sum of all terms' inverse document
/// frequencies, and each occurrence counts.
#[test]
fn phrases_with_a_prefix_score_like_lucenes() {
    let mut rng = random_numbers();
    let analyzer = Analyzer::single_word();
    let texts: Vec<String> = (0..60).map(|_| text(&mut rng)).collect();
    let index = indexed(&analyzer, &texts, 2);
    let tokens: Vec<Vec<String>> = texts
        .iter()
        .map(|text| {
            let tokens = analyze(&analyzer, Phase::Index, text).into_iter();
            tokens.map(|token| token.text).collect()
        })
        .collect();
    let count = texts.len() as f64;
    let average = tokens.iter().map(Vec::len).sum::<usize>() as f64 / count;
    let idf = |term: &str| {
        let with = tokens
            .iter()
            .filter(|tokens| tokens.iter().any(|token| token == term));
        let with = with.count() as f64;
        (1.0 + (count - with + 0.5) / (with + 0.5)).ln()
    };
    let vocabulary: BTreeSet<&String> = tokens.iter().flatten().collect();
    for phrase in ["tea te", "茶 t", "tea tea h", "te", "s", "奶茶"] {
        let words = analyze(&analyzer, Phase::Query, phrase);
        let (last, whole) = words.split_last().expect("words");
        let begun_by = |term: &&&String| term.starts_with(&last.text);
        let last: Vec<&&String> = vocabulary.iter().filter(begun_by).collect();
        let request = SearchRequest::new(begun(phrase))
            .sorted(vec![Sort::Score { ascending: false }])
            .page_size(1_000);
        let found = find(&index.searcher(), &request);
        for hit in found.hits {
            let key = String::from_utf8(hit.key).expect("text");
            let nth: usize = key[..2].parse::<usize>().expect("a number") * 30
                + key[3..].parse::<usize>().expect("a number");
            let length = tokens[nth].len() as f64;
            let saturated = |frequency: f64| frequency / (frequency + 1.2 * (0.25 + 0.75 * length / average));
            let expected = if whole.is_empty() {
                last.iter()
                    .map(|term| {
                        let frequency = tokens[nth]
                            .iter()
                            .filter(|token| token.as_str() == term.as_str())
                            .count();
                        idf(term) * saturated(frequency as f64)
                    })
                    .sum::<f64>()
            } else {
                let sum = whole.iter().map(|word| idf(&word.text)).sum::<f64>()
                    + last.iter().map(|term| idf(term)).sum::<f64>();
                sum * saturated(occurrences(&analyzer, &texts[nth], phrase) as f64)
            };
            let score = f64::from(hit.score.expect("a score"));
            assert!(
                (score - expected).abs() < 1e-4 * expected,
                "{phrase} {key}: {score} {expected}"
            );
        }
    }
}

/// By the definition: the words begin alike, or one of them is edited first.
fn within(a: &[char], b: &[char], edits: u8) -> bool {
    if let ([x, left @ ..], [y, right @ ..]) = (a, b)
        && x == y
        && within(left, right, edits)
    {
        return true;
    }
    if a == b || edits == 0 {
        return a == b;
    }
    let (left, right) = (a.get(1..), b.get(1..));
    let replaced = left
        .zip(right)
        .is_some_and(|(left, right)| within(left, right, edits - 1));
    let removed = left.is_some_and(|left| within(left, b, edits - 1));
    let added = right.is_some_and(|right| within(a, right, edits - 1));
    let swapped = match (a, b) {
        ([x, x2, left @ ..], [y, y2, right @ ..]) => (x, x2) == (y2, y) && within(left, right, edits - 1),
        _ => false,
    };
    replaced || removed || added || swapped
}

#[test]
fn misspelled_words_are_found_as_by_brute_force() {
    let mut rng = random_numbers();
    for analyzer in [Analyzer::single_word(), Analyzer::MaxWord] {
        let texts: Vec<String> = (0..100).map(|_| text(&mut rng)).collect();
        let index = indexed(&analyzer, &texts, 3);
        for _ in 0..150 {
            let wanted = text(&mut rng);
            let fuzziness = match rng.u8(..4) {
                3 => Fuzziness::Auto,
                edits => Fuzziness::Edits(edits),
            };
            let (and, prefix_length) = (rng.bool(), rng.u32(..3));
            let minimum = (!and && rng.bool()).then(|| rng.u32(1..3));
            let query = Query::MatchFuzzy {
                field: "text".to_owned(),
                text: wanted.clone(),
                operator: if and { Operator::And } else { Operator::Or },
                minimum_should_match: minimum,
                fuzziness,
                prefix_length,
                weight: 1.0,
            };
            let words = analyze(&analyzer, Phase::Query, &wanted).into_iter();
            let words: Vec<String> = words.map(|token| token.text).collect();
            let near = |word: &str, token: &str| {
                let (word_chars, token): (Vec<char>, Vec<char>) =
                    (word.chars().collect(), token.chars().collect());
                let common = word_chars.len().min(prefix_length as usize);
                token.get(..common) == word_chars.get(..common)
                    && within(&word_chars, &token, fuzziness.edits(word))
            };
            let expected = passing(&texts, 3, |text| {
                let tokens = analyze(&analyzer, Phase::Index, text);
                let there = |word: &&String| tokens.iter().any(|token| near(word, &token.text));
                let found = words.iter().filter(there).count();
                let needed = if and {
                    words.len()
                } else {
                    minimum.unwrap_or(1) as usize
                };
                found >= needed.max(1)
            });
            assert_eq!(keys(&index, query.clone()), expected, "{analyzer:?} {query:?}");
            // The same by score, the nearest first where a word is alone.
            let request = SearchRequest::new(query).page_size(1_000);
            let mut scored: Vec<_> = find(&index.searcher(), &request)
                .hits
                .into_iter()
                .map(|hit| String::from_utf8(hit.key).expect("text"))
                .collect();
            scored.sort();
            assert_eq!(scored, expected);
        }
    }
}

#[test]
fn the_right_spelling_scores_most() {
    let texts = ["shpo", "shop", "shops", "ship", "cheap"].map(str::to_owned);
    let index = indexed(&Analyzer::single_word(), &texts, 2);
    let query = Query::MatchFuzzy {
        field: "text".to_owned(),
        text: "shop".to_owned(),
        operator: Operator::Or,
        minimum_should_match: None,
        fuzziness: Fuzziness::Edits(1),
        prefix_length: 1,
        weight: 1.0,
    };
    let found = find(&index.searcher(), &SearchRequest::new(query));
    let keys: Vec<_> = found.hits.iter().map(|hit| hit.key.as_slice()).collect();
    assert_eq!(keys, [b"00-0001", b"00-0000", b"00-0002", b"01-0000"]);
    let scores: Vec<_> = found.hits.iter().filter_map(|hit| hit.score).collect();
    assert!((scores[0] / scores[1] - 2.0).abs() < 1e-5, "{scores:?}");
}

#[test]
fn a_word_that_stands_for_too_many_terms_is_refused() {
    let texts: Vec<String> = (0..=MAX_EXPANSIONS).map(|nth| format!("t{nth} u")).collect();
    let index = indexed(&Analyzer::single_word(), &texts, 2);
    for phrase in ["t", "u t"] {
        let request = SearchRequest::new(begun(phrase));
        match index.searcher().search(&request, &Cancellation::none()) {
            Err(Error::LimitExceeded { path, limit, .. }) => assert_eq!(
                (path.as_str(), limit),
                ("query.match_phrase_prefix", "MAX_EXPANSIONS")
            ),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(keys(&index, begun("t1234")).len(), 1);
}

#[test]
fn tokens_that_are_too_long_are_listed_and_the_rest_is_found() {
    let text = |bytes: usize| format!("before {} after", "x".repeat(bytes));
    let delimited = Analyzer::Split {
        delimiter: Some(",".to_owned()),
        case_sensitive: false,
    };
    // In lower case it takes three bytes in place of two.
    let grown = format!("before {} after", "\u{23a}".repeat(22_000));
    let two = format!("{0} before {0} after", "x".repeat(65_531));
    for (analyzer, text, long) in [
        (Analyzer::single_word(), text(65_530), 0),
        (Analyzer::single_word(), text(65_531), 1),
        (Analyzer::single_word(), two, 2),
        (Analyzer::single_word(), grown, 1),
        (Analyzer::MaxWord, text(70_000), 1),
        (Analyzer::MinWord, text(70_000), 1),
        (Analyzer::single_word().stemmed(), text(70_000), 1),
        (delimited, format!("before,{},after", "x ".repeat(40_000)), 1),
    ] {
        let index = indexed(&analyzer, &[text], 1);
        let misfits = index.misfits();
        let listed: Vec<_> = misfits
            .recent
            .iter()
            .filter(|misfit| misfit.field == "text")
            .map(|misfit| (misfit.key.as_slice(), misfit.reason))
            .collect();
        assert_eq!(
            listed,
            vec![(&b"00-0000"[..], MisfitReason::TooLong); long],
            "{analyzer:?}"
        );
        for word in ["before", "after"] {
            let found = keys(&index, Query::match_text("text", word));
            assert_eq!(found, ["00-0000"], "{analyzer:?} {word}");
        }
    }
}

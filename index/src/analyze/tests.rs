use tantivy::tokenizer::TokenizerManager;

use super::{Phase, analyze, register, tokenizer_name};
use crate::schema::Analyzer;

const ANTHEM: &str = "中华人民共和国-国歌";

fn single(case_sensitive: bool, delimit_word: bool) -> Analyzer {
    Analyzer::SingleWord {
        case_sensitive,
        delimit_word,
    }
}

fn split(delimiter: &str) -> Analyzer {
    Analyzer::Split {
        delimiter: Some(delimiter.to_owned()),
        case_sensitive: false,
    }
}

fn fuzzy(min_chars: u8, max_chars: u8) -> Analyzer {
    Analyzer::Fuzzy {
        min_chars,
        max_chars,
        case_sensitive: false,
    }
}

fn white_space(case_sensitive: bool) -> Analyzer {
    Analyzer::Split {
        delimiter: None,
        case_sensitive,
    }
}

fn all() -> Vec<Analyzer> {
    vec![
        single(false, false),
        single(false, true),
        single(true, false),
        white_space(false),
        split("-"),
        split("国"),
        Analyzer::MinWord,
        Analyzer::MaxWord,
        fuzzy(1, 3),
        fuzzy(2, 7),
        white_space(true),
        Analyzer::Fuzzy {
            min_chars: 1,
            max_chars: 2,
            case_sensitive: true,
        },
        single(false, true).stemmed(),
        white_space(false).stemmed(),
        Analyzer::MinWord.stemmed(),
        Analyzer::MaxWord.stemmed(),
    ]
}

fn words(analyzer: &Analyzer, text: &str) -> String {
    texts(analyzer, Phase::Index, text)
}

fn texts(analyzer: &Analyzer, phase: Phase, text: &str) -> String {
    let tokens: Vec<String> = analyze(analyzer, phase, text)
        .into_iter()
        .map(|token| token.text)
        .collect();
    tokens.join(" ")
}

fn positions(analyzer: &Analyzer, phase: Phase, text: &str) -> Vec<usize> {
    analyze(analyzer, phase, text)
        .into_iter()
        .map(|token| token.position)
        .collect()
}

#[test]
fn the_worked_example_of_each_analyzer() {
    assert_eq!(words(&single(false, false), ANTHEM), "中 华 人 民 共 和 国 国 歌");
    assert_eq!(words(&split("-"), ANTHEM), "中华人民共和国 国歌");
    assert_eq!(words(&Analyzer::MinWord, ANTHEM), "中华人民共和国 国歌");
    assert_eq!(
        words(&Analyzer::MaxWord, ANTHEM),
        "中华人民共和国 中华人民 中华 华人 人民共和国 人民 共和国 共和 国 国歌"
    );
    assert_eq!(
        words(&fuzzy(1, 3), ANTHEM),
        "中 中华 中华人 华 华人 华人民 人 人民 人民共 民 民共 民共和 共 共和 共和国 和 和国 国 国 国歌 歌"
    );
    assert_eq!(texts(&fuzzy(1, 3), Phase::Query, ANTHEM), "中华人民共和国 国歌");
}

/// What is longer than `max_chars` is found by its parts of that length, as Tablestore advises its users to do by hand.
#[test]
fn a_fuzzy_query_word_stays_whole() {
    assert_eq!(texts(&fuzzy(1, 3), Phase::Query, "Hang-Zhou 6"), "hang zhou 6");
    assert_eq!(
        texts(&fuzzy(1, 7), Phase::Query, "中华人民共和国国歌"),
        "中华人民共和国国歌"
    );
}

#[test]
fn pear_blossom_tea() {
    assert_eq!(words(&Analyzer::MinWord, "梨花茶"), "梨 花茶");
    assert_eq!(words(&Analyzer::MaxWord, "梨花茶"), "梨花 花茶");
}

#[test]
fn latin_words_are_lowered() {
    for analyzer in [
        single(false, false),
        white_space(false),
        Analyzer::MinWord,
        Analyzer::MaxWord,
    ] {
        assert_eq!(words(&analyzer, "Hang Zhou"), "hang zhou", "{analyzer:?}");
    }
    assert_eq!(words(&single(true, false), "Hang Zhou"), "Hang Zhou");
}

#[test]
fn letters_and_digits_stay_together_unless_delimited() {
    assert_eq!(words(&single(false, false), "iPhone6 手机"), "iphone6 手 机");
    assert_eq!(words(&single(false, true), "iPhone6 手机"), "iphone 6 手 机");
    assert_eq!(words(&single(true, true), "a1b22"), "a 1 b 22");
}

#[test]
fn upper_case_is_kept_where_the_analyzer_says_so() {
    assert_eq!(words(&white_space(true), "Hang Zhou"), "Hang Zhou");
    let fuzzy = Analyzer::Fuzzy {
        min_chars: 2,
        max_chars: 3,
        case_sensitive: true,
    };
    assert_eq!(words(&fuzzy, "TeA"), "Te TeA eA");
    assert_eq!(texts(&fuzzy, Phase::Query, "TeA b"), "TeA b");
}

#[test]
fn english_words_are_cut_to_their_stems() {
    let stemmed = Analyzer::single_word().stemmed();
    assert_eq!(words(&stemmed, "Running runs RUN"), "run run run");
    assert_eq!(words(&stemmed, "coffee shops, cafés"), "coffe shop cafés");
    // Words with digits, and those of other scripts, stay as they are.
    assert_eq!(words(&stemmed, "v2s 奶茶店s"), "v2s 奶 茶 店 s");
    assert_eq!(
        words(&Analyzer::MaxWord.stemmed(), "梨花茶 houses"),
        "梨花 花茶 hous"
    );
    let tokens = analyze(&stemmed, Phase::Index, "two Houses");
    let spelled: Vec<_> = tokens
        .iter()
        .map(|token| (token.offset_from, token.offset_to))
        .collect();
    assert_eq!(spelled, [(0, 3), (4, 10)], "a stem stands for the whole word");
}

#[test]
fn an_accent_written_apart_stays_in_its_word() {
    assert_eq!(words(&single(false, false), "cafe\u{301}s x"), "cafe\u{301}s x");
    assert_eq!(words(&single(false, true), "e\u{301}1"), "e\u{301} 1");
}

#[test]
fn split_keeps_everything_but_the_delimiter() {
    assert_eq!(words(&split("#"), "a b##C,d#"), "a b c,d");
    assert_eq!(words(&white_space(false), " a-b\t\u{3000}c "), "a-b c");
    assert_eq!(words(&split("--"), "x-y--z"), "x-y z");
}

#[test]
fn min_word_has_no_overlaps_and_no_gaps() {
    for text in [
        "研究生命起源",
        "我们中出了一个叛徒",
        "南京市长江大桥",
        "马铃薯炖牛肉",
        "龘靐齉",
    ] {
        let tokens = analyze(&Analyzer::MinWord, Phase::Index, text);
        let joined: String = tokens.iter().map(|token| token.text.as_str()).collect();
        assert_eq!(joined, text);
        assert!(
            tokens.iter().enumerate().all(|(at, token)| token.position == at),
            "{tokens:?}"
        );
    }
    assert_eq!(words(&Analyzer::MinWord, "研究生命起源"), "研究 生命 起源");
}

#[test]
fn max_word_covers_every_character() {
    for text in [
        "研究生命起源",
        "我们中出了一个叛徒",
        "南京市长江大桥",
        "马铃薯",
        "龘靐齉",
    ] {
        let tokens = analyze(&Analyzer::MaxWord, Phase::Index, text);
        for (at, _) in text.char_indices() {
            assert!(
                tokens
                    .iter()
                    .any(|token| token.offset_from <= at && at < token.offset_to),
                "{text} at {at}: {tokens:?}"
            );
        }
    }
}

#[test]
fn positions_serve_phrases() {
    assert_eq!(
        positions(&single(false, false), Phase::Index, "a, 中b"),
        [0, 1, 2]
    );
    assert_eq!(
        positions(&Analyzer::MaxWord, Phase::Index, "ab-梨花茶 c"),
        [0, 1, 2, 4]
    );
    assert_eq!(positions(&fuzzy(2, 2), Phase::Index, "abc -- de"), [0, 2, 7]);
    assert_eq!(positions(&fuzzy(2, 2), Phase::Query, "abc -- de"), [0, 7]);
}

#[test]
fn fuzzy_cuts_the_text_after_its_limit() {
    let text = format!("{}终", "字".repeat(super::MAX_FUZZY_CHARS));
    let tokens = analyze(&fuzzy(1, 1), Phase::Index, &text);
    assert_eq!(tokens.len(), super::MAX_FUZZY_CHARS);
    assert!(tokens.iter().all(|token| token.text == "字"));
}

#[test]
fn fuzzy_takes_no_shorter_and_no_longer_runs() {
    assert_eq!(words(&fuzzy(2, 3), "abcd e"), "ab abc bc bcd cd");
    assert_eq!(words(&fuzzy(3, 3), "ab"), "");
    assert_eq!(words(&fuzzy(1, 3), "ΟΔΟΣ"), "ο οδ οδο δ δο δοσ ο οσ σ");
}

#[test]
fn a_long_run_of_han_is_cut_and_loses_nothing() {
    let text = "国歌".repeat(super::script::MAX_HAN_RUN);
    for analyzer in [Analyzer::MinWord, Analyzer::MaxWord] {
        let tokens = analyze(&analyzer, Phase::Index, &text);
        assert_eq!(tokens.len(), super::script::MAX_HAN_RUN, "{analyzer:?}");
        assert!(tokens.iter().all(|token| token.text == "国歌"));
    }
}

#[test]
fn every_analyzer_stands_any_text() {
    let mut random = souk_seeds::random();
    let alphabet: Vec<char> = "aZ9 \t-.,中华人民共和国歌梨花茶かナー한국\u{301}🦀İßΣ\u{0}_é々〆〇龘𠀀"
        .chars()
        .collect();
    for _ in 0..2_000 {
        let text: String = (0..random.usize(..24))
            .map(|_| alphabet[random.usize(..alphabet.len())])
            .collect();
        for analyzer in all() {
            for phase in [Phase::Index, Phase::Query] {
                let tokens = analyze(&analyzer, phase, &text);
                for token in &tokens {
                    let spelled = text
                        .get(token.offset_from..token.offset_to)
                        .expect("offsets are char boundaries");
                    let lowered: String = spelled.chars().flat_map(char::to_lowercase).collect();
                    let stems = matches!(analyzer, Analyzer::Stemmed(_)) && lowered.is_ascii();
                    assert!(
                        token.text == spelled || token.text == lowered || stems,
                        "{analyzer:?} {text:?} {token:?}"
                    );
                    assert!(!spelled.is_empty() && token.position_length > 0);
                }
                assert!(
                    tokens.windows(2).all(|pair| pair[0].position <= pair[1].position),
                    "{analyzer:?} {text:?} {tokens:?}"
                );
            }
        }
    }
}

#[test]
fn names_tell_parameters_apart_and_are_registered() {
    let manager = TokenizerManager::new();
    let mut names = std::collections::HashSet::new();
    for analyzer in all() {
        register(&manager, &analyzer);
        let name = tokenizer_name(&analyzer);
        assert!(manager.get(&name).is_some());
        assert!(names.insert(name), "{analyzer:?}");
    }
    assert_eq!(tokenizer_name(&split("#")), "souk.split.23");
    assert_eq!(tokenizer_name(&fuzzy(1, 3)), "souk.fuzzy2.1.3");
    assert_eq!(tokenizer_name(&white_space(true)), "souk.split.case");
    assert_eq!(
        tokenizer_name(&Analyzer::MaxWord.stemmed()),
        "souk.max_word.english"
    );
}

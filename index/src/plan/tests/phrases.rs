use super::model::Model;
use super::*;
use crate::document::Object;
use crate::request::Operator;

fn model() -> Model {
    let texts = [
        "",
        "quick brown fox",
        "brown quick fox",
        "quick red brown fox",
        "中华人民共和国国歌",
        "fox",
        "the the who",
        "who the",
    ];
    let document = |text: &&str| {
        let object = Object::default().with("serial", 0);
        if text.is_empty() {
            object
        } else {
            object.with("name", *text)
        }
    };
    Model::new(texts.iter().map(document).collect(), 2, usize::MAX)
}

fn phrase(model: &Model, field: &str, text: &str, slop: u32) -> Vec<usize> {
    let query = Query::MatchPhrase {
        field: field.to_owned(),
        text: text.to_owned(),
        slop,
        weight: 1.0,
    };
    let found = model.found(&query);
    let scored = model.scored(&query);
    assert!(scored.iter().all(|(_, score)| *score > 0.0), "{text}: {scored:?}");
    assert_eq!(
        scored.into_iter().map(|(number, _)| number).collect::<Vec<_>>(),
        found,
        "{text}"
    );
    // The same beside another clause, which makes the phrase skip.
    let beside = Query::all(vec![query.clone(), Query::term("serial", 0)]);
    assert_eq!(model.found(&beside), found, "{text}");
    let without = Query::not(query);
    assert_eq!(model.found(&without).len() + found.len(), 7, "{text}");
    found
}

#[test]
fn slop_is_the_number_of_positions_in_all() {
    let model = model();
    assert_eq!(phrase(&model, "name", "quick brown fox", 0), [1]);
    assert_eq!(phrase(&model, "name", "quick brown fox", 1), [1, 3]);
    assert_eq!(phrase(&model, "name", "quick brown fox", 2), [1, 2, 3]);
    assert_eq!(phrase(&model, "name", "quick fox", 1), [1, 2]);
    assert_eq!(phrase(&model, "name", "fox quick", 256), [1, 2, 3]);
    // Each token of the phrase needs an occurrence of its own.
    assert_eq!(phrase(&model, "name", "the the", 256), [6]);
}

#[test]
fn a_phrase_of_one_token_is_the_token() {
    let model = model();
    for slop in [0, 3] {
        assert_eq!(phrase(&model, "name", "FOX!", slop), [1, 2, 3, 5]);
    }
    assert_eq!(phrase(&model, "name", "!?", 0), [0_usize; 0]);
    assert_eq!(phrase(&model, "name.keyword", "fox", 0), [5]);
    assert_eq!(phrase(&model, "name.keyword", "quick", 0), [0_usize; 0]);
}

#[test]
fn overlapping_words_and_parts_of_words() {
    let model = model();
    for text in ["人民共和国", "中华人民共和国国歌", "国歌"] {
        assert_eq!(phrase(&model, "name.words", text, 0), [4], "{text}");
        assert_eq!(phrase(&model, "name.words", text, 1), [4], "{text}");
    }
    // Longer than any token of the fuzzy analyzer, and across its parts.
    for text in ["华人民共和", "中华人民共和国国歌", "民"] {
        assert_eq!(phrase(&model, "name.fuzzy", text, 0), [4], "{text}");
    }
    assert_eq!(phrase(&model, "name.fuzzy", "华人民和国", 0), [0_usize; 0]);
    assert_eq!(phrase(&model, "name.fuzzy", "rown fo", 0), [1, 3]);
    assert_eq!(phrase(&model, "name.fuzzy", "rown uic", 0), [0_usize; 0]);
    let any = |text: &str| {
        model.found(&Query::Match {
            field: "name.fuzzy".to_owned(),
            text: text.to_owned(),
            operator: Operator::And,
            minimum_should_match: None,
            weight: 1.0,
        })
    };
    assert_eq!(any("rown QUICK"), [1, 2, 3]);
}

/// A document of each name, behind one that is none.
fn names(documents: &[&str]) -> Model {
    let object = |text: &&str| Object::default().with("serial", 0).with("name", *text);
    Model::new(
        ["deleted"].iter().chain(documents).map(object).collect(),
        2,
        usize::MAX,
    )
}

#[test]
fn a_letter_does_not_stand_for_a_separator() {
    let model = names(&[
        "奶茶店é奶茶店",
        "奶茶店 奶茶店",
        "奶茶店--奶茶店",
        "茶店é é奶茶店",
        "店é 奶茶店",
    ]);
    let found = |text: &str, slop| {
        model.found(&Query::MatchPhrase {
            field: "name.fuzzy".to_owned(),
            text: text.to_owned(),
            slop,
            weight: 1.0,
        })
    };
    assert_eq!(found("店 奶茶店", 0), [2, 3]);
    assert_eq!(found("奶茶店é奶茶店", 0), [1]);
    // A character more is one of slop; so is a separator more, which is half of one.
    assert_eq!(found("店 奶茶店", 1), [1, 2, 3, 5]);
    assert_eq!(found("店 奶茶店", 2), [1, 2, 3, 4, 5]);
}

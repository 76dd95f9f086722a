use super::*;
use crate::request::Operator;

fn schema() -> Schema {
    let fuzzy = Analyzer::Fuzzy {
        min_chars: 1,
        max_chars: 3,
        case_sensitive: false,
    };
    let schema = Schema::new(vec![
        Field::text("text", Analyzer::single_word())
            .array()
            .sub_field("words", FieldKind::Text(Analyzer::MaxWord))
            .sub_field("stems", FieldKind::Text(Analyzer::single_word().stemmed()))
            .sub_field("parts", FieldKind::Text(fuzzy))
            .sub_field("keyword", FieldKind::Keyword),
        Field::nested("items", vec![Field::text("title", Analyzer::single_word())]),
    ]);
    schema.expect("the schema is valid")
}

fn shown(query: &Query, highlight: Highlight, texts: &[&str]) -> Vec<String> {
    let document = Object::new().with_all("text", texts.iter().copied());
    let highlighter = Highlighter::new(&schema(), query, highlight).expect("a highlighter");
    let found = highlighter.fragments(&document, &Cancellation::none());
    let found = found
        .expect("not cancelled")
        .into_iter()
        .flat_map(|(_, found)| found);
    found.map(|fragment| fragment.text).collect()
}

fn whole(field: &str, query: &Query, text: &str) -> String {
    let highlight = Highlight {
        fragment_size: 1_000,
        ..Highlight::new(vec![field.to_owned()])
    };
    shown(query, highlight, &[text]).concat()
}

#[test]
fn words_are_marked_where_they_stand() {
    let tea = Query::match_text("text", "tea SHOP");
    assert_eq!(
        whole("text", &tea, "A Tea-shop, no teashop."),
        "A <em>Tea</em>-<em>shop</em>, no teashop."
    );
    assert_eq!(whole("text", &tea, "coffee"), "");
    assert_eq!(
        whole("text.words", &tea, "tea"),
        "",
        "clauses on the field itself"
    );
    let chinese = Query::match_text("text.words", "人民");
    assert_eq!(
        whole("text.words", &chinese, "中华人民共和国"),
        "中华<em>人民</em>共和国"
    );
    let stems = Query::match_text("text.stems", "running");
    assert_eq!(
        whole("text.stems", &stems, "he Runs, ran"),
        "he <em>Runs</em>, ran"
    );
    let parts = Query::match_text("text.parts", "rown");
    assert_eq!(
        whole("text.parts", &parts, "brown crown"),
        "b<em>rown</em> c<em>rown</em>"
    );
}

#[test]
fn only_real_phrases_are_marked() {
    let phrase = Query::match_phrase("text", "red fox");
    assert_eq!(
        whole("text", &phrase, "fox red fox red"),
        "fox <em>red</em> <em>fox</em> red"
    );
    let apart = Query::MatchPhrase {
        field: "text".to_owned(),
        text: "fox red".to_owned(),
        slop: 2,
        weight: 1.0,
    };
    assert_eq!(
        whole("text", &apart, "red fox - a b c red"),
        "<em>red</em> <em>fox</em> - a b c red"
    );
    let begun = Query::MatchPhrasePrefix {
        field: "text".to_owned(),
        text: "red fo".to_owned(),
        weight: 1.0,
    };
    assert_eq!(
        whole("text", &begun, "fog, red fort"),
        "fog, <em>red</em> <em>fort</em>"
    );
    // Words of the dictionary don't matter to phrases: 国科 is none of 中国科学.
    let inside = Query::match_phrase("text.words", "国科");
    assert_eq!(whole("text.words", &inside, "中国科学"), "中<em>国科</em>学");
}

#[test]
fn what_must_not_match_is_not_marked() {
    let query = Query::Bool {
        must: vec![Query::match_text("text", "tea")],
        filter: vec![Query::prefix("text", "ho")],
        should: vec![Query::ConstScore {
            filter: Box::new(Query::wildcard("text", "*w?")),
            weight: 1.0,
        }],
        must_not: vec![Query::term("text", "milk")],
        minimum_should_match: None,
    };
    assert_eq!(
        whole("text", &query, "milk tea house Two"),
        "milk <em>tea</em> <em>house</em> <em>Two</em>"
    );
    let all = Query::Match {
        field: "text".to_owned(),
        text: "tea house".to_owned(),
        operator: Operator::And,
        minimum_should_match: None,
        weight: 1.0,
    };
    assert_eq!(whole("text", &all, "tea room"), "", "the clause doesn't match");
}

#[test]
fn a_word_that_is_asked_for_twice_counts_twice() {
    // As searches count: found by a random comparison with them.
    let both = Query::Match {
        field: "text".to_owned(),
        text: "tea 9 tea".to_owned(),
        operator: Operator::Or,
        minimum_should_match: Some(2),
        weight: 1.0,
    };
    let near = Query::MatchFuzzy {
        field: "text".to_owned(),
        text: "tea 9 tea".to_owned(),
        operator: Operator::Or,
        minimum_should_match: Some(2),
        fuzziness: crate::request::Fuzziness::Auto,
        prefix_length: 1,
        weight: 1.0,
    };
    for query in [both, near] {
        assert_eq!(whole("text", &query, "milk tea"), "milk <em>tea</em>");
        assert_eq!(whole("text", &query, "milk 9"), "");
    }
}

#[test]
fn long_texts_are_cut_at_words() {
    let text = format!("{}needle {}", "hay stack ".repeat(30), "straw ".repeat(40));
    let query = Query::match_text("text", "needle");
    let highlight = Highlight {
        fragment_size: 40,
        ..Highlight::new(vec!["text".to_owned()])
    };
    let found = shown(&query, highlight, &[&text]);
    assert_eq!(found, ["stack hay stack <em>needle</em> straw straw"]);
}

#[test]
fn the_best_fragments_are_taken_and_ordered() {
    let text = format!("tea {0} tea shop {0} tea tea {0}", "x ".repeat(60));
    let query = Query::match_text("text", "tea shop");
    let of = |number_of_fragments, order| {
        let highlight = Highlight {
            fragment_size: 12,
            number_of_fragments,
            order,
            pre_tag: "[".to_owned(),
            post_tag: "]".to_owned(),
            ..Highlight::new(vec!["text".to_owned()])
        };
        shown(&query, highlight, &[&text, "a shop"])
    };
    assert_eq!(of(1, FragmentOrder::Text), ["[tea] [shop] x"]);
    let best = of(2, FragmentOrder::Score);
    assert_eq!(best, ["[tea] [shop] x", "x  [tea] [tea] x"]);
    let all = ["[tea] x x x x", "[tea] [shop] x", "x  [tea] [tea] x", "a [shop]"];
    assert_eq!(of(9, FragmentOrder::Text), all);
}

#[test]
fn html_is_written_as_entities() {
    let highlight = Highlight {
        encoder: Encoder::Html,
        ..Highlight::new(vec!["text".to_owned()])
    };
    let query = Query::match_text("text", "tea");
    assert_eq!(
        shown(&query, highlight, &["<b>tea</b> & 'x'"]),
        ["&lt;b&gt;<em>tea</em>&lt;&#x2F;b&gt; &amp; &#x27;x&#x27;"]
    );
}

#[test]
fn nested_objects_have_their_own_texts() {
    let items = ["red tea", "tea", "red"].map(|title| Object::new().with("title", title));
    let document = Object::new().with("items", FieldValue::Objects(items.to_vec()));
    let query = Query::nested("items", Query::match_phrase("items.title", "red tea"));
    let highlight = Highlight::new(vec!["items.title".to_owned()]);
    let highlighter = Highlighter::new(&schema(), &query, highlight).expect("a highlighter");
    let found = highlighter
        .fragments(&document, &Cancellation::none())
        .expect("not cancelled");
    let [(path, fragments)] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!((path.as_str(), fragments.len()), ("items.title", 1));
    assert_eq!(fragments[0].text, "<em>red</em> <em>tea</em>");
}

#[test]
fn every_violation_is_named() {
    let highlight = Highlight {
        pre_tag: "x".repeat(257),
        fragment_size: 0,
        number_of_fragments: 200,
        ..Highlight::new(["nothing", "text.keyword", "text"].map(str::to_owned).to_vec())
    };
    match Highlighter::new(&schema(), &Query::MatchAll, highlight) {
        Err(Error::InvalidQuery(violations)) => {
            let found: Vec<_> = violations
                .listed()
                .iter()
                .map(|violation| (violation.path.as_str(), violation.reason.code()))
                .collect();
            let expected = [
                ("highlight.pre_tag", "LIMIT_EXCEEDED"),
                ("highlight.number_of_fragments", "LIMIT_EXCEEDED"),
                ("highlight.fragment_size", "MISSING"),
                ("highlight.fields[0]", "UNKNOWN_FIELD"),
                ("highlight.fields[1]", "TYPE_MISMATCH"),
            ];
            assert_eq!(found, expected);
        }
        other => panic!("{other:?}"),
    }
}

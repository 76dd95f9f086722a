use super::model::Model;
use super::*;
use crate::document::{FieldValue, Object};
use crate::request::{Operator, ScoreMode};

fn model() -> Model {
    let tags = |scores: &[(&str, f64)]| {
        let objects = scores
            .iter()
            .map(|(tag, score)| Object::default().with("tag", *tag).with("score", *score));
        FieldValue::Objects(objects.collect())
    };
    Model::new(
        vec![
            Object::default().with("serial", 0),
            Object::default()
                .with("name", "tea tea house")
                .with("tags", tags(&[("a", 1.0), ("b", 2.0), ("b", 3.0)])),
            Object::default()
                .with("name", "tea shop in town")
                .with("tags", tags(&[("b", 4.0)])),
            Object::default().with("name", "coffee").with("brand", "vivo"),
        ],
        1,
        usize::MAX,
    )
}

fn weighed(field: &str, value: &str, weight: f32) -> Query {
    Query::Term {
        field: field.to_owned(),
        value: value.into(),
        weight,
    }
}

fn bool_of(must: Vec<Query>, should: Vec<Query>, minimum: Option<u32>) -> Query {
    Query::Bool {
        must,
        filter: vec![],
        should,
        must_not: vec![],
        minimum_should_match: minimum,
    }
}

#[test]
fn weights_are_the_scores_of_clauses_without_frequencies() {
    let model = model();
    assert_eq!(model.scored(&weighed("brand", "vivo", 2.5)), [(3, 2.5)]);
    assert_eq!(model.scored(&Query::exists("brand")), [(3, 1.0)]);
    let constant = Query::ConstScore {
        filter: Box::new(weighed("name", "tea", 1.0)),
        weight: 7.0,
    };
    assert_eq!(model.scored(&constant), [(1, 7.0), (2, 7.0)]);
    // `must_not` alone scores nothing, an empty `bool` is match_all.
    let not_tea = Query::not(weighed("name", "tea", 1.0));
    assert_eq!(model.scored(&not_tea), [(3, 0.0)]);
    assert_eq!(
        model.scored(&bool_of(vec![], vec![], None)),
        [(1, 1.0), (2, 1.0), (3, 1.0)]
    );
}

#[test]
fn clauses_add_up() {
    let model = model();
    let vivo = || weighed("brand", "vivo", 2.0);
    let coffee = || Query::ConstScore {
        filter: Box::new(weighed("name", "coffee", 1.0)),
        weight: 3.0,
    };
    assert_eq!(
        model.scored(&bool_of(vec![vivo(), coffee()], vec![], None)),
        [(3, 5.0)]
    );
    assert_eq!(
        model.scored(&bool_of(vec![vivo()], vec![coffee()], None)),
        [(3, 5.0)]
    );
    assert_eq!(
        model.scored(&bool_of(vec![], vec![vivo(), coffee()], Some(0))),
        [(1, 0.0), (2, 0.0), (3, 5.0)],
    );
    assert!(!model.plan(&bool_of(vec![vivo()], vec![coffee()], Some(1))).scores);
    assert!(model.plan(&bool_of(vec![vivo()], vec![coffee()], None)).scores);
}

#[test]
fn texts_score_by_frequency_and_length_times_the_weight() {
    let model = model();
    let scores = model.scored(&weighed("name", "tea", 1.0));
    let [(1, often), (2, once)] = scores[..] else {
        panic!("{scores:?}")
    };
    assert!(often > once && once > 0.0, "{scores:?}");
    let doubled = model.scored(&weighed("name", "tea", 2.0));
    assert_eq!(doubled, [(1, often * 2.0), (2, once * 2.0)]);
    let phrase = |slop| Query::MatchPhrase {
        field: "name".to_owned(),
        text: "tea house".to_owned(),
        slop,
        weight: 1.0,
    };
    let (exact, sloppy) = (model.scored(&phrase(0)), model.scored(&phrase(1)));
    assert_eq!((exact.len(), &exact), (1, &sloppy), "one occurrence either way");
    let any = Query::Match {
        field: "name".to_owned(),
        text: "tea coffee".to_owned(),
        operator: Operator::Or,
        minimum_should_match: None,
        weight: 0.0,
    };
    assert_eq!(model.scored(&any), [(1, 0.0), (2, 0.0), (3, 0.0)]);
}

#[test]
fn nested_objects_score_by_mode() {
    let model = model();
    let nested = |score_mode| {
        let by_tag = |tag: &str, weight| Query::ConstScore {
            filter: Box::new(weighed("tags.tag", tag, 1.0)),
            weight,
        };
        let query = Query::any(vec![by_tag("a", 1.0), by_tag("b", 4.0)]);
        model.scored(&Query::Nested {
            path: "tags".to_owned(),
            query: Box::new(query),
            score_mode,
            weight: 2.0,
            inner_hits: None,
        })
    };
    assert_eq!(nested(ScoreMode::None), [(1, 0.0), (2, 0.0)]);
    assert_eq!(nested(ScoreMode::Avg), [(1, 6.0), (2, 8.0)]);
    assert_eq!(nested(ScoreMode::Max), [(1, 8.0), (2, 8.0)]);
    assert_eq!(nested(ScoreMode::Min), [(1, 2.0), (2, 8.0)]);
    assert_eq!(nested(ScoreMode::Total), [(1, 18.0), (2, 8.0)]);
}

//! Aggregations read, their mistakes, and their answers as messages.

use souk_index::{Aggregation, AggregationResult, Datum, Figure, Group, GroupOrder, GroupOrderBy};
use souk_proto::search::v1::{aggregation, aggregation_result, group_order};

use super::*;

fn asked(kind: aggregation::Kind) -> pb::Search {
    let aggregation = pb::Aggregation { kind: Some(kind) };
    pb::Search {
        aggregations: [("a".to_owned(), aggregation)].into_iter().collect(),
        ..pb::Search::default()
    }
}

#[test]
fn groups_with_figures_inside() {
    let sum = pb::Aggregation {
        kind: Some(aggregation::Kind::Sum(pb::SumAggregation {
            field: "price".to_owned(),
            missing: Some(value(value::Kind::IntValue(1))),
        })),
    };
    let terms = pb::TermsAggregation {
        field: "type".to_owned(),
        order: vec![pb::GroupOrder {
            by: Some(group_order::By::Aggregation("sum".to_owned())),
            descending: true,
        }],
        aggregations: [("sum".to_owned(), sum)].into_iter().collect(),
        ..pb::TermsAggregation::default()
    };
    let read = read(asked(aggregation::Kind::Terms(terms)), "search", &schema()).expect("it is valid");
    let inside = Aggregation::Figure {
        field: "price".to_owned(),
        figure: Figure::Sum,
        missing: Some(QueryValue::Integer(1)),
    };
    let expected = Aggregation::Terms {
        field: "type".to_owned(),
        size: 10,
        min_doc_count: 1,
        order: vec![GroupOrder {
            by: GroupOrderBy::Aggregation("sum".to_owned()),
            descending: true,
        }],
        missing: None,
        aggregations: vec![("sum".to_owned(), inside)],
    };
    assert_eq!(read.request.aggregations, [("a".to_owned(), expected)]);
}

#[test]
fn every_mistake_of_a_grouping_is_told() {
    let terms = pb::TermsAggregation {
        size: -1,
        min_doc_count: -1,
        order: vec![pb::GroupOrder::default()],
        aggregations: [("x".to_owned(), pb::Aggregation::default())]
            .into_iter()
            .collect(),
        ..pb::TermsAggregation::default()
    };
    let refused = read(asked(aggregation::Kind::Terms(terms)), "search", &schema()).expect_err("it is wrong");
    let details = Status::from(refused).get_error_details();
    let paths: Vec<_> = details
        .bad_request()
        .map(|all| all.field_violations.iter().map(|one| one.field.clone()).collect())
        .unwrap_or_default();
    let expected = [
        "field",
        "size",
        "min_doc_count",
        "order[0]",
        r#"aggregations["x"]"#,
    ]
    .map(|part| format!(r#"search.aggregations["a"].terms.{part}"#));
    assert_eq!(paths, expected);
}

#[test]
fn groups_become_messages() {
    let group = Group {
        key: Datum::String("tea".to_owned()),
        count: 2,
        aggregations: vec![("sum".to_owned(), AggregationResult::Value(Some(Datum::Long(7))))],
    };
    let result = AggregationResult::Groups {
        groups: vec![group],
        other_count: 3,
    };
    let wire = super::super::aggregations(vec![("a".to_owned(), result)]);
    let Some(aggregation_result::Kind::Groups(groups)) = &wire["a"].kind else {
        panic!("not groups: {wire:?}");
    };
    assert_eq!((groups.other_count, groups.groups.len()), (3, 1));
    assert_eq!(groups.groups[0].keys, text("tea").into_iter().collect::<Vec<_>>());
    let inside = groups.groups[0].aggregations["sum"].kind.clone();
    let seven = pb::ValueResult {
        value: Some(value(value::Kind::IntValue(7))),
        error_bound: 0.0,
    };
    assert_eq!(inside, Some(aggregation_result::Kind::Value(seven)));
}

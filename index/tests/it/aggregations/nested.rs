//! Objects that several groups of their document take: each group sees all of them.

use souk_index::{
    Aggregation, AggregationResult, CompositeSource, Datum, Index, IndexOptions, Object, Query, SourceKind,
    ValueRange,
};

use super::super::{commit, schema, upsert};
use super::single;

/// One document with two tags and two numbers, and two objects of one sku, of which one is fresh.
fn index() -> Index {
    let index = Index::create_in_ram(schema(), IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("the writer");
    let item = |fresh: bool| Object::new().with("sku", "x").with("fresh", fresh);
    let document = Object::new()
        .with_all("tags", ["a", "b"])
        .with_all("n", [1, 2])
        .with("items", vec![item(true), item(false)]);
    commit(&mut writer, vec![upsert("k", document)], 1);
    index
}

fn terms(field: &str, inside: Aggregation) -> Aggregation {
    Aggregation::Terms {
        field: field.to_owned(),
        size: 10,
        min_doc_count: 1,
        order: Vec::new(),
        missing: None,
        aggregations: vec![("inside".to_owned(), inside)],
    }
}

/// Of the objects, those that are fresh, and those that are not.
fn by_freshness() -> Aggregation {
    Aggregation::Filters {
        filters: vec![
            Query::term("items.fresh", true),
            Query::term("items.fresh", false),
        ],
        aggregations: Vec::new(),
    }
}

/// The counts of the groups that have none inside, in the order of the answer.
fn counts(result: &AggregationResult) -> Vec<u64> {
    let AggregationResult::Groups { groups, .. } = result else {
        panic!("no groups: {result:?}");
    };
    groups
        .iter()
        .flat_map(|group| match group.aggregations.first() {
            Some((_, inside)) => counts(inside),
            None => vec![group.count],
        })
        .collect()
}

#[test]
fn filters_of_objects_count_in_every_group_of_their_document() {
    let index = index();
    let by_sku = || terms("items.sku", by_freshness());
    let both = || ValueRange {
        from: Some(0.into()),
        to: Some(9.into()),
    };
    let outer = [
        terms("tags", by_sku()),
        terms("n", by_sku()),
        Aggregation::Range {
            field: "n".to_owned(),
            ranges: vec![both(), both()],
            aggregations: vec![("inside".to_owned(), by_sku())],
        },
        Aggregation::Filters {
            filters: vec![Query::MatchAll, Query::term("tags", "a")],
            aggregations: vec![("inside".to_owned(), by_sku())],
        },
        Aggregation::Composite {
            sources: vec![CompositeSource {
                field: "tags".to_owned(),
                kind: SourceKind::Terms,
                descending: false,
                include_missing: false,
                missing: None,
            }],
            size: 10,
            after: None,
            aggregations: vec![("inside".to_owned(), by_sku())],
        },
    ];
    for aggregation in outer {
        let found = single(&index, aggregation.clone()).expect("it is valid");
        assert_eq!(counts(&found), [1, 1, 1, 1], "{aggregation:?}\n{found:?}");
    }
    let keys = single(&index, terms("tags", by_sku())).expect("it is valid");
    let AggregationResult::Groups { groups, .. } = keys else {
        panic!("no groups: {keys:?}");
    };
    let keys: Vec<_> = groups.iter().map(|group| group.keys[0].clone()).collect();
    assert_eq!(keys, ["a", "b"].map(|tag| Some(Datum::String(tag.to_owned()))));
}

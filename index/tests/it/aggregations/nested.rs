//! Objects that several groups of their document take: each group sees all of them.

use souk_index::{
    Aggregation, AggregationResult, ArrayMode, CompositeSource, Datum, Index, IndexOptions, Missing,
    NestedSort, Object, Query, Sort, SourceKind, ValueRange,
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
        size: 1_000,
        min_doc_count: 1,
        order: Vec::new(),
        missing: None,
        aggregations: vec![("inside".to_owned(), inside)],
    }
}

fn composite(field: &str, inside: Aggregation) -> Aggregation {
    Aggregation::Composite {
        sources: vec![CompositeSource {
            field: field.to_owned(),
            kind: SourceKind::Terms,
            descending: false,
            include_missing: false,
            missing: None,
        }],
        size: 1_000,
        after: None,
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
        composite("tags", by_sku()),
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

/// More groups than documents are taken at a time: the objects of the document are gone through again.
#[test]
fn objects_count_in_every_group_of_a_document_that_is_in_many() {
    const TAGS: usize = 256;
    let index = Index::create_in_ram(schema(), IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("the writer");
    let item = |fresh: bool, size: i64| {
        let part = Object::new().with("code", "p").with("size", size);
        let item = Object::new().with("sku", "x").with("fresh", fresh);
        item.with("parts", vec![part.clone(), part])
    };
    let document = Object::new()
        .with("kind", "k")
        .with_all("tags", (0..TAGS).map(|nth| format!("t{nth:03}")))
        .with("items", vec![item(true, 7), item(false, 5)]);
    commit(&mut writer, vec![upsert("k", document)], 1);

    let by_sku = || terms("items.sku", by_freshness());
    for aggregation in [composite("tags", by_sku()), terms("tags", by_sku())] {
        let found = single(&index, aggregation.clone()).expect("it is valid");
        assert_eq!(counts(&found), vec![1; 2 * TAGS], "{aggregation:?}");
    }

    let largest = Aggregation::TopHits {
        size: 1,
        sort: vec![Sort::Field {
            field: "items.parts.size".to_owned(),
            descending: true,
            mode: Some(ArrayMode::Max),
            missing: Missing::Last,
            nested: Some(NestedSort {
                path: "items.parts".to_owned(),
                filter: None,
            }),
        }],
    };
    for aggregation in [
        composite("tags", terms("items.sku", largest.clone())),
        composite("tags", terms("items.fresh", largest)),
    ] {
        let found = single(&index, aggregation.clone()).expect("it is valid");
        let AggregationResult::Groups { groups, .. } = found else {
            panic!("no groups: {found:?}");
        };
        assert_eq!(groups.len(), TAGS);
        let first = &groups[0].aggregations;
        let others = groups.iter().position(|group| &group.aggregations != first);
        assert_eq!(others, None, "{:?}\n{first:?}", groups.last());
    }
}

//! Aggregations over random documents and queries, against brute force.

pub(crate) mod ask;
mod check;
mod entities;
mod exact;
mod groups;
mod limits;
mod nested;

use std::collections::BTreeMap;

use fastrand::Rng;
use souk_index::{
    Aggregation, AggregationResult, Cancellation, Datum, Error, Field, GroupOrder, GroupOrderBy, Index,
    IndexOptions, MetricKind, Object, Operation, Query, Schema, SearchRequest, Searcher, Sort, TotalRequest,
    ValueRange,
};

use super::{commit, find, random, random_numbers, reference, schema, scope_at, upsert};
use check::check_all;
use entities::Entity;

type Documents = BTreeMap<Vec<u8>, Object>;

fn matching<'a>(query: &Query, documents: &'a Documents) -> Vec<Entity<'a>> {
    let matching = documents
        .iter()
        .filter(|(_, document)| reference::matches(query, document, scope_at("")));
    matching
        .map(|(key, document)| Entity::document(key, document))
        .collect()
}

/// After every commit, searches with aggregations.
fn history(rng: &mut Rng, commits: u64, searches: usize, search: fn(&mut Rng, &Searcher, &Documents)) {
    let options = IndexOptions::default().merging_eagerly(rng.usize(3..50));
    let folder = tempfile::tempdir().expect("a folder");
    let index = Index::open(folder.path(), schema(), options).expect("the index opens");
    let mut writer = index.writer().expect("the writer");
    let mut documents = Documents::new();
    for sequence in 1..=commits {
        let mut operations = Vec::new();
        for _ in 0..40 {
            let key = format!("k{:03}", rng.u32(..150));
            if rng.u8(..4) == 0 {
                documents.remove(key.as_bytes());
                operations.push(Operation::Delete {
                    key: key.into_bytes(),
                });
            } else {
                let document = random::document(rng);
                operations.push(upsert(&key, document.clone()));
                documents.insert(key.into_bytes(), document);
            }
        }
        commit(&mut writer, operations, sequence);
        for _ in 0..searches {
            search(rng, &index.searcher(), &documents);
        }
    }
}

fn query(rng: &mut Rng) -> Query {
    if rng.bool() {
        Query::MatchAll
    } else {
        random::query(rng, "", 2)
    }
}

#[test]
fn aggregations_agree_with_brute_force() {
    history(&mut random_numbers(), 8, 60, |rng, searcher, documents| {
        let asked = ask::aggregations(rng, "", 1);
        let alone = SearchRequest::new(query(rng))
            .page_size(rng.usize(..3))
            .sorted(random::sorts(rng));
        let mut alone = alone;
        alone.total = [TotalRequest::None, TotalRequest::Exact, TotalRequest::AtLeast(3)][rng.usize(..3)];
        let request = alone.clone().aggregations(asked.clone());
        let found = find(searcher, &request);
        let matching = matching(&request.query, documents);
        if let Err(wrong) = check_all(&asked, &found.aggregations, &matching, "") {
            panic!("{wrong}\n{request:#?}");
        }
        // One walk serves the page, the total and the aggregations: none of them changes the others.
        let without = find(searcher, &alone);
        assert_eq!(
            (found.hits, found.next_page_token),
            (without.hits, without.next_page_token),
            "{request:#?}"
        );
        if let Some(total) = found.total {
            assert_eq!(total.value, matching.len() as u64, "{request:#?}");
        }
    });
}

#[test]
fn composites_page_through_every_group() {
    history(&mut random_numbers(), 4, 30, |rng, searcher, documents| {
        let query = query(rng);
        let asked = ask::composite(rng);
        let mut all = Vec::new();
        let mut page = asked.clone();
        loop {
            let request = SearchRequest::new(query.clone())
                .page_size(0)
                .aggregations(vec![("page".to_owned(), page.clone())]);
            let found = find(searcher, &request).aggregations.pop();
            let Some((
                _,
                AggregationResult::Groups {
                    groups,
                    next_page_token,
                    ..
                },
            )) = found
            else {
                panic!("no groups: {found:?}");
            };
            let Aggregation::Composite { size, after, .. } = &mut page else {
                panic!("no composite: {page:?}");
            };
            assert!(groups.len() == *size || next_page_token.is_none(), "{request:#?}");
            all.extend(groups);
            if next_page_token.is_none() {
                break;
            }
            *after = next_page_token;
        }
        let whole = AggregationResult::Groups {
            groups: all,
            other_count: 0,
            count_error_bound: 0,
            next_page_token: None,
        };
        let matching = matching(&query, documents);
        let (asked, found) = (vec![("page".to_owned(), asked)], vec![("page".to_owned(), whole)]);
        if let Err(wrong) = check_all(&asked, &found, &matching, "") {
            panic!("{wrong}\n{query:#?}");
        }
    });
}

#[test]
fn mistakes_are_told_with_their_paths() {
    let folder = tempfile::tempdir().expect("a folder");
    let index = Index::open(folder.path(), schema(), IndexOptions::default()).expect("the index opens");
    let figure = |field: &str, figure| Aggregation::Figure {
        field: field.to_owned(),
        figure,
        missing: None,
    };
    let terms = |size, by: &str, aggregations| Aggregation::Terms {
        field: "kind".to_owned(),
        size,
        min_doc_count: 1,
        order: vec![GroupOrder {
            by: GroupOrderBy::Aggregation(by.to_owned()),
            descending: true,
        }],
        missing: None,
        aggregations,
    };
    let asked = vec![
        ("a".to_owned(), figure("nothing", MetricKind::Count)),
        ("b".to_owned(), figure("at", MetricKind::Sum)),
        (
            "c".to_owned(),
            Aggregation::Percentiles {
                field: "n".to_owned(),
                percentages: vec![50.0, 101.0],
                missing: None,
            },
        ),
        (
            "d".to_owned(),
            terms(
                2_001,
                "x",
                vec![("y".to_owned(), figure("kind", MetricKind::Avg))],
            ),
        ),
    ];
    let request = SearchRequest::new(Query::MatchAll).aggregations(asked);
    let refused = index.searcher().search(&request, &Cancellation::none());
    let Err(Error::InvalidQuery(violations)) = refused else {
        panic!("not refused: {refused:?}");
    };
    let told: Vec<_> = violations
        .listed()
        .iter()
        .map(|violation| (violation.path.as_str(), violation.reason.code()))
        .collect();
    let expected = [
        (r#"aggregations["a"].count.field"#, "UNKNOWN_FIELD"),
        (r#"aggregations["b"].sum.field"#, "TYPE_MISMATCH"),
        (r#"aggregations["c"].percentiles.percentages[1]"#, "OUT_OF_RANGE"),
        (r#"aggregations["d"].terms.size"#, "LIMIT_EXCEEDED"),
        (r#"aggregations["d"].terms.order[0].aggregation"#, "MISSING"),
        (
            r#"aggregations["d"].terms.aggregations["y"].avg.field"#,
            "TYPE_MISMATCH",
        ),
    ];
    assert_eq!(told, expected);
}

#[test]
fn figures_and_groupings_have_limits_of_their_own() {
    let index = Index::create_in_ram(schema(), IndexOptions::default()).expect("an index");
    let named = |prefix: &'static str, count: usize, aggregation: Aggregation| {
        (0..count).map(move |nth| (format!("{prefix}{nth}"), aggregation.clone()))
    };
    let asked = |figures, groupings| {
        let middle = Aggregation::GeoCentroid {
            field: "spot".to_owned(),
        };
        let cells = Aggregation::GeoCell {
            field: "spot".to_owned(),
            resolution: 1,
            size: 1,
            aggregations: Vec::new(),
        };
        let all = named("f", figures, middle).chain(named("g", groupings, cells));
        let request = SearchRequest::new(Query::MatchAll).aggregations(all.collect());
        index.searcher().search(&request, &Cancellation::none())
    };
    assert_eq!(asked(10, 5).expect("it is allowed").aggregations.len(), 15);
    for (figures, groupings, limit) in [(11, 0, "MAX_FIGURES"), (0, 6, "MAX_GROUPINGS")] {
        let refused = asked(figures, groupings);
        let Err(Error::InvalidQuery(violations)) = refused else {
            panic!("not refused: {refused:?}");
        };
        let violation = violations.listed().first().expect("a violation");
        assert_eq!(violation.path, "aggregations");
        assert!(violation.message.contains(limit), "{violation:?}");
    }
}

#[test]
fn the_middle_of_points_is_that_of_their_directions() {
    let folder = tempfile::tempdir().expect("a folder");
    let index = Index::open(folder.path(), schema(), IndexOptions::default()).expect("the index opens");
    let mut writer = index.writer().expect("the writer");
    let at = |latitude, longitude| souk_index::GeoPoint::new(latitude, longitude).expect("a point");
    // On both sides of the antimeridian, in two segments; one document has no point.
    let west = Object::new().with_all("spot", [at(10.0, 178.0), at(-10.0, 178.0)]);
    let east = Object::new().with_all("spot", [at(0.0, -176.0), at(0.0, -176.0)]);
    commit(&mut writer, vec![upsert("k1", west)], 1);
    commit(
        &mut writer,
        vec![upsert("k2", east), upsert("k3", Object::new())],
        2,
    );
    let middle = |field: &str| {
        let middle = Aggregation::GeoCentroid {
            field: field.to_owned(),
        };
        let request = SearchRequest::new(Query::MatchAll).aggregations(vec![("middle".to_owned(), middle)]);
        index.searcher().search(&request, &Cancellation::none())
    };
    let found = middle("spot").expect("it is valid").aggregations;
    let [
        (
            _,
            AggregationResult::Centroid {
                point: Some(point),
                count: 4,
            },
        ),
    ] = found.as_slice()
    else {
        panic!("not the middle of four: {found:?}");
    };
    // cos 10° at 178, 1 at 184.
    assert_eq!(point.latitude(), 0.0);
    assert!((point.longitude() + 178.977_016_2).abs() < 1e-6, "{point:?}");
    let nothing = middle("items.place").expect("it is valid").aggregations;
    let none = AggregationResult::Centroid {
        point: None,
        count: 0,
    };
    assert_eq!(nothing, [("middle".to_owned(), none)]);
    let refused = middle("n").expect_err("no field of points");
    let Error::InvalidQuery(violations) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(
        violations.listed()[0].path,
        r#"aggregations["middle"].geo_centroid.field"#
    );
}

#[test]
fn cells_count_documents_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let index = Index::open(folder.path(), schema(), IndexOptions::default()).expect("the index opens");
    let mut writer = index.writer().expect("the writer");
    let at = |latitude, longitude| souk_index::GeoPoint::new(latitude, longitude).expect("a point");
    // Two points of one document lie in one cell; Hangzhou and Paris don't.
    let one = Object::new().with_all("spot", [at(30.2741, 120.1551), at(30.2742, 120.1552)]);
    let two = Object::new().with_all("spot", [at(30.2741, 120.1551), at(48.8566, 2.3522)]);
    commit(&mut writer, vec![upsert("k1", one)], 1);
    commit(&mut writer, vec![upsert("k2", two)], 2);
    let cells = Aggregation::GeoCell {
        field: "spot".to_owned(),
        resolution: 5,
        size: 1,
        aggregations: Vec::new(),
    };
    let request = SearchRequest::new(Query::MatchAll).aggregations(vec![("cells".to_owned(), cells)]);
    // The second search has its cells from the first.
    for _ in 0..2 {
        let found = find(&index.searcher(), &request).aggregations;
        let [
            (
                _,
                AggregationResult::Groups {
                    groups, other_count, ..
                },
            ),
        ] = found.as_slice()
        else {
            panic!("not the cells: {found:?}");
        };
        assert_eq!((groups.len(), groups[0].count, *other_count), (1, 2, 1));
        assert!(
            matches!(&groups[0].keys[0], Some(Datum::String(cell)) if cell.len() == 15 && cell.starts_with("85"))
        );
    }
}

#[test]
fn objects_of_two_fields_beside_each_other_cannot_be_mixed() {
    let schema = Schema::new(vec![
        Field::nested("tags", vec![Field::keyword("tag")]),
        Field::nested("faces", vec![Field::keyword("person")]),
    ]);
    let index = Index::create_in_ram(schema.expect("a schema"), IndexOptions::default()).expect("an index");
    let persons = Aggregation::Figure {
        field: "faces.person".to_owned(),
        figure: MetricKind::Count,
        missing: None,
    };
    let tags = Aggregation::Terms {
        field: "tags.tag".to_owned(),
        size: 1,
        min_doc_count: 1,
        order: Vec::new(),
        missing: None,
        aggregations: vec![("persons".to_owned(), persons)],
    };
    let request = SearchRequest::new(Query::MatchAll).aggregations(vec![("tags".to_owned(), tags)]);
    let refused = index.searcher().search(&request, &Cancellation::none());
    let Err(Error::InvalidQuery(violations)) = refused else {
        panic!("not refused: {refused:?}");
    };
    let told = violations
        .listed()
        .first()
        .map(|one| (one.path.as_str(), one.reason.code()));
    let at = r#"aggregations["tags"].terms.aggregations["persons"].count.field"#;
    assert_eq!(told, Some((at, "OUTSIDE_NESTED_PATH")));
}

fn one_document() -> (tempfile::TempDir, Index) {
    let folder = tempfile::tempdir().expect("a folder");
    let index = Index::open(folder.path(), schema(), IndexOptions::default()).expect("the index opens");
    let mut writer = index.writer().expect("the writer");
    let document = Object::new()
        .with_all("n", [1, i64::MAX, i64::MAX])
        .with("at", souk_index::FieldValue::Date(0));
    commit(&mut writer, vec![upsert("k", document)], 1);
    (folder, index)
}

fn single(index: &Index, aggregation: Aggregation) -> Result<AggregationResult, Error> {
    let request = SearchRequest::new(Query::MatchAll).aggregations(vec![("a".to_owned(), aggregation)]);
    let found = index.searcher().search(&request, &Cancellation::none())?;
    Ok(found
        .aggregations
        .into_iter()
        .map(|(_, result)| result)
        .next()
        .expect("a result"))
}

#[test]
fn sums_beyond_64_bits_are_doubles() {
    let (_folder, index) = one_document();
    let sum = Aggregation::Figure {
        field: "n".to_owned(),
        figure: MetricKind::Sum,
        missing: None,
    };
    let expected = AggregationResult::Value(Some(Datum::Double(2.0 * 9_223_372_036_854_775_807.0)));
    assert_eq!(single(&index, sum).expect("a sum"), expected);
}

#[test]
fn too_many_intervals_are_refused_by_a_named_limit() {
    let (_folder, index) = one_document();
    let by_millisecond = |days: i64| Aggregation::DateHistogram {
        field: "at".to_owned(),
        interval: 1,
        unit: souk_index::CalendarUnit::Millisecond,
        time_zone: souk_index::TimeZone::UTC,
        offset: 0,
        min_doc_count: 0,
        missing: None,
        bounds: ValueRange {
            from: Some(0.into()),
            to: Some((days * 86_400_000_000_000).into()),
        },
        order: Vec::new(),
        aggregations: Vec::new(),
    };
    match single(&index, by_millisecond(1)) {
        Err(Error::LimitExceeded { limit, path, .. }) => {
            assert_eq!(
                (limit, path.as_str()),
                ("MAX_HISTOGRAM_GROUPS", r#"aggregations["a"].date_histogram"#)
            );
        }
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn tokens_of_composites_are_bound_to_their_request() {
    let (_folder, index) = one_document();
    let composite = |field: &str, after: Option<String>| Aggregation::Composite {
        sources: vec![souk_index::CompositeSource {
            field: field.to_owned(),
            kind: souk_index::SourceKind::Terms,
            descending: false,
            include_missing: true,
            missing: None,
        }],
        size: 1,
        after,
        aggregations: Vec::new(),
    };
    let first = single(&index, composite("n", None)).expect("a page");
    let AggregationResult::Groups {
        next_page_token: Some(token),
        ..
    } = first
    else {
        panic!("no token: {first:?}");
    };
    for (field, token) in [
        ("m", token.clone()),
        ("n", "A".to_owned()),
        ("n", format!("{token}A")),
    ] {
        let refused = single(&index, composite(field, Some(token)));
        assert!(
            matches!(refused, Err(Error::PageTokenInvalid { .. })),
            "{refused:?}"
        );
    }
    assert!(single(&index, composite("n", Some(token))).is_ok());
}

#[test]
fn a_top_hit_by_score_is_the_best_of_its_group() {
    let folder = tempfile::tempdir().expect("a folder");
    let index = Index::open(folder.path(), schema(), IndexOptions::default()).expect("the index opens");
    let mut writer = index.writer().expect("the writer");
    let document = |kind: &str, text: &str| Object::new().with("kind", kind).with("text", text);
    let documents = vec![
        upsert("a", document("x", "red green green green green")),
        upsert("b", document("x", "red red")),
        upsert("c", document("y", "red green")),
    ];
    commit(&mut writer, documents, 1);
    let best = Aggregation::TopHits {
        size: 1,
        sort: Vec::new(),
    };
    let kinds = Aggregation::Terms {
        field: "kind".to_owned(),
        size: 10,
        min_doc_count: 1,
        order: Vec::new(),
        missing: None,
        aggregations: vec![("best".to_owned(), best)],
    };
    // The page isn't by score: only the groups are.
    let request = SearchRequest::new(Query::match_text("text", "red"))
        .sorted(vec![Sort::PrimaryKey { descending: true }])
        .aggregations(vec![("kinds".to_owned(), kinds)]);
    let found = find(&index.searcher(), &request);
    let Some((_, AggregationResult::Groups { groups, .. })) = found.aggregations.first() else {
        panic!("no groups: {found:?}");
    };
    let best: Vec<_> = groups
        .iter()
        .map(|group| match &group.aggregations[0].1 {
            AggregationResult::TopHits(hits) => (hits[0].key.as_slice(), hits[0].score.is_some()),
            other => panic!("no hits: {other:?}"),
        })
        .collect();
    assert_eq!(best, [(&b"b"[..], true), (&b"c"[..], true)]);
    assert_eq!(found.hits.len(), 3);
    assert!(found.hits.iter().all(|hit| hit.score.is_none()));
}

#[test]
fn frequent_values_among_very_many_are_within_their_bound() {
    let schema = Schema::new(vec![Field::long("n").column_only()]).expect("a schema");
    let options = IndexOptions::default();
    let index = Index::create_in_ram(schema, options).expect("an index");
    let mut writer = index.writer().expect("the writer");
    let mut key = 0_u32;
    let mut insert = |n: i64| {
        key += 1;
        Operation::Insert(souk_index::Document {
            key: key.to_be_bytes().to_vec(),
            fields: Object::new().with("n", n),
        })
    };
    for part in 0..2_i64 {
        // Values of one document each, and ten frequent ones: those of the second half once in the first.
        let rare = (0..110_000).map(|n| 1_000 + part * 110_000 + n);
        let frequent = (0..10).flat_map(|n| std::iter::repeat_n(n, if n / 5 == part { 50 } else { 1 }));
        let operations: Vec<_> = rare.chain(frequent).map(&mut insert).collect();
        for chunk in operations.chunks(50_000) {
            writer.apply(chunk.to_vec()).expect("the documents are taken in");
        }
        writer.commit(part as u64 + 1).expect("the commit works");
    }
    let count = Aggregation::Figure {
        field: "n".to_owned(),
        figure: MetricKind::Count,
        missing: None,
    };
    let values = Aggregation::Terms {
        field: "n".to_owned(),
        size: 10,
        min_doc_count: 1,
        order: Vec::new(),
        missing: None,
        aggregations: vec![("count".to_owned(), count)],
    };
    let AggregationResult::Groups {
        groups,
        other_count,
        count_error_bound,
        ..
    } = single(&index, values).expect("groups")
    else {
        panic!("no groups");
    };
    let keys: Vec<_> = groups.iter().map(|group| group.keys[0].clone()).collect();
    assert_eq!(keys, (0..10).map(|n| Some(Datum::Long(n))).collect::<Vec<_>>());
    assert!(count_error_bound <= 1, "{count_error_bound}");
    let mut shown = 0;
    for group in &groups {
        assert!(
            group.count <= 51 && group.count + count_error_bound >= 51,
            "{group:?}"
        );
        let inside = AggregationResult::Value(Some(Datum::Long(group.count as i64)));
        assert_eq!(group.aggregations[0].1, inside);
        shown += group.count;
    }
    assert_eq!(shown + other_count, 220_510);
}

#[test]
fn attributes_are_grouped_by_values_of_any_type() {
    let schema = Schema::new(vec![Field::attributes("attributes")]).expect("a schema");
    let index = Index::create_in_ram(schema, IndexOptions::default()).expect("an index");
    let mut writer = index.writer().expect("the writer");
    let with = |attributes: Object| Object::new().with("attributes", vec![attributes]);
    let documents = vec![
        upsert("a", with(Object::new().with("color", "red").with("size", 4))),
        upsert(
            "b",
            with(Object::new().with("color", "red").with("colors", "blue")),
        ),
        upsert("c", with(Object::new().with("color", 7).with("size", 4))),
        upsert("d", with(Object::new().with("colo", true))),
    ];
    commit(&mut writer, documents, 1);
    let terms = |field: &str, missing: Option<souk_index::QueryValue>| Aggregation::Terms {
        field: field.to_owned(),
        size: 10,
        min_doc_count: 1,
        order: Vec::new(),
        missing,
        aggregations: Vec::new(),
    };
    let groups = |aggregation| match single(&index, aggregation) {
        Ok(AggregationResult::Groups { groups, .. }) => groups
            .into_iter()
            .map(|group| (group.keys[0].clone(), group.count))
            .collect::<Vec<_>>(),
        other => panic!("no groups: {other:?}"),
    };
    let (red, seven) = (Some(Datum::String("red".to_owned())), Some(Datum::Long(7)));
    assert_eq!(
        groups(terms("attributes.color", None)),
        [(red.clone(), 2), (seven.clone(), 1)]
    );
    assert_eq!(
        groups(terms("attributes.color", Some("none".into()))),
        [(red, 2), (seven, 1), (Some(Datum::String("none".to_owned())), 1)]
    );
    assert_eq!(
        groups(terms("attributes.size", None)),
        [(Some(Datum::Long(4)), 2)]
    );
    assert!(groups(terms("attributes.nothing", None)).is_empty());
    assert!(matches!(
        single(&index, terms("attributes", None)),
        Err(Error::InvalidQuery(_))
    ));
}

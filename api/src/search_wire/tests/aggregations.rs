//! Aggregations read, their mistakes, and their answers as messages.

use souk_index::limits::MAX_GROUPINGS;
use souk_index::{
    Aggregation, AggregationResult, CalendarUnit, CompositeSource, Datum, Group, GroupOrder, GroupOrderBy,
    MetricKind, SourceKind, TimeZone, TopHit, ValueRange,
};
use souk_proto::search::v1::{aggregation, aggregation_result, group_order};

use super::super::page_tokens;
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
        figure: MetricKind::Sum,
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
        r#"aggregations["x"]"#,
        "order[0]",
    ]
    .map(|part| format!(r#"search.aggregations["a"].terms.{part}"#));
    assert_eq!(paths, expected);
}

#[test]
fn groups_become_messages() {
    let group = Group {
        keys: vec![Some(Datum::String("tea".to_owned())), None],
        count: 2,
        aggregations: vec![("sum".to_owned(), AggregationResult::Value(Some(Datum::Long(7))))],
    };
    let result = AggregationResult::Groups {
        groups: vec![group],
        other_count: 3,
        count_error_bound: 1,
        next_page_token: Some("next".to_owned()),
    };
    let wire = answered(result);
    let Some(aggregation_result::Kind::Groups(groups)) = &wire["a"].kind else {
        panic!("not groups: {wire:?}");
    };
    assert_eq!((groups.other_count, groups.groups.len()), (3, 1));
    let keys = [text("tea"), Some(wire::Value { kind: None })];
    assert_eq!(
        groups.groups[0].keys,
        keys.into_iter().flatten().collect::<Vec<_>>()
    );
    assert_eq!(
        (groups.next_page_token.as_str(), groups.count_error_bound),
        ("next", 1)
    );
    let inside = groups.groups[0].aggregations["sum"].kind.clone();
    let seven = pb::ValueResult {
        value: Some(value(value::Kind::IntValue(7))),
        error_bound: 0.0,
    };
    assert_eq!(inside, Some(aggregation_result::Kind::Value(seven)));
}

fn answered(result: AggregationResult) -> std::collections::BTreeMap<String, pb::AggregationResult> {
    let id_of = |key: &[u8]| Ok(String::from_utf8_lossy(key).into_owned());
    super::super::aggregations(vec![("a".to_owned(), result)], &id_of).expect("ids")
}

#[test]
fn figures_that_may_be_off_say_so() {
    let estimate = AggregationResult::Estimate {
        value: Datum::Long(9),
        error_bound: 0.02,
    };
    let expected = pb::ValueResult {
        value: Some(value(value::Kind::IntValue(9))),
        error_bound: 0.02,
    };
    assert_eq!(
        answered(estimate)["a"].kind,
        Some(aggregation_result::Kind::Value(expected))
    );
    let percentiles = AggregationResult::Percentiles {
        values: vec![Datum::Date(1_500_000_000)],
        count: 3,
        rank_error_bound: 0.001,
    };
    let time = prost_types::Timestamp {
        seconds: 1,
        nanos: 500_000_000,
    };
    let expected = pb::PercentilesResult {
        values: vec![1.5],
        typed_values: vec![value(value::Kind::TimeValue(time))],
        count: 3,
        rank_error_bound: 0.001,
    };
    assert_eq!(
        answered(percentiles)["a"].kind,
        Some(aggregation_result::Kind::Percentiles(expected))
    );
}

#[test]
fn top_hits_are_ids() {
    let hit = TopHit {
        key: b"s1".to_vec(),
        score: None,
        sort_values: Vec::new(),
    };
    let expected = pb::TopHitsResult {
        ids: vec!["s1".to_owned()],
    };
    assert_eq!(
        answered(AggregationResult::TopHits(vec![hit]))["a"].kind,
        Some(aggregation_result::Kind::TopHits(expected))
    );
}

#[test]
fn centroids_are_read_and_answered() {
    let middle = pb::GeoCentroidAggregation {
        field: "position".to_owned(),
    };
    assert_eq!(
        read_aggregation(aggregation::Kind::GeoCentroid(middle)),
        Aggregation::GeoCentroid {
            field: "position".to_owned(),
        }
    );
    refuses(
        asked(aggregation::Kind::GeoCentroid(
            pb::GeoCentroidAggregation::default(),
        )),
        "INVALID_QUERY",
        &[r#"search.aggregations["a"].geo_centroid.field"#],
    );
    let found = AggregationResult::Centroid {
        point: Some(GeoPoint::new(1.5, -2.5).expect("a point")),
        count: 4,
    };
    let expected = pb::GeoCentroidResult {
        point: at(1.5, -2.5),
        count: 4,
    };
    assert_eq!(
        answered(found)["a"].kind,
        Some(aggregation_result::Kind::GeoCentroid(expected))
    );
}

#[test]
fn figures_and_groupings_are_counted_apart() {
    let search = |figures: usize, groupings: usize| {
        let count = pb::CountAggregation {
            field: "type".to_owned(),
            missing: None,
        };
        let terms = pb::TermsAggregation {
            field: "type".to_owned(),
            ..pb::TermsAggregation::default()
        };
        let figure = |nth| (format!("f{nth}"), aggregation::Kind::Count(count.clone()));
        let grouping = |nth| (format!("g{nth}"), aggregation::Kind::Terms(terms.clone()));
        let kinds = (0..figures).map(figure).chain((0..groupings).map(grouping));
        let aggregations = kinds.map(|(name, kind)| (name, pb::Aggregation { kind: Some(kind) }));
        pb::Search {
            aggregations: aggregations.collect(),
            ..pb::Search::default()
        }
    };
    assert_eq!(read_ok(search(10, 5)).request.aggregations.len(), 15);
    for (figures, groupings, limit) in [(11, 5, "MAX_FIGURES of 10"), (10, 6, "MAX_GROUPINGS of 5")] {
        let (status, reason, fields) = refused(search(figures, groupings));
        assert_eq!(
            (reason.as_str(), fields),
            ("INVALID_QUERY", vec!["search.aggregations".to_owned()])
        );
        let details = status.get_error_details();
        let described = &details.bad_request().expect("a BadRequest").field_violations[0].description;
        assert!(described.contains(limit), "{described}");
    }
}

fn read_aggregation(kind: aggregation::Kind) -> Aggregation {
    let read = read(asked(kind), "search", &schema()).expect("it is valid");
    let mut aggregations = read.request.aggregations;
    aggregations.pop().expect("one aggregation").1
}

fn int(number: i64) -> Option<wire::Value> {
    Some(value(value::Kind::IntValue(number)))
}

#[test]
fn figures_and_hits_are_read() {
    let percentiles = pb::PercentilesAggregation {
        field: "price".to_owned(),
        percentages: vec![50.0, 99.0],
        missing: int(0),
    };
    assert_eq!(
        read_aggregation(aggregation::Kind::Percentiles(percentiles)),
        Aggregation::Percentiles {
            field: "price".to_owned(),
            percentages: vec![50.0, 99.0],
            missing: Some(QueryValue::Integer(0)),
        }
    );
    let top = pb::TopHitsAggregation {
        size: 0,
        sort: vec![pb::Sort {
            kind: Some(sort::Kind::PrimaryKey(pb::PrimaryKeySort { descending: true })),
        }],
    };
    assert_eq!(
        read_aggregation(aggregation::Kind::TopHits(top)),
        Aggregation::TopHits {
            size: 1,
            sort: vec![Sort::PrimaryKey { descending: true }],
        }
    );
}

#[test]
fn ranges_filters_and_distances_are_read() {
    let range = pb::ValueRange {
        from: int(1),
        to: None,
    };
    let ranges = pb::RangeAggregation {
        field: "price".to_owned(),
        ranges: vec![range],
        ..pb::RangeAggregation::default()
    };
    assert_eq!(
        read_aggregation(aggregation::Kind::Range(ranges)),
        Aggregation::Range {
            field: "price".to_owned(),
            ranges: vec![ValueRange {
                from: Some(QueryValue::Integer(1)),
                to: None,
            }],
            aggregations: Vec::new(),
        }
    );
    let filters = pb::FiltersAggregation {
        filters: vec![term("type", text("tea"))],
        ..pb::FiltersAggregation::default()
    };
    assert_eq!(
        read_aggregation(aggregation::Kind::Filters(filters)),
        Aggregation::Filters {
            filters: vec![Query::term("type", "tea")],
            aggregations: Vec::new(),
        }
    );
    let distances = pb::GeoDistanceAggregation {
        field: "position".to_owned(),
        origin: at(1.0, 2.0),
        ranges: vec![pb::DistanceRange {
            from_meters: None,
            to_meters: Some(5.0),
        }],
        ..pb::GeoDistanceAggregation::default()
    };
    assert_eq!(
        read_aggregation(aggregation::Kind::GeoDistance(distances)),
        Aggregation::GeoDistance {
            field: "position".to_owned(),
            origin: GeoPoint::new(1.0, 2.0).expect("a point"),
            ranges: vec![(None, Some(5.0))],
            aggregations: Vec::new(),
        }
    );
}

fn days() -> pb::DateHistogramAggregation {
    pb::DateHistogramAggregation {
        field: "price".to_owned(),
        unit: pb::CalendarUnit::Day.into(),
        time_zone: "+08:00".to_owned(),
        offset: Some(prost_types::Duration { seconds: 6, nanos: 0 }),
        ..pb::DateHistogramAggregation::default()
    }
}

#[test]
fn intervals_are_read() {
    let histogram = pb::HistogramAggregation {
        field: "price".to_owned(),
        interval: 10.0,
        bounds: Some(pb::ValueRange {
            from: int(0),
            to: int(100),
        }),
        ..pb::HistogramAggregation::default()
    };
    let bounds = ValueRange {
        from: Some(QueryValue::Integer(0)),
        to: Some(QueryValue::Integer(100)),
    };
    assert_eq!(
        read_aggregation(aggregation::Kind::Histogram(histogram)),
        Aggregation::Histogram {
            field: "price".to_owned(),
            interval: 10.0,
            offset: 0.0,
            min_doc_count: 0,
            missing: None,
            bounds,
            order: Vec::new(),
            aggregations: Vec::new(),
        }
    );
    let china: TimeZone = "+08:00".parse().expect("a zone");
    assert_eq!(
        read_aggregation(aggregation::Kind::DateHistogram(days())),
        Aggregation::DateHistogram {
            field: "price".to_owned(),
            interval: 1,
            unit: CalendarUnit::Day,
            time_zone: china,
            offset: 6_000_000_000,
            // Without bounds no empty groups are shown.
            min_doc_count: 1,
            missing: None,
            bounds: ValueRange::default(),
            order: Vec::new(),
            aggregations: Vec::new(),
        }
    );
}

fn composite(grouping: aggregation::Kind) -> aggregation::Kind {
    let source = pb::CompositeSource {
        name: "key".to_owned(),
        grouping: Some(pb::Aggregation { kind: Some(grouping) }),
        descending: true,
        include_missing: true,
    };
    aggregation::Kind::Composite(pb::CompositeAggregation {
        sources: vec![source],
        page_token: "token".to_owned(),
        ..pb::CompositeAggregation::default()
    })
}

#[test]
fn composites_are_read() {
    let types = pb::TermsAggregation {
        field: "type".to_owned(),
        ..pb::TermsAggregation::default()
    };
    let source = CompositeSource {
        field: "type".to_owned(),
        kind: SourceKind::Terms,
        descending: true,
        include_missing: true,
        missing: None,
    };
    assert_eq!(
        read_aggregation(composite(aggregation::Kind::Terms(types))),
        Aggregation::Composite {
            sources: vec![source],
            size: 10,
            after: Some("token".to_owned()),
            aggregations: Vec::new(),
        }
    );
    let sized = pb::TermsAggregation {
        field: "type".to_owned(),
        size: 5,
        ..pb::TermsAggregation::default()
    };
    let source = r#"search.aggregations["a"].composite.sources[0].grouping"#;
    let cases = [
        (aggregation::Kind::Terms(sized), format!("{source}.terms")),
        (
            aggregation::Kind::Sum(pb::SumAggregation {
                field: "price".to_owned(),
                ..pb::SumAggregation::default()
            }),
            source.to_owned(),
        ),
    ];
    for (grouping, path) in cases {
        refuses(asked(composite(grouping)), "INVALID_QUERY", &[&path]);
    }
    let wrong = pb::DateHistogramAggregation {
        time_zone: "Mars/Olympus".to_owned(),
        min_doc_count: 1,
        ..days()
    };
    let paths = ["", ".time_zone"].map(|part| format!("{source}.date_histogram{part}"));
    refuses(
        asked(composite(aggregation::Kind::DateHistogram(wrong))),
        "INVALID_QUERY",
        &paths.each_ref().map(String::as_str),
    );
}

#[test]
fn mistakes_in_calendars_are_told() {
    let wrong = pb::DateHistogramAggregation {
        interval: -1,
        unit: 0,
        time_zone: "Mars/Olympus".to_owned(),
        min_doc_count: -1,
        ..days()
    };
    let paths = ["interval", "unit", "min_doc_count", "time_zone"]
        .map(|part| format!(r#"search.aggregations["a"].date_histogram.{part}"#));
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    refuses(
        asked(aggregation::Kind::DateHistogram(wrong)),
        "INVALID_QUERY",
        &paths,
    );
}

#[test]
fn as_many_page_tokens_are_looked_at_as_groupings_may_be() {
    let composite = |nth: usize| {
        let composite = pb::CompositeAggregation {
            page_token: format!("token {nth}"),
            ..pb::CompositeAggregation::default()
        };
        let kind = Some(aggregation::Kind::Composite(composite));
        (format!("groups {nth}"), pb::Aggregation { kind })
    };
    let tokens = |groupings: usize| {
        let search = pb::Search {
            page_token: "of hits".to_owned(),
            aggregations: (0..groupings).map(composite).collect(),
            ..pb::Search::default()
        };
        page_tokens(&search).count()
    };
    assert_eq!(tokens(0), 1);
    assert_eq!(tokens(MAX_GROUPINGS), 1 + MAX_GROUPINGS);
    assert_eq!(tokens(50_000), 1 + MAX_GROUPINGS);
}

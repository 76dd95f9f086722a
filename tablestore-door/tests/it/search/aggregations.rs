//! All figures and all groupings.

use bytes::Bytes;
use prost::Message;
use souk_tablestore::messages::{
    self as pb, Aggregation, AggregationType, Aggregations, AggregationsResult, CountAggregationResult,
    DateTimeUnit, DateTimeValue, DistinctCountAggregationResult, GroupBy, GroupByType, GroupBys,
    GroupBysResult, PercentilesAggregationResult, SearchQuery, SearchRequest, SortOrder,
    SumAggregationResult, TopRowsAggregationResult,
};
use souk_tablestore::plainbuffer::decode_row;
use souk_tablestore::{Value, variant};

use super::{INDEX, Shops, TABLE, all, by_price, columns, finding, id, named, of, query, sorted, term};
use crate::client::cells;

pub(super) fn figure(name: &str, kind: AggregationType, body: &impl Message) -> Aggregation {
    Aggregation {
        name: named(name),
        r#type: Some(kind.into()),
        body: Some(body.encode_to_vec().into()),
    }
}

fn figures(aggs: Vec<Aggregation>) -> Option<Aggregations> {
    Some(Aggregations { aggs })
}

pub(super) fn grouping(name: &str, kind: GroupByType, body: &impl Message) -> GroupBy {
    GroupBy {
        name: named(name),
        r#type: Some(kind.into()),
        body: Some(body.encode_to_vec().into()),
    }
}

fn groupings(group_bys: Vec<GroupBy>) -> Option<GroupBys> {
    Some(GroupBys { group_bys })
}

fn sum_of_prices() -> Option<Aggregations> {
    let body = pb::SumAggregation {
        field_name: named("price"),
        missing: None,
    };
    figures(vec![figure("sum", AggregationType::Sum, &body)])
}

pub(super) fn read<M: Message + Default>(bytes: Option<&Bytes>) -> M {
    M::decode(bytes.expect("an answer").clone()).expect("a message")
}

/// The one figure of a group: a sum.
fn sum(figures: Option<&AggregationsResult>) -> f64 {
    let [figure] = figures.expect("figures").agg_results.as_slice() else {
        panic!("{figures:?}");
    };
    assert_eq!(
        (figure.name.as_deref(), figure.r#type),
        (Some("sum"), Some(AggregationType::Sum.into()))
    );
    read::<SumAggregationResult>(figure.agg_result.as_ref())
        .value
        .expect("a sum")
}

/// The answer to one grouping.
async fn grouped<M: Message + Default>(shops: &mut Shops, kind: GroupByType, body: &impl Message) -> M {
    let search = SearchQuery {
        limit: Some(0),
        group_bys: groupings(vec![grouping("groups", kind, body)]),
        ..all()
    };
    let found = shops.search(search).await.expect("an answer");
    assert!(found.rows.is_empty() && found.aggs.is_none());
    let groups: GroupBysResult = read(found.group_bys.as_ref());
    let [group] = groups.group_by_results.as_slice() else {
        panic!("{groups:?}");
    };
    assert_eq!(
        (group.name.as_deref(), group.r#type),
        (Some("groups"), Some(kind.into()))
    );
    read(group.group_by_result.as_ref())
}

#[tokio::test]
async fn figures_are_of_all_that_is_found() {
    let mut shops = Shops::open().await;
    let price = || named("price");
    let zero = of(Value::Double(0.0));
    let aggs = vec![
        figure(
            "avg",
            AggregationType::Avg,
            &pb::AvgAggregation {
                field_name: price(),
                missing: None,
            },
        ),
        figure(
            "max",
            AggregationType::Max,
            &pb::MaxAggregation {
                field_name: price(),
                missing: None,
            },
        ),
        figure(
            "min",
            AggregationType::Min,
            &pb::MinAggregation {
                field_name: price(),
                missing: None,
            },
        ),
        figure(
            "sum",
            AggregationType::Sum,
            &pb::SumAggregation {
                field_name: price(),
                missing: None,
            },
        ),
        figure(
            "rating",
            AggregationType::Avg,
            &pb::AvgAggregation {
                field_name: named("rating"),
                missing: zero,
            },
        ),
        figure(
            "last",
            AggregationType::Max,
            &pb::MaxAggregation {
                field_name: named("day"),
                missing: None,
            },
        ),
        figure(
            "count",
            AggregationType::Count,
            &pb::CountAggregation {
                field_name: named("rating"),
            },
        ),
        figure(
            "types",
            AggregationType::DistinctCount,
            &pb::DistinctCountAggregation {
                field_name: named("type"),
                missing: None,
            },
        ),
    ];
    let percentiles = pb::PercentilesAggregation {
        field_name: price(),
        percentiles: vec![20.0, 50.0, 100.0],
        missing: None,
    };
    let top = pb::TopRowsAggregation {
        limit: Some(2),
        sort: sorted(by_price(SortOrder::Desc)),
    };
    let more = vec![
        figure("percentiles", AggregationType::Percentiles, &percentiles),
        figure("top", AggregationType::TopRows, &top),
    ];
    let search = SearchQuery {
        limit: Some(0),
        aggs: figures([aggs, more].concat()),
        ..all()
    };
    let request = SearchRequest {
        table_name: named(TABLE),
        index_name: named(INDEX),
        columns_to_get: columns(pb::ColumnReturnType::Specified, &["price"]),
        search_query: Some(search.encode_to_vec().into()),
        routing_values: Vec::new(),
        timeout_ms: None,
    };
    let found = shops.send(&request).await.expect("an answer");
    assert!(found.group_bys.is_none());
    let answers: AggregationsResult = read(found.aggs.as_ref());
    let of = |name: &str| {
        let mut answers = answers.agg_results.iter();
        let answer = answers
            .find(|answer| answer.name.as_deref() == Some(name))
            .expect(name);
        answer.agg_result.as_ref()
    };
    // Of one shape on the wire.
    let double = |name: &str| read::<SumAggregationResult>(of(name)).value;
    for (name, expected) in [
        ("avg", 30.0),
        ("max", 50.0),
        ("min", 10.0),
        ("sum", 150.0),
        ("rating", 3.0),
        // 2021-12-31, in milliseconds.
        ("last", 1_640_908_800_000.0),
    ] {
        assert_eq!(double(name), Some(expected), "{name}");
    }
    assert_eq!(read::<CountAggregationResult>(of("count")).value, Some(4));
    assert_eq!(read::<DistinctCountAggregationResult>(of("types")).value, Some(3));
    let percentiles: PercentilesAggregationResult = read(of("percentiles"));
    let items = percentiles.percentiles_aggregation_items.into_iter().map(|item| {
        let value = variant::decode(item.value.expect("a value")).expect("a variant");
        (item.key.expect("a key"), value)
    });
    let expected =
        [(20.0, 10.0), (50.0, 30.0), (100.0, 50.0)].map(|(key, value)| (key, Value::Double(value)));
    assert_eq!(items.collect::<Vec<_>>(), expected);
    let top: TopRowsAggregationResult = read(of("top"));
    let rows: Vec<_> = top
        .rows
        .into_iter()
        .map(|row| decode_row(row).expect("a row"))
        .collect();
    assert_eq!(rows.iter().map(id).collect::<String>(), "ed");
    assert_eq!(cells(&rows[0]), [("price", Value::Integer(50))]);
    shops.end().await;
}

#[tokio::test]
async fn figures_of_nothing_are_nothing_but_of_counts_and_sums() {
    let mut shops = Shops::open().await;
    let max = pb::MaxAggregation {
        field_name: named("price"),
        missing: None,
    };
    let count = pb::CountAggregation {
        field_name: named("price"),
    };
    let sum = pb::SumAggregation {
        field_name: named("price"),
        missing: None,
    };
    let search = SearchQuery {
        aggs: figures(vec![
            figure("max", AggregationType::Max, &max),
            figure("count", AggregationType::Count, &count),
            figure("sum", AggregationType::Sum, &sum),
        ]),
        ..finding(term("type", "none"))
    };
    let found = shops.search(search).await.expect("an answer");
    let answers: AggregationsResult = read(found.aggs.as_ref());
    let [max, count, sum] = answers.agg_results.as_slice() else {
        panic!("{answers:?}");
    };
    assert_eq!(
        read::<pb::MaxAggregationResult>(max.agg_result.as_ref()).value,
        None
    );
    assert_eq!(
        read::<CountAggregationResult>(count.agg_result.as_ref()).value,
        Some(0)
    );
    assert_eq!(
        read::<SumAggregationResult>(sum.agg_result.as_ref()).value,
        Some(0.0)
    );
    shops.end().await;
}

#[tokio::test]
async fn groups_by_a_field_have_figures_and_groups_inside() {
    let mut shops = Shops::open().await;
    let open = pb::GroupByField {
        field_name: named("open"),
        ..pb::GroupByField::default()
    };
    let by_sum = pb::GroupBySorter {
        sub_agg_sort: Some(pb::SubAggSort {
            sub_agg_name: named("sum"),
            order: Some(SortOrder::Desc.into()),
        }),
        ..pb::GroupBySorter::default()
    };
    let types = pb::GroupByField {
        field_name: named("type"),
        size: Some(2),
        sort: Some(pb::GroupBySort {
            sorters: vec![by_sum],
        }),
        sub_aggs: sum_of_prices(),
        sub_group_bys: groupings(vec![grouping("open", GroupByType::Field, &open)]),
        min_doc_count: None,
    };
    let found: pb::GroupByFieldResult = grouped(&mut shops, GroupByType::Field, &types).await;
    let items = found.group_by_field_result_items;
    let told: Vec<_> = items
        .iter()
        .map(|item| {
            let inside = item.sub_group_bys_result.as_ref().expect("groups");
            let inside: pb::GroupByFieldResult = read(inside.group_by_results[0].group_by_result.as_ref());
            let inside: Vec<_> = inside
                .group_by_field_result_items
                .into_iter()
                .map(|item| (item.key.expect("a key"), item.row_count.expect("a count")))
                .collect();
            (
                item.key.as_deref().expect("a key"),
                item.row_count,
                sum(item.sub_aggs_result.as_ref()),
                inside,
            )
        })
        .collect();
    let open = |key: &str, count| (key.to_owned(), count);
    assert_eq!(
        told,
        [
            ("coffee", Some(2), 70.0, vec![open("true", 2)]),
            ("cake", Some(1), 50.0, Vec::new()),
        ]
    );
    // Fullest first where nobody says.
    let plain = pb::GroupByField {
        field_name: named("type"),
        min_doc_count: Some(2),
        ..pb::GroupByField::default()
    };
    let found: pb::GroupByFieldResult = grouped(&mut shops, GroupByType::Field, &plain).await;
    let keys = found
        .group_by_field_result_items
        .into_iter()
        .map(|item| item.key.expect("a key"));
    assert_eq!(keys.collect::<Vec<_>>(), ["coffee", "tea"]);
    shops.end().await;
}

fn range(begin: f64, end: f64) -> pb::Range {
    pb::Range {
        begin: Some(begin),
        end: Some(end),
    }
}

#[tokio::test]
async fn groups_by_ranges_filters_and_distances_are_in_the_order_of_the_request() {
    let mut shops = Shops::open().await;
    let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
    let prices = pb::GroupByRange {
        field_name: named("price"),
        ranges: vec![range(low, 20.0), range(20.0, 40.0), range(40.0, high)],
        sub_aggs: sum_of_prices(),
        sub_group_bys: None,
    };
    let found: pb::GroupByRangeResult = grouped(&mut shops, GroupByType::Range, &prices).await;
    let told = found.group_by_range_result_items.iter().map(|item| {
        let sum = sum(item.sub_aggs_result.as_ref());
        (
            item.range_from.expect("from"),
            item.range_to.expect("to"),
            item.row_count,
            sum,
        )
    });
    let expected = [
        (low, 20.0, Some(1), 10.0),
        (20.0, 40.0, Some(2), 50.0),
        (40.0, high, Some(2), 90.0),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);

    // From February on, in milliseconds.
    let days = pb::GroupByRange {
        field_name: named("day"),
        ranges: vec![range(1_612_137_600_000.0, high)],
        ..pb::GroupByRange::default()
    };
    let found: pb::GroupByRangeResult = grouped(&mut shops, GroupByType::Range, &days).await;
    assert_eq!(found.group_by_range_result_items[0].row_count, Some(3));

    let filters = pb::GroupByFilter {
        filters: vec![term("type", "tea"), term("type", "none"), term("tags", "wifi")],
        sub_aggs: sum_of_prices(),
        sub_group_bys: None,
    };
    let found: pb::GroupByFilterResult = grouped(&mut shops, GroupByType::Filter, &filters).await;
    let told = found.group_by_filter_result_items.iter();
    let told: Vec<_> = told
        .map(|item| (item.row_count, sum(item.sub_aggs_result.as_ref())))
        .collect();
    assert_eq!(told, [(Some(2), 30.0), (Some(0), 0.0), (Some(2), 30.0)]);

    let distances = pb::GroupByGeoDistance {
        field_name: named("place"),
        origin: Some(pb::GeoPoint {
            lat: Some(30.0),
            lon: Some(120.0),
        }),
        ranges: vec![range(0.0, 500.0), range(500.0, 2_000.0), range(2_000.0, high)],
        sub_aggs: None,
        sub_group_bys: None,
    };
    let found: pb::GroupByGeoDistanceResult = grouped(&mut shops, GroupByType::GeoDistance, &distances).await;
    let told = found
        .group_by_geo_distance_result_items
        .iter()
        .map(|item| (item.range_from, item.row_count));
    let expected = [
        (Some(0.0), Some(2)),
        (Some(500.0), Some(1)),
        (Some(2_000.0), Some(1)),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
    shops.end().await;
}

#[tokio::test]
async fn groups_by_steps_of_numbers_and_times() {
    let mut shops = Shops::open().await;
    let prices = |min_doc_count: Option<i64>| pb::GroupByHistogram {
        field_name: named("price"),
        interval: of(20_i64),
        field_range: Some(pb::FieldRange {
            min: of(0_i64),
            max: of(80_i64),
        }),
        min_doc_count,
        ..pb::GroupByHistogram::default()
    };
    for (least, expected) in [
        (None, vec![(0, 1), (20, 2), (40, 2), (60, 0)]),
        (Some(2), vec![(20, 2), (40, 2)]),
    ] {
        let found: pb::GroupByHistogramResult =
            grouped(&mut shops, GroupByType::Histogram, &prices(least)).await;
        let told = found.items.into_iter().map(|item| {
            let key = variant::decode(item.key.expect("a key")).expect("a variant");
            let Value::Integer(key) = key else {
                panic!("{key:?}");
            };
            (key, item.value.expect("a count"))
        });
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }

    let months = |time_zone: Option<&str>| pb::GroupByDateHistogram {
        field_name: named("day"),
        interval: Some(DateTimeValue {
            value: Some(1),
            unit: Some(DateTimeUnit::Month.into()),
        }),
        time_zone: time_zone.map(str::to_owned),
        sub_aggs: sum_of_prices(),
        ..pb::GroupByDateHistogram::default()
    };
    const HOUR: i64 = 3_600_000;
    for (zone, ahead) in [(None, 0), (Some("+08:00"), 8 * HOUR)] {
        let kind = GroupByType::DateHistogram;
        let found: pb::GroupByDateHistogramResult = grouped(&mut shops, kind, &months(zone)).await;
        let told = found.group_by_date_histogram_items.iter().map(|item| {
            let at = item.timestamp.expect("a time") + ahead;
            (
                at,
                item.row_count.expect("a count"),
                sum(item.sub_aggs_result.as_ref()),
            )
        });
        let expected = [
            (1_609_459_200_000, 2, 30.0),
            (1_612_137_600_000, 2, 70.0),
            (1_638_316_800_000, 1, 50.0),
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected, "{zone:?}");
    }
    shops.end().await;
}

#[tokio::test]
async fn groups_by_geohashes_have_corners() {
    let mut shops = Shops::open().await;
    let grid = pb::GroupByGeoGrid {
        field_name: named("place"),
        // Five characters.
        precision: Some(5),
        size: Some(10),
        sub_aggs: sum_of_prices(),
        sub_group_bys: None,
    };
    let found: pb::GroupByGeoGridResult = grouped(&mut shops, GroupByType::GeoGrid, &grid).await;
    let told: Vec<_> = found
        .group_by_geo_grid_result_items
        .iter()
        .map(|item| {
            (
                item.key.as_deref().expect("a key"),
                item.row_count,
                sum(item.sub_aggs_result.as_ref()),
            )
        })
        .collect();
    assert_eq!(told, [("wtm6d", Some(3), 60.0), ("wtw03", Some(1), 40.0)]);
    let corners = found.group_by_geo_grid_result_items[1]
        .geo_grid
        .as_ref()
        .expect("corners");
    let of = |point: &Option<pb::GeoPoint>| {
        let point = point.as_ref().expect("a corner");
        (point.lat(), point.lon())
    };
    let near = |(lat, lon): (f64, f64), (north, east): (f64, f64)| {
        (lat - north).abs() < 1e-6 && (lon - east).abs() < 1e-6
    };
    assert!(
        near(of(&corners.top_left), (31.025_390_6, 120.981_445_3)),
        "{corners:?}"
    );
    assert!(
        near(of(&corners.bottom_right), (30.981_445_3, 121.025_390_6)),
        "{corners:?}"
    );
    shops.end().await;
}

#[tokio::test]
async fn groups_of_several_keys_come_in_pages() {
    let mut shops = Shops::open().await;
    let of_field = |name: &str, order: Option<SortOrder>| {
        let sorter = order.map(|order| pb::GroupBySorter {
            group_key_sort: Some(pb::GroupKeySort {
                order: Some(order.into()),
            }),
            ..pb::GroupBySorter::default()
        });
        let body = pb::GroupByField {
            field_name: named(name),
            sort: sorter.map(|sorter| pb::GroupBySort {
                sorters: vec![sorter],
            }),
            ..pb::GroupByField::default()
        };
        grouping(name, GroupByType::Field, &body)
    };
    let page = |token: Option<String>| pb::GroupByComposite {
        sources: groupings(vec![
            of_field("type", Some(SortOrder::Desc)),
            of_field("open", None),
        ]),
        size: Some(2),
        sub_aggs: sum_of_prices(),
        next_token: token,
        ..pb::GroupByComposite::default()
    };
    let mut told = Vec::new();
    let mut token = None;
    loop {
        let found: pb::GroupByCompositeResult =
            grouped(&mut shops, GroupByType::Composite, &page(token)).await;
        assert_eq!(found.source_group_by_names, ["type", "open"]);
        for item in found.group_by_composite_result_items {
            let sum = sum(item.sub_aggs_result.as_ref());
            told.push((
                item.keys.join(","),
                item.is_null_keys,
                item.row_count.expect("a count"),
                sum,
            ));
        }
        token = found.next_token;
        if token.is_none() {
            break;
        }
    }
    let both = || vec![false, false];
    let expected = [
        ("tea,false".to_owned(), both(), 1, 20.0),
        ("tea,true".to_owned(), both(), 1, 10.0),
        ("coffee,true".to_owned(), both(), 2, 70.0),
        ("cake,".to_owned(), vec![false, true], 1, 50.0),
    ];
    assert_eq!(told, expected);
    shops.end().await;
}

/// The original refuses groups of nested objects within such groups.
#[tokio::test]
async fn groups_of_nested_objects_count_objects_and_have_such_groups_inside() {
    let mut shops = Shops::open().await;
    let by = |field: &str| pb::GroupByField {
        field_name: named(field),
        ..pb::GroupByField::default()
    };
    let sum = pb::SumAggregation {
        field_name: named("items.n"),
        missing: None,
    };
    let skus = pb::GroupByField {
        sub_aggs: figures(vec![figure("sum", AggregationType::Sum, &sum)]),
        sub_group_bys: groupings(vec![grouping("n", GroupByType::Field, &by("items.n"))]),
        ..by("items.sku")
    };
    let found: pb::GroupByFieldResult = grouped(&mut shops, GroupByType::Field, &skus).await;
    let told = found.group_by_field_result_items.iter().map(|item| {
        let inside = item.sub_group_bys_result.as_ref().expect("groups");
        let inside: pb::GroupByFieldResult = read(inside.group_by_results[0].group_by_result.as_ref());
        let inside = inside.group_by_field_result_items.into_iter();
        let mut numbers: Vec<String> = inside.filter_map(|item| item.key).collect();
        numbers.sort_unstable();
        (
            item.key.as_deref().expect("a key"),
            item.row_count,
            self::sum(item.sub_aggs_result.as_ref()),
            numbers.join(","),
        )
    });
    let expected = [
        ("x", Some(2), 10.0, "1,9".to_owned()),
        ("y", Some(2), 7.0, "2,5".to_owned()),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
    shops.end().await;
}

#[tokio::test]
async fn what_cant_be_aggregated_is_refused() {
    let mut shops = Shops::open().await;
    let text = pb::MaxAggregation {
        field_name: named("name"),
        missing: None,
    };
    let search = |aggs| SearchQuery { aggs, ..all() };
    let said = shops
        .refused(search(figures(vec![figure("max", AggregationType::Max, &text)])))
        .await;
    assert!(said.contains("`name` is TEXT"), "{said}");
    let filtered = SearchQuery {
        filter: Some(pb::SearchFilter {
            query: Some(term("type", "tea")),
        }),
        ..search(sum_of_prices())
    };
    let said = shops.refused(filtered).await;
    assert!(said.contains("filter behind the query"), "{said}");
    let malformed = SearchQuery {
        aggs: figures(vec![Aggregation {
            body: Some(Bytes::from_static(b"\x0a\x05a")),
            ..figure("sum", AggregationType::Sum, &text)
        }]),
        ..all()
    };
    let said = shops.refused(malformed).await;
    assert_eq!(said, "Parse sum aggregation failed.");
    let knn = query(pb::QueryType::KnnVector, &pb::KnnVectorQuery::default());
    let inside = pb::GroupByFilter {
        filters: vec![knn],
        ..pb::GroupByFilter::default()
    };
    let search = SearchQuery {
        group_bys: groupings(vec![grouping("groups", GroupByType::Filter, &inside)]),
        ..all()
    };
    let said = shops.refused(search).await;
    assert!(said.contains("knn"), "{said}");
    shops.end().await;
}

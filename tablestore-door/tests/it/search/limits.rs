//! Limits of searches: what is asked for is done up to there, and refused with the limit's name and value above.

use souk_tablestore::messages::{
    self as pb, AggregationType, Aggregations, GroupByType, GroupBys, QueryType, SearchQuery,
};

use super::aggregations::{figure, grouping, read};
use super::{Shops, all, cell, everything, finding, named, of, query, sorted, term};

fn figures(aggs: Vec<pb::Aggregation>) -> SearchQuery {
    SearchQuery {
        aggs: Some(Aggregations { aggs }),
        ..all()
    }
}

fn groups(group_bys: Vec<pb::GroupBy>) -> SearchQuery {
    SearchQuery {
        group_bys: Some(GroupBys { group_bys }),
        ..all()
    }
}

fn one_group(kind: GroupByType, body: &impl prost::Message) -> SearchQuery {
    groups(vec![grouping("groups", kind, body)])
}

fn highlight(parameter: pb::HighlightParameter) -> SearchQuery {
    let parameter = pb::HighlightParameter {
        field_name: named("name"),
        ..parameter
    };
    SearchQuery {
        highlight: Some(pb::Highlight {
            highlight_parameters: vec![parameter],
            highlight_encoder: None,
        }),
        ..finding(term("name", "tea"))
    }
}

fn wildcard(chars: usize) -> SearchQuery {
    let body = pb::WildcardQuery {
        field_name: named("type"),
        value: Some("?".repeat(chars)),
        weight: None,
    };
    finding(query(QueryType::Wildcard, &body))
}

fn prefix(bytes: usize) -> SearchQuery {
    let body = pb::PrefixQuery {
        field_name: named("type"),
        prefix: Some("x".repeat(bytes)),
        weight: None,
    };
    finding(query(QueryType::Prefix, &body))
}

fn suffix(bytes: usize) -> SearchQuery {
    let body = pb::SuffixQuery {
        field_name: named("type"),
        suffix: Some("x".repeat(bytes)),
        weight: None,
    };
    finding(query(QueryType::Suffix, &body))
}

fn terms(count: usize) -> SearchQuery {
    let body = pb::TermsQuery {
        field_name: named("type"),
        terms: (0..count)
            .filter_map(|nth| of(nth.to_string().as_str()))
            .collect(),
        weight: None,
    };
    finding(query(QueryType::Terms, &body))
}

fn text(bytes: usize) -> SearchQuery {
    let body = pb::MatchQuery {
        field_name: named("name"),
        text: Some("x".repeat(bytes)),
        ..pb::MatchQuery::default()
    };
    finding(query(QueryType::Match, &body))
}

fn slop(slop: usize) -> SearchQuery {
    let body = pb::MatchPhraseQuery {
        field_name: named("name"),
        text: named("tea house"),
        weight: None,
        slop: i32::try_from(slop).ok(),
    };
    finding(query(QueryType::MatchPhrase, &body))
}

fn functions(count: usize) -> SearchQuery {
    let body = pb::FunctionsScoreQuery {
        query: Some(everything()),
        functions: vec![pb::Function::default(); count],
        ..pb::FunctionsScoreQuery::default()
    };
    finding(query(QueryType::FunctionsScore, &body))
}

fn inner_hits(limit: usize) -> SearchQuery {
    let body = pb::NestedQuery {
        path: named("items"),
        query: Some(everything()),
        score_mode: None,
        weight: None,
        inner_hits: Some(pb::InnerHits {
            limit: i32::try_from(limit).ok(),
            ..pb::InnerHits::default()
        }),
    };
    finding(query(QueryType::Nested, &body))
}

fn fragments(count: usize) -> SearchQuery {
    highlight(pb::HighlightParameter {
        number_of_fragments: i32::try_from(count).ok(),
        ..pb::HighlightParameter::default()
    })
}

fn fragment_size(chars: usize) -> SearchQuery {
    highlight(pb::HighlightParameter {
        fragment_size: i32::try_from(chars).ok(),
        ..pb::HighlightParameter::default()
    })
}

fn points(count: usize) -> SearchQuery {
    let sort = pb::GeoDistanceSort {
        field_name: named("place"),
        points: vec!["30.0,120.0".to_owned(); count],
        ..pb::GeoDistanceSort::default()
    };
    SearchQuery {
        sort: sorted(pb::Sorter {
            geo_distance_sort: Some(sort),
            ..pb::Sorter::default()
        }),
        ..all()
    }
}

fn sums(count: usize) -> SearchQuery {
    let sum = pb::SumAggregation {
        field_name: named("price"),
        missing: None,
    };
    let sums = (0..count).map(|nth| figure(&format!("sum{nth}"), AggregationType::Sum, &sum));
    figures(sums.collect())
}

fn top_rows(limit: usize) -> SearchQuery {
    let body = pb::TopRowsAggregation {
        limit: i32::try_from(limit).ok(),
        sort: None,
    };
    figures(vec![figure("top", AggregationType::TopRows, &body)])
}

fn percentiles(count: usize) -> SearchQuery {
    let body = pb::PercentilesAggregation {
        field_name: named("price"),
        percentiles: (0..count).map(|nth| nth as f64).collect(),
        missing: None,
    };
    figures(vec![figure("percentiles", AggregationType::Percentiles, &body)])
}

fn groupings(count: usize) -> SearchQuery {
    let body = pb::GroupByFilter {
        filters: vec![everything()],
        ..pb::GroupByFilter::default()
    };
    let groupings = (0..count).map(|nth| grouping(&format!("group{nth}"), GroupByType::Filter, &body));
    groups(groupings.collect())
}

/// Groups in groups.
fn levels(count: usize) -> SearchQuery {
    let mut inside = None;
    for _ in 0..count {
        let body = pb::GroupByFilter {
            filters: vec![everything()],
            sub_aggs: None,
            sub_group_bys: inside,
        };
        inside = Some(GroupBys {
            group_bys: vec![grouping("group", GroupByType::Filter, &body)],
        });
    }
    SearchQuery {
        group_bys: inside,
        ..all()
    }
}

fn filters(count: usize) -> SearchQuery {
    let body = pb::GroupByFilter {
        filters: vec![everything(); count],
        ..pb::GroupByFilter::default()
    };
    one_group(GroupByType::Filter, &body)
}

fn range() -> pb::Range {
    pb::Range {
        begin: Some(0.0),
        end: Some(10.0),
    }
}

fn ranges(count: usize) -> SearchQuery {
    let body = pb::GroupByRange {
        field_name: named("price"),
        ranges: vec![range(); count],
        ..pb::GroupByRange::default()
    };
    one_group(GroupByType::Range, &body)
}

fn distances(count: usize) -> SearchQuery {
    let body = pb::GroupByGeoDistance {
        field_name: named("place"),
        origin: Some(pb::GeoPoint {
            lat: Some(30.0),
            lon: Some(120.0),
        }),
        ranges: vec![range(); count],
        ..pb::GroupByGeoDistance::default()
    };
    one_group(GroupByType::GeoDistance, &body)
}

fn by_field(size: usize) -> SearchQuery {
    let body = pb::GroupByField {
        field_name: named("type"),
        size: i32::try_from(size).ok(),
        ..pb::GroupByField::default()
    };
    one_group(GroupByType::Field, &body)
}

fn by_grid(size: usize) -> SearchQuery {
    let body = pb::GroupByGeoGrid {
        field_name: named("place"),
        precision: Some(5),
        size: i32::try_from(size).ok(),
        ..pb::GroupByGeoGrid::default()
    };
    one_group(GroupByType::GeoGrid, &body)
}

fn composite(sources: usize, size: usize) -> SearchQuery {
    let source = pb::GroupByField {
        field_name: named("type"),
        ..pb::GroupByField::default()
    };
    let sources = (0..sources).map(|nth| grouping(&format!("key{nth}"), GroupByType::Field, &source));
    let body = pb::GroupByComposite {
        sources: Some(GroupBys {
            group_bys: sources.collect(),
        }),
        size: i32::try_from(size).ok(),
        ..pb::GroupByComposite::default()
    };
    one_group(GroupByType::Composite, &body)
}

/// What asks for so much.
type Asking = fn(usize) -> SearchQuery;

#[tokio::test]
async fn a_search_asks_for_as_much_as_its_limits_allow() {
    let limits: [(Asking, usize, &str); 23] = [
        (wildcard, 32, "MAX_WILDCARD_CHARS"),
        (prefix, 1_000, "MAX_AFFIX_BYTES"),
        (suffix, 1_000, "MAX_AFFIX_BYTES"),
        (terms, 1_024, "MAX_TERMS"),
        (text, 4_096, "MAX_MATCH_TEXT_BYTES"),
        (slop, 256, "MAX_SLOP"),
        (functions, 32, "MAX_SCORE_FUNCTIONS"),
        (inner_hits, 100, "MAX_INNER_HITS"),
        (fragments, 500, "MAX_HIGHLIGHT_FRAGMENTS"),
        (fragment_size, 10_000, "MAX_FRAGMENT_CHARS"),
        (points, 100, "MAX_SORT_POINTS"),
        (sums, 10, "MAX_FIGURES"),
        (top_rows, 100, "MAX_TOP_HITS"),
        (percentiles, 20, "MAX_PERCENTAGES"),
        (groupings, 5, "MAX_GROUPINGS"),
        (levels, 3, "MAX_AGGREGATION_LEVELS"),
        (filters, 100, "MAX_RANGES"),
        (ranges, 100, "MAX_RANGES"),
        (distances, 100, "MAX_RANGES"),
        (by_field, 2_000, "MAX_TERMS_GROUPS"),
        (by_grid, 10_000, "MAX_CELL_GROUPS"),
        (|sources| composite(sources, 10), 8, "MAX_COMPOSITE_SOURCES"),
        (|size| composite(1, size), 2_000, "MAX_TERMS_GROUPS"),
    ];
    let mut shops = Shops::open().await;
    for (asking, most, name) in limits {
        let answered = shops.search(asking(most)).await;
        assert!(answered.is_ok(), "{most} of {name}: {answered:?}");
        let said = shops.refused(asking(most + 1)).await;
        let limit = format!("{} is above the limit {name} of {most}", most + 1);
        assert!(said.contains(&limit), "{name}: {said}");
    }
    let queries = |count| {
        let body = pb::DisMaxQuery {
            queries: vec![everything(); count],
            ..pb::DisMaxQuery::default()
        };
        finding(query(QueryType::DisMax, &body))
    };
    // With the one around them.
    assert!(shops.search(queries(1_023)).await.is_ok());
    assert_eq!(
        shops.refused(queries(1_024)).await,
        "The count of queries, aggregations and group bys exceeds the max: 1024."
    );
    let from = |offset| SearchQuery {
        offset: Some(offset),
        ..all()
    };
    let beyond = shops.search(from(100_000)).await.expect("an answer");
    assert!(beyond.rows.is_empty() && beyond.next_token.is_none());
    assert_eq!(
        shops.refused(from(100_001)).await,
        "offset is 100001, which exceeds 100000: use the tokens of pages."
    );
    shops.end().await;
}

#[tokio::test]
async fn ten_hits_and_ten_groups_come_where_nobody_says_how_many() {
    let mut shops = Shops::open().await;
    for nth in 0..12_i64 {
        let of_type = cell("type", format!("t{nth:02}").as_str());
        shops.put(&format!("k{nth:02}"), vec![of_type]).await;
    }
    assert_eq!(shops.search(all()).await.expect("an answer").rows.len(), 10);
    // Twelve, and those of tea, coffee and cake.
    for (size, groups) in [(None, 10), (Some(12), 12), (Some(2_000), 15)] {
        let search = SearchQuery {
            limit: Some(0),
            ..match size {
                Some(size) => by_field(size),
                None => one_group(
                    GroupByType::Field,
                    &pb::GroupByField {
                        field_name: named("type"),
                        ..pb::GroupByField::default()
                    },
                ),
            }
        };
        let found = shops.search(search).await.expect("an answer");
        let told: pb::GroupBysResult = read(found.group_bys.as_ref());
        let told: pb::GroupByFieldResult = read(told.group_by_results[0].group_by_result.as_ref());
        assert_eq!(told.group_by_field_result_items.len(), groups, "{size:?}");
    }
    shops.end().await;
}

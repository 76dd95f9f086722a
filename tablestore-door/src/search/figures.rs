//! Figures and groups that are answered.

use std::collections::HashMap;

use bytes::Bytes;
use prost::Message;
use souk_engine::index::geo::geohash;
use souk_engine::index::{AggregationResult, Datum, Group};
use souk_tablestore::messages::{
    self as pb, AggregationResult as Figure, AggregationType, AggregationsResult, AvgAggregationResult,
    CountAggregationResult, DistinctCountAggregationResult, GeoGrid, GroupByCompositeResult,
    GroupByCompositeResultItem, GroupByDateHistogramItem, GroupByDateHistogramResult, GroupByFieldResult,
    GroupByFieldResultItem, GroupByFilterResult, GroupByFilterResultItem, GroupByGeoDistanceResult,
    GroupByGeoDistanceResultItem, GroupByGeoGridResult, GroupByGeoGridResultItem, GroupByHistogramItem,
    GroupByHistogramResult, GroupByRangeResult, GroupByRangeResultItem, GroupByResult, GroupByType,
    GroupBysResult, MaxAggregationResult, MinAggregationResult, PercentilesAggregationItem,
    PercentilesAggregationResult, SumAggregationResult, TopRowsAggregationResult,
};
use souk_tablestore::{
    AggregationBody, AggregationNode, GroupByBody, GroupByNode, ServiceError, Value, variant,
};

use super::fields::MILLISECOND;
use crate::error::internal;

/// The answers to the aggregations of one level.
pub(super) type Level = (AggregationsResult, GroupBysResult);

/// Rows in plainbuffer, by the keys of their documents.
pub(super) type TopRows = HashMap<Vec<u8>, Bytes>;

/// The index has answered something else than it was asked.
#[derive(Debug, thiserror::Error)]
#[error("an aggregation was answered by another")]
struct Mismatch;

/// Adds the keys of the documents whose rows are to be shown.
pub(super) fn top_keys<'r>(results: &'r [(String, AggregationResult)], keys: &mut Vec<&'r [u8]>) {
    for (_, result) in results {
        match result {
            AggregationResult::TopHits(hits) => keys.extend(hits.iter().map(|hit| hit.key.as_slice())),
            AggregationResult::Groups { groups, .. } => {
                for group in groups {
                    top_keys(&group.aggregations, keys);
                }
            }
            _ => {}
        }
    }
}

/// Tells the answers to the aggregations of one level, which are in the order of the request: figures, then groups.
///
/// # Errors
/// When they are answers to something else.
pub(super) fn level(
    figures: &[AggregationNode],
    groups: &[GroupByNode],
    results: Vec<(String, AggregationResult)>,
    rows: &TopRows,
) -> Result<Level, ServiceError> {
    let mut results = results.into_iter().map(|(_, result)| result);
    let mut next = || results.next().ok_or_else(mismatch);
    let figures = figures
        .iter()
        .map(|node| figure(node, next()?, rows))
        .collect::<Result<_, _>>()?;
    let groups = groups
        .iter()
        .map(|node| grouped(node, next()?, rows))
        .collect::<Result<_, _>>()?;
    Ok((
        AggregationsResult { agg_results: figures },
        GroupBysResult {
            group_by_results: groups,
        },
    ))
}

fn mismatch() -> ServiceError {
    internal(&Mismatch)
}

fn figure(node: &AggregationNode, result: AggregationResult, rows: &TopRows) -> Result<Figure, ServiceError> {
    let bytes = |message: Vec<u8>| Some(Bytes::from(message));
    let (kind, body) = match (&node.body, result) {
        (AggregationBody::TopRows(_), AggregationResult::TopHits(hits)) => {
            // A row that was deleted since the index saw it isn't there.
            let rows = hits.iter().filter_map(|hit| rows.get(&hit.key).cloned());
            let answer = TopRowsAggregationResult { rows: rows.collect() };
            (AggregationType::TopRows, bytes(answer.encode_to_vec()))
        }
        (AggregationBody::Percentiles(asked), AggregationResult::Percentiles { values, .. }) => {
            let items = asked.percentiles.iter().zip(&values);
            let items = items.map(|(percentage, value)| PercentilesAggregationItem {
                key: Some(*percentage),
                value: Some(variant::encode(&match value {
                    Datum::Date(nanos) => Value::Integer(milliseconds(*nanos)),
                    value => Value::Double(double(value).unwrap_or_default()),
                })),
            });
            let answer = PercentilesAggregationResult {
                percentiles_aggregation_items: items.collect(),
            };
            (AggregationType::Percentiles, bytes(answer.encode_to_vec()))
        }
        (asked, AggregationResult::Value(Some(value)) | AggregationResult::Estimate { value, .. }) => {
            of_value(asked, Some(&value))?
        }
        (asked, AggregationResult::Value(None)) => of_value(asked, None)?,
        _ => return Err(mismatch()),
    };
    Ok(Figure {
        name: Some(node.name.to_string()),
        r#type: Some(kind.into()),
        agg_result: body,
    })
}

/// A figure of one value; none of no rows, but of sums and counts.
fn of_value(
    asked: &AggregationBody,
    value: Option<&Datum>,
) -> Result<(AggregationType, Option<Bytes>), ServiceError> {
    let number = value.and_then(double);
    let count = match value {
        Some(Datum::Long(count)) => *count,
        _ => 0,
    };
    let (kind, bytes) = match asked {
        AggregationBody::Avg(_) => (
            AggregationType::Avg,
            AvgAggregationResult { value: number }.encode_to_vec(),
        ),
        AggregationBody::Max(_) => (
            AggregationType::Max,
            MaxAggregationResult { value: number }.encode_to_vec(),
        ),
        AggregationBody::Min(_) => (
            AggregationType::Min,
            MinAggregationResult { value: number }.encode_to_vec(),
        ),
        AggregationBody::Sum(_) => {
            let value = Some(number.unwrap_or_default());
            (
                AggregationType::Sum,
                SumAggregationResult { value }.encode_to_vec(),
            )
        }
        AggregationBody::Count(_) => {
            let value = Some(count);
            (
                AggregationType::Count,
                CountAggregationResult { value }.encode_to_vec(),
            )
        }
        AggregationBody::DistinctCount(_) => {
            let value = Some(count);
            let answer = DistinctCountAggregationResult { value };
            (AggregationType::DistinctCount, answer.encode_to_vec())
        }
        AggregationBody::TopRows(_) | AggregationBody::Percentiles(_) => return Err(mismatch()),
    };
    Ok((kind, Some(bytes.into())))
}

/// What a group is told with, whatever it is grouped by.
struct Told {
    keys: Vec<Option<Datum>>,
    rows: Option<i64>,
    figures: Option<AggregationsResult>,
    groups: Option<GroupBysResult>,
}

impl Told {
    fn key(&self) -> Option<&Datum> {
        self.keys.first().and_then(Option::as_ref)
    }
}

fn grouped(
    node: &GroupByNode,
    result: AggregationResult,
    rows: &TopRows,
) -> Result<GroupByResult, ServiceError> {
    let AggregationResult::Groups {
        groups,
        next_page_token,
        ..
    } = result
    else {
        return Err(mismatch());
    };
    let told = |group: Group| -> Result<Told, ServiceError> {
        let (figures, groups) = level(&node.aggregations, &node.group_bys, group.aggregations, rows)?;
        Ok(Told {
            keys: group.keys,
            rows: Some(i64::try_from(group.count).unwrap_or(i64::MAX)),
            figures: Some(figures).filter(|figures| !figures.agg_results.is_empty()),
            groups: Some(groups).filter(|groups| !groups.group_by_results.is_empty()),
        })
    };
    let told: Vec<Told> = groups.into_iter().map(told).collect::<Result<_, _>>()?;
    let (kind, bytes) = match &node.body {
        GroupByBody::Field(_) => (GroupByType::Field, of_field(told).encode_to_vec()),
        GroupByBody::Range(body) => (GroupByType::Range, of_ranges(&body.ranges, told).encode_to_vec()),
        GroupByBody::Filter(_) => (GroupByType::Filter, of_filters(told).encode_to_vec()),
        GroupByBody::GeoDistance(body) => (
            GroupByType::GeoDistance,
            of_distances(&body.ranges, told).encode_to_vec(),
        ),
        GroupByBody::Histogram(_) => (GroupByType::Histogram, of_histogram(told).encode_to_vec()),
        GroupByBody::DateHistogram(_) => (GroupByType::DateHistogram, of_dates(told).encode_to_vec()),
        GroupByBody::GeoGrid(_) => (GroupByType::GeoGrid, of_cells(told).encode_to_vec()),
        GroupByBody::Composite { sources, .. } => {
            let names = sources.iter().map(|source| source.name.to_string()).collect();
            (
                GroupByType::Composite,
                of_keys(names, told, next_page_token).encode_to_vec(),
            )
        }
    };
    Ok(GroupByResult {
        name: Some(node.name.to_string()),
        r#type: Some(kind.into()),
        group_by_result: Some(bytes.into()),
    })
}

fn of_field(told: Vec<Told>) -> GroupByFieldResult {
    let items = told.into_iter().map(|told| GroupByFieldResultItem {
        key: told.key().map(text),
        row_count: told.rows,
        sub_aggs_result: told.figures,
        sub_group_bys_result: told.groups,
    });
    GroupByFieldResult {
        group_by_field_result_items: items.collect(),
    }
}

fn of_ranges(ranges: &[pb::Range], told: Vec<Told>) -> GroupByRangeResult {
    let items = ranges
        .iter()
        .zip(told)
        .map(|(range, told)| GroupByRangeResultItem {
            range_from: Some(range.begin.unwrap_or(f64::NEG_INFINITY)),
            range_to: Some(range.end.unwrap_or(f64::INFINITY)),
            row_count: told.rows,
            sub_aggs_result: told.figures,
            sub_group_bys_result: told.groups,
        });
    GroupByRangeResult {
        group_by_range_result_items: items.collect(),
    }
}

fn of_filters(told: Vec<Told>) -> GroupByFilterResult {
    let items = told.into_iter().map(|told| GroupByFilterResultItem {
        row_count: told.rows,
        sub_aggs_result: told.figures,
        sub_group_bys_result: told.groups,
    });
    GroupByFilterResult {
        group_by_filter_result_items: items.collect(),
    }
}

fn of_distances(ranges: &[pb::Range], told: Vec<Told>) -> GroupByGeoDistanceResult {
    let items = ranges
        .iter()
        .zip(told)
        .map(|(range, told)| GroupByGeoDistanceResultItem {
            range_from: Some(range.begin.unwrap_or(f64::NEG_INFINITY)),
            range_to: Some(range.end.unwrap_or(f64::INFINITY)),
            row_count: told.rows,
            sub_aggs_result: told.figures,
            sub_group_bys_result: told.groups,
        });
    GroupByGeoDistanceResult {
        group_by_geo_distance_result_items: items.collect(),
    }
}

fn of_histogram(told: Vec<Told>) -> GroupByHistogramResult {
    let items = told.into_iter().map(|told| {
        let key = match told.key() {
            Some(Datum::Long(number)) => Value::Integer(*number),
            other => Value::Double(other.and_then(double).unwrap_or_default()),
        };
        GroupByHistogramItem {
            key: Some(variant::encode(&key)),
            value: told.rows,
            sub_aggs_result: told.figures,
            sub_group_bys_result: told.groups,
        }
    });
    GroupByHistogramResult {
        items: items.collect(),
    }
}

fn of_dates(told: Vec<Told>) -> GroupByDateHistogramResult {
    let items = told.into_iter().map(|told| GroupByDateHistogramItem {
        timestamp: match told.key() {
            Some(Datum::Date(nanos)) => Some(milliseconds(*nanos)),
            _ => None,
        },
        row_count: told.rows,
        sub_aggs_result: told.figures,
        sub_group_bys_result: told.groups,
    });
    GroupByDateHistogramResult {
        group_by_date_histogram_items: items.collect(),
    }
}

fn of_cells(told: Vec<Told>) -> GroupByGeoGridResult {
    let items = told.into_iter().map(|told| {
        let key = told.key().map(text).unwrap_or_default();
        let corner = |lat, lon| {
            Some(pb::GeoPoint {
                lat: Some(lat),
                lon: Some(lon),
            })
        };
        let grid = geohash::cell(&key).map(|cell| GeoGrid {
            top_left: corner(cell.north, cell.west),
            bottom_right: corner(cell.south, cell.east),
        });
        GroupByGeoGridResultItem {
            key: Some(key),
            geo_grid: grid,
            row_count: told.rows,
            sub_aggs_result: told.figures,
            sub_group_bys_result: told.groups,
        }
    });
    GroupByGeoGridResult {
        group_by_geo_grid_result_items: items.collect(),
    }
}

fn of_keys(names: Vec<String>, told: Vec<Told>, next_token: Option<String>) -> GroupByCompositeResult {
    let items = told.into_iter().map(|told| GroupByCompositeResultItem {
        keys: told
            .keys
            .iter()
            .map(|key| key.as_ref().map(text).unwrap_or_default())
            .collect(),
        is_null_keys: told.keys.iter().map(Option::is_none).collect(),
        row_count: told.rows,
        sub_aggs_result: told.figures,
        sub_group_bys_result: told.groups,
    });
    GroupByCompositeResult {
        group_by_composite_result_items: items.collect(),
        source_group_by_names: names,
        next_token,
    }
}

/// A key of a group as text; of times their milliseconds.
fn text(datum: &Datum) -> String {
    match datum {
        Datum::Long(number) => number.to_string(),
        // With a point, as Java writes it: a number of one type isn't taken for one of the other.
        Datum::Double(number) => format!("{number:?}"),
        Datum::Boolean(truth) => truth.to_string(),
        Datum::Date(nanos) => milliseconds(*nanos).to_string(),
        Datum::String(text) => text.clone(),
        Datum::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

fn double(datum: &Datum) -> Option<f64> {
    match datum {
        Datum::Long(number) => Some(*number as f64),
        Datum::Double(number) => Some(*number),
        Datum::Date(nanos) => Some(milliseconds(*nanos) as f64),
        Datum::Boolean(_) | Datum::String(_) | Datum::Bytes(_) => None,
    }
}

/// Rounded down, as times before 1970 are, too.
fn milliseconds(nanos: i64) -> i64 {
    nanos.div_euclid(MILLISECOND)
}

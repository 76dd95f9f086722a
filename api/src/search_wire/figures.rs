//! The results of aggregations, on the wire.

use std::collections::BTreeMap;

use souk_engine::Result;
use souk_index::{AggregationResult, Datum, Group};
use souk_proto::search::v1::{self as pb, aggregation_result::Kind};
use souk_proto::r#type::v1::{Value, value};

use crate::wire::{point_to_wire, signed, time_to_wire};

/// The answers to aggregations, by name. `id_of` gives the id behind a document's key.
///
/// # Errors
/// Those of `id_of`.
pub(crate) fn aggregations(
    results: Vec<(String, AggregationResult)>,
    id_of: &dyn Fn(&[u8]) -> Result<String>,
) -> Result<BTreeMap<String, pb::AggregationResult>> {
    results
        .into_iter()
        .map(|(name, result)| Ok((name, aggregation(result, id_of)?)))
        .collect()
}

fn aggregation(
    result: AggregationResult,
    id_of: &dyn Fn(&[u8]) -> Result<String>,
) -> Result<pb::AggregationResult> {
    let kind = match result {
        AggregationResult::Value(figure) => Kind::Value(pb::ValueResult {
            value: figure.map(datum),
            error_bound: 0.0,
        }),
        AggregationResult::Estimate { value, error_bound } => Kind::Value(pb::ValueResult {
            value: Some(datum(value)),
            error_bound,
        }),
        AggregationResult::Stats {
            count,
            sum,
            avg,
            min,
            max,
        } => Kind::Stats(pb::StatsResult {
            count: signed(count),
            sum: sum.map(datum),
            avg: avg.as_ref().and_then(double),
            min: min.map(datum),
            max: max.map(datum),
        }),
        AggregationResult::Percentiles {
            values,
            count,
            rank_error_bound,
        } => Kind::Percentiles(pb::PercentilesResult {
            values: values.iter().filter_map(double).collect(),
            typed_values: values.into_iter().map(datum).collect(),
            count: signed(count),
            rank_error_bound,
        }),
        AggregationResult::Centroid { point, count } => Kind::GeoCentroid(pb::GeoCentroidResult {
            point: point.map(point_to_wire),
            count: signed(count),
        }),
        AggregationResult::TopHits(hits) => Kind::TopHits(pb::TopHitsResult {
            ids: hits.iter().map(|hit| id_of(&hit.key)).collect::<Result<_>>()?,
        }),
        AggregationResult::Groups {
            groups,
            other_count,
            count_error_bound,
            next_page_token,
        } => Kind::Groups(pb::GroupsResult {
            groups: groups
                .into_iter()
                .map(|each| group(each, id_of))
                .collect::<Result<_>>()?,
            other_count: signed(other_count),
            count_error_bound: signed(count_error_bound),
            next_page_token: next_page_token.unwrap_or_default(),
        }),
    };
    Ok(pb::AggregationResult { kind: Some(kind) })
}

fn group(group: Group, id_of: &dyn Fn(&[u8]) -> Result<String>) -> Result<pb::Group> {
    let keys = group.keys.into_iter();
    Ok(pb::Group {
        keys: keys.map(|key| key.map_or(Value { kind: None }, datum)).collect(),
        count: signed(group.count),
        aggregations: aggregations(group.aggregations, id_of)?,
    })
}

fn datum(datum: Datum) -> Value {
    Value {
        kind: Some(match datum {
            Datum::Long(number) => value::Kind::IntValue(number),
            Datum::Double(number) => value::Kind::DoubleValue(number),
            Datum::Boolean(flag) => value::Kind::BoolValue(flag),
            Datum::Date(nanos) => value::Kind::TimeValue(time_to_wire(nanos)),
            Datum::String(text) => value::Kind::StringValue(text),
            Datum::Bytes(bytes) => value::Kind::BytesValue(bytes.into()),
        }),
    }
}

/// A value as a double; of times, in seconds since the Unix epoch.
fn double(datum: &Datum) -> Option<f64> {
    match datum {
        Datum::Double(number) => Some(*number),
        Datum::Long(number) => Some(*number as f64),
        Datum::Date(nanos) => Some(*nanos as f64 / 1e9),
        Datum::Boolean(_) | Datum::String(_) | Datum::Bytes(_) => None,
    }
}

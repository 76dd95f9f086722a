//! Aggregations: what comes back.

use std::collections::BTreeMap;

use souk_index::{AggregationResult, Datum, Group};
use souk_proto::search::v1::{self as pb, aggregation_result::Kind};
use souk_proto::r#type::v1::{Value, value};

use super::result::count;
use crate::wire::time_to_wire;

/// The answers to aggregations, by name.
pub(crate) fn aggregations(
    results: Vec<(String, AggregationResult)>,
) -> BTreeMap<String, pb::AggregationResult> {
    results
        .into_iter()
        .map(|(name, result)| (name, aggregation(result)))
        .collect()
}

fn aggregation(result: AggregationResult) -> pb::AggregationResult {
    let kind = match result {
        AggregationResult::Value(figure) => Kind::Value(pb::ValueResult {
            value: figure.map(datum),
            error_bound: 0.0,
        }),
        AggregationResult::Stats {
            count: values,
            sum,
            avg,
            min,
            max,
        } => Kind::Stats(pb::StatsResult {
            count: count(values),
            sum: sum.map(datum),
            avg: avg.as_ref().and_then(mean),
            min: min.map(datum),
            max: max.map(datum),
        }),
        AggregationResult::Groups { groups, other_count } => Kind::Groups(pb::GroupsResult {
            groups: groups.into_iter().map(group).collect(),
            other_count: count(other_count),
            count_error_bound: 0,
            next_page_token: String::new(),
        }),
    };
    pb::AggregationResult { kind: Some(kind) }
}

fn group(group: Group) -> pb::Group {
    pb::Group {
        keys: vec![datum(group.key)],
        count: count(group.count),
        aggregations: aggregations(group.aggregations),
    }
}

fn datum(datum: Datum) -> Value {
    Value {
        kind: Some(match datum {
            Datum::Long(number) => value::Kind::IntValue(number),
            Datum::Double(number) => value::Kind::DoubleValue(number),
            Datum::Boolean(flag) => value::Kind::BoolValue(flag),
            Datum::Date(nanos) => value::Kind::TimeValue(time_to_wire(nanos)),
            Datum::String(text) => value::Kind::StringValue(text),
        }),
    }
}

/// A mean as a double; of times, in seconds since the Unix epoch.
fn mean(datum: &Datum) -> Option<f64> {
    match datum {
        Datum::Double(number) => Some(*number),
        Datum::Long(number) => Some(*number as f64),
        Datum::Date(nanos) => Some(*nanos as f64 / 1e9),
        Datum::Boolean(_) | Datum::String(_) => None,
    }
}

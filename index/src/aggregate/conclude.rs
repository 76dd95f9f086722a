//! From what was gathered to results.

use std::cmp::Ordering;

use tantivy::columnar::MonotonicallyMappableToU64;

use super::check::{Node, Shape};
use super::column::{Kind, Raw};
use super::gathered::{Gathered, Members, Numbers};
use super::{AggregationResult, Datum, Figure, Group, GroupOrder, GroupOrderBy};

pub(super) fn conclude(nodes: &[Node], gathered: Vec<Gathered>) -> Vec<(String, AggregationResult)> {
    nodes
        .iter()
        .zip(gathered)
        .map(|(node, gathered)| (node.name.clone(), result(node, gathered)))
        .collect()
}

fn result(node: &Node, gathered: Gathered) -> AggregationResult {
    match gathered {
        Gathered::Figure(numbers) => figure(&numbers, node),
        Gathered::Distinct(different) => {
            AggregationResult::Value(Some(Datum::Long(whole(different.len() as u64))))
        }
        Gathered::Groups(groups) => match &node.shape {
            Shape::Terms {
                size,
                min_doc_count,
                order,
            } => shown(node, groups, *size, *min_doc_count, order),
            Shape::Cells { size } => shown(node, groups, *size, 1, &[]),
            Shape::Figure(_) => shown(node, groups, 0, 1, &[]),
        },
    }
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn figure(numbers: &Numbers, node: &Node) -> AggregationResult {
    let kind = node.kind;
    let some = numbers.count > 0;
    let sum = || match kind {
        Kind::Double => Datum::Double(numbers.double),
        _ => i64::try_from(numbers.whole).map_or(Datum::Double(numbers.whole as f64), Datum::Long),
    };
    let avg = || match kind {
        Kind::Double => Datum::Double(numbers.double / numbers.count as f64),
        // A mean of 64-bit numbers is one.
        Kind::Date => Datum::Date(
            i64::try_from(numbers.whole.div_euclid(i128::from(numbers.count))).unwrap_or(i64::MAX),
        ),
        _ => Datum::Double(numbers.whole as f64 / numbers.count as f64),
    };
    let extreme = |number: u64| Raw::Number(number).datum(kind);
    let min = numbers.extremes.map(|(lowest, _)| extreme(lowest));
    let max = numbers.extremes.map(|(_, highest)| extreme(highest));
    let Shape::Figure(figure) = &node.shape else {
        return AggregationResult::Value(None);
    };
    AggregationResult::Value(match figure {
        Figure::Count | Figure::DistinctCount => Some(Datum::Long(whole(numbers.count))),
        Figure::Sum => some.then(sum),
        Figure::Avg => some.then(avg),
        Figure::Min => min,
        Figure::Max => max,
        Figure::Stats => {
            return AggregationResult::Stats {
                count: numbers.count,
                sum: (some && kind != Kind::Date).then(sum),
                avg: some.then(avg),
                min,
                max,
            };
        }
    })
}

/// The groups in their order, as many as were asked for.
fn shown(
    node: &Node,
    groups: std::collections::BTreeMap<Raw, Members>,
    size: usize,
    min_doc_count: u64,
    order: &[GroupOrder],
) -> AggregationResult {
    let all: u64 = groups.values().map(|members| members.count).sum();
    let mut kept: Vec<Group> = groups
        .into_iter()
        .filter(|(_, members)| members.count >= min_doc_count)
        .map(|(key, members)| Group {
            key: key.datum(node.kind),
            count: members.count,
            aggregations: conclude(&node.inside, members.inside),
        })
        .collect();
    // They come in the order of keys, and sorting is stable: ties end in the key.
    if order.is_empty() {
        kept.sort_by_key(|group| std::cmp::Reverse(group.count));
    } else if order.first().is_some_and(|first| first.by == GroupOrderBy::Key) {
        // No two keys are equal, so what follows doesn't matter.
        if order.first().is_some_and(|first| first.descending) {
            kept.reverse();
        }
    } else {
        let keyed = order.iter().position(|key| key.by == GroupOrderBy::Key);
        let before_key = order.get(..keyed.unwrap_or(order.len())).unwrap_or(order);
        if keyed
            .and_then(|at| order.get(at))
            .is_some_and(|key| key.descending)
        {
            kept.reverse();
        }
        kept.sort_by(|one, other| compare(one, other, before_key));
    }
    kept.truncate(size);
    let in_shown: u64 = kept.iter().map(|group| group.count).sum();
    AggregationResult::Groups {
        groups: kept,
        other_count: all - in_shown,
    }
}

fn compare(one: &Group, other: &Group, order: &[GroupOrder]) -> Ordering {
    let by = |key: &GroupOrder| {
        let directed = |ordering: Ordering| {
            if key.descending {
                ordering.reverse()
            } else {
                ordering
            }
        };
        match &key.by {
            GroupOrderBy::Key => Ordering::Equal,
            GroupOrderBy::Count => directed(one.count.cmp(&other.count)),
            GroupOrderBy::Aggregation(name) => match (value(one, name), value(other, name)) {
                (Some(one), Some(other)) => directed(compare_data(one, other)),
                (one, other) => one.is_none().cmp(&other.is_none()),
            },
        }
    };
    order
        .iter()
        .map(by)
        .find(|ordering| ordering.is_ne())
        .unwrap_or(Ordering::Equal)
}

fn value<'a>(group: &'a Group, name: &str) -> Option<&'a Datum> {
    let (_, result) = group.aggregations.iter().find(|(own, _)| own == name)?;
    match result {
        AggregationResult::Value(value) => value.as_ref(),
        AggregationResult::Stats { .. } | AggregationResult::Groups { .. } => None,
    }
}

/// Two figures of one aggregation: of the same type, or sums of which some are beyond 64 bits.
fn compare_data(one: &Datum, other: &Datum) -> Ordering {
    match (one, other) {
        (Datum::Long(one), Datum::Long(other)) | (Datum::Date(one), Datum::Date(other)) => one.cmp(other),
        _ => double(one).to_u64().cmp(&double(other).to_u64()),
    }
}

fn double(datum: &Datum) -> f64 {
    match datum {
        Datum::Double(number) => *number + 0.0,
        Datum::Long(number) | Datum::Date(number) => *number as f64,
        Datum::Boolean(_) | Datum::String(_) => 0.0,
    }
}

//! The final reduce: makes results of what was gathered. Sorts groups, limits their number, and counts the documents left out.

use std::cmp::Ordering;

use tantivy::Result;
use tantivy::columnar::MonotonicallyMappableToU64;

use super::budget::{Account, Budget};
use super::column::{Kind, Raw};
use super::gathered::{Gathered, GatheredGroups};
use super::node::{By, Grouping, Node, Shape, Size};
use super::numbers::Numbers;
use crate::error::Error;
use crate::limits::{MAX_HISTOGRAM_GROUPS, limit};
use crate::request::{GroupOrder, GroupOrderBy, MetricKind};
use crate::result::{AggregationResult, Datum, Group, SortValue, TopHit};
use crate::run::Run;
use crate::sort::{RawSortValue, directed};

/// Results that are made, or groups that are sorted, between two checks of the deadline.
const RESULTS_PER_CHECK: usize = 64;

pub(super) struct Conclusion<'a> {
    pub(super) budget: &'a mut Budget,
    pub(super) run: &'a Run,
    /// How many have been made, of all aggregations.
    pub(super) results: usize,
}

/// A group that may be shown.
struct Candidate {
    name: Raw,
    /// Its ordinal in what was gathered; `None` for an empty group, which has gathered nothing.
    ordinal: Option<u32>,
    count: u64,
}

impl Candidate {
    fn empty(name: Raw) -> Self {
        Self {
            name,
            ordinal: None,
            count: 0,
        }
    }
}

/// An aggregation, what it has gathered, its groups where they have to be sorted, and what is inside them.
struct Level<'a> {
    node: &'a Node,
    gathered: &'a Gathered,
    /// [`GatheredGroups::sorted`].
    sorted: Vec<(u32, &'a Raw, u32)>,
    inside: Vec<Level<'a>>,
}

impl<'a> Level<'a> {
    fn all(nodes: &'a [Node], gathered: &'a [Gathered], budget: &mut Budget, run: &Run) -> Result<Vec<Self>> {
        let levels = nodes.iter().zip(gathered);
        levels
            .map(|(node, gathered)| {
                let (sorted, inside) = match gathered {
                    Gathered::Groups(groups) => (groups.sorted(&mut budget.of(node, run))?, &*groups.inside),
                    Gathered::Composite(pages) => (Vec::new(), &*pages.inside),
                    _ => (Vec::new(), &[][..]),
                };
                Ok(Self {
                    node,
                    gathered,
                    sorted,
                    inside: Self::all(&node.inside, inside, budget, run)?,
                })
            })
            .collect()
    }
}

type Results = Vec<(String, AggregationResult)>;

impl<'a> Conclusion<'a> {
    /// The results of all aggregations of a request.
    pub(super) fn all(&mut self, nodes: &[Node], gathered: &[Gathered]) -> Result<Results> {
        let levels = Level::all(nodes, gathered, self.budget, self.run)?;
        self.level(&levels, Some(0))
    }

    /// The results inside one group; an empty one has gathered nothing.
    fn level(&mut self, levels: &[Level<'_>], ordinal: Option<u32>) -> Result<Results> {
        let mut results = Vec::with_capacity(levels.len());
        for level in levels {
            self.results += 1;
            self.run.check_nth(self.results, RESULTS_PER_CHECK)?;
            let bytes = size_of::<(String, AggregationResult)>() + level.node.name.len();
            self.account(level.node).hold(bytes)?;
            results.push((level.node.name.clone(), self.result(level, ordinal)?));
        }
        Ok(results)
    }

    fn account<'c>(&'c mut self, node: &'c Node) -> Account<'c> {
        self.budget.of(node, self.run)
    }

    fn result(&mut self, level: &Level<'_>, ordinal: Option<u32>) -> Result<AggregationResult> {
        // An empty group is looked up beyond the end, where nothing is.
        let at = ordinal.map_or(usize::MAX, |ordinal| ordinal as usize);
        Ok(match (&level.node.shape, level.gathered) {
            (Shape::Figure { field, figure }, Gathered::Numbers(all)) => {
                figures(all.get(at), field.kind, *figure)
            }
            (_, Gathered::Distinct(all)) => {
                let (count, error_bound) = all.get(at).map_or((0, 0.0), |different| different.count());
                let value = Datum::Long(saturated(count));
                if error_bound == 0.0 {
                    AggregationResult::Value(Some(value))
                } else {
                    AggregationResult::Estimate { value, error_bound }
                }
            }
            (Shape::Percentiles { field, percentages }, Gathered::Quantiles(all)) => {
                let found = all.get(at);
                let bytes = percentages.len() * size_of::<Datum>();
                self.account(level.node).hold(bytes)?;
                let mut values = Vec::with_capacity(percentages.len());
                for percentage in percentages {
                    let number = found.and_then(|quantiles| quantiles.at(percentage));
                    values.extend(number.map(|number| Raw::Number(number).datum(field.kind)));
                    if found.is_some_and(|quantiles| quantiles.is_large()) {
                        self.run.check_inside()?;
                    }
                }
                AggregationResult::Percentiles {
                    values,
                    count: found.map_or(0, |quantiles| quantiles.count),
                    rank_error_bound: found.map_or(0.0, |quantiles| quantiles.rank_error_bound()),
                }
            }
            (_, Gathered::Centroids(all)) => {
                let centroid = all.get(at).copied().unwrap_or_default();
                AggregationResult::Centroid {
                    point: centroid.point(),
                    count: centroid.count,
                }
            }
            (Shape::TopHits { order, .. }, Gathered::TopHits(all)) => {
                let winners = all.get(at).map_or(&[][..], Vec::as_slice);
                let sort_values = winners.iter().flat_map(|winner| winner.sort_values.iter());
                let bytes = sort_values.map(|sort_value| match sort_value {
                    RawSortValue::Bytes(bytes) => size_of::<SortValue>() + bytes.len(),
                    RawSortValue::Missing | RawSortValue::Number(_) => size_of::<SortValue>(),
                });
                let bytes = bytes.sum::<usize>() + winners.len() * size_of::<TopHit>();
                self.account(level.node).hold(bytes)?;
                let hits = winners.iter().map(|winner| TopHit {
                    key: order.document_key(&winner.sort_values),
                    score: order.wants_scores().then_some(winner.score),
                    sort_values: order.sort_values(&winner.sort_values),
                });
                AggregationResult::TopHits(hits.collect())
            }
            (Shape::Groups(grouping), Gathered::Groups(groups)) => {
                self.groups(level, grouping, groups, ordinal)?
            }
            (Shape::Composite(composite), Gathered::Composite(pages)) => {
                let mut shown = Vec::new();
                for (keys, ordinal, count) in pages.shown(composite) {
                    self.account(level.node).hold(group_bytes(&keys))?;
                    shown.push(Group {
                        keys,
                        count,
                        aggregations: self.level(&level.inside, Some(ordinal))?,
                    });
                }
                AggregationResult::Groups {
                    groups: shown,
                    other_count: 0,
                    count_error_bound: 0,
                    next_page_token: pages.next_page_token(composite),
                }
            }
            // Doesn't occur: `Gathered::all` makes what fits the shape.
            _ => AggregationResult::Value(None),
        })
    }

    fn groups(
        &mut self,
        level: &Level<'_>,
        grouping: &Grouping,
        groups: &GatheredGroups,
        parent: Option<u32>,
    ) -> Result<AggregationResult> {
        let (node, sorted) = (level.node, &level.sorted);
        let own = parent.map_or(&[][..], |parent| {
            let first = sorted.partition_point(|(other, ..)| *other < parent);
            let end = sorted.partition_point(|(other, ..)| *other <= parent);
            sorted.get(first..end).unwrap_or_default()
        });
        let names: usize = own.iter().map(|(_, name, _)| name.behind()).sum();
        let every = match grouping.size {
            Size::Each(every) => every,
            Size::First(_) | Size::All => 0,
        };
        let most = own.len().max(every);
        // Each is moved into a list that is sorted.
        let held = names + 2 * most * size_of::<Candidate>();
        let account = &mut self.account(node);
        account.run.check_inside()?;
        account.hold(held)?;
        account.groups(every.saturating_sub(own.len()))?;
        let own = own.iter().map(|(_, name, ordinal)| Candidate {
            name: (*name).clone(),
            ordinal: Some(*ordinal),
            count: groups.counts.get(*ordinal as usize).copied().unwrap_or_default(),
        });
        let mut candidates: Vec<Candidate> = match grouping.size {
            Size::Each(every) => each(own, every),
            Size::First(_) | Size::All => own.collect(),
        };
        let all: u64 = candidates.iter().map(|candidate| candidate.count).sum();
        candidates.retain(|candidate| candidate.count >= grouping.min_doc_count);
        if grouping.min_doc_count == 0 {
            self.fill(node, grouping, &mut candidates)?;
        }
        if grouping.size == Size::All && candidates.len() > MAX_HISTOGRAM_GROUPS {
            return Err(self.run.give_up(too_many(node, candidates.len())));
        }
        self.order(&mut candidates, node, &grouping.order, &level.inside)?;
        if let Size::First(size) = grouping.size {
            candidates.truncate(size);
        }
        let in_shown: u64 = candidates.iter().map(|candidate| candidate.count).sum();
        let mut shown = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            let keys = grouping.by.keys(&candidate.name);
            self.account(node).hold(group_bytes(&keys))?;
            shown.push(Group {
                keys,
                count: candidate.count,
                aggregations: self.level(&level.inside, candidate.ordinal)?,
            });
        }
        self.account(node).release(held);
        Ok(AggregationResult::Groups {
            groups: shown,
            other_count: all - in_shown + groups.left_out,
            count_error_bound: groups.error,
            next_page_token: None,
        })
    }

    /// Adds the empty groups between the bounds of a histogram that has both.
    fn fill(&mut self, node: &Node, grouping: &Grouping, own: &mut Vec<Candidate>) -> Result<()> {
        let By::Intervals {
            intervals, bounds, ..
        } = &grouping.by
        else {
            return Ok(());
        };
        if !bounds.closed {
            return Ok(());
        }
        let mut filled = Vec::new();
        let mut present = std::mem::take(own).into_iter().peekable();
        let mut next = Some(bounds.first).filter(|first| bounds.contains(*first));
        while let Some(key) = next {
            let name = Raw::Number(key);
            while let Some(group) = present.next_if(|group| group.name <= name) {
                filled.push(group);
            }
            if filled.last().is_none_or(|last| last.name != name) {
                filled.push(Candidate::empty(name));
            }
            if filled.len() > MAX_HISTOGRAM_GROUPS {
                return Err(self.run.give_up(too_many(node, filled.len())));
            }
            next = intervals.next(key).filter(|next| bounds.contains(*next));
        }
        filled.extend(present);
        let empty = filled.iter().filter(|group| group.ordinal.is_none()).count();
        self.account(node).groups(empty)?;
        *own = filled;
        Ok(())
    }

    /// Sorts groups, which come in the order of their keys: ties end in the key.
    fn order(
        &mut self,
        groups: &mut Vec<Candidate>,
        node: &Node,
        order: &[GroupOrder],
        inside: &[Level<'_>],
    ) -> Result<()> {
        let keyed = order.iter().position(|key| key.by == GroupOrderBy::Key);
        // No two keys are equal, so what follows one doesn't matter.
        let before_key = order.get(..keyed.unwrap_or(order.len())).unwrap_or(order);
        let key = keyed.and_then(|at| order.get(at));
        if key.is_some_and(|key| key.descending) {
            groups.reverse();
        }
        if before_key.is_empty() {
            return Ok(());
        }
        let valued_bytes = size_of::<Valued>() + before_key.len() * size_of::<Option<Datum>>();
        let held = groups.len() * valued_bytes;
        self.account(node).hold(held)?;
        let mut valued: Vec<Valued> = Vec::with_capacity(groups.len());
        for (nth, group) in groups.drain(..).enumerate() {
            self.run.check_nth(nth, RESULTS_PER_CHECK)?;
            let values = before_key.iter().map(|key| match &key.by {
                GroupOrderBy::Key => None,
                GroupOrderBy::Count => Some(Datum::Long(saturated(group.count))),
                GroupOrderBy::Aggregation(name) => value(inside, name, group.ordinal),
            });
            valued.push((values.collect(), group));
        }
        valued.sort_by(|(one, _), (other, _)| {
            let by_key = before_key.iter().zip(one.iter().zip(other));
            let mut orderings = by_key.map(|(key, values)| match values {
                (Some(one), Some(other)) => directed(compare(one, other), key.descending),
                (one, other) => one.is_none().cmp(&other.is_none()),
            });
            orderings
                .find(|ordering| ordering.is_ne())
                .unwrap_or(Ordering::Equal)
        });
        groups.extend(valued.into_iter().map(|(_, group)| group));
        self.account(node).release(held);
        self.run.check_inside()
    }
}

/// A group with what it is sorted by.
type Valued = (Vec<Option<Datum>>, Candidate);

/// Bytes of a group in a result, but for what is inside it.
fn group_bytes(keys: &[Option<Datum>]) -> usize {
    let heap_bytes = keys.iter().map(|key| match key {
        Some(Datum::String(text)) => text.len(),
        Some(Datum::Bytes(bytes)) => bytes.len(),
        _ => 0,
    });
    size_of::<Group>() + size_of_val(keys) + heap_bytes.sum::<usize>()
}

/// One candidate for each range or filter.
fn each(own: impl Iterator<Item = Candidate>, every: usize) -> Vec<Candidate> {
    let mut own = own.peekable();
    (0..every as u64)
        .map(|nth| {
            let name = Raw::Number(nth);
            own.next_if(|group| group.name == name)
                .unwrap_or_else(|| Candidate::empty(name))
        })
        .collect()
}

fn too_many(node: &Node, actual: usize) -> Error {
    let advice = "use a wider interval, or bounds that lie closer together";
    Error::limit(&node.path, limit!(MAX_HISTOGRAM_GROUPS), actual, advice)
}

fn value(inside: &[Level<'_>], name: &str, ordinal: Option<u32>) -> Option<Datum> {
    let level = inside.iter().find(|level| level.node.name == name)?;
    let at = ordinal.map_or(usize::MAX, |ordinal| ordinal as usize);
    match (&level.node.shape, level.gathered) {
        (Shape::Figure { field, figure }, Gathered::Numbers(all)) => {
            match figures(all.get(at), field.kind, *figure) {
                AggregationResult::Value(value) => value,
                _ => None,
            }
        }
        (_, Gathered::Distinct(all)) => {
            let count = all.get(at).map_or(0, |different| different.count().0);
            Some(Datum::Long(saturated(count)))
        }
        _ => None,
    }
}

/// Two figures of one aggregation: of the same type, or sums of which some are beyond 64 bits.
fn compare(one: &Datum, other: &Datum) -> Ordering {
    match (one, other) {
        (Datum::Long(one), Datum::Long(other)) | (Datum::Date(one), Datum::Date(other)) => one.cmp(other),
        // Rounded to a double, a sum within 64 bits may equal one beyond them.
        (Datum::Double(beyond), Datum::Long(_)) => beyond.total_cmp(&0.0),
        (Datum::Long(_), Datum::Double(beyond)) => 0.0_f64.total_cmp(beyond),
        _ => double(one).to_u64().cmp(&double(other).to_u64()),
    }
}

fn double(datum: &Datum) -> f64 {
    match datum {
        Datum::Double(number) => *number + 0.0,
        Datum::Long(number) | Datum::Date(number) => *number as f64,
        Datum::Boolean(_) | Datum::String(_) | Datum::Bytes(_) => 0.0,
    }
}

fn saturated(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn figures(numbers: Option<&Numbers>, kind: Kind, figure: MetricKind) -> AggregationResult {
    let none = Numbers::default();
    let numbers = numbers.unwrap_or(&none);
    let some = numbers.count > 0;
    let sum = || match kind {
        Kind::Double => Datum::Double(numbers.sum.divided(1)),
        _ => {
            let whole = numbers.sum.whole();
            i64::try_from(whole).map_or(Datum::Double(whole as f64), Datum::Long)
        }
    };
    let avg = || match kind {
        // The mean of 64-bit numbers has 64 bits, too.
        Kind::Date => {
            let mean = numbers.sum.whole().div_euclid(i128::from(numbers.count));
            Datum::Date(i64::try_from(mean).unwrap_or(i64::MAX))
        }
        _ => Datum::Double(numbers.sum.divided(numbers.count)),
    };
    let extreme = |number: u64| Raw::Number(number).datum(kind);
    let min = numbers.extremes().map(|(lowest, _)| extreme(lowest));
    let max = numbers.extremes().map(|(_, highest)| extreme(highest));
    AggregationResult::Value(match figure {
        MetricKind::Count | MetricKind::DistinctCount => Some(Datum::Long(saturated(numbers.count))),
        MetricKind::Sum => some.then(sum),
        MetricKind::Avg => some.then(avg),
        MetricKind::Min => min,
        MetricKind::Max => max,
        MetricKind::Stats => {
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

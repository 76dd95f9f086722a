//! From what was gathered to results: order, size, what is left out.

use std::cmp::Ordering;

use tantivy::columnar::MonotonicallyMappableToU64;

use super::budget::Budget;
use super::column::{Kind, Raw};
use super::gathered::{Gathered, GatheredGroups};
use super::node::{By, Grouping, Node, Shape, Size};
use super::numbers::Numbers;
use super::{AggregationResult, Datum, Figure, Group, GroupOrder, GroupOrderBy, TopHit};
use crate::error::Error;
use crate::run::Run;

/// Makes results.
pub(super) struct Conclusion<'a> {
    pub(super) budget: &'a mut Budget,
    pub(super) run: &'a Run,
}

/// A group that may be shown.
struct Candidate {
    name: Raw,
    /// Where what it gathered is; empty groups have gathered nothing.
    place: Option<u32>,
    count: u64,
}

/// What a grouping has gathered, its groups sorted.
struct Sorted<'a> {
    groups: Vec<(u32, &'a Raw, u32)>,
    inside: Vec<Level<'a>>,
}

/// An aggregation, what it has gathered, and its groups.
struct Level<'a> {
    node: &'a Node,
    gathered: &'a Gathered,
    sorted: Option<Sorted<'a>>,
}

impl<'a> Level<'a> {
    fn all(nodes: &'a [Node], gathered: &'a [Gathered]) -> Vec<Self> {
        let levels = nodes.iter().zip(gathered);
        levels
            .map(|(node, gathered)| Self {
                node,
                gathered,
                sorted: match gathered {
                    Gathered::Groups(groups) => Some(Sorted {
                        groups: groups.sorted(),
                        inside: Self::all(&node.inside, &groups.inside),
                    }),
                    Gathered::Composite(pages) => Some(Sorted {
                        groups: Vec::new(),
                        inside: Self::all(&node.inside, &pages.inside),
                    }),
                    _ => None,
                },
            })
            .collect()
    }
}

type Results = Vec<(String, AggregationResult)>;

impl Conclusion<'_> {
    /// The results of all aggregations of a request.
    pub(super) fn all(&mut self, nodes: &[Node], gathered: &[Gathered]) -> Result<Results, Error> {
        self.level(&Level::all(nodes, gathered), Some(0))
    }

    /// The results inside one group; an empty one has gathered nothing.
    fn level(&mut self, levels: &[Level<'_>], place: Option<u32>) -> Result<Results, Error> {
        levels
            .iter()
            .map(|level| Ok((level.node.name.clone(), self.result(level, place)?)))
            .collect()
    }

    fn result(&mut self, level: &Level<'_>, place: Option<u32>) -> Result<AggregationResult, Error> {
        let at = place.map_or(usize::MAX, |place| place as usize);
        Ok(match (&level.node.shape, level.gathered, &level.sorted) {
            (Shape::Figure { field, figure }, Gathered::Numbers(all), _) => {
                figures(&all.get(at).copied().unwrap_or_default(), field.kind, *figure)
            }
            (_, Gathered::Different(all), _) => {
                let (count, error_bound) = all.get(at).map_or((0, 0.0), |different| different.count());
                let value = Datum::Long(whole(count));
                if error_bound == 0.0 {
                    AggregationResult::Value(Some(value))
                } else {
                    AggregationResult::Estimate { value, error_bound }
                }
            }
            (Shape::Percentiles { field, percentages }, Gathered::Quantiles(all), _) => {
                let found = all.get(at);
                let values = found.map_or_else(Vec::new, |quantiles| quantiles.at(percentages));
                AggregationResult::Percentiles {
                    values: values
                        .into_iter()
                        .map(|number| Raw::Number(number).datum(field.kind))
                        .collect(),
                    count: found.map_or(0, |quantiles| quantiles.count()),
                    rank_error_bound: found.map_or(0.0, |quantiles| quantiles.rank_error_bound()),
                }
            }
            (_, Gathered::Centroids(all), _) => {
                let centroid = all.get(at).copied().unwrap_or_default();
                AggregationResult::Centroid {
                    point: centroid.point(),
                    count: centroid.count(),
                }
            }
            (Shape::TopHits { order, .. }, Gathered::TopHits(all), _) => {
                let winners = all.get(at).map_or(&[][..], Vec::as_slice);
                let hits = winners.iter().map(|winner| TopHit {
                    key: order.document_key(&winner.standings),
                    score: order.wants_scores().then_some(winner.score),
                    sort_values: order.sort_values(&winner.standings),
                });
                AggregationResult::TopHits(hits.collect())
            }
            (Shape::Groups(grouping), Gathered::Groups(groups), Some(sorted)) => {
                self.groups(level.node, grouping, groups, sorted, place)?
            }
            (Shape::Composite(composite), Gathered::Composite(pages), Some(sorted)) => {
                let mut shown = Vec::new();
                for (keys, place, count) in pages.shown(composite) {
                    shown.push(Group {
                        keys,
                        count,
                        aggregations: self.level(&sorted.inside, Some(place))?,
                    });
                }
                AggregationResult::Groups {
                    groups: shown,
                    other_count: 0,
                    count_error_bound: 0,
                    next_page_token: pages.next_page_token(composite),
                }
            }
            _ => AggregationResult::Value(None),
        })
    }

    fn groups(
        &mut self,
        node: &Node,
        grouping: &Grouping,
        groups: &GatheredGroups,
        sorted: &Sorted<'_>,
        around: Option<u32>,
    ) -> Result<AggregationResult, Error> {
        self.run.check()?;
        let own = around.map_or(&[][..], |around| {
            let first = sorted.groups.partition_point(|(other, ..)| *other < around);
            let end = sorted.groups.partition_point(|(other, ..)| *other <= around);
            sorted.groups.get(first..end).unwrap_or_default()
        });
        let own = own.iter().map(|(_, name, place)| Candidate {
            name: (*name).clone(),
            place: Some(*place),
            count: groups.counts.get(*place as usize).copied().unwrap_or_default(),
        });
        let mut candidates: Vec<Candidate> = match grouping.size {
            Size::Each(every) => each(own, every),
            Size::First(_) | Size::All(_) => own.collect(),
        };
        let all: u64 = candidates.iter().map(|candidate| candidate.count).sum();
        candidates.retain(|candidate| candidate.count >= grouping.min_doc_count);
        if grouping.min_doc_count == 0 {
            self.fill(node, grouping, &mut candidates)?;
        }
        match grouping.size {
            Size::All(most) if candidates.len() > most => return Err(too_many(node, most, candidates.len())),
            _ => {}
        }
        order(&mut candidates, &grouping.order, &sorted.inside);
        if let Size::First(size) = grouping.size {
            candidates.truncate(size);
        }
        let in_shown: u64 = candidates.iter().map(|candidate| candidate.count).sum();
        let mut shown = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            shown.push(Group {
                keys: grouping.by.keys(&candidate.name),
                count: candidate.count,
                aggregations: self.level(&sorted.inside, candidate.place)?,
            });
        }
        Ok(AggregationResult::Groups {
            groups: shown,
            other_count: all - in_shown + groups.left_out,
            count_error_bound: groups.error,
            next_page_token: None,
        })
    }

    /// Adds the empty groups between the bounds of a histogram that has both.
    fn fill(&mut self, node: &Node, grouping: &Grouping, own: &mut Vec<Candidate>) -> Result<(), Error> {
        let (By::Steps { steps, bounds, .. }, Size::All(most)) = (&grouping.by, grouping.size) else {
            return Ok(());
        };
        let (Some(first), Some(end)) = (bounds.first, bounds.end) else {
            return Ok(());
        };
        let mut filled = Vec::new();
        let mut present = std::mem::take(own).into_iter().peekable();
        let mut next = Some(first).filter(|first| *first < end);
        while let Some(key) = next {
            let name = Raw::Number(key);
            while let Some(group) = present.next_if(|group| group.name <= name) {
                filled.push(group);
            }
            if filled.last().is_none_or(|last| last.name != name) {
                filled.push(Candidate {
                    name,
                    place: None,
                    count: 0,
                });
            }
            if filled.len() > most {
                return Err(too_many(node, most, filled.len()));
            }
            next = steps.next(key).filter(|next| *next < end);
        }
        filled.extend(present);
        let empty = filled.iter().filter(|group| group.place.is_none()).count();
        self.budget.empty_groups(empty, node)?;
        *own = filled;
        Ok(())
    }
}

/// One candidate for each range or filter.
fn each(own: impl Iterator<Item = Candidate>, every: usize) -> Vec<Candidate> {
    let mut own = own.peekable();
    (0..every as u64)
        .map(|nth| {
            let name = Raw::Number(nth);
            own.next_if(|group| group.name == name).unwrap_or(Candidate {
                name,
                place: None,
                count: 0,
            })
        })
        .collect()
}

fn too_many(node: &Node, most: usize, actual: usize) -> Error {
    Error::LimitExceeded {
        path: node.path.clone(),
        limit: "MAX_HISTOGRAM_GROUPS",
        max: most as u64,
        actual: actual as u64,
        advice: "use a wider interval, or bounds that lie closer together",
    }
}

/// Sorts groups, which come in the order of their keys: ties end in the key.
fn order(groups: &mut Vec<Candidate>, order: &[GroupOrder], inside: &[Level<'_>]) {
    let keyed = order.iter().position(|key| key.by == GroupOrderBy::Key);
    // No two keys are equal, so what follows one doesn't matter.
    let before_key = order.get(..keyed.unwrap_or(order.len())).unwrap_or(order);
    if keyed
        .and_then(|at| order.get(at))
        .is_some_and(|key| key.descending)
    {
        groups.reverse();
    }
    if before_key.is_empty() {
        return;
    }
    let mut valued: Vec<(Vec<Option<Datum>>, Candidate)> = groups
        .drain(..)
        .map(|group| {
            let values = before_key.iter().map(|key| match &key.by {
                GroupOrderBy::Key => None,
                GroupOrderBy::Count => Some(Datum::Long(whole(group.count))),
                GroupOrderBy::Aggregation(name) => value(inside, name, group.place),
            });
            (values.collect(), group)
        })
        .collect();
    valued.sort_by(|(one, _), (other, _)| {
        let by_key = before_key.iter().zip(one.iter().zip(other));
        by_key
            .map(|(key, values)| match values {
                (Some(one), Some(other)) => {
                    let ordering = compare(one, other);
                    if key.descending {
                        ordering.reverse()
                    } else {
                        ordering
                    }
                }
                (one, other) => one.is_none().cmp(&other.is_none()),
            })
            .find(|ordering| ordering.is_ne())
            .unwrap_or(Ordering::Equal)
    });
    groups.extend(valued.into_iter().map(|(_, group)| group));
}

/// The figure of an aggregation inside a group.
fn value(inside: &[Level<'_>], name: &str, place: Option<u32>) -> Option<Datum> {
    let level = inside.iter().find(|level| level.node.name == name)?;
    let at = place.map_or(usize::MAX, |place| place as usize);
    match (&level.node.shape, level.gathered) {
        (Shape::Figure { field, figure }, Gathered::Numbers(all)) => {
            match figures(&all.get(at).copied().unwrap_or_default(), field.kind, *figure) {
                AggregationResult::Value(value) => value,
                _ => None,
            }
        }
        (_, Gathered::Different(all)) => {
            let count = all.get(at).map_or(0, |different| different.count().0);
            Some(Datum::Long(whole(count)))
        }
        _ => None,
    }
}

/// Two figures of one aggregation: of the same type, or sums of which some are beyond 64 bits.
fn compare(one: &Datum, other: &Datum) -> Ordering {
    match (one, other) {
        (Datum::Long(one), Datum::Long(other)) | (Datum::Date(one), Datum::Date(other)) => one.cmp(other),
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

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn figures(numbers: &Numbers, kind: Kind, figure: Figure) -> AggregationResult {
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
    let min = numbers.extremes().map(|(lowest, _)| extreme(lowest));
    let max = numbers.extremes().map(|(_, highest)| extreme(highest));
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

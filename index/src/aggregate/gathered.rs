//! Aggregations merged over all segments. Groups get ordinals as they appear: what is inside a group is found by them.

use foldhash::HashMap;
use tantivy::TantivyError;

use super::branch::{AggregationContext, Branch, Groups, SegmentMetrics, Work, inside_bytes};
use super::breadth_first::{Candidates, depth_first_values};
use super::budget::Account;
use super::centroid::Centroid;
use super::column::Raw;
use super::composite::Pages;
use super::distinct::Distinct;
use super::node::{Node, Shape};
use super::numbers::Numbers;
use super::quantiles::Quantiles;
use crate::request::MetricKind;
use crate::sort::Winner;

/// Groups that are merged between two checks of the deadline.
const GROUPS_PER_CHECK: usize = 1_024;

/// The results of one aggregation so far, by the ordinals of its parent groups.
pub(super) enum Gathered {
    Numbers(Vec<Numbers>),
    Distinct(Vec<Distinct>),
    Quantiles(Vec<Quantiles>),
    Centroids(Vec<Centroid>),
    TopHits(Vec<Vec<Winner>>),
    Groups(Box<GatheredGroups>),
    Composite(Box<Pages>),
}

impl Gathered {
    /// Empty results of aggregations: inside groups, or at the first level, where all documents are one parent group.
    pub(super) fn all(nodes: &[Node], first_level: bool) -> Vec<Self> {
        nodes.iter().map(|node| Self::new(node, first_level)).collect()
    }

    fn new(node: &Node, first_level: bool) -> Self {
        match &node.shape {
            Shape::Figure { figure, .. } if *figure == MetricKind::DistinctCount => {
                Self::Distinct(Vec::new())
            }
            Shape::Figure { .. } => Self::Numbers(Vec::new()),
            Shape::Percentiles { .. } => Self::Quantiles(Vec::new()),
            Shape::Centroid { .. } => Self::Centroids(Vec::new()),
            Shape::TopHits { .. } => Self::TopHits(Vec::new()),
            Shape::Groups(_) => Self::Groups(Box::new(GatheredGroups {
                inside: Self::all(&node.inside, false),
                counted: !(first_level && depth_first_values(node).is_some()),
                ..GatheredGroups::default()
            })),
            Shape::Composite(_) => Self::Composite(Box::new(Pages::new(Self::all(&node.inside, false)))),
        }
    }

    /// Merges the results of a segment. `ordinals` has the ordinal here, below `groups`, of each of the segment's parent groups.
    pub(super) fn add(
        &mut self,
        branch: Branch<'_>,
        ordinals: &[u32],
        groups: usize,
        context: &mut AggregationContext<'_>,
    ) -> tantivy::Result<()> {
        let node = branch.node;
        let (run, account) = (context.run, &mut context.account(node));
        match (self, branch.work) {
            (Self::Numbers(all), Work::Figures(SegmentMetrics::Numbers(_, _, numbers), _)) => {
                merge(all, groups, numbers, ordinals, account, Numbers::merge)
            }
            (Self::Distinct(all), Work::Figures(SegmentMetrics::Distinct(distinct), of)) => {
                let distinct = distinct.end(&of.0, account)?;
                merge(all, groups, distinct, ordinals, account, Distinct::merge)
            }
            (Self::Quantiles(all), Work::Figures(SegmentMetrics::Quantiles(quantiles), _)) => {
                merge(all, groups, quantiles, ordinals, account, Quantiles::merge)
            }
            (Self::Centroids(all), Work::Figures(SegmentMetrics::Centroids(centroids), _)) => {
                merge(all, groups, centroids, ordinals, account, |own, centroid, _| {
                    own.merge(&centroid);
                    Ok(())
                })
            }
            (Self::TopHits(all), Work::TopHits { tops, .. }) => {
                let Shape::TopHits { order, size } = &node.shape else {
                    return Err(mismatch());
                };
                let winners = tops
                    .into_winners()
                    .map_err(|error| run.give_up(run.unreadable(error).at(&node.path)))?;
                merge(all, groups, winners, ordinals, account, |own, winners, _| {
                    own.extend(winners);
                    own.sort_by(|one, other| order.compare(&one.sort_values, &other.sort_values));
                    own.truncate(*size);
                    Ok(())
                })
            }
            (Self::Groups(all), Work::Groups(groups)) => all.add(*groups, node, ordinals, context),
            (Self::Groups(all), Work::BreadthFirst(values)) => {
                let candidates = all.candidates.get_or_insert_default();
                candidates.add(*values, node, context)
            }
            (Self::Composite(all), Work::Composite(segment)) => all.add(*segment, node, context),
            _ => Err(mismatch()),
        }
    }

    /// Ends the merge: sorts the values in which percentiles are looked up.
    pub(super) fn sort(&mut self, account: &Account<'_>) -> tantivy::Result<()> {
        match self {
            Self::Quantiles(all) => all.iter_mut().try_for_each(|quantiles| quantiles.sort(account)),
            Self::Groups(groups) => groups.inside.iter_mut().try_for_each(|own| own.sort(account)),
            Self::Composite(pages) => pages.inside.iter_mut().try_for_each(|own| own.sort(account)),
            Self::Numbers(_) | Self::Distinct(_) | Self::Centroids(_) | Self::TopHits(_) => Ok(()),
        }
    }
}

/// Merges the results of a segment for each of its parent groups.
fn merge<T: Default, S>(
    all: &mut Vec<T>,
    groups: usize,
    segment: impl IntoIterator<Item = S>,
    ordinals: &[u32],
    account: &mut Account<'_>,
    mut add: impl FnMut(&mut T, S, &mut Account<'_>) -> tantivy::Result<()>,
) -> tantivy::Result<()> {
    all.resize_with(groups.max(all.len()), T::default);
    for (nth, (segment, ordinal)) in segment.into_iter().zip(ordinals).enumerate() {
        account.run.check_nth(nth, GROUPS_PER_CHECK)?;
        if let Some(own) = all.get_mut(*ordinal as usize) {
            add(own, segment, account)?;
        }
    }
    Ok(())
}

fn mismatch() -> TantivyError {
    TantivyError::InternalError("an aggregation changed its kind between segments".to_owned())
}

/// Bytes of a group: its name and ordinal in a hash table, and its count in a list that doubles.
const GROUP_BYTES: usize = 3 * size_of::<((u32, Raw), u32, u64)>() / 2;

/// The groups of one aggregation. Each is known by the ordinal of its parent group and by its name.
#[derive(Default)]
pub(super) struct GatheredGroups {
    ordinals: HashMap<(u32, Raw), u32>,
    /// Documents of each group.
    pub(super) counts: Vec<u64>,
    /// The sum of the counts of groups that were left out.
    pub(super) left_out: u64,
    /// Most documents by which the count of a group that was left out may be higher than known.
    pub(super) error: u64,
    /// The sub-aggregations, by the ordinals of these groups.
    pub(super) inside: Vec<Gathered>,
    /// The groups so far, where they are found breadth-first.
    pub(super) candidates: Option<Box<Candidates>>,
    /// Whether they count against the groups that a search may have.
    counted: bool,
}

impl GatheredGroups {
    /// Merges the groups of a segment; `parents` has the ordinal here of each of the segment's parent groups.
    pub(super) fn add(
        &mut self,
        segment: Groups<'_>,
        node: &Node,
        parents: &[u32],
        context: &mut AggregationContext<'_>,
    ) -> tantivy::Result<()> {
        let Groups {
            keys, slots, inside, ..
        } = segment;
        // The segment's groups in the order of their keys, and the ordinal here of each.
        context
            .account(node)
            .hold_for_segment(slots.groups.len() * 2 * size_of::<u32>())?;
        let mut by_key: Vec<u32> = (0..slots.groups.len() as u32).collect();
        let key = |slot: &u32| slots.groups.get(*slot as usize).map_or(0, |(_, key)| *key);
        by_key.sort_unstable_by_key(key);
        let mut ordinals = vec![0; by_key.len()];
        // In chunks, so that the budget is checked before many names have been read.
        for part in by_key.chunks(crate::limits::DOCUMENTS_PER_CHECK as usize) {
            context.run.check_inside()?;
            let mut distinct: Vec<u64> = part.iter().map(key).collect();
            distinct.dedup();
            let names = keys.names(&distinct)?;
            if names.len() != distinct.len() {
                return Err(mismatch());
            }
            let same = part.chunk_by(|one, other| key(one) == key(other)).zip(&names);
            for (slot, name) in same.flat_map(|(same, name)| same.iter().map(move |slot| (slot, name))) {
                let at = *slot as usize;
                let parent = slots.groups.get(at);
                let parent = parent.and_then(|(parent, _)| parents.get(*parent as usize));
                let count = slots.counts.get(at).copied().unwrap_or_default();
                let account = &mut context.account(node);
                let ordinal = self.count(parent.copied().unwrap_or_default(), name, count, node, account)?;
                if let Some(own) = ordinals.get_mut(at) {
                    *own = ordinal;
                }
            }
        }
        for (own, branch) in self.inside.iter_mut().zip(inside) {
            own.add(branch, &ordinals, self.counts.len(), context)?;
        }
        Ok(())
    }

    /// Adds documents to a group, of which a new one is accounted for; its ordinal.
    pub(super) fn count(
        &mut self,
        parent: u32,
        name: &Raw,
        count: u64,
        node: &Node,
        account: &mut Account<'_>,
    ) -> tantivy::Result<u32> {
        let key = (parent, name.clone());
        if let Some(ordinal) = self.ordinals.get(&key) {
            if let Some(own) = self.counts.get_mut(*ordinal as usize) {
                *own += count;
            }
            return Ok(*ordinal);
        }
        let ordinal = self.counts.len() as u32;
        if self.counted {
            account.groups(1)?;
        }
        account.hold(GROUP_BYTES + inside_bytes(node) + name.behind())?;
        self.ordinals.insert(key, ordinal);
        self.counts.push(count);
        Ok(ordinal)
    }

    /// The groups as parent, name and ordinal, sorted by the first two.
    pub(super) fn sorted(&self, account: &mut Account<'_>) -> tantivy::Result<Vec<(u32, &Raw, u32)>> {
        account.hold(self.ordinals.len() * size_of::<(u32, &Raw, u32)>())?;
        let groups = self.ordinals.iter();
        let mut sorted: Vec<_> = groups
            .map(|((parent, name), ordinal)| (*parent, name, *ordinal))
            .collect();
        account.run.check_inside()?;
        sorted.sort_unstable();
        account.run.check_inside()?;
        Ok(sorted)
    }
}

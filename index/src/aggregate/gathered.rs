//! Figures and groups over all segments, numbered as they appear.

use rustc_hash::FxHashMap;
use tantivy::TantivyError;

use super::branch::{Branch, Context, Figures, Groups, Work, inside_bytes};
use super::breadth_first::{Candidates, depth_first_values};
use super::budget::Account;
use super::centroid::Centroid;
use super::column::Raw;
use super::composite::Pages;
use super::distinct::Different;
use super::node::{Node, Shape};
use super::numbers::Numbers;
use super::quantiles::Quantiles;
use super::sum::ExactSum;
use crate::request::Figure;
use crate::sort::Winner;

const GROUPS_PER_CHECK: usize = 1_024;

/// What one aggregation has gathered so far, by the numbers of the groups around it.
pub(super) enum Gathered {
    Numbers(Vec<Numbers>),
    Different(Vec<Different>),
    Quantiles(Vec<Quantiles>),
    Centroids(Vec<Centroid>),
    TopHits(Vec<Vec<Winner>>),
    Groups(Box<GatheredGroups>),
    Composite(Box<Pages>),
}

impl Gathered {
    pub(super) fn all(nodes: &[Node]) -> Vec<Self> {
        nodes.iter().map(|node| Self::new(node, false)).collect()
    }

    /// Those at the first level, of which each is the only group around.
    pub(super) fn first_level(nodes: &[Node]) -> Vec<Self> {
        nodes.iter().map(|node| Self::new(node, true)).collect()
    }

    fn new(node: &Node, first_level: bool) -> Self {
        match &node.shape {
            Shape::Figure { figure, .. } if *figure == Figure::DistinctCount => Self::Different(Vec::new()),
            Shape::Figure { .. } => Self::Numbers(Vec::new()),
            Shape::Percentiles { .. } => Self::Quantiles(Vec::new()),
            Shape::Centroid { .. } => Self::Centroids(Vec::new()),
            Shape::TopHits { .. } => Self::TopHits(Vec::new()),
            Shape::Groups(_) => Self::Groups(Box::new(GatheredGroups {
                inside: Self::all(&node.inside),
                counted: !(first_level && depth_first_values(node).is_some()),
                ..GatheredGroups::default()
            })),
            Shape::Composite(_) => Self::Composite(Box::new(Pages::new(Self::all(&node.inside)))),
        }
    }

    /// Adds a segment. `places` are the numbers here of the segment's groups around, all below `groups`.
    pub(super) fn add(
        &mut self,
        branch: Branch<'_>,
        places: &[u32],
        groups: usize,
        context: &mut Context<'_>,
    ) -> tantivy::Result<()> {
        let node = branch.node;
        let (run, account) = (context.run, &mut context.account(node));
        match (self, branch.work) {
            (Self::Numbers(all), Work::Figures(Figures::Numbers { numbers, .. }, _)) => {
                merge(all, groups, numbers, places, account, |own, numbers, account| {
                    if own.merge(&numbers) {
                        account.hold(ExactSum::WIDE_BYTES)?;
                    }
                    Ok(())
                })
            }
            (Self::Different(all), Work::Figures(Figures::Different(different), of)) => {
                let different = different.end(&of.values, account)?;
                merge(all, groups, different, places, account, Different::merge)
            }
            (Self::Quantiles(all), Work::Figures(Figures::Quantiles(quantiles), _)) => {
                merge(all, groups, quantiles, places, account, Quantiles::merge)
            }
            (Self::Centroids(all), Work::Figures(Figures::Centroids(centroids), _)) => {
                merge(all, groups, centroids, places, account, |own, centroid, _| {
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
                merge(all, groups, winners, places, account, |own, winners, _| {
                    order.keep_first(own, winners, *size);
                    Ok(())
                })
            }
            (Self::Groups(all), Work::Groups(groups)) => all.add(*groups, node, places, context),
            (Self::Groups(all), Work::BreadthFirst(values)) => {
                let candidates = all.candidates.get_or_insert_default();
                candidates.add(*values, node, context)
            }
            (Self::Composite(all), Work::Composite(segment)) => all.add(*segment, node, context),
            _ => Err(mismatch()),
        }
    }

    /// Sorts what results are looked up in.
    pub(super) fn sort(&mut self, account: &Account<'_>) -> tantivy::Result<()> {
        match self {
            Self::Quantiles(all) => {
                for (nth, quantiles) in all.iter_mut().enumerate() {
                    if nth.is_multiple_of(GROUPS_PER_CHECK) {
                        account.check()?;
                    }
                    quantiles.sort(account)?;
                }
                Ok(())
            }
            Self::Groups(groups) => groups.inside.iter_mut().try_for_each(|own| own.sort(account)),
            Self::Composite(pages) => pages.inside.iter_mut().try_for_each(|own| own.sort(account)),
            Self::Numbers(_) | Self::Different(_) | Self::Centroids(_) | Self::TopHits(_) => Ok(()),
        }
    }
}

/// Adds what a segment has gathered for each of its groups to what is gathered here.
fn merge<T: Default, S>(
    all: &mut Vec<T>,
    groups: usize,
    segment: impl IntoIterator<Item = S>,
    places: &[u32],
    account: &mut Account<'_>,
    mut add: impl FnMut(&mut T, S, &mut Account<'_>) -> tantivy::Result<()>,
) -> tantivy::Result<()> {
    all.resize_with(groups.max(all.len()), T::default);
    for (nth, (segment, place)) in segment.into_iter().zip(places).enumerate() {
        if nth.is_multiple_of(GROUPS_PER_CHECK) {
            account.check()?;
        }
        if let Some(own) = all.get_mut(*place as usize) {
            add(own, segment, account)?;
        }
    }
    Ok(())
}

fn mismatch() -> TantivyError {
    TantivyError::InternalError("an aggregation changed its kind between segments".to_owned())
}

/// Bytes of a group: its name and number in a hash table, and its count in a list that doubles.
const GROUP_BYTES: usize = 3 * size_of::<((u32, Raw), u32, u64)>() / 2;

#[derive(Default)]
pub(super) struct GatheredGroups {
    by_name: FxHashMap<(u32, Raw), u32>,
    pub(super) counts: Vec<u64>,
    /// The sum of the counts of groups that are not here.
    pub(super) left_out: u64,
    /// How much higher than known the count of a group may be that is not here.
    pub(super) error: u64,
    pub(super) inside: Vec<Gathered>,
    /// Where groups are found breadth-first: what is known of them so far.
    pub(super) candidates: Option<Box<Candidates>>,
    /// Whether they count as groups of the search.
    counted: bool,
}

impl GatheredGroups {
    pub(super) fn add(
        &mut self,
        segment: Groups<'_>,
        node: &Node,
        around: &[u32],
        context: &mut Context<'_>,
    ) -> tantivy::Result<()> {
        let Groups {
            keys, slots, inside, ..
        } = segment;
        // The order of keys, and where each group is here.
        context
            .account(node)
            .hold_for_segment(slots.groups.len() * 2 * size_of::<u32>())?;
        let mut by_key: Vec<u32> = (0..slots.groups.len() as u32).collect();
        let key = |slot: &u32| slots.groups.get(*slot as usize).map_or(0, |(_, key)| *key);
        by_key.sort_unstable_by_key(key);
        let mut places = vec![0; by_key.len()];
        // A part at a time, so that the budget is asked before many names have been read.
        for part in by_key.chunks(crate::limits::DOCUMENTS_PER_CHECK as usize) {
            context.run.check_inside()?;
            let mut different: Vec<u64> = part.iter().map(key).collect();
            different.dedup();
            let names = keys.names(&different)?;
            let mut named = different.iter().zip(names).peekable();
            for slot in part {
                while named.peek().is_some_and(|(own, _)| **own != key(slot)) {
                    named.next();
                }
                let (Some((_, name)), Some((outer, _))) = (named.peek(), slots.groups.get(*slot as usize))
                else {
                    return Err(mismatch());
                };
                let outer = around.get(*outer as usize).copied().unwrap_or_default();
                let place = self.place(outer, name, node, &mut context.account(node))?;
                let count = slots.counts.get(*slot as usize).copied().unwrap_or_default();
                if let Some(own) = self.counts.get_mut(place as usize) {
                    *own += count;
                }
                if let Some(own) = places.get_mut(*slot as usize) {
                    *own = place;
                }
            }
        }
        for (own, branch) in self.inside.iter_mut().zip(inside) {
            own.add(branch, &places, self.counts.len(), context)?;
        }
        Ok(())
    }

    fn place(
        &mut self,
        around: u32,
        name: &Raw,
        node: &Node,
        account: &mut Account<'_>,
    ) -> tantivy::Result<u32> {
        let key = (around, name.clone());
        if let Some(place) = self.by_name.get(&key) {
            return Ok(*place);
        }
        let place = self.counts.len() as u32;
        if self.counted {
            account.groups(1)?;
        }
        account.hold(GROUP_BYTES + inside_bytes(node) + name.behind())?;
        self.by_name.insert(key, place);
        self.counts.push(0);
        Ok(place)
    }

    /// Adds a group at the first level, with nothing inside.
    pub(super) fn insert(
        &mut self,
        name: &Raw,
        count: u64,
        node: &Node,
        account: &mut Account<'_>,
    ) -> tantivy::Result<()> {
        let place = self.place(0, name, node, account)?;
        if let Some(own) = self.counts.get_mut(place as usize) {
            *own += count;
        }
        Ok(())
    }

    /// The groups by the group around them, then by name.
    pub(super) fn sorted(&self, account: &mut Account<'_>) -> tantivy::Result<Vec<(u32, &Raw, u32)>> {
        account.hold(self.by_name.len() * size_of::<(u32, &Raw, u32)>())?;
        let groups = self.by_name.iter();
        let mut sorted: Vec<_> = groups
            .map(|((around, name), place)| (*around, name, *place))
            .collect();
        account.check()?;
        sorted.sort_unstable();
        account.check()?;
        Ok(sorted)
    }
}

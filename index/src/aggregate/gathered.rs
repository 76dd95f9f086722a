//! Figures and groups over all segments, numbered as they appear.

use rustc_hash::FxHashMap;
use tantivy::TantivyError;

use super::Figure;
use super::branch::{Branch, Context, Groups, Work, group_bytes};
use super::centroid::Centroid;
use super::column::Raw;
use super::composite::Pages;
use super::distinct::Different;
use super::node::{Node, Shape};
use super::numbers::Numbers;
use super::quantiles::Quantiles;
use crate::sort::Winner;

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
        nodes.iter().map(Self::new).collect()
    }

    fn new(node: &Node) -> Self {
        match &node.shape {
            Shape::Figure { figure, .. } if *figure == Figure::DistinctCount => Self::Different(Vec::new()),
            Shape::Figure { .. } => Self::Numbers(Vec::new()),
            Shape::Percentiles { .. } => Self::Quantiles(Vec::new()),
            Shape::Centroid { .. } => Self::Centroids(Vec::new()),
            Shape::TopHits { .. } => Self::TopHits(Vec::new()),
            Shape::Groups(_) => Self::Groups(Box::new(GatheredGroups {
                inside: Self::all(&node.inside),
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
        match (self, branch.work) {
            (Self::Numbers(all), Work::Numbers { numbers, .. }) => {
                all.resize(groups.max(all.len()), Numbers::default());
                for (numbers, place) in numbers.iter().zip(places) {
                    if let Some(own) = all.get_mut(*place as usize) {
                        own.merge(numbers);
                    }
                }
                Ok(())
            }
            (
                Self::Different(all),
                Work::Different {
                    values, different, ..
                },
            ) => {
                all.resize_with(groups.max(all.len()), Different::default);
                let (run, budget) = (context.run, &mut *context.budget);
                let different = different.end(&values, budget, node, run)?;
                for (different, place) in different.into_iter().zip(places) {
                    if let Some(own) = all.get_mut(*place as usize) {
                        own.merge(different, budget, node)
                            .map_err(|error| run.give_up(error))?;
                    }
                    context.run.check_inside()?;
                }
                Ok(())
            }
            (Self::Quantiles(all), Work::Quantiles { quantiles, .. }) => {
                all.resize_with(groups.max(all.len()), Quantiles::default);
                for (quantiles, place) in quantiles.into_iter().zip(places) {
                    if let Some(own) = all.get_mut(*place as usize) {
                        own.merge(quantiles, context.budget);
                    }
                }
                Ok(())
            }
            (Self::Centroids(all), Work::Centroids { centroids, .. }) => {
                all.resize(groups.max(all.len()), Centroid::default());
                for (centroid, place) in centroids.iter().zip(places) {
                    if let Some(own) = all.get_mut(*place as usize) {
                        own.merge(centroid);
                    }
                }
                Ok(())
            }
            (Self::TopHits(all), Work::TopHits(tops)) => {
                all.resize_with(groups.max(all.len()), Vec::new);
                let Shape::TopHits { order, size } = &node.shape else {
                    return Err(mismatch());
                };
                for (winners, place) in tops.into_winners()?.into_iter().zip(places) {
                    if let Some(own) = all.get_mut(*place as usize) {
                        order.keep_first(own, winners, *size);
                    }
                }
                Ok(())
            }
            (Self::Groups(all), Work::Groups(groups)) => all.add(*groups, node, places, context),
            (Self::Groups(all), Work::Frequent(frequent)) => {
                let settled = frequent.settle(node, context)?;
                all.left_out += settled.left_out;
                all.error += settled.error;
                all.add(settled.groups, node, places, context)
            }
            (Self::Composite(all), Work::Composite(segment)) => all.add(*segment, node, context),
            _ => Err(mismatch()),
        }
    }
}

fn mismatch() -> TantivyError {
    TantivyError::InternalError("an aggregation changed its kind between segments".to_owned())
}

/// The groups of a grouping over all segments.
#[derive(Default)]
pub(super) struct GatheredGroups {
    by_name: FxHashMap<(u32, Raw), u32>,
    pub(super) counts: Vec<u64>,
    /// The sum of the counts of groups that are not here.
    pub(super) left_out: u64,
    /// How much lower than the true one a count may be.
    pub(super) error: u64,
    pub(super) inside: Vec<Gathered>,
}

impl GatheredGroups {
    fn add(
        &mut self,
        segment: Groups<'_>,
        node: &Node,
        around: &[u32],
        context: &mut Context<'_>,
    ) -> tantivy::Result<()> {
        let Groups {
            keys, slots, inside, ..
        } = segment;
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
                let place = self.place(outer, name, node, context)?;
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
        context: &mut Context<'_>,
    ) -> tantivy::Result<u32> {
        let key = (around, name.clone());
        if let Some(place) = self.by_name.get(&key) {
            return Ok(*place);
        }
        let place = self.counts.len() as u32;
        context
            .budget
            .group(group_bytes(node) + 2 * size_of::<Raw>() + name.behind(), node)
            .map_err(|error| context.run.give_up(error))?;
        self.by_name.insert(key, place);
        self.counts.push(0);
        Ok(place)
    }

    /// The groups by the group around them, then by name.
    pub(super) fn sorted(&self) -> Vec<(u32, &Raw, u32)> {
        let groups = self.by_name.iter();
        let mut sorted: Vec<_> = groups
            .map(|((around, name), place)| (*around, name, *place))
            .collect();
        sorted.sort_unstable();
        sorted
    }
}

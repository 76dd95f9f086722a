//! Group top k: the best k groups, each ranked by its head, the best document of it (see [`crate::collapse`]).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

use tantivy::{COLLECT_BLOCK_BUFFER_LEN, DocId, Score};

use super::{LocalGroup, SegmentGroups};
use crate::allowance::Grant;
use crate::sort::rank::Rank;
use crate::sort::{Leading, Order, PreparedOrder, RawSortValue, RawSortValues, SegmentOrder, Winner};

/// Collects the heads of the top `size` groups over all segments.
pub(crate) struct GroupTopK<'a> {
    order: &'a Order,
    size: usize,
    /// Best first, each with its group.
    heads: Vec<(Winner, RawSortValues)>,
}

impl<'a> GroupTopK<'a> {
    pub(crate) fn new(order: &PreparedOrder<'a>, size: usize) -> Self {
        Self {
            order: order.order,
            size,
            heads: Vec::new(),
        }
    }

    /// Begins a segment. Only documents behind `after` count, and none of the groups `passed`, which earlier pages showed.
    pub(crate) fn segment<'s>(
        &self,
        order: SegmentOrder<'s>,
        groups: &'s SegmentGroups,
        after: Option<&[RawSortValue]>,
        passed: HashSet<LocalGroup>,
    ) -> io::Result<SegmentGroupTopK<'s>> {
        let after = after.map(|after| order.ranks_of(after)).transpose()?;
        let full = self.heads.len() >= self.size;
        let last = self.heads.last().filter(|_| full);
        let before = last
            .map(|(last, _)| order.ranks_of(&last.sort_values))
            .transpose()?;
        // A head in both maps, and what it becomes when the segment ends.
        let head_bytes =
            2 * (size_of::<Vec<Rank>>() + order.rank_bytes()) + size_of::<(Head, LocalGroup, Winner)>();
        let memory = order.capacity(self.size) * head_bytes;
        let memory = order.run.allowance().take(memory)?;
        Ok(SegmentGroupTopK {
            order,
            groups,
            size: self.size,
            _memory: memory,
            after,
            before,
            passed,
            heads: BTreeMap::new(),
            by_group: HashMap::new(),
        })
    }

    /// Ends a segment: merges the heads of its groups with those of the segments before.
    pub(crate) fn merge(&mut self, segment: SegmentGroupTopK<'_>) -> io::Result<()> {
        let SegmentGroupTopK {
            order, groups, heads, ..
        } = segment;
        if heads.is_empty() {
            return Ok(());
        }
        let ranks: Vec<&[Rank]> = heads.keys().map(Vec::as_slice).collect();
        let locals: Vec<LocalGroup> = heads.values().map(|head| head.group).collect();
        let scores = heads.values().map(|head| head.score);
        let winners = order
            .sort_values(&ranks)?
            .into_iter()
            .zip(scores)
            .map(Winner::new);
        self.heads.extend(winners.zip(groups.values(&locals, order.run)?));
        let compare = |one: &Winner, other: &Winner| self.order.compare(&one.sort_values, &other.sort_values);
        self.heads.sort_by(|(one, _), (other, _)| compare(one, other));
        // Of each group the first stays. In two passes: what `seen` borrows can't be moved.
        let mut seen = HashSet::new();
        let first = self.heads.iter().map(|(_, group)| seen.insert(&**group));
        let first: Vec<bool> = first.collect();
        let mut first = first.into_iter();
        self.heads.retain(|_| first.next() == Some(true));
        self.heads.truncate(self.size);
        Ok(())
    }

    pub(crate) fn into_winners(self) -> Vec<Winner> {
        self.heads.into_iter().map(|(winner, _)| winner).collect()
    }
}

/// The best document of a group so far; its ranks are the key under which it is kept.
struct Head {
    group: LocalGroup,
    score: Score,
}

/// The top groups of one segment.
pub(crate) struct SegmentGroupTopK<'a> {
    order: SegmentOrder<'a>,
    groups: &'a SegmentGroups,
    size: usize,
    /// Only documents behind these ranks count.
    after: Option<Vec<Rank>>,
    /// Only documents before these ranks count: enough groups have better ones elsewhere.
    before: Option<Vec<Rank>>,
    /// Groups that earlier pages showed: they don't count.
    passed: HashSet<LocalGroup>,
    /// By their ranks, which end in the document's key, so that no two are equal.
    heads: BTreeMap<Vec<Rank>, Head>,
    /// The ranks of each group's head.
    by_group: HashMap<LocalGroup, Vec<Rank>>,
    /// That of both maps.
    _memory: Grant,
}

impl SegmentGroupTopK<'_> {
    /// Whether no document of the segment can become a head.
    pub(crate) fn beaten(&self) -> bool {
        let edge = self.order.leading.as_ref().and_then(Leading::edge);
        let limited = edge.zip(self.leading_limit());
        limited.is_some_and(|(edge, limit)| edge > limit)
    }

    /// Offers documents of the same score, in ascending order.
    pub(crate) fn offer_all(&mut self, docs: &[DocId], score: Score) {
        let mut ranked = Vec::new();
        for block in docs.chunks(COLLECT_BLOCK_BUFFER_LEN) {
            let Some(leading) = &self.order.leading else {
                block.iter().for_each(|doc| self.offer(*doc, score));
                continue;
            };
            ranked.clear();
            leading.rank_all(block, &mut ranked, |_| true);
            for (rank, doc) in &ranked {
                if self.leading_limit().is_none_or(|limit| *rank <= limit) {
                    self.offer(*doc, score);
                }
            }
        }
    }

    /// Documents behind this rank of the leading key can't become heads, where documents of one score are compared.
    fn leading_limit(&self) -> Option<Rank> {
        let nth = self.order.leading.as_ref()?.nth;
        let limit = limit(&self.heads, self.size, self.before.as_deref())?;
        limit.get(nth).copied()
    }

    fn offer(&mut self, doc: DocId, score: Score) {
        let order = &mut self.order;
        order.move_to(doc, score);
        let limit = limit(&self.heads, self.size, self.before.as_deref());
        if limit.is_some_and(|limit| order.compare(limit).is_ge()) {
            return;
        }
        let after = self.after.as_deref();
        if after.is_some_and(|after| order.compare(after).is_le()) {
            return;
        }
        let group = self.groups.of(doc);
        if self.passed.contains(&group) {
            return;
        }
        if let Some(head) = self.by_group.get(&group) {
            if order.compare(head).is_gt() {
                return;
            }
            self.heads.remove(head);
        }
        let ranks = order.ranks().to_vec();
        self.by_group.insert(group, ranks.clone());
        self.heads.insert(ranks, Head { group, score });
        if self.heads.len() > self.size
            && let Some((_, head)) = self.heads.pop_last()
        {
            self.by_group.remove(&head.group);
        }
    }
}

/// Only documents before these ranks can become heads: those of the worst head once there are `size`, which lies before
/// `before`.
fn limit<'r>(
    heads: &'r BTreeMap<Vec<Rank>, Head>,
    size: usize,
    before: Option<&'r [Rank]>,
) -> Option<&'r [Rank]> {
    let worst = heads.last_key_value().filter(|_| heads.len() >= size);
    worst.map(|(ranks, _)| ranks.as_slice()).or(before)
}

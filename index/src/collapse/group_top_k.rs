//! The top k groups, each by its best document (see [`crate::collapse`]).

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

use tantivy::{COLLECT_BLOCK_BUFFER_LEN, DocId, Score};

use super::{Local, SegmentGroups};
use crate::allowance::Grant;
use crate::sort::rank::Rank;
use crate::sort::{Leading, Order, PreparedOrder, RawSortValue, RawSortValues, SegmentOrder, Winner};

/// Keeps the heads of the first `size` groups of an order.
pub(crate) struct GroupTopK<'a> {
    order: &'a Order,
    size: usize,
    /// In order, each with its group.
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

    /// Begins a segment. Only documents behind `after` count, and none of the groups `passed`.
    pub(crate) fn segment<'s>(
        &self,
        order: SegmentOrder<'s>,
        groups: &'s SegmentGroups,
        after: Option<&[RawSortValue]>,
        passed: HashSet<Local>,
    ) -> io::Result<SegmentGroupTopK<'s>> {
        let after = after.map(|after| order.ranks_of(after)).transpose()?;
        let full = self.heads.len() >= self.size;
        let last = self.heads.last().filter(|_| full);
        let before = last
            .map(|(last, _)| order.ranks_of(&last.sort_values))
            .transpose()?;
        let each = 2 * (size_of::<Vec<Rank>>() + order.rank_bytes()) + size_of::<(Head, Local, Winner)>();
        let kept = order.run.allowance().take(order.at_most(self.size) * each)?;
        Ok(SegmentGroupTopK {
            order,
            groups,
            size: self.size,
            _kept: kept,
            after,
            before,
            passed,
            held: BTreeMap::new(),
            by_group: HashMap::new(),
        })
    }

    /// Ends a segment: the heads of its groups meet those of the others.
    pub(crate) fn take(&mut self, segment: SegmentGroupTopK<'_>) -> io::Result<()> {
        let SegmentGroupTopK {
            order, groups, held, ..
        } = segment;
        if held.is_empty() {
            return Ok(());
        }
        let ranks: Vec<&[Rank]> = held.keys().map(Vec::as_slice).collect();
        let locals: Vec<Local> = held.values().map(|head| head.group).collect();
        let winners = order
            .sort_values(&ranks)?
            .into_iter()
            .zip(held.values())
            .map(|(sort_values, head)| Winner {
                sort_values,
                score: head.score,
            });
        self.heads.extend(winners.zip(groups.values(&locals, order.run)?));
        self.heads
            .sort_by(|(one, _), (other, _)| self.order.compare(&one.sort_values, &other.sort_values));
        let mut seen = HashSet::new();
        let first: Vec<bool> = self
            .heads
            .iter()
            .map(|(_, group)| seen.insert(&**group))
            .collect();
        let mut first = first.into_iter();
        self.heads.retain(|_| first.next().unwrap_or_default());
        self.heads.truncate(self.size);
        Ok(())
    }

    pub(crate) fn into_winners(self) -> Vec<Winner> {
        self.heads.into_iter().map(|(winner, _)| winner).collect()
    }
}

struct Head {
    group: Local,
    score: Score,
}

/// The heads of one segment's groups.
pub(crate) struct SegmentGroupTopK<'a> {
    order: SegmentOrder<'a>,
    groups: &'a SegmentGroups,
    size: usize,
    /// Only documents behind these ranks count.
    after: Option<Vec<Rank>>,
    /// Only documents before these ranks count: enough groups have better ones elsewhere.
    before: Option<Vec<Rank>>,
    /// Groups that don't count.
    passed: HashSet<Local>,
    /// By rank; ranks end in the document's key, so that no two are equal.
    held: BTreeMap<Vec<Rank>, Head>,
    /// The rank of each group that is held.
    by_group: HashMap<Local, Vec<Rank>>,
    /// The memory of both.
    _kept: Grant,
}

impl SegmentGroupTopK<'_> {
    /// Whether no document of the segment can get in.
    pub(crate) fn beaten(&self) -> bool {
        let edge = self.order.leading.as_ref().and_then(Leading::edge);
        edge.zip(self.leading_limit())
            .is_some_and(|(edge, limit)| edge > limit)
    }

    /// Looks at documents of the same score; they come in ascending order.
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

    /// Only documents before these ranks can get in.
    fn last(&self) -> Option<&[Rank]> {
        let full = self.held.len() >= self.size;
        let worst = self.held.last_key_value().filter(|_| full);
        worst
            .map(|(ranks, _)| ranks.as_slice())
            .or(self.before.as_deref())
    }

    /// Documents behind this rank of the leading key can't get in, where documents of one score are compared.
    fn leading_limit(&self) -> Option<Rank> {
        let nth = self.order.leading.as_ref()?.nth;
        self.last().and_then(|last| last.get(nth)).copied()
    }

    fn offer(&mut self, doc: DocId, score: Score) {
        self.order.stand_on(doc, score);
        let full = self.held.len() >= self.size;
        let worst = self.held.last_key_value().filter(|_| full);
        if worst.is_some_and(|(worst, _)| self.order.compare(worst).is_ge()) {
            return;
        }
        let beyond = |limit: &Option<Vec<Rank>>, order: &mut SegmentOrder<'_>, is: fn(Ordering) -> bool| {
            limit.as_ref().is_some_and(|limit| is(order.compare(limit)))
        };
        if beyond(&self.before, &mut self.order, Ordering::is_ge)
            || beyond(&self.after, &mut self.order, Ordering::is_le)
        {
            return;
        }
        let group = self.groups.of(doc);
        if self.passed.contains(&group) {
            return;
        }
        if let Some(held) = self.by_group.get(&group) {
            if self.order.compare(held).is_gt() {
                return;
            }
            self.held.remove(held);
        }
        let ranks = self.order.ranks().to_vec();
        self.by_group.insert(group, ranks.clone());
        self.held.insert(ranks, Head { group, score });
        if self.held.len() > self.size
            && let Some((_, head)) = self.held.pop_last()
        {
            self.by_group.remove(&head.group);
        }
    }
}

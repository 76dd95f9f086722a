//! What all aggregations of a request may hold.

use super::node::Node;
use crate::allowance::{Allowance, Grant};
use crate::error::{AllowanceExceeded, Error};
use crate::limits::{MAX_AGGREGATION_GROUPS, MAX_EXACT_BYTES, limit};
use crate::run::Run;

/// Bytes that a segment holds up to which there is room for what only saves time.
const SPARE_BYTES: usize = 48 * 1024 * 1024;

/// What all aggregations of a request hold of the search's allowance. A segment's part is held beside that of all
/// segments, until the next one begins.
pub(super) struct Budget {
    groups: usize,
    segment_groups: usize,
    held: Grant,
    segment: Grant,
    /// Of distinct values and percentiles that are exact so far.
    exact: Grant,
}

impl Budget {
    pub(super) fn new(allowance: &Allowance) -> Self {
        Self {
            groups: 0,
            segment_groups: 0,
            held: allowance.grant(),
            segment: allowance.grant(),
            exact: allowance.grant(),
        }
    }

    /// Begins a segment, or what comes behind the last one: nothing is held for one.
    pub(super) fn segment(&mut self) {
        self.segment_groups = 0;
        self.segment.shrink_to(0);
    }

    /// Gives back bytes that were held until the request is answered.
    pub(super) fn release(&mut self, bytes: usize) {
        self.held.release(bytes);
    }

    pub(super) fn of<'a>(&'a mut self, node: &'a Node, run: &'a Run) -> Account<'a> {
        Account {
            budget: self,
            node,
            run,
        }
    }
}

/// What one aggregation holds. Its methods fail before more is held than a search may.
pub(super) struct Account<'a> {
    budget: &'a mut Budget,
    node: &'a Node,
    pub(super) run: &'a Run,
}

impl Account<'_> {
    /// Accounts for so many new groups of a segment.
    pub(super) fn segment_groups(&mut self, groups: usize) -> tantivy::Result<()> {
        self.budget.segment_groups += groups;
        self.within(self.budget.segment_groups)
    }

    pub(super) fn groups(&mut self, groups: usize) -> tantivy::Result<()> {
        self.budget.groups = self.budget.groups.saturating_add(groups);
        self.within(self.budget.groups)
    }

    /// Takes back so many groups that were accounted for.
    pub(super) fn release_groups(&mut self, groups: usize) {
        self.budget.groups = self.budget.groups.saturating_sub(groups);
    }

    fn within(&self, groups: usize) -> tantivy::Result<()> {
        if groups <= MAX_AGGREGATION_GROUPS {
            return Ok(());
        }
        let advice = "narrow the query, group by a field with fewer different values, or page through the groups of a \
                      composite";
        let error = Error::limit(&self.node.path, limit!(MAX_AGGREGATION_GROUPS), groups, advice);
        Err(self.run.give_up(error))
    }

    /// Holds bytes until the request is answered.
    pub(super) fn hold(&mut self, bytes: usize) -> tantivy::Result<()> {
        let held = self.budget.held.grow(bytes);
        self.granted(held)
    }

    /// Gives them back before.
    pub(super) fn release(&mut self, bytes: usize) {
        self.budget.release(bytes);
    }

    /// Holds bytes until the segment ends.
    pub(super) fn hold_for_segment(&mut self, bytes: usize) -> tantivy::Result<()> {
        let held = self.budget.segment.grow(bytes);
        self.granted(held)
    }

    /// The same where it only saves time, if there is room to spare; whether there is.
    pub(super) fn try_hold_for_segment(&mut self, bytes: usize) -> bool {
        let segment = &mut self.budget.segment;
        segment.used().saturating_add(bytes) <= SPARE_BYTES && segment.grow(bytes).is_ok()
    }

    /// Gives back bytes that were held for the segment.
    pub(super) fn release_of_segment(&mut self, bytes: usize) {
        self.budget.segment.release(bytes);
    }

    /// Holds bytes of exact figures; what share of what they may hold all together do, 1 when it is all.
    pub(super) fn exact(&mut self, bytes: usize) -> tantivy::Result<f64> {
        let held = self.budget.exact.grow(bytes);
        self.granted(held)?;
        Ok(self.pressure())
    }

    /// What share of what exact figures may hold they hold.
    pub(super) fn pressure(&self) -> f64 {
        self.budget.exact.used() as f64 / MAX_EXACT_BYTES as f64
    }

    /// Gives back bytes of exact figures.
    pub(super) fn release_exact(&mut self, bytes: usize) {
        self.budget.exact.release(bytes);
    }

    fn granted(&self, held: Result<(), AllowanceExceeded>) -> tantivy::Result<()> {
        held.map_err(|exceeded| self.run.give_up(exceeded.at(&self.node.path)))
    }
}

/// Bytes of a hash table with room for so many: a power of two of places, of which an eighth stays free, and a byte of
/// control for each.
pub(super) fn table_bytes<T>(entries: usize) -> usize {
    match entries {
        0 => 0,
        entries => (entries * 8).div_ceil(7).next_power_of_two().max(4) * (size_of::<T>() + 1),
    }
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;
    use crate::aggregate::column::Kind;
    use crate::aggregate::node::{FieldOf, Shape};
    use crate::cancel::Cancellation;
    use crate::request::MetricKind;

    /// Gives the account of a search that holds nothing yet.
    pub(in crate::aggregate) fn with_account(take: impl FnOnce(&mut Account<'_>)) {
        let field = FieldOf {
            path: "n".to_owned(),
            kind: Kind::Long,
            attribute: None,
            missing: None,
        };
        let node = Node {
            name: "a".to_owned(),
            path: "aggregations".to_owned(),
            scope: None,
            shape: Shape::Figure {
                field,
                figure: MetricKind::DistinctCount,
            },
            inside: Vec::new(),
        };
        let run = Run::new(Cancellation::none());
        take(&mut Budget::new(run.allowance()).of(&node, &run));
    }
}

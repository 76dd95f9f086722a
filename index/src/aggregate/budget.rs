//! What all aggregations of a request may hold.

use super::node::Node;
use crate::error::Error;
use crate::limits::{MAX_AGGREGATION_BYTES, MAX_AGGREGATION_GROUPS, MAX_EXACT_BYTES};

/// What all aggregations of a request hold. A segment's groups are counted beside those of all segments.
#[derive(Default)]
pub(super) struct Budget {
    groups: usize,
    segment_groups: usize,
    bytes: usize,
    segment_bytes: usize,
    /// Of distinct values and percentiles that are exact so far.
    exact: usize,
}

impl Budget {
    /// Begins a segment.
    pub(super) fn segment(&mut self) {
        (self.segment_groups, self.segment_bytes) = (0, 0);
    }

    /// How many groups may be added, with room for so many others.
    pub(super) fn room(&self, others: usize) -> usize {
        MAX_AGGREGATION_GROUPS
            .saturating_sub(self.groups)
            .saturating_sub(others)
    }

    /// Accounts for new groups of a segment, of `each` bytes.
    pub(super) fn segment_groups(&mut self, groups: usize, each: usize, node: &Node) -> Result<(), Error> {
        self.segment_groups += groups;
        self.segment_bytes += groups * each;
        within(self.segment_groups, self.segment_bytes, node)
    }

    /// Accounts for a new group.
    pub(super) fn group(&mut self, bytes: usize, node: &Node) -> Result<(), Error> {
        self.groups += 1;
        self.bytes += bytes;
        within(self.groups, self.bytes, node)
    }

    /// Accounts for empty groups that are shown.
    pub(super) fn empty_groups(&mut self, groups: usize, node: &Node) -> Result<(), Error> {
        self.groups = self.groups.saturating_add(groups);
        within(self.groups, self.bytes, node)
    }

    /// Accounts for what is held besides groups.
    pub(super) fn bytes(&mut self, bytes: usize, node: &Node) -> Result<(), Error> {
        self.bytes += bytes;
        within(self.groups, self.bytes, node)
    }

    /// Accounts for bytes that exact figures take; whether there is room for more.
    pub(super) fn exact(&mut self, bytes: usize) -> bool {
        self.exact += bytes;
        self.exact <= MAX_EXACT_BYTES
    }

    /// Bytes of exact figures that are free again.
    pub(super) fn release(&mut self, bytes: usize) {
        self.exact = self.exact.saturating_sub(bytes);
    }
}

fn within(groups: usize, bytes: usize, node: &Node) -> Result<(), Error> {
    let (limit, max, actual, advice) = if groups > MAX_AGGREGATION_GROUPS {
        (
            "MAX_AGGREGATION_GROUPS",
            MAX_AGGREGATION_GROUPS,
            groups,
            "narrow the query, group by a field with fewer different values, or page through the groups of a composite",
        )
    } else if bytes > MAX_AGGREGATION_BYTES {
        (
            "MAX_AGGREGATION_BYTES",
            MAX_AGGREGATION_BYTES,
            bytes,
            "narrow the query, or aggregate a field with fewer different values",
        )
    } else {
        return Ok(());
    };
    Err(Error::LimitExceeded {
        path: node.path.clone(),
        limit,
        max: max as u64,
        actual: actual as u64,
        advice,
    })
}

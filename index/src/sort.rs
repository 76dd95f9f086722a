//! The order of hits: what a document is sorted by, and the best documents of a search.
//!
//! Within a segment documents are compared by numbers alone, ordinals in the segment's dictionaries in place of strings.
//! Only the few that a segment contributes get their strings, and are then compared with those of other segments. Every
//! order ends in the document's key, so no two documents are equal and pages don't depend on how segments lie. Scores do,
//! in their last digit: they are sums of floats in the order of a segment's postings.

mod check;
mod column;
mod contenders;
mod distance;
mod leading;
mod nearest;
mod objects;
mod order;
mod probe;
pub(crate) mod rank;
mod segment;
mod standing;
mod top;
mod tops;

pub(crate) use leading::Leading;
pub(crate) use order::Order;
pub(crate) use probe::Matches;
pub(crate) use segment::{PreparedOrder, SegmentOrder};
pub(crate) use standing::{Standing, Standings};
pub(crate) use top::{SegmentTop, Top, Winner};
pub(crate) use tops::GroupTops;

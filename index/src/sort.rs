//! The order of hits: what a document is sorted by, and the best documents of a search.
//!
//! Within a segment documents are compared by numbers alone, ordinals in the segment's dictionaries in place of strings.
//! Only the few that a segment contributes get their strings, and are then compared with those of other segments. Every
//! order ends in the document's key, so no two documents are equal and pages don't depend on how segments lie. Scores do,
//! in their last digit: they are sums of floats in the order of a segment's postings.

mod block_max;
mod check;
mod column;
mod distance;
mod leading;
mod nearest;
mod objects;
mod order;
mod per_group_top_k;
pub(crate) mod rank;
mod raw_value;
mod segment;
mod top;
mod top_k;

pub(crate) use block_max::Matches;
pub(crate) use leading::Leading;
pub(crate) use order::{Order, directed};
pub(crate) use per_group_top_k::PerGroupTopK;
pub(crate) use raw_value::{RawSortValue, RawSortValues, STRINGS_PER_CHECK, spell};
pub(crate) use segment::{PreparedOrder, SegmentOrder};
pub(crate) use top::{OFFERED_TOGETHER, SegmentTopCollector, Winner};
pub(crate) use top_k::TopCollector;

//! The order of hits: what a document is sorted by, and the best documents of a search.
//!
//! Within a segment documents are compared by numbers alone, ordinals in the segment's dictionaries in place of strings.
//! Only the few that a segment contributes get their strings, and are then compared with those of other segments. Every
//! order ends in the document's key, so no two documents are equal and pages don't depend on how segments lie. Scores do,
//! in their last digit: they are sums of floats in the order of a segment's postings.
//!
//! | module | what it knows |
//! |---|---|
//! | `order` | the checked order of a request |
//! | `check` | what makes a request's sorts invalid |
//! | `standing` | where a document stands under one key, across segments |
//! | `rank` | the same within one segment, as a number |
//! | `column` | reads the values of a document from a segment's columns |
//! | `objects` | the nested objects of a document |
//! | `segment` | the keys of an order, opened on a segment |
//! | `leading` | the key that decides most comparisons, read in blocks |
//! | `distance`, `nearest` | distances, and the nearest documents by the cells around a point |
//! | `top` | the best documents |
//! | `heads` | the best documents of the best groups |
//! | `tops` | the best documents of each of many groups |
//! | `probe` | which documents to look at first |

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

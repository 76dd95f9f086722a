//! An oracle of the index: answers to random searches, computed in the plainest way from the documents and the definitions
//! of docs/SEARCH.md, with no code and no formula of the index. Sums, ranks and intervals are computed with exact numbers,
//! scores with intervals of what single precision may make of them; a search that hangs on roundings alone is left out.
//!
//! | module | what it knows |
//! |---|---|
//! | `universe`, `world` | random schemas and documents; an index with a history |
//! | `questions`, `question_orders`, `question_aggregations` | random searches |
//! | `matching`, `texts`, `tokens`, `functions`, `geo` | what matches, and its score |
//! | `orders`, `answers` | hits, totals, inner hits |
//! | `groups`, `calendar`, `figures`, `aggregations` | aggregations |
//! | `weights` | which searches are refused for their weights |
//! | `exact`, `interval` | exact numbers, and scores between two ends |
//! | `laws` | what holds whatever the right answers are |
//! | `searches`, `tally` | random searches against the oracle, and how many of each kind |

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test that can't go on says why and fails"
)]

mod aggregations;
mod answers;
mod calendar;
mod exact;
mod figures;
mod functions;
mod geo;
mod groups;
mod interval;
mod laws;
mod matching;
mod orders;
mod question_aggregations;
mod question_orders;
mod questions;
mod searches;
mod tally;
mod texts;
mod tokens;
mod universe;
mod weights;
mod world;

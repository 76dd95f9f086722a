//! Fuzz targets for everything of a search that decodes input: query trees, orders, aggregations, page tokens, patterns; for
//! keys and rows as they are stored; and for what Tablestore's clients send.
//!
//! A target is a function of bytes that panics when something is wrong. `libfuzzer/` drives them by coverage, with
//! cargo-fuzz; the tests of this package drive the same functions, on any toolchain, by [`messages`]: random messages
//! built along the contract's descriptors, so that a new part of the contract is tried without a change here, and bytes
//! of such messages with damage.
//!
//! It is *not* a test of what searches find: that is the oracle's, in `souk-index`.
//!
//! ```
//! let mut random = fastrand::Rng::with_seed(1);
//! let messages = souk_fuzz::messages::Messages::new();
//! souk_fuzz::targets::search(&messages.search(&mut random));
//! ```

pub mod messages;
pub mod tablestore;
pub mod targets;

mod corpus;

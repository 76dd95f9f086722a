//! Ordered keys with snapshots, and one atomic commit with a gap-free sequence: the seam between the wide-column model
//! above and the engine below.
//!
//! A [`Kv`] holds four [`Space`]s of sorted keys. A [`KvSnapshot`] is one cut across all of them. A [`Commit`] is data,
//! not a conversation: checks, mutations and at most one log entry, which happen together or not at all. The engine
//! evaluates the checks, assigns the sequence (gap-free from 1, in commit order), writes it where it is asked to, and
//! makes it all visible at once. No type of an engine crosses the seam.
//!
//! Two engines are here, [`FjallKv`] in a directory and [`MemoryKv`]. Any engine is held to the same suite, `contract`
//! (feature `contract`); another crate runs it on its own engine with `contract_tests!`.
//!
//! | module | what it is about |
//! |---|---|
//! | [`commit`], [`scan`] | what a commit and a read are |
//! | [`engine`] | what an engine does |
//! | [`error`] | why it refuses |
//! | [`fjall`], [`memory`] | the engines |
//! | [`free_space`], [`observer`] | the device and the observer of a store as parameters |
//! | [`histories`] | which history gave a sequence |
//! | [`keys`] | the keys that engines read and write themselves |
//! | [`limits`] | every limit |
//! | [`space`], [`statistics`] | the spaces; what a store holds and does |

pub mod commit;
#[cfg(feature = "contract")]
pub mod contract;
pub mod engine;
pub mod error;
pub mod fjall;
pub mod free_space;
pub mod histories;
pub mod keys;
pub mod limits;
pub mod memory;
pub mod observer;
pub mod scan;
pub mod space;
pub mod statistics;

pub use commit::{Check, Commit, Durability, KvCommitted, Mutation, STAMP};
pub use engine::{Health, Kv, KvLimits, KvSnapshot};
pub use error::{Error, OpenError};
pub use fjall::{FjallKv, FjallOptions, Recovery};
pub use free_space::{DeviceSpace, FreeSpace};
pub use memory::MemoryKv;
pub use observer::{CommitGroup, Observer, Unobserved};
pub use scan::{Direction, Scan, ScanPage};
pub use space::Space;
pub use statistics::Statistics;

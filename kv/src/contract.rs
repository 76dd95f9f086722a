//! The contract suite: what every engine does, whatever is below. An engine is trusted when it passes.
//!
//! Each behaviour is a function of a store that nobody has written to, and panics where the store does otherwise.
//! [`contract_tests!`](crate::contract_tests) makes a test of each:
//!
//! ```
//! use std::sync::Arc;
//!
//! use souk_kv::{Kv, MemoryKv};
//!
//! /// An empty store, and what has to live as long as it: a directory, a server.
//! async fn open() -> (Arc<dyn Kv>, ()) {
//!     (Arc::new(MemoryKv::new()), ())
//! }
//!
//! souk_kv::contract_tests!(open);
//! ```

#![expect(clippy::expect_used, reason = "a behaviour that isn't there ends its test")]

pub mod commits;
pub mod lifecycle;
pub mod order;
pub mod reads;
pub mod restart;
pub mod writes;

use std::sync::Arc;

use crate::commit::Commit;
use crate::engine::Kv;
use crate::error::Error;

/// Makes a `tokio::test` of each behaviour of the contract. Takes the name of an `async fn() -> (Arc<dyn Kv>, T)` that
/// gives an empty store, and what is kept as long as the test runs; for a store that outlives its process also that of an
/// `async fn(&T) -> Arc<dyn Kv>` that opens it again after it was closed and dropped.
#[macro_export]
macro_rules! contract_tests {
    ($open:ident) => {
        $crate::contract_tests! {
            $open;
            writes:
                commits_all_spaces_at_once
                stamps_the_sequence
                writes_nothing_when_a_check_fails
                checks_prefixes
                takes_an_empty_commit
                refuses_what_is_too_large
                refuses_what_is_malformed
                acts_like_a_map
            ;
            order:
                takes_no_sequence_without_a_log_entry
                numbers_its_commit_groups
                checks_again_what_was_written_since_the_validation
                never_calls_a_written_key_unwritten
                lets_one_of_many_creators_win
                loses_no_update
                gives_sequences_without_gaps
                gives_snapshots_their_exact_sequence
                shows_no_snapshot_ahead_of_the_sequence
                tells_the_sequence_before_it_answers
            ;
            reads:
                keeps_the_state_of_a_snapshot
                pages_through_a_range
                ends_a_page_at_its_bytes
                finds_nothing_in_an_inverted_range
                gets_many
                gets_many_within_a_number_of_bytes
            ;
            lifecycle:
                starts_empty
                syncs
                closes
                closes_with_commits_in_flight
            ;
        }
    };
    ($open:ident, $reopen:ident) => {
        $crate::contract_tests!($open);
        $crate::contract_tests! {
            $open, $reopen;
            restart:
                keeps_everything
                continues_sequences_and_groups
                checks_again_what_was_validated_before_a_restart
            ;
        }
    };
    ($open:ident, $reopen:ident; $($part:ident: $($behaviour:ident)*;)*) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $behaviour() {
                let (store, kept) = $open().await;
                $crate::contract::$part::$behaviour(store, async || $reopen(&kept).await).await;
            }
        )*)*
    };
    ($open:ident; $($part:ident: $($behaviour:ident)*;)*) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $behaviour() {
                let (store, _kept) = $open().await;
                $crate::contract::$part::$behaviour(store).await;
            }
        )*)*
    };
}

/// A store that is held to the contract.
pub type SharedKv = Arc<dyn Kv>;

/// Commits, and gives the sequence.
async fn commit(store: &SharedKv, commit: Commit) -> u64 {
    store.commit(commit).await.expect("a commit").sequence
}

/// Commits in vain, and gives the check that failed.
async fn conflict(store: &SharedKv, commit: Commit) -> usize {
    match store.commit(commit).await {
        Err(Error::Conflict { check }) => check,
        other => panic!("expected a conflict, got {other:?}"),
    }
}

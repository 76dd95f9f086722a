//! What every key-value store does, whatever is below: one suite, run on each.

mod life;
mod order;
mod reads;
mod writes;

use std::sync::Arc;

use souk_storage::kv::{Commit, Error, Kv};

/// One test for each behaviour on each store.
macro_rules! contract {
    ($($part:ident: $($behaviour:ident,)*;)*) => {
        mod on_disk {
            use std::sync::Arc;

            use souk_storage::DatabaseOptions;
            use souk_storage::kv::fjall::FjallKv;

            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $behaviour() {
                    let directory = tempfile::tempdir().expect("a directory");
                    let store = FjallKv::open(directory.path(), &DatabaseOptions::default()).await;
                    super::$part::$behaviour(Arc::new(store.expect("a store"))).await;
                }
            )*)*
        }

        mod in_memory {
            use std::sync::Arc;

            use souk_storage::kv::memory::MemoryKv;

            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $behaviour() {
                    super::$part::$behaviour(Arc::new(MemoryKv::new())).await;
                }
            )*)*
        }
    };
}

contract! {
    writes:
        commits_all_spaces_at_once,
        stamps_the_sequence,
        writes_nothing_when_a_check_fails,
        checks_prefixes,
        takes_an_empty_commit,
        refuses_what_is_too_large,
        refuses_what_is_malformed,
        acts_like_a_map,
    ;
    order:
        takes_no_sequence_without_a_log_entry,
        lets_one_of_many_creators_win,
        loses_no_update,
        gives_sequences_without_gaps,
        gives_snapshots_their_exact_sequence,
        shows_no_snapshot_ahead_of_the_sequence,
        tells_the_sequence_before_it_answers,
    ;
    reads:
        keeps_the_state_of_a_snapshot,
        pages_through_a_range,
        ends_a_page_at_its_bytes,
        finds_nothing_in_an_inverted_range,
        gets_many,
    ;
    life:
        starts_empty,
        syncs,
        closes,
        finishes_what_waits_when_it_closes,
    ;
}

type Store = Arc<dyn Kv>;

/// Commits and gives the sequence.
async fn commit(store: &Store, commit: Commit) -> u64 {
    store.commit(commit).await.expect("a commit").sequence
}

async fn conflict(store: &Store, commit: Commit) -> usize {
    match store.commit(commit).await {
        Err(Error::Conflict { check }) => check,
        other => panic!("expected a conflict, got {other:?}"),
    }
}

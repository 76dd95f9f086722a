//! Both engines, held to the contract.

use std::sync::Arc;

use souk_kv::limits::{MAX_COMMIT_BYTES, MAX_KEY_BYTES};
use souk_kv::{FjallKv, FjallOptions, Kv, MemoryKv};
use tempfile::TempDir;

async fn on_disk() -> (Arc<dyn Kv>, TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    (reopened(&directory).await, directory)
}

async fn reopened(directory: &TempDir) -> Arc<dyn Kv> {
    let store = FjallKv::open(directory.path(), &FjallOptions::default()).await;
    Arc::new(store.expect("a store"))
}

async fn in_memory() -> (Arc<dyn Kv>, ()) {
    (Arc::new(MemoryKv::new()), ())
}

mod on_disk {
    use super::{on_disk, reopened};

    souk_kv::contract_tests!(on_disk, reopened);
}

mod in_memory {
    use super::in_memory;

    souk_kv::contract_tests!(in_memory);
}

#[tokio::test]
async fn limits_of_both_engines_are_the_same() {
    let (on_disk, _directory) = on_disk().await;
    for store in [on_disk, in_memory().await.0] {
        let limits = store.limits();
        assert_eq!(
            (limits.key_bytes, limits.commit_bytes),
            (MAX_KEY_BYTES, MAX_COMMIT_BYTES)
        );
    }
}

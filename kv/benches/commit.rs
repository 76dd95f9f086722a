//! Commits per second on the disk, by concurrent writers, and reads of one row.
//!
//! One writer pays for a sync alone; many share it, so their throughput shows whether commits are grouped.

#![expect(clippy::expect_used, reason = "a benchmark that can't go on ends")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use souk_kv::{Check, Commit, Durability, FjallKv, FjallOptions, Kv, Mutation, Space};
use tokio::runtime::Runtime;

const ROWS: u64 = 10_000;
const VALUE_BYTES: usize = 400;

/// What a conditional put becomes: a check, a row, a change.
fn put(key: u64) -> Commit {
    let key = Bytes::copy_from_slice(&key.to_be_bytes());
    Commit {
        checks: vec![Check::Absent {
            space: Space::Rows,
            key: key.clone(),
        }],
        mutations: vec![Mutation::Put {
            space: Space::Rows,
            key,
            value: vec![1; VALUE_BYTES],
            stamp: true,
        }],
        validated_at: None,
        log: Some(vec![1; VALUE_BYTES]),
        durability: Durability::Disk,
    }
}

/// Time that so many writers need for so many commits together, each with fresh keys.
async fn commit(store: &Arc<FjallKv>, writers: u64, commits: u64) -> Duration {
    let first = *store.sequence().borrow();
    let start = Instant::now();
    let tasks: Vec<_> = (0..writers)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                for commit in (writer..commits).step_by(writers as usize) {
                    store.commit(put(first + commit)).await.expect("a commit");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a writer");
    }
    start.elapsed()
}

fn open(runtime: &Runtime) -> (Arc<FjallKv>, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    let store = runtime.block_on(FjallKv::open(directory.path(), &FjallOptions::default()));
    (Arc::new(store.expect("a store")), directory)
}

fn commits(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let mut group = criterion.benchmark_group("commit");
    group.throughput(Throughput::Elements(1));
    for writers in [1, 16, 64] {
        let (store, _directory) = open(&runtime);
        group.bench_function(format!("{writers}_writers"), |bencher| {
            bencher.iter_custom(|commits| runtime.block_on(commit(&store, writers, commits)));
        });
    }
    group.finish();
}

fn gets(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let (store, _directory) = open(&runtime);
    runtime.block_on(commit(&store, 64, ROWS));
    criterion.bench_function("get", |bencher| {
        bencher.iter_custom(|gets| {
            runtime.block_on(async {
                let snapshot = store.snapshot().await.expect("a snapshot");
                let start = Instant::now();
                for _ in 0..gets {
                    let key = fastrand::u64(..ROWS).to_be_bytes();
                    let row = snapshot.get(Space::Rows, &key).await.expect("a read");
                    assert!(black_box(row).is_some());
                }
                start.elapsed()
            })
        });
    });
}

criterion_group!(benches, commits, gets);
criterion_main!(benches);

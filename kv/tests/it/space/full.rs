//! A device whose room is scripted.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use souk_kv::{Commit, Error, FjallOptions, FreeSpace, Health, Kv, Space};

use super::{PATIENCE, open, options};
use crate::commits::*;

const RESERVE: u64 = 1000;
/// Groups after which the device has been looked at again.
const GROUPS: usize = 64;
/// Instead of a number of bytes: the operating system doesn't tell.
const UNKNOWN: u64 = u64::MAX;

#[derive(Debug)]
struct Device(AtomicU64);

impl FreeSpace for Device {
    fn free_bytes(&self, directory: &Path) -> io::Result<u64> {
        assert!(directory.is_dir());
        match self.0.load(Ordering::SeqCst) {
            UNKNOWN => Err(io::ErrorKind::Unsupported.into()),
            free => Ok(free),
        }
    }
}

fn device(free: u64) -> (Arc<Device>, FjallOptions) {
    let device = Arc::new(Device(AtomicU64::new(free)));
    let options = FjallOptions {
        reserve_bytes: RESERVE,
        free_space: device.clone(),
        ..options()
    };
    (device, options)
}

fn refused(result: Result<souk_kv::KvCommitted, Error>) -> String {
    match result {
        Err(Error::DiskFull { reason }) => reason,
        other => panic!("expected a full device, got {other:?}"),
    }
}

fn grow() -> Commit {
    logged(vec![put(Space::Rows, b"row", b"value")], b"")
}

#[tokio::test]
async fn refuses_writes_and_takes_them_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let (device, options) = device(RESERVE);
    let store = open(directory.path(), &options).await;
    store.commit(grow()).await.expect("just enough room");
    device.0.store(RESERVE - 1, Ordering::SeqCst);
    let mut taken = 1;
    let reason = loop {
        match store.commit(grow()).await {
            Ok(_) => taken += 1,
            refusal => break refused(refusal),
        }
        assert!(taken <= GROUPS, "the device is looked at now and then");
    };
    assert!(reason.contains("999") && reason.contains("1000"), "{reason}");
    assert!(matches!(&*store.health().borrow(), Health::Full { reason: shown } if *shown == reason));
    // Nothing was written, and what was is read.
    let cut = snapshot(&store).await;
    assert_eq!(cut.sequence(), taken as u64);
    assert!(cut.get(Space::Rows, b"row").await.expect("a read").is_some());
    store.sync().await.expect("what was taken is made durable");

    device.0.store(RESERVE, Ordering::SeqCst);
    assert_eq!(
        store.commit(grow()).await.expect("room").sequence,
        taken as u64 + 1
    );
    assert_eq!(*store.health().borrow(), Health::Serving);
}

#[tokio::test]
async fn recovers_while_nobody_writes() {
    let directory = tempfile::tempdir().expect("a directory");
    let (device, options) = device(0);
    let store = open(directory.path(), &options).await;
    let mut health = store.health();
    let full = health.wait_for(|health| matches!(health, Health::Full { .. }));
    drop(
        tokio::time::timeout(PATIENCE, full)
            .await
            .expect("noticed when opened"),
    );
    device.0.store(RESERVE, Ordering::SeqCst);
    let serving = health.wait_for(|health| *health == Health::Serving);
    drop(
        tokio::time::timeout(PATIENCE, serving)
            .await
            .expect("noticed without a write"),
    );
    store.commit(grow()).await.expect("a commit");
}

/// What shrinks the data is taken for longer: there must be a way out.
#[tokio::test]
async fn takes_deletes_and_trimming_for_longer() {
    let directory = tempfile::tempdir().expect("a directory");
    let (device, options) = device(RESERVE);
    let store = open(directory.path(), &options).await;
    store.commit(grow()).await.expect("a commit");
    let shrink = || logged(vec![delete(Space::Rows, b"row")], b"");
    let trim = || {
        unlogged(vec![
            delete(Space::Log, &1u64.to_be_bytes()),
            put(Space::Catalog, &[2], &[0; 8]),
        ])
    };
    let index = || unlogged(vec![put(Space::Index, b"entry", b"")]);
    drop(store);
    for (free, grows, shrinks, trims) in [
        (RESERVE, true, true, true),
        (RESERVE - 1, false, true, true),
        (RESERVE / 2, false, true, true),
        (RESERVE / 2 - 1, false, false, true),
        (RESERVE / 4, false, false, true),
        (RESERVE / 4 - 1, false, false, false),
        (UNKNOWN, true, true, true),
    ] {
        device.0.store(free, Ordering::SeqCst);
        let store = open(directory.path(), &options).await;
        for (commit, taken) in [
            (grow(), grows),
            (index(), grows),
            (shrink(), shrinks),
            (trim(), trims),
        ] {
            match (store.commit(commit).await, taken) {
                (Ok(_), true) => {}
                (refusal, false) => drop(refused(refusal)),
                (other, true) => panic!("with {free} bytes free: {other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn never_refuses_without_a_reserve() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_, scripted) = device(0);
    let options = FjallOptions {
        reserve_bytes: 0,
        ..scripted
    };
    let store = open(directory.path(), &options).await;
    store.commit(grow()).await.expect("a commit");
    assert_eq!(*store.health().borrow(), Health::Serving);
}

//! A file system that is really full, or really read-only. Mounting one takes root; without, the tests say that they
//! checked nothing.

use std::fs;
use std::path::Path;
use std::process::Command;

use souk_kv::{Error, FjallKv, FjallOptions, Health, Kv, OpenError, Space};
use tempfile::TempDir;

use super::{noise, open, options};
use crate::commits::*;

/// Size of the file system: the engine's journal alone takes up to 64 MiB.
const MIB: usize = 128;
const RESERVE: u64 = 24 << 20;
const ROW: usize = 100_000;

/// A mounted file system in memory.
struct Mount(TempDir);

impl Mount {
    fn new() -> Option<Self> {
        let directory = tempfile::tempdir().expect("a directory");
        let size = format!("size={MIB}m");
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(directory.path())
            .output();
        match mount {
            Ok(output) if output.status.success() => Some(Self(directory)),
            other => {
                println!("NOT CHECKED: mounting a file system takes root on Linux: {other:?}");
                None
            }
        }
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn remount(&self, how: &str) {
        let remount = Command::new("mount").args(["-o", how]).arg(self.path()).status();
        assert!(remount.expect("mount").success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["--lazy"]).arg(self.path()).status();
    }
}

/// Writes rows until one is refused: how many were taken, and why no more.
async fn fill(store: &FjallKv, from: u64, random: &mut fastrand::Rng) -> (u64, Error) {
    for row in from.. {
        let put = put(Space::Rows, &row.to_be_bytes(), &noise(random, ROW));
        if let Err(error) = store.commit(logged(vec![put], b"")).await {
            return (row - from, error);
        }
    }
    unreachable!("the file system is larger than all numbers")
}

async fn assert_rows(store: &FjallKv, rows: u64) {
    let cut = snapshot(store).await;
    assert_eq!(cut.sequence(), rows);
    for row in 0..rows {
        let value = cut.get(Space::Rows, &row.to_be_bytes()).await.expect("a read");
        assert_eq!(value.expect("an acknowledged row").len(), ROW);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refuses_before_the_device_is_full() {
    let mut random = random();
    let Some(mount) = Mount::new() else { return };
    let ballast = mount.path().join("ballast");
    fs::write(&ballast, noise(&mut random, 30 << 20)).expect("a ballast");
    let options = FjallOptions {
        reserve_bytes: RESERVE,
        ..options()
    };
    let directory = mount.path().join("database");
    let store = open(&directory, &options).await;
    let (taken, refusal) = fill(&store, 0, &mut random).await;
    assert!(
        taken > 0 && matches!(refusal, Error::DiskFull { .. }),
        "{taken}: {refusal:?}"
    );
    assert!(matches!(&*store.health().borrow(), Health::Full { .. }));
    assert_rows(&store, taken).await;
    // The engine has room to finish what it took, and it can be opened again.
    store.quiesce().await.expect("quiesced");
    store.close().await.expect("a close");
    drop(store);
    let store = open(&directory, &options).await;
    assert_rows(&store, taken).await;
    fs::remove_file(ballast).expect("room");
    let (more, refusal) = fill(&store, taken, &mut random).await;
    assert!(
        more > 0 && matches!(refusal, Error::DiskFull { .. }),
        "{more}: {refusal:?}"
    );
    assert_rows(&store, taken + more).await;
}

/// Without a reserve the write itself fails: nobody is told that it worked, reads go on, and it ends with a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keeps_what_it_took_when_the_device_is_full() {
    let mut random = random();
    let Some(mount) = Mount::new() else { return };
    let ballast = mount.path().join("ballast");
    fs::write(&ballast, noise(&mut random, 40 << 20)).expect("a ballast");
    let options = FjallOptions {
        reserve_bytes: 0,
        ..options()
    };
    let directory = mount.path().join("database");
    let store = open(&directory, &options).await;
    let (taken, failure) = fill(&store, 0, &mut random).await;
    let Error::OutcomeUnknown { reason, .. } = failure else {
        panic!("expected a failed write, got {failure:?}");
    };
    println!("{taken} rows, then: {reason}");
    let shown = store.health().borrow().clone();
    assert!(matches!(&shown, Health::Failed { .. }), "{shown:?}");
    // The engine says what failed only of what it did when it was asked to.
    let told = reason.contains("the device is full") || reason.contains("in the background");
    assert!(
        told && reason.ends_with("bytes are free on the device"),
        "{reason}"
    );
    assert_rows(&store, taken).await;
    let refused = store.commit(logged(vec![], b"")).await;
    assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refused:?}");
    let closed = store.close().await;
    assert!(matches!(closed, Err(Error::OutcomeUnknown { .. })), "{closed:?}");
    drop(store);
    fs::remove_file(ballast).expect("room");
    let store = open(&directory, &options).await;
    let found = snapshot(&store).await.sequence();
    // The one whose outcome was not known may have happened.
    assert!(found == taken || found == taken + 1, "{found} of {taken}");
    assert_rows(&store, found).await;
    store.commit(logged(vec![], b"")).await.expect("a commit");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn says_that_a_directory_is_read_only() {
    let Some(mount) = Mount::new() else { return };
    let options = FjallOptions {
        reserve_bytes: RESERVE,
        ..options()
    };
    let directory = mount.path().join("database");
    let store = open(&directory, &options).await;
    store.commit(logged(vec![], b"")).await.expect("a commit");
    store.close().await.expect("a close");
    drop(store);
    mount.remount("remount,ro");
    for directory in [directory.clone(), mount.path().join("another")] {
        let error = FjallKv::open(&directory, &options).await.expect_err("read-only");
        let OpenError::Io { path, source, .. } = &error else {
            panic!("expected the file system's refusal, got {error:?}");
        };
        assert_eq!(source.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
        assert!(path.starts_with(&directory), "{path:?}");
    }
    mount.remount("remount,rw");
    let store = open(&directory, &options).await;
    assert_eq!(snapshot(&store).await.sequence(), 1);
}

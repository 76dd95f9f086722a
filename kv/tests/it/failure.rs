//! A write that fails: nobody is told it worked, nobody sees it, and nothing comes after it.

use std::path::Path;
use std::process::Command;

use souk_kv::{Error, FjallKv, FjallOptions, Health, Kv, Space};

use crate::commits::*;

/// Tells the writer where to work.
const DIRECTORY: &str = "SOUK_FAILURE_DIRECTORY";
/// Largest file the writer may make, KiB: a little more than the engine's empty journal.
const FILE_KIB: usize = 65 << 10;

/// The shell refuses the writer large files, which makes a write to the journal fail (`EFBIG`), in the middle.
#[cfg(unix)]
#[tokio::test]
async fn stops_after_a_write_that_failed() {
    let directory = tempfile::tempdir().expect("a directory");
    let output = Command::new("bash")
        .args([
            "-c",
            &format!("trap '' XFSZ; ulimit -f {FILE_KIB}; exec \"$0\" \"$@\""),
        ])
        .arg(std::env::current_exe().expect("the path of this binary"))
        .args(["--exact", "failure::writer", "--ignored", "--nocapture"])
        .env(DIRECTORY, directory.path())
        .output()
        .expect("a writer");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );

    let store = FjallKv::open(directory.path(), &FjallOptions::default())
        .await
        .expect("a store");
    let snapshot = snapshot(&store).await;
    assert_eq!((snapshot.sequence(), log(&*snapshot).await.len()), (1, 1));
    assert_eq!(snapshot.get(Space::Rows, b"large").await.expect("a read"), None);
    assert_eq!(
        store
            .commit(logged(vec![], b""))
            .await
            .expect("a commit")
            .sequence,
        2
    );
}

#[tokio::test]
#[ignore = "runs in the process that may not write large files"]
async fn writer() {
    let directory = std::env::var(DIRECTORY).expect("a directory to work in");
    let store = FjallKv::open(Path::new(&directory), &FjallOptions::default())
        .await
        .expect("a store");
    let small = logged(vec![put(Space::Rows, b"small", b"value")], b"");
    assert_eq!(store.commit(small.clone()).await.expect("a commit").sequence, 1);

    // Random, for the journal is compressed.
    let mut value = vec![0; FILE_KIB << 10];
    random().fill(&mut value);
    let large = logged(vec![put(Space::Rows, b"large", &value)], b"");
    let failed = store.commit(large).await;
    assert!(
        matches!(failed, Err(Error::OutcomeUnknown { disk_full: false, .. })),
        "{failed:?}"
    );
    assert!(matches!(&*store.health().borrow(), Health::Failed { .. }));

    let snapshot = snapshot(&store).await;
    assert_eq!((snapshot.sequence(), *store.sequence().borrow()), (1, 1));
    assert_eq!(snapshot.get(Space::Rows, b"large").await.expect("a read"), None);
    assert!(
        snapshot
            .get(Space::Rows, b"small")
            .await
            .expect("a read")
            .is_some()
    );

    let refused = store.commit(small).await;
    assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refused:?}");
    let refused = store.sync().await;
    assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refused:?}");
    for _ in 0..2 {
        let closed = store.close().await;
        assert!(matches!(closed, Err(Error::OutcomeUnknown { .. })), "{closed:?}");
    }
}

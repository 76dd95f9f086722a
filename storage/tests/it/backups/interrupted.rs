//! Backups and restores that end in the middle.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::task::Poll;

use souk_storage::restore::restore;
use souk_storage::{Backup, BackupFolder, BackupPolicy, Database, DatabaseOptions, Error};

use super::{folder, names};
use crate::commits::random;
use crate::sample::Sample;

/// Tells the child where to work.
const DIRECTORY: &str = "SOUK_BACKUP_DIRECTORY";
const TAKEN: &str = "taken ";
const ROUNDS: usize = 10;

fn policy() -> BackupPolicy {
    BackupPolicy {
        increments: 3,
        keep: 3,
    }
}

/// A process that writes and takes backups without an end is killed, again and again. Whatever is a backup can be
/// restored, up to the last that it told of.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_leaves_no_half_backup() {
    let mut random = random();
    let directory = folder();
    let backups = directory.path().join("backups");
    for round in 0..ROUNDS {
        let told = take_until_killed(directory.path(), random.usize(1..12), random.u64(..2_000));
        let folder = BackupFolder::new(&backups);
        let chain = folder.newest_chain().await.expect("a chain");
        let last = chain.last().expect("a backup").manifest.sequence;
        assert!(last >= told, "round {round}: told {told}, found {last}");
        let target = directory.path().join("restored");
        let restored = restore(&chain, &target).await.expect("a restore");
        assert!(restored.check.is_whole(), "{:#?}", restored.check.problems);
        assert_eq!(restored.sequence, last);
        fs::remove_dir_all(&target).expect("a removal");
        for name in names(&backups).iter().filter(|name| name.ends_with(".partial")) {
            let half = Backup::open(backups.join(name)).await;
            // It may have been cut off just before or after it was whole; then it isn't under its name.
            println!("round {round}: {name} is left, {}", half.is_ok());
        }
    }
}

/// Runs the child until it has told of so many backups and a little longer; gives the last sequence it told of.
fn take_until_killed(directory: &Path, until: usize, spins: u64) -> u64 {
    let mut child = Command::new(std::env::current_exe().expect("the path of this binary"))
        .args([
            "--exact",
            "backups::interrupted::child",
            "--ignored",
            "--nocapture",
        ])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let mut told = 0;
    let mut count = 0;
    while count < until {
        let line = lines.next().expect("it goes on").expect("a line");
        if let Some(sequence) = line.strip_prefix(TAKEN) {
            told = sequence.parse().expect("a sequence");
            count += 1;
        }
    }
    // Not always just after a backup.
    for _ in 0..spins {
        std::thread::yield_now();
    }
    child.kill().expect("a kill");
    child.wait().expect("its end");
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of another test"]
async fn child() {
    let Some(directory) = std::env::var_os(DIRECTORY) else {
        return;
    };
    let directory = Path::new(&directory);
    let mut sample = Sample::open(&directory.join("db"), random()).await;
    // Times go on from round to round.
    let last = i64::try_from(sample.database.last_sequence()).expect("a sequence");
    sample
        .clock
        .set(1_700_000_000_000_000_000 + last * 30_000_000_000);
    let folder = BackupFolder::new(directory.join("backups"));
    loop {
        sample.write(7).await;
        let taken = folder.take(&sample.database, policy()).await.expect("a backup");
        println!(
            "{TAKEN}{}",
            taken.expect("something was written").manifest.sequence
        );
    }
}

/// A backup whose future is dropped after any number of steps is none; the next one clears it away.
#[tokio::test]
async fn a_dropped_backup_is_none() {
    let directory = folder();
    let mut sample = Sample::open(&directory.path().join("db"), random()).await;
    sample.write(20).await;
    let target = directory.path().join("backup");
    let mut steps = 0;
    let taken = loop {
        let mut backup = Box::pin(sample.database.backup(&target, None));
        let mut left = steps;
        let ended = std::future::poll_fn(|context| match backup.as_mut().poll(context) {
            Poll::Ready(taken) => Poll::Ready(Some(taken)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => {
                left -= 1;
                Poll::Pending
            }
        })
        .await;
        drop(backup);
        match ended {
            None => steps += 1,
            // A step of the one before is still at work, or it went on to be whole.
            Some(Err(Error::Locked { .. })) => tokio::task::yield_now().await,
            Some(Err(Error::Invalid { .. })) => break None,
            Some(taken) => break taken.ok(),
        }
    };
    assert!(steps > 0);
    let taken = match taken {
        Some(taken) => taken,
        None => Backup::open(&target).await.expect("a whole backup"),
    };
    let restored = restore(&[taken], directory.path().join("restored")).await;
    assert!(restored.expect("a restore").check.is_whole());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_begun_is_no_backup() {
    let directory = folder();
    let mut sample = Sample::open(&directory.path().join("db"), random()).await;
    sample.write(20).await;
    let target = directory.path().join("backup");
    let partial = directory.path().join("backup.partial");
    fs::create_dir(&partial).expect("a folder");
    fs::write(partial.join("rows-00001.blocks"), b"half").expect("a file");
    let half = Backup::open(&partial).await;
    assert!(matches!(half, Err(Error::UnusableBackup { .. })), "{half:?}");
    // While someone holds it, nobody else takes it.
    let lock = File::create(partial.join("LOCK")).expect("a file");
    lock.lock().expect("a lock");
    let refused = sample.database.backup(&target, None).await;
    assert!(matches!(refused, Err(Error::Locked { .. })), "{refused:?}");
    drop(lock);
    let taken = sample.database.backup(&target, None).await.expect("a backup");
    assert!(!partial.exists());
    let names = names(&taken.directory);
    assert!(
        names
            .iter()
            .all(|name| name == "MANIFEST" || name.ends_with(".blocks"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_interrupted_restore_left_is_in_nobodys_way() {
    let directory = folder();
    let mut sample = Sample::open(&directory.path().join("db"), random()).await;
    sample.write(20).await;
    let backup = sample
        .database
        .backup(directory.path().join("backup"), None)
        .await;
    let backup = backup.expect("a backup");
    let target = directory.path().join("restored");
    let building = directory.path().join("restored.restoring");
    let other = Database::open(&building, DatabaseOptions::default()).await;
    let refused = restore(std::slice::from_ref(&backup), &target).await;
    assert!(matches!(refused, Err(Error::Locked { .. })), "{refused:?}");
    other.expect("a database").close().await.expect("a close");
    let restored = restore(&[backup], &target).await.expect("a restore");
    assert_eq!(restored.sequence, 20);
    assert!(!building.exists());
}

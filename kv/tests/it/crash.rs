//! Ends the process in the middle of its work, again and again, and looks at what is left.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use souk_kv::{FjallKv, Kv};

use crate::commits::*;
use crate::faults::rounds;
use crate::faults::workload::{ACKNOWLEDGED, DIRECTORY, History, WRITER, options, verify};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loses_no_acknowledged_commit_when_it_is_killed() {
    let mut random = random();
    let mut directory = tempfile::tempdir().expect("a directory");
    let mut history = History::default();
    for round in 0..rounds(20, 250) {
        // The log of the writer is never trimmed.
        if round % 25 == 24 {
            directory = tempfile::tempdir().expect("a directory");
            history = History::default();
        }
        let until = random.usize(1..1500);
        write_until_killed(directory.path(), until, random.u64(..), &mut history);
        let store = FjallKv::open(directory.path(), &options())
            .await
            .expect("a store");
        let last = verify(&store, &history, history.newest()).await;
        println!("round {round}: {} acknowledged, {last} in the log", history.len());
        // Every other round goes on from a crash alone.
        if round % 2 == 0 {
            store.close().await.expect("a close");
        }
    }
}

/// Runs the writer until it has acknowledged so many commits, then kills it.
fn write_until_killed(directory: &Path, until: usize, seed: u64, history: &mut History) {
    let mut writer = Command::new(std::env::current_exe().expect("the path of this binary"))
        .args(["--exact", WRITER, "--ignored", "--nocapture"])
        .env(DIRECTORY, directory)
        .env("SOUK_SEED", seed.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a writer");
    let mut lines = BufReader::new(writer.stdout.take().expect("its output"));
    let mut acknowledged = 0;
    let mut line = String::new();
    // The last line may have been cut off.
    while lines.read_line(&mut line).expect("a line") > 0 && line.ends_with('\n') {
        history.hear(line.trim_end());
        if line.starts_with(ACKNOWLEDGED) {
            acknowledged += 1;
            if acknowledged == until {
                writer.kill().expect("a kill");
            }
        }
        line.clear();
    }
    let status = writer.wait().expect("an end");
    assert!(acknowledged >= until, "the writer ended by itself: {status}");
}

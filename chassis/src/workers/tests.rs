use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::*;

/// Time for a thread to end, far more than it takes.
const END_MAX: Duration = Duration::from_secs(10);

/// Starts connections that say which worker they are on, and go on until the token is cancelled.
fn spawn(
    workers: &Workers,
    tasks: &TaskTracker,
    count: usize,
    until: &CancellationToken,
) -> mpsc::UnboundedReceiver<Option<usize>> {
    let (say, said) = mpsc::unbounded_channel();
    for _ in 0..count {
        let (say, until) = (say.clone(), until.clone());
        workers.spawn(tasks, async move {
            say.send(current()).expect("the test listens");
            until.cancelled().await;
        });
    }
    said
}

#[tokio::test]
async fn connections_stay_with_the_worker_that_had_fewest() {
    let (workers, tasks) = (Workers::start(3).expect("threads"), TaskTracker::new());
    let until = CancellationToken::new();
    let mut said = spawn(&workers, &tasks, 6, &until);
    let mut counts = BTreeMap::new();
    while let Some(worker) = said.recv().await {
        *counts.entry(worker).or_insert(0) += 1;
        if counts.values().sum::<usize>() == 6 {
            break;
        }
    }
    assert_eq!(counts, BTreeMap::from([(Some(0), 2), (Some(1), 2), (Some(2), 2)]));
    assert_eq!(current(), None, "this thread is none");
    until.cancel();
    tasks.close();
    tasks.wait().await;
    // All have as many again, none, and the first gets the next.
    let again = CancellationToken::new();
    let mut said = spawn(&workers, &TaskTracker::new(), 1, &again);
    assert_eq!(said.recv().await, Some(Some(0)));
}

#[tokio::test]
async fn without_workers_connections_are_served_where_they_are_accepted() {
    let (workers, tasks) = (Workers::start(0).expect("no thread"), TaskTracker::new());
    let mut said = spawn(&workers, &tasks, 1, &CancellationToken::new());
    assert_eq!(said.recv().await, Some(None));
    assert_eq!(tasks.len(), 1);
}

#[tokio::test]
async fn what_runs_on_workers_ends_with_them() {
    let (workers, tasks) = (Workers::start(1).expect("threads"), TaskTracker::new());
    let mut said = spawn(&workers, &tasks, 1, &CancellationToken::new());
    assert_eq!(said.recv().await, Some(Some(0)));
    let mine = |runtimes: &[RuntimeMetrics]| runtimes.iter().any(|runtime| runtime.num_alive_tasks() == 1);
    assert!(mine(&runtimes()), "its runtime is measured");
    drop(workers);
    // Its task was dropped, and its sender with it.
    let ended = tokio::time::timeout(END_MAX, said.recv()).await;
    assert_eq!(ended, Ok(None));
}

#[tokio::test]
async fn nobody_waits_for_a_worker_that_is_stuck() {
    let (workers, tasks) = (Workers::start(1).expect("threads"), TaskTracker::new());
    let (go_on, hung) = std::sync::mpsc::channel::<()>();
    let (say, mut said) = mpsc::unbounded_channel();
    workers.spawn(&tasks, async move {
        say.send("stuck").expect("the test listens");
        // As a read of a disk that hangs.
        let _ = hung.recv();
        say.send("on").expect("the test listens");
    });
    assert_eq!(said.recv().await, Some("stuck"));
    drop(workers);
    assert_eq!(tasks.len(), 1, "it is stuck still");
    drop(go_on);
    let ended = tokio::time::timeout(END_MAX, said.recv()).await;
    assert_eq!(ended, Ok(Some("on")));
}

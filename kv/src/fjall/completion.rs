//! Completion batching: cuts the cross-thread wake-ups that acknowledging a commit group takes.
//!
//! Waking a current-thread runtime from another thread is a system call, after which it runs at once. Were each commit of
//! a group completed by itself, that would happen once a commit, and the answers would leave one by one. So the commits
//! of a group whose callers wait on the same current-thread runtime are completed together, by a task of that runtime.

use std::cell::RefCell;

use tokio::runtime::{Handle, Id, RuntimeFlavor};
use tokio::sync::{mpsc, oneshot};

use crate::commit::KvCommitted;
use crate::error::Error;

type CommitResult = Result<KvCommitted, Error>;

thread_local! {
    /// The dispatcher of the runtime that this thread runs.
    static DISPATCHER: RefCell<Option<Dispatcher>> = const { RefCell::new(None) };
}

/// Sends the result of a commit to its caller; see [`complete`]. When it is dropped instead, the receiver fails.
#[derive(Debug)]
pub(super) struct Completion {
    sender: oneshot::Sender<CommitResult>,
    /// `None` when the caller isn't a task of a current-thread runtime.
    dispatcher: Option<Dispatcher>,
}

impl Completion {
    /// A completion and its receiver, which must be awaited in the task that calls this, if one does.
    pub(super) fn new() -> (Self, oneshot::Receiver<CommitResult>) {
        let (sender, receiver) = oneshot::channel();
        let dispatcher = Dispatcher::current();
        (Self { sender, dispatcher }, receiver)
    }
}

/// Completes commits; those of one runtime are completed in this order.
pub(super) fn complete(results: impl IntoIterator<Item = (Completion, CommitResult)>) {
    let mut batches: Vec<(Dispatcher, CompletionBatch)> = Vec::new();
    for (Completion { sender, dispatcher }, result) in results {
        let completed = Completed { sender, result };
        match dispatcher {
            None => completed.send(),
            Some(dispatcher) => match batches.iter_mut().find(|(known, _)| known.is_same(&dispatcher)) {
                Some((_, batch)) => batch.0.push(completed),
                None => batches.push((dispatcher, CompletionBatch(vec![completed]))),
            },
        }
    }
    for (dispatcher, batch) in batches {
        // Dropping a batch completes it, here: one alone, and one whose dispatcher is gone, which `send` returns.
        if batch.0.len() > 1 {
            drop(dispatcher.batches.send(batch));
        }
    }
}

/// The handle of a task that completes batches on the runtime of their callers.
#[derive(Clone, Debug)]
struct Dispatcher {
    runtime: Id,
    /// Never holds more completions than there are commits that wait.
    batches: mpsc::UnboundedSender<CompletionBatch>,
}

impl Dispatcher {
    /// The dispatcher of the current-thread runtime that runs this task. `None` outside of a task, where the caller may
    /// block the thread that would run the dispatcher, and on a multi-thread runtime.
    fn current() -> Option<Self> {
        tokio::task::try_id()?;
        let handle = Handle::try_current().ok()?;
        if handle.runtime_flavor() != RuntimeFlavor::CurrentThread {
            return None;
        }
        DISPATCHER.with_borrow_mut(|dispatcher| {
            let runtime = handle.id();
            let known = dispatcher
                .take()
                .filter(|known| known.runtime == runtime && !known.batches.is_closed());
            let current = known.unwrap_or_else(|| Self::start(&handle));
            *dispatcher = Some(current.clone());
            Some(current)
        })
    }

    /// Spawns the task. It ends with the runtime, or when its thread has another dispatcher and nothing waits for this one.
    fn start(runtime: &Handle) -> Self {
        let (batches, mut arrived) = mpsc::unbounded_channel::<CompletionBatch>();
        runtime.spawn(async move {
            while let Some(batch) = arrived.recv().await {
                // Dropping a batch completes it.
                drop(batch);
            }
        });
        let runtime = runtime.id();
        Self { runtime, batches }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.batches.same_channel(&other.batches)
    }
}

/// Completions that are sent together, when it is dropped: so none is lost with a runtime that ends before its task runs.
#[derive(Debug)]
struct CompletionBatch(Vec<Completed>);

impl Drop for CompletionBatch {
    fn drop(&mut self) {
        self.0.drain(..).for_each(Completed::send);
    }
}

/// A result with its caller's sender.
#[derive(Debug)]
struct Completed {
    sender: oneshot::Sender<CommitResult>,
    result: CommitResult,
}

impl Completed {
    fn send(self) {
        // A caller that stopped waiting doesn't need to know.
        let _ = self.sender.send(self.result);
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;

    use super::*;

    const COMMITS: u64 = 5;

    /// The completions of [`COMMITS`] commits with their results, and the receivers.
    fn waiting() -> (
        Vec<(Completion, CommitResult)>,
        Vec<oneshot::Receiver<CommitResult>>,
    ) {
        let result = |sequence| Ok(KvCommitted { sequence });
        (0..COMMITS)
            .map(|sequence| {
                let (completion, receiver) = Completion::new();
                ((completion, result(sequence)), receiver)
            })
            .unzip()
    }

    /// The sequences that have arrived.
    fn arrived(waiting: &mut [oneshot::Receiver<CommitResult>]) -> Vec<u64> {
        let arrived = waiting.iter_mut().filter_map(|answer| answer.try_recv().ok());
        arrived
            .map(|outcome| outcome.expect("committed").sequence)
            .collect()
    }

    #[tokio::test]
    async fn a_runtime_of_one_thread_is_sent_all_by_a_task_of_it() {
        let task = tokio::spawn(async {
            let (outcomes, mut waiting) = waiting();
            let committer = std::thread::spawn(|| complete(outcomes));
            committer.join().expect("no panic");
            assert_eq!(arrived(&mut waiting), [], "none before the dispatcher ran");
            tokio::task::yield_now().await;
            assert_eq!(arrived(&mut waiting), [0, 1, 2, 3, 4]);
        });
        task.await.expect("no panic");
    }

    #[tokio::test]
    async fn one_alone_is_sent_at_once() {
        let task = tokio::spawn(async {
            let (mut outcomes, mut waiting) = waiting();
            complete(outcomes.drain(..1));
            assert_eq!(arrived(&mut waiting), [0]);
        });
        task.await.expect("no panic");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_runtime_of_many_threads_is_sent_each_at_once() {
        let task = tokio::spawn(async {
            let (outcomes, mut waiting) = waiting();
            complete(outcomes);
            assert_eq!(arrived(&mut waiting), [0, 1, 2, 3, 4]);
        });
        task.await.expect("no panic");
    }

    #[test]
    fn a_blocked_thread_is_sent_each_at_once() {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        let (outcomes, mut waiting) = runtime.block_on(async { waiting() });
        complete(outcomes);
        assert_eq!(arrived(&mut waiting), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn no_completion_is_lost_with_a_runtime() {
        let runtimes = [(); 2].map(|()| Builder::new_current_thread().build().expect("a runtime"));
        let [(first, mut of_first), (second, mut of_second)] = runtimes.each_ref().map(|runtime| {
            let waiting = runtime.block_on(async { tokio::spawn(async { waiting() }).await });
            waiting.expect("no panic")
        });
        let [first_runtime, second_runtime] = runtimes;
        drop(first_runtime);
        complete(first.into_iter().chain(second));
        assert_eq!(arrived(&mut of_first), [0, 1, 2, 3, 4], "it was gone before");
        assert_eq!(arrived(&mut of_second), [], "each runtime has its own dispatcher");
        drop(second_runtime);
        assert_eq!(
            arrived(&mut of_second),
            [0, 1, 2, 3, 4],
            "it ended before it sent them"
        );
    }
}

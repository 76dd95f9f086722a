//! Answers, carried to those who wait for them in few wakes.
//!
//! To wake a runtime of one thread from another costs a system call each time, and its thread starts at once: with a wake for each commit of
//! a group, its first caller would be answered before the second is told, and each alone. So those of a group who wait on such a runtime
//! are told together, by a task of it.

use std::cell::RefCell;

use tokio::runtime::{Handle, Id, RuntimeFlavor};
use tokio::sync::{mpsc, oneshot};

use crate::commit::KvCommitted;
use crate::error::Error;

type Outcome = Result<KvCommitted, Error>;

thread_local! {
    /// The courier of the runtime that this thread runs.
    static COURIER: RefCell<Option<Courier>> = const { RefCell::new(None) };
}

/// Where the outcome of a commit is waited for. Dropped without one, whoever waits learns just that.
#[derive(Debug)]
pub(super) struct Answer {
    to: oneshot::Sender<Outcome>,
    courier: Option<Courier>,
}

/// An answer to be given, and where it is waited for: in this task, if it is called in one.
pub(super) fn answer() -> (Answer, oneshot::Receiver<Outcome>) {
    let (to, waiting) = oneshot::channel();
    let courier = Courier::here();
    (Answer { to, courier }, waiting)
}

/// Tells everyone, in order for each runtime.
pub(super) fn tell(outcomes: impl IntoIterator<Item = (Answer, Outcome)>) {
    let mut parcels: Vec<(Courier, Parcel)> = Vec::new();
    for (Answer { to, courier }, outcome) in outcomes {
        let told = Told { to, outcome };
        match courier {
            None => told.hand_over(),
            Some(courier) => match parcels.iter_mut().find(|(known, _)| known.is(&courier)) {
                Some((_, parcel)) => parcel.0.push(told),
                None => parcels.push((courier, Parcel(vec![told]))),
            },
        }
    }
    for (courier, parcel) in parcels {
        // One alone needs no courier. The parcel of one that is gone comes back, and is handed over here.
        if parcel.0.len() > 1 {
            drop(courier.parcels.send(parcel));
        }
    }
}

/// A task of a runtime that hands answers over there.
#[derive(Clone, Debug)]
struct Courier {
    runtime: Id,
    /// Never holds more answers than there are commits that wait.
    parcels: mpsc::UnboundedSender<Parcel>,
}

impl Courier {
    /// That of the runtime that runs this task, if its only thread does; else nobody is sure to run a courier.
    fn here() -> Option<Self> {
        tokio::task::try_id()?;
        let handle = Handle::try_current().ok()?;
        if handle.runtime_flavor() != RuntimeFlavor::CurrentThread {
            return None;
        }
        COURIER.with_borrow_mut(|courier| {
            let runtime = handle.id();
            let known = courier
                .take()
                .filter(|known| known.runtime == runtime && !known.parcels.is_closed());
            let here = known.unwrap_or_else(|| Self::start(&handle));
            *courier = Some(here.clone());
            Some(here)
        })
    }

    /// Ends with the runtime, or when its thread has another courier and nobody waits for this one.
    fn start(runtime: &Handle) -> Self {
        let (parcels, mut arrived) = mpsc::unbounded_channel::<Parcel>();
        runtime.spawn(async move {
            while let Some(parcel) = arrived.recv().await {
                drop(parcel);
            }
        });
        let runtime = runtime.id();
        Self { runtime, parcels }
    }

    fn is(&self, other: &Self) -> bool {
        self.parcels.same_channel(&other.parcels)
    }
}

/// Answers that travel together. They are handed over wherever it is dropped, so that none is lost with a runtime.
#[derive(Debug)]
struct Parcel(Vec<Told>);

impl Drop for Parcel {
    fn drop(&mut self) {
        self.0.drain(..).for_each(Told::hand_over);
    }
}

/// What one caller is told.
#[derive(Debug)]
struct Told {
    to: oneshot::Sender<Outcome>,
    outcome: Outcome,
}

impl Told {
    fn hand_over(self) {
        // Whoever stopped waiting doesn't need to know.
        let _ = self.to.send(self.outcome);
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;

    use super::*;

    const COMMITS: u64 = 5;

    /// Those who wait for so many commits, and what they will be told.
    fn waiting() -> (Vec<(Answer, Outcome)>, Vec<oneshot::Receiver<Outcome>>) {
        let outcome = |sequence| Ok(KvCommitted { sequence });
        (0..COMMITS)
            .map(|sequence| {
                let (answer, waiting) = answer();
                ((answer, outcome(sequence)), waiting)
            })
            .unzip()
    }

    /// What has arrived.
    fn arrived(waiting: &mut [oneshot::Receiver<Outcome>]) -> Vec<u64> {
        let arrived = waiting.iter_mut().filter_map(|answer| answer.try_recv().ok());
        arrived
            .map(|outcome| outcome.expect("committed").sequence)
            .collect()
    }

    #[tokio::test]
    async fn those_on_a_runtime_of_one_thread_are_told_together_by_a_task_of_it() {
        let task = tokio::spawn(async {
            let (outcomes, mut waiting) = waiting();
            let teller = std::thread::spawn(|| tell(outcomes));
            teller.join().expect("no panic");
            assert_eq!(arrived(&mut waiting), [], "nobody before the courier ran");
            tokio::task::yield_now().await;
            assert_eq!(arrived(&mut waiting), [0, 1, 2, 3, 4]);
        });
        task.await.expect("no panic");
    }

    #[tokio::test]
    async fn one_alone_is_told_at_once() {
        let task = tokio::spawn(async {
            let (mut outcomes, mut waiting) = waiting();
            tell(outcomes.drain(..1));
            assert_eq!(arrived(&mut waiting), [0]);
        });
        task.await.expect("no panic");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn those_on_a_runtime_of_many_threads_are_told_at_once() {
        let task = tokio::spawn(async {
            let (outcomes, mut waiting) = waiting();
            tell(outcomes);
            assert_eq!(arrived(&mut waiting), [0, 1, 2, 3, 4]);
        });
        task.await.expect("no panic");
    }

    #[test]
    fn who_blocks_a_thread_is_told_at_once() {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        let (outcomes, mut waiting) = runtime.block_on(async { waiting() });
        tell(outcomes);
        assert_eq!(arrived(&mut waiting), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn no_answer_is_lost_with_a_runtime() {
        let runtimes = [(); 2].map(|()| Builder::new_current_thread().build().expect("a runtime"));
        let [(first, mut of_first), (second, mut of_second)] = runtimes.each_ref().map(|runtime| {
            let waiting = runtime.block_on(async { tokio::spawn(async { waiting() }).await });
            waiting.expect("no panic")
        });
        let [first_runtime, second_runtime] = runtimes;
        drop(first_runtime);
        tell(first.into_iter().chain(second));
        assert_eq!(arrived(&mut of_first), [0, 1, 2, 3, 4], "it was gone before");
        assert_eq!(arrived(&mut of_second), [], "each runtime has its own courier");
        drop(second_runtime);
        assert_eq!(
            arrived(&mut of_second),
            [0, 1, 2, 3, 4],
            "it ended before it handed them over"
        );
    }
}

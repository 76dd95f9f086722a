//! Worker threads, each with a runtime of its own, that serve connections.
//!
//! A connection stays on its thread, which also has its own [connections to backends](crate::client::Channel): no call wakes another
//! thread, which is much of the cost of a hop. nginx and Envoy do the same; it suits processes whose calls wait much and work little.
//! Where calls work, connections stay on the runtime of all cores, whose idle threads steal work.

use std::cell::Cell;
use std::convert::Infallible;
use std::io;
use std::num::NonZero;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, RuntimeMetrics};
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

pub(crate) const WORKERS_MAX: usize = 64;

/// Fewest cores that calls that work share instead of having workers: with so many, one connection should have more than one of them.
const CORES_SHARED_MIN: usize = 3;

/// The runtimes of the workers of this process.
static RUNTIMES: Mutex<Vec<Weak<RuntimeMetrics>>> = Mutex::new(Vec::new());

thread_local! {
    static NUMBER: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The number of the worker that this thread is, from 0, and below [`WORKERS_MAX`]; `None` for all other threads.
pub(crate) fn current() -> Option<usize> {
    NUMBER.get()
}

/// What the workers of this process do, each by the runtime that is its own.
pub(crate) fn runtimes() -> Vec<RuntimeMetrics> {
    let mut runtimes = RUNTIMES.lock();
    runtimes.retain(|runtime| runtime.strong_count() > 0);
    let running = runtimes.iter().filter_map(Weak::upgrade);
    running.map(|runtime| (*runtime).clone()).collect()
}

/// The workers of a process whose calls wait for others: one for each core that it runs on, or that a quota leaves of them.
pub(crate) fn for_calls_that_wait() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    cores.min(WORKERS_MAX)
}

/// The workers of a process whose calls work themselves: one for each core if there are few, since storage and index have threads, too;
/// else none.
pub(crate) fn for_calls_that_work() -> usize {
    match for_calls_that_wait() {
        few if few < CORES_SHARED_MIN => few,
        _ => 0,
    }
}

/// See the [module](self). They end soon after they are dropped, and with them what still runs on them; nobody waits for one that is stuck, say in a
/// read of a disk that hangs.
#[derive(Debug, Default)]
pub(crate) struct Workers(Vec<Worker>);

#[derive(Debug)]
struct Worker {
    runtime: Handle,
    /// As long as it runs, it is measured.
    _metrics: Arc<RuntimeMetrics>,
    connections: TaskTracker,
    /// Ends it when dropped.
    _stop: oneshot::Sender<Infallible>,
}

impl Workers {
    /// Starts `count` threads, at most [`WORKERS_MAX`]; with none, connections are served where they are accepted.
    pub(crate) fn start(count: usize) -> io::Result<Self> {
        let workers = (0..count.min(WORKERS_MAX)).map(Worker::start);
        Ok(Self(workers.collect::<io::Result<_>>()?))
    }

    /// Serves a connection, counted by `tasks`, on the thread that has the fewest.
    pub(crate) fn spawn(&self, tasks: &TaskTracker, connection: impl Future<Output = ()> + Send + 'static) {
        let Some(worker) = self.0.iter().min_by_key(|worker| worker.connections.len()) else {
            tasks.spawn(connection);
            return;
        };
        let counted = worker.connections.token();
        let connection = async move {
            connection.await;
            drop(counted);
        };
        tasks.spawn_on(connection, &worker.runtime);
    }
}

impl Worker {
    fn start(number: usize) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<Infallible>();
        std::thread::Builder::new()
            .name(format!("souk-worker-{number}"))
            .spawn(move || {
                NUMBER.set(Some(number));
                // That it is told to end is an error: its other half was dropped.
                let _: Result<Infallible, _> = runtime.block_on(stopped);
                runtime.shutdown_background();
            })?;
        let metrics = Arc::new(handle.metrics());
        RUNTIMES.lock().push(Arc::downgrade(&metrics));
        Ok(Self {
            runtime: handle,
            _metrics: metrics,
            connections: TaskTracker::new(),
            _stop: stop,
        })
    }
}

#[cfg(test)]
mod tests;

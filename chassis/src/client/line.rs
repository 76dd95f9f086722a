//! A lazily connected, reconnecting HTTP/2 connection to one process.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use parking_lot::Mutex;

use super::connection::Connection;
use super::way::{ConnectError, Way};
use crate::config::ClientConfig;
use crate::workers::{self, WORKERS_MAX};

/// How an attempt ended, for all who wait for it.
type Attempted = Result<Arc<Connection>, Arc<ConnectError>>;

/// The lines to one process: one for each [worker](workers), whose calls go and come on its own thread then, and one for all other threads.
#[derive(Debug)]
pub(super) struct Lines {
    shared: Arc<Line>,
    own: Box<[Arc<Line>]>,
}

#[derive(Debug)]
pub(super) struct Line {
    way: Way,
    config: ClientConfig,
    /// The last, under way or done; `None` when a call should make another.
    attempt: Mutex<Option<Shared<BoxFuture<'static, Attempted>>>>,
}

impl Lines {
    pub(super) fn new(way: &Way, config: &ClientConfig) -> Self {
        let line = || {
            Arc::new(Line {
                way: way.clone(),
                config: config.clone(),
                attempt: Mutex::default(),
            })
        };
        Self {
            shared: line(),
            own: (0..WORKERS_MAX).map(|_| line()).collect(),
        }
    }

    pub(super) fn own(&self) -> &Arc<Line> {
        let own = workers::current().and_then(|worker| self.own.get(worker));
        own.unwrap_or(&self.shared)
    }
}

impl Line {
    /// The connection there is, or the next: those who ask while it is made share one attempt, which goes on without them.
    ///
    /// # Errors
    /// When it can't be made, in `connect_timeout` at the latest. Whoever asks next tries again.
    pub(super) async fn connection(self: &Arc<Self>) -> Attempted {
        let attempt = self.attempt.lock().get_or_insert_with(|| self.begin()).clone();
        let attempted = attempt.clone().await;
        if attempted.is_err() {
            self.forget(|current| current.ptr_eq(&attempt));
        }
        attempted
    }

    pub(super) fn lost(&self, connection: &Arc<Connection>) {
        let is_its = |attempted: &Attempted| matches!(attempted, Ok(up) if Arc::ptr_eq(up, connection));
        self.forget(|current| current.peek().is_some_and(is_its));
    }

    fn forget(&self, is_over: impl FnOnce(&Shared<BoxFuture<'static, Attempted>>) -> bool) {
        let mut current = self.attempt.lock();
        if current.as_ref().is_some_and(is_over) {
            *current = None;
        }
    }

    fn begin(self: &Arc<Self>) -> Shared<BoxFuture<'static, Attempted>> {
        let line = Arc::clone(self);
        let attempt = tokio::spawn(async move {
            let time = line.config.connect_timeout;
            let opened = tokio::time::timeout(time, line.way.open(&line.config)).await;
            let opened = opened.unwrap_or(Err(ConnectError::Late(time)));
            if opened.is_err() {
                // Those who wait may have left: nobody who comes later shall have that for an answer.
                line.forget(|_| true);
            }
            opened
        });
        let attempt = attempt.map(|done| done.unwrap_or(Err(ConnectError::Abandoned)));
        attempt
            .map(|opened| opened.map(Arc::new).map_err(Arc::new))
            .boxed()
            .shared()
    }
}

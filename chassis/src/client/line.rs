//! The way to one process: a connection that is made when it is first wanted, and anew after it was lost.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use parking_lot::Mutex;

use super::connection::{Connection, KeepAlive};
use super::way::{ConnectError, Way};
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
    connect_timeout: Duration,
    keepalive: KeepAlive,
    /// The last, under way or done; `None` when a call should make another.
    attempt: Mutex<Option<Shared<BoxFuture<'static, Attempted>>>>,
}

impl Lines {
    pub(super) fn new(way: &Way, connect_timeout: Duration, keepalive: KeepAlive) -> Self {
        let line = || {
            Arc::new(Line {
                way: way.clone(),
                connect_timeout,
                keepalive,
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
        let (way, time, keepalive) = (self.way.clone(), self.connect_timeout, self.keepalive);
        let attempt = tokio::spawn(async move {
            let opened = tokio::time::timeout(time, way.open(keepalive)).await;
            opened.unwrap_or(Err(ConnectError::Late(time)))
        });
        let attempt = attempt.map(|done| done.unwrap_or(Err(ConnectError::Abandoned)));
        let attempt = attempt
            .map(|opened| opened.map(Arc::new).map_err(Arc::new))
            .boxed()
            .shared();
        // Those who wait may have left before it fails: nobody who comes later shall have that for an answer.
        let (line, followed) = (Arc::downgrade(self), attempt.clone());
        tokio::spawn(async move {
            if followed.clone().await.is_err()
                && let Some(line) = line.upgrade()
            {
                line.forget(|current| current.ptr_eq(&followed));
            }
        });
        attempt
    }
}

//! The way to one process: a connection that is made when it is first wanted, and anew after it was lost.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::connection::{Connection, KeepAlive};
use super::dial::Dial;
use crate::workers::{self, WORKERS_MAX};

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    /// Nobody answers, or not who should.
    #[error("no connection")]
    Dial(#[source] io::Error),
    /// Nobody has answered in time.
    #[error("no connection in {0:?}")]
    Late(Duration),
    /// It was lost as it began.
    #[error("no HTTP/2")]
    Http2(#[source] hyper::Error),
    /// Whoever was to make it is gone.
    #[error("nobody makes the connection any more")]
    Abandoned,
}

/// How an attempt ended, for all who wait for it.
type Attempted = Result<Arc<Connection>, Arc<ConnectError>>;

/// What there is of a connection.
#[derive(Debug)]
enum State {
    None,
    /// It is being made; who waits is told.
    Soon(watch::Receiver<Option<Attempted>>),
    Up(Arc<Connection>),
}

/// The lines to one process: one for each [worker](workers), whose calls go and come on its own thread then, and one for all other threads.
#[derive(Debug)]
pub(super) struct Lines {
    shared: Arc<Line>,
    /// Of the workers, as they first call.
    own: Box<[OnceLock<Arc<Line>>]>,
}

impl Lines {
    pub(super) fn new(dial: Dial, connect_timeout: Duration, keepalive: KeepAlive) -> Self {
        Self {
            shared: Line::new(dial, connect_timeout, keepalive),
            own: (0..WORKERS_MAX).map(|_| OnceLock::new()).collect(),
        }
    }

    /// The line of this thread.
    pub(super) fn own(&self) -> &Arc<Line> {
        let own = workers::current().and_then(|worker| self.own.get(worker));
        own.map_or(&self.shared, |own| {
            own.get_or_init(|| {
                let Line {
                    dial,
                    connect_timeout,
                    keepalive,
                    ..
                } = &*self.shared;
                Line::new(dial.clone(), *connect_timeout, *keepalive)
            })
        })
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Line {
    dial: Dial,
    connect_timeout: Duration,
    keepalive: KeepAlive,
    state: Mutex<State>,
}

impl Line {
    fn new(dial: Dial, connect_timeout: Duration, keepalive: KeepAlive) -> Arc<Self> {
        Arc::new(Self {
            dial,
            connect_timeout,
            keepalive,
            state: Mutex::new(State::None),
        })
    }

    /// The connection there is, or the next: those who ask while it is made share one attempt, which goes on without them.
    ///
    /// # Errors
    /// When it can't be made, in `connect_timeout` at the latest. Whoever asks next tries again.
    pub(super) async fn connection(self: &Arc<Self>) -> Attempted {
        let mut told = {
            let mut state = self.state.lock();
            match &*state {
                State::Up(connection) => return Ok(Arc::clone(connection)),
                State::Soon(told) => told.clone(),
                State::None => {
                    let (tell, told) = watch::channel(None);
                    tokio::spawn(Arc::clone(self).attempt(tell));
                    *state = State::Soon(told.clone());
                    told
                }
            }
        };
        let attempted = told.wait_for(Option::is_some).await;
        attempted
            .ok()
            .and_then(|attempted| attempted.clone())
            .unwrap_or_else(|| {
                self.forget_attempt();
                Err(Arc::new(ConnectError::Abandoned))
            })
    }

    /// Takes note that `connection` takes no more calls.
    pub(super) fn lost(&self, connection: &Arc<Connection>) {
        let mut state = self.state.lock();
        if matches!(&*state, State::Up(current) if Arc::ptr_eq(current, connection)) {
            *state = State::None;
        }
    }

    async fn attempt(self: Arc<Self>, tell: watch::Sender<Option<Attempted>>) {
        let opened = tokio::time::timeout(self.connect_timeout, self.dial.open(self.keepalive)).await;
        let attempted = match opened {
            Ok(Ok(connection)) => Ok(Arc::new(connection)),
            Ok(Err(error)) => Err(Arc::new(error)),
            Err(_) => Err(Arc::new(ConnectError::Late(self.connect_timeout))),
        };
        *self.state.lock() = match &attempted {
            Ok(connection) => State::Up(Arc::clone(connection)),
            Err(_) => State::None,
        };
        tell.send_replace(Some(attempted));
    }

    /// After an attempt that ended without a word: its task is gone.
    fn forget_attempt(&self) {
        let mut state = self.state.lock();
        if matches!(&*state, State::Soon(told) if told.has_changed().is_err()) {
            *state = State::None;
        }
    }
}

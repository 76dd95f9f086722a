//! Lets the calls of a client write together.
//!
//! A caller that has its answer calls again and wakes the task of its connection, which runs at once: each call would be written alone, a
//! system call and a wakeup of the server each, however many answers came together. Here such a task lets those go first that are
//! ready. Clients that have one thread for a connection do so by themselves.

use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::rt::Executor;

/// Runs the tasks of connections on this runtime. See the [module](self).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gathered;

impl<F> Executor<F> for Gathered
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, task: F) {
        tokio::spawn(LastOfAll {
            task: Box::pin(task),
            waited: false,
        });
    }
}

struct LastOfAll<F> {
    task: Pin<Box<F>>,
    /// The others have had their turn.
    waited: bool,
}

impl<F: Future<Output = ()>> Future for LastOfAll<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.waited = !self.waited;
        if self.waited {
            // A task that wakes itself goes behind all that are ready.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.task.as_mut().poll(cx)
    }
}

//! Coalesces the writes of the calls on a connection.
//!
//! A task that works on a call wakes the task that writes for it. That one runs next, before the others that are ready, so that under load
//! each call would be written, and read at the other end, alone: a system call each, and a wakeup of the other process. So the writing task
//! yields once to ready tasks while more than one call is in flight. One call alone waits for nobody.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio_util::task::TaskTracker;

#[derive(Debug)]
pub(crate) struct WriteCoalescing {
    /// A token for each call that is under way.
    calls: TaskTracker,
    /// The others have had their turn.
    waited: bool,
}

impl WriteCoalescing {
    pub(crate) fn new(calls: TaskTracker) -> Self {
        Self { calls, waited: false }
    }

    /// Polls `connection`, or comes back soon.
    pub(crate) fn poll<F: Future>(
        &mut self,
        cx: &mut Context<'_>,
        connection: Pin<&mut F>,
    ) -> Poll<F::Output> {
        if !self.waited && self.calls.len() > 1 {
            self.waited = true;
            // A task that wakes itself goes behind all that are ready.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.waited = false;
        connection.poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;

    use super::*;

    /// Says in which order two tasks ran: one that was ready, and a connection that was woken before it with `calls` under way.
    async fn order(calls: usize) -> Vec<&'static str> {
        let ran = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let all = TaskTracker::new();
        let under_way: Vec<_> = (0..calls).map(|_| all.token()).collect();
        let mut coalescing = WriteCoalescing::new(all);
        let connection = tokio::spawn({
            let ran = Arc::clone(&ran);
            async move {
                let mut writes = std::pin::pin!(async { ran.lock().push("connection") });
                poll_fn(|cx| coalescing.poll(cx, writes.as_mut())).await;
            }
        });
        let ready = tokio::spawn({
            let ran = Arc::clone(&ran);
            async move { ran.lock().push("ready") }
        });
        connection.await.expect("no panic");
        ready.await.expect("no panic");
        drop(under_way);
        std::mem::take(&mut *ran.lock())
    }

    #[tokio::test]
    async fn several_calls_let_others_go_first_and_one_alone_doesnt() {
        assert_eq!(order(0).await, ["connection", "ready"]);
        assert_eq!(order(1).await, ["connection", "ready"]);
        assert_eq!(order(2).await, ["ready", "connection"]);
    }
}

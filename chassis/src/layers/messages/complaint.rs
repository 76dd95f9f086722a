//! What is wrong with a message, from the body that finds it to the layer that answers.

use std::sync::{Arc, OnceLock};
use std::task::Waker;

use futures_util::task::AtomicWaker;
use tonic::Status;

/// The first complaint about a body. Clones are the same. A body without one wakes nobody: that would be the task that reads it.
#[derive(Clone, Debug, Default)]
pub(super) struct Complaint(Arc<Said>);

#[derive(Debug, Default)]
struct Said {
    status: OnceLock<Status>,
    listener: AtomicWaker,
}

impl Complaint {
    /// Tells the layer; the body then ends in the same error for whoever reads it.
    pub(super) fn raise(&self, status: Status) -> Status {
        // Nobody listens once the response has begun: then the reader's error is all there is.
        if self.0.status.set(status.clone()).is_ok() {
            self.0.listener.wake();
        }
        status
    }

    /// What was said, or else `listener` is woken when something is.
    pub(super) fn listen(&self, listener: &Waker) -> Option<Status> {
        self.0.listener.register(listener);
        self.said()
    }

    pub(super) fn said(&self) -> Option<Status> {
        self.0.status.get().cloned()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn who_listens_is_woken_by_the_first_complaint_and_by_no_end_without_one() {
        let woken = Arc::new(Woken::default());
        let waker = Arc::clone(&woken).into();
        let (complaint, silent) = (Complaint::default(), Complaint::default());
        assert!(complaint.listen(&waker).is_none() && silent.listen(&waker).is_none());
        drop(silent);
        assert_eq!(woken.0.load(Ordering::SeqCst), 0);
        for message in ["first", "second"] {
            complaint.clone().raise(Status::internal(message));
            assert_eq!(woken.0.load(Ordering::SeqCst), 1);
            let said = complaint.listen(&waker).expect("a complaint");
            assert_eq!(said.message(), "first");
        }
    }
}

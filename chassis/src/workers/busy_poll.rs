//! Keeps a worker awake a little while for what comes next.
//!
//! To fall asleep and be woken takes a thread as long as a call takes it: 30 to 50 µs each time on a virtual machine, where an idle core is
//! given back to the host. So while at most one call is under way on a worker, it asks for events again and again instead of waiting for
//! them, for as long as such waits last, and for a bounded time. Waits that last longer than that bound it soon sleeps through from their
//! beginning. That is what the kernels of virtual machines do with an idle core (halt polling: Linux,
//! Documentation/virt/guest-halt-polling.rst and drivers/cpuidle/governors/haltpoll.c, whose steps these are), and HAProxy's `busy-polling`.
//! Whoever else wants the core gets it.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::{Poll, Waker};
use std::time::Duration;

use tokio::time::Instant;

/// Longest time that a worker can be told to stay awake for.
pub(crate) const BUSY_POLL_MAX: Duration = Duration::from_millis(1);

/// The first time that a worker stays awake for, of a wait that was short.
const GROW_START: Duration = Duration::from_micros(50);

/// Most calls under way on a worker that wait for one another: with more, there is work to do meanwhile, here or for those who answer.
const CALLS_ALONE_MAX: usize = 1;

/// A core that was offered and came back later than this had been wanted.
const OFFER_TAKEN: Duration = Duration::from_micros(20);

/// What the calls on a thread did so far.
struct Pulse {
    /// Calls under way, until their answers begin.
    under_way: Cell<usize>,
    /// Beginnings and ends.
    beats: Cell<u64>,
    /// Who waits for the next.
    waiting: RefCell<Option<Waker>>,
}

thread_local! {
    static PULSE: Pulse = const {
        Pulse {
            under_way: Cell::new(0),
            beats: Cell::new(0),
            waiting: RefCell::new(None),
        }
    };
}

impl Pulse {
    fn beat(&self, under_way: usize) {
        self.under_way.set(under_way);
        self.beats.set(self.beats.get().wrapping_add(1));
        if under_way <= CALLS_ALONE_MAX
            && let Some(waker) = self.waiting.take()
        {
            waker.wake();
        }
    }
}

/// A call under way on this thread, until dropped there.
#[derive(Debug)]
pub(crate) struct Beat(());

impl Beat {
    /// One more.
    pub(crate) fn begin() -> Self {
        PULSE.with(|pulse| pulse.beat(pulse.under_way.get().saturating_add(1)));
        Self(())
    }
}

impl Drop for Beat {
    fn drop(&mut self) {
        // A thread that ends may have dropped its pulse before its calls.
        let _ = PULSE.try_with(|pulse| pulse.beat(pulse.under_way.get().saturating_sub(1)));
    }
}

/// How long to stay awake for one kind of wait, by how long such waits lasted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Window(Duration);

impl Window {
    /// After a wait that lasted so long.
    fn after(self, lasted: Duration, max: Duration) -> Self {
        if lasted > max {
            let half = self.0 / 2;
            return Self(if half < GROW_START { Duration::ZERO } else { half });
        }
        if lasted > self.0 {
            return Self((self.0 * 2).max(GROW_START).min(max));
        }
        self
    }
}

/// How polling ended.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Polled {
    /// What was waited for came.
    Came,
    /// The window is over.
    Over,
    /// Others want the core.
    Wanted,
}

/// Keeps this thread awake while it may pay, for at most `max` at a time; to be run on the thread's own runtime, beside its calls.
pub(crate) async fn stay_awake(max: Duration) {
    if max.is_zero() {
        return std::future::pending().await;
    }
    // Of waits for the next call, and for the answer to one.
    let mut windows = [Window::default(); CALLS_ALONE_MAX + 1];
    let mut seen = next(0).await;
    loop {
        // What is ready runs first: the wait begins when there is nothing else to do.
        tokio::task::yield_now().await;
        let under_way = PULSE.with(|pulse| pulse.under_way.get());
        let began = Instant::now();
        let window = windows.get_mut(under_way);
        if let Some(window) = &window {
            poll(seen, began, window.0).await;
        }
        seen = next(seen).await;
        if let Some(window) = window {
            *window = window.after(began.elapsed(), max);
        }
    }
}

/// Lets the runtime ask for events without waiting for them, for as long as nothing comes within `window`.
async fn poll(seen: u64, began: Instant, window: Duration) -> Polled {
    if window.is_zero() {
        return Polled::Over;
    }
    loop {
        // Whatever else is ready runs, then the driver is asked.
        tokio::task::yield_now().await;
        if PULSE.with(|pulse| pulse.beats.get()) != seen {
            return Polled::Came;
        }
        if began.elapsed() >= window {
            return Polled::Over;
        }
        let offered = std::time::Instant::now();
        std::thread::yield_now();
        if offered.elapsed() > OFFER_TAKEN {
            return Polled::Wanted;
        }
    }
}

/// Waits until there were other beats than `seen`, with at most [`CALLS_ALONE_MAX`] calls under way then, and says how many there were.
async fn next(seen: u64) -> u64 {
    poll_fn(|cx| {
        PULSE.with(|pulse| {
            if pulse.beats.get() != seen && pulse.under_way.get() <= CALLS_ALONE_MAX {
                return Poll::Ready(pulse.beats.get());
            }
            pulse.waiting.replace(Some(cx.waker().clone()));
            Poll::Pending
        })
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Duration = Duration::from_micros(200);

    fn after(window: u64, lasted: u64) -> u64 {
        let window = Window(Duration::from_micros(window)).after(Duration::from_micros(lasted), MAX);
        u64::try_from(window.0.as_micros()).expect("small")
    }

    #[test]
    fn windows_grow_with_short_waits_and_shrink_with_long_ones() {
        assert_eq!(after(0, 30), 50, "it begins to poll");
        assert_eq!(after(50, 30), 50, "long enough");
        assert_eq!(after(50, 120), 100);
        assert_eq!(after(100, 120), 200);
        assert_eq!(after(150, 180), 200, "never more than the most");
        assert_eq!(after(200, 201), 100, "no window could have been long enough");
        assert_eq!(after(100, 5_000), 50);
        assert_eq!(after(50, 5_000), 0, "it sleeps at once");
        assert_eq!(after(0, 5_000), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn polling_ends_with_what_comes_and_with_its_time() {
        let call = Beat::begin();
        let began = Instant::now();
        assert_eq!(poll(1, began, Duration::ZERO).await, Polled::Over);
        // Offered cores may be taken on a busy machine; the next try goes on then.
        let until = async |seen: u64| loop {
            let polled = poll(seen, began, MAX).await;
            if polled != Polled::Wanted {
                return polled;
            }
        };
        let ends = async {
            tokio::task::yield_now().await;
            drop(call);
        };
        let (polled, ()) = tokio::join!(until(1), ends);
        assert_eq!(polled, Polled::Came);
        let passes = async {
            tokio::task::yield_now().await;
            tokio::time::advance(MAX).await;
        };
        let (polled, ()) = tokio::join!(until(2), passes);
        assert_eq!(polled, Polled::Over);
    }

    #[tokio::test]
    async fn only_waits_with_one_call_or_none_are_waited_for() {
        let waits = tokio::spawn(next(0));
        tokio::task::yield_now().await;
        assert!(!waits.is_finished());
        let one = Beat::begin();
        assert_eq!(waits.await.expect("no panic"), 1);
        let waits = tokio::spawn(next(1));
        tokio::task::yield_now().await;
        let two = Beat::begin();
        tokio::task::yield_now().await;
        assert!(!waits.is_finished(), "there is work to do");
        drop(two);
        assert_eq!(waits.await.expect("no panic"), 3);
        drop(one);
    }
}

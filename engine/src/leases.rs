//! What is kept between the calls of a client, each for a time after its last use: snapshots for exports, views for the
//! pages of searches. They keep old data on the disk, so their number is bounded, and so is their time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// How often what has expired is let go of, also when nobody asks any more.
const SWEEP: Duration = Duration::from_secs(15);

/// What is kept, by numbers that can't be guessed. Clones share it.
#[derive(Debug)]
pub(crate) struct Leases<T> {
    kept: Arc<Mutex<HashMap<u64, Kept<T>>>>,
    max: usize,
}

impl<T> Clone for Leases<T> {
    fn clone(&self) -> Self {
        Self {
            kept: Arc::clone(&self.kept),
            max: self.max,
        }
    }
}

#[derive(Debug)]
struct Kept<T> {
    value: T,
    lease: Duration,
    used: Instant,
}

impl<T: Clone + Send + 'static> Leases<T> {
    /// Room for `max` values, swept until `closing`. Must be called inside a tokio runtime.
    pub(crate) fn new(max: usize, closing: CancellationToken) -> Self {
        let leases = Self {
            kept: Arc::default(),
            max,
        };
        let swept = leases.clone();
        tokio::spawn(async move {
            while closing
                .run_until_cancelled(tokio::time::sleep(SWEEP))
                .await
                .is_some()
            {
                sweep(&mut swept.kept.lock());
            }
        });
        leases
    }

    /// Keeps a value until it hasn't been used for `lease`; `None` when there is no room.
    pub(crate) fn keep(&self, value: T, lease: Duration) -> Option<u64> {
        let mut kept = self.kept.lock();
        sweep(&mut kept);
        if kept.len() >= self.max {
            return None;
        }
        let (number, _) = Uuid::new_v4().as_u64_pair();
        let used = Instant::now();
        kept.insert(number, Kept { value, lease, used });
        Some(number)
    }

    /// A value that is kept: this is a use of it, and `lease` is how long it is kept from now on, when it is to change.
    pub(crate) fn take(&self, number: u64, lease: Option<Duration>) -> Option<T> {
        let mut kept = self.kept.lock();
        sweep(&mut kept);
        let found = kept.get_mut(&number)?;
        found.used = Instant::now();
        found.lease = lease.unwrap_or(found.lease);
        Some(found.value.clone())
    }

    /// Says that a value is in use.
    pub(crate) fn touch(&self, number: u64) {
        if let Some(found) = self.kept.lock().get_mut(&number) {
            found.used = Instant::now();
        }
    }

    /// Keeps a value no longer than until it hasn't been used for `lease`.
    pub(crate) fn shorten(&self, number: u64, lease: Duration) {
        if let Some(found) = self.kept.lock().get_mut(&number) {
            found.lease = found.lease.min(lease);
        }
    }

    /// How many are kept.
    pub(crate) fn len(&self) -> usize {
        let mut kept = self.kept.lock();
        sweep(&mut kept);
        kept.len()
    }

    /// Lets go of all of them.
    pub(crate) fn clear(&self) {
        self.kept.lock().clear();
    }
}

fn sweep<T>(kept: &mut HashMap<u64, Kept<T>>) {
    kept.retain(|_, kept| kept.used.elapsed() < kept.lease);
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn each_is_kept_for_its_time_after_its_last_use() {
        let leases = Leases::new(2, CancellationToken::new());
        let one = leases.keep("one", LEASE).expect("room");
        let two = leases.keep("two", 2 * LEASE).expect("room");
        assert_eq!(leases.keep("three", LEASE), None);
        tokio::time::advance(LEASE / 2).await;
        assert_eq!(leases.take(one, None), Some("one"));
        tokio::time::advance(LEASE * 3 / 4).await;
        assert_eq!(leases.take(one, Some(LEASE / 4)), Some("one"));
        tokio::time::advance(LEASE / 3).await;
        assert_eq!(
            (leases.take(one, None), leases.take(two, None)),
            (None, Some("two"))
        );
        leases.shorten(two, LEASE / 4);
        leases.shorten(two, LEASE);
        tokio::time::advance(LEASE / 3).await;
        assert_eq!(leases.take(two, None), None);
        let three = leases.keep("three", LEASE).expect("room");
        leases.clear();
        assert_eq!(leases.take(three, None), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_asks_for_is_let_go_of_too() {
        let leases = Leases::new(1, CancellationToken::new());
        let value = Arc::new(());
        leases.keep(Arc::clone(&value), LEASE).expect("room");
        tokio::time::sleep(LEASE + SWEEP).await;
        assert_eq!(Arc::strong_count(&value), 1);
    }
}

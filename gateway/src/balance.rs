//! Load balancing over the processes of a backend and the connections to them.
//!
//! Picks the less loaded of two random healthy endpoints (power of two choices). One that doesn't answer, or refuses several calls in a
//! row, is ejected for a time that doubles (outlier ejection); when all are ejected, none is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use http::{Request, Response};
use opentelemetry::metrics::Meter;
use souk_chassis::client::{Client, NoAnswer};
use souk_chassis::status::{code_in, is_refusal};
use souk_chassis::telemetry::instrument::whole;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use tonic::body::Body;
use tonic::{Code, Status};

use crate::metrics::{EJECTED, EJECTIONS, Tally, of};

/// Refusals in a row after which a process is left out; one that doesn't answer at all is at once.
const REFUSALS_MAX: u32 = 5;

/// How long a process is left out at first; each time in a row doubles it.
const EJECTION_MIN: Duration = Duration::from_millis(500);

/// How often that doubles.
const EJECTION_DOUBLINGS: u32 = 5;

/// One connection to one process.
struct Endpoint {
    client: Client,
    /// Which process; several connections may lead to it.
    process: usize,
    /// Calls without an answer so far.
    under_way: TaskTracker,
    /// Refusals since the last answer.
    refusals: AtomicU32,
    /// Times it was left out since the last answer.
    ejections_in_row: AtomicU32,
    /// Until when it is left out, in milliseconds since the beginning.
    ejected_until: AtomicU64,
}

/// The ways to one backend. Clones share what is known of them.
#[derive(Clone)]
pub(crate) struct Balance {
    endpoints: Arc<[Endpoint]>,
    began: Instant,
    ejections: Tally,
}

impl Balance {
    /// Calls by `clients`, each with a connection of its own to the process of its number. Shows on `meter`, as those of `backend`, what
    /// is left out and how often.
    pub(crate) fn new(
        clients: impl IntoIterator<Item = (usize, Client)>,
        backend: &Arc<str>,
        meter: &Meter,
    ) -> Self {
        let endpoint = |(process, client)| Endpoint {
            client,
            process,
            under_way: TaskTracker::new(),
            refusals: AtomicU32::new(0),
            ejections_in_row: AtomicU32::new(0),
            ejected_until: AtomicU64::new(0),
        };
        let balance = Self {
            endpoints: clients.into_iter().map(endpoint).collect(),
            began: Instant::now(),
            ejections: Tally::new(&EJECTIONS, backend, meter),
        };
        let (seen, label) = (balance.clone(), of(backend));
        EJECTED.observe(meter, move |asked| {
            let now = seen.now();
            let is_out = |endpoint: &&Endpoint| endpoint.ejected_until.load(Ordering::Relaxed) > now;
            let out = seen.endpoints.iter().filter(is_out).count();
            asked.observe(whole(out), std::slice::from_ref(&label));
        });
        balance
    }

    pub(crate) fn has_others(&self) -> bool {
        let mut processes = self.endpoints.iter().map(|endpoint| endpoint.process);
        let first = processes.next();
        processes.any(|process| Some(process) != first)
    }

    /// Calls one of them, another than that of the attempt before if there is one; says which process.
    pub(crate) async fn call(
        &self,
        request: Request<Body>,
        before: Option<usize>,
    ) -> (Response<Body>, usize) {
        let endpoint = match &*self.endpoints {
            [only] => Some(only),
            _ => self.pick(before),
        };
        let Some(endpoint) = endpoint else {
            // A backend has an address at least.
            return (Status::unavailable("the backend has no address").into_http(), 0);
        };
        let under_way = endpoint.under_way.token();
        let Ok(response) = endpoint.client.answer(request).await;
        drop(under_way);
        self.note(endpoint, &response);
        (response, endpoint.process)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Picks an endpoint: of another process than `before` if there is one, and one that isn't ejected if there is one.
    fn pick(&self, before: Option<usize>) -> Option<&Endpoint> {
        let now = self.now();
        let is_other = |endpoint: &&Endpoint| Some(endpoint.process) != before;
        let is_in = |endpoint: &&Endpoint| endpoint.ejected_until.load(Ordering::Relaxed) <= now;
        let all = || self.endpoints.iter();
        // Better another process, even one that is left out, than the same again; better any than none.
        let mut two = fastrand::choose_multiple(all().filter(is_other).filter(is_in), 2);
        if two.is_empty() {
            two = fastrand::choose_multiple(all().filter(is_other), 2);
        }
        if two.is_empty() {
            two = fastrand::choose_multiple(all(), 2);
        }
        // Those that are chosen come in their order: of two that have as many calls it would be always the first.
        fastrand::shuffle(&mut two);
        two.into_iter().min_by_key(|endpoint| endpoint.under_way.len())
    }

    fn note(&self, endpoint: &Endpoint, response: &Response<Body>) {
        let silent = response.extensions().get::<NoAnswer>().is_some();
        let code = code_in(response.headers());
        if code == Some(Code::DeadlineExceeded) {
            // The time was the caller's choice: it may have been too short for any process.
            return;
        }
        if !silent && !is_refusal(response.headers()) {
            // Written only after something was wrong. What is refused of one resource says nothing of the others.
            if code != Some(Code::Unavailable) && endpoint.refusals.load(Ordering::Relaxed) > 0 {
                endpoint.refusals.store(0, Ordering::Relaxed);
                endpoint.ejections_in_row.store(0, Ordering::Relaxed);
            }
            return;
        }
        let refusals = endpoint.refusals.fetch_add(1, Ordering::Relaxed) % REFUSALS_MAX + 1;
        let now = self.now();
        // Calls that were under way when it was left out tell nothing new.
        if (silent || refusals == REFUSALS_MAX) && endpoint.ejected_until.load(Ordering::Relaxed) <= now {
            let before = endpoint.ejections_in_row.fetch_add(1, Ordering::Relaxed);
            let doubled = EJECTION_MIN.saturating_mul(1 << before.min(EJECTION_DOUBLINGS));
            let until = now.saturating_add(u64::try_from(doubled.as_millis()).unwrap_or(u64::MAX));
            endpoint.ejected_until.store(until, Ordering::Relaxed);
            self.ejections.count();
        }
    }
}

#[cfg(test)]
mod tests;

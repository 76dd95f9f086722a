//! Follows the health of the backends, so that the gateway's own is always at hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;
use souk_chassis::client::{self, ClientError};
use souk_chassis::config::ClientConfig;
use souk_chassis::health::Health;
use souk_chassis::telemetry::instrument::{Instrument, whole};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::backend::{Backend, Target};
use crate::metrics::{PROCESSES, PROCESSES_SERVING, of};
use crate::probe::Probe;

/// Pause before the health of a lost backend is asked for again; it doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// Longest pause: a backend that is back is seen after this time at the latest.
const PAUSE_MAX: Duration = Duration::from_secs(3);

/// Registers the services of `backend` at `health` with the health that the backend reports, until `stop`. A backend that can't be
/// reached is not serving, nor, where the gateway `authenticates_callers`, one that answers calls without a credential (see [`Probe`]).
pub(crate) fn follow(
    backend: &Backend,
    config: &ClientConfig,
    authenticates_callers: bool,
    health: &Health,
    stop: &CancellationToken,
) -> Result<Watched, ClientError> {
    let processes = match &backend.target {
        Target::Local(_) => 1,
        Target::Remote(uris) => uris.len(),
    };
    let serve = |service: &String| {
        let (whole, seen) = watch::channel(false);
        health.register(service.clone(), seen);
        Arc::new(MonitoredService {
            backend: Arc::clone(&backend.name),
            service: service.clone(),
            states: (0..processes).map(|_| AtomicBool::new(false)).collect(),
            whole,
        })
    };
    let services: Vec<_> = backend.services.iter().map(serve).collect();
    match &backend.target {
        Target::Local(stack) => {
            for served in services.iter().cloned() {
                // At once, not when the task comes to it: the first check must not find a lie.
                served.tell(0, stack.health.is_serving(&served.service) == Some(true));
                let states = stack.health.subscribe(&served.service);
                tokio::spawn(stop.clone().run_until_cancelled_owned(relay(states, served)));
            }
        }
        Target::Remote(uris) => {
            for (index, uri) in uris.iter().enumerate() {
                // Connections for health alone: untraced, since a watch is no call of anybody.
                let probe = Arc::new(Probe {
                    backend: Arc::clone(&backend.name),
                    address: uri.clone(),
                    channel: client::channel(uri, config)?,
                    authenticates_callers,
                    was_answered: AtomicBool::new(false),
                });
                for served in services.iter().cloned() {
                    let watching = watch_remote(Arc::clone(&probe), index, served);
                    tokio::spawn(stop.clone().run_until_cancelled_owned(watching));
                }
            }
        }
    }
    Ok(Watched {
        label: of(&backend.name),
        processes,
        services,
    })
}

pub(crate) struct Watched {
    label: KeyValue,
    processes: usize,
    services: Vec<Arc<MonitoredService>>,
}

impl Watched {
    fn serving(&self) -> usize {
        let serves = |process: &usize| self.services.iter().all(|service| service.is_served_by(*process));
        (0..self.processes).filter(serves).count()
    }
}

/// Shows on `meter` how many processes of each backend there are, and serve.
pub(crate) fn observe(watched: Vec<Watched>, meter: &Meter) {
    let watched: Arc<[Watched]> = watched.into();
    let observe = |instrument: Instrument, figure: fn(&Watched) -> usize| {
        let watched = Arc::clone(&watched);
        instrument.observe(meter, move |now| {
            for backend in &*watched {
                now.observe(whole(figure(backend)), std::slice::from_ref(&backend.label));
            }
        });
    };
    observe(PROCESSES, |backend| backend.processes);
    observe(PROCESSES_SERVING, Watched::serving);
}

/// Follows the health of a service in this process, whose own log says how it is.
async fn relay(states: impl Stream<Item = bool>, served: Arc<MonitoredService>) {
    let mut states = std::pin::pin!(states);
    while let Some(state) = states.next().await {
        served.tell(0, state);
    }
    served.tell(0, false);
    // The sender lives on: a service that went away is not serving, but known.
    std::future::pending::<()>().await;
}

/// A service in all processes of a backend: it is served while one of them serves it.
struct MonitoredService {
    backend: Arc<str>,
    service: String,
    /// Of each process.
    states: Vec<AtomicBool>,
    whole: watch::Sender<bool>,
}

impl MonitoredService {
    fn is_served_by(&self, process: usize) -> bool {
        let state = self.states.get(process);
        state.is_some_and(|state| state.load(Ordering::Relaxed))
    }

    /// Notes what a process says; is the whole another than before?
    fn tell(&self, index: usize, now: bool) -> bool {
        self.whole.send_if_modified(|was| {
            // In here, where one is at a time: the last word is about all words before.
            if let Some(state) = self.states.get(index) {
                state.store(now, Ordering::Relaxed);
            }
            let now = self.states.iter().any(|state| state.load(Ordering::Relaxed));
            std::mem::replace(was, now) != now
        })
    }

    /// Notes what a process elsewhere says; a change of the whole goes to the log.
    fn tell_remote(&self, index: usize, now: bool) {
        if self.tell(index, now) {
            let (backend, service, serving) = (&self.backend, &self.service, *self.whole.borrow());
            tracing::info!(%backend, service, serving, "the health of a backend changed");
        }
    }
}

async fn watch_remote(probe: Arc<Probe>, index: usize, served: Arc<MonitoredService>) {
    let mut pause = PAUSE_MIN;
    loop {
        let ended = watch_once(&probe, index, &served, &mut pause).await;
        served.tell_remote(index, false);
        if let Err(status) = ended {
            let (backend, service) = (&served.backend, &served.service);
            tracing::debug!(%backend, service, %status, "the health of a backend can't be followed");
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Follows a process until its stream ends, or it is found to answer calls that prove no caller. Each stream probes again: behind
/// it there may be another process than behind the last one.
async fn watch_once(
    probe: &Probe,
    index: usize,
    served: &MonitoredService,
    pause: &mut Duration,
) -> Result<(), Status> {
    let service = served.service.clone();
    let mut is_unprobed = probe.authenticates_callers;
    let mut client = HealthClient::new(probe.channel.clone());
    let mut states = client.watch(HealthCheckRequest { service }).await?.into_inner();
    while let Some(state) = states.message().await? {
        let serving = state.status() == ServingStatus::Serving;
        if serving && is_unprobed {
            if !probe.refuses_unproven(&served.service).await? {
                return Ok(());
            }
            is_unprobed = false;
        }
        *pause = PAUSE_MIN;
        served.tell_remote(index, serving);
    }
    Ok(())
}

//! Follows the health of the backends, so that the gateway's own is always at hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use opentelemetry::metrics::Meter;
use souk_chassis::client::{self, Channel, ClientError};
use souk_chassis::config::ClientConfig;
use souk_chassis::health::Health;
use souk_chassis::server::Stack;
use souk_chassis::telemetry::instrument::whole;
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

/// Lets `health` say of each service of `backend` what the backend says, until `stop`. A backend that can't be reached is
/// not serving, nor one that answers calls which prove no caller where the gateway `knows_callers` (see [`Probe`]). What is
/// followed can be [observed](observe).
///
/// # Errors
/// When no channel can be made to the backend.
pub(crate) fn follow(
    backend: &Backend,
    config: &ClientConfig,
    knows_callers: bool,
    health: &Health,
    stop: &CancellationToken,
) -> Result<Watched, ClientError> {
    let processes: Vec<MonitoredProcess> = match &backend.target {
        Target::Local(_) => Vec::new(),
        // Connections for health alone: untraced, since a watch is no call of anybody.
        Target::Remote(uris) => {
            let process = |uri| {
                let channel = client::channel(uri, config)?;
                let probe = Probe::new(backend.name, uri, channel.clone());
                let probe = knows_callers.then(|| Arc::new(probe));
                Ok(MonitoredProcess { channel, probe })
            };
            uris.iter().map(process).collect::<Result<_, _>>()?
        }
    };
    let mut served_all = Vec::new();
    for service in &backend.services {
        let (serving, seen) = watch::channel(false);
        health.watch(service.clone(), seen);
        match &backend.target {
            Target::Local(stack) => {
                // At once, not when the task comes to it: the first check must not find a lie.
                serving.send_replace(stack.health().is_serving(service) == Some(true));
                let states = stack.health().subscribe(service);
                tokio::spawn(stop.clone().run_until_cancelled_owned(relay(states, serving)));
            }
            Target::Remote(_) => {
                let served = Arc::new(Served {
                    backend: backend.name,
                    service: service.clone(),
                    states: processes.iter().map(|_| AtomicBool::new(false)).collect(),
                    whole: serving,
                });
                served_all.push(Arc::clone(&served));
                for (index, process) in processes.iter().enumerate() {
                    let watching = watch_remote(process.clone(), index, Arc::clone(&served));
                    tokio::spawn(stop.clone().run_until_cancelled_owned(watching));
                }
            }
        }
    }
    let states = match &backend.target {
        Target::Local(stack) => States::Local(stack.clone(), backend.services.clone()),
        Target::Remote(uris) => States::Remote(uris.len(), served_all),
    };
    Ok(Watched {
        backend: backend.name,
        states,
    })
}

/// A backend whose health is followed.
pub(crate) struct Watched {
    backend: &'static str,
    states: States,
}

enum States {
    /// A stack in this process, and its services.
    Local(Stack, Vec<String>),
    /// So many processes, and what they say of each service.
    Remote(usize, Vec<Arc<Served>>),
}

impl Watched {
    fn processes(&self) -> usize {
        match &self.states {
            States::Local(..) => 1,
            States::Remote(processes, _) => *processes,
        }
    }

    /// Processes that serve all services.
    fn serving(&self) -> usize {
        match &self.states {
            States::Local(stack, services) => {
                let serves = |service: &String| stack.health().is_serving(service) == Some(true);
                usize::from(services.iter().all(serves))
            }
            States::Remote(processes, services) => {
                let serves = |process: &usize| services.iter().all(|service| service.is_served_by(*process));
                (0..*processes).filter(serves).count()
            }
        }
    }
}

/// What is shown of a backend.
type Figure = fn(&Watched) -> usize;

/// Shows on `meter` how many processes of each backend there are, and serve.
pub(crate) fn observe(watched: Vec<Watched>, meter: &Meter) {
    let watched: Arc<[Watched]> = watched.into();
    let figures: [(_, Figure); 2] = [
        (PROCESSES, Watched::processes),
        (PROCESSES_SERVING, Watched::serving),
    ];
    for (instrument, figure) in figures {
        let watched = Arc::clone(&watched);
        instrument.observe(meter, move |now| {
            for backend in &*watched {
                now.observe(whole(figure(backend)), &[of(backend.backend)]);
            }
        });
    }
}

async fn relay(states: impl Stream<Item = bool>, serving: watch::Sender<bool>) {
    let mut states = std::pin::pin!(states);
    while let Some(state) = states.next().await {
        serving.send_replace(state);
    }
    serving.send_replace(false);
    // The sender lives on: a service that went away is not serving, but known.
    std::future::pending::<()>().await;
}

/// A service in all processes of a backend: it is served while one of them serves it.
struct Served {
    backend: &'static str,
    service: String,
    /// Of each process.
    states: Vec<AtomicBool>,
    whole: watch::Sender<bool>,
}

impl Served {
    fn is_served_by(&self, process: usize) -> bool {
        let state = self.states.get(process);
        state.is_some_and(|state| state.load(Ordering::Relaxed))
    }

    /// Notes what a process says, and a change of the whole if it is one.
    fn tell(&self, index: usize, now: bool) {
        let changed = self.whole.send_if_modified(|was| {
            // In here, where one is at a time: the last word is about all words before.
            if let Some(state) = self.states.get(index) {
                state.store(now, Ordering::Relaxed);
            }
            let now = self.states.iter().any(|state| state.load(Ordering::Relaxed));
            let changed = *was != now;
            *was = now;
            changed
        });
        if changed {
            let (backend, service, serving) = (self.backend, &self.service, *self.whole.borrow());
            tracing::info!(backend, service, serving, "the health of a backend changed");
        }
    }
}

/// A process of a backend, as its health is asked for.
#[derive(Clone)]
struct MonitoredProcess {
    channel: Channel,
    /// `None` where the gateway knows no callers.
    probe: Option<Arc<Probe>>,
}

async fn watch_remote(process: MonitoredProcess, index: usize, served: Arc<Served>) {
    let mut pause = PAUSE_MIN;
    loop {
        let ended = watch_once(&process, index, &served, &mut pause).await;
        served.tell(index, false);
        if let Err(status) = ended {
            let (backend, service) = (served.backend, &served.service);
            tracing::debug!(backend, service, %status, "the health of a backend can't be followed");
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Follows a process until its stream ends, or it is found to answer calls that prove no caller. Each stream probes again: behind
/// it there may be another process than behind the last one.
async fn watch_once(
    process: &MonitoredProcess,
    index: usize,
    served: &Served,
    pause: &mut Duration,
) -> Result<(), Status> {
    let request = HealthCheckRequest {
        service: served.service.clone(),
    };
    let mut unproven = process.probe.as_deref();
    let mut states = HealthClient::new(process.channel.clone())
        .watch(request)
        .await?
        .into_inner();
    while let Some(state) = states.message().await? {
        let serving = state.status() == ServingStatus::Serving;
        if let Some(probe) = unproven.filter(|_| serving) {
            if !probe.refuses_unproven(&served.service).await? {
                return Ok(());
            }
            unproven = None;
        }
        *pause = PAUSE_MIN;
        served.tell(index, serving);
    }
    Ok(())
}

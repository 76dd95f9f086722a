//! The server: THE order of the layers, the stack they make, and serving it on a listener.
//!
//! | from outside | layer | why there |
//! |---|---|---|
//! | 1 | [`trace`](crate::layers::trace) | its span and its log line hold everything below, refusals too |
//! | 2 | [`metrics`](crate::layers::metrics) | inside the span, outside all that refuses: refusals are counted |
//! | 3 | [`drain`](crate::layers::drain) | before any work for a call that must not start; a call counts until its answer is out, panics too |
//! | 4 | [`catch_panic`](crate::layers::catch_panic) | below what must see the answer, above all that runs or holds something |
//! | 5 | [`deadline`](crate::layers::deadline) | the time in the queue below counts; a malformed `grpc-timeout` is refused behind 7 |
//! | 6 | [`admission`](crate::layers::admission) | before those who aren't let in take anything from others |
//! | 7 | [`rate`](crate::layers::rate) | after admission, so that the limiter can key on the caller; before a place is taken |
//! | 8 | [`concurrency`](crate::layers::concurrency) | after the cheap refusals, before the first byte of the body is read |
//! | 9 | [`error_info`](crate::layers::error_info) | completes what tonic makes; the layers above speak for themselves |
//! | 10 | [`messages`](crate::layers::messages) | limits and compression, by kind of route: services unpack, a gateway passes through |
//!
//! A [`Stack`] is one cloneable tower service. The same value is served on a listener and called in process by the
//! gateway, so both ways have the same limits, spans and errors.

use std::sync::Arc;

use http::{Request, Response, Uri};
use tonic::Status;
use tonic::body::Body;
use tonic::server::NamedService;
use tower::{Layer as _, ServiceBuilder};

use crate::callers::CallerKey;
use crate::callers::pool::{FullWords, Pool, Taken};
use crate::config::ServerConfig;
use crate::connection_info::{ConnectionInfo, Standing};
use crate::health::{self, Health};
use crate::layers::admission::{AdmissionLayer, Admit};
use crate::layers::body::hold_until_dropped;
use crate::layers::catch_panic::CatchPanicLayer;
use crate::layers::concurrency::{ConcurrencyLayer, ConcurrencyLimits};
use crate::layers::deadline::{DeadlineLayer, MalformedTimeoutLayer};
use crate::layers::drain::DrainGate;
use crate::layers::error_info::ErrorInfoLayer;
use crate::layers::messages::Layouts;
use crate::layers::metrics::MetricsLayer;
use crate::layers::rate::RateLayer;
use crate::layers::shed::Sheds;
use crate::layers::trace::{Believe, NamedCall, TraceLayer};
use crate::layers::{AnswerBody, AnyService, Inner, TowerService, refuse, tower_service};
use crate::methods::{DescriptorError, Methods};
use crate::reflection::{self, ReflectionError};
use crate::status::status_in;
use crate::telemetry::instrument::{meter, whole};
use crate::telemetry::instruments::CALLS_ACTIVE;

mod accept;
mod body_timeout;
mod crowd;
mod dispatch;
mod frames;
mod lifetime;
mod lingering;
mod listener;
mod stall;
mod watched;

pub use accept::{Served, serve};
pub use listener::{BindError, Listener, bind};

use dispatch::{Dispatch, Mounted};

/// Streams open at a time, and answers being sent, for each place to work.
const ANSWERS_PER_CALL: usize = 8;

/// The services of one server. Message limits and compression aren't theirs to set: mount them as they are generated.
#[derive(Debug)]
#[must_use]
pub struct Services {
    mounted: Mounted,
    /// Full names of what is mounted or forwarded.
    names: Vec<String>,
    descriptors: Vec<u8>,
    /// Names of services, and where their calls go.
    forwarded: Option<(Vec<String>, AnyService)>,
    admit: Option<Arc<dyn Admit>>,
    believe: Option<Arc<dyn Believe>>,
}

impl Services {
    /// None yet. `descriptors` is an encoded `FileDescriptorSet`, imports included, with at least the services that
    /// will be mounted; what is not mounted is not shown.
    ///
    /// # Errors
    /// When the descriptors can't be decoded.
    pub fn new(descriptors: &[u8]) -> Result<Self, DescriptorError> {
        Methods::read(&[descriptors], |_| false)?;
        Ok(Self {
            mounted: Mounted::default(),
            names: Vec::new(),
            descriptors: descriptors.to_vec(),
            forwarded: None,
            admit: None,
            believe: None,
        })
    }

    /// Adds a generated server.
    pub fn mount<S: TowerService + NamedService>(mut self, service: S) -> Self {
        self.names.push(S::NAME.to_owned());
        self.mounted = self.mounted.with(service);
        self
    }

    /// Sends the calls of the services named `names` to `forwarder`, undecoded. For a gateway; a second call replaces
    /// the first.
    pub fn forward(mut self, names: Vec<String>, forwarder: impl Inner) -> Self {
        self.forwarded = Some((names, AnyService::layered(forwarder)));
        self
    }

    /// Lets in only whom `admit` lets in, to health and reflection, too. A second call replaces the first.
    pub fn admission(mut self, admit: impl Admit) -> Self {
        self.admit = Some(Arc::new(admit));
        self
    }

    /// Goes on with the traces of those callers alone whom `believe` believes. A second call replaces the first.
    pub fn believing(mut self, believe: impl Believe) -> Self {
        self.believe = Some(Arc::new(believe));
        self
    }
}

/// Routes under all layers. Clones share limits, gate and health.
#[derive(Clone, Debug)]
pub struct Stack {
    service: AnyService,
    /// The layers around what a front answers by itself.
    own: AnyService,
    /// The same for what has a span already.
    untraced: AnyService,
    trace: TraceLayer,
    /// Answers that a front made itself, until their clients have taken them; by address, since nobody has authenticated these.
    visitors: Arc<Pool>,
    /// The gate, to count or await the calls under way.
    pub gate: DrainGate,
    /// The health of the services.
    pub health: Health,
    /// The RPCs this stack knows, health and reflection among them.
    pub methods: Methods,
    /// Whether its listener takes HTTP/1.1, too.
    http1: bool,
}

impl Stack {
    /// Begins the drain: health NOT_SERVING first, so that clients go elsewhere, then the gate.
    pub fn drain(&self) {
        self.health.drain();
        self.gate.close();
    }

    /// This stack behind `front`, which brings other protocols than gRPC to it; its listener then takes HTTP/1.1 besides
    /// HTTP/2. What the front answers by itself it puts under the layers by [`own_answer`](Self::own_answer).
    #[must_use]
    pub fn behind(self, front: impl TowerService) -> Self {
        Self {
            service: AnyService::tower(front),
            http1: true,
            ..self
        }
    }

    /// Passes a response that the front made itself through the layers: traced as an unknown method, measured, refused during a drain,
    /// above the rate limits and while too many are unread, and logged as `told` if it is a refusal. There is no admission.
    ///
    /// # Errors
    /// The refusal of a layer, which is the response then.
    pub async fn own_answer(
        &self,
        head: &http::request::Parts,
        told: Option<Status>,
        answer: impl Future<Output = Response<Body>>,
    ) -> Result<Response<Body>, Status> {
        let request = Request::from_parts(head.clone(), Body::empty());
        let taken = self.let_through(&self.own, request, told).await?;
        Ok(hold_until_dropped(answer.await, Some(taken)).map(Body::new))
    }

    /// The same for a call of another protocol than gRPC, whose span is named by `call` and lasts until it is answered. With the response
    /// `answer` gives the code of the error that it tells of; a span fails with what is answered by a status of HTTP from 500 on.
    ///
    /// # Errors
    /// As there.
    pub async fn own_call(
        &self,
        head: &http::request::Parts,
        call: NamedCall,
        answer: impl Future<Output = (Response<Body>, Option<String>)>,
    ) -> Result<Response<Body>, Status> {
        let request = Request::from_parts(head.clone(), Body::empty());
        let named = self.trace.named(request, call, move |request| async move {
            let taken = self.let_through(&self.untraced, request, None).await?;
            let (response, failure) = answer.await;
            Ok((hold_until_dropped(response, Some(taken)).map(Body::new), failure))
        });
        named.await
    }

    /// Passes what isn't of gRPC through `layers`, and takes a place for its answer.
    async fn let_through(
        &self,
        layers: &AnyService,
        mut request: Request<Body>,
        told: Option<Status>,
    ) -> Result<Taken, Status> {
        let visitor = CallerKey::visitors(request.extensions());
        let taken = self.visitors.admit(visitor, TOO_MANY_OWN_ANSWERS);
        let told = taken.as_ref().err().cloned().or(told);
        // Without its path, which is no RPC's now, and least of all that of health, which rates let pass.
        *request.uri_mut() = Uri::default();
        request.extensions_mut().insert(LoggedAs(told));
        let Ok(passed) = layers.answer(request).await;
        if passed.extensions().get::<Own>().is_none() {
            let refusal = passed.extensions().get::<Status>().cloned();
            let refusal = refusal.or_else(|| status_in(passed.headers()));
            return Err(refusal.unwrap_or_else(|| Status::unknown("a layer answered without a status")));
        }
        taken
    }
}

tower_service!(Stack);

/// All layers, health and reflection around `services`, measured on the process's meter. Start telemetry first: what
/// is made before it is measured by nobody.
///
/// # Errors
/// When a mounted service isn't in the descriptors.
pub fn stack(services: Services, health: &Health, config: &ServerConfig) -> Result<Stack, ReflectionError> {
    let meter = &meter();
    let mut names = services.names;
    names.extend(services.forwarded.iter().flat_map(|(names, _)| names.clone()));
    names.push(health::SERVICE_NAME.to_owned());
    let sets = [services.descriptors.as_slice()];
    let (v1, v1alpha) = reflection::services(&sets, &names)?;
    let reflection = Mounted::default().with(v1).with(v1alpha);

    let all_sets = [&sets[..], &reflection::BUILT_IN, &reflection::DESCRIPTORS].concat();
    let known =
        |name: &str| names.iter().any(|known| known == name) || reflection::SERVICE_NAMES.contains(&name);
    let methods = Methods::read(&all_sets, known)?;
    let gate = DrainGate::default();
    let counted = gate.clone();
    CALLS_ACTIVE.observe(meter, move |now| now.observe(whole(counted.in_flight()), &[]));
    let streams_max = config.concurrency_max.saturating_mul(ANSWERS_PER_CALL);
    let limits = ConcurrencyLimits {
        calls_max: config.concurrency_max,
        queue_max: config.queue_max,
        streams_max,
        // Calls count from before they wait.
        answers_max: streams_max.saturating_add(config.queue_max),
        // Behind a front door all calls come from its address.
        by_origin: services.forwarded.is_some(),
    };
    let routes = Dispatch::new(
        services.mounted,
        AnyService::tower(health.clone().into_service()),
        reflection,
        services.forwarded,
        config.message_bytes_max,
        &methods,
        &Arc::new(Layouts::read(&all_sets)?),
    );

    let sheds = Sheds::new(meter);
    let rate = RateLayer::new(&config.rate, sheds.clone());
    let trace = TraceLayer::server(methods.clone()).believing(services.believe);
    let metrics = MetricsLayer::server(methods.clone(), meter);
    // The same as below without admission, and without what only work needs.
    let untraced = AnyService::layered(
        ServiceBuilder::new()
            .layer(metrics.clone())
            .layer(gate.clone())
            .layer(rate.clone().of_own_answers())
            .service(OwnAnswer),
    );
    let own = AnyService::layered(trace.clone().layer(untraced.clone()));
    // From outside; the module's table says why in this order.
    let service = ServiceBuilder::new()
        .layer(trace.clone())
        .layer(metrics)
        .layer(gate.clone())
        .layer(CatchPanicLayer)
        .layer(DeadlineLayer::new(config.deadline_default, config.deadline_max))
        .layer(AdmissionLayer(services.admit, rate.clone()))
        .layer(rate)
        // Rates apply to these calls, too, so that the deadline layer lets them pass.
        .layer(MalformedTimeoutLayer)
        .layer(ConcurrencyLayer::new(limits, methods.clone(), sheds).observed(meter))
        .layer(ErrorInfoLayer(methods.clone()))
        .service(routes);
    let service = AnyService::layered(service);
    Ok(Stack {
        service,
        own,
        untraced,
        trace,
        visitors: Pool::new(streams_max),
        gate,
        health: health.clone(),
        methods,
        http1: false,
    })
}

/// Notes on the connection of a request that its front has let the caller in by itself: it is a caller's connection from then on, as after
/// admission.
pub fn let_in(extensions: &http::Extensions) {
    if let Some(info) = extensions.get::<Arc<ConnectionInfo>>() {
        info.activity.let_in(Standing::Caller);
    }
}

/// What is told of the answer to a request, in its extensions; `None` when it went well.
#[derive(Clone, Debug)]
struct LoggedAs(Option<Status>);

/// On an answer that no layer replaced.
#[derive(Clone, Copy, Debug)]
struct Own;

/// What a front answers by itself, as an answer of the innermost: the layers around it see how it ends.
#[derive(Clone, Copy, Debug)]
struct OwnAnswer;

impl Inner for OwnAnswer {
    async fn call(&self, request: Request<Body>) -> Response<impl AnswerBody + Default> {
        let told = request.extensions().get::<LoggedAs>();
        let told = told.and_then(|LoggedAs(told)| told.clone());
        let mut response: Response<Body> = refuse(told.unwrap_or_else(|| Status::ok("")));
        response.extensions_mut().insert(Own);
        response
    }
}

/// Refuses an answer while too many others are still to be read by their clients.
const TOO_MANY_OWN_ANSWERS: FullWords = [
    (
        "OWN_ANSWER_LIMIT",
        "the server has too many answers that nobody takes; retry with backoff",
    ),
    (
        "CALLER_OWN_ANSWER_LIMIT",
        "this address has too many answers that it doesn't take; take them, then retry",
    ),
];

#[cfg(test)]
mod tests;

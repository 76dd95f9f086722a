//! A span for each call, from its first byte to its trailers, and one log line in each process for each call that failed.
//!
//! Names and attributes follow the RPC conventions of OpenTelemetry (semantic-conventions `docs/rpc`, release candidate): the span is
//! named by `rpc.method`, that of unknown RPCs `_OTHER`. A server span is an error only for the six codes of server faults, a client
//! span for every code but OK.

use std::borrow::Cow;
use std::error::Error as _;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::task::{self, Poll, ready};

use futures_util::FutureExt as _;
use http::{Request, Response, Uri};
use opentelemetry::trace::{SpanKind, Status as SpanStatus, TraceContextExt as _};
use opentelemetry::{Context, KeyValue, StringValue};
use pin_project_lite::pin_project;
use tokio::time::Instant;
use tonic::body::Body;
use tonic::{Code, Status};

use super::body::followed;
use super::deadline::Deadline;
use super::outcome::{CallObserver, Outcome, Watch, code_of};
use super::{Answering, Around, Inner, peer_attributes};
use crate::causes::chain;
use crate::connection_info::{ConnectionInfo, PeerAddress};
use crate::methods::{METHOD_OTHER, Methods};
use crate::propagate;
use crate::status::{code_name, is_server_fault, reason};
use crate::telemetry::{ServiceRole, sampling};
use crate::tls::TlsPeer;

const ORIGINAL_BYTES_MAX: usize = 128;

/// Decides whose trace context is trusted at a front door. The calls of others begin new traces, with a link to the context that they sent.
pub trait Believe: fmt::Debug + Send + Sync + 'static {
    /// Whether the caller is trusted; asked only if it sent a trace context. May leave its identity in the extensions for layers below.
    fn believes(&self, request: &mut Request<Body>) -> bool;
}

/// A call of another protocol than gRPC, as its span tells of it.
#[derive(Clone, Copy, Debug)]
pub struct NamedCall {
    /// The protocol, as `rpc.system.name`.
    pub system: &'static str,
    /// The name of what is called; `None` for what there isn't.
    pub method: Option<&'static str>,
}

/// The context of a call from this process.
#[derive(Clone)]
struct LocalContext(Context);

/// Traces calls. See the [module](self).
#[derive(Clone, Debug)]
pub struct TraceLayer {
    /// Whom we ask, giving our context with the call; `None` where we answer, taking the caller's.
    peer: Option<Arc<[KeyValue]>>,
    /// Whether the peer is a server in this process, which gets the context as an extension; others by headers.
    is_local: bool,
    methods: Methods,
    /// `None` where everybody is believed.
    believe: Option<Arc<dyn Believe>>,
    /// Of the service whose layer this is; its spans, and those below, are the role's.
    role: Option<ServiceRole>,
}

impl TraceLayer {
    /// SERVER spans for the RPCs in `methods`, of the role in whose scope this is called.
    pub fn server(methods: Methods) -> Self {
        Self {
            peer: None,
            is_local: false,
            methods,
            believe: None,
            role: ServiceRole::current(),
        }
    }

    /// Goes on with the traces of those callers alone whom `believe` believes; of everybody when there is none.
    #[must_use]
    pub fn believing(self, believe: Option<Arc<dyn Believe>>) -> Self {
        Self { believe, ..self }
    }

    /// CLIENT spans for calls to `peer`. For a peer in this process (`is_local`), any URI that names it.
    pub(crate) fn client(methods: Methods, peer: &Uri, is_local: bool) -> Self {
        Self {
            peer: Some(peer_attributes(peer).into()),
            is_local,
            role: None,
            ..Self::server(methods)
        }
    }
}

impl Around for TraceLayer {
    fn call(&self, inner: &impl Inner, mut request: Request<Body>) -> impl Answering {
        let (context, watch) = match &self.peer {
            None => {
                let method = self.methods.known(request.uri().path());
                self.serve(&mut request, name_of(method), |request| {
                    attributes(method, request)
                })
            }
            Some(peer) => self.ask(&mut request, peer),
        };
        let answer = {
            let _entered = context.clone().map(Context::attach);
            Some(inner.call(request))
        };
        InContext { answer, context }.map(|response| match watch {
            Some(watch) => watch.follow(response),
            None => followed(response, None),
        })
    }
}

/// The context that a call runs in, `None` for that of its caller, and the watch over its end, `None` where nobody wants to know of it.
type Traced = (Option<Context>, Option<Watch<TracedCall>>);

impl TraceLayer {
    /// A SERVER span with this name and these attributes: in the caller's trace, if it is believed. Else that is linked, and nobody below
    /// hears of it.
    fn serve(
        &self,
        request: &mut Request<Body>,
        name: &str,
        attributes: impl FnOnce(&Request<Body>) -> Vec<KeyValue>,
    ) -> Traced {
        let (parent, linked) = match (request.extensions_mut().remove(), &self.believe) {
            (Some(LocalContext(context)), _) => (context, None),
            (None, Some(believe)) if propagate::is_told(request.headers()) && !believe.believes(request) => {
                propagate::take_trace(request.headers_mut())
            }
            _ => (propagate::extract(request.headers()), None),
        };
        let parent = match self.role {
            Some(role) => parent.with_value(role),
            None => parent,
        };
        let context = sampling::begin(&parent, linked, name, SpanKind::Server, || {
            let mut attributes = attributes(request);
            tell_of_connection(&mut attributes, request.extensions());
            attributes
        });
        let extensions = request.extensions_mut();
        let call = TracedCall {
            context: context.clone(),
            is_behind: extensions.get::<Told>().is_some(),
            told: Some(extensions.get_or_insert_default::<Told>().clone()),
            entered: true,
            started: Instant::now(),
        };
        (Some(context), Some(Watch::new(call, None)))
    }

    fn ask(&self, request: &mut Request<Body>, peer: &[KeyValue]) -> Traced {
        let around = Context::current();
        // A call that is made for one that isn't recorded hands on the same ids.
        let own = (!sampling::is_unrecorded(&around)).then(|| {
            let method = self.methods.known(request.uri().path());
            sampling::begin(&around, None, name_of(method), SpanKind::Client, || {
                let mut attributes = attributes(method, request);
                attributes.extend_from_slice(peer);
                attributes
            })
        });
        let given = own.as_ref().unwrap_or(&around);
        match self.is_local {
            true => drop(request.extensions_mut().insert(LocalContext(given.clone()))),
            false => propagate::inject(given, request.headers_mut()),
        }
        let Some(context) = own else {
            return (None, None);
        };
        // A client only passes the work on: within another span, whose trace it belongs to, nothing comes of entering its own.
        let entered = !around.has_active_span();
        let call = TracedCall {
            context: context.clone(),
            is_behind: false,
            told: None,
            entered,
            started: Instant::now(),
        };
        let watch = Watch::new(call, Deadline::of(request));
        (entered.then_some(context), Some(watch))
    }

    /// Does the work of a call that isn't of gRPC in a SERVER span. The work gives the response, and the code of the error that it tells of;
    /// a refusal of a layer is an `Err`.
    pub(crate) async fn named<B, F>(
        &self,
        mut request: Request<Body>,
        call: NamedCall,
        work: impl FnOnce(Request<Body>) -> F,
    ) -> Result<Response<B>, Status>
    where
        F: Future<Output = Result<(Response<B>, Option<String>), Status>>,
    {
        let name = call.method.unwrap_or(METHOD_OTHER);
        let (context, watch) = self.serve(&mut request, name, |_| {
            vec![
                KeyValue::new("rpc.system.name", call.system),
                KeyValue::new("rpc.method", name),
            ]
        });
        let answer = Some(work(request));
        let answered = InContext { answer, context }.await;
        if let Some(call) = watch.and_then(Watch::stop) {
            match &answered {
                Ok((response, failure)) => {
                    let code = failure
                        .clone()
                        .map_or(code_name(Code::Ok).into(), StringValue::from);
                    call.end(code, failure.is_some() && response.status().is_server_error());
                }
                Err(status) => call.ended(Err(status.clone())),
            }
        }
        answered.map(|(response, _)| response)
    }
}

fn name_of(method: Option<&Arc<str>>) -> &str {
    method.map_or(METHOD_OTHER, AsRef::as_ref)
}

/// Attributes of a span that a call has at most; with those of its end.
const ATTRIBUTES_MAX: usize = 11;

fn attributes(method: Option<&Arc<str>>, request: &Request<Body>) -> Vec<KeyValue> {
    let mut attributes = Vec::with_capacity(ATTRIBUTES_MAX);
    attributes.push(KeyValue::new("rpc.system.name", "grpc"));
    let name = method.cloned().map_or(METHOD_OTHER.into(), StringValue::from);
    attributes.push(KeyValue::new("rpc.method", name));
    if method.is_none() {
        let original = request.uri().path().trim_start_matches('/');
        let original = &original[..original.floor_char_boundary(ORIGINAL_BYTES_MAX)];
        attributes.push(KeyValue::new("rpc.method_original", original.to_owned()));
    }
    attributes
}

fn tell_of_connection(attributes: &mut Vec<KeyValue>, extensions: &http::Extensions) {
    if let Some(info) = extensions.get::<Arc<ConnectionInfo>>() {
        if let Some(local) = &info.local {
            tell(attributes, ["server.address", "server.port"], local);
        }
        let names = ["network.peer.address", "network.peer.port"];
        tell(attributes, names, &info.remote);
    }
    if let Some(peer) = extensions.get::<TlsPeer>() {
        attributes.push(KeyValue::new("tls.protocol.version", peer.version));
        let name = peer.name.as_ref();
        attributes.extend(name.map(|name| KeyValue::new("souk.peer.name", Arc::clone(name))));
    }
}

fn tell(attributes: &mut Vec<KeyValue>, [address, port]: [&'static str; 2], end: &PeerAddress) {
    attributes.push(KeyValue::new(address, Arc::clone(&end.address)));
    attributes.push(KeyValue::new(port, i64::from(end.socket.port())));
}

pin_project! {
    /// Polls and drops a future within a context, if there is one. Unlike in OpenTelemetry's `WithContext`, a call that is given up ends
    /// in there, too, and one that has ended doesn't enter once more to be dropped.
    struct InContext<F: Future> {
        // `None` once it has ended.
        #[pin]
        answer: Option<F>,
        context: Option<Context>,
    }

    impl<F: Future> PinnedDrop for InContext<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            if this.answer.is_some() {
                let _entered = this.context.clone().map(Context::attach);
                this.answer.set(None);
            }
        }
    }
}

impl<F: Future> Future for InContext<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        let Some(answer) = this.answer.as_mut().as_pin_mut() else {
            return Poll::Pending;
        };
        let _entered = this.context.clone().map(Context::attach);
        let output = ready!(answer.poll(cx));
        this.answer.set(None);
        Poll::Ready(output)
    }
}

/// The code of the last logged failure of a call, as an extension of its request: of a gateway and a service in one process only the
/// service logs it, which knows the cause.
#[derive(Clone, Debug, Default)]
struct Told(Arc<AtomicI32>);

struct TracedCall {
    context: Context,
    /// By a server behind another one: it has the line for a failure, the one in front only for another.
    is_behind: bool,
    /// `None` at the client's end, which has its line where the call is served, or where its error is answered.
    told: Option<Told>,
    entered: bool,
    started: Instant,
}

impl CallObserver for TracedCall {
    fn ended(self, outcome: Outcome) {
        // The log line first: it is told in the span, which is over then.
        if let Err(status) = &outcome {
            self.tell(status);
        }
        let code = code_of(&outcome);
        let is_error = code != Code::Ok && (self.told.is_none() || is_server_fault(code));
        self.end(code_name(code).into(), is_error);
    }

    fn context(&self) -> Option<&Context> {
        self.entered.then_some(&self.context)
    }
}

impl TracedCall {
    /// Ends the span with the code that the call was answered with.
    fn end(&self, code: StringValue, is_error: bool) {
        let span = self.context.span();
        if !span.is_recording() {
            return;
        }
        span.set_attribute(KeyValue::new("rpc.status_code", code.clone()));
        if is_error {
            span.set_status(SpanStatus::error(""));
            span.set_attribute(KeyValue::new("error.type", code));
        }
        span.end();
    }

    fn tell(&self, status: &Status) {
        let Some(Told(told)) = &self.told else { return };
        let code = i32::from(status.code());
        if self.is_behind {
            told.store(code, Ordering::Release);
        } else if told.load(Ordering::Acquire) == code {
            return;
        }
        let _entered = self.context.clone().attach();
        log(status, self.started);
    }
}

/// The one log line of a failed call.
fn log(status: &Status, started: Instant) {
    let code = code_name(status.code());
    let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let reason = reason(status).unwrap_or_default();
    let cause = status.source().map(chain).unwrap_or_default();
    // What a server is at fault for it says in words of its own; but for what it doesn't have, which its caller named.
    let message = match status.code() {
        code if is_server_fault(code) && code != Code::Unimplemented => Cow::Borrowed(status.message()),
        _ => Cow::Owned(unquoted(status.message())),
    };
    let message = message.as_ref();
    if is_server_fault(status.code()) {
        tracing::error!(code, reason, cause, elapsed_ms, error = message, "call failed");
    } else if status.code() == Code::Cancelled {
        // Callers leave streams: that is how those end.
        tracing::debug!(code, reason, cause, elapsed_ms, error = message, "call cancelled");
    } else {
        tracing::info!(code, reason, cause, elapsed_ms, error = message, "call refused");
    }
}

/// The message of a refusal without what the caller sent, which may be personal data: it is quoted there, as by `{:?}`.
fn unquoted(message: &str) -> String {
    let mut kept = String::with_capacity(message.len());
    let mut chars = message.chars();
    while let Some(char) = chars.next() {
        kept.push(char);
        if char == '"' {
            let mut escaped = false;
            let ends = |inner: char| {
                let ends = inner == '"' && !escaped;
                escaped = inner == '\\' && !escaped;
                ends
            };
            // Without an end, as in a message that was cut, all the rest goes.
            let _ = chars.by_ref().position(ends);
            kept.push_str("…\"");
        }
    }
    kept
}

#[cfg(test)]
mod tests;

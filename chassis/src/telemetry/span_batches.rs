//! Ended spans, on their way to the collector.
//!
//! A span is written as [bytes](super::span_bytes) by the thread that ends it, into the batch that is open. A full batch, or one that is as
//! old as the delay, is sent by one thread of its own, which has a runtime of its own, so that spans need nothing of the runtime that they
//! tell of. What the queue has no place for is dropped, counted, and told of. This is what the batch processor of the SDK is by the
//! specification (<https://opentelemetry.io/docs/specs/otel/trace/sdk/#batching-processor>), without its copies: with those, a gateway under
//! full load dropped one of seven spans.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use opentelemetry::{Context, InstrumentationScope};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};
use parking_lot::Mutex;
use tokio::runtime::Runtime;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use super::span_bytes::{request, resource, scope, write_span};
use crate::process::chain;

/// Orders that wait for the thread; each is of somebody who waits for what becomes of it.
const ORDERS_MAX: usize = 64;

/// Time for a flush that names none.
const FLUSH_MAX: Duration = Duration::from_secs(5);

/// Room that a thread keeps for the bytes of one span; one that takes more gives it back.
const SCRATCH_BYTES_MAX: usize = 64 * 1024;

thread_local! {
    /// Where a thread writes a span, so that threads don't wait for each other meanwhile.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Numbers of a batch processor (`OTEL_BSP_`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Batching {
    /// Oldest that a batch becomes before it is sent.
    pub(super) delay: Duration,
    /// Most spans that wait to be sent.
    pub(super) queue_max: usize,
    /// Spans of a full batch.
    pub(super) batch_max: usize,
}

/// Where batches go.
pub(super) trait Collector: Send + 'static {
    /// Takes an `ExportTraceServiceRequest` there, tried again as often as that may help.
    ///
    /// # Errors
    /// What the collector, or the way to it, said in the end.
    fn take(&mut self, request: Bytes) -> impl Future<Output = Result<(), tonic::Status>>;
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct SpanBatches {
    shared: Arc<Shared>,
    orders: mpsc::Sender<Order>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    batching: Batching,
    queue: Mutex<Queue>,
    /// There is a full batch.
    full: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    /// The fields of the resource.
    resource: Arc<[u8]>,
    open: Batch,
    full: VecDeque<Batch>,
    /// Spans of all batches.
    spans: usize,
    dropped: u64,
    /// Nothing is taken any more.
    ended: bool,
}

/// Spans by their scopes, of which there are few.
#[derive(Debug, Default)]
struct Batch {
    spans: usize,
    scopes: Vec<OfScope>,
}

#[derive(Debug)]
struct OfScope {
    scope: InstrumentationScope,
    /// Its fields.
    fields: Vec<u8>,
    spans: Vec<u8>,
}

/// What the thread is asked for.
#[derive(Debug)]
enum Order {
    /// To send what there is.
    Flush(SyncSender<OTelSdkResult>),
    /// And to end.
    End(SyncSender<OTelSdkResult>),
}

impl Batch {
    fn add(&mut self, scope: &InstrumentationScope, span: &[u8]) {
        self.spans += 1;
        if let Some(of) = self.scopes.iter_mut().find(|of| of.scope == *scope) {
            return of.spans.extend_from_slice(span);
        }
        self.scopes.push(OfScope {
            scope: scope.clone(),
            fields: self::scope(scope),
            spans: span.to_vec(),
        });
    }
}

impl Queue {
    /// Closes the open batch, if there is something in it.
    fn close_batch(&mut self) {
        if self.open.spans > 0 {
            self.full.push_back(std::mem::take(&mut self.open));
        }
    }
}

impl SpanBatches {
    /// Sends batches to `collector` on a thread that drives `runtime`.
    ///
    /// # Errors
    /// When the operating system refuses a thread.
    pub(super) fn start(batching: Batching, runtime: Runtime, collector: impl Collector) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            batching,
            queue: Mutex::default(),
            full: Notify::new(),
        });
        let (orders, taken) = mpsc::channel(ORDERS_MAX);
        let thread = std::thread::Builder::new().name("souk-spans".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || {
                // What sends spans must not make some.
                let _suppressed = Context::enter_telemetry_suppressed_scope();
                runtime.block_on(shared.send(taken, collector));
            }
        })?;
        Ok(Self {
            shared,
            orders,
            thread: Mutex::new(Some(thread)),
        })
    }

    fn order(
        &self,
        order: impl FnOnce(SyncSender<OTelSdkResult>) -> Order,
        timeout: Duration,
    ) -> OTelSdkResult {
        let (answer, answered) = sync_channel(1);
        self.orders.try_send(order(answer)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => {
                OTelSdkError::InternalFailure(format!("{ORDERS_MAX} flushes of spans wait already"))
            }
            mpsc::error::TrySendError::Closed(_) => OTelSdkError::AlreadyShutdown,
        })?;
        answered.recv_timeout(timeout).unwrap_or_else(|error| {
            Err(match error {
                RecvTimeoutError::Timeout => OTelSdkError::Timeout(timeout),
                RecvTimeoutError::Disconnected => OTelSdkError::AlreadyShutdown,
            })
        })
    }
}

impl SpanProcessor for SpanBatches {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if !span.span_context.is_sampled() {
            return;
        }
        let mut bytes = SCRATCH.try_with(RefCell::take).unwrap_or_default();
        bytes.clear();
        write_span(&mut bytes, &span);
        self.shared.add(&span.instrumentation_scope, &bytes);
        bytes.shrink_to(SCRATCH_BYTES_MAX);
        // A thread that ends may have none any more.
        let _ = SCRATCH.try_with(|scratch| scratch.replace(bytes));
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.order(Order::Flush, FLUSH_MAX)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        let result = self.order(Order::End, timeout);
        let dropped = {
            let mut queue = self.shared.queue.lock();
            queue.ended = true;
            queue.dropped
        };
        if dropped > 0 {
            tracing::warn!(
                dropped,
                "spans weren't sent: more ended than could be sent; see OTEL_BSP_MAX_QUEUE_SIZE"
            );
        }
        let thread = self.thread.lock().take();
        // One that didn't end in time is left to itself.
        if let Some(thread) = thread.filter(|_| !matches!(result, Err(OTelSdkError::Timeout(_))))
            && thread.join().is_err()
        {
            return Err(OTelSdkError::InternalFailure(
                "the thread that sends spans panicked".to_owned(),
            ));
        }
        result
    }

    fn set_resource(&mut self, of_process: &Resource) {
        self.shared.queue.lock().resource = resource(of_process).into();
    }
}

impl Shared {
    /// Takes a span, or drops it.
    ///
    /// IMPORTANT: it mustn't log. The span that ends is locked, and a log line is put into the span that is current, which may be that one.
    fn add(&self, scope: &InstrumentationScope, span: &[u8]) {
        let mut queue = self.queue.lock();
        if queue.ended {
            return;
        }
        if queue.spans >= self.batching.queue_max {
            queue.dropped += 1;
            return;
        }
        queue.spans += 1;
        queue.open.add(scope, span);
        if queue.open.spans >= self.batching.batch_max {
            queue.close_batch();
            drop(queue);
            self.full.notify_one();
        }
    }

    /// Sends batches until it is told to end, or by nobody any more.
    async fn send(&self, mut orders: mpsc::Receiver<Order>, mut collector: impl Collector) {
        let mut told_of_dropped = false;
        let mut due = Instant::now() + self.batching.delay;
        loop {
            let order = tokio::select! {
                order = orders.recv() => match order {
                    Some(order) => Some(order),
                    None => return,
                },
                () = self.full.notified() => None,
                () = tokio::time::sleep_until(due) => {
                    self.queue.lock().close_batch();
                    None
                }
            };
            if order.is_some() {
                self.queue.lock().close_batch();
            }
            let sent = self.send_full(&mut collector).await;
            if !told_of_dropped && self.queue.lock().dropped > 0 {
                told_of_dropped = true;
                let queue_max = self.batching.queue_max;
                tracing::warn!(
                    queue_max,
                    "spans are dropped: more end than can be sent; their number is told at the end"
                );
            }
            if Instant::now() >= due || order.is_some() {
                due = Instant::now() + self.batching.delay;
            }
            match order {
                None => {}
                // Whoever stopped waiting doesn't need to know.
                Some(Order::Flush(answer)) => drop(answer.send(sent)),
                Some(Order::End(answer)) => {
                    self.queue.lock().ended = true;
                    return drop(answer.send(sent));
                }
            }
        }
    }

    /// Sends the batches that are full now; what is lost is told of.
    async fn send_full(&self, collector: &mut impl Collector) -> OTelSdkResult {
        let mut result = Ok(());
        let batches = self.queue.lock().full.len();
        for _ in 0..batches {
            let (resource, batch) = {
                let mut queue = self.queue.lock();
                let Some(batch) = queue.full.pop_front() else {
                    break;
                };
                (Arc::clone(&queue.resource), batch)
            };
            let scopes = batch.scopes.iter();
            let request = request(
                &resource,
                scopes.map(|of| (of.fields.as_slice(), of.spans.as_slice())),
            );
            let sent = collector.take(request.into()).await;
            self.queue.lock().spans -= batch.spans;
            if let Err(status) = sent {
                let (code, spans) = (status.code(), batch.spans);
                // What the collector says may hold what it was sent, such as keys.
                let way = std::error::Error::source(&status).map(chain);
                tracing::warn!(?code, way, spans, "spans couldn't be sent");
                result = Err(OTelSdkError::InternalFailure(format!("{spans} spans: {code:?}")));
            }
        }
        result
    }
}

#[cfg(test)]
mod tests;

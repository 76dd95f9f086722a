//! Exemplars: a trace for each bucket of a histogram.
//!
//! The SDK never fills those of its data points (open-telemetry/opentelemetry-rust#3369). So they are kept here, and exposed as
//! OpenMetrics where metrics are fetched, but not by OTLP. None are kept while no endpoint is configured.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, SystemTime};

use opentelemetry::trace::{TraceContextExt as _, TraceId};
use opentelemetry::{Context, KeyValue, metrics};
use parking_lot::Mutex;

use super::ServiceRole;
use super::figures::named;

/// How long an example stays before a newer one takes its place.
const KEPT: Duration = Duration::from_secs(1);

/// Most sets of attributes with examples; the SDK has no more of them apart either.
const LABEL_SETS_MAX: usize = 2_000;

/// Which values may become examples: `OTEL_METRICS_EXEMPLAR_FILTER`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum ExemplarFilter {
    /// None.
    AlwaysOff,
    /// Those of traces that are sampled, which can be looked at.
    TraceBased,
    /// Those of any trace.
    AlwaysOn,
}

/// The filter of the process, as its number.
static FILTER: AtomicU8 = AtomicU8::new(ExemplarFilter::AlwaysOff as u8);

/// Of every histogram that was made while the filter was on.
static ALL: Mutex<Vec<Examples>> = Mutex::new(Vec::new());

/// Whether histograms take no values, because nobody wants to know; see [`figures`](super::figures).
pub(super) static RESTING: AtomicBool = AtomicBool::new(false);

/// Keeps examples from now on, of histograms that are made from now on.
pub(super) fn keep(filter: ExemplarFilter) {
    FILTER.store(filter as u8, Ordering::Release);
}

/// Sorts values into buckets. Clones are the same.
#[derive(Clone, Debug)]
pub struct Histogram {
    values: metrics::Histogram<f64>,
    examples: Option<Examples>,
}

impl Histogram {
    /// Adds examples to `values`, whose bounds are these.
    pub(super) fn new(values: metrics::Histogram<f64>, name: &'static str, bounds: &'static [f64]) -> Self {
        let examples = (FILTER.load(Ordering::Acquire) != ExemplarFilter::AlwaysOff as u8).then(|| {
            let examples = Examples {
                role: ServiceRole::current(),
                name,
                bounds,
                buckets: Arc::default(),
            };
            ALL.lock().push(examples.clone());
            examples
        });
        Self { values, examples }
    }

    /// Adds a value, unless histograms rest; the current span's trace becomes the example of its bucket.
    pub fn record(&self, value: f64, labels: &[KeyValue]) {
        if RESTING.load(Ordering::Relaxed) {
            return;
        }
        self.values.record(value, labels);
        if let Some(examples) = &self.examples {
            examples.note(value, labels);
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Exemplar {
    pub(super) trace: TraceId,
    pub(super) value: f64,
    pub(super) time: SystemTime,
}

/// The last example of each bucket, the last bucket being the one above all bounds.
pub(super) type Buckets = Vec<Option<Exemplar>>;

#[derive(Clone, Debug)]
struct Examples {
    role: Option<ServiceRole>,
    name: &'static str,
    bounds: &'static [f64],
    buckets: Arc<Mutex<HashMap<Vec<KeyValue>, Buckets>>>,
}

impl Examples {
    fn note(&self, value: f64, labels: &[KeyValue]) {
        let trace = Context::map_current(|context| {
            let span = context.span();
            let context = span.span_context();
            let wanted =
                context.is_sampled() || FILTER.load(Ordering::Relaxed) == ExemplarFilter::AlwaysOn as u8;
            (wanted && context.is_valid()).then(|| context.trace_id())
        });
        let Some(trace) = trace else { return };
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        let time = SystemTime::now();
        let mut all = self.buckets.lock();
        if !all.contains_key(labels) {
            if all.len() >= LABEL_SETS_MAX {
                return;
            }
            all.insert(labels.to_vec(), vec![None; self.bounds.len() + 1]);
        }
        let Some(place) = all.get_mut(labels).and_then(|buckets| buckets.get_mut(bucket)) else {
            return;
        };
        let is_fresh = place.is_some_and(|kept| time.duration_since(kept.time).is_ok_and(|age| age < KEPT));
        if !is_fresh {
            *place = Some(Exemplar { trace, value, time });
        }
    }
}

/// The examples of a histogram of a role, by its attributes in the order of their names.
pub(super) fn of(role: Option<ServiceRole>, name: &str) -> HashMap<Vec<(String, String)>, Buckets> {
    let all = ALL.lock();
    let wanted = all
        .iter()
        .filter(|examples| examples.role == role && examples.name == name);
    let mut found = HashMap::new();
    for examples in wanted {
        for (labels, buckets) in examples.buckets.lock().iter() {
            let mut labels = named(labels.iter());
            labels.sort();
            found.insert(labels, buckets.clone());
        }
    }
    found
}

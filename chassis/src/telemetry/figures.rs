//! The figures of the process, for whoever asks within it: neither an endpoint nor a collector is needed.
//!
//! Sorting values into buckets costs each call. Where metrics are exported neither by OTLP nor by `metrics_listen`, [`Histogram`]s rest until
//! somebody asks, and rest again when nobody has asked for [`WANTED`]: then a call costs one look at a flag.
//!
//! [`Histogram`]: super::instrument::Histogram

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use opentelemetry::{Key, KeyValue};
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, Metric, MetricData, ResourceMetrics};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::exemplar::RESTING;
use super::prometheus::Scraper;

/// Age up to which figures are told again: however many ask, they are read at most that often.
pub const FIGURES_AGE_MAX: Duration = Duration::from_millis(500);

/// How long values are sorted into buckets after somebody has asked, where metrics aren't exported.
pub const WANTED: Duration = Duration::from_secs(60);

/// The figures of the process, once its telemetry is installed.
static OF_THE_PROCESS: OnceLock<Source> = OnceLock::new();

/// All figures, as they were at one time.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// When they were read.
    pub read_at: SystemTime,
    /// They, role by role.
    pub all: Vec<Figure>,
}

/// What one role measures by one instrument.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The `service.name` of the role, or of the process.
    pub service: String,
    /// The name of the instrument.
    pub name: String,
    /// Its unit in UCUM.
    pub unit: String,
    pub(super) description: String,
    /// As Prometheus names it.
    pub(super) kind: &'static str,
    /// Upper bounds of buckets, ascending; none where values aren't sorted into buckets.
    pub bounds: Vec<f64>,
    /// The values, each with other attributes.
    pub values: Values,
}

/// Values by their attributes, each of which is a name and a text.
pub type Values = Vec<(Vec<(String, String)>, FigureValue)>;

/// A value of a figure.
#[derive(Clone, Debug, PartialEq)]
pub enum FigureValue {
    /// A sum, or a value as it is now.
    Number(f64),
    /// How many there were of which size.
    Buckets {
        /// How many there were.
        count: u64,
        /// What they come to together.
        sum: f64,
        /// How many there were in each bucket, the last one being above all bounds.
        counts: Vec<u64>,
    },
}

/// The figures of this process, not older than [`FIGURES_AGE_MAX`]; `None` without telemetry, and after its end.
pub async fn read() -> Option<Arc<Figures>> {
    OF_THE_PROCESS.get()?.read().await
}

/// Makes `scraper` the one that [`read`] asks. Histograms rest from now on unless they are `exported`.
pub(super) fn install(scraper: Scraper, exported: bool) {
    // The first stays, as the first subscriber does.
    let rests = (!exported).then_some(&RESTING);
    if OF_THE_PROCESS.set(Source::new(scraper, rests)).is_ok() {
        RESTING.store(!exported, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Source {
    scraper: Scraper,
    /// Says whether histograms rest; `None` where they never do.
    rests: Option<&'static AtomicBool>,
    last: tokio::sync::Mutex<Option<(Instant, Arc<Figures>)>>,
    asked_at: Mutex<Option<Instant>>,
}

impl Source {
    fn new(scraper: Scraper, rests: Option<&'static AtomicBool>) -> Self {
        Self {
            scraper,
            rests,
            last: tokio::sync::Mutex::default(),
            asked_at: Mutex::default(),
        }
    }

    async fn read(&'static self) -> Option<Arc<Figures>> {
        if let Some(rests) = self.rests {
            self.wake(rests);
        }
        // A task of its own: for callers who hang up, too, they are read once.
        tokio::spawn(self.latest()).await.ok().flatten()
    }

    async fn latest(&self) -> Option<Arc<Figures>> {
        let mut last = self.last.lock().await;
        if let Some((at, figures)) = &*last
            && at.elapsed() < FIGURES_AGE_MAX
        {
            return Some(Arc::clone(figures));
        }
        let read_at = SystemTime::now();
        let collected = self.scraper.collect(|roles| {
            let figures = roles.iter().flat_map(|(_, metrics)| of(metrics));
            figures.collect()
        });
        let all = collected.await?;
        let figures = Arc::new(Figures { read_at, all });
        *last = Some((Instant::now(), Arc::clone(&figures)));
        Some(figures)
    }

    /// Has histograms take values until nobody has asked for [`WANTED`].
    fn wake(&'static self, rests: &'static AtomicBool) {
        let mut asked_at = self.asked_at.lock();
        let rested = asked_at.replace(Instant::now()).is_none();
        if rested {
            rests.store(false, Ordering::Relaxed);
            tokio::spawn(self.rest_later(rests));
        }
    }

    async fn rest_later(&self, rests: &AtomicBool) {
        loop {
            let until = {
                let mut asked_at = self.asked_at.lock();
                match *asked_at {
                    Some(at) if at.elapsed() < WANTED => at + WANTED,
                    _ => {
                        rests.store(true, Ordering::Relaxed);
                        *asked_at = None;
                        return;
                    }
                }
            };
            tokio::time::sleep_until(until).await;
        }
    }
}

/// All that a role measures.
pub(super) fn of(metrics: &ResourceMetrics) -> Vec<Figure> {
    let service = metrics.resource().get(&Key::from_static_str("service.name"));
    let service = service.map(|name| name.to_string()).unwrap_or_default();
    let metrics = metrics.scope_metrics().flat_map(|scope| scope.metrics());
    let figure = |metric: &Metric| {
        let (kind, bounds, values) = match metric.data() {
            AggregatedMetrics::F64(data) => values(data, |number| number),
            // Counts are far below where a double stops being exact.
            AggregatedMetrics::U64(data) => values(data, |number| number as f64),
            AggregatedMetrics::I64(data) => values(data, |number| number as f64),
        };
        Figure {
            service: service.clone(),
            name: metric.name().to_owned(),
            unit: metric.unit().to_owned(),
            description: metric.description().to_owned(),
            kind,
            bounds,
            values,
        }
    };
    metrics.map(figure).collect()
}

/// How it is counted, the bounds of its buckets, and its values.
fn values<T: Copy>(data: &MetricData<T>, number: impl Fn(T) -> f64) -> (&'static str, Vec<f64>, Values) {
    let plain = |value| FigureValue::Number(number(value));
    match data {
        MetricData::Gauge(gauge) => {
            let points = gauge.data_points();
            let values = points.map(|point| (named(point.attributes()), plain(point.value())));
            ("gauge", Vec::new(), values.collect())
        }
        MetricData::Sum(sum) => {
            let points = sum.data_points();
            let values = points.map(|point| (named(point.attributes()), plain(point.value())));
            let kind = if sum.is_monotonic() { "counter" } else { "gauge" };
            (kind, Vec::new(), values.collect())
        }
        MetricData::Histogram(histogram) => {
            let mut points = histogram.data_points().peekable();
            let bounds = points.peek().map(|point| point.bounds().collect());
            let values = points.map(|point| {
                let buckets = FigureValue::Buckets {
                    count: point.count(),
                    sum: number(point.sum()),
                    counts: point.bucket_counts().collect(),
                };
                (named(point.attributes()), buckets)
            });
            let values = values.collect();
            ("histogram", bounds.unwrap_or_default(), values)
        }
        // No view asks for one.
        MetricData::ExponentialHistogram(_) => ("unknown", Vec::new(), Vec::new()),
    }
}

pub(super) fn named<'a>(attributes: impl Iterator<Item = &'a KeyValue>) -> Vec<(String, String)> {
    attributes
        .map(|attribute| (attribute.key.to_string(), attribute.value.to_string()))
        .collect()
}

#[cfg(test)]
mod tests;

//! What is measured, as data: each crate has one table of its [`instruments`](crate::instruments), and makes them from it. So names,
//! units and descriptions stand once, and documentation, dashboard and alerts can be held against them.
//!
//! ```
//! use souk_chassis::telemetry::instrument::Kind;
//!
//! souk_chassis::instruments! {
//!     BAKED: Kind::Counter, "souk.bread.baked" in "{loaf}" by ["souk.oven"], "Loaves that came out of the oven";
//! }
//! assert_eq!(BAKED.prometheus_name(), "souk_bread_baked_total");
//! BAKED.counter(&opentelemetry::global::meter("souk")).add(1, &[]);
//! ```

use opentelemetry::global;
use opentelemetry::metrics::{AsyncInstrument, Counter, Meter};

pub use super::exemplar::Histogram;
use super::prometheus::exposed_name;

/// Name of the instrumentation scope of all that is measured, traced and logged here.
pub(super) const SCOPE: &str = "souk";

/// The meter of the process, or of the [role](super::ServiceRole) in which this is called.
pub fn meter() -> Meter {
    global::meter(SCOPE)
}

/// Bounds of durations of calls, in seconds: as the conventions for RPC recommend them, and below, where most calls are, finer ones.
pub const CALL_SECONDS: &[f64] = &[
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0,
    2.5, 5.0, 7.5, 10.0,
];

/// Bounds of durations of accesses to a database, in seconds, as the conventions for databases recommend them.
pub const DATABASE_SECONDS: &[f64] = &[0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0];

/// Bounds of durations of what a disk does, in seconds: from one with a write cache to one that hangs.
pub const DISK_SECONDS: &[f64] = &[
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0,
];

/// Bounds of sizes of messages, in bytes.
pub const MESSAGE_BYTES: &[f64] = &[128.0, 1_024.0, 8_192.0, 65_536.0, 262_144.0, 1048576.0, 4194304.0];

/// How an instrument counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A sum that only grows.
    Counter,
    /// A value as it is now.
    Gauge,
    /// How many values lie below each of these bounds.
    Histogram(&'static [f64]),
}

/// One instrument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Instrument {
    /// Its name in OpenTelemetry; what has no convention begins with `souk.`.
    pub name: &'static str,
    /// How it counts.
    pub kind: Kind,
    /// Its unit in UCUM: `s`, `By`, or what is counted, in braces.
    pub unit: &'static str,
    /// What it says.
    pub description: &'static str,
    /// All attributes that its values may have.
    pub attributes: &'static [&'static str],
}

/// Makes a table of instruments, each by its kind, its name, its unit, its attributes and what it says, and of them `ALL`.
#[macro_export]
macro_rules! instruments {
    ($($name:ident: $kind:expr, $full:literal in $unit:literal by $attributes:expr, $description:literal;)+) => {
        $(
            #[doc = concat!($description, ".")]
            pub const $name: $crate::telemetry::instrument::Instrument = $crate::telemetry::instrument::Instrument {
                name: $full,
                kind: $kind,
                unit: $unit,
                description: $description,
                attributes: &$attributes,
            };
        )+

        /// All of them.
        pub const ALL: &[$crate::telemetry::instrument::Instrument] = &[$($name),+];
    };
}

macro_rules! observed {
    ($instrument:ident, $meter:ident . $make:ident, $look:ident) => {{
        let builder = $meter.$make($instrument.name).with_unit($instrument.unit);
        let builder = builder.with_description($instrument.description);
        builder.with_callback($look).build();
    }};
}

impl Instrument {
    /// Its name for Prometheus: with the unit, and `_total` when it is a sum. Histograms have series with `_bucket`,
    /// `_sum` and `_count` behind it.
    pub fn prometheus_name(&self) -> String {
        let name = exposed_name(self.name, self.unit);
        match self.kind {
            Kind::Counter => name + "_total",
            Kind::Gauge | Kind::Histogram(_) => name,
        }
    }

    /// A sum that is added to.
    pub fn counter(&self, meter: &Meter) -> Counter<u64> {
        let builder = meter.u64_counter(self.name).with_unit(self.unit);
        builder.with_description(self.description).build()
    }

    /// A histogram, with exemplars.
    pub fn histogram(&self, meter: &Meter) -> Histogram {
        let bounds = match self.kind {
            Kind::Histogram(bounds) => bounds,
            Kind::Counter | Kind::Gauge => &[],
        };
        let builder = meter.f64_histogram(self.name).with_unit(self.unit);
        let builder = builder
            .with_description(self.description)
            .with_boundaries(bounds.to_vec());
        Histogram::new(builder.build(), self.name, bounds)
    }

    /// Whole numbers that `look` tells whenever somebody asks. It must neither block for long nor keep alive what it looks
    /// at: it is never forgotten.
    pub fn observe(&self, meter: &Meter, look: impl Fn(&dyn AsyncInstrument<u64>) + Send + Sync + 'static) {
        match self.kind {
            Kind::Counter => observed!(self, meter.u64_observable_counter, look),
            Kind::Gauge | Kind::Histogram(_) => observed!(self, meter.u64_observable_gauge, look),
        }
    }

    /// [`Self::observe`] of seconds with fractions.
    pub fn observe_seconds(
        &self,
        meter: &Meter,
        look: impl Fn(&dyn AsyncInstrument<f64>) + Send + Sync + 'static,
    ) {
        match self.kind {
            Kind::Counter => observed!(self, meter.f64_observable_counter, look),
            Kind::Gauge | Kind::Histogram(_) => observed!(self, meter.f64_observable_gauge, look),
        }
    }
}

/// A count as instruments take it.
pub fn whole(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

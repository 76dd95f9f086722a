//! What a gateway measures beside what every server does.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Meter};
use souk_chassis::telemetry::instrument::{Instrument, Kind};

/// Calls that were sent again.
pub const RETRIES: Instrument = Instrument {
    name: "souk.gateway.retries",
    kind: Kind::Counter,
    unit: "{call}",
    description: "Safe calls that were sent to a backend again",
    attributes: &["souk.backend"],
};

/// Calls that the budget kept from being sent again.
pub const RETRIES_REFUSED: Instrument = Instrument {
    name: "souk.gateway.retries.refused",
    kind: Kind::Counter,
    unit: "{call}",
    description: "Safe calls that were not sent again because too many calls to the backend fail",
    attributes: &["souk.backend"],
};

/// Processes of backends.
pub const PROCESSES: Instrument = Instrument {
    name: "souk.gateway.backend.processes",
    kind: Kind::Gauge,
    unit: "{process}",
    description: "Processes of a backend that calls may go to",
    attributes: &["souk.backend"],
};

/// Those of them that serve.
pub const PROCESSES_SERVING: Instrument = Instrument {
    name: "souk.gateway.backend.serving",
    kind: Kind::Gauge,
    unit: "{process}",
    description: "Processes of a backend that say that they serve all of their services",
    attributes: &["souk.backend"],
};

/// Connections that are left out.
pub const EJECTED: Instrument = Instrument {
    name: "souk.gateway.backend.ejected",
    kind: Kind::Gauge,
    unit: "{connection}",
    description: "Connections to a backend that are left out for now, because it did not answer or refused too often",
    attributes: &["souk.backend"],
};

/// How often that was done.
pub const EJECTIONS: Instrument = Instrument {
    name: "souk.gateway.backend.ejections",
    kind: Kind::Counter,
    unit: "{ejection}",
    description: "Times a connection to a backend was left out for a while",
    attributes: &["souk.backend"],
};

/// Keys of an issuer of tokens that are passed over.
pub const ISSUER_KEYS_UNREADABLE: Instrument = Instrument {
    name: "souk.gateway.issuer.keys.unreadable",
    kind: Kind::Gauge,
    unit: "{key}",
    description: "Keys of the issuer of tokens that are passed over because they cannot be read",
    attributes: &[],
};

/// How old the keys of an issuer are.
pub const ISSUER_KEYS_UNCONFIRMED: Instrument = Instrument {
    name: "souk.gateway.issuer.keys.unconfirmed",
    kind: Kind::Gauge,
    unit: "s",
    description: "Time since the keys of the issuer of tokens could not be had or read any more, 0 while they can",
    attributes: &[],
};

/// All of them.
pub const ALL: &[Instrument] = &[
    RETRIES,
    RETRIES_REFUSED,
    PROCESSES,
    PROCESSES_SERVING,
    EJECTED,
    EJECTIONS,
    ISSUER_KEYS_UNREADABLE,
    ISSUER_KEYS_UNCONFIRMED,
];

/// Counts for one backend; counts nothing until it is made of an instrument. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally(Option<(Counter<u64>, KeyValue)>);

impl Tally {
    pub(crate) fn new(instrument: &Instrument, backend: &'static str, meter: &Meter) -> Self {
        let (counter, label) = (instrument.counter(meter), of(backend));
        // A series from the beginning: of one that begins with its first event the rise can't be seen.
        counter.add(0, std::slice::from_ref(&label));
        Self(Some((counter, label)))
    }

    /// One more.
    pub(crate) fn count(&self) {
        if let Self(Some((counter, label))) = self {
            counter.add(1, std::slice::from_ref(label));
        }
    }
}

/// The label of a backend.
pub(crate) fn of(backend: &'static str) -> KeyValue {
    KeyValue::new("souk.backend", backend)
}

#[cfg(test)]
pub(crate) mod testing;

//! What a gateway measures beside what every server does.

use std::sync::Arc;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Meter};
use souk_chassis::instruments;
use souk_chassis::telemetry::instrument::{Instrument, Kind};

instruments! {
    RETRIES: Kind::Counter, "souk.gateway.retries" in "{call}" by ["souk.backend"],
        "Safe calls that were sent to a backend again";
    RETRIES_REFUSED: Kind::Counter, "souk.gateway.retries.refused" in "{call}" by ["souk.backend"],
        "Safe calls that were not sent again because too many calls to the backend fail";
    PROCESSES: Kind::Gauge, "souk.gateway.backend.processes" in "{process}" by ["souk.backend"],
        "Processes of a backend that calls may go to";
    PROCESSES_SERVING: Kind::Gauge, "souk.gateway.backend.serving" in "{process}" by ["souk.backend"],
        "Processes of a backend that say that they serve all of their services";
    EJECTED: Kind::Gauge, "souk.gateway.backend.ejected" in "{connection}" by ["souk.backend"],
        "Connections to a backend that are left out for now, because it did not answer or refused too often";
    EJECTIONS: Kind::Counter, "souk.gateway.backend.ejections" in "{ejection}" by ["souk.backend"],
        "Times a connection to a backend was left out for a while";
    ISSUER_KEYS_UNREADABLE: Kind::Gauge, "souk.gateway.issuer.keys.unreadable" in "{key}" by [],
        "Keys of the issuer of tokens that are passed over because they cannot be read";
    ISSUER_KEYS_UNCONFIRMED: Kind::Gauge, "souk.gateway.issuer.keys.unconfirmed" in "s" by [],
        "Time since the keys of the issuer of tokens could not be had or read any more, 0 while they can";
}

/// Counts for one backend. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Tally(Counter<u64>, KeyValue);

impl Tally {
    pub(crate) fn new(instrument: &Instrument, backend: &Arc<str>, meter: &Meter) -> Self {
        let (counter, label) = (instrument.counter(meter), of(backend));
        // A series from the beginning: of one that begins with its first event the rise can't be seen.
        counter.add(0, std::slice::from_ref(&label));
        Self(counter, label)
    }

    pub(crate) fn count(&self) {
        self.0.add(1, std::slice::from_ref(&self.1));
    }
}

pub(crate) fn of(backend: &Arc<str>) -> KeyValue {
    KeyValue::new("souk.backend", Arc::clone(backend))
}

#[cfg(test)]
pub(crate) mod testing;

//! The keys of an issuer of tokens, from a file or an `https` address.
//!
//! A file is reloaded as all files of keys. An address is fetched in the background: every [`refresh`](JwtConfig), sooner when a token
//! names an unknown key, with backoff after failures. Calls never wait for it. Meanwhile the last keys stay in force, for
//! [`keys_age_max`](JwtConfig) at most: the thief of a revoked key could block the fetches.

use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use opentelemetry::metrics::Meter;
use souk_access::config::{JwtConfig, KeySource};
use souk_access::{Reloaded, key_files};
use souk_chassis::causes::chain;
use souk_chassis::fetch::RemoteDocument;
use souk_chassis::telemetry::instrument::{Instrument, whole};
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::AuthError;
use super::key_set::KeySet;
use crate::metrics::{ISSUER_KEYS_UNCONFIRMED, ISSUER_KEYS_UNREADABLE};

const BYTES_MAX: usize = 1 << 20;
const FETCH_MAX: Duration = Duration::from_secs(10);
/// Shortest time between two fetches, whoever wants them: tokens with made-up keys don't become load for the issuer.
const PAUSE_MIN: Duration = Duration::from_secs(5);
/// The first pause after a failure; each is twice the last.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Issuer {
    keys: Arc<Reloaded<KeySet>>,
    age_max: Duration,
    /// Somebody had a token of a key that isn't known.
    pub(super) missed: Arc<Notify>,
    /// Ends the fetching with the issuer.
    _fetching: Option<DropGuard>,
}

impl Issuer {
    /// The issuer of the settings. An address that doesn't answer is no error: its keys are fetched later. Must be called inside a
    /// tokio runtime.
    pub(super) fn follow(config: &JwtConfig) -> Result<Self, AuthError> {
        let missed = Arc::new(Notify::new());
        let (keys, fetching) = match config.source() {
            KeySource::File => (key_files::follow(Path::new(&config.jwks), KeySet::read)?, None),
            KeySource::Address => {
                let document = RemoteDocument::new(&config.jwks, &config.ca, BYTES_MAX, FETCH_MAX)?;
                let (keys, stop) = (Reloaded::fixed(KeySet::default()), CancellationToken::new());
                let fetching = Fetching {
                    document,
                    refresh: config.refresh,
                    keys: keys.clone(),
                    missed: Arc::clone(&missed),
                };
                tokio::spawn(stop.clone().run_until_cancelled_owned(fetching.run()));
                (keys, Some(stop.drop_guard()))
            }
        };
        Ok(Self {
            keys,
            age_max: config.keys_age_max,
            missed,
            _fetching: fetching,
        })
    }

    /// The keys; `None` when they are too old to be believed.
    pub(super) fn keys(&self) -> Option<Arc<KeySet>> {
        let unconfirmed = self.keys.refused_for().unwrap_or_default();
        (unconfirmed < self.age_max).then(|| self.keys.get())
    }
}

/// Shows on `meter` how the keys of an issuer are, as long as there is one, and 0 without.
pub(super) fn observe(issuer: &Weak<Issuer>, meter: &Meter) {
    let observe = |instrument: Instrument, figure: fn(&Issuer) -> u64| {
        let issuer = Weak::clone(issuer);
        instrument.observe(meter, move |now| {
            now.observe(issuer.upgrade().map_or(0, |issuer| figure(&issuer)), &[]);
        });
    };
    observe(ISSUER_KEYS_UNREADABLE, |issuer| {
        whole(issuer.keys.get().unreadable)
    });
    let unconfirmed = |issuer: &Issuer| issuer.keys.refused_for().unwrap_or_default().as_secs();
    observe(ISSUER_KEYS_UNCONFIRMED, unconfirmed);
}

struct Fetching {
    document: RemoteDocument,
    refresh: Duration,
    keys: Arc<Reloaded<KeySet>>,
    missed: Arc<Notify>,
}

impl Fetching {
    async fn run(self) {
        let (mut last, mut retry) = (None, RETRY_FIRST);
        loop {
            match self.fetch(last.as_deref()).await {
                Ok(None) => {
                    // The tokens that are known to be good stay known.
                    self.keys.confirm();
                    retry = RETRY_FIRST;
                    self.pause().await;
                }
                Ok(Some((text, keys))) => {
                    self.keys.set(keys);
                    tracing::info!("took the keys of the issuer of tokens");
                    (last, retry) = (Some(text), RETRY_FIRST);
                    self.pause().await;
                }
                Err(error) => {
                    self.keys.refuse();
                    tracing::warn!(
                        error,
                        unconfirmed = ?self.keys.refused_for(),
                        "the keys of the issuer of tokens can't be had; those of before stay until auth.jwt.keys_age_max"
                    );
                    // Not in step with other gateways that failed at the same moment.
                    tokio::time::sleep(retry.mul_f64(0.75 + fastrand::f64() / 2.0)).await;
                    retry = (retry * 2).min(RETRY_MAX);
                }
            }
        }
    }

    /// Waits until it is time, or a key is missed.
    async fn pause(&self) {
        tokio::time::sleep(PAUSE_MIN).await;
        let rest = self.refresh.saturating_sub(PAUSE_MIN);
        // Late is as good as in time.
        let _ = tokio::time::timeout(rest, self.missed.notified()).await;
    }

    /// The document and its keys; `None` when it is the `last` one still.
    async fn fetch(&self, last: Option<&str>) -> Result<Option<(String, KeySet)>, String> {
        let bytes = self.document.fetch().await.map_err(|error| chain(&error))?;
        let text = String::from_utf8(bytes.into()).map_err(|_| "the document is no text".to_owned())?;
        if Some(text.as_str()) == last {
            return Ok(None);
        }
        let keys = KeySet::read(&text).map_err(|problem| format!("the document {problem}"))?;
        Ok(Some((text, keys)))
    }
}

#[cfg(test)]
mod testing;

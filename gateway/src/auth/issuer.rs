//! The keys of an issuer of tokens, from where they are: a file, or an `https` address.
//!
//! A file is followed as all files of keys are. An address is asked in the background: every [`refresh`](JwtConfig), sooner
//! when a token names a key that isn't known, later and later while it can't be had. Calls never wait for it. The last
//! keys that were good stay in force whatever comes after them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use souk_access::Reloaded;
use souk_access::config::{JwtConfig, KeySource};
use souk_chassis::fetch::{Document, FetchError};
use souk_chassis::process::chain;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::guard::AuthError;
use super::key_set::KeySet;

/// Largest document, in bytes.
const BYTES_MAX: usize = 1 << 20;
/// Longest time for one fetch.
const FETCH_MAX: Duration = Duration::from_secs(10);
/// Shortest time between two fetches, whoever wants them: tokens with made-up keys don't become load for the issuer.
const PAUSE_MIN: Duration = Duration::from_secs(5);
/// The first pause after a failure; each is twice the last.
const RETRY_FIRST: Duration = Duration::from_secs(1);
/// The longest pause after a failure.
const RETRY_MAX: Duration = Duration::from_secs(60);

/// The keys that tokens are checked by now.
#[derive(Debug)]
pub(super) struct Issuer {
    keys: Reloaded<KeySet>,
    /// Somebody had a token of a key that isn't known.
    missed: Arc<Notify>,
    /// Ends the fetching with the issuer.
    _fetching: Option<DropGuard>,
}

impl Issuer {
    /// The issuer of the settings. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// When the file can't be used, or the address can't be one. That nobody answers there is no error: the keys come when
    /// somebody does.
    pub(super) fn follow(config: &JwtConfig) -> Result<Self, AuthError> {
        let missed = Arc::new(Notify::new());
        match config.source() {
            KeySource::File => Ok(Self {
                keys: Reloaded::follow(Path::new(&config.jwks), KeySet::read)?,
                missed,
                _fetching: None,
            }),
            KeySource::Address => {
                let document = Document::new(&config.jwks, &config.ca, BYTES_MAX, FETCH_MAX)?;
                let (keys, stop) = (Reloaded::fixed(KeySet::unknown()), CancellationToken::new());
                let fetching = Fetching {
                    document,
                    refresh: config.refresh,
                    keys: keys.clone(),
                    missed: Arc::clone(&missed),
                };
                tokio::spawn(stop.clone().run_until_cancelled_owned(fetching.run()));
                Ok(Self {
                    keys,
                    missed,
                    _fetching: Some(stop.drop_guard()),
                })
            }
        }
    }

    /// The keys.
    pub(super) fn keys(&self) -> Arc<KeySet> {
        self.keys.get()
    }

    /// An issuer with these keys.
    #[cfg(test)]
    pub(super) fn fixed(keys: KeySet) -> Self {
        Self {
            keys: Reloaded::fixed(keys),
            missed: Arc::default(),
            _fetching: None,
        }
    }

    /// Gives it others.
    #[cfg(test)]
    pub(super) fn set(&self, keys: KeySet) {
        self.keys.set(keys);
    }

    /// Says that a key is wanted that isn't among them.
    pub(super) fn miss(&self) {
        self.missed.notify_one();
    }
}

/// The task that asks an address.
struct Fetching {
    document: Document,
    refresh: Duration,
    keys: Reloaded<KeySet>,
    missed: Arc<Notify>,
}

impl Fetching {
    async fn run(self) {
        let (mut last, mut retry) = (String::new(), RETRY_FIRST);
        loop {
            match self.fetch().await {
                Ok((text, _)) if text == last => {
                    // The tokens that are known to be good stay known.
                    retry = RETRY_FIRST;
                    self.pause().await;
                }
                Ok((text, keys)) => {
                    self.keys.set(keys);
                    tracing::info!("took the keys of the issuer of tokens");
                    (last, retry) = (text, RETRY_FIRST);
                    self.pause().await;
                }
                Err(error) => {
                    tracing::warn!(
                        error,
                        "the keys of the issuer of tokens can't be had; those of before stay"
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

    async fn fetch(&self) -> Result<(String, KeySet), String> {
        let bytes = self
            .document
            .fetch()
            .await
            .map_err(|error: FetchError| chain(&error))?;
        let text = String::from_utf8(bytes.into()).map_err(|_| "the document is no text".to_owned())?;
        let keys = KeySet::read(&text).map_err(|problem| format!("the document {problem}"))?;
        Ok((text, keys))
    }
}

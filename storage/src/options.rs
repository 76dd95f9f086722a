//! What a database is opened with.

use std::sync::Arc;
use std::time::Duration;

use souk_kv::FjallOptions;

use crate::clock::{Clock, SystemClock};
use crate::error::{Error, Result};
use crate::limits::{MAX_RETENTION, MIN_RETENTION};

/// What a database is opened with. Every field has a default.
#[derive(Debug, Clone)]
pub struct DatabaseOptions {
    /// The engine on the disk. A backup to the device of its database leaves
    /// [`BACKUP_RESERVES`](crate::limits::BACKUP_RESERVES) times [`FjallOptions::reserve_bytes`] free.
    pub fjall: FjallOptions,
    /// How long changes are kept at least: from [`crate::limits::MIN_RETENTION`] to
    /// [`crate::limits::MAX_RETENTION`].
    pub retention: Duration,
    /// How long request ids are kept at least.
    pub request_retention: Duration,
    /// How often the log is trimmed, request ids are swept and the watermark is synced; above zero.
    pub maintenance_interval: Duration,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
}

impl DatabaseOptions {
    /// Refuses options out of their range; those of [`FjallOptions`] are refused by the engine.
    pub(crate) fn check(&self) -> Result<()> {
        if self.maintenance_interval.is_zero() {
            return Err(Error::invalid("option maintenance_interval", "is zero"));
        }
        if !(MIN_RETENTION..=MAX_RETENTION).contains(&self.retention) {
            let problem = format!(
                "is {:?}, not from MIN_RETENTION, {MIN_RETENTION:?}, to MAX_RETENTION, {MAX_RETENTION:?}",
                self.retention
            );
            return Err(Error::invalid("option retention", problem));
        }
        Ok(())
    }
}

impl Default for DatabaseOptions {
    fn default() -> Self {
        Self {
            fjall: FjallOptions::default(),
            retention: Duration::from_secs(86_400),
            request_retention: Duration::from_secs(86_400),
            maintenance_interval: Duration::from_secs(10),
            clock: Arc::new(SystemClock),
        }
    }
}

//! skeleton
use serde::{Deserialize, Serialize};

/// Log settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetryConfig {}

/// Why telemetry couldn't start.
#[derive(Debug, thiserror::Error)]
#[error("telemetry")]
pub struct TelemetryError;

/// Flushes on drop.
#[derive(Debug)]
pub struct TelemetryGuard;

/// Logs, traces, metrics.
#[derive(Debug)]
pub struct Telemetry;
impl Telemetry {
    /// Installs it for the process.
    ///
    /// # Errors
    /// When settings are wrong.
    pub fn start(config: TelemetryConfig, service: &'static str) -> Result<TelemetryGuard, TelemetryError> {
        let _ = (config, service);
        Ok(TelemetryGuard)
    }
}

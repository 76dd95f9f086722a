//! One loader for the settings of every process.
//!
//! Settings are a plain struct with `Default`. Over the defaults come, in this order, a TOML file, `SOUK_` variables
//! of the environment (`SOUK_SERVER__LISTEN` sets `server.listen`) and `key=value` overrides from the command line.
//! A key that the struct doesn't have is refused, wherever it stands, and all errors are reported at once, each with
//! its origin. The struct is the only schema: mark it and all structs in it `#[serde(default, deny_unknown_fields)]`,
//! since every setting is checked by itself against the defaults.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use souk_chassis::config::{Config, Loader, Problems, ServerConfig};
//!
//! #[derive(Default, Serialize, Deserialize)]
//! #[serde(default, deny_unknown_fields)]
//! struct OrderConfig { server: ServerConfig }
//!
//! impl Config for OrderConfig {
//!     fn check(&self, problems: &mut Problems) { self.server.check("server", problems) }
//! }
//!
//! let config: OrderConfig = Loader::default()
//!     .environment([("SOUK_SERVER__QUEUE_MAX".into(), "8".into())])
//!     .overrides(["server.concurrency_max=64", "server.drain_deadline=5s"])
//!     .load()?;
//! assert_eq!((config.server.concurrency_max, config.server.queue_max), (64, 8));
//! # Ok::<(), souk_chassis::config::ConfigError>(())
//! ```

use serde::Serialize;
use serde::de::DeserializeOwned;

mod client;
pub mod duration;
mod loader;
mod server;
mod tls;

pub use client::ClientConfig;
pub(crate) use loader::process_environment;
use loader::push_zeros;
pub use loader::{ConfigError, Loader, Problems};
pub use server::{
    ConnectionConfig, Http2Config, MESSAGE_BYTES_CEILING, MESSAGE_BYTES_FLOOR, RateConfig, ServerConfig,
};
pub use tls::{ClientTlsConfig, ServerTlsConfig};

/// Settings of a process.
pub trait Config: Default + Serialize + DeserializeOwned {
    /// Adds what can't be said by types: ranges, and settings that don't fit together.
    fn check(&self, problems: &mut Problems);
}

#[cfg(test)]
mod tests;

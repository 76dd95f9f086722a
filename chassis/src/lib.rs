//! What every Souk process needs around its own work: configuration, telemetry, the layers of a gRPC server, health,
//! reflection, an ordered drain, and errors with details.
//!
//! It is **not** a framework for domains: it knows neither storage nor index nor any message of `souk.*`. A service
//! gives it values (routes, descriptors, a source of health, things to close) and gets a process back.
//!
//! # Layout
//! Modules use those above them alone.
//! - [`causes`]: errors as text. [`status`]: errors with `ErrorInfo`, field violations, retry delays.
//! - [`methods`]: which RPCs exist, read from the descriptors, so that names in telemetry stay few.
//! - [`private_files`], [`huge_pages`], [`connection_headers`]: files with secrets, memory, hop-by-hop headers.
//! - `workers`: threads that serve connections. `write_coalescing`: coalesced writes of calls.
//! - [`config`]: defaults in code, then a TOML file, then the environment, then `key=value` overrides; all errors at once.
//! - [`reload`]: values made of files, reloaded when these change. `dial`, [`tls`]: connections, TLS and mTLS.
//! - `connection_info`: the connection of a call. [`callers`]: the keys of limits, and fair shares of pools.
//! - [`propagate`], [`telemetry`]: trace context across processes; logs, OpenTelemetry traces and metrics, and their flush at the end.
//! - [`health`]: `grpc.health.v1`, derived from what the service says about itself.
//! - [`layers`]: one tower layer a file.
//! - [`client`]: a channel to another process, traced, that inherits the deadline of the call it serves. [`fetch`]: a document.
//! - [`reflection`]: server reflection v1 and v1alpha of exactly the mounted services.
//! - [`server`]: the order of the layers, the stack they make, and serving it on a listener.
//! - [`host`]: the life of a process: tracked tasks, signals, the drain and its one deadline.
//! - [`process`]: from the first line to the exit code: telemetry, port, start, `listening on`, drain.
//! - [`args`]: the command line of a service and the settings that come out of it.
//!
//! # Example
//! ```no_run
//! use souk_chassis::{config::ServerConfig, health::Health, host::Host, server};
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let descriptors: &[u8] = &[];
//! let config = ServerConfig::default();
//! let health = Health::default();
//! let services = server::Services::new(descriptors)?; // .mount(OrderServiceServer::new(api))
//! let stack = server::stack(services, &health, &config)?;
//! let listener = server::Listener::bind(&config).await?;
//! let mut host = Host::new(config.drain_deadline);
//! host.on_close("database", || async { Ok(()) });
//! let exit = host.run(listener, stack, &config, souk_chassis::host::terminated()?).await;
//! std::process::exit(i32::from(!exit.is_clean()));
//! # }
//! ```

pub mod args;
pub mod callers;
pub mod causes;
pub mod client;
pub mod config;
pub mod connection_headers;
mod connection_info;
mod dial;
pub mod fetch;
pub mod health;
pub mod host;
pub mod huge_pages;
pub mod layers;
pub mod methods;
pub mod private_files;
pub mod process;
pub mod propagate;
pub mod reflection;
pub mod reload;
pub mod server;
pub mod status;
pub mod telemetry;
pub mod tls;
mod workers;
mod write_coalescing;

#[cfg(test)]
mod testing;

//! Shops on the map: `souk.shop.v1` on an engine.
//!
//! It is **not** a map: it knows where shops are and which are near, and draws nothing. The table, the message and the RPCs that
//! every resource has are generated from the contract; this crate holds what is true of shops only ([`shop`]): nearby searches, clusters of a
//! map, and suggestions of names.
//!
//! # Example
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use souk_chassis::server::Services;
//! use souk_engine::EngineConfig;
//! use souk_api::hosting::Service;
//! use souk_shop_svc::ShopServices;
//!
//! let services = ShopServices::open(EngineConfig::new("data/shop"), Default::default()).await?;
//! let mounted = services.mount(Services::new(souk_proto::FILE_DESCRIPTOR_SET)?);
//! # let _ = mounted; Ok(()) }
//! ```

use souk_api::hosting::{self, Service};
use souk_api::open_measured;
use souk_chassis::host::Exit;
use souk_chassis::process::RunError;
use souk_chassis::server::Services;
use souk_engine::{Engine, EngineConfig, Result, Tables};
use souk_proto::shop::v1::shop_service_server::{self, ShopServiceServer};
use tokio_util::sync::CancellationToken;

pub mod shop;

souk_api::include_resources!();

/// The command line of `souk-shop-svc`.
pub use souk_chassis::args::ServiceArgs as Args;

/// The shop service on an engine.
#[derive(Clone, Debug)]
pub struct ShopServices {
    engine: Engine,
    shops: ShopServiceServer<ShopApi<shop::ShopDomain>>,
}

impl Service for ShopServices {
    const NAME: &'static str = "souk-shop";
    const FOLDER: &'static str = "shop";
    const SERVICES: &'static [&'static str] = &[shop_service_server::SERVICE_NAME];

    async fn open(config: EngineConfig, draining: CancellationToken) -> Result<Self> {
        let engine = open_measured(config, Tables::new().table::<Shops>()).await?;
        let shops = ShopApi::server(&engine, &draining, shop::ShopDomain)?;
        Ok(Self { engine, shops })
    }

    fn engine(&self) -> &Engine {
        &self.engine
    }

    fn mount(&self, services: Services) -> Services {
        services.mount(self.shops.clone())
    }
}

/// Runs a process with this service alone, until it is told to stop.
///
/// # Errors
/// Why it can't start.
pub async fn run(args: Args) -> std::result::Result<Exit, RunError> {
    hosting::run::<ShopServices>(args).await
}

#[cfg(test)]
mod tests;

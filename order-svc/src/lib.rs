//! Orders, and the consumers, salespersons and products they are made of: `souk.order.v1` on an engine.
//!
//! It is **not** a shop system: it neither takes payments nor counts stock, and it keeps an order's names and prices as
//! they were when it was made. Tables, messages and the RPCs that every resource has are generated from the contract; this crate holds
//! what is true of orders only: [`order`] completes them, [`references`] looks up what they lack, [`product`] suggests products' names.
//!
//! # Example
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use souk_chassis::server::Services;
//! use souk_engine::EngineConfig;
//! use souk_api::hosting::Service;
//! use souk_order_svc::OrderServices;
//!
//! let services = OrderServices::open(EngineConfig::new("data/order"), Default::default()).await?;
//! let mounted = services.mount(Services::new(souk_proto::FILE_DESCRIPTOR_SET)?);
//! # let _ = mounted; Ok(()) }
//! ```

use std::sync::Arc;

use souk_api::hosting::{self, Service};
use souk_api::{NoDomain, open_measured};
use souk_chassis::host::Exit;
use souk_chassis::process::RunError;
use souk_chassis::server::Services;
use souk_engine::{Engine, EngineConfig, Result, Tables};
use souk_proto::order::v1::consumer_service_server::{self, ConsumerServiceServer};
use souk_proto::order::v1::order_service_server::{self, OrderServiceServer};
use souk_proto::order::v1::product_service_server::{self, ProductServiceServer};
use souk_proto::order::v1::salesperson_service_server::{self, SalespersonServiceServer};
use tokio_util::sync::CancellationToken;

pub mod order;
pub mod product;
pub mod references;

souk_api::include_resources!();

/// The command line of `souk-order-svc`.
pub use souk_chassis::args::ServiceArgs as Args;

/// The four order services on one engine.
#[derive(Clone, Debug)]
pub struct OrderServices {
    engine: Engine,
    orders: OrderServiceServer<OrderApi<order::OrderDomain>>,
    products: ProductServiceServer<ProductApi<product::ProductDomain>>,
    consumers: ConsumerServiceServer<ConsumerApi<NoDomain>>,
    salespersons: SalespersonServiceServer<SalespersonApi<NoDomain>>,
}

impl Service for OrderServices {
    const NAME: &'static str = "souk-order";
    const FOLDER: &'static str = "order";
    const SERVICES: &'static [&'static str] = &[
        order_service_server::SERVICE_NAME,
        product_service_server::SERVICE_NAME,
        consumer_service_server::SERVICE_NAME,
        salesperson_service_server::SERVICE_NAME,
    ];

    async fn open(config: EngineConfig, draining: CancellationToken) -> Result<Self> {
        let tables = Tables::new().table::<Orders>().table::<Products>();
        let tables = tables.table::<Consumers>().table::<Salespersons>();
        let clock = Arc::clone(&config.storage.clock);
        let engine = open_measured(config, tables).await?;
        let domain = order::OrderDomain::new(references::References::new(&engine)?, clock);
        Ok(Self {
            orders: OrderApi::server(&engine, &draining, domain)?,
            products: ProductApi::server(&engine, &draining, product::ProductDomain)?,
            consumers: ConsumerApi::server(&engine, &draining, NoDomain)?,
            salespersons: SalespersonApi::server(&engine, &draining, NoDomain)?,
            engine,
        })
    }

    fn engine(&self) -> &Engine {
        &self.engine
    }

    fn mount(&self, services: Services) -> Services {
        services
            .mount(self.orders.clone())
            .mount(self.products.clone())
            .mount(self.consumers.clone())
            .mount(self.salespersons.clone())
    }
}

/// Runs a process with these services alone, until it is told to stop.
///
/// # Errors
/// Why it can't start.
pub async fn run(args: Args) -> std::result::Result<Exit, RunError> {
    hosting::run::<OrderServices>(args).await
}

#[cfg(test)]
mod tests;

//! Tables that users define: `souk.table.v1` on an engine.
//!
//! It is **not** a database of its own: what a table is and does is the engine's; this crate is the way between its types and
//! the messages of the contract, and knows which names are taken by the tables of other services.
//!
//! # Layout
//! Each module uses those above it only.
//!
//! | module | what it does |
//! |---|---|
//! | `value` | values of cells and keys |
//! | `filter` | conditions on the columns of rows |
//! | `table` | definitions of tables |
//! | `read`, `write` | what of rows is read; what is written of them, and what became of it |
//! | `rows` | rows, and where they are, as answers have them |
//! | `consumer_group` | the RPCs of consumer groups, and their checkpoints |
//! | `service` | the RPCs of tables and rows |
//!
//! # Example
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use souk_api::hosting::Service;
//! use souk_chassis::server::Services;
//! use souk_engine::EngineConfig;
//! use souk_table_svc::TableServices;
//!
//! let services = TableServices::open(EngineConfig::new("data/table"), Default::default()).await?;
//! let mounted = services.mount(Services::new(souk_proto::FILE_DESCRIPTOR_SET)?);
//! # let _ = mounted; Ok(()) }
//! ```

use souk_api::hosting::{self, Service};
use souk_api::{contract_tables, open_measured};
use souk_chassis::host::Exit;
use souk_chassis::process::RunError;
use souk_chassis::server::Services;
use souk_engine::{Engine, EngineConfig, EngineError, Result, Tables};
use souk_proto::table::v1::consumer_group_service_server::{self, ConsumerGroupServiceServer};
use souk_proto::table::v1::table_service_server::{self, TableServiceServer};
use tokio_util::sync::CancellationToken;

use crate::consumer_group::ConsumerGroupApi;
use crate::service::TableApi;

mod consumer_group;
mod filter;
mod read;
mod rows;
mod service;
mod table;
mod value;
mod write;

/// The command line of `souk-table-svc`.
pub use souk_chassis::args::ServiceArgs as Args;

/// The table service on an engine.
#[derive(Clone, Debug)]
pub struct TableServices {
    engine: Engine,
    tables: TableServiceServer<TableApi>,
    groups: ConsumerGroupServiceServer<ConsumerGroupApi>,
}

impl Service for TableServices {
    const NAME: &'static str = "souk-table";
    const FOLDER: &'static str = "table";
    const SERVICES: &'static [&'static str] = &[
        table_service_server::SERVICE_NAME,
        consumer_group_service_server::SERVICE_NAME,
    ];

    async fn open(config: EngineConfig, draining: CancellationToken) -> Result<Self> {
        let engine = open_measured(config, Tables::new()).await?;
        let taken = contract_tables(Self::CONTRACT);
        let taken = taken.map_err(|_| EngineError::Defect("the contract's descriptors are damaged"))?;
        let groups = ConsumerGroupApi::new(engine.clone(), draining.clone());
        let tables = TableApi::new(engine.clone(), taken, draining);
        Ok(Self {
            engine,
            tables: TableServiceServer::new(tables),
            groups: ConsumerGroupServiceServer::new(groups),
        })
    }

    fn engine(&self) -> &Engine {
        &self.engine
    }

    fn mount(&self, services: Services) -> Services {
        services.mount(self.tables.clone()).mount(self.groups.clone())
    }
}

/// A process with this service alone, from its command line to its exit.
///
/// # Errors
/// Why it can't start.
pub async fn run(args: Args) -> std::result::Result<Exit, RunError> {
    hosting::run::<TableServices>(args).await
}

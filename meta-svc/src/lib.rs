//! Metadata of media files: `souk.media.v1` on an engine.
//!
//! It is **not** a file store: files are elsewhere, and nothing is analysed here. The table, the message and the RPCs that
//! every resource has are generated from the contract; this crate holds what is true of media items only ([`media`]): updates may append the
//! tags and faces that were found in a file. Only the crate is named `meta-svc`: its folder and backend are `media`, and its
//! `service.name` is `souk-media`, as in the contract.
//!
//! # Example
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use souk_chassis::server::Services;
//! use souk_engine::EngineConfig;
//! use souk_api::hosting::Service;
//! use souk_meta_svc::MediaServices;
//!
//! let services = MediaServices::open(EngineConfig::new("data/media"), Default::default()).await?;
//! let mounted = services.mount(Services::new(souk_proto::FILE_DESCRIPTOR_SET)?);
//! # let _ = mounted; Ok(()) }
//! ```

use souk_api::hosting::{self, Service};
use souk_api::open_measured;
use souk_chassis::host::Exit;
use souk_chassis::process::RunError;
use souk_chassis::server::Services;
use souk_engine::{Engine, EngineConfig, Result, Tables};
use souk_proto::media::v1::media_service_server::{self, MediaServiceServer};
use tokio_util::sync::CancellationToken;

pub mod media;

souk_api::include_resources!();

/// The command line of `souk-meta-svc`.
pub use souk_chassis::args::ServiceArgs as Args;

/// The media service on an engine.
#[derive(Clone, Debug)]
pub struct MediaServices {
    engine: Engine,
    media: MediaServiceServer<MediaApi<media::MediaDomain>>,
}

impl Service for MediaServices {
    const NAME: &'static str = "souk-media";
    const FOLDER: &'static str = "media";
    const SERVICES: &'static [&'static str] = &[media_service_server::SERVICE_NAME];

    async fn open(config: EngineConfig, draining: CancellationToken) -> Result<Self> {
        let engine = open_measured(config, Tables::new().table::<Media>()).await?;
        let media = MediaApi::server(&engine, &draining, media::MediaDomain)?;
        Ok(Self { engine, media })
    }

    fn engine(&self) -> &Engine {
        &self.engine
    }

    fn mount(&self, services: Services) -> Services {
        services.mount(self.media.clone())
    }
}

/// Runs a process with this service alone, until it is told to stop.
///
/// # Errors
/// Why it can't start.
pub async fn run(args: Args) -> std::result::Result<Exit, RunError> {
    hosting::run::<MediaServices>(args).await
}

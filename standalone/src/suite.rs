//! The whole suite in one process: three services, each with its own database, behind one gateway.

use souk_chassis::args::ServiceArgs;
use souk_chassis::config::ServerConfig;
use souk_chassis::health::Health;
use souk_chassis::host::{Exit, Host};
use souk_chassis::process::{Process, RunError, StartError};
use souk_chassis::server::{self, Services, Stack};
use souk_chassis::telemetry::Role;
use souk_engine::hosting::{self, Service, Settings};
use souk_gateway::Gateway;
use souk_gateway::backend::{Backends, Target};
use souk_gateway::config::GatewayConfig;
use souk_meta_svc::MediaServices;
use souk_order_svc::OrderServices;
use souk_shop_svc::ShopServices;

/// `service.name` of the front door, and of what belongs to no service.
const GATEWAY: &str = "souk-gateway";

/// Runs the suite from its settings to its exit. `prepare` is run when everything works, before the address is told: it
/// gets the settings and the front door, for calls within the process.
///
/// # Errors
/// Why it can't start.
pub async fn run(
    args: ServiceArgs,
    prepare: impl AsyncFnOnce(&Settings, Stack) -> Result<(), StartError>,
) -> Result<Exit, RunError> {
    let settings: Settings = args.load()?;
    let roles = [OrderServices::NAME, ShopServices::NAME, MediaServices::NAME].map(Role::new);
    Process::new(GATEWAY)
        .roles(roles)
        .run(&settings.telemetry, &settings.server, async |host| {
            let backends = Backends {
                order: Some(start::<OrderServices>(&settings, host).await?),
                shop: Some(start::<ShopServices>(&settings, host).await?),
                media: Some(start::<MediaServices>(&settings, host).await?),
            };
            let config = GatewayConfig {
                server: settings.server.clone(),
                ..GatewayConfig::default()
            };
            let stack = Gateway::new(&config, backends)?.stack();
            prepare(&settings, stack.clone()).await?;
            Ok(stack)
        })
        .await
}

/// Starts a service in its own folder and role; gives its stack, with all its layers, to the gateway.
async fn start<S: Service>(settings: &Settings, host: &mut Host) -> Result<Target, StartError> {
    let role = Role::new(S::NAME);
    role.scope(async {
        let health = Health::new();
        let folder = settings.data.join(S::FOLDER);
        let server: &ServerConfig = &settings.server;
        let service = hosting::start::<S>(&folder, &settings.engine, server, host, &health).await?;
        let services = service.mount(Services::new(souk_proto::FILE_DESCRIPTOR_SET)?);
        Ok(Target::Local(server::stack(services, &health, server)?))
    })
    .await
}

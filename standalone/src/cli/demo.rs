//! `souk demo`: everything in one process, with demo data that is loaded at the first start.

use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use clap::{Args, ValueEnum};
use souk_access::ProcessKind;
use souk_api::hosting::Settings;
use souk_chassis::args::ServiceArgs;
use souk_chassis::client::Client;
use souk_chassis::config::{ConfigError, Problems};
use souk_chassis::host::Exit;
use souk_chassis::methods::Methods;
use souk_chassis::process::{RunError, StartError};
use souk_gateway::origins::{ConsoleMode, WebConfig};
use souk_proto::FILE_DESCRIPTOR_SET;

use super::tablestore::{self, Endpoint};
use super::{ready, serve};
use crate::dataset::{DemoRows, load_all};

/// How much data the demo has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum DemoSize {
    /// 5,000 orders, shops and media each, in a few seconds.
    Small,
    /// 200,000 orders, 200,000 shops and 100,000 media.
    #[default]
    Full,
}

/// Arguments of the demo.
#[derive(Clone, Debug, Args)]
pub(super) struct DemoArgs {
    /// How much data is loaded at the first start.
    #[arg(long, value_enum, default_value_t)]
    size: DemoSize,
    /// Orders instead of the size's.
    #[arg(long, value_name = "COUNT")]
    orders: Option<u64>,
    /// Shops instead of the size's.
    #[arg(long, value_name = "COUNT")]
    shops: Option<u64>,
    /// Media items instead of the size's.
    #[arg(long, value_name = "COUNT")]
    media: Option<u64>,
    /// Where clients of Tablestore find tables; if something else listens there, the demo goes on without.
    #[arg(long, value_name = "ADDRESS", default_value_t = TABLESTORE)]
    tablestore_listen: SocketAddr,
    /// Whether `/` shows the console, a page with what is here.
    #[arg(long, value_enum, value_name = "MODE", default_value_t)]
    console: ConsoleMode,
    #[command(flatten)]
    service: ServiceArgs,
}

/// Where the demo listens for clients of Tablestore.
const TABLESTORE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8087);

impl Default for DemoArgs {
    fn default() -> Self {
        Self {
            size: DemoSize::default(),
            orders: None,
            shops: None,
            media: None,
            tablestore_listen: TABLESTORE,
            console: ConsoleMode::default(),
            service: ServiceArgs::default(),
        }
    }
}

impl DemoArgs {
    fn rows(&self) -> DemoRows {
        let size = match self.size {
            DemoSize::Small => DemoRows::SMALL,
            DemoSize::Full => DemoRows::FULL,
        };
        DemoRows {
            orders: self.orders.unwrap_or(size.orders),
            shops: self.shops.unwrap_or(size.shops),
            media: self.media.unwrap_or(size.media),
        }
    }
}

/// Folder of the load's checkpoints, in the data directory.
const CHECKPOINTS: &str = "demo";

/// Loads what isn't loaded yet, then serves.
pub(super) async fn run(args: DemoArgs) -> Result<Exit, RunError> {
    let settings: Settings = args.service.load()?;
    refuse_keys(&settings)?;
    settings
        .auth
        .checked(ProcessKind::Whole, settings.server.listen)?;
    let web = WebConfig {
        console: args.console,
        ..WebConfig::loopback()
    };
    serve::process()
        .roles([tablestore::ROLE])
        .run(&settings.telemetry, &settings.server, async |host| {
            let endpoint = Endpoint::demo(args.tablestore_listen, &settings.server).await?;
            let gateway = serve::start(&settings, &web, endpoint, host).await?;
            let stack = gateway.stack;
            let methods = Methods::read(&[FILE_DESCRIPTOR_SET], |_| true)?;
            let target = Client::local(stack.clone(), "souk", methods);
            // Before the address is printed: those who wait for it find all data.
            load(target.clone(), args.rows(), &settings.data.join(CHECKPOINTS)).await?;
            ready::wait(&target).await?;
            print_examples(settings.server.listen.port(), args.console);
            Ok(stack)
        })
        .await
}

/// The demo loads its data through its own front door, for which it has no credentials.
fn refuse_keys(settings: &Settings) -> Result<(), ConfigError> {
    if !settings.auth.authenticates_callers() {
        return Ok(());
    }
    let mut problems = Problems::default();
    problems.push(
        "auth",
        "the demo lets in everybody; use `souk serve` with keys, and load with `souk load`",
    );
    Err(problems.into())
}

async fn load(target: Client, rows: DemoRows, checkpoints: &Path) -> Result<(), StartError> {
    std::fs::create_dir_all(checkpoints)?;
    let report = load_all(target, rows, checkpoints).await?;
    if report.rejected > 0 {
        return Err(format!(
            "{} rows of the demo were refused; they are named above",
            report.rejected
        )
        .into());
    }
    Ok(())
}

/// Prints where the page is, and calls to try.
fn print_examples(port: u16, console: ConsoleMode) {
    let page = match console {
        ConsoleMode::On => format!("Open http://127.0.0.1:{port} in a browser.\n"),
        ConsoleMode::Off => String::new(),
    };
    let text = format!(
        r#"{page}Try:
  grpcurl -plaintext localhost:{port} list
  grpcurl -plaintext -d '{{"search":{{"query":{{"term":{{"field":"consumer_id","value":{{"string_value":"c0001"}}}}}},"total":{{"exact":true}}}}}}' localhost:{port} souk.order.v1.OrderService/SearchOrders
  grpcurl -plaintext -d '{{"center":{{"latitude":30.2741,"longitude":120.1551}},"max_distance_meters":1000}}' localhost:{port} souk.shop.v1.ShopService/NearbyShops
  grpcurl -plaintext -d '{{"search":{{"query":{{"nested":{{"path":"tags","query":{{"term":{{"field":"tags.tag","value":{{"string_value":"开心"}}}}}}}}}}}}}}' localhost:{port} souk.media.v1.MediaService/SearchMedia
"#
    );
    // A closed standard output doesn't stop the services.
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

//! A gateway with its backends, running.

use std::net::SocketAddr;
use std::time::Duration;

use souk_chassis::config::ServerConfig;
use souk_chassis::server::{self, Listener, Stack};
use souk_chassis::telemetry::ServiceRole;
use souk_gateway::Gateway;
use souk_gateway::backend::{Backends, Target};
use souk_gateway::config::GatewayConfig;
use souk_proto::index::v1::index_service_client::IndexServiceClient;
use souk_proto::media::v1::media_service_client::MediaServiceClient;
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use souk_proto::shop::v1::{GetShopRequest, Shop};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::health_client::HealthClient;

use crate::backends::{self, Indexes};

/// Where the backends are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// In the gateway's process.
    Local,
    /// Behind sockets.
    Remote,
}

pub(crate) const BOTH: [Layout; 2] = [Layout::Local, Layout::Remote];

/// `service.name` of the shop's backend where it is local.
pub(crate) const SHOP: ServiceRole = ServiceRole::new("souk-shop");

/// A gateway and its backends; all of it ends with this value.
pub(crate) struct Setting {
    channel: Channel,
    stack: Stack,
    pub(crate) shop_serving: watch::Sender<bool>,
    pub(crate) media_serving: watch::Sender<bool>,
    pub(crate) shop_indexes: Indexes,
    pub(crate) media_indexes: Indexes,
    pub(crate) gateway: Running,
    pub(crate) shop: Option<Running>,
    _media: Option<Running>,
}

/// A server on a socket.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    stop: CancellationToken,
    _stopped: DropGuard,
    pub(crate) task: tokio::task::JoinHandle<server::Served>,
}

impl Running {
    /// Begins the drain.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }
}

/// Serves `stack` on `address`.
pub(crate) async fn serve(
    stack: Stack,
    config: &ServerConfig,
    address: SocketAddr,
    calls: Duration,
) -> Running {
    // First: a span that is met before can be noted as unwanted, for good, at the moment when telemetry is installed.
    crate::traces::install();
    let config = ServerConfig {
        listen: address,
        ..config.clone()
    };
    let listener = Listener::bind(&config).await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let stop = CancellationToken::new();
    let stopped = stop.clone().cancelled_owned();
    let task = tokio::spawn(async move { server::serve(listener, stack, &config, stopped, calls).await });
    Running {
        address,
        _stopped: stop.clone().drop_guard(),
        stop,
        task,
    }
}

pub(crate) fn any_port() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

impl Setting {
    pub(crate) async fn start(layout: Layout) -> Self {
        Self::with(layout, GatewayConfig::default()).await
    }

    pub(crate) async fn with(layout: Layout, config: GatewayConfig) -> Self {
        crate::traces::install();
        let server = ServerConfig::behind_a_gateway();
        let shop = SHOP.scope(async { backends::shop(&server) }).await;
        let media = backends::media(&server);
        let (mut shop_running, mut media_running) = (None, None);
        let targets = match layout {
            Layout::Local => [shop.stack, media.stack].map(Target::Local),
            Layout::Remote => {
                let calls = Duration::from_secs(5);
                let at_shop = shop_running.insert(serve(shop.stack, &server, any_port(), calls).await);
                let at_media = media_running.insert(serve(media.stack, &server, any_port(), calls).await);
                [at_shop.address, at_media.address]
                    .map(|address| Target::remote(&format!("http://{address}")).expect("an address"))
            }
        };
        let [shop_target, media_target] = targets;
        let backends = Backends::default()
            .with("shop", shop_target)
            .with("media", media_target);
        let stack = Gateway::new(&config, backends).expect("good backends").stack;
        let gateway = serve(stack.clone(), &config.server, any_port(), Duration::from_secs(10)).await;
        Self {
            channel: connect(gateway.address),
            stack,
            shop_serving: shop.serving,
            media_serving: media.serving,
            shop_indexes: shop.indexes,
            media_indexes: media.indexes,
            gateway,
            shop: shop_running,
            _media: media_running,
        }
    }

    pub(crate) fn channel(&self) -> Channel {
        self.channel.clone()
    }

    pub(crate) fn shops(&self) -> ShopServiceClient<Channel> {
        ShopServiceClient::new(self.channel())
    }

    /// A client without a socket, and so without a clock of its own.
    pub(crate) fn shops_at_the_stack(&self) -> ShopServiceClient<Stack> {
        ShopServiceClient::new(self.stack.clone())
    }

    pub(crate) fn media(&self) -> MediaServiceClient<Channel> {
        MediaServiceClient::new(self.channel())
    }

    pub(crate) fn indexes(&self) -> IndexServiceClient<Channel> {
        IndexServiceClient::new(self.channel())
    }

    pub(crate) fn health(&self) -> HealthClient<Channel> {
        HealthClient::new(self.channel())
    }

    /// Gets a shop.
    pub(crate) async fn get_shop(&self, shop_id: &str) -> Result<Shop, tonic::Status> {
        let response = self.shops().get_shop(shop_request(shop_id)).await?;
        Ok(response.into_inner().shop.expect("a shop"))
    }
}

pub(crate) fn connect(address: SocketAddr) -> Channel {
    Endpoint::from_shared(format!("http://{address}"))
        .expect("an address")
        .connect_lazy()
}

pub(crate) fn shop_request(shop_id: &str) -> GetShopRequest {
    GetShopRequest {
        shop_id: shop_id.to_owned(),
        min_sequence: 0,
    }
}

/// Reason and metadata of an error's `ErrorInfo`.
pub(crate) fn info(status: &tonic::Status) -> tonic_types::ErrorInfo {
    use tonic_types::StatusExt as _;
    status
        .get_details_error_info()
        .unwrap_or_else(|| panic!("no ErrorInfo: {status:?}"))
}

/// When an error says to come back.
pub(crate) fn retry_after(status: &tonic::Status) -> Option<Duration> {
    use tonic_types::StatusExt as _;
    status.get_details_retry_info().and_then(|info| info.retry_delay)
}

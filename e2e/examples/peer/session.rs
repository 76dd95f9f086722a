//! Where calls go: over a connection to a gateway, or to the services' handlers in this process.

use std::path::Path;
use std::sync::Arc;

use souk_proto::media::v1::media_service_client::MediaServiceClient;
use souk_proto::media::v1::media_service_server::MediaService as _;
use souk_proto::media::v1::{GetMediaRequest, GetMediaResponse, SearchMediaRequest, SearchMediaResponse};
use souk_proto::order::v1::order_service_client::OrderServiceClient;
use souk_proto::order::v1::order_service_server::OrderService as _;
use souk_proto::order::v1::{GetOrderRequest, GetOrderResponse, SearchOrdersRequest, SearchOrdersResponse};
use souk_proto::search::v1::HitsMode;
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use souk_proto::shop::v1::shop_service_server::ShopService as _;
use souk_proto::shop::v1::{
    GetShopRequest, GetShopResponse, NearbyShopsRequest, NearbyShopsResponse, SearchShopsRequest,
    SearchShopsResponse,
};
use tokio::runtime::{Builder, Runtime};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

use super::answer::Answer;
use super::in_process::Souk;
use super::question::Call;

/// Hits of a page while walking to a deep one.
const STRIDE: i32 = 1_000;

/// What is asked.
pub(crate) enum Target {
    /// The address of a gateway.
    Gateway(String),
    /// The services in this process, and the runtime that they were opened in.
    InProcess(Arc<Souk>, Arc<Runtime>),
}

impl Target {
    /// `target` is an address, or the folder of the databases.
    pub(crate) fn open(target: &str) -> anyhow::Result<Self> {
        if target.contains("://") {
            return Ok(Self::Gateway(target.to_owned()));
        }
        let runtime = Builder::new_multi_thread().enable_all().build()?;
        let souk = runtime.block_on(Souk::open(Path::new(target)))?;
        Ok(Self::InProcess(Arc::new(souk), Arc::new(runtime)))
    }

    /// Where a client's calls run: on the client's own thread, waiting apart.
    pub(crate) fn runtime(&self) -> anyhow::Result<Arc<Runtime>> {
        Ok(match self {
            Self::Gateway(_) => Arc::new(Builder::new_current_thread().enable_all().build()?),
            Self::InProcess(_, runtime) => Arc::clone(runtime),
        })
    }

    pub(crate) async fn session(&self) -> anyhow::Result<Session> {
        Ok(match self {
            Self::Gateway(address) => {
                let channel = Endpoint::from_shared(address.clone())?.connect().await?;
                Session::Gateway(Box::new(Gateway {
                    orders: OrderServiceClient::new(channel.clone()),
                    shops: ShopServiceClient::new(channel.clone()),
                    media: MediaServiceClient::new(channel),
                }))
            }
            Self::InProcess(souk, _) => Session::InProcess(Arc::clone(souk)),
        })
    }

    pub(crate) fn close(&self) -> anyhow::Result<()> {
        match self {
            Self::Gateway(_) => Ok(()),
            Self::InProcess(souk, runtime) => runtime.block_on(souk.close()),
        }
    }
}

/// One client's way to the services.
pub(crate) enum Session {
    Gateway(Box<Gateway>),
    InProcess(Arc<Souk>),
}

/// A connection.
pub(crate) struct Gateway {
    orders: OrderServiceClient<Channel>,
    shops: ShopServiceClient<Channel>,
    media: MediaServiceClient<Channel>,
}

impl Session {
    pub(crate) async fn get_order(&mut self, request: GetOrderRequest) -> Result<GetOrderResponse, Status> {
        let answer = match self {
            Self::Gateway(gateway) => gateway.orders.get_order(request).await,
            Self::InProcess(souk) => souk.orders.api.get_order(Request::new(request)).await,
        };
        Ok(answer?.into_inner())
    }

    pub(crate) async fn get_shop(&mut self, request: GetShopRequest) -> Result<GetShopResponse, Status> {
        let answer = match self {
            Self::Gateway(gateway) => gateway.shops.get_shop(request).await,
            Self::InProcess(souk) => souk.shops.api.get_shop(Request::new(request)).await,
        };
        Ok(answer?.into_inner())
    }

    pub(crate) async fn get_media(&mut self, request: GetMediaRequest) -> Result<GetMediaResponse, Status> {
        let answer = match self {
            Self::Gateway(gateway) => gateway.media.get_media(request).await,
            Self::InProcess(souk) => souk.media.api.get_media(Request::new(request)).await,
        };
        Ok(answer?.into_inner())
    }

    async fn search_orders(&mut self, request: SearchOrdersRequest) -> Result<SearchOrdersResponse, Status> {
        let answer = match self {
            Self::Gateway(gateway) => gateway.orders.search_orders(request).await,
            Self::InProcess(souk) => souk.orders.api.search_orders(Request::new(request)).await,
        };
        Ok(answer?.into_inner())
    }

    async fn search_shops(&mut self, request: SearchShopsRequest) -> Result<SearchShopsResponse, Status> {
        let answer = match self {
            Self::Gateway(gateway) => gateway.shops.search_shops(request).await,
            Self::InProcess(souk) => souk.shops.api.search_shops(Request::new(request)).await,
        };
        Ok(answer?.into_inner())
    }

    async fn nearby_shops(&mut self, request: NearbyShopsRequest) -> Result<NearbyShopsResponse, Status> {
        let answer = match self {
            Self::Gateway(gateway) => gateway.shops.nearby_shops(request).await,
            Self::InProcess(souk) => souk.shops.api.nearby_shops(Request::new(request)).await,
        };
        Ok(answer?.into_inner())
    }

    async fn search_media(&mut self, request: SearchMediaRequest) -> Result<SearchMediaResponse, Status> {
        let answer = match self {
            Self::Gateway(gateway) => gateway.media.search_media(request).await,
            Self::InProcess(souk) => souk.media.api.search_media(Request::new(request)).await,
        };
        Ok(answer?.into_inner())
    }

    pub(crate) async fn ask(&mut self, call: Call) -> anyhow::Result<Answer> {
        match call {
            Call::GetOrder(request) => {
                let found = self.get_order(request).await?;
                Ok(Answer::of_ids(vec![found.order.unwrap_or_default().order_id]))
            }
            Call::SearchOrders(request) => {
                let found = self.search_orders(request).await?;
                let ids = found
                    .hits
                    .into_iter()
                    .map(|hit| hit.resource.unwrap_or_default().order_id);
                Answer::of_search(
                    ids.collect(),
                    found.next_page_token,
                    found.total,
                    &found.aggregations,
                )
            }
            Call::SearchShops(request) => {
                let found = self.search_shops(request).await?;
                let ids = found
                    .hits
                    .into_iter()
                    .map(|hit| hit.resource.unwrap_or_default().shop_id);
                Answer::of_search(
                    ids.collect(),
                    found.next_page_token,
                    found.total,
                    &found.aggregations,
                )
            }
            Call::NearbyShops(request) => {
                let found = self.nearby_shops(request).await?;
                let ids = found
                    .hits
                    .into_iter()
                    .map(|hit| hit.resource.unwrap_or_default().shop_id);
                Ok(Answer::of_ids(ids.collect()))
            }
            Call::SearchMedia(request) => {
                let found = self.search_media(request).await?;
                let ids = found
                    .hits
                    .into_iter()
                    .map(|hit| hit.resource.unwrap_or_default().media_id);
                Answer::of_search(
                    ids.collect(),
                    found.next_page_token,
                    found.total,
                    &found.aggregations,
                )
            }
        }
    }

    /// A call that leaves out hits asks for the page with the token of the page before instead.
    pub(crate) async fn walk(&mut self, call: &mut Call) -> anyhow::Result<()> {
        let mut page = call.clone();
        let (Some(search), Some(walking)) = (call.search_mut(), page.search_mut()) else {
            return Ok(());
        };
        let mut left = std::mem::take(&mut search.skip);
        walking.skip = 0;
        walking.set_hits_mode(HitsMode::Keys);
        while left > 0 {
            let Some(walking) = page.search_mut() else { break };
            walking.page_size = left.min(STRIDE);
            left -= walking.page_size;
            let token = self.ask(page.clone()).await?.next_page_token;
            anyhow::ensure!(!token.is_empty(), "the hits end {left} before the page");
            if let Some(walking) = page.search_mut() {
                walking.page_token.clone_from(&token);
            }
            search.page_token = token;
        }
        Ok(())
    }
}

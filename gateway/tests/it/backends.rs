//! Two small services with the names and messages of the contract, and a behaviour for each id.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures_util::stream::{self, Stream, StreamExt as _};
use http::{Request, Response};
use souk_chassis::config::ServerConfig;
use souk_chassis::health::Health;
use souk_chassis::layers::ResponseFuture;
use souk_chassis::layers::admission::Admit;
use souk_chassis::layers::deadline::Deadline;
use souk_chassis::server::{self, Services, Stack};
use souk_chassis::status::StatusBuilder;
use souk_proto::index::v1::index_service_server::{self, IndexService, IndexServiceServer};
use souk_proto::index::v1::{
    CreateIndexRequest, CreateIndexResponse, DeleteIndexRequest, DeleteIndexResponse, GetIndexRequest,
    GetIndexResponse, ListIndexesRequest, ListIndexesResponse, RebuildIndexRequest, RebuildIndexResponse,
    UpdateIndexRequest, UpdateIndexResponse,
};
use souk_proto::media::v1::{GetMediaRequest, GetMediaResponse, Media};
use souk_proto::search::v1::Index;
use souk_proto::shop::v1::{
    CreateShopRequest, CreateShopResponse, ExportShopsRequest, ExportShopsResponse, GetShopRequest,
    GetShopResponse, Shop,
};
use tokio::sync::watch;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic_prost::ProstCodec;
use tower::{Service, service_fn};

/// `shop_id` of a shop that never comes.
pub(crate) const NEVER: &str = "never";

/// `shop_id` of a shop that isn't there.
pub(crate) const MISSING: &str = "missing";

/// `snapshot_token` of an export that fails after its messages.
pub(crate) const FAILING: &str = "failing";

/// `snapshot_token` of an export that never ends.
pub(crate) const ENDLESS: &str = "endless";

/// Messages of an export.
pub(crate) const EXPORTED: usize = 3;

/// Name and stack of a backend, and the switch of its health.
pub(crate) struct Backend {
    pub(crate) stack: Stack,
    pub(crate) serving: watch::Sender<bool>,
    pub(crate) indexes: Indexes,
}

pub(crate) fn shop(config: &ServerConfig) -> Backend {
    backend(Shops, Indexes::of("shops"), config, |services| services)
}

/// The shop behind a guard.
pub(crate) fn guarded_shop(config: &ServerConfig, guard: impl Admit) -> Backend {
    backend(Shops, Indexes::of("shops"), config, |services| {
        services.admission(guard)
    })
}

pub(crate) fn media(config: &ServerConfig) -> Backend {
    backend(MediaItems, Indexes::of("media"), config, |services| services)
}

fn backend<S>(
    service: S,
    indexes: Indexes,
    config: &ServerConfig,
    guarded: impl FnOnce(Services) -> Services,
) -> Backend
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future = ResponseFuture>
        + NamedService
        + Clone
        + Send
        + Sync
        + 'static,
{
    let health = Health::default();
    let (serving, seen) = watch::channel(true);
    health.register(S::NAME, seen.clone());
    health.register(index_service_server::SERVICE_NAME, seen);
    let services = Services::new(souk_proto::FILE_DESCRIPTOR_SET)
        .expect("descriptors")
        .mount(service)
        .mount(IndexServiceServer::new(indexes.clone()));
    let stack = server::stack(guarded(services), &health, config).expect("a described service");
    Backend {
        stack,
        serving,
        indexes,
    }
}

#[derive(Clone)]
struct Shops;

impl NamedService for Shops {
    const NAME: &'static str = "souk.shop.v1.ShopService";
}

impl Service<Request<Body>> for Shops {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture {
        Box::pin(async move {
            match request.uri().path() {
                "/souk.shop.v1.ShopService/GetShop" => {
                    let codec = ProstCodec::<GetShopResponse, GetShopRequest>::default();
                    Ok(tonic::server::Grpc::new(codec)
                        .unary(service_fn(get_shop), request)
                        .await)
                }
                "/souk.shop.v1.ShopService/CreateShop" => {
                    let codec = ProstCodec::<CreateShopResponse, CreateShopRequest>::default();
                    let create = service_fn(|request: tonic::Request<CreateShopRequest>| {
                        let created = CreateShopResponse {
                            shop: request.into_inner().shop,
                            ..Default::default()
                        };
                        std::future::ready(Ok::<_, tonic::Status>(tonic::Response::new(created)))
                    });
                    Ok(tonic::server::Grpc::new(codec).unary(create, request).await)
                }
                "/souk.shop.v1.ShopService/ExportShops" => {
                    let codec = ProstCodec::<ExportShopsResponse, ExportShopsRequest>::default();
                    let export = service_fn(|request| std::future::ready(export_shops(request)));
                    Ok(tonic::server::Grpc::new(codec)
                        .server_streaming(export, request)
                        .await)
                }
                _ => Ok(tonic::Status::unimplemented("").into_http()),
            }
        })
    }
}

/// A shop that tells what arrived: the time that is left in `name`, the header `x-echo` in the one of the answer.
async fn get_shop(
    request: tonic::Request<GetShopRequest>,
) -> Result<tonic::Response<GetShopResponse>, tonic::Status> {
    let (metadata, _, GetShopRequest { shop_id, .. }) = request.into_parts();
    match shop_id.as_str() {
        NEVER => std::future::pending().await,
        MISSING => {
            let status = StatusBuilder::not_found("SHOP_NOT_FOUND", "no such shop: 没有")
                .metadata("shop_id", &shop_id)
                .build();
            return Err(status);
        }
        _ => {}
    }
    let left = Deadline::current().map(|deadline| deadline.remaining().as_millis().to_string());
    let shop = Shop {
        shop_id,
        name: left.unwrap_or_default(),
        ..Shop::default()
    };
    let mut response = tonic::Response::new(GetShopResponse {
        shop: Some(shop),
        ..Default::default()
    });
    for name in ["x-echo", "x-echo-bin", "baggage"] {
        let (from, to) = (metadata.as_ref().get(name), response.metadata_mut().as_mut());
        if let Some(value) = from {
            to.insert(name, value.clone());
        }
    }
    Ok(response)
}

type Exported = Pin<Box<dyn Stream<Item = Result<ExportShopsResponse, tonic::Status>> + Send>>;

fn export_shops(
    request: tonic::Request<ExportShopsRequest>,
) -> Result<tonic::Response<Exported>, tonic::Status> {
    let messages = stream::iter(1..=EXPORTED).map(|sequence| {
        Ok(ExportShopsResponse {
            sequence: i64::try_from(sequence).unwrap_or(i64::MAX),
            ..Default::default()
        })
    });
    let end: Exported = match request.get_ref().snapshot_token.as_str() {
        FAILING => {
            let status = StatusBuilder::data_loss("SNAPSHOT_DAMAGED", "the snapshot is damaged").build();
            Box::pin(stream::iter([Err(status)]))
        }
        ENDLESS => Box::pin(stream::pending()),
        _ => Box::pin(stream::empty()),
    };
    Ok(tonic::Response::new(Box::pin(messages.chain(end))))
}

#[derive(Clone)]
struct MediaItems;

impl NamedService for MediaItems {
    const NAME: &'static str = "souk.media.v1.MediaService";
}

impl Service<Request<Body>> for MediaItems {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture {
        Box::pin(async move {
            let codec = ProstCodec::<GetMediaResponse, GetMediaRequest>::default();
            let get = service_fn(|request: tonic::Request<GetMediaRequest>| {
                let media_id = request.into_inner().media_id;
                let media = Some(Media {
                    media_id,
                    ..Media::default()
                });
                std::future::ready(Ok::<_, tonic::Status>(tonic::Response::new(GetMediaResponse {
                    media,
                    ..Default::default()
                })))
            });
            Ok(tonic::server::Grpc::new(codec).unary(get, request).await)
        })
    }
}

/// The one index of a backend. Clones are the same.
#[derive(Clone)]
pub(crate) struct Indexes {
    name: &'static str,
    /// How often it was changed or built anew.
    pub(crate) changes: Arc<AtomicUsize>,
    /// How many calls are refused before one is answered.
    pub(crate) refusals: Arc<AtomicUsize>,
    /// How many calls were made.
    pub(crate) calls: Arc<AtomicUsize>,
    /// Whether it is being built, and isn't described meanwhile.
    pub(crate) building: Arc<AtomicBool>,
    /// Bytes that it is described with.
    pub(crate) bytes: Arc<AtomicUsize>,
}

impl Indexes {
    fn of(name: &'static str) -> Self {
        Self {
            name,
            changes: Arc::default(),
            refusals: Arc::default(),
            calls: Arc::default(),
            building: Arc::default(),
            bytes: Arc::default(),
        }
    }

    fn described(&self) -> Result<Index, tonic::Status> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let less = |refusals: usize| refusals.checked_sub(1);
        let refused = self
            .refusals
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
        if refused.is_ok() {
            let message = "the store doesn't answer";
            return Err(StatusBuilder::new(tonic::Code::Unavailable, "STORE_FAILED", message).build());
        }
        Ok(Index {
            index: self.name.to_owned(),
            failure: "x".repeat(self.bytes.load(Ordering::SeqCst)),
            ..Index::default()
        })
    }

    fn find(&self, name: &str) -> Result<Index, tonic::Status> {
        let found = self.described()?;
        if name == self.name {
            return match self.building.load(Ordering::SeqCst) {
                false => Ok(found),
                true => Err(StatusBuilder::unavailable("INDEX_BUILDING", "ask again later")
                    .resource("index", name, "is being built")
                    .build()),
            };
        }
        Err(StatusBuilder::not_found("INDEX_NOT_FOUND", "no such index")
            .metadata("id", name)
            .build())
    }

    fn change(&self, name: &str) -> Result<Option<Index>, tonic::Status> {
        let found = self.find(name)?;
        self.changes.fetch_add(1, Ordering::SeqCst);
        Ok(Some(found))
    }
}

#[tonic::async_trait]
impl IndexService for Indexes {
    async fn list_indexes(
        &self,
        _: tonic::Request<ListIndexesRequest>,
    ) -> Result<tonic::Response<ListIndexesResponse>, tonic::Status> {
        let indexes = vec![self.described()?];
        Ok(tonic::Response::new(ListIndexesResponse { indexes }))
    }

    async fn get_index(
        &self,
        request: tonic::Request<GetIndexRequest>,
    ) -> Result<tonic::Response<GetIndexResponse>, tonic::Status> {
        let index = Some(self.find(&request.get_ref().index)?);
        Ok(tonic::Response::new(GetIndexResponse { index }))
    }

    async fn create_index(
        &self,
        request: tonic::Request<CreateIndexRequest>,
    ) -> Result<tonic::Response<CreateIndexResponse>, tonic::Status> {
        let name = &request.get_ref().index;
        let table = name.split_once('.').map(|(table, _)| table);
        if table != Some(self.name) {
            return Err(StatusBuilder::not_found("TABLE_NOT_FOUND", "no such table")
                .metadata("table", name)
                .build());
        }
        let index = self.change(self.name)?;
        Ok(tonic::Response::new(CreateIndexResponse { index, effect: None }))
    }

    async fn delete_index(
        &self,
        request: tonic::Request<DeleteIndexRequest>,
    ) -> Result<tonic::Response<DeleteIndexResponse>, tonic::Status> {
        self.change(&request.get_ref().index)?;
        Ok(tonic::Response::new(DeleteIndexResponse {}))
    }

    async fn update_index(
        &self,
        request: tonic::Request<UpdateIndexRequest>,
    ) -> Result<tonic::Response<UpdateIndexResponse>, tonic::Status> {
        let index = self.change(&request.get_ref().index)?;
        Ok(tonic::Response::new(UpdateIndexResponse { index, effect: None }))
    }

    async fn rebuild_index(
        &self,
        request: tonic::Request<RebuildIndexRequest>,
    ) -> Result<tonic::Response<RebuildIndexResponse>, tonic::Status> {
        let index = self.change(&request.get_ref().index)?;
        Ok(tonic::Response::new(RebuildIndexResponse { index, effect: None }))
    }
}

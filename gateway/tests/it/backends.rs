//! Two small services with the names and messages of the contract, and a behaviour for each id.

use std::convert::Infallible;
use std::pin::Pin;
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
use souk_proto::media::v1::{GetMediaRequest, GetMediaResponse, Media};
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
}

pub(crate) fn shop(config: &ServerConfig) -> Backend {
    backend(Shops, config, |services| services)
}

/// The shop behind a guard.
pub(crate) fn guarded_shop(config: &ServerConfig, guard: impl Admit) -> Backend {
    backend(Shops, config, |services| services.admission(guard))
}

pub(crate) fn media(config: &ServerConfig) -> Backend {
    backend(MediaItems, config, |services| services)
}

fn backend<S>(service: S, config: &ServerConfig, guarded: impl FnOnce(Services) -> Services) -> Backend
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future = ResponseFuture>
        + NamedService
        + Clone
        + Send
        + Sync
        + 'static,
{
    let health = Health::new();
    let (serving, seen) = watch::channel(true);
    health.watch(S::NAME, seen.clone());
    // A process serves its indexes under a name of their own, and is as healthy there.
    health.watch(S::NAME.replace("Service", "IndexService"), seen);
    let services = Services::new(souk_proto::FILE_DESCRIPTOR_SET)
        .expect("descriptors")
        .mount(service);
    let stack = server::stack(guarded(services), &health, config).expect("a described service");
    Backend { stack, serving }
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

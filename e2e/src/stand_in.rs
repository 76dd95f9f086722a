//! A fake shop service for a real gateway: it records the calls that arrive, and answers by a script.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request as HttpRequest, Response as HttpResponse};
use souk_proto::shop::v1::{GetShopRequest, GetShopResponse};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::body::Body;
use tonic::server::{Grpc, NamedService};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

/// The answer to the n-th call, from 0; `None` never answers.
type CallScript = Arc<dyn Fn(usize) -> Option<Result<GetShopResponse, Status>> + Send + Sync>;

/// A call that arrived.
#[derive(Clone, Debug)]
pub struct ReceivedCall {
    /// Its headers whose values are ASCII text.
    pub headers: BTreeMap<String, String>,
}

impl ReceivedCall {
    /// A header; empty when there is none.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// A fake backend that serves `souk.shop.v1.ShopService/GetShop` and health. Dropping it stops it.
#[derive(Debug)]
pub struct StandIn {
    address: SocketAddr,
    arrived: Arc<watch::Sender<Vec<ReceivedCall>>>,
    serving: AbortHandle,
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl StandIn {
    /// Starts one on a free port of 127.0.0.1. `script` gives the answer to the n-th call, from 0; `None` never answers.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn start(
        script: impl Fn(usize) -> Option<Result<GetShopResponse, Status>> + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let arrived = Arc::new(watch::Sender::new(Vec::new()));
        let (_, health) = tonic_health::server::health_reporter();
        let service = ScriptedService {
            script: Arc::new(script),
            arrived: Arc::clone(&arrived),
        };
        let serving = tokio::spawn(
            tonic::transport::Server::builder()
                .add_service(health)
                .add_service(service)
                .serve_with_incoming(TcpListenerStream::new(listener)),
        );
        Ok(Self {
            address,
            arrived,
            serving: serving.abort_handle(),
        })
    }

    /// Its URI, for a gateway's `--backend`.
    #[must_use]
    pub fn uri(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The calls so far.
    #[must_use]
    pub fn arrived(&self) -> Vec<ReceivedCall> {
        self.arrived.borrow().clone()
    }

    /// Waits for the n-th call, from 1.
    ///
    /// # Errors
    /// When the stand-in has ended.
    pub async fn nth(&self, n: usize) -> anyhow::Result<ReceivedCall> {
        let mut calls = self.arrived.subscribe();
        let calls = calls.wait_for(|calls| calls.len() >= n).await?;
        let call = calls.get(n - 1).cloned();
        call.ok_or_else(|| anyhow::anyhow!("calls count from 1"))
    }
}

#[derive(Clone)]
struct ScriptedService {
    script: CallScript,
    arrived: Arc<watch::Sender<Vec<ReceivedCall>>>,
}

impl NamedService for ScriptedService {
    const NAME: &'static str = "souk.shop.v1.ShopService";
}

impl tower::Service<HttpRequest<Body>> for ScriptedService {
    type Response = HttpResponse<Body>;
    type Error = Infallible;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<HttpResponse<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HttpRequest<Body>) -> Self::Future {
        let text = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            Some((name.to_string(), value.to_str().ok()?.to_owned()))
        };
        let arrived = ReceivedCall {
            headers: request.headers().iter().filter_map(text).collect(),
        };
        let mut nth = 0;
        self.arrived.send_modify(|calls| {
            nth = calls.len();
            calls.push(arrived);
        });
        let answer = (self.script)(nth);
        Box::pin(async move {
            let handler = tower::service_fn(move |_: Request<GetShopRequest>| {
                let answer = answer.clone();
                async move {
                    match answer {
                        Some(answer) => answer.map(Response::new),
                        None => std::future::pending().await,
                    }
                }
            });
            let mut grpc = Grpc::new(ProstCodec::<GetShopResponse, GetShopRequest>::default());
            Ok(grpc.unary(handler, request).await)
        })
    }
}

//! A small service over the whole stack, for the tests of what is around it.

use std::convert::Infallible;
use std::fmt::Display;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt as _};
use http::{Request, Response};
use prost::Message as _;
use prost_types::{DescriptorProto, FileDescriptorProto, FileDescriptorSet};
use prost_types::{MethodDescriptorProto, ServiceDescriptorProto};
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::Status;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::codegen::StdError;
use tonic::server::NamedService;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;
use tower::{Service, service_fn};

use crate::config::ServerConfig;
use crate::health::Health;
use crate::layers::ResponseFuture;
use crate::server::{self, Listener, Served, Services, Stack};

/// `text` of a call that never ends.
pub(crate) const NEVER: &str = "never";

/// `text` of a call that panics.
pub(crate) const PANIC: &str = "panic";

/// Paths of the two methods.
pub(crate) const SAY: &str = "/test.Echo/Say";
pub(crate) const REPEAT: &str = "/test.Echo/Repeat";

/// Request and answer.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Text {
    #[prost(string, tag = "1")]
    pub(crate) text: String,
}

pub(crate) fn text(text: &str) -> Text {
    Text {
        text: text.to_owned(),
    }
}

/// Descriptors of [`Echo`].
pub(crate) static DESCRIPTORS: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let method = |name: &str, streams: bool| MethodDescriptorProto {
        name: Some(name.to_owned()),
        input_type: Some(".test.Text".to_owned()),
        output_type: Some(".test.Text".to_owned()),
        server_streaming: Some(streams),
        ..Default::default()
    };
    let file = FileDescriptorProto {
        name: Some("test.proto".to_owned()),
        package: Some("test".to_owned()),
        message_type: vec![DescriptorProto {
            name: Some("Text".to_owned()),
            ..Default::default()
        }],
        service: vec![ServiceDescriptorProto {
            name: Some("Echo".to_owned()),
            method: vec![method("Say", false), method("Repeat", true)],
            ..Default::default()
        }],
        syntax: Some("proto3".to_owned()),
        ..Default::default()
    };
    FileDescriptorSet { file: vec![file] }.encode_to_vec()
});

/// `Say` answers what was said, `Repeat` says it twice and then, if it is [`NEVER`], doesn't end.
#[derive(Clone)]
pub(crate) struct Echo;

impl NamedService for Echo {
    const NAME: &'static str = "test.Echo";
}

async fn say(request: tonic::Request<Text>) -> Result<tonic::Response<Text>, Status> {
    match request.get_ref().text.as_str() {
        NEVER => std::future::pending().await,
        PANIC => panic!("a secret"),
        _ => Ok(tonic::Response::new(request.into_inner())),
    }
}

type Texts = Pin<Box<dyn Stream<Item = Result<Text, Status>> + Send>>;

async fn repeat(request: tonic::Request<Text>) -> Result<tonic::Response<Texts>, Status> {
    let text = request.into_inner();
    let endless = text.text == NEVER;
    let twice = stream::iter([Ok(text.clone()), Ok(text)]);
    Ok(tonic::Response::new(match endless {
        true => Box::pin(twice.chain(stream::pending())),
        false => Box::pin(twice),
    }))
}

impl Service<Request<Body>> for Echo {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture {
        Box::pin(async move {
            let mut grpc = tonic::server::Grpc::new(ProstCodec::<Text, Text>::default());
            Ok(match request.uri().path() {
                SAY => grpc.unary(service_fn(say), request).await,
                REPEAT => grpc.server_streaming(service_fn(repeat), request).await,
                _ => Status::unimplemented("").into_http(),
            })
        })
    }
}

/// The stack around [`Echo`].
pub(crate) fn echo(config: &ServerConfig) -> Stack {
    crate::layers::testing::want_spans();
    let services = Services::new(&DESCRIPTORS).expect("descriptors").mount(Echo);
    server::stack(services, &Health::default(), config).expect("a described service")
}

/// A server on a free port.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) stop: CancellationToken,
    pub(crate) task: tokio::task::JoinHandle<Served>,
    _stopped: DropGuard,
}

/// Serves `stack`; calls have `calls` at the drain.
pub(crate) async fn serve(stack: Stack, config: &ServerConfig, calls: Duration) -> Running {
    let config = ServerConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        ..config.clone()
    };
    let listener = Listener::bind(&config).await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let stop = CancellationToken::new();
    let stopped = stop.clone().cancelled_owned();
    Running {
        address,
        _stopped: stop.clone().drop_guard(),
        stop,
        task: tokio::spawn(async move { server::serve(listener, stack, &config, stopped, calls).await }),
    }
}

/// A connection of its own.
pub(crate) fn connect(address: SocketAddr) -> Channel {
    Endpoint::from_shared(format!("http://{address}"))
        .expect("an address")
        .connect_lazy()
}

/// A way to a server, of whichever client.
pub(crate) trait Way:
    GrpcService<
        Body,
        Error: Display,
        ResponseBody: http_body::Body<Data = Bytes, Error: Into<StdError> + Send> + Send + 'static,
    >
{
}

impl<C> Way for C where
    C: GrpcService<
            Body,
            Error: Display,
            ResponseBody: http_body::Body<Data = Bytes, Error: Into<StdError> + Send> + Send + 'static,
        >
{
}

/// Calls [`SAY`], or any other path, with a message of any kind.
pub(crate) async fn call_at<M: prost::Message + Default + 'static>(
    channel: impl Way,
    path: &'static str,
    message: M,
) -> Result<Text, Status> {
    let mut grpc = tonic::client::Grpc::new(channel);
    grpc.ready()
        .await
        .map_err(|error| Status::unavailable(error.to_string()))?;
    let path = http::uri::PathAndQuery::from_static(path);
    let codec = ProstCodec::<M, Text>::default();
    let answer = grpc.unary(tonic::Request::new(message), path, codec).await?;
    Ok(answer.into_inner())
}

/// Says something.
pub(crate) async fn say_to(channel: impl Way, words: &str) -> Result<String, Status> {
    call_at(channel, SAY, text(words)).await.map(|answer| answer.text)
}

/// Has something repeated.
pub(crate) async fn repeat_to(channel: impl Way, words: &str) -> Result<tonic::Streaming<Text>, Status> {
    let mut grpc = tonic::client::Grpc::new(channel);
    grpc.ready()
        .await
        .map_err(|error| Status::unavailable(error.to_string()))?;
    let path = http::uri::PathAndQuery::from_static(REPEAT);
    let codec = ProstCodec::<Text, Text>::default();
    let answer = grpc
        .server_streaming(tonic::Request::new(text(words)), path, codec)
        .await?;
    Ok(answer.into_inner())
}

//! Calls by name and JSON, by the descriptors alone: for tests that go over all RPCs.

use anyhow::Context as _;
use http::uri::PathAndQuery;
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, MethodDescriptor, SerializeOptions};
use serde_json::Value;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::metadata::{AsciiMetadataKey, AsciiMetadataValue, MetadataMap};
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};

/// A client of every service.
#[derive(Clone, Debug)]
pub struct Dynamic {
    channel: Channel,
    pool: DescriptorPool,
    metadata: MetadataMap,
}

impl Dynamic {
    /// Calls by a channel.
    ///
    /// # Errors
    /// When the contract's descriptors are damaged.
    pub fn new(channel: Channel) -> anyhow::Result<Self> {
        Ok(Self {
            channel,
            pool: DescriptorPool::decode(souk_proto::FILE_DESCRIPTOR_SET)?,
            metadata: MetadataMap::new(),
        })
    }

    /// The same with a header on each call.
    ///
    /// # Errors
    /// When it can't be one.
    pub fn with(mut self, name: &str, value: &str) -> anyhow::Result<Self> {
        let name = AsciiMetadataKey::from_bytes(name.as_bytes())?;
        let value: AsciiMetadataValue = value.parse()?;
        self.metadata.append(name, value);
        Ok(self)
    }

    /// Full names of all RPCs, as in `souk.order.v1.OrderService/GetOrder`.
    #[must_use]
    pub fn methods(&self) -> Vec<String> {
        let services = self.pool.services();
        let methods = services.flat_map(|service| service.methods().collect::<Vec<_>>());
        methods
            .map(|method| format!("{}/{}", method.parent_service().full_name(), method.name()))
            .collect()
    }

    /// What an RPC takes.
    ///
    /// # Errors
    /// When there is no such RPC.
    pub fn input(&self, name: &str) -> anyhow::Result<MessageDescriptor> {
        Ok(self.method(name)?.input())
    }

    fn method(&self, name: &str) -> anyhow::Result<MethodDescriptor> {
        let (service, method) = name.split_once('/').context("service/method")?;
        let service = self
            .pool
            .get_service_by_name(service)
            .context("an unknown service")?;
        let mut methods = service.methods();
        methods
            .find(|known| known.name() == method)
            .with_context(|| format!("no {name}"))
    }

    /// Calls an RPC with one answer.
    ///
    /// # Errors
    /// The outer one when the call can't be made, the inner one is the answer.
    pub async fn call(&self, name: &str, request: &Value) -> anyhow::Result<Result<Value, Status>> {
        let (answers, _) = self.stream(name, request, |_| true).await?;
        Ok(answers.map(|answers| answers.into_iter().next().unwrap_or_default()))
    }

    /// Calls an RPC and takes all that comes back, until it ends or `last` says so of an answer.
    ///
    /// # Errors
    /// When the call can't be made.
    pub async fn whole(
        &self,
        name: &str,
        request: &Value,
        last: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<WholeAnswer> {
        let (request, path, codec, mut grpc) = self.prepare(name, request).await?;
        let response = match grpc.server_streaming(request, path, codec).await {
            Ok(response) => response,
            Err(status) => return Ok(WholeAnswer::refused(Vec::new(), MetadataMap::new(), status)),
        };
        let (headers, mut stream, _) = response.into_parts();
        let mut answers = Vec::new();
        loop {
            match stream.message().await {
                Ok(Some(answer)) => {
                    let is_last = last(&answer);
                    answers.push(answer);
                    if is_last {
                        return Ok(WholeAnswer::ended(answers, headers, None));
                    }
                }
                Ok(None) => return Ok(WholeAnswer::ended(answers, headers, stream.trailers().await?)),
                Err(status) => return Ok(WholeAnswer::refused(answers, headers, status)),
            }
        }
    }

    /// Calls an RPC and takes answers until it ends or `last` says so of one; and whether it ended by itself.
    ///
    /// # Errors
    /// The outer one when the call can't be made, the inner one is the answer.
    pub async fn stream(
        &self,
        name: &str,
        request: &Value,
        last: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<(Result<Vec<Value>, Status>, bool)> {
        Ok(match self.open(name, request).await? {
            Ok(answers) => take(answers, last).await,
            Err(status) => (Err(status), true),
        })
    }

    /// Calls an RPC, whose answers are taken one by one.
    ///
    /// # Errors
    /// The outer one when the call can't be made, the inner one is the answer.
    pub async fn open(
        &self,
        name: &str,
        request: &Value,
    ) -> anyhow::Result<Result<Streaming<Value>, Status>> {
        let (request, path, codec, mut grpc) = self.prepare(name, request).await?;
        let response = grpc.server_streaming(request, path, codec).await;
        Ok(response.map(tonic::Response::into_inner))
    }

    /// A message of the contract as JSON, as answers are.
    ///
    /// # Errors
    /// When there is none of that name, or it is another.
    pub fn json(&self, name: &str, message: &impl prost::Message) -> anyhow::Result<Value> {
        let descriptor = self.pool.get_message_by_name(name);
        let descriptor = descriptor.with_context(|| format!("no {name}"))?;
        let message = DynamicMessage::decode(descriptor, message.encode_to_vec().as_slice())?;
        to_json(&message)
    }

    async fn prepare(&self, name: &str, request: &Value) -> anyhow::Result<Prepared> {
        let method = self.method(name)?;
        let message = DynamicMessage::deserialize(method.input(), request)
            .with_context(|| format!("{name}: {request}"))?;
        let mut grpc = tonic::client::Grpc::new(self.channel.clone());
        grpc.ready().await?;
        let mut request = Request::new(message);
        *request.metadata_mut() = self.metadata.clone();
        let path = format!("/{name}").try_into()?;
        Ok((request, path, JsonCodec(method.output()), grpc))
    }
}

/// A call that is ready to be made.
type Prepared = (
    Request<DynamicMessage>,
    PathAndQuery,
    JsonCodec,
    tonic::client::Grpc<Channel>,
);

/// All that came back from a call.
#[derive(Clone, Debug)]
pub struct WholeAnswer {
    /// The answers, as many as there were before it ended.
    pub answers: Vec<Value>,
    /// How it ended.
    pub ended: Status,
    /// Headers and trailers, but for those that hold how it ended; sorted.
    pub metadata: Vec<String>,
}

impl WholeAnswer {
    fn ended(answers: Vec<Value>, headers: MetadataMap, trailers: Option<MetadataMap>) -> Self {
        Self::new(answers, Status::ok(""), &[headers, trailers.unwrap_or_default()])
    }

    fn refused(answers: Vec<Value>, headers: MetadataMap, status: Status) -> Self {
        let trailers = status.metadata().clone();
        Self::new(answers, status, &[headers, trailers])
    }

    fn new(answers: Vec<Value>, ended: Status, maps: &[MetadataMap]) -> Self {
        let mut metadata: Vec<String> = maps
            .iter()
            .flat_map(|map| map.clone().into_headers())
            .filter_map(|(name, value)| Some(format!("{}: {value:?}", name?)))
            .filter(|line| !line.starts_with("grpc-status") && !line.starts_with("grpc-message"))
            .collect();
        metadata.sort();
        Self {
            answers,
            ended,
            metadata,
        }
    }
}

async fn take(
    mut stream: Streaming<Value>,
    last: impl Fn(&Value) -> bool,
) -> (Result<Vec<Value>, Status>, bool) {
    let mut answers = Vec::new();
    loop {
        match stream.message().await {
            Ok(Some(answer)) => {
                let is_last = last(&answer);
                answers.push(answer);
                if is_last {
                    return (Ok(answers), false);
                }
            }
            Ok(None) => return (Ok(answers), true),
            Err(status) => return (Err(status), true),
        }
    }
}

/// Messages out, JSON in.
#[derive(Clone, Debug)]
struct JsonCodec(MessageDescriptor);

impl Codec for JsonCodec {
    type Encode = DynamicMessage;
    type Decode = Value;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        self.clone()
    }

    fn decoder(&mut self) -> Self {
        self.clone()
    }
}

impl Encoder for JsonCodec {
    type Item = DynamicMessage;
    type Error = Status;

    fn encode(&mut self, item: DynamicMessage, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        item.encode(buffer)
            .map_err(|error| Status::internal(error.to_string()))
    }
}

impl Decoder for JsonCodec {
    type Item = Value;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Value>, Status> {
        let message = DynamicMessage::decode(self.0.clone(), buffer);
        let message = message.map_err(|error| Status::internal(error.to_string()))?;
        let json = to_json(&message).map_err(|error| Status::internal(error.to_string()))?;
        Ok(Some(json))
    }
}

fn to_json(message: &DynamicMessage) -> anyhow::Result<Value> {
    let options = SerializeOptions::new().use_proto_field_name(true);
    Ok(message.serialize_with_options(serde_json::value::Serializer, &options)?)
}

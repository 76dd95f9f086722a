//! A dynamic client: calls any RPC by its name and JSON, by the descriptors alone, for tests of all RPCs.

use anyhow::Context as _;
use http::uri::PathAndQuery;
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, MethodDescriptor, SerializeOptions};
use serde_json::Value;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::metadata::{AsciiMetadataKey, AsciiMetadataValue, MetadataMap};
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};

/// A dynamic client of all services.
#[derive(Clone, Debug)]
pub struct Dynamic {
    channel: Channel,
    pool: DescriptorPool,
    metadata: MetadataMap,
}

impl Dynamic {
    /// A client that calls through a channel.
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

    /// Adds a header to each call.
    ///
    /// # Errors
    /// When name or value can't be those of a header.
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

    /// The message that an RPC takes, by the RPC's full name.
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

    /// Calls an RPC, and returns its response, or the first one of a stream.
    ///
    /// # Errors
    /// The outer one when the call can't be made; the inner one is the status that it ended with.
    pub async fn call(&self, name: &str, request: &Value) -> anyhow::Result<Result<Value, Status>> {
        let (answers, _) = self.responses(name, request, |_| true).await?;
        Ok(answers.map(|answers| answers.into_iter().next().unwrap_or_default()))
    }

    /// Calls an RPC, and reads its responses until it ends, or `last` is true of one.
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
                        let answer = WholeAnswer::ended(answers, headers, None);
                        return Ok(WholeAnswer {
                            is_cut: true,
                            ..answer
                        });
                    }
                }
                Ok(None) => return Ok(WholeAnswer::ended(answers, headers, stream.trailers().await?)),
                Err(status) => return Ok(WholeAnswer::refused(answers, headers, status)),
            }
        }
    }

    /// [`Self::whole`], with the responses alone, and whether the call ended before `last` was true.
    ///
    /// # Errors
    /// The outer one when the call can't be made; the inner one is the status that it ended with.
    pub async fn responses(
        &self,
        name: &str,
        request: &Value,
        last: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<(Result<Vec<Value>, Status>, bool)> {
        let answer = self.whole(name, request, last).await?;
        let answers = match answer.ended.code() {
            Code::Ok => Ok(answer.answers),
            _ => Err(answer.ended),
        };
        Ok((answers, !answer.is_cut))
    }

    /// Calls an RPC, and returns the stream of its responses.
    ///
    /// # Errors
    /// The outer one when the call can't be made; the inner one is the status that it ended with.
    pub async fn open_stream(
        &self,
        name: &str,
        request: &Value,
    ) -> anyhow::Result<Result<Streaming<Value>, Status>> {
        let (request, path, codec, mut grpc) = self.prepare(name, request).await?;
        let response = grpc.server_streaming(request, path, codec).await;
        Ok(response.map(tonic::Response::into_inner))
    }

    /// A message of the contract as JSON, in the form of responses; `name` is its full name.
    ///
    /// # Errors
    /// When there is no message of that name, or `message` is another.
    pub fn json(&self, name: &str, message: &impl prost::Message) -> anyhow::Result<Value> {
        let descriptor = self.pool.get_message_by_name(name);
        let descriptor = descriptor.with_context(|| format!("no {name}"))?;
        let message = DynamicMessage::decode(descriptor, message.encode_to_vec().as_slice())?;
        to_json(&message)
    }

    async fn prepare(&self, name: &str, request: &Value) -> anyhow::Result<PreparedCall> {
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
type PreparedCall = (
    Request<DynamicMessage>,
    PathAndQuery,
    JsonCodec,
    tonic::client::Grpc<Channel>,
);

/// All that came back from a call.
#[derive(Clone, Debug)]
pub struct WholeAnswer {
    /// The responses, also those before an error.
    pub answers: Vec<Value>,
    /// The status that it ended with; OK when it was cut.
    pub ended: Status,
    /// Headers and trailers but for the status, each as `name: value`, sorted.
    pub metadata: Vec<String>,
    /// Whether the client stopped reading, at the response that it took for the last.
    pub is_cut: bool,
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
            is_cut: false,
        }
    }
}

/// Encodes messages, and decodes them to JSON.
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

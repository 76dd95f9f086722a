//! Server reflection, v1 and v1alpha (grpcurl still speaks the latter), of exactly the services a process has.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::Either;
use http::Request;
use tonic::body::Body;
use tonic_reflection::server::v1::{self, ServerReflectionServer as V1};
use tonic_reflection::server::v1alpha::{self, ServerReflectionServer as V1Alpha};
use tonic_reflection::server::{Builder, Error};

use crate::callers::CallerKey;
use crate::callers::pool::{FullWords, Pool};
use crate::layers::body::hold_until_dropped;
use crate::layers::{Answering, Inner, refused};
use crate::methods::{DescriptorError, Methods, service_of};

/// Descriptors every server has besides its own: health, and the error details without which clients show raw bytes.
pub const BUILT_IN: [&[u8]; 2] = [
    crate::health::FILE_DESCRIPTOR_SET,
    tonic_types::pb::FILE_DESCRIPTOR_SET,
];

/// Names of the two reflection services.
pub const SERVICE_NAMES: [&str; 2] = [
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
];

/// Largest request message, in bytes, after decompression: it is the name of a type or of a file.
pub const MESSAGE_BYTES_MAX: usize = 4 * 1024;

/// Streams open at a time.
pub const STREAMS_MAX: usize = 256;

/// Streams of one caller at a time: a client has one.
pub const STREAMS_PER_CALLER_MAX: usize = 16;

/// Descriptors of the two reflection services.
pub const DESCRIPTORS: [&[u8]; 2] = [
    tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
    tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
];

/// Why reflection couldn't be built.
#[derive(Debug, thiserror::Error)]
pub enum ReflectionError {
    /// A descriptor set is damaged.
    #[error(transparent)]
    Descriptors(#[from] DescriptorError),
    /// A descriptor set lacks names it must have.
    #[error("the descriptors are incomplete; include imports when building the set")]
    Incomplete(#[source] Error),
    /// A service is served whose descriptor isn't there.
    #[error("no descriptor for {0}; add its file to the descriptor set")]
    Missing(String),
}

/// Whether this is the path of a reflection service.
pub(crate) fn is_path(path: &str) -> bool {
    SERVICE_NAMES.contains(&service_of(path))
}

/// Both services, with a number of streams.
pub(crate) struct Reflection<S> {
    pub(crate) services: S,
    pub(crate) streams: Arc<Pool>,
}

impl<S: Inner> Inner for Reflection<S> {
    fn call(&self, request: Request<Body>) -> impl Answering {
        let caller = CallerKey::from_extensions(request.extensions());
        match self.streams.admit(caller, TOO_MANY) {
            Ok(taken) => {
                let answer = self.services.call(request);
                Either::Left(answer.map(|response| hold_until_dropped(response, Some(taken))))
            }
            Err(status) => Either::Right(refused(status)),
        }
    }
}

const TOO_MANY: FullWords = [
    (
        "REFLECTIONS_MAX",
        "the server is at its limit of streams of reflection; retry with backoff",
    ),
    (
        "REFLECTIONS_PER_CALLER_MAX",
        "the caller has its share of the server's streams of reflection; ask on one of them, or end others",
    ),
];

/// Both reflection services. They list `services` and themselves, and have every type in `descriptor_sets` and [`BUILT_IN`].
pub(crate) fn services(
    descriptor_sets: &[&[u8]],
    services: &[String],
) -> Result<
    (
        V1<impl v1::ServerReflection>,
        V1Alpha<impl v1alpha::ServerReflection>,
    ),
    ReflectionError,
> {
    let sets: Vec<&[u8]> = descriptor_sets.iter().copied().chain(BUILT_IN).collect();
    let known = Methods::read(&sets, |_| true)?;
    let known = known.services();
    if let Some(service) = services.iter().find(|service| !known.contains(service.as_str())) {
        return Err(ReflectionError::Missing(service.clone()));
    }
    let builder = || {
        // Both versions know both: a client finds either, whichever it asks.
        let known = sets.iter().chain(&DESCRIPTORS);
        let with_sets = known.fold(Builder::configure(), |builder, set| {
            builder.register_encoded_file_descriptor_set(set)
        });
        let names = services.iter().map(String::as_str).chain(SERVICE_NAMES);
        names.fold(with_sets, |builder, name| builder.with_service_name(name))
    };
    let v1 = builder().build_v1().map_err(ReflectionError::Incomplete)?;
    let v1alpha = builder().build_v1alpha().map_err(ReflectionError::Incomplete)?;
    Ok((v1, v1alpha))
}

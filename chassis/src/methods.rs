//! The known RPCs by their full names, read from the descriptors. Names in telemetry come from here, never from the client: a million
//! made-up paths are one `_OTHER`.

use std::collections::BTreeSet;
use std::sync::Arc;

use prost::Message as _;
use prost_types::method_options::IdempotencyLevel;
use prost_types::{FileDescriptorProto, FileDescriptorSet, MethodDescriptorProto};
use rustc_hash::FxHashMap;

/// `rpc.method` of what no descriptor knows.
pub(crate) const METHOD_OTHER: &str = "_OTHER";

/// A descriptor set that can't be used.
#[derive(Debug, thiserror::Error)]
#[error("the file descriptor set can't be decoded; build it with protox or `buf build -o`")]
pub struct DescriptorError(#[from] prost::DecodeError);

/// The full name of the service in the path of a call, as in `/souk.order.v1.OrderService/GetOrder`.
pub fn service_of(path: &str) -> &str {
    let name = path.strip_prefix('/').unwrap_or(path);
    name.split_once('/').map_or(name, |(service, _)| service)
}

/// The files in encoded `FileDescriptorSet`s.
pub(crate) fn files(descriptor_sets: &[&[u8]]) -> Result<Vec<FileDescriptorProto>, DescriptorError> {
    let mut files = Vec::new();
    for bytes in descriptor_sets {
        files.extend(FileDescriptorSet::decode(*bytes)?.file);
    }
    Ok(files)
}

/// The RPCs of a file, each by its full name.
pub(crate) fn rpcs(file: &FileDescriptorProto) -> impl Iterator<Item = (String, &MethodDescriptorProto)> {
    file.service.iter().flat_map(|service| {
        let service_name = format!("{}.{}", file.package(), service.name());
        let service_name = service_name.trim_start_matches('.').to_owned();
        let full = move |method: &MethodDescriptorProto| format!("{service_name}/{}", method.name());
        service.method.iter().map(move |method| (full(method), method))
    })
}

/// The names of the known RPCs, as in `souk.order.v1.OrderService/GetOrder`. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Methods(
    /// Several lookups for each call, so without a keyed hash: clients don't choose the names.
    Arc<FxHashMap<Arc<str>, Method>>,
);

/// What the descriptors say of an RPC; nothing of an unknown one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Method {
    /// Calls may be sent again, since they take one message and change nothing (`idempotency_level = NO_SIDE_EFFECTS`).
    pub repeatable: bool,
    /// It takes a stream of messages.
    pub takes_stream: bool,
    /// Its answer is a stream.
    pub streams: bool,
}

impl Methods {
    /// The RPCs of those services in the encoded `FileDescriptorSet`s that `serves` accepts by full name.
    ///
    /// # Errors
    /// When a set can't be decoded.
    pub fn read(
        descriptor_sets: &[&[u8]],
        mut serves: impl FnMut(&str) -> bool,
    ) -> Result<Self, DescriptorError> {
        let files = files(descriptor_sets)?;
        let served = files.iter().flat_map(rpcs);
        let served = served.filter(|(name, _)| serves(service_of(name)));
        let methods = served
            .map(|(name, method)| {
                let level = method.options.as_ref().map(|options| options.idempotency_level());
                let safe = level == Some(IdempotencyLevel::NoSideEffects);
                let takes_stream = method.client_streaming();
                let method = Method {
                    repeatable: safe && !takes_stream,
                    takes_stream,
                    streams: method.server_streaming(),
                };
                (name.into(), method)
            })
            .collect();
        Ok(Self(Arc::new(methods)))
    }

    /// The known name behind a request path (`/souk.order.v1.OrderService/GetOrder`).
    pub fn known(&self, path: &str) -> Option<&Arc<str>> {
        let name = path.strip_prefix('/').unwrap_or(path);
        self.0.get_key_value(name).map(|(name, _)| name)
    }

    /// The RPC at this request path.
    pub fn of(&self, path: &str) -> Method {
        let method = self.0.get(path.strip_prefix('/').unwrap_or(path));
        method.copied().unwrap_or_default()
    }

    /// All known names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        let mut names: Vec<_> = self.0.keys().collect();
        names.sort_unstable();
        names.into_iter()
    }

    /// The full names of the services that have a known RPC, sorted.
    pub fn services(&self) -> BTreeSet<&str> {
        self.names().map(|name| service_of(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_accepted_services_only() {
        let sets = [
            crate::health::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
        ];
        let methods =
            Methods::read(&sets, |name| name == "grpc.health.v1.Health").expect("descriptors decode");
        assert_eq!(
            methods.names().map(AsRef::as_ref).collect::<Vec<&str>>(),
            [
                "grpc.health.v1.Health/Check",
                "grpc.health.v1.Health/List",
                "grpc.health.v1.Health/Watch"
            ]
        );
        assert_eq!(
            methods.services().into_iter().collect::<Vec<_>>(),
            ["grpc.health.v1.Health"]
        );
        assert_eq!(
            methods.known("/grpc.health.v1.Health/Check").map(AsRef::as_ref),
            Some("grpc.health.v1.Health/Check")
        );
        assert_eq!(methods.known("/grpc.health.v1.Health/Chuck"), None);
    }

    #[test]
    fn refuses_what_is_no_descriptor_set() {
        assert!(Methods::read(&[&[0xff, 0xff]], |_| true).is_err());
    }
}

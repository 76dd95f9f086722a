//! Which RPCs exist, by their full names, read from the descriptors.
//!
//! Names in telemetry come from here and never from the client: a million made-up paths are one `_OTHER`.

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
pub struct Methods(Arc<Table>);

#[derive(Debug, Default)]
struct Table {
    /// For lookups: several for each call. The names are ours, so that nobody can choose those that collide.
    methods: FxHashMap<Arc<str>, Method>,
    names: Vec<Arc<str>>,
}

/// What the descriptors say of an RPC.
#[derive(Clone, Copy, Debug)]
struct Method {
    /// It changes nothing and takes one message, so that it can be sent again.
    repeatable: bool,
    takes_stream: bool,
    streams: bool,
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
        let methods: FxHashMap<Arc<str>, Method> = served
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
        let mut names: Vec<_> = methods.keys().cloned().collect();
        names.sort_unstable();
        Ok(Self(Arc::new(Table { methods, names })))
    }

    /// The known name behind a request path (`/souk.order.v1.OrderService/GetOrder`).
    pub fn known(&self, path: &str) -> Option<&Arc<str>> {
        let name = path.strip_prefix('/').unwrap_or(path);
        self.0.methods.get_key_value(name).map(|(name, _)| name)
    }

    fn is(&self, path: &str, so: fn(&Method) -> bool) -> bool {
        let method = self.0.methods.get(path.strip_prefix('/').unwrap_or(path));
        method.is_some_and(so)
    }

    /// May the call at this request path be sent again, since it takes one message and changes nothing
    /// (`idempotency_level = NO_SIDE_EFFECTS`)?
    pub fn is_repeatable(&self, path: &str) -> bool {
        self.is(path, |method| method.repeatable)
    }

    /// Does the RPC at this request path take a stream of messages?
    pub(crate) fn takes_stream(&self, path: &str) -> bool {
        self.is(path, |method| method.takes_stream)
    }

    /// Is the answer of the RPC at this request path a stream?
    pub fn streams(&self, path: &str) -> bool {
        self.is(path, |method| method.streams)
    }

    /// All known names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.names.iter()
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

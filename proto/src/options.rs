//! The options that the contract adds to services and RPCs, read from descriptors: prost-types drops options it doesn't know.

use prost::{DecodeError, Message};

use crate::auth::v1::Access;

/// A service of a contract, with its options.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceOptions {
    /// Its full name.
    pub name: String,
    /// The table of its resources: `souk.resource.v1.table`.
    pub table: Option<String>,
    /// The RPCs, by name, with who may call each: `souk.auth.v1.access`; `None` where the option is missing.
    pub rpcs: Vec<(String, Option<Access>)>,
}

/// The services of an encoded `FileDescriptorSet`.
///
/// # Errors
/// When it can't be decoded.
pub fn services(descriptors: &[u8]) -> Result<Vec<ServiceOptions>, DecodeError> {
    let mut services = Vec::new();
    for file in FileSet::decode(descriptors)?.file {
        for service in file.service {
            let rpcs = service.method.into_iter();
            let rpcs = rpcs.map(|rpc| (rpc.name, rpc.options.and_then(|options| options.access)));
            services.push(ServiceOptions {
                name: format!("{}.{}", file.package, service.name),
                table: service
                    .options
                    .and_then(|options| options.table)
                    .map(|table| table.name),
                rpcs: rpcs.collect(),
            });
        }
    }
    Ok(services)
}

// The messages of `google/protobuf/descriptor.proto` on the way to the options.

#[derive(Message)]
struct FileSet {
    #[prost(message, repeated, tag = "1")]
    file: Vec<File>,
}

#[derive(Message)]
struct File {
    #[prost(string, tag = "2")]
    package: String,
    #[prost(message, repeated, tag = "6")]
    service: Vec<Service>,
}

#[derive(Message)]
struct Service {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    method: Vec<Rpc>,
    #[prost(message, optional, tag = "3")]
    options: Option<ServiceExtensions>,
}

#[derive(Message)]
struct ServiceExtensions {
    /// `souk.resource.v1.table`.
    #[prost(message, optional, tag = "50715")]
    table: Option<Table>,
}

/// The name alone of a `souk.resource.v1.Table`.
#[derive(Message)]
struct Table {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Message)]
struct Rpc {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "4")]
    options: Option<RpcExtensions>,
}

#[derive(Message)]
struct RpcExtensions {
    /// `souk.auth.v1.access`.
    #[prost(message, optional, tag = "50710")]
    access: Option<Access>,
}

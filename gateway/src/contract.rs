//! The backend of each service: by its package, all by its option `souk.route.v1.shared`, or none by `souk.route.v1.gateway`.

use std::collections::{BTreeMap, BTreeSet};

use prost_reflect::{
    DescriptorError, DescriptorPool, DynamicMessage, ReflectMessage as _, ServiceDescriptor, Value,
};

/// The option of a service that every backend serves.
const SHARED: &str = "souk.route.v1.shared";
/// The option of a service that the gateway serves itself.
const GATEWAY: &str = "souk.route.v1.gateway";
/// The option of an RPC whose answers are put together.
const JOINED: &str = "souk.route.v1.joined";

/// Who serves a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServedBy {
    /// The backend of this name: what is in the package `souk.order.v1` is served by `order`.
    One(String),
    /// Every backend, each for what it holds itself.
    All(Sharing),
    /// The gateway, and no backend.
    Gateway,
}

/// How backends share a service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sharing {
    /// The reasons of the NOT_FOUND by which one says that it doesn't hold what a call names.
    pub(crate) elsewhere: BTreeSet<String>,
    /// The paths of the RPCs that all of them answer together.
    pub(crate) joined: BTreeSet<String>,
}

/// The names that backends can have; none when the descriptors are damaged.
pub(crate) fn backends(contract: &[u8]) -> BTreeSet<String> {
    let only = |served_by| match served_by {
        ServedBy::One(name) => Some(name),
        ServedBy::All(_) | ServedBy::Gateway => None,
    };
    let services = services(contract).unwrap_or_default();
    services.into_values().filter_map(only).collect()
}

/// All services, by full name.
pub(crate) fn services(contract: &[u8]) -> Result<BTreeMap<String, ServedBy>, DescriptorError> {
    let pool = DescriptorPool::decode(contract)?;
    let served_by = |service: &ServiceDescriptor| {
        if let Some(sharing) = sharing_of(service) {
            return Some(ServedBy::All(sharing));
        }
        if option(&service.options(), GATEWAY) == Some(Value::Bool(true)) {
            return Some(ServedBy::Gateway);
        }
        let package = service.package_name().strip_prefix("souk.")?;
        Some(ServedBy::One(package.split('.').next()?.to_owned()))
    };
    let services = pool.services();
    Ok(services
        .filter_map(|service| Some((service.full_name().to_owned(), served_by(&service)?)))
        .collect())
}

fn sharing_of(service: &ServiceDescriptor) -> Option<Sharing> {
    let shared = option(&service.options(), SHARED)?;
    let elsewhere = shared.as_message()?.get_field_by_name("elsewhere")?;
    let of_all = service
        .methods()
        .filter(|method| option(&method.options(), JOINED) == Some(Value::Bool(true)));
    let elsewhere = elsewhere.as_list()?.iter().filter_map(Value::as_str);
    let joined = of_all.map(|method| format!("/{}/{}", service.full_name(), method.name()));
    Some(Sharing {
        elsewhere: elsewhere.map(str::to_owned).collect(),
        joined: joined.collect(),
    })
}

/// What the option of this name says, where the contract has it and it is given.
pub(crate) fn option(options: &DynamicMessage, name: &str) -> Option<Value> {
    let option = options.descriptor().parent_pool().get_extension_by_name(name);
    let given = option.filter(|option| options.has_extension(option))?;
    Some(options.get_extension(&given).into_owned())
}

#[cfg(test)]
mod tests {
    use prost_reflect::{FieldDescriptor, Kind};
    use souk_proto::FILE_DESCRIPTOR_SET;

    use super::*;

    #[test]
    fn services_are_those_of_the_backend_that_their_package_names_but_for_indexes_and_figures() {
        let services = services(FILE_DESCRIPTOR_SET).expect("our own descriptors");
        let shop = ServedBy::One("shop".to_owned());
        assert_eq!(services.get("souk.shop.v1.ShopService"), Some(&shop));
        let indexes = ServedBy::All(Sharing {
            elsewhere: BTreeSet::from(["INDEX_NOT_FOUND".to_owned(), "TABLE_NOT_FOUND".to_owned()]),
            joined: BTreeSet::from(["/souk.index.v1.IndexService/ListIndexes".to_owned()]),
        });
        assert_eq!(services.get("souk.index.v1.IndexService"), Some(&indexes));
        let figures = services.get("souk.figures.v1.FiguresService");
        assert_eq!(figures, Some(&ServedBy::Gateway));
        assert!(!backends(FILE_DESCRIPTOR_SET).contains("figures"));
    }

    /// Requests are kept, to be sent to several, and answers are put together by their bytes: that is right of lists alone.
    #[test]
    fn shared_services_are_unary_and_joined_answers_are_lists() {
        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("our own descriptors");
        let mut joined = 0;
        for (name, served_by) in services(FILE_DESCRIPTOR_SET).expect("our own descriptors") {
            let ServedBy::All(sharing) = served_by else {
                continue;
            };
            let service = pool.get_service_by_name(&name).expect("a service");
            for method in service.methods() {
                let streams = method.is_client_streaming() || method.is_server_streaming();
                assert!(!streams, "{}", method.full_name());
                if sharing.joined.contains(&format!("/{name}/{}", method.name())) {
                    let is_list =
                        |field: FieldDescriptor| field.is_list() && matches!(field.kind(), Kind::Message(_));
                    assert!(method.output().fields().all(is_list), "{}", method.full_name());
                    joined += 1;
                }
            }
        }
        assert!(joined > 0);
    }
}

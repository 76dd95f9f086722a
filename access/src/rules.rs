//! The rules of the RPCs, read from the descriptors: the contract is the only list.

use std::collections::BTreeMap;
use std::sync::Arc;

use prost::Message;
use souk_proto::auth::v1::Access;

use crate::caller::{Reach, Role};

/// RPCs of every server that aren't in the contract, by service.
const BUILT_IN: [(&str, Entry); 3] = [
    // Load balancers and supervisors ask without credentials; the answer names no data.
    ("grpc.health.v1.Health", Entry::Anyone),
    // The contract is no secret to those who have credentials.
    ("grpc.reflection.v1.ServerReflection", Entry::EveryRole),
    ("grpc.reflection.v1alpha.ServerReflection", Entry::EveryRole),
];

/// Who is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    /// Also those without credentials.
    Anyone,
    /// Everybody with credentials.
    EveryRole,
}

/// What a rule says of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may call, and reaches this far.
    May(Reach),
    /// It may not call.
    MayNot,
    /// There is no such RPC, as far as rules go. Nobody may call it.
    NoRule,
}

/// Rules that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// The descriptors are damaged.
    #[error("the file descriptor set can't be decoded; build it with protox or `buf build -o`")]
    Decode(#[from] prost::DecodeError),
    /// An RPC has no rule, or one that names a role this version doesn't know.
    #[error("{method} has no usable rule of access (souk.auth.v1.access)")]
    NoRule {
        /// Its full name.
        method: String,
    },
}

/// Who may call what. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Rules(Arc<BTreeMap<Box<str>, Grants>>);

/// Each role that a rule names, with its reach.
type Grants = Vec<(Role, Reach)>;

impl Rules {
    /// The rules in an encoded `FileDescriptorSet`.
    ///
    /// # Errors
    /// When it can't be decoded, or an RPC has no rule.
    pub fn read(descriptors: &[u8]) -> Result<Self, RulesError> {
        let mut rules = BTreeMap::new();
        for file in FileSet::decode(descriptors)?.file {
            for service in &file.service {
                for method in &service.method {
                    let name = format!("{}.{}/{}", file.package, service.name, method.name);
                    let access = method
                        .options
                        .as_ref()
                        .and_then(|options| options.access.as_ref());
                    let Some(rule) = access.and_then(grants) else {
                        return Err(RulesError::NoRule { method: name });
                    };
                    rules.insert(name.into_boxed_str(), rule);
                }
            }
        }
        Ok(Self(Arc::new(rules)))
    }

    /// The rules of the contract.
    ///
    /// # Errors
    /// None that the build didn't refuse.
    pub fn of_the_contract() -> Result<Self, RulesError> {
        Self::read(souk_proto::FILE_DESCRIPTOR_SET)
    }

    /// May callers without credentials call the RPC behind a request path?
    pub fn lets_in_anyone(&self, path: &str) -> bool {
        built_in(path) == Some(Entry::Anyone)
    }

    /// What the rules say of a role and the RPC behind a request path (`/souk.order.v1.OrderService/GetOrder`).
    pub fn verdict(&self, path: &str, role: Role) -> Verdict {
        if built_in(path).is_some() {
            // Neither health nor reflection meets a row.
            return Verdict::May(Reach::Own);
        }
        let Some(rule) = self.0.get(path.strip_prefix('/').unwrap_or(path)) else {
            return Verdict::NoRule;
        };
        let granted = rule.iter().find(|(granted, _)| *granted == role);
        granted.map_or(Verdict::MayNot, |(_, reach)| Verdict::May(*reach))
    }

    /// All RPCs of the contract with what each role may: full name, role, reach.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[(Role, Reach)])> {
        self.0.iter().map(|(name, rule)| (name.as_ref(), rule.as_slice()))
    }
}

fn built_in(path: &str) -> Option<Entry> {
    let service = path.strip_prefix('/')?.split_once('/')?.0;
    BUILT_IN
        .into_iter()
        .find(|(name, _)| *name == service)
        .map(|(_, entry)| entry)
}

/// Each role of a rule with its reach; `None` when one is unknown.
fn grants(access: &Access) -> Option<Grants> {
    let all = access.all.iter().map(|role| (*role, Reach::All));
    let own = access.own.iter().map(|role| (*role, Reach::Own));
    all.chain(own)
        .map(|(role, reach)| Some((Role::of_number(role)?, reach)))
        .collect()
}

// The parts of `google/protobuf/descriptor.proto` that lead to the option: prost-types drops options it doesn't know.

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
    method: Vec<Method>,
}

#[derive(Message)]
struct Method {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "4")]
    options: Option<MethodOptions>,
}

#[derive(Message)]
struct MethodOptions {
    /// `souk.auth.v1.access`.
    #[prost(message, optional, tag = "50710")]
    access: Option<Access>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_come_from_the_contract() {
        let rules = Rules::of_the_contract().expect("every RPC has a rule");
        assert!(rules.iter().count() > 50, "{}", rules.iter().count());
        let get = "/souk.order.v1.OrderService/GetOrder";
        assert_eq!(rules.verdict(get, Role::Admin), Verdict::May(Reach::All));
        assert_eq!(rules.verdict(get, Role::Consumer), Verdict::May(Reach::Own));
        assert_eq!(rules.verdict(get, Role::User), Verdict::MayNot);
        assert_eq!(
            rules.verdict("/souk.order.v1.OrderService/Nothing", Role::Admin),
            Verdict::NoRule
        );
        assert_eq!(rules.verdict("", Role::Admin), Verdict::NoRule);
        for (name, rule) in rules.iter() {
            assert!(rule.contains(&(Role::Admin, Reach::All)), "{name}");
        }
    }

    #[test]
    fn only_health_answers_anyone() {
        let rules = Rules::of_the_contract().expect("every RPC has a rule");
        assert!(rules.lets_in_anyone("/grpc.health.v1.Health/Check"));
        for path in [
            "/grpc.health.v1.Healthy/Check",
            "grpc.health.v1.Health/Check",
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
            "/souk.shop.v1.ShopService/SearchShops",
            "/",
        ] {
            assert!(!rules.lets_in_anyone(path), "{path}");
        }
    }

    #[test]
    fn descriptors_with_an_rpc_without_a_rule_are_refused() {
        let error = Rules::read(without_rules()).expect_err("no rule");
        assert!(matches!(error, RulesError::NoRule { .. }), "{error}");
        assert!(matches!(Rules::read(&[0xff]), Err(RulesError::Decode(_))));
    }

    /// Health's descriptors: RPCs without our option.
    fn without_rules() -> &'static [u8] {
        tonic_health::pb::FILE_DESCRIPTOR_SET
    }
}

//! Access rules: which role may call which RPC. They are options of the RPCs in the contract, read from its descriptors.

use std::collections::BTreeMap;
use std::sync::Arc;

use souk_proto::auth::v1::Access;
use souk_proto::options;

use crate::caller::{Role, RowAccess};

/// The services of every server that aren't in the contract.
const BUILT_IN: [(&str, BuiltInRule); 3] = [
    // Load balancers and supervisors ask without credentials; the answer names no data.
    ("grpc.health.v1.Health", BuiltInRule::Anyone),
    // The contract is no secret to callers with credentials.
    ("grpc.reflection.v1.ServerReflection", BuiltInRule::EveryRole),
    ("grpc.reflection.v1alpha.ServerReflection", BuiltInRule::EveryRole),
];

/// Who may call a built-in service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BuiltInRule {
    /// Everyone, also without credentials.
    Anyone,
    /// All callers with credentials.
    EveryRole,
}

/// Whether a role may call an RPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may, and accesses these rows.
    May(RowAccess),
    /// It may not.
    MayNot,
    /// There is no rule, so that no role may: the contract has no such RPC.
    NoRule,
}

/// Why rules can't be read from descriptors.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// The descriptors are damaged.
    #[error("the file descriptor set can't be decoded; build it with protox or `buf build -o`")]
    Decode(#[from] prost::DecodeError),
    /// An RPC has no rule, or one that names a role this version doesn't know.
    #[error("{method} has no usable access rule (souk.auth.v1.access)")]
    NoRule {
        /// `<package>.<service>/<method>`.
        method: String,
    },
}

/// The access rules of RPCs. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Rules(Arc<BTreeMap<Box<str>, Grants>>);

/// The roles that a rule names.
type Grants = Vec<(Role, RowAccess)>;

impl Rules {
    /// Reads the rules in an encoded `FileDescriptorSet`.
    ///
    /// # Errors
    /// [`RulesError`] when it can't be decoded, or an RPC has no usable rule.
    pub fn read(descriptors: &[u8]) -> Result<Self, RulesError> {
        let mut rules = BTreeMap::new();
        for service in options::services(descriptors)? {
            for (rpc, access) in &service.rpcs {
                let name = format!("{}/{rpc}", service.name);
                let Some(rule) = access.as_ref().and_then(grants) else {
                    return Err(RulesError::NoRule { method: name });
                };
                rules.insert(name.into_boxed_str(), rule);
            }
        }
        Ok(Self(Arc::new(rules)))
    }

    /// The rules of Souk's own contract.
    ///
    /// # Errors
    /// As [`Self::read`]; the tests show that there is none.
    pub fn from_contract() -> Result<Self, RulesError> {
        Self::read(souk_proto::FILE_DESCRIPTOR_SET)
    }

    /// Whether callers without credentials may call the RPC at a request path.
    pub fn allows_anonymous(&self, path: &str) -> bool {
        built_in(path) == Some(BuiltInRule::Anyone)
    }

    /// Whether a role may call the RPC at a request path (`/souk.order.v1.OrderService/GetOrder`).
    pub fn verdict(&self, path: &str, role: Role) -> Verdict {
        if built_in(path).is_some() {
            // Neither health nor reflection reads rows.
            return Verdict::May(RowAccess::Own);
        }
        let Some(rule) = self.0.get(path.strip_prefix('/').unwrap_or(path)) else {
            return Verdict::NoRule;
        };
        let granted = rule.iter().find(|(granted, _)| *granted == role);
        granted.map_or(Verdict::MayNot, |(_, row_access)| Verdict::May(*row_access))
    }

    /// All RPCs of the contract, as `<package>.<service>/<method>`, with the roles that may call them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[(Role, RowAccess)])> {
        self.0.iter().map(|(name, rule)| (name.as_ref(), rule.as_slice()))
    }
}

fn built_in(path: &str) -> Option<BuiltInRule> {
    let service = path.strip_prefix('/')?.split_once('/')?.0;
    BUILT_IN
        .into_iter()
        .find(|(name, _)| *name == service)
        .map(|(_, rule)| rule)
}

/// The roles that the option names; `None` when this version doesn't know one.
fn grants(access: &Access) -> Option<Grants> {
    let all = access.all.iter().map(|role| (*role, RowAccess::All));
    let own = access.own.iter().map(|role| (*role, RowAccess::Own));
    all.chain(own)
        .map(|(role, row_access)| Some((Role::from_number(role)?, row_access)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_come_from_the_contract() {
        let rules = Rules::from_contract().expect("every RPC has a rule");
        assert!(rules.iter().count() > 50, "{}", rules.iter().count());
        let get = "/souk.order.v1.OrderService/GetOrder";
        assert_eq!(rules.verdict(get, Role::Admin), Verdict::May(RowAccess::All));
        assert_eq!(rules.verdict(get, Role::Consumer), Verdict::May(RowAccess::Own));
        assert_eq!(rules.verdict(get, Role::User), Verdict::MayNot);
        assert_eq!(
            rules.verdict("/souk.order.v1.OrderService/Nothing", Role::Admin),
            Verdict::NoRule
        );
        assert_eq!(rules.verdict("", Role::Admin), Verdict::NoRule);
        for (name, rule) in rules.iter() {
            assert!(rule.contains(&(Role::Admin, RowAccess::All)), "{name}");
        }
    }

    #[test]
    fn only_health_answers_anyone() {
        let rules = Rules::from_contract().expect("every RPC has a rule");
        assert!(rules.allows_anonymous("/grpc.health.v1.Health/Check"));
        for path in [
            "/grpc.health.v1.Healthy/Check",
            "grpc.health.v1.Health/Check",
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
            "/souk.shop.v1.ShopService/SearchShops",
            "/",
        ] {
            assert!(!rules.allows_anonymous(path), "{path}");
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

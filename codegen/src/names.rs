//! Names of the contract as generated Rust has them.

use heck::{ToSnakeCase as _, ToUpperCamelCase as _};
use prost_reflect::MessageDescriptor;

/// How the packages begin whose messages have rules that are enforced, and types of their own.
pub(crate) const OWN: &str = "souk.";
/// Names that are identifiers in Rust only if that is said.
const KEYWORDS: [&str; 47] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else",
    "enum", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod",
    "move", "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait", "true", "try",
    "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Where the types of packages are: those of a crate's own contract in it, `souk.shop.v1` as `crate::shop::v1`, others in the
/// crate that all share.
#[derive(Clone, Debug)]
pub struct Modules {
    own: Vec<String>,
    shared: String,
}

impl Modules {
    /// The packages `own` are this crate's, all others `shared`'s, for example `::souk_proto`; this crate's, too, without it.
    #[must_use]
    pub fn new(own: Vec<String>, shared: Option<&str>) -> Self {
        Self {
            own,
            shared: shared.unwrap_or("crate").to_owned(),
        }
    }

    /// The module of a package.
    #[must_use]
    pub fn module(&self, package: &str) -> String {
        let mut path = match self.is_own(package) {
            true => "crate".to_owned(),
            false => self.shared.clone(),
        };
        for name in package.split('.').skip(1) {
            path += "::";
            path += &identifier(name);
        }
        path
    }

    /// Whether a package is the crate's own.
    pub(crate) fn is_own(&self, package: &str) -> bool {
        self.own.iter().any(|own| own == package)
    }

    /// The path of a message's type.
    pub(crate) fn of_message(&self, message: &MessageDescriptor) -> String {
        self.path(message.full_name(), message.package_name())
    }

    /// The module of what is declared in a message.
    pub(crate) fn inside(&self, message: &MessageDescriptor) -> String {
        let path = self.of_message(message);
        match path.rsplit_once("::") {
            Some((module, name)) => format!("{module}::{}", member_of(name)),
            None => member_of(&path),
        }
    }

    /// The path of a type of a package.
    pub(crate) fn path(&self, full_name: &str, package: &str) -> String {
        let inside = full_name.strip_prefix(package).unwrap_or(full_name);
        let mut types: Vec<&str> = inside.split('.').filter(|name| !name.is_empty()).collect();
        let last = types.pop().unwrap_or_default();
        let mut path = self.module(package);
        for name in types.into_iter().map(member_of).chain([camel(last)]) {
            path += "::";
            path += &name;
        }
        path
    }
}

/// The member of a message's type that is this field, or the module of what is declared in this message.
pub(crate) fn member_of(name: &str) -> String {
    identifier(&snake(name))
}

/// The module of a service's server, as tonic has it: each capital begins a word.
pub(crate) fn server_of(service: &str) -> String {
    let mut module = String::new();
    for letter in service.chars() {
        if letter.is_uppercase() && !module.is_empty() {
            module.push('_');
        }
        module.extend(letter.to_lowercase());
    }
    module + "_server"
}

/// A name as an identifier.
pub(crate) fn identifier(name: &str) -> String {
    if KEYWORDS.contains(&name) {
        format!("r#{name}")
    } else {
        name.to_owned()
    }
}

/// `BatchGetShops` as `batch_get_shops`, as prost has it.
pub(crate) fn snake(name: &str) -> String {
    name.to_snake_case()
}

/// `shop_id` as `ShopId`, as prost has it.
pub(crate) fn camel(name: &str) -> String {
    name.to_upper_camel_case()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_code_that_prost_and_tonic_generate() {
        let modules = Modules::new(vec!["souk.shop.v1".to_owned()], Some("::souk_proto"));
        assert_eq!(
            modules.path("souk.shop.v1.SKU", "souk.shop.v1"),
            "crate::shop::v1::Sku"
        );
        assert_eq!(
            modules.path("souk.type.v1.OrderLine.Type", "souk.type.v1"),
            "::souk_proto::r#type::v1::order_line::Type"
        );
        assert_eq!(member_of("fooBar"), "foo_bar");
        assert_eq!(member_of("type"), "r#type");
        assert_eq!(server_of("ShopService"), "shop_service_server");
        assert_eq!(server_of("SKUService"), "s_k_u_service_server");
    }
}

//! Names of the contract in generated Rust, as prost and tonic make them.

use heck::{ToSnakeCase as _, ToUpperCamelCase as _};
use prost_reflect::MessageDescriptor;

/// Prefix of Souk's packages. Their messages have generated types, and rules that are enforced.
pub(crate) const SOUK_PACKAGES: &str = "souk.";
/// Keywords that are identifiers with `r#`.
const RAW_KEYWORDS: [&str; 47] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else",
    "enum", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod",
    "move", "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait", "true", "try",
    "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Maps packages to Rust modules: `souk.shop.v1` to `crate::shop::v1` if it is in the crate's own contract, else to the same path in
/// a shared crate.
#[derive(Clone, Debug)]
pub struct Modules {
    own: Vec<String>,
    shared: String,
}

impl Modules {
    /// The packages `own` are in this crate, all others in the crate `shared`, for example `::souk_proto`. Without `shared`, all are
    /// in this crate.
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

    /// Whether a package is in this crate's contract.
    pub(crate) fn is_own(&self, package: &str) -> bool {
        self.own.iter().any(|own| own == package)
    }

    /// The path of the type of `message`.
    pub(crate) fn message_type(&self, message: &MessageDescriptor) -> String {
        self.type_path(message.full_name(), message.package_name())
    }

    /// The module of the types that are declared in `message`.
    pub(crate) fn nested_module(&self, message: &MessageDescriptor) -> String {
        let path = self.message_type(message);
        match path.rsplit_once("::") {
            Some((module, name)) => format!("{module}::{}", snake_identifier(name)),
            None => snake_identifier(&path),
        }
    }

    /// The path of the type with this full name, which is in `package`.
    pub(crate) fn type_path(&self, full_name: &str, package: &str) -> String {
        let inside = full_name.strip_prefix(package).unwrap_or(full_name);
        let mut types: Vec<&str> = inside.split('.').filter(|name| !name.is_empty()).collect();
        let last = types.pop().unwrap_or_default();
        let mut path = self.module(package);
        for name in types.into_iter().map(snake_identifier).chain([camel(last)]) {
            path += "::";
            path += &name;
        }
        path
    }
}

/// The identifier of a field in its message's type, or of the module of a message's nested types.
pub(crate) fn snake_identifier(name: &str) -> String {
    identifier(&snake(name))
}

/// The module of a service's server: to tonic, each capital begins a word.
pub(crate) fn server_module(service: &str) -> String {
    let mut module = String::new();
    for letter in service.chars() {
        if letter.is_uppercase() && !module.is_empty() {
            module.push('_');
        }
        module.extend(letter.to_lowercase());
    }
    module + "_server"
}

/// `name` as an identifier: keywords are escaped.
fn identifier(name: &str) -> String {
    match name {
        // These can't be raw.
        "self" | "super" | "extern" | "crate" => format!("{name}_"),
        name if RAW_KEYWORDS.contains(&name) => format!("r#{name}"),
        name => name.to_owned(),
    }
}

/// The name of a field that is a raw identifier.
pub(crate) fn unescaped(identifier: &str) -> &str {
    identifier.strip_prefix("r#").unwrap_or(identifier)
}

/// `BatchGetShops` as `batch_get_shops`.
pub(crate) fn snake(name: &str) -> String {
    name.to_snake_case()
}

/// `shop_id` as `ShopId`.
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
            modules.type_path("souk.shop.v1.SKU", "souk.shop.v1"),
            "crate::shop::v1::Sku"
        );
        assert_eq!(
            modules.type_path("souk.type.v1.OrderLine.Type", "souk.type.v1"),
            "::souk_proto::r#type::v1::order_line::Type"
        );
        assert_eq!(snake_identifier("fooBar"), "foo_bar");
        assert_eq!(snake_identifier("type"), "r#type");
        assert_eq!(snake_identifier("self"), "self_");
        assert_eq!(server_module("ShopService"), "shop_service_server");
        assert_eq!(server_module("SKUService"), "s_k_u_service_server");
    }
}

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
            Some((module, name)) => format!("{module}::{}", module_of(name)),
            None => module_of(&path),
        }
    }

    /// The path of a type of a package.
    pub(crate) fn path(&self, full_name: &str, package: &str) -> String {
        let inside = full_name.strip_prefix(package).unwrap_or(full_name);
        let mut types: Vec<&str> = inside.split('.').filter(|name| !name.is_empty()).collect();
        let last = types.pop().unwrap_or_default();
        let mut path = self.module(package);
        for name in types.into_iter().map(module_of).chain([last.to_owned()]) {
            path += "::";
            path += &name;
        }
        path
    }
}

/// The module of what is declared in a message of this name.
fn module_of(message: &str) -> String {
    identifier(&snake(message))
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

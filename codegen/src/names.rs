//! Names of the contract as generated Rust has them.

use prost_reflect::MessageDescriptor;

/// How the packages begin whose messages have rules that are enforced, and types of their own.
pub(crate) const OWN: &str = "souk.";
/// Names that aren't identifiers in Rust.
const KEYWORDS: [&str; 9] = ["as", "box", "enum", "in", "match", "mod", "ref", "type", "use"];

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
        let is_own = self.own.iter().any(|own| own == package);
        let mut path = if is_own {
            "crate".to_owned()
        } else {
            self.shared.clone()
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
            Some((module, name)) => format!("{module}::{}", snake(name)),
            None => snake(&path),
        }
    }

    /// The path of a type of a package.
    pub(crate) fn path(&self, full_name: &str, package: &str) -> String {
        let inside = full_name.strip_prefix(package).unwrap_or(full_name);
        let mut types: Vec<&str> = inside.split('.').filter(|name| !name.is_empty()).collect();
        let last = types.pop().unwrap_or_default();
        let mut path = self.module(package);
        for name in types.into_iter().map(snake).chain([last.to_owned()]) {
            path += "::";
            path += &name;
        }
        path
    }
}

/// A name as an identifier.
pub(crate) fn identifier(name: &str) -> String {
    if KEYWORDS.contains(&name) {
        format!("r#{name}")
    } else {
        name.to_owned()
    }
}

/// `BatchGetShops` as `batch_get_shops`.
pub(crate) fn snake(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// `shop_id` as `ShopId`.
pub(crate) fn camel(name: &str) -> String {
    let words = name.split('_');
    words
        .flat_map(|word| {
            let mut letters = word.chars();
            let first = letters.next().map(|first| first.to_ascii_uppercase());
            first.into_iter().chain(letters)
        })
        .collect()
}

//! The ways by which RPCs are called by HTTP, read from their option `google.api.http`.

use http::Method;
use http::uri::PathAndQuery;
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor, Value,
};

use super::template::Template;
use crate::contract::option;

/// The extension that holds a rule.
const RULE: &str = "google.api.http";

/// The methods that a rule can name, of which it has one.
pub(crate) const VERBS: [Method; 5] = [
    Method::GET,
    Method::POST,
    Method::PATCH,
    Method::PUT,
    Method::DELETE,
];

/// A rule that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// The descriptors lack something.
    #[error("the descriptors can't be read")]
    Descriptors(#[from] prost_reflect::DescriptorError),
    /// The descriptors don't know the option.
    #[error("the descriptors lack the extension {RULE}; include imports when building the set")]
    NoExtension,
    /// The rule of an RPC isn't one.
    #[error("the rule of {0} {1}")]
    Rule(String, String),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BodyUse {
    /// There is none.
    None,
    /// It is the request, but for what the path has.
    Whole,
    /// It is this field.
    Field(FieldDescriptor),
}

/// One way to call an RPC.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) http: Method,
    pub(crate) template: Template,
    pub(crate) body: BodyUse,
    /// The RPC's path in gRPC.
    pub(crate) path: PathAndQuery,
    pub(crate) method: MethodDescriptor,
}

impl Route {
    pub(crate) fn streams(&self) -> bool {
        self.method.is_server_streaming()
    }
}

/// The routes to the RPCs of `pool` that take one message, in the order of the descriptors.
pub(crate) fn read_all(pool: &DescriptorPool) -> Result<Vec<Route>, RouteError> {
    pool.get_extension_by_name(RULE).ok_or(RouteError::NoExtension)?;
    let mut routes = Vec::new();
    let services = pool.services();
    for method in services.flat_map(|service| service.methods().collect::<Vec<_>>()) {
        let rule = option(&method.options(), RULE).filter(|_| !method.is_client_streaming());
        let Some(Value::Message(rule)) = rule else {
            continue;
        };
        let further = rule.get_field_by_name("additional_bindings");
        let further = further.as_deref().and_then(Value::as_list).unwrap_or_default();
        for rule in std::iter::once(&rule).chain(further.iter().filter_map(Value::as_message)) {
            routes.push(read(&method, rule)?);
        }
    }
    Ok(routes)
}

fn read(method: &MethodDescriptor, rule: &DynamicMessage) -> Result<Route, RouteError> {
    let problem = |problem: &str| RouteError::Rule(method.full_name().to_owned(), problem.to_owned());
    let text = |name: &str| {
        let value = rule.get_field_by_name(name)?;
        value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let path = |verb: Method| text(&verb.as_str().to_ascii_lowercase()).map(|path| (verb, path));
    let found = VERBS.into_iter().find_map(path);
    let (http, path) = found.ok_or_else(|| problem("has no path of get, put, post, delete or patch"))?;
    if text("response_body").is_some() {
        return Err(problem("has a response_body, which isn't supported"));
    }
    let template = Template::read(&path).map_err(|error| problem(&error))?;
    let input = method.input();
    for name in template.fields() {
        let leaf = field_path(&input, name).and_then(|fields| fields.last().cloned());
        if leaf.is_none_or(|leaf| is_message(&leaf) != Some(false)) {
            let words = format!("has the variable `{name}`, which is no single field of the request");
            return Err(problem(&words));
        }
    }
    let body = match text("body").as_deref() {
        None => BodyUse::None,
        Some("*") => BodyUse::Whole,
        Some(name) => match input.get_field_by_name(name) {
            Some(field) if is_message(&field) == Some(true) => BodyUse::Field(field),
            _ => {
                let words = format!("has the body `{name}`, which is no message of the request");
                return Err(problem(&words));
            }
        },
    };
    Ok(Route {
        http,
        template,
        body,
        path: rpc_path(method).ok_or_else(|| problem("is of an RPC whose name is no path"))?,
        method: method.clone(),
    })
}

/// Is the field a message; `None` of a list or a map.
fn is_message(field: &FieldDescriptor) -> Option<bool> {
    (!field.is_list() && !field.is_map()).then(|| matches!(field.kind(), Kind::Message(_)))
}

pub(crate) fn rpc_path(method: &MethodDescriptor) -> Option<PathAndQuery> {
    let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
    path.try_into().ok()
}

/// The fields on the way to `path`, by their names in the proto or in JSON; `None` when there is no such field.
pub(crate) fn field_path(message: &MessageDescriptor, path: &str) -> Option<Vec<FieldDescriptor>> {
    let mut fields: Vec<FieldDescriptor> = Vec::new();
    for name in path.split('.') {
        let message = match fields.last() {
            None => message.clone(),
            Some(parent) if parent.is_list() || parent.is_map() => return None,
            Some(parent) => match parent.kind() {
                Kind::Message(message) => message,
                _ => return None,
            },
        };
        let field = message.get_field_by_name(name);
        fields.push(field.or_else(|| message.get_field_by_json_name(name))?);
    }
    Some(fields)
}

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
    for method in pool
        .services()
        .flat_map(|service| service.methods().collect::<Vec<_>>())
    {
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
    let problem = |problem: String| RouteError::Rule(method.full_name().to_owned(), problem);
    let text = |name: &str| {
        let value = rule.get_field_by_name(name)?;
        value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let verbs = [
        ("get", Method::GET),
        ("put", Method::PUT),
        ("post", Method::POST),
        ("delete", Method::DELETE),
        ("patch", Method::PATCH),
    ];
    let (http, path) = verbs
        .into_iter()
        .find_map(|(name, verb)| Some((verb, text(name)?)))
        .ok_or_else(|| problem("has no path of get, put, post, delete or patch".to_owned()))?;
    if text("response_body").is_some() {
        return Err(problem("has a response_body, which isn't supported".to_owned()));
    }
    let template = Template::read(&path).map_err(problem)?;
    let input = method.input();
    for name in template.fields() {
        let leaf = field_path(&input, name).and_then(|fields| fields.last().cloned());
        let single = leaf.is_some_and(|leaf| {
            !leaf.is_list() && !leaf.is_map() && !matches!(leaf.kind(), Kind::Message(_))
        });
        if !single {
            return Err(problem(format!(
                "has the variable `{name}`, which is no single field of the request"
            )));
        }
    }
    let body = match text("body").as_deref() {
        None => BodyUse::None,
        Some("*") => BodyUse::Whole,
        Some(name) => match input.get_field_by_name(name) {
            Some(field)
                if matches!(field.kind(), Kind::Message(_)) && !field.is_list() && !field.is_map() =>
            {
                BodyUse::Field(field)
            }
            _ => {
                return Err(problem(format!(
                    "has the body `{name}`, which is no message of the request"
                )));
            }
        },
    };
    Ok(Route {
        http,
        template,
        body,
        path: rpc_path(method).ok_or_else(|| problem("is of an RPC whose name is no path".to_owned()))?,
        method: method.clone(),
    })
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
        let field = message
            .get_field_by_name(name)
            .or_else(|| message.get_field_by_json_name(name))?;
        fields.push(field);
    }
    Some(fields)
}

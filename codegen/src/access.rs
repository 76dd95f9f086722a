//! What the build demands of the rules of access.

use prost_reflect::{DescriptorPool, DynamicMessage, MethodDescriptor, Value};

use crate::options::extension;

/// The option that holds an RPC's rule.
pub(crate) const RULE: &str = "souk.auth.v1.access";
/// The number of the role that every rule lets in.
const ADMIN: i32 = 1;

/// Refuses to build while an RPC doesn't say who may call it.
pub(crate) fn check(pool: &DescriptorPool) -> Result<(), String> {
    let option = extension(pool, RULE)?;
    let methods = pool
        .services()
        .flat_map(|service| service.methods().collect::<Vec<_>>());
    let wrong: Vec<String> = methods
        .filter_map(|method: MethodDescriptor| {
            let options = method.options();
            let problem = if options.has_extension(&option) {
                problem(options.get_extension(&option).as_message()?)?
            } else {
                "has no rule of access"
            };
            Some(format!("  {} {problem}", method.full_name()))
        })
        .collect();
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} RPCs don't say who may call them:\n{}\nadd to each: option ({RULE}) = {{ all: [ROLE_ADMIN, …] own: […] }};",
        wrong.len(),
        wrong.join("\n")
    ))
}

/// What is wrong with a rule.
fn problem(rule: &DynamicMessage) -> Option<&'static str> {
    let roles = |name: &str| -> Vec<i32> {
        let field = rule.get_field_by_name(name);
        let list = field
            .as_deref()
            .and_then(Value::as_list)
            .map(|list| list.iter().filter_map(Value::as_enum_number).collect());
        list.unwrap_or_default()
    };
    let (all, own) = (roles("all"), roles("own"));
    let mut named: Vec<i32> = all.iter().chain(&own).copied().collect();
    let count = named.len();
    named.sort_unstable();
    named.dedup();
    match () {
        () if !all.contains(&ADMIN) => Some("doesn't let in ROLE_ADMIN in `all`"),
        () if named.len() < count => Some("names a role twice"),
        () if named.contains(&0) => Some("names ROLE_UNSPECIFIED"),
        () => None,
    }
}

//! Build-time check: each RPC has an access rule, which doesn't contradict itself.

use prost_reflect::{DescriptorPool, DynamicMessage};

use crate::options::{enum_names, option};

/// The option with an RPC's access rule.
pub(crate) const ACCESS: &str = "souk.auth.v1.access";

/// Fails with all RPCs whose access rule is missing or wrong.
pub(crate) fn check(pool: &DescriptorPool) -> Result<(), String> {
    let mut wrong = Vec::new();
    for service in pool.services() {
        for method in service.methods() {
            let problem = match option(&method.options(), ACCESS)? {
                Some(rule) => problem(&rule),
                None => Some("has no access rule"),
            };
            wrong.extend(problem.map(|problem| format!("  {} {problem}", method.full_name())));
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} RPCs don't say who may call them:\n{}\nadd to each: option ({ACCESS}) = {{ all: [ROLE_ADMIN, …] own: […] }};",
        wrong.len(),
        wrong.join("\n")
    ))
}

/// What is wrong with an access rule; `None` when nothing is.
fn problem(rule: &DynamicMessage) -> Option<&'static str> {
    let all = enum_names(rule, "all");
    let mut named = [all.clone(), enum_names(rule, "own")].concat();
    let count = named.len();
    named.sort_unstable();
    named.dedup();
    if !all.iter().any(|role| role == "ROLE_ADMIN") {
        Some("doesn't let in ROLE_ADMIN in `all`")
    } else if named.len() < count {
        Some("names a role twice")
    } else if named.iter().any(|role| role == "ROLE_UNSPECIFIED") {
        Some("names ROLE_UNSPECIFIED")
    } else {
        None
    }
}

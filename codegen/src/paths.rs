//! What the build demands of the ways by HTTP.

use prost_reflect::DescriptorPool;

use crate::options::extension;

/// The option that says how an RPC is called by HTTP.
const RULE: &str = "google.api.http";

/// Refuses to build while an RPC doesn't say how it is called by HTTP.
pub(crate) fn check(pool: &DescriptorPool) -> Result<(), String> {
    let option = extension(pool, RULE)?;
    let missing: Vec<String> = pool
        .services()
        .flat_map(|service| service.methods().collect::<Vec<_>>())
        .filter(|method| !method.options().has_extension(&option))
        .map(|method| format!("  {}", method.full_name()))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} RPCs don't say how they are called by HTTP:\n{}\nadd to each: option ({RULE}) = {{get: \"/v1/…\"}};",
        missing.len(),
        missing.join("\n")
    ))
}

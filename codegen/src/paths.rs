//! Checks the HTTP paths of RPCs: every RPC has one.

use prost_reflect::DescriptorPool;

use crate::options::extension;

/// The option with the HTTP method and path of an RPC.
const HTTP: &str = "google.api.http";

/// Refuses a contract with RPCs that have no HTTP path, and names them all.
pub(crate) fn check(pool: &DescriptorPool) -> Result<(), String> {
    let option = extension(pool, HTTP)?;
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
        "{} RPCs don't say how they are called by HTTP:\n{}\nadd to each: option ({HTTP}) = {{get: \"/v1/…\"}};",
        missing.len(),
        missing.join("\n")
    ))
}

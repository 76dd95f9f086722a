//! Generates the resources of the service from its contract.

fn main() -> souk_codegen::Result<()> {
    souk_codegen::resources::generate_shared("souk.shop.v1", &[])
}

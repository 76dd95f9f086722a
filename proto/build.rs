//! Compiles `proto/` with protox (a protoc in Rust: nothing to install) into `OUT_DIR`. An RPC without a rule of access,
//! or with one that contradicts itself, or without a path for HTTP, isn't compiled.

use std::error::Error;
use std::path::PathBuf;

#[path = "build/access.rs"]
mod access;
#[path = "build/paths.rs"]
mod paths;

const FILES: [&str; 19] = [
    "google/api/annotations.proto",
    "google/api/http.proto",
    "souk/auth/v1/access.proto",
    "souk/media/v1/media.proto",
    "souk/media/v1/media_index.proto",
    "souk/order/v1/consumer.proto",
    "souk/order/v1/order.proto",
    "souk/order/v1/order_index.proto",
    "souk/order/v1/person.proto",
    "souk/order/v1/product.proto",
    "souk/order/v1/salesperson.proto",
    "souk/rule/v1/rule.proto",
    "souk/search/v1/aggregation.proto",
    "souk/search/v1/index.proto",
    "souk/search/v1/query.proto",
    "souk/search/v1/search.proto",
    "souk/shop/v1/shop.proto",
    "souk/shop/v1/shop_index.proto",
    "souk/type/v1/type.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    println!("cargo:rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler
        .include_imports(true)
        .include_source_info(true)
        .open_files(FILES)?;
    access::check(&compiler.descriptor_pool())?;
    paths::check(&compiler.descriptor_pool())?;
    std::fs::write(
        out.join("descriptors.binpb"),
        compiler.encode_file_descriptor_set(),
    )?;
    tonic_prost_build::configure()
        // Maps in key order: the same message always encodes to the same bytes.
        .btree_map(".")
        .bytes(".")
        .compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}

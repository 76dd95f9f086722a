//! Compiles `proto/` with protox (a protoc in Rust: nothing to install) into `OUT_DIR`. An RPC without a rule of access,
//! or with one that contradicts itself, or without a path for HTTP, isn't compiled; neither is a field with a rule that
//! nothing would enforce.

use std::error::Error;
use std::path::PathBuf;

use prost_reflect::prost::Message as _;
use prost_reflect::{DynamicMessage, Value};

#[path = "build/access.rs"]
mod access;
#[path = "build/paths.rs"]
mod paths;
#[path = "build/rules.rs"]
mod rules;

const FILES: [&str; 20] = [
    "buf/validate/validate.proto",
    "google/api/annotations.proto",
    "google/api/field_behavior.proto",
    "google/api/http.proto",
    "souk/auth/v1/access.proto",
    "souk/index/v1/index.proto",
    "souk/media/v1/media.proto",
    "souk/order/v1/consumer.proto",
    "souk/order/v1/order.proto",
    "souk/order/v1/person.proto",
    "souk/order/v1/product.proto",
    "souk/order/v1/salesperson.proto",
    "souk/route/v1/route.proto",
    "souk/rule/v1/rule.proto",
    "souk/search/v1/aggregation.proto",
    "souk/search/v1/index.proto",
    "souk/search/v1/query.proto",
    "souk/search/v1/search.proto",
    "souk/shop/v1/shop.proto",
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
    std::fs::write(out.join("rules.rs"), rules::compile(&compiler.descriptor_pool())?)?;
    std::fs::write(out.join("descriptors.binpb"), descriptors(&compiler)?)?;
    let mut files = compiler.file_descriptor_set();
    // Rules and routes are options: nothing at run time needs their types.
    files
        .file
        .retain(|file| !["buf.validate", "souk.route.v1", "souk.rule.v1"].contains(&file.package()));
    tonic_prost_build::configure()
        // Maps in key order: the same message always encodes to the same bytes.
        .btree_map(".")
        .bytes(".")
        .compile_fds(files)?;
    Ok(())
}

/// All descriptors, with the comments of our own files: those of others would double them.
fn descriptors(compiler: &protox::Compiler) -> Result<Vec<u8>, Box<dyn Error>> {
    let set = compiler
        .descriptor_pool()
        .get_message_by_name("google.protobuf.FileDescriptorSet")
        .ok_or("no descriptor of descriptors")?;
    let mut set = DynamicMessage::decode(set, &*compiler.encode_file_descriptor_set())?;
    let files = set.get_field_by_name_mut("file").and_then(Value::as_list_mut);
    for file in files.into_iter().flatten().filter_map(Value::as_message_mut) {
        let name = file.get_field_by_name("name");
        if !name.is_some_and(|name| name.as_str().is_some_and(|name| name.starts_with("souk/"))) {
            file.clear_field_by_name("source_code_info");
        }
    }
    Ok(set.encode_to_vec())
}

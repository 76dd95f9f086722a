//! Compiles the health protocol with protox (a protoc in Rust: nothing to install) into `OUT_DIR`.

use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    println!("cargo:rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler
        .include_source_info(true)
        .open_file("grpc/health/v1/health.proto")?;
    std::fs::write(out.join("health.binpb"), compiler.encode_file_descriptor_set())?;
    tonic_prost_build::configure()
        .btree_map(".")
        .build_client(false)
        .compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}

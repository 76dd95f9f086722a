//! Writes the service of a resource beside its message:
//! `cargo run -p souk-codegen -- FOLDER FILE`, for example `e2e/coupon-svc/proto souk/coupon/v1/coupon.proto`.

use std::path::{Path, PathBuf};

fn main() -> souk_codegen::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, file] = &arguments[..] else {
        return Err("usage: souk-codegen FOLDER FILE: the folder that imports are relative to, and the file of a resource in it".into());
    };
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/proto");
    let mut compiler = protox::Compiler::new([Path::new(folder), &shared])?;
    compiler.include_imports(true).open_file(file)?;
    let (name, text) = souk_codegen::service::generate(&compiler.descriptor_pool(), file)?;
    std::fs::write(PathBuf::from(folder).join(name), text)?;
    Ok(())
}

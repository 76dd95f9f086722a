//! Compiles the contract of coupons, and generates their resource.

use std::path::Path;

fn main() -> souk_codegen::Result<()> {
    let shared = std::env::var("DEP_SOUK_PROTO_FOLDER")?;
    let files = [
        "souk/coupon/v1/coupon.proto",
        "souk/coupon/v1/coupon_service.proto",
    ];
    let folders = [Path::new("proto"), Path::new(&shared)];
    let contract = souk_codegen::compile(&folders, &files, Some("::souk_proto"), &[])?;
    souk_codegen::resources::generate_own(&contract, "souk.coupon.v1", &[])
}

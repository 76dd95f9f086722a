//! Compiles `proto/` with protox (a protoc in Rust: nothing to install) into `OUT_DIR`, see `souk_codegen`. Build scripts of
//! crates that generate code for resources find the descriptors by `DEP_SOUK_PROTO_DESCRIPTORS`.

use std::path::Path;

const FILES: [&str; 27] = [
    "buf/validate/validate.proto",
    "google/api/annotations.proto",
    "google/api/field_behavior.proto",
    "google/api/http.proto",
    "souk/auth/v1/access.proto",
    "souk/figures/v1/figures.proto",
    "souk/index/v1/index.proto",
    "souk/media/v1/media.proto",
    "souk/order/v1/consumer.proto",
    "souk/order/v1/order.proto",
    "souk/order/v1/person.proto",
    "souk/order/v1/product.proto",
    "souk/order/v1/salesperson.proto",
    "souk/resource/v1/resource.proto",
    "souk/route/v1/route.proto",
    "souk/rule/v1/rule.proto",
    "souk/search/v1/aggregation.proto",
    "souk/search/v1/field.proto",
    "souk/search/v1/index.proto",
    "souk/search/v1/query.proto",
    "souk/search/v1/search.proto",
    "souk/shop/v1/shop.proto",
    "souk/table/v1/consumer_group.proto",
    "souk/table/v1/row.proto",
    "souk/table/v1/table.proto",
    "souk/table/v1/table_service.proto",
    "souk/type/v1/type.proto",
];

fn main() -> souk_codegen::Result<()> {
    let by_hand = [("souk.table.v1.Row", "crate::row::Row")];
    souk_codegen::compile(&[Path::new("proto")], &FILES, None, &by_hand)?;
    let descriptors = souk_codegen::out_dir()?.join("descriptors.binpb");
    println!("cargo:descriptors={}", descriptors.display());
    println!("cargo:folder={}/proto", std::env::var("CARGO_MANIFEST_DIR")?);
    Ok(())
}

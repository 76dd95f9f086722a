//! Compiles contracts, which are `.proto` files, in build scripts:
//!
//! - messages and services, by the generators of tonic and prost;
//! - the rules of fields (`rules`);
//! - resources ([`resources`]): a table's definition, the conversion between messages and rows, and the standard RPCs;
//! - and, as a program, the `.proto` file of a service that has standard RPCs alone ([`service`]).
//!
//! The build fails on an RPC without an HTTP path, without an access rule, or with an access rule that contradicts itself; on a
//! field with a rule that isn't enforced; and on a resource with a field that no column holds, or with an option or request field
//! without effect.
//!
//! Only build scripts, tests and the program `souk-codegen` link it. It knows no domain.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};

use prost_reflect::prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, Value};

mod access;
mod names;
mod options;
mod paths;
pub mod resources;
mod rules;
pub mod service;

pub use names::Modules;

/// Errors say what is wrong with a contract, and where: cargo shows them as the failure of the build script.
pub type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// Packages that have options alone, whose types aren't needed at run time.
const OPTION_PACKAGES: [&str; 4] = [
    "buf.validate",
    "souk.resource.v1",
    "souk.route.v1",
    "souk.rule.v1",
];
/// The index service. Every process with tables serves it next to its own services, so the descriptors of every contract that
/// builds on a shared one include it.
const INDEX_SERVICE: &str = "souk/index/v1/index.proto";

/// Compiles the contract of the crate whose build script calls this, and returns its descriptors.
///
/// `folders` are the import paths, `files` the contract's own files. `shared` is the module with the types of all other
/// packages of Souk, for example `::souk_proto`; `None` when there are no others. `by_hand` are messages of the contract that the
/// crate has types of its own for, each with the path of its type. Writes to `OUT_DIR`: the files that
/// [`tonic::include_proto`](https://docs.rs/tonic) includes, `rules.rs` with the rules of fields, and `descriptors.binpb`
/// with the encoded `FileDescriptorSet`.
///
/// # Errors
/// When the contract is invalid, with what is wrong and where; when `OUT_DIR` isn't set or can't be written to.
pub fn compile(
    folders: &[&Path],
    files: &[&str],
    shared: Option<&str>,
    by_hand: &[(&str, &str)],
) -> Result<DescriptorPool> {
    folders.iter().for_each(|folder| rerun_if_changed(folder));
    let out = out_dir()?;
    let mut compiler = protox::Compiler::new(folders)?;
    compiler
        .include_imports(true)
        .include_source_info(true)
        .open_files(files)?;
    if shared.is_some() {
        compiler.open_file(INDEX_SERVICE)?;
    }
    let pool = compiler.descriptor_pool();
    access::check(&pool)?;
    paths::check(&pool)?;
    let mut set = compiler.file_descriptor_set();
    let own = set.file.iter().filter(|file| files.contains(&file.name()));
    let modules = Modules::new(own.map(|file| file.package().to_owned()).collect(), shared);
    std::fs::write(out.join("rules.rs"), rules::compile(&pool, &modules)?)?;
    std::fs::write(out.join("descriptors.binpb"), descriptors(&compiler)?)?;
    set.file.retain(|file| !OPTION_PACKAGES.contains(&file.package()));
    let mut config = tonic_prost_build::configure()
        // Maps in key order: the same message always encodes to the same bytes.
        .btree_map(".")
        .bytes(".");
    let packages: BTreeSet<&str> = set.file.iter().map(|file| file.package()).collect();
    for package in packages {
        if package.starts_with(names::SOUK_PACKAGES) && !modules.is_own(package) {
            // prost mangles raw identifiers in paths: souk-proto exports `r#type` as `types`, too.
            let module = modules.module(package).replace("r#type", "types");
            config = config.extern_path(format!(".{package}"), module);
        }
    }
    for (message, path) in by_hand {
        config = config.extern_path(format!(".{message}"), path);
    }
    config.compile_fds(set)?;
    Ok(pool)
}

/// Makes cargo run the build script again when the file or folder changes.
#[expect(clippy::print_stdout, reason = "how a build script speaks to cargo")]
pub(crate) fn rerun_if_changed(path: &Path) {
    println!("cargo:rerun-if-changed={}", path.display());
}

/// The folder that a build script writes to.
///
/// # Errors
/// When `OUT_DIR` isn't set: outside of a build script.
pub fn out_dir() -> Result<PathBuf> {
    Ok(PathBuf::from(std::env::var("OUT_DIR")?))
}

/// The encoded `FileDescriptorSet` of all files, with the comments of Souk's own alone: those of others would double its size.
fn descriptors(compiler: &protox::Compiler) -> Result<Vec<u8>> {
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

#[cfg(test)]
mod tests {
    use prost_reflect::DescriptorPool;

    /// Checks the access rule of an RPC with these options.
    fn checked_access(options: &str) -> Result<(), String> {
        super::access::check(&compiled_with(options))
    }

    /// Compiles a contract of one RPC with these options.
    fn compiled_with(options: &str) -> DescriptorPool {
        let folder = tempfile::tempdir().expect("a folder");
        let file = format!(
            "syntax = \"proto3\"; package t; import \"souk/auth/v1/access.proto\";
            import \"google/api/annotations.proto\"; message M {{}}
            service S {{ rpc Call(M) returns (M) {{ {options} }} }}"
        );
        std::fs::write(folder.path().join("t.proto"), file).expect("written");
        let protos = concat!(env!("CARGO_MANIFEST_DIR"), "/../proto/proto");
        let mut compiler =
            protox::Compiler::new([folder.path(), std::path::Path::new(protos)]).expect("a compiler");
        compiler.include_imports(true);
        compiler.open_files(["t.proto"]).expect("compiles");
        compiler.descriptor_pool()
    }

    #[test]
    fn an_rpc_without_a_path_for_http_fails_the_build() {
        let pool = compiled_with("option (google.api.http) = {get: \"/v1/calls\"};");
        assert_eq!(super::paths::check(&pool), Ok(()));
        let error = super::paths::check(&compiled_with("")).expect_err("no path");
        assert!(
            error.contains("t.S.Call") && error.contains("add to each"),
            "{error}"
        );
    }

    #[test]
    fn an_rpc_without_a_rule_or_with_a_senseless_one_fails_the_build() {
        let rule = |text: &str| format!("option (souk.auth.v1.access) = {{ {text} }};");
        assert_eq!(
            checked_access(&rule("all: [ROLE_ADMIN] own: [ROLE_USER]")),
            Ok(())
        );
        for (options, problem) in [
            (String::new(), "t.S.Call has no access rule"),
            (
                "option deprecated = true;".to_owned(),
                "t.S.Call has no access rule",
            ),
            (rule(""), "doesn't let in ROLE_ADMIN"),
            (rule("own: [ROLE_ADMIN]"), "doesn't let in ROLE_ADMIN"),
            (
                rule("all: [ROLE_ADMIN, ROLE_USER] own: [ROLE_USER]"),
                "names a role twice",
            ),
            (
                rule("all: [ROLE_ADMIN, ROLE_UNSPECIFIED]"),
                "names ROLE_UNSPECIFIED",
            ),
        ] {
            let error = checked_access(&options).expect_err(&options);
            assert!(
                error.contains(problem) && error.contains("add to each"),
                "{error}"
            );
        }
    }
}

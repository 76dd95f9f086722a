//! Compiles `proto/` with protox into `OUT_DIR`, and next to the messages a table of their shapes: which fields have to be there
//! and which are messages, by which `strict` looks at bytes before prost decodes them.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;

use prost_build::Config;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FileDescriptorSet};

const FILES: [&str; 7] = [
    "error.proto",
    "filter.proto",
    "row.proto",
    "search.proto",
    "stream.proto",
    "table.proto",
    "tunnel.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(FILES, ["proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("shapes.rs"), shapes(&descriptors)?)?;
    Config::new().bytes(["."]).compile_fds(descriptors)?;
    Ok(())
}

/// `SHAPES`, a constant with a `Shape` for each message, and an `impl Strict` that says which is whose.
fn shapes(set: &FileDescriptorSet) -> Result<String, Box<dyn Error>> {
    let mut messages: Vec<(String, &DescriptorProto)> = Vec::new();
    for file in &set.file {
        for message in &file.message_type {
            let name = format!(".{}.{}", file.package(), message.name());
            for inner in &message.nested_type {
                messages.push((format!("{name}.{}", inner.name()), inner));
            }
            messages.push((name, message));
        }
    }
    let numbers: BTreeMap<&str, usize> = messages
        .iter()
        .enumerate()
        .map(|(at, (name, _))| (name.as_str(), at))
        .collect();
    let mut code = String::from("static SHAPES: &[Shape] = &[\n");
    for (name, message) in &messages {
        let required: Vec<i32> = message
            .field
            .iter()
            .filter(|field| field.label() == Label::Required)
            .map(|field| field.number())
            .collect();
        let mut inner = Vec::new();
        for field in message
            .field
            .iter()
            .filter(|field| field.r#type() == Type::Message)
        {
            let shape = numbers
                .get(field.type_name())
                .ok_or("a message without a descriptor")?;
            inner.push((field.number(), *shape));
        }
        writeln!(
            code,
            "    // {name}\n    Shape {{ required: &{required:?}, messages: &{inner:?} }},"
        )?;
    }
    code.push_str("];\n");
    for (at, (name, _)) in messages.iter().enumerate() {
        // Messages inside of messages are never a request.
        if let Some(path) = name.strip_prefix(".tablestore.")
            && (!path.contains('.') || path.starts_with("tunnel."))
        {
            let path = path.replace('.', "::");
            writeln!(
                code,
                "impl Strict for crate::messages::{path} {{ const SHAPE: usize = {at}; }}"
            )?;
        }
    }
    Ok(code)
}

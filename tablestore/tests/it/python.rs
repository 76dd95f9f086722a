//! The official Python package holds this crate against its own: its codec, its contract, and itself as a client.
//!
//! It comes from PyPI by `clients/run prepare`; without it these tests say that they were skipped.

mod server;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use prost_types::field_descriptor_proto::Type;
use prost_types::{DescriptorProto, FileDescriptorSet};
use souk_tablestore::plainbuffer::encode;
use souk_tablestore::{CellOperation, KeyElement, PlainRow, Value};

use crate::plainbuffer::hex;
use crate::rows;

/// Where the package is, if it was installed.
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn package() -> Option<PathBuf> {
    let folder = match std::env::var_os("SOUK_CLIENT_TOOLS") {
        Some(tools) => PathBuf::from(tools),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools/clients"),
    };
    let package = folder.join("tablestore");
    if package.join("tablestore/protocol.py").exists() {
        return Some(package);
    }
    println!("SKIPPED: no Python package of Tablestore; `clients/run prepare` installs it");
    None
}

/// What a script of `tests/python` prints, given these lines.
fn run(package: &Path, script: &str, arguments: &[&str], input: String) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/python")
        .join(script);
    let mut python = Command::new("python3")
        .arg(&script)
        .args(arguments)
        .env("PYTHONPATH", package)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("python3");
    let mut stdin = python.stdin.take().expect("a pipe");
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let Output {
        status,
        stdout,
        stderr,
    } = python.wait_with_output().expect("an end");
    // A script that fails may not have read all.
    let _ = writer.join().expect("no panic");
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{}: {stdout}\n{stderr}", script.display());
    stdout.into_owned()
}

fn value(value: &Value) -> String {
    match value {
        Value::Integer(number) => format!("i,{number}"),
        Value::Double(number) => format!("d,{}", hex(&number.to_le_bytes())),
        Value::Boolean(truth) => format!("t,{}", u8::from(*truth)),
        Value::String(text) => format!("s,{}", hex(text.as_bytes())),
        Value::Binary(bytes) => format!("b,{}", hex(bytes)),
    }
}

fn element(element: &KeyElement) -> String {
    match element {
        KeyElement::Integer(number) => format!("i,{number}"),
        KeyElement::String(text) => format!("s,{}", hex(text.as_bytes())),
        KeyElement::Binary(bytes) => format!("b,{}", hex(bytes)),
        KeyElement::Minimum => "min,".to_owned(),
        KeyElement::Maximum => "max,".to_owned(),
        KeyElement::AutoIncrement => "auto,".to_owned(),
    }
}

fn line(kind: &str, row: &PlainRow) -> String {
    let key: Vec<String> = row
        .key
        .iter()
        .map(|column| format!("{},{}", column.name, element(&column.value)))
        .collect();
    let cell = |cell: &souk_tablestore::PlainCell| {
        let operation = match cell.operation {
            None => "PUT",
            Some(CellOperation::DeleteOneVersion) => "DELETE",
            Some(CellOperation::DeleteAllVersions) => "DELETE_ALL",
            Some(CellOperation::Increment) => "INCREMENT",
        };
        let timestamp = cell
            .timestamp
            .map_or("-".to_owned(), |timestamp| timestamp.to_string());
        let value = cell.value.as_ref().map_or("-,".to_owned(), value);
        format!("{},{operation},{timestamp},{value}", cell.name)
    };
    let cells: Vec<String> = row.cells.iter().map(cell).collect();
    format!(
        "{kind};{};{};{}\n",
        hex(&encode([row])),
        key.join("|"),
        cells.join("|")
    )
}

#[test]
fn rows_are_as_the_codec_of_the_package_has_them() {
    let Some(package) = package() else { return };
    let mut random = souk_seeds::random();
    let mut lines = String::new();
    const ROWS: usize = 4_000;
    for nth in 0..ROWS {
        let (kind, row) = match nth % 4 {
            0 => ("put", rows::put(&mut random)),
            1 => ("update", rows::update(&mut random)),
            2 => {
                let mut row = rows::put(&mut random);
                row.cells.clear();
                row.delete_marker = true;
                ("delete", row)
            }
            _ => {
                let key = rows::key(&mut random, true);
                (
                    "key",
                    PlainRow {
                        key,
                        ..PlainRow::default()
                    },
                )
            }
        };
        lines.push_str(&line(kind, &row));
    }
    assert_eq!(run(&package, "codec.py", &[], lines), format!("{ROWS} rows\n"));
}

/// Messages of the package that this crate has no use for.
const UNUSED: [&str; 10] = [
    "LoadTableRequest",
    "LoadTableResponse",
    "SQLQueryRequest",
    "SQLQueryResponse",
    "SearchConsumedCapacity",
    "SessionId",
    "TableConsumedCapacity",
    "UnloadTableRequest",
    "UnloadTableResponse",
    // Here the message itself, which is the same on the wire.
    "ParallelScanRequest.scan_query",
];

/// All messages by name, whatever the package.
fn messages(set: &FileDescriptorSet) -> BTreeMap<String, &DescriptorProto> {
    let mut found = BTreeMap::new();
    for file in set.file.iter().filter(|file| file.package() == "tablestore") {
        for message in &file.message_type {
            found.insert(message.name().to_lowercase(), message);
            for inner in &message.nested_type {
                found.insert(inner.name().to_lowercase(), inner);
            }
        }
    }
    found
}

#[test]
fn the_contract_has_all_fields_of_the_package_by_number_label_and_type() {
    let Some(package) = package() else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
    let files = ["filter.proto", "row.proto", "search.proto", "stream.proto"];
    let set = protox::compile(files, [folder]).expect("a contract");
    let messages = messages(&set);
    let mut enums = BTreeMap::new();
    for declared in set.file.iter().flat_map(|file| &file.enum_type) {
        let numbers: Vec<i32> = declared.value.iter().map(|value| value.number()).collect();
        enums.insert(declared.name().to_lowercase(), numbers);
    }
    let mut compared = 0;
    for line in run(&package, "contract.py", &[], String::new()).lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["message", name] | ["field", name, ..] if UNUSED.contains(name) => {}
            ["field", message, field, ..] if UNUSED.contains(&format!("{message}.{field}").as_str()) => {}
            ["message", name] => assert!(messages.contains_key(&name.to_lowercase()), "{line}"),
            ["field", message, _, number, label, kind, of] => {
                let message = messages
                    .get(&message.to_lowercase())
                    .unwrap_or_else(|| panic!("no message: {line}"));
                let ours = message
                    .field
                    .iter()
                    .find(|field| field.number().to_string() == *number);
                let ours = ours.unwrap_or_else(|| panic!("no field: {line}"));
                let labels = (ours.label() as i32).to_string();
                assert_eq!(
                    (labels.as_str(), (ours.r#type() as i32).to_string().as_str()),
                    (*label, *kind),
                    "{line}"
                );
                if matches!(ours.r#type(), Type::Message | Type::Enum) {
                    let name = ours.type_name().rsplit('.').next().unwrap_or_default();
                    assert_eq!(name.to_lowercase(), of.to_lowercase(), "{line}");
                }
                compared += 1;
            }
            ["value", name, ..] if name.starts_with("SQL") => {}
            ["value", name, _, number] => {
                let numbers = enums
                    .get(&name.to_lowercase())
                    .unwrap_or_else(|| panic!("no enum: {line}"));
                assert!(numbers.iter().any(|ours| ours.to_string() == *number), "{line}");
                compared += 1;
            }
            _ => panic!("{line}"),
        }
    }
    assert!(compared > 500, "{compared} fields and values");
}

#[test]
fn the_package_calls_every_operation_signed_by_v2() {
    called("-");
}

#[test]
fn the_package_calls_every_operation_signed_by_v4() {
    called("cn-hangzhou");
}

fn called(region: &str) {
    let Some(package) = package() else { return };
    let server = server::Server::start();
    let said = run(
        &package,
        "client.py",
        &[&server.endpoint(), region],
        String::new(),
    );
    assert_eq!(said, "tables\nrows\nbatches\ntransactions\nsearches\nrefusals\n");
    server.check();
}

//! The official Python package works with the endpoint.
//!
//! It comes from PyPI by `clients/run prepare`; without it these tests say that they were skipped.

use std::path::{Path, PathBuf};

use crate::server::Server;

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

/// What a script of `tests/python` prints.
pub(crate) async fn run(script: &str, arguments: &[&str]) -> Option<String> {
    let package = package()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/python")
        .join(script);
    let run = tokio::process::Command::new("python3")
        .arg(&script)
        .args(arguments)
        .env("PYTHONPATH", package)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .kill_on_drop(true)
        .output();
    let ended = run.await.expect("python3");
    let (said, complained) = (
        String::from_utf8_lossy(&ended.stdout),
        String::from_utf8_lossy(&ended.stderr),
    );
    assert!(
        ended.status.success(),
        "{}: {said}\n{complained}",
        script.display()
    );
    Some(said.into_owned())
}

async fn worked(region: &str) {
    let server = Server::start().await;
    let endpoint = format!("http://{}", server.address);
    let arguments = [endpoint.as_str(), "demo", "demo-secret-of-tests", "demo", region];
    if let Some(said) = run("client.py", &arguments).await {
        assert_eq!(said, "tables\nrows\nranges\nbatches\ntransactions\nrefusals\n");
    }
    server.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_package_works_with_tables_and_rows_signed_by_v2() {
    worked("-").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_package_works_with_tables_and_rows_signed_by_v4() {
    worked("cn-hangzhou").await;
}

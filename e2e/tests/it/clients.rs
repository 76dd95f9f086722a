//! The examples in `clients/`, run as a reader would against the demo, through the gateway.
//!
//! They need packages of PyPI and npm, which `clients/run prepare` installs; where that wasn't done the test says that it was
//! skipped.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use souk_e2e::collector::Collector;
use souk_e2e::process::Process;
use souk_e2e::spans::SpanKind;
use souk_e2e::suite::{Layout, Plan};

use crate::SOUK;

/// Time for one example: it has a start of an interpreter in it.
const EXAMPLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Time for a stream whose reader has left it: far less than the 10 s after which the examples' calls end by themselves.
const WATCH_MAX: Duration = Duration::from_secs(5);

const WATCH_ORDERS: &str = "souk.order.v1.OrderService/WatchOrders";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Where `clients/run` keeps what it installed, if it was prepared.
fn prepared() -> Option<PathBuf> {
    let tools = match std::env::var_os("SOUK_CLIENT_TOOLS") {
        Some(tools) => PathBuf::from(tools),
        None => repository().join("target/tools/clients"),
    };
    tools.join("prepared").exists().then_some(tools)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_examples_run_against_the_demo() -> anyhow::Result<()> {
    if prepared().is_none() {
        println!("SKIPPED: no packages for the clients; `clients/run prepare` installs them");
        return Ok(());
    }
    let collector = Collector::start().await?;
    let suite = Plan::new(SOUK, Layout::Demo).traced(&collector).start().await?;
    let uri = suite.uri();
    let address = uri.replace("http://", "");
    let examples = [
        ("python", vec![address.as_str()]),
        ("typescript", vec![uri.as_str(), "connect"]),
        ("typescript", vec![uri.as_str(), "grpc-web"]),
    ];
    for (at, (language, arguments)) in examples.into_iter().enumerate() {
        let example = tokio::process::Command::new(repository().join("clients/run"))
            .arg(language)
            .args(&arguments)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(EXAMPLE_TIMEOUT, example).await??;
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{language} {arguments:?}:\n{stdout}{stderr}"
        );
        for words in ["ordered ", "refused: ", "done"] {
            assert!(
                stdout.contains(words),
                "{language} {arguments:?} lacks {words}:\n{stdout}{stderr}"
            );
        }
        // Who leaves a stream ends it, as the processes see it.
        let watches = collector
            .wait_for("", |collector| {
                let mut watches = collector.spans();
                watches.retain(|span| span.name == WATCH_ORDERS && span.kind == SpanKind::Server);
                (watches.len() >= 2 * (at + 1)).then_some(watches)
            })
            .await?;
        for watch in watches {
            let lasted = Duration::from_nanos(watch.duration_ns());
            assert!(
                lasted < WATCH_MAX,
                "{language} {arguments:?} leaves a call open: {lasted:?}"
            );
            assert_eq!(watch.attribute("rpc.status_code"), "CANCELLED");
        }
    }
    Ok(())
}

/// With a key that `souk make-tablestore-key` has made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_of_tablestores_package_runs() -> anyhow::Result<()> {
    if prepared().is_none() {
        println!("SKIPPED: no packages for the clients; `clients/run prepare` installs them");
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let keys = folder.path().join("keys").display().to_string();
    let make = "make-tablestore-key --id app --instance shop --role admin --add-to";
    let made = tokio::process::Command::new(SOUK)
        .args(make.split(' '))
        .arg(&keys)
        .output()
        .await?;
    assert!(made.status.success(), "{made:?}");
    let secret = String::from_utf8(made.stdout)?.trim().to_owned();
    let data = folder.path().join("data").display().to_string();
    let serve = format!(
        "serve --listen 127.0.0.1:0 --data {data} --tablestore-listen 127.0.0.1:0 --tablestore-keys {keys}"
    );
    let arguments: Vec<String> = serve.split(' ').map(str::to_owned).collect();
    let process = Process::start(SOUK, &arguments, &[], None).await?;
    let endpoint = process.tablestore().map(|address| format!("http://{address}"));
    let endpoint = endpoint.ok_or_else(|| anyhow::anyhow!("no endpoint"))?;
    let example = tokio::process::Command::new(repository().join("clients/run"))
        .args(["tablestore", &endpoint, "app", &secret, "shop"])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(EXAMPLE_TIMEOUT, example).await??;
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{stdout}{stderr}");
    assert_eq!(stdout.lines().last(), Some("done"), "{stdout}{stderr}");
    // It drains with the process.
    process.stop().await
}

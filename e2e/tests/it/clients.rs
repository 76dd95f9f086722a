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

/// Time for the handbook's, which copies all rows of the demo first.
const HANDBOOK_TIMEOUT: Duration = Duration::from_secs(240);

/// Time for a stream whose reader has left it: far less than the 10 s after which the examples' calls end by themselves.
const WATCH_MAX: Duration = Duration::from_secs(5);

/// The demo's access key of Tablestore's clients: its id, secret and instance.
const DEMO_KEY: [&str; 3] = ["demo", "demo-secret", "demo"];

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

/// What an example prints.
async fn printed(arguments: &[&str], limit: Duration) -> anyhow::Result<String> {
    let example = tokio::process::Command::new(repository().join("clients/run"))
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(limit, example).await??;
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    anyhow::ensure!(output.status.success(), "{arguments:?}:\n{stdout}{stderr}");
    Ok(stdout.into_owned())
}

/// A process of a command line, on free ports, and where Tablestore's clients find it.
async fn with_endpoint(command: &str) -> anyhow::Result<(Process, String)> {
    let listen = "--listen 127.0.0.1:0 --tablestore-listen 127.0.0.1:0";
    let arguments: Vec<String> = format!("{command} {listen}")
        .split(' ')
        .map(str::to_owned)
        .collect();
    let process = Process::start(SOUK, &arguments, &[], None).await?;
    let endpoint = process.tablestore().map(|address| format!("http://{address}"));
    let endpoint = endpoint.ok_or_else(|| anyhow::anyhow!("no endpoint"))?;
    Ok((process, endpoint))
}

/// The small demo, and where Tablestore's clients find it with [`DEMO_KEY`].
async fn demo(folder: &Path) -> anyhow::Result<(Process, String)> {
    let data = folder.join("data");
    with_endpoint(&format!("demo --size small --data {}", data.display())).await
}

/// Runs an example of one of Tablestore's packages at an endpoint, with an access key: its id, secret and instance.
async fn run_tablestore_example(
    example: &str,
    endpoint: &str,
    [id, secret, instance]: [&str; 3],
) -> anyhow::Result<()> {
    let printed = printed(&[example, endpoint, id, secret, instance], EXAMPLE_TIMEOUT).await?;
    for words in ["wrote ", "found: ", "refused: "] {
        assert!(printed.contains(words), "{words} is missing:\n{printed}");
    }
    assert_eq!(printed.lines().last(), Some("done"), "{printed}");
    Ok(())
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
        vec!["python", address.as_str()],
        vec!["typescript", uri.as_str(), "connect"],
        vec!["typescript", uri.as_str(), "grpc-web"],
    ];
    for (at, arguments) in examples.into_iter().enumerate() {
        let printed = printed(&arguments, EXAMPLE_TIMEOUT).await?;
        for words in ["ordered ", "refused: ", "done"] {
            assert!(printed.contains(words), "{arguments:?} lacks {words}:\n{printed}");
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
            assert!(lasted < WATCH_MAX, "{arguments:?} leaves a call open: {lasted:?}");
            assert_eq!(watch.attribute("rpc.status_code"), "CANCELLED");
        }
    }
    Ok(())
}

/// Runs an example of one of Tablestore's packages against the demo.
async fn run_against_the_demo(example: &str) -> anyhow::Result<()> {
    if prepared().is_none() {
        println!("SKIPPED: no packages for the clients; `clients/run prepare` installs them");
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let (process, endpoint) = demo(folder.path()).await?;
    run_tablestore_example(example, &endpoint, DEMO_KEY).await?;
    // It drains with the process.
    process.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_of_tablestores_package_runs() -> anyhow::Result<()> {
    run_against_the_demo("tablestore").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_of_tablestores_package_for_node_runs() -> anyhow::Result<()> {
    run_against_the_demo("tablestore-node").await
}

/// With a key that `souk make-tablestore-key` has made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_of_tablestores_package_runs_with_a_key_of_a_file() -> anyhow::Result<()> {
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
    let serve = format!("serve --data {data} --tablestore-keys {keys}");
    let (process, endpoint) = with_endpoint(&serve).await?;
    run_tablestore_example("tablestore", &endpoint, ["app", &secret, "shop"]).await?;
    process.stop().await
}

/// The systems of the handbook: Tablestore's package on plain tables answers as Souk's own services do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_handbooks_systems_answer_alike_on_plain_tables() -> anyhow::Result<()> {
    if prepared().is_none() {
        println!("SKIPPED: no packages for the clients; `clients/run prepare` installs them");
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let (process, endpoint) = demo(folder.path()).await?;
    let gateway = format!("http://{}", process.address());
    let [id, secret, instance] = DEMO_KEY;
    let arguments = ["handbook", &gateway, &endpoint, id, secret, instance];
    let printed = printed(&arguments, HANDBOOK_TIMEOUT).await?;
    // Its tables, and what is asked of both.
    for words in [
        "order_contract: ",
        "shop: ",
        "media: ",
        "the dearest first: ",
        "the best first: ",
        "the happiest first: ",
    ] {
        assert!(printed.contains(words), "{words} is missing:\n{printed}");
    }
    assert_eq!(printed.lines().last(), Some("done"), "{printed}");
    process.stop().await
}

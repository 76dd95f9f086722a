//! The examples in `clients/`, run as a reader would against the demo, through the gateway.
//!
//! They need packages of PyPI and npm, which `clients/run prepare` installs; where that wasn't done the test says that it was
//! skipped.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use souk_e2e::suite::Suite;

use crate::SOUK;

/// Time for one example: it has a start of an interpreter in it.
const EXAMPLE_TIMEOUT: Duration = Duration::from_secs(60);

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
    let suite = Suite::start_demo(SOUK).await?;
    let uri = suite.uri();
    let address = uri.replace("http://", "");
    for (language, target) in [("python", address.as_str()), ("typescript", uri.as_str())] {
        let example = tokio::process::Command::new(repository().join("clients/run"))
            .args([language, target])
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(EXAMPLE_TIMEOUT, example).await??;
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{language}:\n{stdout}{stderr}");
        for words in ["ordered ", "refused: ", "done"] {
            assert!(
                stdout.contains(words),
                "{language} lacks {words}:\n{stdout}{stderr}"
            );
        }
    }
    Ok(())
}

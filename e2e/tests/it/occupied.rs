//! A directory or a port that is taken: a message that says so, and a process that ends.

use souk_e2e::process::Process;
use souk_e2e::suite::{Layout, Suite};

use crate::SOUK;

fn arguments(listen: &str, data: &str) -> Vec<String> {
    ["serve", "--listen", listen, "--data", data]
        .map(str::to_owned)
        .to_vec()
}

#[tokio::test]
async fn a_second_process_on_the_same_directory_is_refused_with_a_clear_message() -> anyhow::Result<()> {
    let suite = Suite::start(SOUK, Layout::OneProcess).await?;
    let data = suite.directory().display().to_string();
    let ended = Process::run_to_end(SOUK, &arguments("127.0.0.1:0", &data), &[]).await?;
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains(&data) && ended.stderr.contains("in use"),
        "{}",
        ended.stderr
    );
    // The first one isn't harmed.
    suite
        .orders()?
        .get_order(souk_proto::order::v1::GetOrderRequest::default())
        .await
        .expect_err("an empty id");
    Ok(())
}

#[tokio::test]
async fn a_port_in_use_is_a_clear_message() -> anyhow::Result<()> {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = taken.local_addr()?.to_string();
    let data = tempfile::tempdir()?;
    let ended = Process::run_to_end(
        SOUK,
        &arguments(&address, &data.path().display().to_string()),
        &[],
    )
    .await?;
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains(&address) && ended.stderr.contains("in use"),
        "{}",
        ended.stderr
    );
    Ok(())
}

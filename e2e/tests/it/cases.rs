//! Every case of `e2e/cases`, through the gateway.

use std::path::Path;

use souk_e2e::cases::Case;
use souk_e2e::collector::Collector;
use souk_e2e::suite::{Layout, Plan};

use crate::SOUK;

/// Cases fewer than these were lost on the way.
const LEAST: usize = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_is_as_its_file_says() -> anyhow::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let cases = Case::all(&folder)?;
    assert!(cases.len() >= LEAST, "{} cases", cases.len());
    let collector = Collector::start().await?;
    let suite = Plan::new(SOUK, Layout::SeveralProcesses)
        .traced(&collector)
        .start()
        .await?;
    let channel = suite.channel()?;
    let only = std::env::var("SOUK_CASE").ok();
    let mut failed = Vec::new();
    for (name, case) in &cases {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        match case.run(name, &channel, &collector).await {
            Ok(()) => println!("{name}: {}", case.what),
            Err(error) => failed.push(format!("{error:?}")),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    Ok(())
}

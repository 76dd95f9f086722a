//! Huge pages of memory are for processes with large data: others begin, and stay, without them. Linux alone has them.

#![cfg(target_os = "linux")]

use std::process::Command;

use souk_e2e::data::{self, SeededRandom};
use souk_e2e::suite::{GATEWAY, Layout, Plan, Suite};
use souk_proto::search::v1::Search;
use souk_proto::shop::v1::{BatchCreateShopsRequest, SearchShopsRequest};

use crate::SOUK;

/// The order in which [`on`] tells.
const PROCESSES: [&str; 4] = ["order", "shop", "media", GATEWAY];

/// Whether each process may have huge pages.
fn on(suite: &Suite) -> anyhow::Result<[bool; 4]> {
    let mut on = [false; 4];
    for (on, name) in on.iter_mut().zip(PROCESSES) {
        *on = suite.process(name)?.status("THP_enabled")? == "1";
    }
    Ok(on)
}

/// Whether the processes that this one starts have the choice: somebody may have decided for all of them.
fn is_ours_to_choose() -> anyhow::Result<bool> {
    let own = Command::new("grep")
        .args(["THP_enabled", "/proc/self/status"])
        .output()?;
    let own = String::from_utf8(own.stdout)?;
    Ok(own.trim_end().ends_with('1'))
}

#[tokio::test]
async fn who_holds_much_gets_them_and_nobody_else() -> anyhow::Result<()> {
    if !is_ours_to_choose()? {
        println!("NOT CHECKED: huge pages are decided about already");
        return Ok(());
    }
    let setting = "engine.huge_pages_from=20";
    let plan = Plan::new(SOUK, Layout::SeveralProcesses).setting("shop", setting);
    let mut suite = plan.start().await?;
    assert_eq!(on(&suite)?, [false; 4], "empty");
    let mut random = SeededRandom::new(1);
    for (shops, much) in [(0..19, false), (19..20, true)] {
        let batch = BatchCreateShopsRequest {
            shops: shops.map(|number| data::shop(number, &mut random)).collect(),
            ..BatchCreateShopsRequest::default()
        };
        let min_sequence = suite
            .shops()?
            .batch_create_shops(batch)
            .await?
            .into_inner()
            .sequence;
        let search = Search {
            min_sequence,
            ..Search::default()
        };
        let request = SearchShopsRequest { search: Some(search) };
        suite.shops()?.search_shops(request).await?;
        assert_eq!(on(&suite)?, [false, much, false, false]);
    }
    // What is there already counts as soon as it is opened.
    suite.stop().await?;
    suite.restart().await?;
    suite.wait_until_serving().await?;
    assert_eq!(on(&suite)?, [false, true, false, false], "opened");
    suite.stop().await
}

#[tokio::test]
async fn who_wants_them_from_the_start_has_them() -> anyhow::Result<()> {
    if !is_ours_to_choose()? {
        return Ok(());
    }
    let setting = "engine.huge_pages_from=0";
    let plan = Plan::new(SOUK, Layout::SeveralProcesses).setting("shop", setting);
    let mut suite = plan.start().await?;
    assert_eq!(on(&suite)?, [false, true, false, false]);
    suite.stop().await
}

//! A disk that is full and becomes free again, and one that fails, while the process lives: writes are refused, calls are
//! answered as far as they can be, health and errors say what is wrong, and what can pass passes without a restart.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use souk_e2e::data::{self, SeededRandom};
use souk_e2e::faults::interposer::{DiskFault, Interposer};
use souk_e2e::log::Log;
use souk_e2e::rejection::Rejection;
use souk_e2e::suite::{Layout, Plan, Suite};
use souk_proto::search::v1 as pb;
use souk_proto::shop::v1::{CreateShopRequest, SearchShopsRequest};
use tonic::{Code, Status};
use tonic_health::pb::health_check_response::ServingStatus;

use crate::SOUK;

/// Size of the file system: a journal of the store alone takes up to 64 MiB.
const SIZE_MIB: u64 = 256;
const RESERVE: u64 = 32 << 20;
/// What comes by itself comes within that.
const WITHIN: Duration = Duration::from_secs(30);

/// A file system in memory, mounted where an interposer has its data.
struct Mount(PathBuf);

impl Mount {
    /// `None` without root, which it says.
    fn new(directory: PathBuf) -> Option<Self> {
        let size = format!("size={SIZE_MIB}m");
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(&directory)
            .output();
        match mount {
            Ok(output) if output.status.success() => Some(Self(directory)),
            other => {
                println!("NOT CHECKED: mounting a file system takes root on Linux: {other:?}");
                None
            }
        }
    }

    fn free(&self) -> anyhow::Result<u64> {
        let output = Command::new("df")
            .args(["--output=avail", "-B1"])
            .arg(&self.0)
            .output()?;
        let text = String::from_utf8(output.stdout)?;
        let free = text.lines().last().context("df says nothing")?;
        Ok(free.trim().parse()?)
    }

    /// Leaves so many bytes free; the file that takes the others.
    fn fill(&self, left: u64) -> anyhow::Result<PathBuf> {
        let filler = self.0.join("filler");
        let bytes = vec![1; usize::try_from(self.free()?.saturating_sub(left))?];
        std::fs::write(&filler, bytes)?;
        Ok(filler)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

async fn create(suite: &Suite, number: u64) -> Result<i64, Status> {
    let mut shops = suite
        .shops()
        .map_err(|error| Status::internal(error.to_string()))?;
    let shop = Some(data::shop(number, &mut SeededRandom::new(number)));
    let request = CreateShopRequest {
        shop,
        ..Default::default()
    };
    Ok(shops.create_shop(request).await?.into_inner().sequence)
}

/// How many shops a search finds that sees a write.
async fn count(suite: &Suite, min_sequence: i64) -> Result<i64, Status> {
    let mut shops = suite
        .shops()
        .map_err(|error| Status::internal(error.to_string()))?;
    let search = pb::Search {
        min_sequence,
        page_size: 1,
        total: Some(pb::TotalRequest {
            kind: Some(pb::total_request::Kind::Exact(true)),
        }),
        ..Default::default()
    };
    let request = SearchShopsRequest { search: Some(search) };
    let answer = shops.search_shops(request).await?.into_inner();
    Ok(answer.total.map_or(-1, |total| total.value))
}

async fn comes<T>(what: &str, future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let ended = tokio::time::timeout(WITHIN, future).await;
    ended.with_context(|| format!("{what} doesn't come by itself"))?
}

fn id_of(process: &souk_e2e::process::Process) -> anyhow::Result<String> {
    process.status("Pid")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_that_becomes_free_is_over_without_a_restart() -> anyhow::Result<()> {
    let Some(interposer) = Interposer::new(DiskFault::FullForIndexes)? else {
        return Ok(());
    };
    let Some(mount) = Mount::new(interposer.data()) else {
        return Ok(());
    };
    let reserve = format!("engine.reserve_bytes={RESERVE}");
    let plan = Plan::new(SOUK, Layout::SeveralProcesses)
        .interposed("shop", &interposer)
        .setting("shop", &reserve);
    let suite = plan.start().await?;
    let process = id_of(suite.process("shop")?)?;
    let first = create(&suite, 0).await?;
    assert_eq!(count(&suite, first).await?, 1);

    // Something else takes the room: the indexes get none, the store keeps what it needs to end what it took.
    interposer.set_failing(true)?;
    let filler = mount.fill(RESERVE / 8)?;
    let (mut taken, mut last) = (1, first);
    let refused = loop {
        match create(&suite, taken).await {
            Ok(sequence) => (taken, last) = (taken + 1, sequence),
            Err(status) => break Rejection::of(&status)?,
        }
    };
    assert_eq!(
        (refused.code, refused.reason.as_str()),
        (Code::ResourceExhausted, "DISK_FULL")
    );
    println!("{taken} shops before the refusal");
    comes(
        "a health that says so",
        suite.wait_until(ServingStatus::NotServing),
    )
    .await?;
    let stale = count(&suite, 0).await?;
    assert!((1..=i64::try_from(taken)?).contains(&stale), "{stale} of {taken}");
    assert!(taken > 1, "nothing was written that the index lacks");
    let status = count(&suite, last).await.expect_err("the index can't have it");
    let rejection = Rejection::of(&status)?;
    assert_eq!(
        (rejection.code, rejection.reason.as_str()),
        (Code::Unavailable, "INDEX_STALLED")
    );
    assert!(rejection.has_retry_info, "{status:?}");

    std::fs::remove_file(filler)?;
    interposer.set_failing(false)?;
    comes("health", suite.wait_until_serving()).await?;
    let written = comes("a write that is taken", async {
        loop {
            match create(&suite, 1_000_000).await {
                Ok(sequence) => return anyhow::Ok(sequence),
                Err(status) => assert_eq!(Rejection::of(&status)?.reason, "DISK_FULL", "{status:?}"),
            }
        }
    })
    .await?;
    assert_eq!(count(&suite, written).await?, i64::try_from(taken)? + 1);
    assert_eq!(id_of(suite.process("shop")?)?, process, "nobody started it again");
    Ok(())
}

/// Writes end with a failed fsync, until a restart; reads and searches don't, not even when indexes are to be checkpointed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_failed_sync_searches_go_on_until_the_restart() -> anyhow::Result<()> {
    let Some(interposer) = Interposer::new(DiskFault::FailingSync)? else {
        return Ok(());
    };
    let log = Log::default();
    let plan = Plan::new(SOUK, Layout::SeveralProcesses)
        .heard(&log)
        .linked()
        .interposed("shop", &interposer);
    let mut suite = plan.start().await?;
    let first = create(&suite, 0).await?;
    assert_eq!(count(&suite, first).await?, 1);
    interposer.set_failing(true)?;
    let status = create(&suite, 1).await.expect_err("its sync fails");
    assert_eq!(Rejection::of(&status)?.code, Code::Unavailable, "{status:?}");
    // The checkpoint after which a store that works could trim its log.
    log.wait_for(|line| line.process == "shop" && line.message.contains("the log is kept for it"))
        .await?;
    assert_eq!(count(&suite, first).await?, 1);
    let status = suite.process("shop")?.status("Pid");
    assert!(status.is_ok(), "{status:?}");
    // It ends in time, though there is nobody who would take its positions.
    let process = suite.take_process("shop")?;
    process.terminate().await?;
    process.wait().await?;
    interposer.set_failing(false)?;
    suite.start_process("shop").await?;
    suite.wait_until_serving().await?;
    let written = create(&suite, 2).await?;
    assert!((2..=3).contains(&count(&suite, written).await?));
    Ok(())
}

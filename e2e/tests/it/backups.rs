//! A suite whose disk is lost: what was backed up answers as before, and nothing else is taken for a backup.

use std::fs;
use std::path::{Path, PathBuf};

use souk_e2e::data::{self, SeededRandom};
use souk_e2e::process::{Ended, Process};
use souk_proto::media::v1::media_service_client::MediaServiceClient;
use souk_proto::media::v1::{BatchCreateMediaRequest, SearchMediaRequest};
use souk_proto::order::v1::SearchOrdersRequest;
use souk_proto::order::v1::order_service_client::OrderServiceClient;
use souk_proto::search::v1::{
    MatchQuery, PrimaryKeySort, Query, Search, Sort, TotalRequest, query, sort, total_request,
};
use souk_proto::shop::v1::SearchShopsRequest;
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::{SOUK, seed};

fn arguments(line: &str, folders: &[(&str, &Path)]) -> Vec<String> {
    let mut arguments: Vec<_> = line.split(' ').map(str::to_owned).collect();
    for (flag, folder) in folders {
        arguments.extend([(*flag).to_owned(), folder.display().to_string()]);
    }
    arguments
}

async fn run(line: &str, folders: &[(&str, &Path)]) -> anyhow::Result<Ended> {
    Process::run_to_end(SOUK, &arguments(line, folders), &[]).await
}

async fn succeed(line: &str, folders: &[(&str, &Path)]) -> anyhow::Result<()> {
    let ended = run(line, folders).await?;
    anyhow::ensure!(ended.status.success(), "souk {line}: {}", ended.stderr);
    Ok(())
}

fn channel(process: &Process) -> anyhow::Result<Channel> {
    Ok(Endpoint::from_shared(format!("http://{}", process.address()))?.connect_lazy())
}

async fn serving(channel: Channel) -> anyhow::Result<()> {
    let everything = HealthCheckRequest::default();
    let mut states = HealthClient::new(channel).watch(everything).await?.into_inner();
    while let Some(state) = states.message().await? {
        if state.status() == ServingStatus::Serving {
            return Ok(());
        }
    }
    anyhow::bail!("it stopped before it served")
}

/// Searches whose answers depend on the rows alone.
fn searches(text: &str) -> Vec<Option<Search>> {
    let words = query::Kind::Match(MatchQuery {
        field: text.to_owned(),
        text: "coffee 手机".to_owned(),
        ..MatchQuery::default()
    });
    [None, Some(Query { kind: Some(words) })]
        .into_iter()
        .map(|query| {
            Some(Search {
                query,
                sort: vec![Sort {
                    kind: Some(sort::Kind::PrimaryKey(PrimaryKeySort::default())),
                }],
                page_size: 1_000,
                total: Some(TotalRequest {
                    kind: Some(total_request::Kind::Exact(true)),
                }),
                ..Search::default()
            })
        })
        .collect()
}

/// What every service answers, without the sequence.
/// Sequences may go on, and tokens of pages are of one history: all that is alike is whether there is a next page.
fn unlike(token: &str) -> (i64, String) {
    (0, if token.is_empty() { "" } else { "the next" }.to_owned())
}

async fn answers(channel: Channel) -> anyhow::Result<Vec<String>> {
    let mut all = Vec::new();
    let mut orders = OrderServiceClient::new(channel.clone());
    for search in searches("product_name") {
        let mut answer = orders
            .search_orders(SearchOrdersRequest { search })
            .await?
            .into_inner();
        (answer.sequence, answer.next_page_token) = unlike(&answer.next_page_token);
        all.push(format!("{answer:?}"));
    }
    let mut shops = ShopServiceClient::new(channel.clone());
    for search in searches("name") {
        let mut answer = shops
            .search_shops(SearchShopsRequest { search })
            .await?
            .into_inner();
        (answer.sequence, answer.next_page_token) = unlike(&answer.next_page_token);
        all.push(format!("{answer:?}"));
    }
    let mut media = MediaServiceClient::new(channel);
    for search in searches("title") {
        let mut answer = media
            .search_media(SearchMediaRequest { search })
            .await?
            .into_inner();
        (answer.sequence, answer.next_page_token) = unlike(&answer.next_page_token);
        all.push(format!("{answer:?}"));
    }
    Ok(all)
}

fn whole_backups(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut backups: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|path| path.join("MANIFEST").is_file() && path.extension().is_none_or(|end| end != "partial"))
        .collect();
    backups.sort();
    backups
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suite_whose_disk_is_lost_answers_the_same_after_a_restore() -> anyhow::Result<()> {
    let mut random = SeededRandom::new(seed("backups"));
    let directory = tempfile::tempdir()?;
    let [data, backups, restored] = ["data", "backups", "restored"].map(|name| directory.path().join(name));
    let line = "demo --listen 127.0.0.1:0 --size small --orders 400 --shops 300 --media 300 \
                --set engine.backup.every=1s --set";
    let mut start = arguments(line, &[]);
    start.push(format!("engine.backup.to={}", backups.display()));
    start.extend(["--data".to_owned(), data.display().to_string()]);
    let process = Process::start(SOUK, &start, &[], None).await?;

    // Only the process itself can read its stores.
    let locked = run("backup", &[("--data", &data), ("--to", &backups)]).await?;
    assert!(!locked.status.success());
    assert!(locked.stderr.contains("--backup-to"), "{}", locked.stderr);

    // Writes go on until a backup was added to another.
    let mut media = MediaServiceClient::new(channel(&process)?);
    let (mut next, mut sequence) = (1_000_000, 0);
    let incremental = |path: &PathBuf| path.to_string_lossy().ends_with("-incremental");
    while !whole_backups(&backups.join("media")).iter().any(incremental) {
        let items = (0..20).map(|_| {
            next += 1;
            data::media(next, &mut random)
        });
        let request = BatchCreateMediaRequest {
            media: items.collect(),
            ..Default::default()
        };
        sequence = media.batch_create_media(request).await?.into_inner().sequence;
    }
    let seen = SearchMediaRequest {
        search: Some(Search {
            min_sequence: sequence,
            ..Search::default()
        }),
    };
    media.search_media(seen).await?;
    let expected = answers(channel(&process)?).await?;
    process.kill().await?;

    // Whatever is a backup is whole; the newest can be added to from the killed process's data.
    succeed("check", &[("--backups", &backups)]).await?;
    succeed("check", &[("--data", &data)]).await?;
    succeed("backup", &[("--data", &data), ("--to", &backups)]).await?;
    succeed("stats --json", &[("--data", &data)]).await?;
    fs::remove_dir_all(&data)?;
    succeed("restore", &[("--from", &backups), ("--data", &restored)]).await?;
    succeed("check", &[("--data", &restored)]).await?;

    let serve = arguments("serve --listen 127.0.0.1:0", &[("--data", &restored)]);
    let process = Process::start(SOUK, &serve, &[], None).await?;
    serving(channel(&process)?).await?;
    let found = answers(channel(&process)?).await?;
    for (expected, found) in expected.iter().zip(&found) {
        assert!(expected == found, "{expected}\n{found}");
    }
    process.stop().await?;

    // It doesn't go over data, nor from a backup with another byte.
    let over = run("restore", &[("--from", &backups), ("--data", &restored)]).await?;
    assert!(over.stderr.contains("holds data already"), "{}", over.stderr);
    let order = backups.join("order");
    let last = whole_backups(&order).pop().expect("a backup");
    for entry in fs::read_dir(&last)? {
        let path = entry?.path();
        let whole = fs::read(&path)?;
        let mut damaged = whole.clone();
        let at = random.below(damaged.len() as u64) as usize;
        damaged[at] ^= 1;
        fs::write(&path, damaged)?;
        let target = directory.path().join("refused");
        let refused = run("restore", &[("--from", &last), ("--data", &target)]).await?;
        assert!(!refused.status.success(), "a flip at {at} of {path:?}");
        assert!(refused.stderr.contains("advice"), "{}", refused.stderr);
        assert!(!target.join("store").exists());
        fs::write(&path, whole)?;
    }
    succeed("check", &[("--backups", &order)]).await
}

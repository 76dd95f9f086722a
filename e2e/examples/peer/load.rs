//! Loads the rows through the services' batch calls in this process: JSON lines on two threads, until all is searchable
//! and on the disk.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use anyhow::Context as _;
use parking_lot::Mutex;
use serde_json::json;
use souk_api::hosting::Service;
use souk_api::wire::WRITE_BATCH_MAX;
use souk_meta_svc::media::MediaDomain;
use souk_meta_svc::{MediaApi, MediaServices};
use souk_order_svc::order::OrderDomain;
use souk_order_svc::{OrderApi, OrderServices};
use souk_proto::media::v1::media_service_server::MediaService as _;
use souk_proto::media::v1::{BatchCreateMediaRequest, SearchMediaRequest};
use souk_proto::order::v1::order_service_server::OrderService as _;
use souk_proto::order::v1::{BatchCreateOrdersRequest, SearchOrdersRequest};
use souk_proto::search::v1::Total;
use souk_proto::shop::v1::shop_service_server::ShopService as _;
use souk_proto::shop::v1::{BatchCreateShopsRequest, SearchShopsRequest};
use souk_shop_svc::shop::ShopDomain;
use souk_shop_svc::{ShopApi, ShopServices};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tonic::{Request, Status};

use super::in_process::{Served, media, orders, shops};
use super::rows::{MediaRow, OrderRow, ShopRow};
use super::{count, setting, words};

/// Threads that read rows.
const THREADS: usize = 2;
/// Batches that a thread has under way: one waits for the disk while the others are made.
const UNDER_WAY: usize = 4;
/// The name in the lines about a load.
const PEER: &str = "souk-engine";

/// What answers the batch call of a kind.
trait Batches: Send + Sync + 'static {
    /// The name of the file without its end.
    const KIND: &'static str;
    /// The folder of the service.
    const FOLDER: &'static str;
    type Batch: Send + 'static;

    fn read(lines: &[String]) -> serde_json::Result<Self::Batch>;

    /// Creates all; the sequence of the write.
    fn create(&self, batch: Self::Batch) -> impl Future<Output = Result<i64, Status>> + Send;

    /// How many searches see, once they see a write.
    fn seen(&self, sequence: i64) -> impl Future<Output = Result<Option<Total>, Status>> + Send;
}

impl Batches for OrderApi<OrderDomain> {
    const KIND: &'static str = "orders";
    const FOLDER: &'static str = OrderServices::FOLDER;
    type Batch = BatchCreateOrdersRequest;

    fn read(lines: &[String]) -> serde_json::Result<Self::Batch> {
        let row = |line: &String| Ok(serde_json::from_str::<OrderRow>(line)?.into());
        Ok(BatchCreateOrdersRequest {
            orders: lines.iter().map(row).collect::<serde_json::Result<_>>()?,
            omit_resources: true,
            ..Default::default()
        })
    }

    async fn create(&self, batch: Self::Batch) -> Result<i64, Status> {
        Ok(self
            .batch_create_orders(Request::new(batch))
            .await?
            .into_inner()
            .sequence)
    }

    async fn seen(&self, sequence: i64) -> Result<Option<Total>, Status> {
        let search = count(sequence);
        let found = self
            .search_orders(Request::new(SearchOrdersRequest { search }))
            .await?;
        Ok(found.into_inner().total)
    }
}

impl Batches for ShopApi<ShopDomain> {
    const KIND: &'static str = "shops";
    const FOLDER: &'static str = ShopServices::FOLDER;
    type Batch = BatchCreateShopsRequest;

    fn read(lines: &[String]) -> serde_json::Result<Self::Batch> {
        let row = |line: &String| Ok(serde_json::from_str::<ShopRow>(line)?.into());
        Ok(BatchCreateShopsRequest {
            shops: lines.iter().map(row).collect::<serde_json::Result<_>>()?,
            omit_resources: true,
            ..Default::default()
        })
    }

    async fn create(&self, batch: Self::Batch) -> Result<i64, Status> {
        Ok(self
            .batch_create_shops(Request::new(batch))
            .await?
            .into_inner()
            .sequence)
    }

    async fn seen(&self, sequence: i64) -> Result<Option<Total>, Status> {
        let search = count(sequence);
        let found = self
            .search_shops(Request::new(SearchShopsRequest { search }))
            .await?;
        Ok(found.into_inner().total)
    }
}

impl Batches for MediaApi<MediaDomain> {
    const KIND: &'static str = "media";
    const FOLDER: &'static str = MediaServices::FOLDER;
    type Batch = BatchCreateMediaRequest;

    fn read(lines: &[String]) -> serde_json::Result<Self::Batch> {
        let row = |line: &String| Ok(serde_json::from_str::<MediaRow>(line)?.into());
        Ok(BatchCreateMediaRequest {
            media: lines.iter().map(row).collect::<serde_json::Result<_>>()?,
            omit_resources: true,
            ..Default::default()
        })
    }

    async fn create(&self, batch: Self::Batch) -> Result<i64, Status> {
        Ok(self
            .batch_create_media(Request::new(batch))
            .await?
            .into_inner()
            .sequence)
    }

    async fn seen(&self, sequence: i64) -> Result<Option<Total>, Status> {
        let search = count(sequence);
        let found = self
            .search_media(Request::new(SearchMediaRequest { search }))
            .await?;
        Ok(found.into_inner().total)
    }
}

/// Loads the three files into databases of `folder`, and prints a line about each.
pub(crate) fn all(data: &Path, folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder)?;
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let cut = async || {
        let orders = orders(folder).await?;
        orders.redesign(words::INDEX, &words::changes()).await?;
        Ok(orders)
    };
    one(&runtime, data, folder, || runtime.block_on(cut()))?;
    one(&runtime, data, folder, || runtime.block_on(shops(folder)))?;
    one(&runtime, data, folder, || runtime.block_on(media(folder)))
}

fn one<A: Batches>(
    runtime: &Runtime,
    data: &Path,
    folder: &Path,
    open: impl Fn() -> anyhow::Result<Served<A>>,
) -> anyhow::Result<()> {
    let kinds = setting("KINDS", String::new())?;
    if !kinds.is_empty() && !kinds.split(',').any(|kind| kind == A::KIND) {
        return Ok(());
    }
    let began = Instant::now();
    let served = Arc::new(open()?);
    let lines = BufReader::new(File::open(data.join(format!("{}.ndjson", A::KIND)))?).lines();
    let lines = Mutex::new(lines);
    let (rows, last) = thread::scope(|scope| {
        let feeders: Vec<_> = (0..THREADS)
            .map(|_| scope.spawn(|| runtime.block_on(feed(&served, &lines))))
            .collect();
        let mut all = (0, 0);
        for feeder in feeders {
            let (rows, sequence) = feeder
                .join()
                .map_err(|_| anyhow::anyhow!("a thread panicked"))??;
            all = (all.0 + rows, sequence.max(all.1));
        }
        anyhow::Ok(all)
    })?;
    let written = began.elapsed();
    let seen = runtime.block_on(served.api.seen(last))?.unwrap_or_default();
    anyhow::ensure!(seen.value == rows, "searches see {} of {rows}", seen.value);
    let searchable = began.elapsed();
    runtime.block_on(served.close())?;
    drop(served);
    let seconds = began.elapsed().as_secs_f64();
    // Questions meet an index that has come to rest.
    let served = open()?;
    runtime.block_on(served.merged(A::KIND))?;
    runtime.block_on(served.close())?;
    let merged = began.elapsed();
    eprintln!(
        "{}: written after {written:.2?}, searchable after {searchable:.2?}, on the disk after {seconds:.2}s, merged after {merged:.2?}",
        A::KIND
    );
    let of = |part: &str| bytes(&folder.join(A::FOLDER).join(part));
    let (all, index) = (of("")?, of("index")?);
    let per_row = |bytes: u64| (bytes as f64 / rows as f64).round();
    let line = json!({
        "peer": PEER, "kind": A::KIND, "rows": rows, "seconds": (seconds * 10.0).round() / 10.0,
        "rows_per_s": (rows as f64 / seconds).round() as u64, "bytes": all, "bytes_per_row": per_row(all) as u64,
        "index_bytes": index, "index_bytes_per_row": per_row(index) as u64,
    });
    Ok(writeln!(std::io::stdout(), "{line}")?)
}

/// Batches of lines, until there are no more: how many rows, and the sequence of the last write.
async fn feed<A: Batches>(
    served: &Arc<Served<A>>,
    lines: &Mutex<Lines<BufReader<File>>>,
) -> anyhow::Result<(i64, i64)> {
    let mut under_way = JoinSet::new();
    let (mut rows, mut last) = (0, 0);
    loop {
        let taken: Vec<String> = lines
            .lock()
            .by_ref()
            .take(WRITE_BATCH_MAX)
            .collect::<std::io::Result<_>>()?;
        let over = taken.is_empty();
        if !over {
            rows += taken.len() as i64;
            let batch = A::read(&taken).context("a row can't be read")?;
            let served = Arc::clone(served);
            under_way.spawn(async move { served.api.create(batch).await });
        }
        while under_way.len() >= if over { 1 } else { UNDER_WAY } {
            let Some(written) = under_way.join_next().await else {
                break;
            };
            last = last.max(written??);
        }
        if over {
            return Ok((rows, last));
        }
    }
}

/// Bytes that a folder takes on the disk.
fn bytes(folder: &Path) -> std::io::Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let about = entry.metadata()?;
        sum += if about.is_dir() {
            bytes(&entry.path())?
        } else {
            about.blocks() * 512
        };
    }
    Ok(sum)
}

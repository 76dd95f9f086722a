//! The benchmark's steps on Souk's store: through `souk_storage`, as its users do, and scans once more on `souk_kv` below it.

use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use souk_kv::{FjallKv, FjallOptions, Kv as _, Scan, Space};
use souk_storage::{
    Condition, Database, DatabaseOptions, Direction, Durability, KeyBound, KeyKind, PrimaryKey, RangeRequest,
    RowOperation, Snapshot, Table, TableSchema, Value, WriteBatch, limits,
};

use super::measure::{self, BenchReport, Latencies};
use super::workload::{self, Contents};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Bytes that the raw appends write before each sync: about those of one small commit, and of a group of many.
const RAW_BLOCKS: [usize; 2] = [1_000, 100_000];
/// Length of the raw appends of one size.
const RAW_TIME: Duration = Duration::from_secs(1);

/// The parameters of all steps.
#[derive(Debug, Clone)]
pub struct StorageBenchPlan {
    /// An existing folder, or one to be created, for the data.
    pub data: PathBuf,
    /// Rows to load and read.
    pub rows: u64,
    /// Numbers of concurrent clients of the conditional puts, one round each.
    pub clients: Vec<u64>,
    /// Length of a round.
    pub seconds: u64,
}

/// Conditional puts of rows of 400 bytes, each durable and in the change log; a round for each number of clients.
pub async fn puts(plan: &StorageBenchPlan, report: &mut BenchReport<impl Write>) -> Result<()> {
    std::fs::create_dir_all(&plan.data)?;
    for bytes in RAW_BLOCKS {
        let latencies = measure::raw_sync(&plan.data, bytes, RAW_TIME)?;
        let step = format!("raw append of {bytes} B + fdatasync");
        report.rate(&step, latencies.count(), RAW_TIME, "/s", &latencies.to_string())?;
    }
    let directory = plan.data.join("souk-puts");
    let database = Database::open(&directory, options()).await?;
    let table = table(&database).await?;
    let contents = Arc::new(Contents::default());
    // The revision of each row is known to the one client that writes it.
    let mut revisions: Vec<u64> = vec![0; usize::try_from(workload::PUT_ROWS)?];
    for &clients in &plan.clients {
        let end = Instant::now() + Duration::from_secs(plan.seconds);
        let (start, busy) = (Instant::now(), measure::processor_seconds());
        let tasks: Vec<_> = (0..clients)
            .map(|client| {
                let own = revisions.iter().skip(client as usize).step_by(clients as usize);
                let own: Vec<u64> = own.copied().collect();
                let (database, table, contents) = (database.clone(), table.clone(), contents.clone());
                tokio::spawn(put_until(database, table, contents, (client, clients), own, end))
            })
            .collect();
        let mut latencies = Latencies::default();
        for (client, task) in tasks.into_iter().enumerate() {
            let (own, times) = task.await??;
            latencies.extend(times);
            let rows = revisions.iter_mut().skip(client).step_by(clients as usize);
            rows.zip(own).for_each(|(known, revision)| *known = revision);
        }
        let time = start.elapsed();
        let each = (measure::processor_seconds() - busy) / latencies.count() as f64 * 1e6;
        let rest = format!("{latencies}  cpu {each:.1} us");
        let step = format!("durable put if, {clients} clients");
        report.rate(&step, latencies.count(), time, "/s", &rest)?;
    }
    database.close().await?;
    drop((database, table));
    Ok(std::fs::remove_dir_all(directory)?)
}

/// One client: puts rows of its share, each on the condition that it is as this client left it.
async fn put_until(
    database: Database,
    table: Table,
    contents: Arc<Contents>,
    (client, clients): (u64, u64),
    mut revisions: Vec<u64>,
    end: Instant,
) -> Result<(Vec<u64>, Latencies)> {
    let mut random = fastrand::Rng::with_seed(client);
    let mut latencies = Latencies::default();
    while Instant::now() < end {
        let place = random.usize(..revisions.len());
        let row = client + place as u64 * clients;
        let known = revisions.get_mut(place).ok_or("no such row")?;
        let condition = match *known {
            0 => Condition::must_not_exist(),
            revision => Condition::revision(revision),
        };
        let operation = put(&contents, row, workload::PUT_BYTES)?;
        let start = Instant::now();
        let written = database
            .write(WriteBatch::of(&table, operation, condition))
            .await?;
        latencies.since(start);
        *known = written.sequence;
    }
    Ok((revisions, latencies))
}

/// Loads the rows in random order of their keys, then runs maintenance and compaction to their end.
pub async fn load(plan: &StorageBenchPlan, report: &mut BenchReport<impl Write>) -> Result<()> {
    let directory = loaded(plan);
    let database = Database::open(&directory, options()).await?;
    let table = table(&database).await?;
    let contents = Arc::new(Contents::default());
    let (start, busy) = (Instant::now(), measure::processor_seconds());
    let tasks: Vec<_> = (0..workload::LOADERS)
        .map(|loader| {
            let (database, table, contents) = (database.clone(), table.clone(), contents.clone());
            tokio::spawn(load_share(database, table, contents, plan.rows, loader))
        })
        .collect();
    let mut latencies = Latencies::default();
    for task in tasks {
        latencies.extend(task.await??);
    }
    let time = start.elapsed();
    let cpu = measure::processor_seconds() - busy;
    let rest = format!(
        "{:.1} s  cpu {cpu:.1} s  batch of 200: {latencies}",
        time.as_secs_f64()
    );
    report.rate("load, row + log", plan.rows, time, "rows/s", &rest)?;
    database.maintain().await?;
    database.quiesce().await?;
    let cpu = measure::processor_seconds() - busy;
    let rest = format!(
        "until settled; cpu {cpu:.1} s  peak memory {} MB",
        measure::peak_memory() >> 20
    );
    report.rate(
        "load, row + log, settled",
        plan.rows,
        start.elapsed(),
        "rows/s",
        &rest,
    )?;
    let bytes = measure::disk_bytes(&directory)? as f64 / 1e6;
    report.line("disk, row + log", bytes, "MB", "")?;
    Ok(database.close().await?)
}

async fn load_share(
    database: Database,
    table: Table,
    contents: Arc<Contents>,
    rows: u64,
    loader: u64,
) -> Result<Latencies> {
    let mut latencies = Latencies::default();
    for batch in workload::share(rows.div_ceil(workload::BATCH_ROWS), loader, workload::LOADERS) {
        let first = batch * workload::BATCH_ROWS;
        let mut writes = WriteBatch::new().durability(Durability::Buffered);
        for row in first..rows.min(first + workload::BATCH_ROWS) {
            let operation = put(&contents, row, workload::LOADED_BYTES)?;
            writes = writes.write(&table, operation, Condition::none());
        }
        let start = Instant::now();
        database.write(writes).await?;
        latencies.since(start);
    }
    Ok(latencies)
}

/// Point reads, ranges, and scans of all that was loaded. The files leave the page cache before the store is opened and before the cold point
/// reads: the cold scans find there what these have read, and the backward one what fits of the forward one.
pub async fn reads(plan: &StorageBenchPlan, report: &mut BenchReport<impl Write>) -> Result<()> {
    let directory = loaded(plan);
    measure::evict(&directory)?;
    let start = Instant::now();
    let database = Database::open(&directory, options()).await?;
    let table = table(&database).await?;
    report.line("open, cold", start.elapsed().as_secs_f64() * 1e3, "ms", "")?;
    measure::evict(&directory)?;
    let snapshot = database.snapshot().await?;
    gets(
        &snapshot,
        &table,
        plan.rows,
        "get, cold",
        workload::COLD_GETS,
        report,
    )
    .await?;
    for state in ["cold", "warm"] {
        for direction in [Direction::Forward, Direction::Backward] {
            scan(&snapshot, &table, plan.rows, direction, state, report).await?;
        }
    }
    gets(
        &snapshot,
        &table,
        plan.rows,
        "get, warm",
        workload::WARM_GETS,
        report,
    )
    .await?;
    for direction in [Direction::Forward, Direction::Backward] {
        ranges(&snapshot, &table, plan.rows, direction, report).await?;
    }
    drop(snapshot);
    database.close().await?;
    drop((database, table));
    kv_scans(&directory, report).await
}

/// Reads `count` rows by random keys.
async fn gets(
    snapshot: &Snapshot,
    table: &Table,
    rows: u64,
    step: &str,
    count: u64,
    report: &mut BenchReport<impl Write>,
) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(7);
    let mut latencies = Latencies::with_capacity(count as usize);
    let start = Instant::now();
    for _ in 0..count {
        let key = PrimaryKey::string(workload::key(random.u64(..rows)))?;
        let one = Instant::now();
        let found = snapshot.get(table, &key).await?;
        latencies.since(one);
        found.ok_or("a loaded row is missing")?;
    }
    Ok(report.rate(step, count, start.elapsed(), "/s", &latencies.to_string())?)
}

/// Scans the whole table, a page after the other, and checks that all rows are found; `state` is `cold` or `warm`.
async fn scan(
    snapshot: &Snapshot,
    table: &Table,
    rows: u64,
    direction: Direction,
    state: &str,
    report: &mut BenchReport<impl Write>,
) -> Result<()> {
    let (start, mut found) = (Instant::now(), 0);
    let mut request = RangeRequest::all(direction);
    loop {
        let page = snapshot.range(table, &request).await?;
        found += page.rows.len() as u64;
        match page.next {
            Some(next) => request = request.resume(next),
            None => break,
        }
    }
    let step = format!("scan {}, {state}", word(direction));
    report.rate(&step, found, start.elapsed(), "rows/s", "rows decoded, in pages")?;
    if found == rows {
        Ok(())
    } else {
        Err(format!("the scan found {found} of {rows} rows").into())
    }
}

/// Reads short ranges that begin at random keys.
async fn ranges(
    snapshot: &Snapshot,
    table: &Table,
    rows: u64,
    direction: Direction,
    report: &mut BenchReport<impl Write>,
) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(8);
    let mut latencies = Latencies::default();
    let start = Instant::now();
    for _ in 0..workload::RANGES {
        let key = PrimaryKey::string(workload::key(random.u64(..rows)))?;
        let mut request = RangeRequest::all(direction).limit(workload::RANGE_ROWS);
        request.start = KeyBound::Before(key);
        let one = Instant::now();
        snapshot.range(table, &request).await?;
        latencies.since(one);
    }
    let step = format!("range of {} {}", workload::RANGE_ROWS, word(direction));
    Ok(report.rate(
        &step,
        workload::RANGES,
        start.elapsed(),
        "/s",
        &latencies.to_string(),
    )?)
}

/// Scans the rows once more in `souk_kv`, without decoding them.
async fn kv_scans(directory: &Path, report: &mut BenchReport<impl Write>) -> Result<()> {
    let store = FjallKv::open(directory, &options().fjall).await?;
    let snapshot = store.snapshot().await?;
    for direction in [Direction::Forward, Direction::Backward] {
        let (mut low, mut high) = (Bytes::from_static(&[0]), Bytes::from_static(&[0xff]));
        let (start, mut found, mut bytes) = (Instant::now(), 0, 0);
        loop {
            let scan = Scan {
                space: Space::Rows,
                low: low.clone(),
                high: high.clone(),
                direction,
                entries: limits::MAX_SCANNED_ROWS,
                bytes: limits::MAX_SCANNED_BYTES,
            };
            let page = snapshot.scan(scan).await?;
            found += page.entries.len() as u64;
            let sizes = page.entries.iter().map(|(key, value)| key.len() + value.len());
            bytes += sizes.sum::<usize>();
            match (page.next, direction) {
                (None, _) => break,
                (Some(next), Direction::Forward) => low = next,
                // Just after it: the upper end is exclusive.
                (Some(next), Direction::Backward) => high = [&next, &[0][..]].concat().into(),
            }
        }
        let rest = format!(
            "as stored, in pages, {:.0} B a row",
            bytes as f64 / found.max(1) as f64
        );
        let step = format!("scan {}, raw", word(direction));
        report.rate(&step, found, start.elapsed(), "rows/s", &rest)?;
    }
    drop(snapshot);
    Ok(store.close().await?)
}

/// Where the loaded rows are.
pub fn loaded(plan: &StorageBenchPlan) -> PathBuf {
    plan.data.join("souk-loaded")
}

fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "forward",
        Direction::Backward => "backward",
    }
}

fn options() -> DatabaseOptions {
    DatabaseOptions {
        fjall: FjallOptions {
            // A half of it is cache.
            memory_bytes: 2 * workload::CACHE_BYTES as u64,
            ..FjallOptions::default()
        },
        ..DatabaseOptions::default()
    }
}

async fn table(database: &Database) -> Result<Table> {
    let schema = TableSchema::new("rows").key("id", KeyKind::String);
    Ok(database.ensure_table(schema).await?)
}

/// A row that is stored in `bytes`: 63 of them are revision, time, names, types and the small columns.
fn put(contents: &Contents, row: u64, bytes: usize) -> Result<RowOperation> {
    let half = (bytes - 63) / 2;
    let columns = vec![
        (
            "body".into(),
            Value::Binary(Bytes::copy_from_slice(contents.noise(row, half))),
        ),
        ("note".into(), Value::from(contents.text(row, half))),
        ("number".into(), Value::Integer(row.cast_signed())),
        ("state".into(), Value::from("open")),
    ];
    Ok(RowOperation::Put {
        key: PrimaryKey::string(workload::key(row))?,
        columns,
    })
}

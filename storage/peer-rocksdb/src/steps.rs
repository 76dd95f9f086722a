//! The steps, done with RocksDB as far as it goes: no columns, no schema, no decoding; keys and values of the same sizes.

use std::error::Error;
use std::io::{self, Stdout};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::measure::{self, Latencies, Report};
use crate::rocksdb::{Batch, Db, Family};
use crate::workload::{self, Contents};

pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const SETTLE_LIMIT: Duration = Duration::from_secs(240);
/// Times in a row, a tenth of a second apart, that it must be idle.
const SETTLED: u32 = 20;
/// Bytes of a log entry besides its rows: format, sequence, time, trace, count, checksum.
const LOG_HEADER_BYTES: usize = 27;

pub struct Plan {
    pub data: PathBuf,
    pub rows: u64,
    pub clients: Vec<u64>,
    pub seconds: u64,
}

fn report() -> Report<Stdout> {
    Report::new("rocksdb", io::stdout())
}

fn loaded(plan: &Plan) -> PathBuf {
    plan.data.join("rocksdb-loaded")
}

/// Removes what was loaded.
pub fn remove(plan: &Plan) -> Result<()> {
    Ok(std::fs::remove_dir_all(loaded(plan))?)
}

/// The key of a row as our store has it: table, type, text, end.
fn key(row: u64) -> Vec<u8> {
    let mut key = vec![0, 0, 0, 1, 0x10];
    key.extend_from_slice(workload::key(row).as_bytes());
    key.extend_from_slice(&[0, 1]);
    key
}

/// A value of so many bytes that begins with its revision.
fn value(contents: &Contents, row: u64, revision: u64, bytes: usize) -> Vec<u8> {
    let half = (bytes - 8) / 2;
    let mut value = Vec::with_capacity(bytes);
    value.extend_from_slice(&revision.to_be_bytes());
    value.extend_from_slice(contents.noise(row, half));
    value.extend_from_slice(contents.text(row, bytes - 8 - half).as_bytes());
    value
}

fn revision(value: &[u8]) -> u64 {
    value.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// As `souk bench storage --steps puts`. Each client has rows of its own, so that the check needs no lock; RocksDB
/// groups the commits of its threads.
pub fn puts(plan: &Plan) -> Result<()> {
    let mut report = report();
    let directory = plan.data.join("rocksdb-puts");
    let db = Db::open(&directory, workload::CACHE_BYTES)?;
    let (contents, sequence) = (Contents::default(), AtomicU64::new(0));
    let mut revisions = vec![0; workload::PUT_ROWS as usize];
    for &clients in &plan.clients {
        let end = Instant::now() + Duration::from_secs(plan.seconds);
        let (start, busy) = (Instant::now(), measure::processor_seconds());
        let mut latencies = Latencies::default();
        thread::scope(|scope| -> Result<()> {
            let threads: Vec<_> = (0..clients)
                .map(|client| {
                    let own = revisions.iter().skip(client as usize).step_by(clients as usize);
                    let own: Vec<u64> = own.copied().collect();
                    let (db, contents, sequence) = (&db, &contents, &sequence);
                    scope.spawn(move || put_until(db, contents, sequence, (client, clients), own, end))
                })
                .collect();
            for (client, thread) in threads.into_iter().enumerate() {
                let (own, times) = thread.join().map_err(|_| "a client panicked")??;
                latencies.extend(times);
                let rows = revisions.iter_mut().skip(client).step_by(clients as usize);
                rows.zip(own).for_each(|(known, revision)| *known = revision);
            }
            Ok(())
        })?;
        let time = start.elapsed();
        let each = (measure::processor_seconds() - busy) / latencies.count() as f64 * 1e6;
        let rest = format!("{latencies}  cpu {each:.1} us");
        report.rate(
            &format!("durable put if, {clients} clients"),
            latencies.count(),
            time,
            "/s",
            &rest,
        )?;
    }
    drop(db);
    Ok(std::fs::remove_dir_all(directory)?)
}

fn put_until(
    db: &Db,
    contents: &Contents,
    sequence: &AtomicU64,
    (client, clients): (u64, u64),
    mut revisions: Vec<u64>,
    end: Instant,
) -> Result<(Vec<u64>, Latencies)> {
    let mut random = fastrand::Rng::with_seed(client);
    let mut latencies = Latencies::default();
    while Instant::now() < end {
        let place = random.usize(..revisions.len());
        let row = client + place as u64 * clients;
        let start = Instant::now();
        let key = key(row);
        let found = db.get(Family::Rows, &key, revision)?.unwrap_or(0);
        if found != revisions[place] {
            return Err(format!("row {row} is at {found}, not at {}", revisions[place]).into());
        }
        let next = sequence.fetch_add(1, Ordering::Relaxed) + 1;
        let value = value(contents, row, next, workload::PUT_BYTES);
        let mut batch = Batch::new(db);
        batch.put(
            Family::Log,
            &next.to_be_bytes(),
            &entry(&[(key.clone(), value.clone())]),
        );
        batch.put(Family::Rows, &key, &value);
        db.write(batch, true)?;
        latencies.since(start);
        revisions[place] = next;
    }
    Ok((revisions, latencies))
}

/// A log entry of the size ours has.
fn entry(rows: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut entry = vec![0; LOG_HEADER_BYTES];
    for (key, value) in rows {
        entry.extend_from_slice(key);
        entry.extend_from_slice(value);
    }
    entry
}

/// As `souk bench storage --steps load`: the rows alone, or each batch with an entry of the log.
pub fn load(plan: &Plan, log: bool) -> Result<()> {
    let mut report = report();
    let directory = loaded(plan);
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    let db = Db::open(&directory, workload::CACHE_BYTES)?;
    let (contents, sequence) = (Contents::default(), AtomicU64::new(0));
    let (start, busy) = (Instant::now(), measure::processor_seconds());
    let mut latencies = Latencies::default();
    thread::scope(|scope| -> Result<()> {
        let threads: Vec<_> = (0..workload::LOADERS)
            .map(|loader| {
                let (db, contents, sequence) = (&db, &contents, &sequence);
                scope.spawn(move || load_share(db, contents, sequence, plan.rows, loader, log))
            })
            .collect();
        for thread in threads {
            latencies.extend(thread.join().map_err(|_| "a loader panicked")??);
        }
        Ok(())
    })?;
    let (time, cpu) = (start.elapsed(), measure::processor_seconds() - busy);
    let what = if log { "row + log" } else { "row alone" };
    let rest = format!(
        "{:.1} s  cpu {cpu:.1} s  batch of 200: {latencies}",
        time.as_secs_f64()
    );
    report.rate(&format!("load, {what}"), plan.rows, time, "rows/s", &rest)?;
    db.flush()?;
    settle(&db);
    let cpu = measure::processor_seconds() - busy;
    let rest = format!(
        "until settled; cpu {cpu:.1} s  peak memory {} MB",
        measure::peak_memory() >> 20
    );
    report.rate(
        &format!("load, {what}, settled"),
        plan.rows,
        start.elapsed(),
        "rows/s",
        &rest,
    )?;
    drop(db);
    let bytes = measure::disk_bytes(&directory)? as f64 / 1e6;
    Ok(report.line(&format!("disk, {what}"), bytes, "MB", "")?)
}

fn load_share(
    db: &Db,
    contents: &Contents,
    sequence: &AtomicU64,
    rows: u64,
    loader: u64,
    log: bool,
) -> Result<Latencies> {
    let mut latencies = Latencies::default();
    for number in workload::share(rows.div_ceil(workload::BATCH_ROWS), loader, workload::LOADERS) {
        let first = number * workload::BATCH_ROWS;
        let next = sequence.fetch_add(1, Ordering::Relaxed) + 1;
        let rows: Vec<_> = (first..rows.min(first + workload::BATCH_ROWS))
            .map(|row| (key(row), value(contents, row, next, workload::LOADED_BYTES)))
            .collect();
        let start = Instant::now();
        let mut batch = Batch::new(db);
        if log {
            batch.put(Family::Log, &next.to_be_bytes(), &entry(&rows));
        }
        for (key, value) in &rows {
            batch.put(Family::Rows, key, value);
        }
        db.write(batch, false)?;
        latencies.since(start);
    }
    Ok(latencies)
}

fn settle(db: &Db) {
    let (start, mut idle) = (Instant::now(), 0);
    while idle < SETTLED && start.elapsed() < SETTLE_LIMIT {
        thread::sleep(Duration::from_millis(100));
        idle = if db.is_idle() { idle + 1 } else { 0 };
    }
}

/// As `souk bench storage --steps reads`.
pub fn reads(plan: &Plan) -> Result<()> {
    let mut report = report();
    let directory = loaded(plan);
    measure::evict(&directory)?;
    let start = Instant::now();
    let db = Db::open(&directory, workload::CACHE_BYTES)?;
    report.line("open, cold", start.elapsed().as_secs_f64() * 1e3, "ms", "")?;
    measure::evict(&directory)?;
    gets(&db, plan.rows, "get, cold", workload::COLD_GETS, &mut report)?;
    for forward in [true, false] {
        let (start, mut bytes) = (Instant::now(), 0);
        let found = db.scan(None, forward, u64::MAX, |key, value| {
            bytes += key.len() + value.len()
        });
        let rest = format!("as stored, {:.0} B a row", bytes as f64 / found.max(1) as f64);
        report.rate(
            &format!("scan {}, raw", word(forward)),
            found,
            start.elapsed(),
            "rows/s",
            &rest,
        )?;
    }
    gets(&db, plan.rows, "get, warm", workload::WARM_GETS, &mut report)?;
    for forward in [true, false] {
        let mut random = fastrand::Rng::with_seed(8);
        let mut latencies = Latencies::default();
        let start = Instant::now();
        for _ in 0..workload::RANGES {
            let key = key(random.u64(..plan.rows));
            let (one, mut bytes) = (Instant::now(), 0);
            let limit = workload::RANGE_ROWS as u64;
            db.scan(Some(&key), forward, limit, |key, value| {
                bytes += key.len() + value.len()
            });
            latencies.since(one);
        }
        let step = format!("range of {} {}", workload::RANGE_ROWS, word(forward));
        report.rate(
            &step,
            workload::RANGES,
            start.elapsed(),
            "/s",
            &latencies.to_string(),
        )?;
    }
    Ok(())
}

fn gets(db: &Db, rows: u64, step: &str, count: u64, report: &mut Report<Stdout>) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(7);
    let mut latencies = Latencies::with_capacity(count as usize);
    let start = Instant::now();
    for _ in 0..count {
        let key = key(random.u64(..rows));
        let one = Instant::now();
        let found = db.get(Family::Rows, &key, <[u8]>::to_vec)?;
        latencies.since(one);
        found.ok_or("a loaded row is missing")?;
    }
    Ok(report.rate(step, count, start.elapsed(), "/s", &latencies.to_string())?)
}

fn word(forward: bool) -> &'static str {
    if forward { "forward" } else { "backward" }
}

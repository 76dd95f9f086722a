//! How a step is measured and written down; one line each, the same for every store. Shared with the peers.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Times of single operations.
#[derive(Debug, Default)]
pub struct Latencies(Vec<u32>);

impl Latencies {
    /// Room for so many.
    pub fn with_capacity(count: usize) -> Self {
        Self(Vec::with_capacity(count))
    }

    /// Adds the time since `start`.
    pub fn since(&mut self, start: Instant) {
        self.0
            .push(u32::try_from(start.elapsed().as_nanos()).unwrap_or(u32::MAX));
    }

    /// Adds all of another.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// The time below which this share of all lies, microseconds.
    pub fn quantile(&mut self, share: f64) -> f64 {
        self.0.sort_unstable();
        let last = self.0.len().saturating_sub(1);
        let at = (last as f64 * share) as usize;
        self.0.get(at).map_or(0.0, |nanos| f64::from(*nanos) / 1000.0)
    }
}

impl std::fmt::Display for Latencies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut sorted = Self(self.0.clone());
        let [middle, high, higher, most] = [0.5, 0.99, 0.999, 1.0].map(|share| sorted.quantile(share));
        write!(
            f,
            "p50 {middle:.1} us  p99 {high:.1} us  p99.9 {higher:.1} us  max {most:.0} us"
        )
    }
}

/// Writes the lines of one store.
#[derive(Debug)]
pub struct BenchReport<W> {
    store: &'static str,
    out: W,
}

impl<W: Write> BenchReport<W> {
    /// Of this store.
    pub fn new(store: &'static str, out: W) -> Self {
        Self { store, out }
    }

    /// One line: the step, a number with its unit, and what else there is to say.
    pub fn line(&mut self, step: &str, number: f64, unit: &str, rest: &str) -> io::Result<()> {
        let digits = usize::from(number < 100.0) * 2;
        writeln!(
            self.out,
            "{:<14} {step:<34} {number:>12.digits$} {unit:<7} {rest}",
            self.store
        )?;
        self.out.flush()
    }

    /// One line of so many operations in a time.
    pub fn rate(&mut self, step: &str, count: u64, time: Duration, unit: &str, rest: &str) -> io::Result<()> {
        self.line(step, count as f64 / time.as_secs_f64(), unit, rest)
    }
}

/// Bytes of all files below a directory, as the disk counts them.
pub fn disk_bytes(directory: &Path) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    files(directory, &mut |path| {
        // A file may go while we look.
        bytes += fs::metadata(path).map_or(0, |file| file.blocks() * 512);
        Ok(())
    })?;
    Ok(bytes)
}

/// Drops the files below a directory from the page cache.
pub fn evict(directory: &Path) -> io::Result<()> {
    files(directory, &mut |path| {
        let file = File::open(path)?;
        // Only what is on the disk can be dropped.
        file.sync_all()?;
        Ok(rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?)
    })
}

fn files(directory: &Path, visit: &mut impl FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files(&entry.path(), visit)?,
            Ok(kind) if kind.is_file() => visit(&entry.path())?,
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

/// Processor time of this process so far, seconds, from the kernel's ticks of a hundredth.
pub fn processor_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program may hold spaces; it ends at the last bracket.
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let ticks = fields.split(' ').skip(11).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Most memory this process ever had, bytes.
pub fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) << 10
}

/// How soon the disk takes appended blocks of this size, one after another: what no store can be faster than.
pub fn raw_sync(directory: &Path, bytes: usize, time: Duration) -> io::Result<Latencies> {
    let path = directory.join("raw-sync");
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .open(&path)?;
    let block = vec![7; bytes];
    let mut latencies = Latencies::default();
    let start = Instant::now();
    while start.elapsed() < time {
        let one = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        latencies.since(one);
    }
    fs::remove_file(path)?;
    Ok(latencies)
}

//! What every store under comparison does: the same keys, the same rows, the same steps. Shared with the peers, so it
//! names nothing of Souk.

/// Bytes of a loaded row as it is stored.
pub const LOADED_BYTES: usize = 300;
/// Bytes of a row that is put under a condition, as it is stored.
pub const PUT_BYTES: usize = 400;
/// Rows of a batch while loading.
pub const BATCH_ROWS: u64 = 200;
/// Batches under way while loading.
pub const LOADERS: u64 = 4;
/// Rows that the conditional puts go to.
pub const PUT_ROWS: u64 = 100_000;
/// Point reads after the files were dropped from the page cache.
pub const COLD_GETS: u64 = 20_000;
/// Point reads when every file was read once.
pub const WARM_GETS: u64 = 300_000;
/// Rows of a short range.
pub const RANGE_ROWS: usize = 20;
/// Short ranges read.
pub const RANGES: u64 = 5_000;
/// Block cache of each store.
pub const CACHE_BYTES: usize = 256 << 20;

/// Bytes of the pool that noise is cut from.
const POOL_BYTES: usize = 1 << 20;
/// What repeats in the compressible half of a row.
const PHRASE: &str = "a line of text that says much the same as the line before it; ";

/// The key of a row, 16 digits; the order of keys has nothing to do with the order of numbers.
pub fn key(row: u64) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mixed = mix(row);
    (0..16u32)
        .rev()
        .map(|digit| char::from(DIGITS[(mixed >> (4 * digit)) as usize & 15]))
        .collect()
}

/// A bijection that leaves no trace of the order (Stafford's variant 13 of the SplitMix64 finalizer).
fn mix(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Where the contents of rows come from: one half is noise, the other half compresses.
#[derive(Debug)]
pub struct Contents {
    noise: Vec<u8>,
    text: String,
}

/// The same for every store and run.
impl Default for Contents {
    fn default() -> Self {
        let mut noise = vec![0; POOL_BYTES];
        fastrand::Rng::with_seed(13).fill(&mut noise);
        Self {
            noise,
            text: PHRASE.repeat(PUT_BYTES / PHRASE.len() + 2),
        }
    }
}

impl Contents {
    /// Bytes that don't compress.
    pub fn noise(&self, row: u64, bytes: usize) -> &[u8] {
        let at = (mix(!row) as usize) % (POOL_BYTES - bytes);
        &self.noise[at..at + bytes]
    }

    /// Bytes that do.
    pub fn text(&self, row: u64, bytes: usize) -> &str {
        let at = row as usize % PHRASE.len();
        &self.text[at..at + bytes]
    }
}

/// The numbers that one of several workers takes: every so many.
pub fn share(of: u64, worker: u64, workers: u64) -> impl Iterator<Item = u64> {
    (worker..of).step_by(workers as usize)
}

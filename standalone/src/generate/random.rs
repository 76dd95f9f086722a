//! A random generator that is seeded for each row, so that rows can be generated in any order.

/// The increment of SplitMix64: 2^64 divided by the golden ratio.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// A random generator for one row (SplitMix64, Steele et al. 2014).
#[derive(Clone, Debug)]
pub struct RowRandom(u64);

/// The mixing step of SplitMix64.
fn mix(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl RowRandom {
    /// The generator for row `index` of `stream`, deterministic in its arguments.
    #[must_use]
    pub fn new(seed: u64, stream: &str, index: u64) -> Self {
        let stream = stream
            .bytes()
            .fold(seed, |state, byte| mix(state.wrapping_add(u64::from(byte) + 1)));
        Self(mix(stream ^ mix(index.wrapping_add(GAMMA))))
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mix(self.0)
    }

    /// A number below `end`; 0 when `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        // Multiply and shift (Lemire 2019): no division; its bias is below 2^-40 for ends below 2^24.
        ((u128::from(self.next_u64()) * u128::from(end)) >> 64) as u64
    }

    /// A number from 0 inclusive to 1 exclusive, in steps of 2^-53.
    pub fn fraction(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with a probability of `percent`.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// An element of `from`; `None` of an empty slice.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len() as u64) as usize)
    }

    /// A text of `from`; empty of an empty slice.
    pub fn word<'a>(&mut self, from: &[&'a str]) -> &'a str {
        self.pick(from).copied().unwrap_or_default()
    }
}

/// Draws indexes with a probability in proportion to their weights.
#[derive(Clone, Debug, Default)]
pub struct WeightedIndex {
    /// At `i` the sum of the weights up to and including `i`.
    cumulative: Vec<f64>,
}

impl WeightedIndex {
    /// Indexes of `weights`; negative ones count as 0.
    pub fn new(weights: impl IntoIterator<Item = f64>) -> Self {
        let mut sum = 0.0;
        let cumulative = weights.into_iter().map(|weight| {
            sum += weight.max(0.0);
            sum
        });
        Self {
            cumulative: cumulative.collect(),
        }
    }

    /// Zipf's law: index `i` has the weight (`i` + 1)^-`exponent`.
    #[must_use]
    pub fn zipf(ranks: usize, exponent: f64) -> Self {
        Self::new((1..=ranks).map(|rank| (rank as f64).powf(-exponent)))
    }

    /// An index; 0 without weights.
    pub fn draw(&self, random: &mut RowRandom) -> usize {
        let end = self.cumulative.last().copied().unwrap_or(0.0);
        let at = random.fraction() * end;
        let index = self.cumulative.partition_point(|&sum| sum <= at);
        index.min(self.cumulative.len().saturating_sub(1))
    }
}

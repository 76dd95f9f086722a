//! Random numbers that depend on a seed, a stream and a row alone, so that any row can be made by itself.

/// A source of numbers for one row (SplitMix64, Steele et al. 2014).
#[derive(Clone, Debug)]
pub struct Numbers(u64);

/// The mixing step of SplitMix64.
fn mix(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Numbers {
    /// Numbers of row `index` of `stream`: the same arguments give the same numbers.
    #[must_use]
    pub fn new(seed: u64, stream: &str, index: u64) -> Self {
        let stream = stream
            .bytes()
            .fold(seed, |state, byte| mix(state.wrapping_add(u64::from(byte) + 1)));
        Self(mix(stream ^ mix(index.wrapping_add(0x9e37_79b9_7f4a_7c15))))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// The next number below `end`; 0 when `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        // Multiply and shift (Lemire 2019): no division; its bias is below 2^-40 for ends below 2^24.
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }

    /// A number from 0 inclusive to 1 exclusive, in steps of 2^-53.
    pub fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True `percent` times of 100.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of several; none of nothing.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len() as u64) as usize)
    }

    /// One of several texts; empty of nothing.
    pub fn word<'a>(&mut self, from: &[&'a str]) -> &'a str {
        self.pick(from).copied().unwrap_or_default()
    }
}

/// Draws places of a list by weights that add up: `cumulative[i]` is the sum of the weights up to and with `i`.
#[derive(Clone, Debug, Default)]
pub struct Weighted {
    cumulative: Vec<f64>,
}

impl Weighted {
    /// Draws by `weights`; negative ones count as 0.
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

    /// Zipf's law: the weight of rank r, from 1, is r^-exponent.
    #[must_use]
    pub fn zipf(ranks: usize, exponent: f64) -> Self {
        Self::new((1..=ranks).map(|rank| (rank as f64).powf(-exponent)))
    }

    /// A place from 0; 0 when there is nothing to draw.
    pub fn draw(&self, numbers: &mut Numbers) -> usize {
        let end = self.cumulative.last().copied().unwrap_or(0.0);
        let at = numbers.fraction() * end;
        let index = self.cumulative.partition_point(|&sum| sum <= at);
        index.min(self.cumulative.len().saturating_sub(1))
    }
}

//! An estimate of how many different values there are, of fixed size.
//!
//! A HyperLogLog (Flajolet, Fusy, Gandouet, Meunier 2007) of 2¹⁴ registers over 64-bit hashes, with the estimator of
//! Ertl, "New cardinality estimation algorithms for HyperLogLog sketches" (2017), which needs no corrections.

/// Bits of a hash that choose a register.
const CHOICE: u32 = 14;
const REGISTERS: usize = 1 << CHOICE;
/// The highest value of a register.
const HIGHEST: usize = 64 - CHOICE as usize + 1;

/// Three standard deviations, each of 1.04 / √registers: what the estimate stays within in 997 of 1,000 cases.
pub(super) const ERROR_BOUND: f64 = 3.0 * 1.04 / 128.0;
pub(super) const SKETCH_BYTES: usize = REGISTERS;

/// Which hashes were seen, roughly.
pub(super) struct Sketch(Vec<u8>);

impl Sketch {
    pub(super) fn new() -> Self {
        Self(vec![0; REGISTERS])
    }

    pub(super) fn insert(&mut self, hash: u64) {
        let register = (hash >> (64 - CHOICE)) as usize;
        // The lowest bit is a stop: the rest may be zero.
        let zeros = (hash << CHOICE | 1 << (CHOICE - 1)).leading_zeros() as u8 + 1;
        if let Some(register) = self.0.get_mut(register) {
            *register = zeros.max(*register);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            *own = (*own).max(*other);
        }
    }

    /// How many different hashes there were.
    pub(super) fn estimate(&self) -> u64 {
        let mut with = [0_u32; HIGHEST + 1];
        for register in &self.0 {
            if let Some(count) = with.get_mut(*register as usize) {
                *count += 1;
            }
        }
        let registers = REGISTERS as f64;
        let part = |count: Option<&u32>| f64::from(count.copied().unwrap_or_default()) / registers;
        let mut harmonic = registers * tau(1.0 - part(with.last()));
        for count in with.iter().take(HIGHEST).skip(1).rev() {
            harmonic = 0.5 * (harmonic + f64::from(*count));
        }
        harmonic += registers * sigma(part(with.first()));
        (registers * registers / (2.0 * std::f64::consts::LN_2 * harmonic)).round() as u64
    }
}

fn sigma(mut x: f64) -> f64 {
    if x >= 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z <= before {
            return z;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if z >= before {
            return z / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;

    #[test]
    fn estimates_stay_within_their_bound() {
        assert_eq!(Sketch::new().estimate(), 0);
        for different in [1_u64, 10, 1_000, 20_000, 300_000] {
            let mut halves = [Sketch::new(), Sketch::new()];
            for value in 0..different {
                let hash = xxh3_64(&value.to_le_bytes());
                halves[(value % 2) as usize].insert(hash);
                halves[0].insert(hash);
            }
            let [mut one, other] = halves;
            one.merge(&other);
            let off = one.estimate().abs_diff(different) as f64 / different as f64;
            assert!(off <= ERROR_BOUND, "{different}: off by {off}");
        }
    }
}

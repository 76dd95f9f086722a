//! Scores as intervals: what a score may be after the roundings of single precision. Scores are never negative, and all
//! that is computed of them grows with them, so the two ends are computed each on its own.

/// The part of a number by which a few roundings to single precision may move it.
const ROUNDING: f64 = 1e-6;
/// Some units of the least single-precision number.
const LEAST: f64 = 1e-44;

/// Two ends between which a score lies; equal where nothing was rounded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Interval {
    /// A number that single precision holds.
    pub(crate) const fn exact(number: f64) -> Self {
        Self {
            low: number,
            high: number,
        }
    }

    /// Any score: the contract doesn't say which.
    pub(crate) const fn unknown() -> Self {
        Self {
            low: 0.0,
            high: f64::INFINITY,
        }
    }

    /// Wider by a part of itself; 0 stays 0.
    pub(crate) fn wider(self, part: f64) -> Self {
        let least = |end: f64| if end == 0.0 { 0.0 } else { LEAST };
        Self {
            low: (self.low * (1.0 - part) - least(self.low)).max(0.0),
            high: self.high * (1.0 + part) + least(self.high),
        }
    }

    /// As it is after some roundings to single precision.
    pub(crate) fn rounded(self) -> Self {
        if self.low == self.high && self.low == f64::from(self.low as f32) {
            return self;
        }
        self.wider(ROUNDING)
    }

    /// What grows with one number, of both ends. What is no number is 0.
    pub(crate) fn map(self, of: impl Fn(f64) -> f64) -> Self {
        Self {
            low: number(of(self.low)),
            high: number(of(self.high)),
        }
    }

    /// What grows with two numbers.
    pub(crate) fn with(self, other: Self, of: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            low: number(of(self.low, other.low)),
            high: number(of(self.high, other.high)),
        }
    }

    /// Times a weight. The product may weigh each part of a sum by itself, which rounds elsewhere unless it is a power of two.
    pub(crate) fn times(self, factor: f64) -> Self {
        let weighed = self.map(|number| number * factor);
        let exact = factor == 0.0 || factor.to_bits() << 12 == 0;
        if exact {
            weighed.rounded()
        } else {
            weighed.wider(ROUNDING)
        }
    }

    /// Whether a score may be this; the greatest single-precision number stands for all above.
    pub(crate) fn holds(self, score: f64) -> bool {
        let most = f64::from(f32::MAX);
        self.low.min(most) <= score && score <= self.high
    }

    /// Whether it is surely, or surely not, at least this; `None` where the roundings decide.
    pub(crate) fn reaches(self, least: f64) -> Option<bool> {
        if self.low >= least {
            Some(true)
        } else if self.high < least {
            Some(false)
        } else {
            None
        }
    }
}

/// What is no number counts as 0.
pub(crate) fn number(number: f64) -> f64 {
    if number.is_nan() { 0.0 } else { number }
}

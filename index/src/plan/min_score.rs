//! The minimum competitive score: what a document has to score to be among the best.

use tantivy::Score;

/// Part of a sum of scores that adding in another order may change. A sum of n numbers from 0 in double precision is off by
/// less than n × 2^-53 of itself, in any order (Higham, "Accuracy and Stability of Numerical Algorithms", 4.2): for the
/// 1,024 words of a text by less than 1.2e-13, and two such sums by less than 2.4e-13 of each other. That takes sums in
/// which nothing was taken off again.
const ROUNDING: f64 = 1e-12;

/// Which scores are wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MinScore {
    score: Score,
    /// Whether the score itself is wanted.
    included: bool,
}

impl MinScore {
    /// Better scores than this one, and the score itself if it is `included`.
    pub(crate) fn new(score: Score, included: bool) -> Self {
        Self { score, included }
    }

    pub(crate) fn admits(self, score: Score) -> bool {
        score > self.score || self.included && score == self.score
    }

    /// The least sum of words' scores that becomes a score that is wanted when it is rounded to single precision.
    ///
    /// A scorer may pass over documents for which a bound, added up word by word in any order, is below it. Proof: let a
    /// document's score be admitted. In double precision its sum was at least the midpoint m below the lowest score that is
    /// admitted, or it would have been rounded to less; m has 25 bits and is exact. The bound adds up a number for each word
    /// of the document that is at least the word's score (`Ceiling`), and numbers from 0 for others. So without rounding the
    /// bound is at least the sum; and as computed, by [`ROUNDING`] on both, it is at least (1 - 2.4e-13) m, which is more than
    /// what this gives. A word that the text repeats is one number, large by its weight: it makes no sum longer. A bound from
    /// which a word's number was subtracted would have the error of the whole sum, which may be more than what is left of it.
    pub(super) fn sum(self) -> f64 {
        let (below, above) = if self.included {
            (self.score.next_down(), self.score)
        } else {
            (self.score, self.score.next_up())
        };
        f64::midpoint(f64::from(below), f64::from(above)) * (1.0 - ROUNDING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_that_reach_it_are_those_that_are_rounded_to_what_it_admits() {
        for score in [0.1_f32, 1.0, 1.999_999_9, 7.25, 1e-9, 3e7] {
            let width = f64::from(score.next_up()) - f64::from(score);
            for step in -40..=40 {
                let sum = f64::from(score) + f64::from(step) / 16.0 * width;
                for min_score in [true, false].map(|included| MinScore::new(score, included)) {
                    let admitted = min_score.admits(sum as Score);
                    assert!(
                        !admitted || sum >= min_score.sum(),
                        "{sum} is lost below {min_score:?}"
                    );
                    // What lies a good part of the width below is known to be of no use.
                    let near = (sum - min_score.sum()).abs() < width / 16.0;
                    assert!(
                        near || admitted == (sum >= min_score.sum()),
                        "{sum} {min_score:?}"
                    );
                }
            }
        }
    }
}

//! Scores in single precision.

use tantivy::Score;

/// A score that was computed in double precision, as it is kept: never negative, infinite or no number, so that scores
/// are a total order and can be multiplied and added up.
pub(crate) fn single(score: f64) -> Score {
    score.max(0.0).min(f64::from(Score::MAX)) as Score
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_finite_numbers_from_0() {
        for (score, expected) in [
            (f64::NAN, 0.0),
            (-1.0, 0.0),
            (0.25, 0.25),
            (1e300, Score::MAX),
            (f64::INFINITY, Score::MAX),
        ] {
            assert_eq!(single(score), expected, "{score}");
        }
    }
}

//! BM25, as Lucene's `BM25Similarity` computes it, digit for digit: k1 = 1.2, b = 0.75, no factor k1 + 1, lengths of one
//! byte, single precision.
//!
//! The library's own has the factor, and rounds differently: equal documents would swap.

use std::sync::Arc;

use tantivy::Score;
use tantivy::fieldnorm::FieldNormReader;

const K1: Score = 1.2;
const B: Score = 0.75;

/// Codes of lengths.
const CODES: usize = 256;

/// What the words of one field have in common: the inverse norm of each length.
#[derive(Clone, Debug)]
pub(crate) struct Norms(Arc<[Score; CODES]>);

impl Norms {
    /// The norms for texts of `average` tokens.
    pub(crate) fn new(average: Score) -> Self {
        Self(Arc::new(std::array::from_fn(|code| {
            let length = FieldNormReader::id_to_fieldnorm(code as u8) as Score;
            1.0 / (K1 * ((1.0 - B) + B * length / average))
        })))
    }

    fn inverse(&self, code: u8) -> Score {
        self.0.get(usize::from(code)).copied().unwrap_or_default()
    }

    /// A frequency in a text, seen against the text's length: the higher, the higher scores the word.
    pub(crate) fn density(&self, code: u8, frequency: u32) -> Score {
        frequency as Score * self.inverse(code)
    }

    /// The scorer of a word of this weight.
    pub(crate) fn weigh(&self, weight: Score) -> Bm25 {
        let once = self.0.iter().map(|inverse| weight - weight / (1.0 + inverse));
        Bm25 {
            norms: self.clone(),
            weight,
            once: once.collect(),
        }
    }
}

/// Scores the documents of one word, or of one phrase.
#[derive(Clone, Debug)]
pub(crate) struct Bm25 {
    norms: Norms,
    weight: Score,
    /// The score of each length for words that are there once, as most are.
    once: Arc<[Score]>,
}

impl Bm25 {
    /// The same with scores times `boost`.
    pub(crate) fn boosted(&self, boost: Score) -> Self {
        self.norms.weigh(boost * self.weight)
    }

    /// The score of a document with this code of its length and this frequency of the word.
    pub(crate) fn score(&self, code: u8, frequency: u32) -> Score {
        if frequency == 1
            && let Some(score) = self.once.get(usize::from(code))
        {
            return *score;
        }
        self.at_density(self.norms.density(code, frequency))
    }

    /// The score at a density, which it grows with.
    pub(crate) fn at_density(&self, density: Score) -> Score {
        self.weight - self.weight / (1.0 + density)
    }
}

/// The weight of a word that `having` of `documents` have.
pub(crate) fn idf(documents: u64, having: u64) -> Score {
    let (documents, having) = (documents as f64, having as f64);
    (1.0 + (documents - having + 0.5) / (having + 0.5)).ln() as Score
}

/// The average length of `documents` texts of `tokens` in all.
pub(crate) fn average(documents: u64, tokens: u64) -> Score {
    (tokens as f64 / documents.max(1) as f64) as Score
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_those_of_lucene() {
        // By Lucene 10: `new BM25Similarity().scorer(1, CollectionStatistics(docCount 4, sumTotalTermFreq 10),
        // TermStatistics(docFreq 2))` gives weight ln(1 + 2.5 / 2.5); length 3, frequency 2.
        let norms = Norms::new(average(4, 10));
        let weight = idf(4, 2);
        assert!((weight - 2.0_f32.ln()).abs() < 1e-7, "{weight}");
        let norm = 1.2 * (0.25 + 0.75 * 3.0 / 2.5);
        let expected = weight * 2.0 / (2.0 + norm);
        let score = norms.weigh(weight).score(FieldNormReader::fieldnorm_to_id(3), 2);
        assert!((score - expected).abs() < 1e-6, "{score} {expected}");
        // More of it scores more, longer texts score less, and nothing reaches the weight.
        let score = |length, frequency| {
            norms
                .weigh(weight)
                .score(FieldNormReader::fieldnorm_to_id(length), frequency)
        };
        assert!(score(3, 3) > score(3, 2) && score(4, 2) < score(3, 2) && score(1, 1_000) <= weight);
    }
}

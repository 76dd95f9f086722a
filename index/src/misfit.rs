//! Values that don't fit their field's type: dropped one by one, and never in silence.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::limits::MAX_RECENT_MISFITS;

/// Misfits that a commit carries along, so that a restart doesn't forget all of them.
const PERSISTED_MISFITS: usize = 16;
/// Pairs of field and reason whose misfits are counted one by one.
pub const COUNTED_MISFITS: usize = 256;

/// Why a value wasn't indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum MisfitReason {
    /// The value has another type than the field.
    WrongType,
    /// The value is longer than the field's limit.
    TooLong,
    /// There are more values or objects than allowed; those in front are kept.
    TooMany,
    /// The number is NaN or infinite.
    NotFinite,
}

impl MisfitReason {
    /// The reason in UPPER_SNAKE_CASE.
    pub fn code(self) -> &'static str {
        match self {
            Self::WrongType => "WRONG_TYPE",
            Self::TooLong => "TOO_LONG",
            Self::TooMany => "TOO_MANY",
            Self::NotFinite => "NOT_FINITE",
        }
    }
}

/// One value that wasn't indexed. Its document is found by its other fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misfit {
    /// The document's key.
    pub key: Vec<u8>,
    /// The field's full path.
    pub field: String,
    /// What kind of misfit.
    pub reason: MisfitReason,
    /// What was found and what was expected.
    pub message: String,
}

/// The misfits of an index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MisfitReport {
    /// All misfits since the index was built. A document that is applied again counts again.
    pub count: u64,
    /// How many of each field and reason, by field; the first [`COUNTED_MISFITS`] pairs that came up.
    pub counts: Vec<MisfitCount>,
    /// The last ones, oldest first: at most [`MAX_RECENT_MISFITS`], and 16 from before the last restart.
    pub recent: Vec<Misfit>,
}

/// How many values of one field weren't indexed for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MisfitCount {
    /// The field's full path.
    pub field: String,
    /// Why.
    pub reason: MisfitReason,
    /// How many values.
    pub count: u64,
}

/// Counts misfits and keeps the last ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MisfitLog {
    count: u64,
    #[serde(default)]
    counts: BTreeMap<String, Vec<(MisfitReason, u64)>>,
    recent: VecDeque<Misfit>,
}

impl MisfitLog {
    pub(crate) fn push(&mut self, misfit: Misfit) {
        self.count += 1;
        self.tally(&misfit);
        if self.recent.len() == MAX_RECENT_MISFITS {
            self.recent.pop_front();
        }
        self.recent.push_back(misfit);
    }

    fn tally(&mut self, misfit: &Misfit) {
        let pairs: usize = self.counts.values().map(Vec::len).sum();
        let of_field = match self.counts.get_mut(&misfit.field) {
            Some(of_field) => of_field,
            None if pairs >= COUNTED_MISFITS => return,
            None => self.counts.entry(misfit.field.clone()).or_default(),
        };
        match of_field.iter_mut().find(|(reason, _)| *reason == misfit.reason) {
            Some((_, count)) => *count += 1,
            None if pairs >= COUNTED_MISFITS => {}
            None => of_field.push((misfit.reason, 1)),
        }
    }

    pub(crate) fn report(&self) -> MisfitReport {
        let counts = self.counts.iter().flat_map(|(field, of_field)| {
            of_field.iter().map(|(reason, count)| MisfitCount {
                field: field.clone(),
                reason: *reason,
                count: *count,
            })
        });
        MisfitReport {
            count: self.count,
            counts: counts.collect(),
            recent: self.recent.iter().cloned().collect(),
        }
    }

    /// The part that a commit carries.
    pub(crate) fn persisted(&self) -> Self {
        let skip = self.recent.len().saturating_sub(PERSISTED_MISFITS);
        Self {
            count: self.count,
            counts: self.counts.clone(),
            recent: self.recent.iter().skip(skip).cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_bounded_and_counts_on() {
        let mut log = MisfitLog::default();
        for n in 0..MAX_RECENT_MISFITS + 5 {
            log.push(Misfit {
                key: n.to_be_bytes().to_vec(),
                field: "f".to_owned(),
                reason: MisfitReason::WrongType,
                message: String::new(),
            });
        }
        let report = log.report();
        assert_eq!((report.count, report.recent.len()), (133, MAX_RECENT_MISFITS));
        let [counted] = report.counts.as_slice() else {
            panic!("one pair: {:?}", report.counts);
        };
        assert_eq!((counted.field.as_str(), counted.count), ("f", 133));
        assert_eq!(report.recent[0].key, 5_usize.to_be_bytes());
        let persisted = log.persisted().report();
        assert_eq!(
            (persisted.count, persisted.recent.len()),
            (133, PERSISTED_MISFITS)
        );
        assert_eq!(persisted.recent.last(), report.recent.last());
    }
}

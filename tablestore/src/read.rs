//! Version selection: which versions of a column a read returns.

use crate::error::Reason;
use crate::messages::TimeRange;

/// A range of versions, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeWindow {
    /// Start, inclusive.
    pub from: i64,
    /// End, exclusive.
    pub to: i64,
}

/// Which versions of a column a read returns; at least one of the fields is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionSelection {
    /// At most this many, the newest ones within `time`; at least 1.
    pub max_versions: Option<u32>,
    /// Only versions in this range; any if it isn't set.
    pub time: Option<TimeWindow>,
}

impl VersionSelection {
    /// Reads the selection from the fields of a request.
    ///
    /// # Errors
    /// Neither field says anything; `max_versions` is below 1; the range has one end alone; a single time is negative, or comes with a
    /// range or `max_versions`.
    pub fn new(time: Option<TimeRange>, max_versions: Option<i32>) -> Result<Self, Reason> {
        let versions = max_versions
            .map(|versions| match u32::try_from(versions) {
                Ok(count) if count > 0 => Ok(count),
                _ => Err(Reason::InvalidMaxVersions { versions }),
            })
            .transpose()?;
        let time = match time {
            Some(range) => window(range, versions.is_some())?,
            None => None,
        };
        if versions.is_none() && time.is_none() {
            return Err(Reason::NoVersionCondition);
        }
        Ok(Self {
            max_versions: versions,
            time,
        })
    }
}

/// The window of a `range`; `versions` says whether a number of versions is given, too, which a single time excludes.
fn window(range: TimeRange, versions: bool) -> Result<Option<TimeWindow>, Reason> {
    match (range.specific_time, range.start_time, range.end_time) {
        (Some(_), Some(_), _) | (Some(_), _, Some(_)) if versions => {
            Err(Reason::SpecificTimeRangeAndVersions)
        }
        (Some(_), Some(_), _) | (Some(_), _, Some(_)) => Err(Reason::SpecificTimeAndRange),
        (Some(_), None, None) if versions => Err(Reason::SpecificTimeAndVersions),
        (Some(time), None, None) if time < 0 => Err(Reason::NegativeSpecificTime),
        (Some(time), None, None) => Ok(Some(TimeWindow {
            from: time,
            to: time.saturating_add(1),
        })),
        (None, Some(from), Some(to)) => Ok(Some(TimeWindow { from, to })),
        (None, None, None) => Ok(None),
        (None, _, _) => Err(Reason::HalfTimeRange),
    }
}

//! Which versions of a column a read gives back.

use crate::error::Reason;
use crate::messages::TimeRange;

/// Versions from `from`, inclusive, to `to`, exclusive: milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeWindow {
    /// The lowest version.
    pub from: i64,
    /// Just above the highest version.
    pub to: i64,
}

/// Which versions of a column a read gives back; at least one of both is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionSelection {
    /// The newest so many, of those that `time` admits; not 0.
    pub max_versions: Option<u32>,
    /// Only those within.
    pub time: Option<TimeWindow>,
}

impl VersionSelection {
    /// What a request with these fields asks for.
    ///
    /// # Errors
    /// It says nothing, or what contradicts itself.
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

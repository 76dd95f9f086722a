//! How many calls a server takes in a time, from all and from each.

use serde::{Deserialize, Serialize};

use super::Problems;

/// Token buckets; a rate of 0 is no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RateConfig {
    /// Calls a second, of all callers together.
    pub calls_per_second: u32,
    /// Calls that may come at once after a pause; 0 is those of a second.
    pub burst: u32,
    /// Calls a second of each caller: by its name where it proved one, else by its address (of IPv6 the first 64 bits).
    pub caller_calls_per_second: u32,
    /// Calls of a caller that may come at once after a pause; 0 is those of a second.
    pub caller_burst: u32,
}

impl RateConfig {
    /// Adds what is wrong with these settings to `problems`; `path` is where they stand in the process's settings.
    pub(super) fn check(&self, path: &str, problems: &mut Problems) {
        let pairs = [
            ("burst", self.burst, self.calls_per_second),
            ("caller_burst", self.caller_burst, self.caller_calls_per_second),
        ];
        for (name, _, _) in pairs.iter().filter(|(_, burst, rate)| *burst > 0 && *rate == 0) {
            let rate = name.replace("burst", "calls_per_second");
            problems.push_in(path, name, format!("does nothing without {rate}"));
        }
    }
}

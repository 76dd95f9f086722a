//! Settings of an engine, and of a process with one service on it.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use souk_access::AuthConfig;
use souk_chassis::config::{Config, Problems, ServerConfig, duration};
use souk_chassis::telemetry::TelemetryConfig;
use souk_engine::EngineConfig;
use souk_storage::limits::{MAX_RETENTION, MIN_RETENTION};

use super::backups::BackupSettings;

/// Range of [`EngineSettings::commit_interval`].
const COMMIT_INTERVAL: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_millis(200);

/// Least memory the store works with, in bytes.
const MEMORY_BYTES_MIN: u64 = 16 << 20;

/// Least and most memory an index works with, in bytes.
const INDEX_MEMORY_BYTES: RangeInclusive<u64> = 16 << 20..=2 << 30;
/// Least that is read a second to compare indexes with their checksums: with less, damage would stay unknown for days.
const VERIFY_BYTES_MIN: u64 = 1 << 20;

/// Most searches at a time; more threads than that only wait for each other.
const SEARCH_THREADS_MAX: usize = 1_024;

/// Settings of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EngineSettings {
    /// Longest refresh interval of an index that is searched: how long changes may stay unseen while nobody waits for them; 1 to
    /// 200 ms. It refreshes sooner when it keeps up with the changes, and once a second while nobody searches.
    #[serde(with = "duration")]
    pub commit_interval: Duration,
    /// Searches that run at a time, at most 1,024; 0 is twice the number of cores.
    pub search_threads: usize,
    /// Memory of the store, in bytes, at least 16 MiB: a half caches stored blocks, the other holds what is being written.
    pub memory_bytes: u64,
    /// Memory of each index, in bytes, 16 MiB to 2 GiB, for documents on their way into it, and as much again for deletes: what it takes
    /// while it is behind, however far.
    pub index_memory_bytes: u64,
    /// Documents of one index from which on the process gets huge pages of memory, which make searches of large data
    /// faster and small processes large; 0 from the start.
    pub huge_pages_from: u64,
    /// Bytes a second that are read of each index to compare its files with their checksums in the background; at least 1 MiB.
    pub verify_bytes_per_second: u64,
    /// Bytes that stay free on the device; with less, writes are refused until there is room. 0 never refuses.
    pub reserve_bytes: u64,
    /// How long changes are kept at least, for watches; [`MIN_RETENTION`] to [`MAX_RETENTION`].
    #[serde(with = "duration")]
    pub retention: Duration,
    /// Backups while the service runs.
    pub backup: BackupSettings,
}

impl Default for EngineSettings {
    fn default() -> Self {
        let config = EngineConfig::new(PathBuf::new());
        Self {
            commit_interval: config.commit_interval,
            search_threads: config.search_threads,
            memory_bytes: config.storage.fjall.memory_bytes,
            index_memory_bytes: config.writer_memory as u64,
            huge_pages_from: config.large_index_from,
            verify_bytes_per_second: config.verify.bytes_per_second,
            reserve_bytes: config.storage.fjall.reserve_bytes,
            retention: config.storage.retention,
            backup: BackupSettings::default(),
        }
    }
}

impl EngineSettings {
    /// The configuration of an engine with its data in `directory`.
    #[must_use]
    pub fn engine_config(&self, directory: &Path) -> EngineConfig {
        let mut config = EngineConfig::new(directory);
        config.commit_interval = self.commit_interval;
        config.search_threads = self.search_threads;
        config.storage.fjall.memory_bytes = self.memory_bytes;
        config.writer_memory = usize::try_from(self.index_memory_bytes).unwrap_or(usize::MAX);
        config.large_index_from = self.huge_pages_from;
        config.verify.bytes_per_second = self.verify_bytes_per_second;
        config.storage.fjall.reserve_bytes = self.reserve_bytes;
        config.storage.retention = self.retention;
        config
    }

    /// Adds what is wrong with these settings to `problems`; `path` is where they stand in the process's settings.
    pub fn check(&self, path: &str, problems: &mut Problems) {
        if !COMMIT_INTERVAL.contains(&self.commit_interval) {
            problems.push(&format!("{path}.commit_interval"), "must be 1ms to 200ms");
        }
        if self.search_threads > SEARCH_THREADS_MAX {
            let message = format!("must be at most {SEARCH_THREADS_MAX}; 0 is twice the number of cores");
            problems.push(&format!("{path}.search_threads"), message);
        }
        if self.memory_bytes < MEMORY_BYTES_MIN {
            let message = format!("must be at least {MEMORY_BYTES_MIN} bytes");
            problems.push(&format!("{path}.memory_bytes"), message);
        }
        if !INDEX_MEMORY_BYTES.contains(&self.index_memory_bytes) {
            let (least, most) = (INDEX_MEMORY_BYTES.start(), INDEX_MEMORY_BYTES.end());
            let message = format!("must be {least} to {most} bytes");
            problems.push(&format!("{path}.index_memory_bytes"), message);
        }
        if self.verify_bytes_per_second < VERIFY_BYTES_MIN {
            let message = format!("must be at least {VERIFY_BYTES_MIN} bytes");
            problems.push(&format!("{path}.verify_bytes_per_second"), message);
        }
        if !(MIN_RETENTION..=MAX_RETENTION).contains(&self.retention) {
            problems.push(&format!("{path}.retention"), "must be 1h to 168h");
        }
        self.backup.check(&format!("{path}.backup"), problems);
    }
}

/// Settings of a process with services on an engine, which clients call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Folder of the service's data.
    pub data: PathBuf,
    /// The listener and its limits.
    pub server: ServerConfig,
    /// How callers are authenticated. Checked apart from the rest, by [`AuthConfig::checked`]: that needs the kind of process.
    pub auth: AuthConfig,
    /// Logs, and where metrics are fetched from.
    pub telemetry: TelemetryConfig,
    /// The store and the indexes.
    pub engine: EngineSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            data: PathBuf::from("souk-data"),
            server: ServerConfig::default(),
            auth: AuthConfig::default(),
            telemetry: TelemetryConfig::default(),
            engine: EngineSettings::default(),
        }
    }
}

/// [`Settings`] of a process with one service, which a gateway calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BehindGateway(pub Settings);

impl Default for BehindGateway {
    fn default() -> Self {
        Self(Settings {
            server: ServerConfig::behind_a_gateway(),
            ..Settings::default()
        })
    }
}

impl Config for BehindGateway {
    fn check(&self, problems: &mut Problems) {
        self.0.check(problems);
    }
}

impl Config for Settings {
    fn check(&self, problems: &mut Problems) {
        if self.data.as_os_str().is_empty() {
            problems.push("data", "must be a folder; set it with --data");
        }
        self.server.check("server", problems);
        self.telemetry.check("telemetry", &self.server, problems);
        self.engine.check("engine", problems);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use souk_chassis::config::Loader;

    use super::{BehindGateway, Settings};

    #[test]
    fn a_service_behind_a_gateway_allows_longer_bodies_and_more_streams_than_a_front_door() {
        let front: Settings = Loader::default().load().expect("the defaults");
        let BehindGateway(behind) = Loader::default().load().expect("the defaults");
        assert_eq!(
            (
                front.server.body_timeout.as_secs(),
                front.server.http2.streams_max
            ),
            (10, 256)
        );
        assert_eq!(
            (
                behind.server.body_timeout.as_secs(),
                behind.server.http2.streams_max
            ),
            (120, 16_384)
        );
    }

    #[test]
    fn settings_reach_the_engine() {
        let settings: Settings = Loader::default()
            .overrides([
                "engine.commit_interval=50ms",
                "engine.retention=2h",
                "engine.search_threads=3",
                "engine.huge_pages_from=7",
                "engine.index_memory_bytes=33554432",
                "engine.verify_bytes_per_second=2000000",
            ])
            .load()
            .expect("good settings");
        let config = settings.engine.engine_config(Path::new("x"));
        assert_eq!(config.commit_interval.as_millis(), 50);
        assert_eq!(config.storage.retention.as_secs(), 7_200);
        assert_eq!(config.search_threads, 3);
        assert_eq!(config.large_index_from, 7);
        assert_eq!(config.writer_memory, 32 << 20);
        assert_eq!(config.verify.bytes_per_second, 2_000_000);
    }

    #[test]
    fn commit_intervals_of_1_to_200_ms_are_accepted() {
        for (interval, accepted) in [("999us", false), ("1ms", true), ("200ms", true), ("201ms", false)] {
            let given = format!("engine.commit_interval={interval}");
            let loaded = Loader::default().overrides([given]).load::<Settings>();
            assert_eq!(loaded.is_ok(), accepted, "{interval}");
        }
    }

    #[test]
    fn settings_out_of_range_are_named() {
        let wrong = [
            "data=",
            "engine.commit_interval=1s",
            "engine.search_threads=1025",
            "engine.retention=59m",
            "engine.memory_bytes=1",
            "engine.index_memory_bytes=1",
            "engine.verify_bytes_per_second=1",
            "engine.backup.every=0s",
            "engine.backup.increments=5000",
            "engine.backup.keep=0",
        ];
        let error = Loader::default()
            .overrides(wrong)
            .load::<Settings>()
            .expect_err("bad settings");
        // Where it was set, the setting, and what is wrong.
        let paths: Vec<_> = error
            .0
            .iter()
            .filter_map(|problem| problem.split(": ").nth(1))
            .collect();
        assert_eq!(
            paths,
            [
                "data",
                "engine.commit_interval",
                "engine.search_threads",
                "engine.memory_bytes",
                "engine.index_memory_bytes",
                "engine.verify_bytes_per_second",
                "engine.retention",
                "engine.backup.every",
                "engine.backup.increments",
                "engine.backup.keep"
            ]
        );
    }
}

//! The operator: has what the schedule says happen to a suite, ends it, and sees that the suite recovers as it should.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use souk_e2e::faults::device::Device;
use souk_e2e::faults::interposer::{DiskFault, Interposer};
use souk_e2e::log::Log;
use souk_e2e::process::Process;
use souk_e2e::suite::{GATEWAY, Layout, Plan, Suite};
use tempfile::TempDir;
use tokio::time::Instant;

use super::calls::Failed;
use super::schedule::{Event, Means, Room};
use super::searcher::Searcher;
use super::tables::{TABLES, index_call, list};
use super::{Run, health};
use crate::SOUK;

/// Of the device that all services have.
const DEVICE_BYTES: u64 = 2 << 30;
/// What stays free of it.
const RESERVE_BYTES: u64 = 64 << 20;
/// Within this time after the end of a fault a write is acknowledged, and a search sees it, in every table.
const RECOVERY_MAX: Duration = Duration::from_secs(30);
/// Between two looks at whether it has.
const LOOK: Duration = Duration::from_millis(20);

/// Who holds the suite, and may let things go wrong.
pub(super) struct Operator {
    pub(super) suite: Suite,
    interposers: BTreeMap<&'static str, Interposer>,
    device: Option<Device>,
    pub(super) log: Log,
    folder: TempDir,
}

impl Operator {
    /// Starts a suite whose data are on a device of its own, where one can be had.
    pub(super) async fn start() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        let device = Device::mount(folder.path(), DEVICE_BYTES)?;
        if device.is_none() {
            println!("NOT CHECKED: full disks; mounting a file system takes root on Linux");
        }
        let data = device.as_ref().map_or(folder.path(), Device::path).join("data");
        let log = Log::default();
        let mut plan = Plan::new(SOUK, Layout::SeveralProcesses).linked().heard(&log);
        let mut interposers = BTreeMap::new();
        for table in &TABLES {
            let (process, data) = (table.process, data.join(table.process));
            let backups = format!("engine.backup.to={}", folder.path().join("backups").display());
            plan = match Interposer::with_data(DiskFault::FailingSync, data.clone())? {
                Some(interposer) => {
                    let plan = plan.interposed(process, &interposer);
                    interposers.insert(process, interposer);
                    plan
                }
                None => plan.data_at(process, &data),
            };
            let reserve = format!("engine.reserve_bytes={RESERVE_BYTES}");
            for setting in [
                &backups,
                &reserve,
                "engine.backup.every=2s",
                "engine.backup.increments=5",
                // What is checked isn't removed meanwhile.
                "engine.backup.keep=1000",
                // The shortest, so that jumps of the clock trim the log.
                "engine.retention=1h",
                // The least, so that memory is flushed and journals change.
                "engine.memory_bytes=16777216",
            ] {
                plan = plan.setting(process, setting);
            }
        }
        Ok(Self {
            suite: plan.start().await?,
            interposers,
            device,
            log,
            folder,
        })
    }

    pub(super) fn means(&self) -> Means {
        Means {
            device: self.device.is_some(),
            interposers: !self.interposers.is_empty(),
        }
    }

    pub(super) fn backups(&self) -> PathBuf {
        self.folder.path().join("backups")
    }

    /// Lets something happen, for so long, and sees that the suite recovers.
    pub(super) async fn play(&mut self, run: &Run, event: Event, lasts: Duration) -> anyhow::Result<()> {
        run.judge.say(format_args!("{event:?} begins, for {lasts:?}"));
        run.judge.count(&format!("events: {}", word(event)));
        match event {
            Event::Kill(process) => self.kill(run, &[process], lasts).await?,
            Event::KillAll => {
                let all = TABLES.map(|table| table.process);
                self.kill(run, &[&all[..], &[GATEWAY]].concat(), lasts).await?;
            }
            Event::FailingSync(process) => {
                self.interposer(process)?.set_failing(true)?;
                tokio::time::sleep(lasts).await;
                self.interposer(process)?.set_failing(false)?;
                // A store whose fsync failed has failed until it is started again.
                self.kill(run, &[process], Duration::ZERO).await?;
            }
            Event::ClockJump(process, seconds) => {
                self.interposer(process)?
                    .set_clock_ahead(seconds * 1_000_000_000)?;
                tokio::time::sleep(lasts).await;
                self.recover(run).await;
                self.interposer(process)?.set_clock_ahead(0)?;
            }
            Event::FullDisk(room) => {
                let left = match room {
                    Room::ForDeletes => RESERVE_BYTES / 4 * 3,
                    Room::ForNothing => RESERVE_BYTES / 8,
                    Room::None => 0,
                };
                if let Some(device) = &mut self.device {
                    device.leave(left)?;
                    tokio::time::sleep(lasts).await;
                    device.empty()?;
                }
            }
            Event::Redesign(table) => self.redesign(run, table).await,
            Event::CheckBackups => self.check_backups(run).await?,
        }
        run.judge.say(format_args!("{event:?} has ended"));
        let recovered = self.recover(run).await;
        if recovered {
            return Ok(());
        }
        // A store that met the very end of its device may have failed: then a restart helps, as after a failed fsync.
        if event == Event::FullDisk(Room::None) {
            run.judge.count("restarts needed after a disk without any room");
        } else {
            run.judge.wrong(format_args!(
                "the suite hasn't recovered from {event:?}; it is started again"
            ));
        }
        let all = TABLES.map(|table| table.process);
        self.kill(run, &all, Duration::ZERO).await?;
        if !self.recover(run).await {
            run.judge.wrong("not even after a restart");
        }
        Ok(())
    }

    fn interposer(&self, process: &str) -> anyhow::Result<&Interposer> {
        let interposer = self.interposers.get(process);
        interposer.ok_or_else(|| anyhow::anyhow!("{process} has no interposer"))
    }

    async fn kill(&mut self, run: &Run, processes: &[&str], down: Duration) -> anyhow::Result<()> {
        for process in processes {
            self.suite.take_process(process)?.kill().await?;
            run.judge.count("processes killed");
        }
        tokio::time::sleep(down).await;
        for process in processes {
            let began = Instant::now();
            self.suite.start_process(process).await?;
            run.judge.took("start of a killed process", began.elapsed());
        }
        Ok(())
    }

    /// Waits until a write is acknowledged and seen by a search in every table, and all say that they serve; whether it came to that.
    pub(super) async fn recover(&self, run: &Run) -> bool {
        let began = Instant::now();
        // The searchers may be at long ones.
        let mut searcher = Searcher::new(run, 0);
        let recovered = async {
            for table in 0..TABLES.len() {
                while !run.model.seen_since(table, began) || !health::serves(run, table).await {
                    searcher.look(table).await;
                    tokio::time::sleep(LOOK).await;
                }
            }
        };
        let recovered = tokio::time::timeout(RECOVERY_MAX, recovered).await.is_ok();
        run.judge.took("recovery", began.elapsed());
        if !recovered {
            for (table, names) in TABLES.iter().enumerate() {
                let written = run.model.written_since(table, began);
                let seen = run.model.seen_since(table, began);
                let serves = health::serves(run, table).await;
                let index = run
                    .calls
                    .call(&index_call("Get"), &json!({"index": names.items}))
                    .await;
                let items = names.items;
                run.judge.say(format_args!(
                    "{items}: written {written}, seen {seen}, SERVING {serves}, {index:?}"
                ));
            }
        }
        recovered
    }

    /// Adds a field to an index, or drops it; or has its texts become words in another way.
    async fn redesign(&self, run: &Run, table: usize) {
        let names = &TABLES[table];
        let of = json!({"index": names.items});
        let Ok(answer) = run.calls.call(&index_call("Get"), &of).await else {
            return;
        };
        let index = &answer["index"];
        let to_be = match list(index, "fields_to_be") {
            [] => list(index, "fields"),
            to_be => to_be,
        };
        let has = |field: &str| to_be.iter().any(|known| known["field"] == field);
        let change = match (has("colour"), has("level")) {
            (false, _) => json!({"add_field": {"field": "colour", "type": "INDEX_FIELD_TYPE_KEYWORD"}}),
            (true, false) => json!({"add_field": {"field": "level", "type": "INDEX_FIELD_TYPE_LONG"}}),
            (true, true) => json!({"drop_field": {"field": "colour"}}),
        };
        let analyzer = match has("level") {
            true => json!({"single_word": {}}),
            false => json!({"max_word": {}}),
        };
        let analyzer = json!({"set_analyzer": {"field": names.text, "analyzer": analyzer}});
        let request = json!({"index": names.items, "changes": [change, analyzer]});
        match run.calls.call(&index_call("Update"), &request).await {
            Ok(_) => run.judge.count("redesigns begun"),
            Err(Failed::Wrong(how)) => run.judge.wrong(how),
            Err(Failed::Refused | Failed::Unknown) => run.judge.count("redesigns refused"),
        }
    }

    /// What there is of backups is whole.
    pub(super) async fn check_backups(&self, run: &Run) -> anyhow::Result<()> {
        for table in &TABLES {
            let folder = self.backups().join(table.process);
            let whole = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            let whole = whole.filter(|entry| entry.path().extension().is_none_or(|end| end != "partial"));
            if whole.count() > 0 {
                check(run, "--backups", &folder).await?;
            }
        }
        Ok(())
    }

    /// Lifts all faults, and waits until no index is being built.
    pub(super) async fn calm(&mut self, run: &Run) -> anyhow::Result<()> {
        if let Some(device) = &mut self.device {
            device.empty()?;
        }
        for interposer in self.interposers.values() {
            interposer.set_clock_ahead(0)?;
        }
        let built = async {
            for table in &TABLES {
                while let Some(build) = build(
                    run,
                    &run.calls
                        .call(&index_call("Get"), &json!({"index": table.items}))
                        .await,
                ) {
                    anyhow::ensure!(
                        build["step"] != "INDEX_BUILD_STEP_FAILED",
                        "{}: {build}",
                        table.items
                    );
                    tokio::time::sleep(LOOK).await;
                }
            }
            Ok(())
        };
        match tokio::time::timeout(RECOVERY_MAX, built).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => run
                .judge
                .wrong(format_args!("a build waits for a restart: {error}")),
            Err(_) => run.judge.wrong("builds don't end"),
        }
        Ok(())
    }
}

/// The build under way, or that it isn't known.
fn build(run: &Run, answer: &Result<Value, Failed>) -> Option<Value> {
    match answer {
        Ok(answer) => answer["index"].get("build").cloned(),
        Err(Failed::Wrong(how)) => {
            run.judge.wrong(how);
            None
        }
        Err(Failed::Refused | Failed::Unknown) => Some(Value::Null),
    }
}

/// `souk check`.
pub(super) async fn check(run: &Run, what: &str, folder: &Path) -> anyhow::Result<()> {
    souk(run, &["check", what, &folder.display().to_string()]).await
}

/// Runs `souk` to its end, which has to be a good one.
pub(super) async fn souk(run: &Run, arguments: &[&str]) -> anyhow::Result<()> {
    let owned: Vec<_> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    let ended = Process::run_to_end(SOUK, &owned, &[]).await?;
    run.judge.count(&format!("souk {}", arguments[0]));
    if !ended.status.success() {
        run.judge
            .wrong(format_args!("souk {arguments:?}: {}", ended.stderr));
    }
    Ok(())
}

fn word(event: Event) -> String {
    let word = match event {
        Event::Kill(GATEWAY) => "kill of the gateway",
        Event::Kill(_) => "kill of a service",
        Event::KillAll => "kill of all",
        Event::FullDisk(Room::ForDeletes) => "disk below its reserve",
        Event::FullDisk(Room::ForNothing) => "disk below a quarter of it",
        Event::FullDisk(Room::None) => "disk without any room",
        Event::FailingSync(_) => "failing fsyncs",
        Event::ClockJump(..) => "jump of a clock",
        Event::Redesign(_) => "redesign",
        Event::CheckBackups => "check of backups",
    };
    word.to_owned()
}

//! The power fails while an engine writes, indexes, makes indexes durable and trims its log; what is left is an index that
//! the log continues, and it holds what one holds that is built from the table.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use souk_api::{Error, Resources, indexes};
use souk_engine::storage::{Database, DatabaseOptions, FjallOptions, ManualClock};
use souk_engine::{Engine, EngineConfig, EngineError, Health, Tables};
use souk_proto::search::v1 as pb;

use super::disk::{Disk, Loss, Names};
use super::shim::{self, Treated, Voice};
use super::trace;
use crate::note::{self, Note};
use crate::{holdings, rounds, seed};

/// The ignored test that is the process.
const WORKER: &str = "faults::power_loss::worker";
/// Tells the worker where to work.
const DIRECTORY: &str = "SOUK_WORKER_DIRECTORY";
/// Where the engine is, below the folder that is watched: its own directory has to survive, too.
const BELOW: &str = "engine";
const HOUR: Duration = Duration::from_secs(3_600);
const START: i64 = 1_700_000_000_000_000_000;
/// When the power is back: after all that was written.
const LATER: i64 = START + 100 * 3_600 * 1_000_000_000;
const CYCLES: u32 = 6;
/// Lives in which a build that a restart cut short ends.
const LIVES_MAX: u32 = 5;
/// Begins the line of an acknowledged write: then comes its sequence.
const ACKNOWLEDGED: &str = "acknowledged ";

fn options(clock: Arc<ManualClock>) -> DatabaseOptions {
    DatabaseOptions {
        clock,
        retention: HOUR,
        maintenance_interval: 1_000 * HOUR,
        fjall: FjallOptions {
            memory_bytes: 16 << 20,
            ..FjallOptions::default()
        },
        ..DatabaseOptions::default()
    }
}

async fn open(directory: &Path, clock: &Arc<ManualClock>) -> (Engine, Resources<Note>) {
    let mut config = EngineConfig::new(directory);
    config.storage = options(Arc::clone(clock));
    let engine = Engine::open(config, Tables::new().table::<Note>()).await;
    let engine = engine.expect("the engine opens");
    let mut health = engine.health();
    let served = health.wait_for(Health::is_serving).await.map(|_| ());
    served.expect("the engine lives");
    let notes = Resources::new(&engine).expect("the table is declared");
    (engine, notes)
}

/// Writes in several lives of an engine. In some the index is made to another one, in one it is made durable while it is
/// written; in each the log is trimmed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs in a process that is cut off"]
async fn worker() {
    let directory = std::env::var(DIRECTORY).expect("a directory to work in");
    let directory = Path::new(&directory);
    let voice = Voice::find();
    let mut random = fastrand::Rng::with_seed(seed("worker"));
    let clock = Arc::new(ManualClock::new(START));
    for cycle in 0..CYCLES {
        let (engine, notes) = open(directory, &clock).await;
        if cycle % 2 == 1 {
            let change = add(&format!("field{cycle}"));
            let changed = note::update_index(&engine, "notes", &[change], false).await;
            changed.expect("a change of the index");
        }
        for _ in 0..60 {
            write(&notes, &mut random, &voice).await;
        }
        if cycle == 2 {
            // Until it was made durable beside its writers.
            let consumer = engine
                .database()
                .consumer("index_notes")
                .await
                .expect("a consumer");
            let before = consumer.position();
            while consumer.position() == before {
                write(&notes, &mut random, &voice).await;
            }
        }
        clock.advance(2 * HOUR);
        write(&notes, &mut random, &voice).await;
        engine.database().maintain().await.expect("maintenance");
        settled(&engine).await;
        note::close(engine).await;
    }
    voice.say("closed");
}

fn add(field: &str) -> pb::IndexChange {
    let add = pb::AddIndexField {
        field: field.to_owned(),
        r#type: pb::IndexFieldType::Long.into(),
        source: "rank".to_owned(),
        ..pb::AddIndexField::default()
    };
    pb::IndexChange {
        kind: Some(pb::index_change::Kind::AddField(add)),
    }
}

/// Waits until the index is as wanted.
async fn settled(engine: &Engine) {
    while indexes::get(engine, "notes").await.expect("an index").phase() != pb::IndexPhase::Serving {
        tokio::task::yield_now().await;
    }
}

async fn write(notes: &Resources<Note>, random: &mut fastrand::Rng, voice: &Voice) {
    let id = format!("n{}", random.u32(..200));
    let note = Note::new(&id, ["ada", "bob", "cyd"][random.usize(..3)], random.i64(..1_000));
    let written = if random.u8(..4) == 0 {
        notes.delete(&id, None).await.map(|deleted| deleted.sequence)
    } else {
        match notes.create(note.clone(), None, false).await {
            Err(Error::Engine(EngineError::AlreadyExists { .. })) => {
                let changed = notes.update(&id, None, |_| Ok::<_, Error>(note.clone())).await;
                changed.map(|changed| changed.sequence)
            }
            created => created.map(|created| created.sequence),
        }
    };
    match written {
        Ok(sequence) => voice.say(&format!("{ACKNOWLEDGED}{sequence}")),
        Err(Error::Engine(EngineError::NotFound { .. })) => {}
        Err(error) => panic!("{error:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_never_ends_before_the_log_begins() {
    let Some(library) = shim::library("power loss of indexes") else {
        return;
    };
    let mut random = fastrand::Rng::with_seed(seed("power loss of indexes"));
    for _ in 0..rounds(1, 6) {
        let folder = shim::fast_directory();
        let beside = shim::fast_directory();
        let mut disk = Disk::of(folder.path());
        let treated = Treated {
            library,
            folder: folder.path(),
            beside: beside.path(),
            rules: &[],
        };
        let environment = [
            (DIRECTORY, folder.path().join(BELOW).display().to_string()),
            ("SOUK_SEED", random.u64(..).to_string()),
        ];
        let ended = treated.run(WORKER, &environment, true);
        assert!(
            !ended.was_killed() && ended.marks.ends_with("closed\n"),
            "{}",
            ended.story()
        );
        let events = trace::read(&treated.trace());
        let (mut applied, mut acknowledged, mut trimmed) = (0, 0, 0);
        for cut in trace::cuts(&mut random, &events, rounds(40, 250)) {
            for event in &events[applied..cut] {
                disk.apply(event);
                if let trace::Event::Mark { text } = event
                    && let Some(sequence) = text.trim_end().strip_prefix(ACKNOWLEDGED)
                {
                    acknowledged = sequence.parse().expect("a sequence");
                }
            }
            applied = cut;
            let (loss, names) = (Loss::any(&mut random), Names::any(&mut random));
            println!(
                "cut at {cut} of {}: {loss:?} is lost, names are {names:?}; acknowledged up to {acknowledged}",
                events.len()
            );
            let found = shim::fast_directory();
            disk.lose_power(&mut random, loss, names, found.path());
            trimmed += usize::from(recover(&found.path().join(BELOW), acknowledged).await);
        }
        assert!(trimmed > 0, "no cut was behind a trimming");
    }
}

/// Looks at what is left before anything repairs it, then opens it, and compares its index with one that is built from its
/// table. Whether the log was trimmed.
async fn recover(directory: &Path, acknowledged: u64) -> bool {
    let clock = Arc::new(ManualClock::new(LATER));
    let database = Database::open(directory.join("store"), options(Arc::clone(&clock))).await;
    let database = database.expect("the store opens");
    let snapshot = database.snapshot().await.expect("a snapshot");
    let oldest = snapshot.oldest_change().await.expect("readable");
    let last = snapshot.sequence();
    drop(snapshot);
    let consumer = database.consumer("index_notes").await.expect("a consumer");
    let position = consumer.position();
    drop(consumer);
    database.close().await.expect("the store closes");
    drop(database);
    assert!(
        last >= acknowledged,
        "{acknowledged} was acknowledged, the log ends at {last}"
    );

    let folders = holdings::folders(directory, "notes");
    let ends = folders.iter().filter_map(|folder| holdings::complete(folder));
    let end = ends
        .map(|index| index.durable_sequence())
        .filter(|end| *end <= last)
        .max();
    assert!(
        end.is_some() || (position == 0 && oldest <= 1),
        "no index is left of {folders:?}, and the log, which begins at {oldest}, may be trimmed up to {position}"
    );
    let end = end.unwrap_or_default();
    assert!(
        end >= position && end + 1 >= oldest,
        "the index ends at {end}, and the log, which begins at {oldest}, may be trimmed up to {position}"
    );

    let (index, aside) = (directory.join("index"), directory.join("aside"));
    let is_left = index.exists();
    if is_left {
        std::fs::rename(&index, &aside).expect("set aside");
    }
    live(directory, &clock).await;
    let folders = holdings::folders(directory, "notes");
    let [folder] = folders.as_slice() else {
        panic!("one index: {folders:?}");
    };
    let rebuilt = holdings::of(folder);
    std::fs::remove_dir_all(&index).expect("removed");
    if is_left {
        std::fs::rename(&aside, &index).expect("put back");
    }
    for _ in 0..LIVES_MAX {
        live(directory, &clock).await;
        if holdings::complete(folder).is_some() {
            break;
        }
    }
    let tailed = holdings::of(folder);
    holdings::assert_same(&tailed, &rebuilt);
    assert_eq!((tailed.sequence, rebuilt.sequence), (last, last));
    oldest > 1
}

/// One life of an engine, until its index is as wanted; in which the old one may answer before the new one is announced.
async fn live(directory: &Path, clock: &Arc<ManualClock>) {
    let (engine, notes) = open(directory, clock).await;
    settled(&engine).await;
    note::close(engine).await;
    drop(notes);
}

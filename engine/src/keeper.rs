//! Keeps the index of one table: opens it or has it built, lets it follow the log, and when it is designed otherwise has
//! the new one built beside it and put into its place.
//!
//! | thread | what it does |
//! |---|---|
//! | opening | looks for indexes in the table's folder, starts what is needed, and ends |
//! | serving | one index follows the log, and answers |
//! | draft | another is filled from the table, then follows the log, and takes the place of the serving one |
//!
//! An index is complete or not by its own last commit, and is found by the fingerprint of its design: so at any moment a
//! crash leaves folders that the next opening understands. The new index replaces the old one between two searches.
//! For that the old one stops following the log, and answers as it is until the new one has reached it: what searches
//! see never goes back.

mod draft;
mod folder;
mod follower;
mod pending;
mod rhythm;
mod verify;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;
use souk_chassis::huge_pages;
use souk_chassis::telemetry::Role;
use souk_index::{Index, IndexOptions, IndexWriter};
use souk_storage::{Consumer, Database};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

pub(crate) use self::follower::FollowOptions;
use self::follower::Follower;
pub use self::verify::VerifyOptions;
use crate::design::Design;
use crate::error::{EngineError, Result};
use crate::index_state::{Build, IndexState, Phase, Step};
use crate::log_tail::LogTail;
use crate::metrics::EngineMetrics;
use crate::table::OpenTable;

/// What all keepers of an engine have in common.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    pub(crate) database: Database,
    pub(crate) tail: Arc<LogTail>,
    pub(crate) options: FollowOptions,
    pub(crate) metrics: EngineMetrics,
    /// Cancelled when the engine closes.
    pub(crate) closing: CancellationToken,
}

/// Keeps the index of one table. Clones are the same keeper.
#[derive(Clone, Debug)]
pub(crate) struct Keeper {
    keeping: Arc<Keeping>,
}

/// What the threads of a keeper share.
#[derive(Debug)]
struct Keeping {
    table: Arc<OpenTable>,
    database: Database,
    tail: Arc<LogTail>,
    options: FollowOptions,
    metrics: EngineMetrics,
    closing: CancellationToken,
    /// Of all indexes of the table.
    folder: PathBuf,
    consumer: Consumer,
    runtime: Handle,
    role: Option<Role>,
    threads: Mutex<Threads>,
    /// Held by whoever replaces the serving index, or the draft.
    changing: Mutex<()>,
}

#[derive(Debug, Default)]
struct Threads {
    opening: Option<Running>,
    serving: Option<Running>,
    draft: Option<Running>,
}

/// A thread, and how to stop it.
#[derive(Debug)]
struct Running {
    stop: CancellationToken,
    thread: JoinHandle<()>,
}

/// Whether an index may take the place of the one that answers.
enum Promotion {
    /// Not yet: something else is changing.
    Later,
    /// Nobody else follows the log: once it includes everything that searches have seen.
    Alone {
        /// That is this sequence.
        reached: u64,
    },
}

impl Running {
    fn join(self) {
        self.stop.cancel();
        if self.thread.join().is_err() {
            error!("a thread of an index panicked");
        }
    }
}

impl Keeper {
    /// Starts to keep the index of a table in a folder.
    ///
    /// # Errors
    /// What the store refuses; when the system gives no thread.
    pub(crate) async fn start(table: Arc<OpenTable>, around: Surroundings, folder: PathBuf) -> Result<Self> {
        let consumer = format!("index_{}", table.declaration.name);
        let keeping = Arc::new(Keeping {
            consumer: around.database.consumer(&consumer).await?,
            table,
            database: around.database,
            tail: around.tail,
            options: around.options,
            metrics: around.metrics,
            closing: around.closing,
            folder,
            runtime: Handle::current(),
            role: Role::current(),
            threads: Mutex::default(),
            changing: Mutex::default(),
        });
        let opening = keeping.spawn("open", |keeping, _| keeping.open())?;
        keeping.threads.lock().opening = Some(opening);
        Ok(Self { keeping })
    }

    /// Makes the index to one of the wanted design ([`OpenTable::wanted`]), in the background. Blocks while an earlier
    /// draft stops.
    ///
    /// # Errors
    /// What the disk, the store or the system refuses.
    pub(crate) fn redesign(&self) -> Result<()> {
        let keeping = &self.keeping;
        let _changing = keeping.changing.lock();
        let draft = keeping.threads.lock().draft.take();
        if let Some(draft) = draft {
            draft.join();
        }
        keeping.state().set_build(None);
        if keeping.closing.is_cancelled() {
            return Err(EngineError::Closing);
        }
        let wanted = keeping.table.wanted();
        let serving = keeping.state().serving();
        let serving = serving.map(|serving| serving.design.fingerprint());
        if serving == Some(wanted.fingerprint()) {
            return folder::retain(keeping, &[wanted.fingerprint()], &[]);
        }
        let kept: Vec<u64> = serving.into_iter().chain([wanted.fingerprint()]).collect();
        folder::retain(keeping, &kept, &[wanted.fingerprint()])?;
        keeping.draft(wanted)
    }

    /// Waits for the threads, which end when the engine closes.
    pub(crate) fn join(self) {
        // Each may start, or become, the one behind it until it has ended.
        let opening = self.keeping.threads.lock().opening.take();
        opening.into_iter().for_each(Running::join);
        let draft = self.keeping.threads.lock().draft.take();
        draft.into_iter().for_each(Running::join);
        let serving = self.keeping.threads.lock().serving.take();
        serving.into_iter().for_each(Running::join);
    }
}

impl Keeping {
    fn state(&self) -> &IndexState {
        &self.table.index
    }

    fn index_options(&self, design: &Design) -> IndexOptions {
        let mut options = IndexOptions::default();
        options.writer_memory_bytes = self.options.writer_memory;
        options.label = design.label();
        options.verified_at_open = self.options.verify.at_open;
        options
    }

    /// An index has about so many documents, or will have: large ones are searched faster in huge pages of memory.
    fn expect(&self, documents: u64) {
        if documents >= self.options.huge_pages_from && huge_pages::allow() {
            let table = self.table.declaration.name;
            info!(
                table,
                documents, "the process gets huge pages of memory from now on"
            );
        }
    }

    /// Runs something on a thread of its own.
    fn spawn(
        self: &Arc<Self>,
        doing: &'static str,
        run: impl FnOnce(&Arc<Self>, &CancellationToken) -> Result<()> + Send + 'static,
    ) -> Result<Running> {
        let keeping = Arc::clone(self);
        let stop = self.closing.child_token();
        let stopped = stop.clone();
        let thread = std::thread::Builder::new()
            .name(format!("{doing}-{}", self.table.declaration.name))
            .spawn(move || {
                let _entered = keeping.role.map(Role::enter);
                let ended = match run(&keeping, &stopped) {
                    Err(failure) if verify::is_damage(&failure) => {
                        verify::build_anew(&keeping, &failure, &stopped)
                    }
                    ended => ended,
                };
                if let Err(failure) = ended {
                    keeping.failed(doing, &failure);
                }
            })
            .map_err(|source| EngineError::Io {
                doing: "starting a thread of an index",
                source,
            })?;
        Ok(Running { stop, thread })
    }

    /// A draft that fails leaves the index that answers as it is; it is begun again when the process starts.
    fn failed(&self, doing: &'static str, failure: &EngineError) {
        let table = self.table.declaration.name;
        error!(table, doing, error = %failure, "the index has failed");
        let answers = self.threads.lock().serving.is_some();
        match self.state().build() {
            Some(build) if doing == DRAFT && answers => self.state().set_build(Some(Build {
                step: Step::Failed(failure.to_string()),
                ..build
            })),
            _ => self.state().set_phase(Phase::Failed(failure.to_string())),
        }
    }

    /// Looks what there is, and starts what is needed.
    fn open(self: &Arc<Self>) -> Result<()> {
        let _changing = self.changing.lock();
        let wanted = self.table.wanted();
        let found = folder::find(self, &wanted)?;
        let serving = found.as_ref().map(|found| found.design.fingerprint());
        let needs_draft = serving != Some(wanted.fingerprint());
        let kept: Vec<u64> = serving.into_iter().chain([wanted.fingerprint()]).collect();
        // The feed of a complete index is removed when the index is known to be durable beyond it.
        folder::retain(self, &kept, &[wanted.fingerprint()])?;
        if let Some(found) = found {
            if needs_draft {
                warn!(
                    table = self.table.declaration.name,
                    "the index was made for another declaration; it answers until the new one is built"
                );
            }
            let serving = self.spawn(SERVING, move |keeping, stop| {
                let writer = found.index.writer()?;
                Follower::new(Arc::clone(keeping), found.design, found.index, writer, false).run(stop)
            })?;
            self.threads.lock().serving = Some(serving);
        }
        if needs_draft {
            self.draft(wanted)?;
        }
        Ok(())
    }

    /// Starts to build an index of a design, which then takes the place of the serving one.
    fn draft(self: &Arc<Self>, design: Arc<Design>) -> Result<()> {
        self.tell(Step::Reading, 0, 0, 0);
        let mut threads = self.threads.lock();
        let draft = self.spawn(DRAFT, move |keeping, stop| {
            let Some((index, writer)) = keeping.fill(&design, stop)? else {
                return Ok(());
            };
            Follower::new(Arc::clone(keeping), design, index, writer, true).run(stop)
        })?;
        threads.draft = Some(draft);
        Ok(())
    }

    fn fill(&self, design: &Design, stop: &CancellationToken) -> Result<Option<(Index, IndexWriter)>> {
        match draft::of_empty_table(self, design)? {
            Some(filled) => Ok(Some(filled)),
            None => draft::fill(self, design, stop),
        }
    }

    /// Tells how far a draft is.
    fn tell(&self, step: Step, rows: u64, about: u64, sequence: u64) {
        self.state().set_build(Some(Build {
            step,
            rows,
            about,
            sequence,
        }));
    }

    /// Lets the index of a design, which is as far as the log was when it was opened, answer. A draft takes the place of
    /// the serving one, which stops following.
    fn promote(&self, fingerprint: u64, is_draft: bool) -> Promotion {
        let Some(_changing) = self.changing.try_lock() else {
            return Promotion::Later;
        };
        if is_draft {
            if self.table.wanted().fingerprint() != fingerprint {
                // Another draft is about to stop this one.
                return Promotion::Later;
            }
            let mut threads = self.threads.lock();
            // A draft asks again while it catches up with what searches have seen.
            if let Some(draft) = threads.draft.take() {
                let serving = threads.serving.replace(draft);
                drop(threads);
                serving.into_iter().for_each(Running::join);
            }
        }
        Promotion::Alone {
            reached: self.state().applied(),
        }
    }

    /// Removes what the index of a design, which serves and is durable, has replaced.
    fn remove_others(&self, design: &Design) -> Result<()> {
        // Whoever is changing something may be waiting for this thread to end, and removes what there is to remove.
        let Some(_changing) = self.changing.try_lock() else {
            return Ok(());
        };
        let wanted = self.table.wanted().fingerprint();
        if design.fingerprint() != wanted {
            return Ok(());
        }
        self.state().set_build(None);
        folder::retain(self, &[wanted], &[])
    }
}

/// The names of the threads, and what the log says has failed.
const SERVING: &str = "serve";
const DRAFT: &str = "build";

//! Manages one index of a table: opens or builds it, keeps it following the change log, and when its design changes, builds the
//! new index (a reindex) while the old one serves, then replaces it. Each index of a table has a keeper, independent of the others.
//!
//! The index of a table of the catalog is opened when it is first used or the log has a change of its table, and closed after
//! [`FollowOptions::close_idle_after`] without either. An unopened index has no thread: one task watches the log for all [sleepers].
//!
//! | thread | what it does |
//! |---|---|
//! | opening | looks what is in the index's folder, starts what is needed, and ends |
//! | serving | one index follows the log, and answers |
//! | draft | another is filled from the table, then follows the log, and takes the place of the serving one |
//!
//! The last commit of an index says whether it is complete, and its folder is named by the fingerprint of its design: so
//! the next opening understands what a crash at any moment leaves. A new index replaces the old one between two searches.
//! Before, the old one stops following the log, and serves as it is until the new one has reached its sequence: what
//! searches see never goes back. A failure ends no thread: each has a [supervisor].

mod backoff;
mod draft;
mod folder;
mod follower;
mod opening;
mod pending;
mod refresh_policy;
mod room;
mod sleepers;
mod supervisor;
#[cfg(test)]
mod tests;
mod verify;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use opentelemetry::Context;
use parking_lot::Mutex;
use souk_index::limits::MAX_OPERATIONS;
use souk_index::{Index, IndexOptions, IndexWriter, Operation, StopOpening};
use souk_storage::{Consumer, Database};
use tokio::runtime::Handle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use self::backoff::Backoff;
pub(crate) use self::follower::FollowOptions;
pub(crate) use self::room::Room;
pub(crate) use self::sleepers::Sleepers;
use self::sleepers::Unchanged;
use self::supervisor::Supervisor;
pub use self::verify::VerifyOptions;
use crate::definition::index_name;
use crate::design::Design;
use crate::error::{EngineError, Result};
use crate::index_state::{Build, IndexState, Opener, Phase, Step};
use crate::log_tail::LogTail;
use crate::observer::Observer;
use crate::open_index::OpenIndex;
use crate::open_table::OpenTable;
use crate::trace;

/// What all keepers of an engine share.
#[derive(Clone, Debug)]
pub(crate) struct KeeperContext {
    pub(crate) database: Database,
    pub(crate) tail: Arc<LogTail>,
    pub(crate) options: FollowOptions,
    pub(crate) room: Room,
    pub(crate) sleepers: Arc<Sleepers>,
    pub(crate) observer: Arc<dyn Observer>,
    /// Cancelled when the engine closes.
    pub(crate) closing: CancellationToken,
}

/// Keeps one index. Clones are the same keeper.
#[derive(Clone, Debug)]
pub(crate) struct Keeper {
    keeping: Arc<Keeping>,
}

/// What the threads of a keeper share.
#[derive(Debug)]
struct Keeping {
    table: Arc<OpenTable>,
    index: Arc<OpenIndex>,
    database: Database,
    tail: Arc<LogTail>,
    options: FollowOptions,
    room: Room,
    sleepers: Arc<Sleepers>,
    /// The part of the log without changes of its table, as known when it was opened last.
    unchanged: Mutex<Option<Unchanged>>,
    observer: Arc<dyn Observer>,
    closing: CancellationToken,
    /// The folder of the index, with a folder in it for each design.
    folder: PathBuf,
    consumer: Consumer,
    runtime: Handle,
    /// The trace context of the threads.
    context: Context,
    threads: Mutex<Threads>,
    /// Locked while the serving index or the draft is replaced.
    changing: Mutex<()>,
}

#[derive(Debug, Default)]
struct Threads {
    opening: Option<Running>,
    serving: Option<Running>,
    draft: Option<Running>,
    /// The one that was serving, and has closed the index.
    closed: Option<Running>,
}

/// A thread, and how to stop it.
#[derive(Debug)]
struct Running {
    /// Fingerprint of the design whose index it builds or lets follow the log; `None` of the opening thread.
    follows: Option<u64>,
    stop: CancellationToken,
    thread: JoinHandle<()>,
}

/// Whether an index may serve in the place of another.
enum Promotion {
    /// Not now, because another change is under way: try again.
    Later,
    /// Once it has reached the last sequence that searches have seen: the other index has stopped following the log.
    Alone {
        /// That sequence.
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
    /// Starts to keep an index of a table. `folder` is that of all indexes, `fed` are those [with feeds](with_feeds). It isn't
    /// opened while nothing asks for it.
    ///
    /// # Errors
    /// What the store refuses; when the system gives no thread.
    pub(crate) async fn start(
        table: Arc<OpenTable>,
        index: Arc<OpenIndex>,
        shared: KeeperContext,
        folder: &Path,
        fed: &BTreeSet<String>,
    ) -> Result<Self> {
        let consumer = consumer_name(index.name());
        let keeping = Arc::new(Keeping {
            consumer: shared.database.consumer(&consumer).await?,
            folder: folder.join(index.name()),
            table,
            index,
            database: shared.database,
            tail: shared.tail,
            options: shared.options,
            room: shared.room,
            sleepers: shared.sleepers,
            unchanged: Mutex::default(),
            observer: shared.observer,
            // Cancelled with the engine's, or when the index is dropped.
            closing: shared.closing.child_token(),
            runtime: Handle::current(),
            context: trace::background(),
            threads: Mutex::default(),
            changing: Mutex::default(),
        });
        let opened = Arc::downgrade(&keeping);
        keeping.state().opened_by(Opener(Box::new(move || {
            let keeping = opened.upgrade();
            // One without a thread has a stall, and is tried again.
            keeping.is_some_and(|keeping| keeping.wake().unwrap_or(true))
        })));
        if !keeping.stay_unopened(fed.contains(keeping.name())).await? {
            let opening = keeping.spawn(OPENING, None, Keeping::open_until_done)?;
            keeping.threads.lock().opening = Some(opening);
        }
        Ok(Self { keeping })
    }

    /// Starts to keep all indexes of a table, each by its name; none where one can't be.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub(crate) async fn start_all(
        table: &Arc<OpenTable>,
        shared: &KeeperContext,
        folder: &Path,
        fed: &BTreeSet<String>,
    ) -> Result<Vec<(Arc<str>, Self)>> {
        let mut keepers = Vec::new();
        for index in table.indexes().iter() {
            let started = Self::start(Arc::clone(table), Arc::clone(index), shared.clone(), folder, fed);
            match started.await {
                Ok(keeper) => keepers.push((Arc::clone(index.shared_name()), keeper)),
                Err(error) => {
                    end(keepers.into_iter().map(|(_, keeper)| keeper).collect()).await?;
                    return Err(error);
                }
            }
        }
        Ok(keepers)
    }

    /// Begins to replace the index by one of the wanted design ([`OpenIndex::wanted`]), in the background. Blocks while an earlier
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
        if keeping.state().is_unopened() && keeping.threads.lock().serving.is_none() {
            // Its opening looks for what is wanted, and is tried again when it gets no thread.
            let _begun = keeping.wake();
            return Ok(());
        }
        let wanted = keeping.index.wanted();
        if matches!(keeping.state().phase(), Phase::Failed(_)) {
            // An index that was given up doesn't follow the log any more, even if its design is wanted again.
            let failed = keeping.threads.lock().serving.take();
            failed.into_iter().for_each(Running::join);
        }
        let serving = keeping.state().serving();
        let serving = serving.map(|serving| serving.design.fingerprint());
        // Not the one that serves, while its replacement is promoted but hasn't reached it yet.
        let followed = keeping.threads.lock().serving.as_ref().and_then(|it| it.follows);
        let kept: Vec<u64> = serving
            .into_iter()
            .chain(followed)
            .chain([wanted.fingerprint()])
            .collect();
        keeping.retain(&kept, &[wanted.fingerprint()]);
        if followed == Some(wanted.fingerprint()) {
            return Ok(());
        }
        keeping.draft(wanted)
    }

    /// Ends the threads, and waits for them: the index is dropped.
    fn end(self) {
        self.keeping.closing.cancel();
        // A change of the index sees that, or ends before this goes on.
        drop(self.keeping.changing.lock());
        self.keeping.sleepers.forget(self.keeping.name());
        self.join();
    }

    /// Waits for the threads, which end when the engine closes.
    pub(crate) fn join(self) {
        // In this order: the opening thread may start the others, and the draft may become the serving one.
        let opening = self.keeping.threads.lock().opening.take();
        opening.into_iter().for_each(Running::join);
        let draft = self.keeping.threads.lock().draft.take();
        draft.into_iter().for_each(Running::join);
        let (serving, closed) = {
            let mut threads = self.keeping.threads.lock();
            (threads.serving.take(), threads.closed.take())
        };
        serving.into_iter().chain(closed).for_each(Running::join);
    }
}

impl Keeping {
    /// The index's name.
    fn name(&self) -> &str {
        self.index.name()
    }

    fn state(&self) -> &IndexState {
        &self.index.state
    }

    /// The options of the index of a design; its opening ends when `stop` is cancelled.
    fn index_options(&self, design: &Design, stop: &CancellationToken) -> IndexOptions {
        let mut options = IndexOptions::default();
        options.writer_memory_bytes = self.options.writer_memory;
        options.label = design.label(self.database.history());
        options.merge_room = self.room.of_merges();
        options.verified_at_open = self.options.verify.at_open;
        let stop = stop.clone();
        options.stop_opening = StopOpening::when(move || stop.is_cancelled());
        options
    }

    /// Reports a large index to the observer; `documents` is about how many it has, or will have.
    fn report_if_large(&self, documents: u64) {
        if documents >= self.options.large_index_from {
            self.observer.holds_much(self.table.shared_name(), documents);
        }
    }

    /// Runs `run` on a new thread, given the token that stops it.
    ///
    /// # Errors
    /// [`EngineError::Io`] when the system gives no thread.
    fn spawn(
        self: &Arc<Self>,
        doing: &'static str,
        follows: Option<u64>,
        run: impl FnOnce(&Arc<Self>, &CancellationToken) + Send + 'static,
    ) -> Result<Running> {
        let keeping = Arc::clone(self);
        let stop = self.closing.child_token();
        let stopped = stop.clone();
        let thread = std::thread::Builder::new()
            .name(format!("{doing}-{}", self.name()))
            .spawn(move || {
                let _attached = keeping.context.clone().attach();
                run(&keeping, &stopped);
            })
            .map_err(|source| EngineError::Io {
                doing: "starting a thread of an index",
                source,
            })?;
        Ok(Running {
            follows,
            stop,
            thread,
        })
    }

    /// Starts a supervised thread that opens or builds the index of a design, unless it is `opened`, and lets it follow the
    /// log.
    fn supervise(
        self: &Arc<Self>,
        doing: &'static str,
        design: Arc<Design>,
        opened: Option<Index>,
    ) -> Result<Running> {
        self.spawn(doing, Some(design.fingerprint()), move |keeping, stop| {
            Supervisor::new(Arc::clone(keeping), design, opened).run(stop);
        })
    }

    /// Whether the index of a design serves, or was promoted to.
    fn follows(&self, fingerprint: u64) -> bool {
        let threads = self.threads.lock();
        let serving = threads.serving.as_ref().and_then(|serving| serving.follows);
        serving == Some(fingerprint)
    }

    /// Starts to build the index of a design, which then replaces the serving one.
    fn draft(self: &Arc<Self>, design: Arc<Design>) -> Result<()> {
        self.show_build(Step::Reading, 0, 0, 0);
        let mut threads = self.threads.lock();
        threads.draft = Some(self.supervise(DRAFT, design, None)?);
        Ok(())
    }

    /// Whether a build of this design is the one whose progress is shown: the draft, or any while there is none.
    fn builds(&self, design: &Design) -> bool {
        let threads = self.threads.lock();
        let draft = threads.draft.as_ref().and_then(|draft| draft.follows);
        draft.is_none_or(|fingerprint| fingerprint == design.fingerprint())
    }

    /// Shows why the build of a design waits, or that it doesn't.
    fn show_waiting(&self, design: &Design, waiting: Option<String>) {
        if self.builds(design) {
            self.state().with_build(|build| build.waiting = waiting);
        }
    }

    /// Backpressure: waits while merges under way hold as much memory as they may, but at most [`MERGES_WAIT_MAX`], or
    /// [`MERGES_WAIT_AWAITED`] while a search waits for the changes.
    fn wait_for_merges(&self, writer: &IndexWriter, stop: &CancellationToken, is_awaited: impl Fn() -> bool) {
        let began = Instant::now();
        let patience = || match is_awaited() {
            true => MERGES_WAIT_AWAITED,
            false => MERGES_WAIT_MAX,
        };
        while writer.is_full() && !stop.is_cancelled() && began.elapsed() < patience() {
            let stopped = async { tokio::time::timeout(MERGES_LOOK, stop.cancelled()).await.is_ok() };
            if self.runtime.block_on(stopped) {
                return;
            }
        }
    }

    /// Waits until there is room for the draft of a design to grow; `false` when asked to stop meanwhile.
    fn wait_for_room(&self, design: &Design, stop: &CancellationToken) -> bool {
        let name = self.name();
        let mut backoff = Backoff::default();
        let mut waits = false;
        while let Some(reason) = self.room.shortage() {
            if !waits {
                warn!(index = name, reason, "the build waits for room on the device");
            }
            waits = true;
            if !self.state().answers() && self.state().current_stall().is_none() {
                self.state().stall(BUILD_WAITS, &reason);
            }
            self.show_waiting(design, Some(reason));
            if !backoff.wait(&self.runtime, stop) {
                return false;
            }
        }
        if waits {
            info!(index = name, "there is room on the device; the build goes on");
            self.state().stall_ends(BUILD_WAITS);
            self.show_waiting(design, None);
        }
        true
    }

    /// [`folder::retain`], where what stays is removed by the index that serves, later.
    fn retain(&self, designs: &[u64], feeds: &[u64]) {
        if let Err(error) = folder::retain(self, designs, feeds) {
            let name = self.name();
            warn!(index = name, %error, "what old indexes have left can't be removed yet");
        }
    }

    /// Shows how far a build is.
    fn show_build(&self, step: Step, rows: u64, about: u64, sequence: u64) {
        self.state().set_build(Some(Build {
            step,
            rows,
            about,
            sequence,
            waiting: None,
        }));
    }

    /// Promotes the index of a design, once it has caught up with the log: a draft replaces the serving index, which stops
    /// following the log. After that nothing but the end of its thread keeps it from serving.
    fn promote(&self, fingerprint: u64) -> Promotion {
        let Some(_changing) = self.changing.try_lock() else {
            return Promotion::Later;
        };
        let mut threads = self.threads.lock();
        let draft = threads.draft.take_if(|draft| draft.follows == Some(fingerprint));
        if let Some(draft) = draft {
            if self.index.wanted().fingerprint() != fingerprint {
                // Another draft is about to stop this one.
                threads.draft = Some(draft);
                return Promotion::Later;
            }
            let serving = threads.serving.replace(draft);
            drop(threads);
            serving.into_iter().for_each(Running::join);
        }
        Promotion::Alone {
            reached: self.state().applied(),
        }
    }

    /// Removes the folders and feeds that the index of a design, which serves and is durable, has replaced.
    fn remove_others(&self, design: &Design) -> Result<()> {
        // A change under way may be waiting for this thread to end, and removes them itself.
        let Some(_changing) = self.changing.try_lock() else {
            return Ok(());
        };
        let wanted = self.index.wanted().fingerprint();
        if design.fingerprint() != wanted {
            return Ok(());
        }
        self.state().set_build(None);
        folder::retain(self, &[wanted], &[])
    }
}

/// Ends the keepers of indexes that are dropped.
///
/// # Errors
/// [`EngineError::Defect`].
pub(crate) async fn end(keepers: Vec<Keeper>) -> Result<()> {
    let ended = tokio::task::spawn_blocking(move || keepers.into_iter().for_each(Keeper::end)).await;
    ended.map_err(|_| EngineError::Defect("ending an index panicked"))
}

/// Applies changes to an index, in batches of [`MAX_OPERATIONS`]: a transaction may have more.
fn apply_in_batches(writer: &mut IndexWriter, operations: Vec<Operation>) -> Result<()> {
    let mut operations = operations.into_iter();
    loop {
        let some: Vec<Operation> = operations.by_ref().take(MAX_OPERATIONS).collect();
        if some.is_empty() {
            return Ok(());
        }
        writer.apply(some)?;
    }
}

/// Removes what indexes that aren't `there` any more hold of the log. The folders of tables that aren't declared any more stay; should a
/// table be declared again, its index is built anew if the log has gone on.
pub(crate) async fn release_undeclared(database: &Database, there: &[&str]) {
    for (index, result) in release(database, |index| !there.contains(&index)).await {
        match result {
            Ok(()) => info!(index, "the index isn't there any more: the log isn't kept for it"),
            Err(error) => {
                warn!(index, %error, "the log is still kept for an index that isn't there any more")
            }
        }
    }
}

/// Removes all that some indexes have left: what they hold of the log, and what is in the folder of all indexes.
///
/// # Errors
/// What disk and store refuse.
pub(crate) async fn remove_all(
    database: &Database,
    folder: &Path,
    is_gone: impl Fn(&str) -> bool + Send + 'static,
) -> Result<()> {
    for (_, released) in release(database, &is_gone).await {
        released?;
    }
    let folder = folder.to_owned();
    let removed = tokio::task::spawn_blocking(move || {
        let names = folder::names(&folder)?.into_iter();
        // What is half removed is removed as what it was.
        let names = names.map(|name| match name.strip_suffix(folder::REMOVED) {
            Some(before) => before.to_owned(),
            None => name,
        });
        let gone: BTreeSet<String> = names.filter(|name| is_gone(name)).collect();
        gone.iter()
            .try_for_each(|name| folder::remove(&folder.join(name)))
    });
    removed
        .await
        .map_err(|_| EngineError::Defect("removing an index panicked"))?
}

/// Removes consumers of the log, and feeds of drafts, that belong to some indexes.
async fn release(
    database: &Database,
    is_of: impl Fn(&str) -> bool,
) -> Vec<(String, Result<(), souk_storage::Error>)> {
    let mut released = Vec::new();
    for consumer in database.consumers() {
        if let Some(index) = index_of_consumer(consumer.name()).filter(|index| is_of(index)) {
            released.push((index, consumer.remove().await));
        }
    }
    for feed in database.feeds() {
        if let Some(index) = folder::index_of_feed(feed.name()).filter(|index| is_of(index)) {
            released.push((index, feed.remove().await));
        }
    }
    released
}

/// The indexes that have feeds: of drafts, or to be removed.
pub(crate) fn with_feeds(database: &Database) -> BTreeSet<String> {
    let feeds = database.feeds().into_iter();
    feeds
        .filter_map(|feed| folder::index_of_feed(feed.name()))
        .collect()
}

/// Changes that the log keeps for each index, since it isn't durable beyond them.
pub(crate) fn logs_held(database: &Database) -> BTreeMap<String, u64> {
    let last = database.last_sequence();
    let held = database.consumers().into_iter().filter_map(|consumer| {
        let index = index_of_consumer(consumer.name())?;
        Some((index, last.saturating_sub(consumer.position())))
    });
    held.collect()
}

/// The name of an index's consumer of the log.
fn consumer_name(index: &str) -> String {
    format!("{CONSUMER_PREFIX}{}", index_name::stored(index))
}

fn index_of_consumer(name: &str) -> Option<String> {
    index_name::of_stored(name.strip_prefix(CONSUMER_PREFIX)?)
}

const CONSUMER_PREFIX: &str = "index_";

/// Why an index stalls while its build waits for disk space, in words for clients.
const BUILD_WAITS: &str = "the device has too little room for its build";

/// How long an index waits for merges to release memory before it applies changes nevertheless. Well below the time after
/// which [health](crate::health) takes an index for stalled.
const MERGES_WAIT_MAX: Duration = Duration::from_secs(4);
/// The same while a search waits for the changes.
const MERGES_WAIT_AWAITED: Duration = Duration::from_millis(100);
/// How often the wait checks for released memory, and for a search that waits.
const MERGES_LOOK: Duration = Duration::from_millis(20);

/// The names of the threads.
const OPENING: &str = "open";
const SERVING: &str = "serve";
const DRAFT: &str = "build";

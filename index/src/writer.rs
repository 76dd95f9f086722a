//! The sole writer of an index.

mod block;
mod boxed_document;
mod removal;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tantivy::TantivyError;
use tantivy::indexer::IndexWriterOptions;

use self::boxed_document::BoxedDocument;
use self::removal::Removal;
use crate::commit_payload::CommitPayload;
use crate::document::Operation;
use crate::error::Error;
use crate::index::{Completeness, Index, Shared};
use crate::limits::{MAX_OPERATIONS, limit};
use crate::merge::ReclaimingMergePolicy;
use crate::misfit::MisfitLog;

/// Commits while merges are under way, above which it is better to wait for these: the library keeps what was removed by
/// each commit since a merge began in a chain, and lets go of it by a recursion as deep as the chain is long. The stack of a
/// thread has room for several times as many.
const MAX_COMMITS_DURING_MERGES: usize = 5_000;

/// Merges at a time: a big one must not keep small segments from being merged.
const MERGE_THREADS: usize = 2;

/// Applies changes to an index. Blocking: hold it on a thread of its own.
///
/// Three steps, each including the ones before: [`apply`](Self::apply) takes changes in, [`commit`](Self::commit) lets
/// searches see them, [`checkpoint`](Self::checkpoint) makes them survive a crash. After a crash the index is exactly the
/// last checkpoint; apply again what came after [`crate::Index::durable_sequence`]. Applying twice changes nothing.
///
/// After an error of the disk every call answers [`Error::WriterFailed`], until the index is opened again; once damage is
/// known, [`Error::Corrupt`].
pub struct IndexWriter {
    pub(crate) shared: Arc<Shared>,
    /// Absent only while closing.
    physical: Option<tantivy::IndexWriter<BoxedDocument>>,
    /// Whether there are changes that no commit includes.
    pending: bool,
    committed: u64,
    /// Bytes of the removals that no commit includes.
    removed: usize,
    /// Commits in a row during which merges were under way.
    during_merges: usize,
    /// With the misfits of pending changes.
    misfits: MisfitLog,
    /// As the library has it, which shares with this one whether nobody writes.
    policy: ReclaimingMergePolicy,
}

impl Index {
    /// The writer; there is one at a time.
    ///
    /// # Errors
    /// [`Error::WriterBusy`] while there is one, also in another process; [`Error::WriterFailed`] after one failed.
    pub fn writer(&self) -> Result<IndexWriter, Error> {
        let shared = Arc::clone(&self.shared);
        check_failed(&shared)?;
        if shared.has_writer.swap(true, Ordering::AcqRel) {
            return Err(Error::WriterBusy);
        }
        // One thread: calls of `run` must not overtake each other, and memory is for one segment.
        let options = IndexWriterOptions::builder()
            .num_worker_threads(1)
            .num_merge_threads(MERGE_THREADS)
            .memory_budget_per_thread(shared.options.writer_memory())
            .build();
        let refused = |error| {
            shared.has_writer.store(false, Ordering::Release);
            match error {
                TantivyError::LockFailure(..) => Error::WriterBusy,
                error => Error::engine("opening the writer", error),
            }
        };
        let physical = shared.physical.writer_with_options(options);
        let physical: tantivy::IndexWriter<BoxedDocument> = physical.map_err(refused)?;
        let folder = shared.directory.as_ref();
        let folder = folder.map(|directory| directory.root.to_path_buf());
        let policy = ReclaimingMergePolicy {
            idle: Arc::default(),
            room: folder.map(|folder| (folder, shared.options.merge_room.clone())),
            ..shared.options.merge.clone()
        };
        physical.set_merge_policy(Box::new(policy.clone()));
        // The library numbers a writer's first operation as the last commit, and merges leave out removals of that number in
        // segments that have those of that commit: it is given to nothing.
        physical.run(Vec::new()).map_err(refused)?;
        let committed = shared.view().sequence;
        let misfits = shared.misfits.lock().clone();
        Ok(IndexWriter {
            shared,
            physical: Some(physical),
            pending: false,
            committed,
            removed: 0,
            during_merges: 0,
            misfits,
            policy,
        })
    }
}

impl IndexWriter {
    /// Takes changes in, in order. Nobody sees them before [`commit`](Self::commit). Values that don't fit their fields
    /// are left out and listed in [`crate::Index::misfits`] with the commit; so are documents whose keys are longer than
    /// [`MAX_KEY_BYTES`](crate::limits::MAX_KEY_BYTES).
    ///
    /// # Errors
    /// [`Error::EmptyKey`], [`Error::KeyNotText`] and [`Error::LimitExceeded`] before anything is taken in; [`Error::WriterFailed`].
    pub fn apply(&mut self, operations: Vec<Operation>) -> Result<(), Error> {
        check_failed(&self.shared)?;
        if operations.len() > MAX_OPERATIONS {
            let (actual, advice) = (operations.len(), "apply the changes in several calls");
            return Err(Error::limit("operations", limit!(MAX_OPERATIONS), actual, advice));
        }
        let text = self.shared.layout.key_is_text();
        let mut keys = operations.iter();
        keys.try_for_each(|operation| check_key(operation, text))?;
        self.policy.idle.store(false, Ordering::Release);
        for operation in operations {
            self.pending = true;
            self.shared.uncommitted.store(true, Ordering::Relaxed);
            let document = match operation {
                Operation::Delete { key } => {
                    self.remove(&key)?;
                    continue;
                }
                Operation::Insert(document) => document,
                Operation::Upsert(document) => {
                    self.remove(&document.key)?;
                    document
                }
            };
            // One `run` a document: its nested objects and itself go into one segment, next to each other. What it
            // replaces goes with the same commit.
            let adds = block::adds(&self.shared.layout, &document, &mut self.misfits);
            let run = self.physical()?.run(adds);
            run.map_err(|error| self.fail("taking a change in", error))?;
        }
        Ok(())
    }

    /// Lets searches see everything applied so far, as of `sequence`.
    ///
    /// # Errors
    /// [`Error::SequenceWentBack`] below the last commit's, and nothing happens; [`Error::WriterFailed`].
    pub fn commit(&mut self, sequence: u64) -> Result<(), Error> {
        self.commit_as(sequence, Completeness::Complete)
    }

    /// [`IndexWriter::commit`] of an index that lacks documents from before `sequence` still. Whoever fills it finds
    /// `resume` again in [`crate::Index::completeness`], with exactly the documents that he had applied.
    ///
    /// # Errors
    /// As [`IndexWriter::commit`].
    pub fn commit_partial(&mut self, sequence: u64, resume: String) -> Result<(), Error> {
        self.commit_as(sequence, Completeness::Partial { resume })
    }

    fn commit_as(&mut self, sequence: u64, completeness: Completeness) -> Result<(), Error> {
        check_failed(&self.shared)?;
        if sequence < self.committed {
            return Err(Error::SequenceWentBack {
                given: sequence,
                committed: self.committed,
            });
        }
        if !self.pending && sequence == self.committed && completeness == self.shared.completeness() {
            return Ok(());
        }
        self.write_payload(sequence, &completeness)?;
        self.pending = false;
        self.shared.uncommitted.store(false, Ordering::Relaxed);
        self.removed = 0;
        self.committed = sequence;
        *self.shared.completeness.lock() = completeness;
        *self.shared.misfits.lock() = self.misfits.clone();
        self.refresh()
    }

    /// Commits what was applied, and how far that is.
    fn write_payload(&mut self, sequence: u64, completeness: &Completeness) -> Result<(), Error> {
        let payload = CommitPayload {
            sequence,
            misfits: self.misfits.persisted(),
            resume: match completeness {
                Completeness::Partial { resume } => Some(resume.clone()),
                Completeness::Empty | Completeness::Complete => None,
            },
        }
        .encode()?;
        let committed = self.physical()?.prepare_commit().and_then(|mut prepared| {
            prepared.set_payload(&payload);
            prepared.commit()
        });
        committed.map_err(|error| self.fail("committing", error))?;
        self.during_merges = match self.merges() {
            true => self.during_merges.saturating_add(1),
            false => 0,
        };
        Ok(())
    }

    /// Makes the last commit durable. Takes as long as the disk needs: call it every few seconds, and before the change
    /// log is trimmed.
    ///
    /// # Errors
    /// [`Error::WriterFailed`], also when the disk refused: what it holds is then unknown until the index is opened
    /// again.
    pub fn checkpoint(&mut self) -> Result<(), Error> {
        check_failed(&self.shared)?;
        let durable = self.shared.checkpoint(self.committed);
        durable.map_err(|error| self.failed(error))?;
        self.refresh()
    }

    /// Whether a commit would let go of much memory: removals are held until then.
    pub fn wants_commit(&self) -> bool {
        self.removed > self.shared.options.writer_memory() / 2
    }

    /// Whether merges under way hold as many removals as there is memory for, or those of very many commits. Whoever takes
    /// in more nevertheless isn't refused: better is to wait until merges end.
    pub fn is_full(&self) -> bool {
        let held = self.shared.removals.load(Ordering::Relaxed);
        let much = held.saturating_sub(self.removed) > self.shared.options.writer_memory();
        (much || self.during_merges > MAX_COMMITS_DURING_MERGES) && self.merges()
    }

    fn merges(&self) -> bool {
        let directory = self.shared.directory.as_ref();
        directory.is_some_and(|directory| directory.merges().active > 0)
    }

    /// Segments that searches go through.
    pub fn segments(&self) -> usize {
        self.shared.view().searcher.segment_readers().len()
    }

    /// Merges segments in the background, far enough that searches go through few, and lets searches see what was merged
    /// since. For times in which nobody writes; whether there is something left to do, so that it should be called again
    /// soon.
    ///
    /// # Errors
    /// [`Error::WriterFailed`].
    pub fn consolidate(&mut self) -> Result<bool, Error> {
        check_failed(&self.shared)?;
        let segments = self.shared.physical.searchable_segment_metas();
        let segments = segments.map_err(|error| self.fail("listing segments", error))?;
        let consolidates = ReclaimingMergePolicy::consolidates(&segments);
        let idle = &self.policy.idle;
        // In memory nobody knows: there it isn't asked twice.
        let stopped = self.shared.directory.is_some() && !self.merges();
        if consolidates && !self.policy.has_room_to_consolidate(&segments) {
            // The next call looks again.
            idle.store(false, Ordering::Release);
        } else if consolidates && (!idle.swap(true, Ordering::AcqRel) || stopped) {
            // The library looks for merges when it commits, and after each merge: not again when there was no room then.
            self.write_payload(self.committed, &self.shared.completeness())?;
        }
        if self.segments() != segments.len() {
            self.refresh()?;
        }
        Ok(consolidates)
    }

    /// Waits for merges under way and makes the last commit durable. Changes that weren't committed are given up.
    ///
    /// # Errors
    /// [`Error::WriterFailed`].
    pub fn close(mut self) -> Result<(), Error> {
        check_failed(&self.shared)?;
        if let Some(physical) = self.physical.take() {
            let merged = physical.wait_merging_threads();
            merged.map_err(|error| self.fail("waiting for merges", error))?;
        }
        let durable = self.shared.checkpoint(self.committed);
        durable.map_err(|error| self.failed(error))?;
        self.shared.ends_well();
        self.refresh()
    }

    /// Removes a document and its nested objects: all of them carry the key.
    fn remove(&mut self, key: &[u8]) -> Result<(), Error> {
        let removal = Removal::new(self.shared.layout.key, key, &self.shared.removals);
        self.removed += removal.bytes();
        let removed = self.physical()?.delete_query(Box::new(removal));
        removed
            .map(drop)
            .map_err(|error| self.fail("taking a delete in", error))
    }

    pub(crate) fn physical(&mut self) -> Result<&mut tantivy::IndexWriter<BoxedDocument>, Error> {
        self.physical.as_mut().ok_or_else(|| Error::WriterFailed {
            detail: "it is closed".to_owned(),
        })
    }

    /// Lets searches see the last commit, and lets go of the files that merges since have replaced.
    pub(crate) fn refresh(&self) -> Result<(), Error> {
        let refreshed = self.shared.refresh(self.committed);
        refreshed.map_err(|error| self.failed(error))
    }

    pub(crate) fn fail(&self, doing: &'static str, error: TantivyError) -> Error {
        self.failed(Error::engine(doing, error))
    }

    /// Remembers the first failure, which every later call answers with.
    fn failed(&self, error: Error) -> Error {
        let mut failed = self.shared.failed.lock();
        let detail = failed.get_or_insert_with(|| error.to_string()).clone();
        let damage = self.shared.damage.check().err();
        damage.unwrap_or(Error::WriterFailed { detail })
    }
}

impl Drop for IndexWriter {
    fn drop(&mut self) {
        drop(self.physical.take());
        self.shared.has_writer.store(false, Ordering::Release);
    }
}

pub(crate) fn check_failed(shared: &Shared) -> Result<(), Error> {
    shared.damage.check()?;
    let failed = shared.failed.lock().clone();
    failed.map_or(Ok(()), |detail| Err(Error::WriterFailed { detail }))
}

fn check_key(operation: &Operation, text: bool) -> Result<(), Error> {
    let key = match operation {
        Operation::Upsert(document) | Operation::Insert(document) => &document.key,
        Operation::Delete { key } => key,
    };
    if key.is_empty() {
        return Err(Error::EmptyKey);
    }
    if text && str::from_utf8(key).is_err() {
        return Err(Error::KeyNotText);
    }
    Ok(())
}

//! An open index: its folder, its one writer, its searchers.

mod folder;
mod unopened;
mod verification;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};
use tantivy::schema::IndexRecordOption;
use tantivy::{IndexReader, ReloadPolicy};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::analyze;
use crate::checksum::IndexDamage;
use crate::commit_payload::CommitPayload;
use crate::directory::SoftDirectory;
use crate::error::Error;
use crate::layout::Layout;
use crate::limits::VERIFIED_AT_OPEN_BYTES;
use crate::merge::{MergeRoom, ReclaimingMergePolicy};
use crate::merge_log::MergeFigures;
use crate::misfit::{MisfitLog, MisfitReport};
use crate::run::SegmentCaches;
use crate::schema::{FieldKind, Schema};

pub use unopened::LastCommit;

/// The least memory that the search library's indexing thread works with.
const MIN_WRITER_MEMORY_BYTES: usize = 15_000_000;

/// Says whether an index that is being opened isn't wanted any more.
#[derive(Clone)]
pub struct StopOpening(Arc<dyn Fn() -> bool + Send + Sync>);

impl StopOpening {
    /// It isn't once `stopped` says so.
    pub fn when(stopped: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(stopped))
    }

    pub(crate) fn stops(&self) -> bool {
        (self.0)()
    }
}

impl Default for StopOpening {
    fn default() -> Self {
        Self::when(|| false)
    }
}

impl std::fmt::Debug for StopOpening {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("StopOpening").finish_non_exhaustive()
    }
}

/// Which opening of an index: no two of a process are equal, clones and views of one are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Opening(u64);

impl Opening {
    fn next() -> Self {
        static OPENINGS: AtomicU64 = AtomicU64::new(0);
        Self(OPENINGS.fetch_add(1, Ordering::Relaxed))
    }
}

/// How an index is opened.
#[derive(Clone, Debug)]
pub struct IndexOptions {
    /// Bytes of memory for documents that aren't committed; above, they are written to a segment early. At least 15 MB.
    /// And as many for removals that aren't applied: [`crate::IndexWriter::is_full`].
    pub writer_memory_bytes: usize,
    /// Bytes of files that are compared with their checksums while the index is opened, besides the lists of deleted
    /// documents; the others are for [`Index::verify_slowly`]. All are after two processes that ended early.
    pub verified_at_open: u64,
    /// What its maker wants to know of an index before he opens it, kept with the schema: [`Kept::label`]. Of an
    /// index that exists it changes nothing.
    pub label: String,
    /// Asked before each merge of an index in a folder.
    pub merge_room: MergeRoom,
    /// Asked while files are compared with their checksums at the opening, which then is [`Error::Cancelled`].
    pub stop_opening: StopOpening,
    pub(crate) merge: ReclaimingMergePolicy,
}

impl Default for IndexOptions {
    fn default() -> Self {
        Self {
            writer_memory_bytes: 128_000_000,
            verified_at_open: VERIFIED_AT_OPEN_BYTES,
            label: String::new(),
            merge_room: MergeRoom::default(),
            stop_opening: StopOpening::default(),
            merge: ReclaimingMergePolicy::default(),
        }
    }
}

impl IndexOptions {
    pub(crate) fn writer_memory(&self) -> usize {
        self.writer_memory_bytes.max(MIN_WRITER_MEMORY_BYTES)
    }
}

/// What an index was made with, as its folder says.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The schema.
    pub schema: Schema,
    /// [`IndexOptions::label`].
    pub label: String,
}

/// How much of what belongs into an index is in its last commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// Nothing was ever committed.
    Empty,
    /// Some of it: [`crate::IndexWriter::commit_partial`].
    Partial {
        /// Where to go on, as whoever fills the index has put it.
        resume: String,
    },
    /// Everything up to [`Index::applied_sequence`].
    Complete,
}

impl Completeness {
    /// That of an index whose last commit, if there `is` one, has a payload.
    fn of(is: bool, payload: &CommitPayload) -> Self {
        match (is, &payload.resume) {
            (false, _) => Self::Empty,
            (true, Some(resume)) => Self::Partial {
                resume: resume.clone(),
            },
            (true, None) => Self::Complete,
        }
    }
}

/// How big an index is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexSize {
    /// Documents that searches find.
    pub documents: u64,
    /// Bytes of the segments that searches go through; 0 in memory.
    pub bytes: u64,
    /// Those segments.
    pub segments: usize,
    /// Documents and nested objects that are deleted, but not reclaimed by a merge yet.
    pub deleted: u64,
}

/// Memory of an index by what it is for, bytes. Not in it: merges under way, some 30 bytes for each document of theirs, and
/// the files, which are mapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexMemory {
    /// What documents may take that no commit includes, while there are any: the search library doesn't tell more.
    pub documents: u64,
    /// Removals that segments, or merges under way, haven't applied.
    pub removals: u64,
    /// What each of these two may take: [`IndexOptions::writer_memory_bytes`].
    pub writer_limit: u64,
    /// What searches keep for the next ones: of columns, of words, of parents of nested objects.
    pub kept: u64,
}

/// A search index. Clones are the same index.
#[derive(Clone, Debug)]
pub struct Index {
    pub(crate) shared: Arc<Shared>,
}

/// What the writer and the searchers of an index share.
pub(crate) struct Shared {
    pub(crate) physical: tantivy::Index,
    pub(crate) layout: Arc<Layout>,
    pub(crate) caches: SegmentCaches,
    pub(crate) options: IndexOptions,
    pub(crate) opening: Opening,
    /// The fingerprint of its schema and label: what the values of its documents depend on beside the documents.
    pub(crate) design: u64,
    pub(crate) directory: Option<SoftDirectory>,
    pub(crate) damage: IndexDamage,
    reader: IndexReader,
    view: RwLock<Arc<View>>,
    durable: AtomicU64,
    pub(crate) completeness: Mutex<Completeness>,
    pub(crate) misfits: Mutex<MisfitLog>,
    /// Why the index has to be opened again.
    pub(crate) failed: Mutex<Option<String>>,
    /// Bytes of the removals that segments haven't applied.
    pub(crate) removals: Arc<AtomicUsize>,
    /// Whether there are documents that no commit includes.
    pub(crate) uncommitted: AtomicBool,
    pub(crate) has_writer: AtomicBool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Index")
            .field("view", &self.view)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(crate) struct View {
    pub(crate) searcher: tantivy::Searcher,
    pub(crate) sequence: u64,
}

impl Index {
    /// Opens the index in `folder`, or creates one there. Files of a crash that no commit names are deleted.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`] when the folder's index has another schema, [`Error::Corrupt`] when it can't be read,
    /// [`Error::Io`]; [`Error::Cancelled`] by [`IndexOptions::stop_opening`].
    pub fn open(folder: &Path, schema: Schema, options: IndexOptions) -> Result<Self, Error> {
        let layout = Layout::new(schema);
        let (physical, directory) = folder::open(folder, &layout, &options)?;
        Self::over(physical, Some(directory), layout, options)
    }

    pub(crate) fn over(
        physical: tantivy::Index,
        directory: Option<SoftDirectory>,
        layout: Layout,
        options: IndexOptions,
    ) -> Result<Self, Error> {
        for field in layout.schema.resolved() {
            if let FieldKind::Text(analyzer) = &field.kind {
                analyze::register(physical.tokenizers(), analyzer);
            }
        }
        let metas = folder::segments(&physical)?;
        let cursor = CommitPayload::decode(metas.payload.as_deref())?;
        let completeness = Completeness::of(metas.payload.is_some(), &cursor);
        let known = directory.as_ref().map(|directory| directory.damage.clone());
        let damage = known.unwrap_or_default();
        let reader = reader(&physical, &damage)?;
        let view = View {
            searcher: reader.searcher(),
            sequence: cursor.sequence,
        };
        let design = Self::token_design(&layout.schema, &options.label);
        Ok(Self {
            shared: Arc::new(Shared {
                physical,
                layout: Arc::new(layout),
                caches: SegmentCaches::default(),
                design,
                options,
                opening: Opening::next(),
                directory,
                damage,
                reader,
                view: RwLock::new(Arc::new(view)),
                durable: AtomicU64::new(cursor.sequence),
                completeness: Mutex::new(completeness),
                misfits: Mutex::new(cursor.misfits),
                failed: Mutex::new(None),
                removals: Arc::default(),
                uncommitted: AtomicBool::new(false),
                has_writer: AtomicBool::new(false),
            }),
        })
    }

    /// What the page tokens of an index with a schema and a [label](IndexOptions::label) say of it:
    /// [`token_design`](crate::token_design) reads it from them.
    pub fn token_design(schema: &Schema, label: &str) -> u64 {
        xxh3_64_with_seed(label.as_bytes(), schema.fingerprint())
    }

    /// Which opening of the index this is.
    pub fn opening(&self) -> Opening {
        self.shared.opening
    }

    /// The index's schema.
    pub fn schema(&self) -> &Schema {
        &self.shared.layout.schema
    }

    /// The last change that searches see.
    pub fn applied_sequence(&self) -> u64 {
        self.shared.view().sequence
    }

    /// The last change that a crash can't take away: where to resume.
    pub fn durable_sequence(&self) -> u64 {
        self.shared.durable.load(Ordering::Acquire)
    }

    /// How much of what belongs into the index is in its last commit.
    pub fn completeness(&self) -> Completeness {
        self.shared.completeness()
    }

    /// How big the last commit is.
    ///
    /// # Errors
    /// [`Error::Engine`].
    pub fn size(&self) -> Result<IndexSize, Error> {
        let searcher = &self.shared.view().searcher;
        let space = searcher.space_usage();
        let space = space.map_err(|error| Error::engine("measuring the index", error.into()))?;
        let segments = searcher.segment_readers().iter();
        Ok(IndexSize {
            documents: self.shared.documents(searcher)?,
            bytes: space.total().get_bytes(),
            segments: segments.len(),
            deleted: segments
                .map(|segment| u64::from(segment.num_deleted_docs()))
                .sum(),
        })
    }

    /// The memory that the index takes.
    pub fn memory(&self) -> IndexMemory {
        let shared = &self.shared;
        let limit = shared.options.writer_memory();
        IndexMemory {
            documents: u64::from(shared.uncommitted.load(Ordering::Relaxed)) * limit as u64,
            removals: shared.removals.load(Ordering::Relaxed) as u64,
            writer_limit: limit as u64,
            kept: shared.caches.bytes() as u64,
        }
    }

    /// The merges since the index was opened; none in memory.
    pub fn merges(&self) -> MergeFigures {
        let directory = self.shared.directory.as_ref();
        directory.map(SoftDirectory::merges).unwrap_or_default()
    }

    /// The values that weren't indexed because they don't fit their field.
    pub fn misfits(&self) -> MisfitReport {
        self.shared.misfits.lock().report()
    }

    /// Compares all files with their checksums: reads the whole index. Ends early when `stopped` says so.
    ///
    /// # Errors
    /// [`Error::Corrupt`] with the first damage; from then on all that the index is asked for answers so. [`Error::Io`]
    /// when a file can't be read now.
    pub fn verify_until(&self, stopped: &dyn Fn() -> bool) -> Result<(), Error> {
        match &self.shared.directory {
            Some(directory) => verification::all(&self.shared.physical, directory, &mut |_| !stopped()),
            None => Ok(()),
        }
    }

    /// [`Index::verify_until`] in the background: reads so many bytes a second, and lowers the priority of its thread, which is
    /// to be its own. Ends early when `stopped` says so, which is asked several times a second.
    ///
    /// # Errors
    /// As [`Index::verify_until`].
    pub fn verify_slowly(&self, bytes_per_second: u64, stopped: &dyn Fn() -> bool) -> Result<(), Error> {
        let Some(directory) = &self.shared.directory else {
            return Ok(());
        };
        verification::slowly(&self.shared.physical, directory, bytes_per_second, stopped)
    }

    /// Whether damage is known, by whatever has found it: a comparison of checksums, or a merge.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is.
    pub fn undamaged(&self) -> Result<(), Error> {
        self.shared.damage.check()
    }
}

/// Opens the segments. What isn't compared with its checksum before may be anything, on which the library panics.
fn reader(physical: &tantivy::Index, damage: &IndexDamage) -> Result<IndexReader, Error> {
    let builder = physical.reader_builder().reload_policy(ReloadPolicy::Manual);
    let opened = catch_unwind(AssertUnwindSafe(|| builder.try_into()))
        .map_err(|_| damage.found("a segment can't be opened".to_owned()))?;
    opened.map_err(|error| folder::unreadable("a segment", error))
}

impl Shared {
    pub(crate) fn completeness(&self) -> Completeness {
        self.completeness.lock().clone()
    }

    pub(crate) fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.read())
    }

    /// Lets searches see the last commit, which includes everything up to `sequence`.
    pub(crate) fn refresh(&self, sequence: u64) -> Result<(), Error> {
        let opened = self.reader.reload();
        opened.map_err(|error| Error::engine("opening a commit for searches", error))?;
        let searcher = self.reader.searcher();
        self.caches.retain(searcher.segment_readers());
        *self.view.write() = Arc::new(View { searcher, sequence });
        Ok(())
    }

    /// Makes the last commit, which includes everything up to `sequence`, durable.
    pub(crate) fn checkpoint(&self, sequence: u64) -> Result<(), Error> {
        if let Some(directory) = &self.directory {
            let durable = directory.checkpoint();
            durable.map_err(Error::io("making a checkpoint durable"))?;
        }
        self.durable.store(sequence, Ordering::Release);
        Ok(())
    }

    /// Says that nothing has ended this life of the index before its time.
    pub(crate) fn ends_well(&self) {
        if let Some(directory) = &self.directory {
            verification::ends_well(directory);
        }
    }

    /// How many documents (not nested objects) a searcher has.
    pub(crate) fn documents(&self, searcher: &tantivy::Searcher) -> Result<u64, Error> {
        let Some(root) = self.layout.root_kind() else {
            return Ok(searcher.num_docs());
        };
        let query = tantivy::query::TermQuery::new(root, IndexRecordOption::Basic);
        let count = searcher.search(&query, &tantivy::collector::Count);
        count
            .map(|count| count as u64)
            .map_err(|error| Error::engine("counting documents", error))
    }
}

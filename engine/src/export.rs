//! Exports: every row of one snapshot, in slices, resumable.

mod slices;

use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, stream};
use souk_chassis::status::Violations;
use souk_storage::{Direction, PrimaryKey, RangePage, RangeRequest, Snapshot};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;
use xxhash_rust::xxh3::xxh3_64;

use self::slices::{Ended, Slice};
use crate::collection::{Collection, MIN_SEQUENCE};
use crate::error::{EngineError, Result};
use crate::key;
use crate::leases::{Full, Leases};
use crate::resource::{Resource, Stored};
use crate::scope::Scope;
use crate::stored::signed;
use crate::token::{self, TokenKind};
use crate::wire;

/// How long a snapshot is kept after its last use: a stream that nobody reads has lost it after that.
pub const LEASE: Duration = Duration::from_secs(120);
/// Longest time that a snapshot is kept, however often it is used.
pub const SNAPSHOT_AGE_MAX: Duration = Duration::from_secs(6 * 3_600);
/// Most snapshots that are kept for exports at a time.
pub const SNAPSHOTS_MAX: usize = 16;
/// Most of them for one caller, where callers are known.
pub const SNAPSHOTS_OF_CALLER_MAX: usize = 2;
/// Most slices of one snapshot.
pub const SLICES_MAX: usize = 64;
/// Most resources of a block.
const BLOCK_ROWS: usize = 500;
/// Bytes after which a block ends; far below the size of a message.
const BLOCK_BYTES: usize = 1 << 20;

/// How long a snapshot is kept after all of it was given, so that its last block can be asked for again.
const AFTER_LAST_BLOCK: Duration = Duration::from_secs(10);

/// The snapshots that are kept.
pub(crate) type Snapshots = Leases<Exported>;

/// A snapshot, and how much of it was given.
#[derive(Clone, Debug)]
pub(crate) struct Exported {
    snapshot: Snapshot,
    ended: Arc<Ended>,
}

/// What to export; the fields are those of `ExportXxxRequest`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportRequest {
    /// How many slices the snapshot is read in; 0 is 1, at most [`SLICES_MAX`].
    pub slice_count: i32,
    /// Which slice this is, from 0.
    pub slice: i32,
    /// The snapshot to read; empty takes a new one.
    pub snapshot_token: String,
    /// Goes on after the block that carried this token; the other fields are then taken from it.
    pub resume_token: String,
    /// Wait until the snapshot includes this write.
    pub min_sequence: i64,
}

/// One block of an export.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportBlock<R> {
    /// The resources, in the order of their keys.
    pub items: Vec<Stored<R>>,
    /// Goes on after this block.
    pub resume_token: String,
    /// Lets other slices read the same snapshot.
    pub snapshot_token: String,
    /// The last write in the snapshot.
    pub sequence: i64,
}

/// Where an export is. It has no hold of its snapshot: that is for the tasks which read single pages of it, so that a client
/// that doesn't read on holds nothing.
struct Cursor {
    /// What is exported.
    scope: Scope,
    lease: u64,
    slice: Slice,
    next: Next,
}

/// Some rows of a snapshot, without a hold of it.
struct Page {
    rows: RangePage,
    /// The last write in the snapshot.
    sequence: u64,
    ended: Arc<Ended>,
}

/// What comes next.
enum Next {
    /// The slice from its beginning.
    Beginning,
    /// The slice from this key on.
    Key(PrimaryKey),
    /// The slice after this key.
    After(PrimaryKey),
    /// Nothing.
    End,
}

impl<R: Resource> Collection<R> {
    /// Streams every resource of one snapshot, in the order of the stored keys: at least one block, which is empty when
    /// the slice is.
    ///
    /// # Errors
    /// [`EngineError::ExportExpired`], also when the stream wasn't read for [`LEASE`], [`EngineError::TooManyExports`],
    /// [`EngineError::ExportTokenInvalid`], [`EngineError::SequenceAhead`], [`EngineError::Invalid`].
    pub async fn export(
        &self,
        request: ExportRequest,
    ) -> Result<impl Stream<Item = Result<ExportBlock<R>>> + Send + use<R>> {
        let cursor = if request.resume_token.is_empty() {
            self.begin_export(&request).await?
        } else {
            self.resume_export(&request.resume_token)?
        };
        let collection = self.clone();
        Ok(stream::try_unfold(
            (collection, cursor),
            |(collection, mut cursor)| async move {
                let block = collection.next_block(&mut cursor).await?;
                Ok(block.map(|block| (block, (collection, cursor))))
            },
        ))
    }

    async fn begin_export(&self, request: &ExportRequest) -> Result<Cursor> {
        let mut violations = Violations::new();
        let scope = self.scope()?;
        let slice = Slice::read(
            request.slice_count,
            request.slice,
            &self.open.declaration.table,
            &mut violations,
        );
        wire::settled(violations)?;
        let lease = if request.snapshot_token.is_empty() {
            let exported = Exported {
                snapshot: self.snapshot(request.min_sequence).await?,
                ended: Arc::default(),
            };
            exported.ended.begin(slice);
            let kept = self.inner.snapshots.keep(exported, LEASE);
            kept.map_err(|Full { max, of }| EngineError::TooManyExports { max, of })?
        } else {
            let payload = open_token::<R>(
                &scope,
                TokenKind::Snapshot,
                "snapshot_token",
                &request.snapshot_token,
            )?;
            let lease = payload
                .try_into()
                .map(u64::from_be_bytes)
                .map_err(|_| malformed("snapshot_token"))?;
            let (kept, ended) = {
                let exported = self.kept_snapshot(lease)?;
                (exported.snapshot.sequence(), exported.ended)
            };
            self.check_covered(request.min_sequence, kept).await?;
            ended.begin(slice);
            lease
        };
        Ok(Cursor {
            scope,
            lease,
            slice,
            next: Next::Beginning,
        })
    }

    /// A snapshot that is kept: this is a use of it.
    fn kept_snapshot(&self, lease: u64) -> Result<Exported> {
        let kept = self.inner.snapshots.take(lease, None);
        kept.ok_or(EngineError::ExportExpired)
    }

    /// Refuses to read a snapshot that doesn't include the wanted write.
    async fn check_covered(&self, min_sequence: i64, kept: u64) -> Result<()> {
        let mut violations = Violations::new();
        let wanted = wire::min_sequence(min_sequence, MIN_SEQUENCE, &mut violations);
        self.check_sequence(MIN_SEQUENCE, wanted).await?;
        if wanted > kept {
            let message = format!(
                "is {wanted}, but the snapshot of snapshot_token ends at {kept}; start again without snapshot_token"
            );
            violations.push(MIN_SEQUENCE, "CONFLICTING_FIELDS", message);
        }
        wire::settled(violations)
    }

    fn resume_export(&self, resume_token: &str) -> Result<Cursor> {
        let scope = self.scope()?;
        let payload = open_token::<R>(&scope, TokenKind::Resume, "resume_token", resume_token)?;
        let (lease, rest) = payload
            .split_first_chunk::<8>()
            .ok_or_else(|| malformed("resume_token"))?;
        let (slice, key) = Slice::decode(rest).ok_or_else(|| malformed("resume_token"))?;
        let lease = u64::from_be_bytes(*lease);
        let next = if key.is_empty() {
            Next::End
        } else {
            let key = key::from_document_key(key).ok_or_else(|| malformed("resume_token"))?;
            if scope.is_limited() {
                Next::After(key)
            } else {
                Next::Key(key)
            }
        };
        self.kept_snapshot(lease)?.ended.begin(slice);
        Ok(Cursor {
            scope,
            lease,
            slice,
            next,
        })
    }

    async fn next_block(&self, cursor: &mut Cursor) -> Result<Option<ExportBlock<R>>> {
        if matches!(cursor.next, Next::End) {
            return Ok(None);
        }
        loop {
            if self.inner.closing.is_cancelled() {
                return Err(EngineError::Closing);
            }
            let Page {
                rows: page,
                sequence,
                ended,
            } = self.next_rows(cursor).await?;
            let items = page.rows.iter().map(|row| Ok(self.resource(row)?));
            let mut items = items.collect::<Result<Vec<Stored<R>>>>()?;
            items.retain(|stored| cursor.scope.sees(&stored.resource));
            // What a limited export is resumed from is a row that its caller has seen: the next key may be another's.
            let resume = match (&page.next, items.last()) {
                (None, _) => None,
                (Some(next), _) if !cursor.scope.is_limited() => Some(next.clone()),
                (Some(_), Some(last)) => Some(R::key(last.resource.id())?),
                (Some(next), None) => {
                    cursor.next = Next::Key(next.clone());
                    continue;
                }
            };
            let mut payload = cursor.lease.to_be_bytes().to_vec();
            cursor.slice.encode(&mut payload);
            if let Some(key) = &resume {
                payload.extend(key::to_document_key(key));
            }
            cursor.next = page.next.map_or(Next::End, Next::Key);
            if matches!(cursor.next, Next::End) && ended.note(cursor.slice) {
                self.inner.snapshots.finish(cursor.lease, AFTER_LAST_BLOCK);
            }
            let lease = cursor.lease.to_be_bytes();
            return Ok(Some(ExportBlock {
                items,
                resume_token: seal_token::<R>(&cursor.scope, TokenKind::Resume, &payload),
                snapshot_token: seal_token::<R>(&cursor.scope, TokenKind::Snapshot, &lease),
                sequence: signed(sequence),
            }));
        }
    }

    /// The rows from where the cursor is; whoever calls moves it on. A task of its own reads them: it lets go of the snapshot
    /// when it has, while a stream goes on when its client likes.
    async fn next_rows(&self, cursor: &Cursor) -> Result<Page> {
        let (start, end) = cursor.slice.bounds()?;
        let mut request = RangeRequest {
            start,
            end,
            limit: BLOCK_ROWS,
            bytes: BLOCK_BYTES,
            ..RangeRequest::all(Direction::Forward)
        };
        if let Next::Key(key) | Next::After(key) = &cursor.next {
            request = request.resume(key.clone());
        }
        let (collection, lease) = (self.clone(), cursor.lease);
        let reading = async move {
            let Exported { snapshot, ended } = collection.kept_snapshot(lease)?;
            let rows = snapshot.range(&collection.open.table, &request);
            let rows = collection.access("export", rows).await?;
            let sequence = snapshot.sequence();
            Ok::<_, EngineError>(Page {
                rows,
                sequence,
                ended,
            })
        };
        let read = AbortOnDropHandle::new(tokio::spawn(reading.in_current_span())).await;
        let mut page = read.map_err(|_| EngineError::Defect("reading for an export panicked"))??;
        if let Next::After(key) = &cursor.next {
            page.rows.rows.retain(|row| row.key != *key);
        }
        Ok(page)
    }
}

fn seal_token<R: Resource>(scope: &Scope, kind: TokenKind, payload: &[u8]) -> String {
    token::seal(kind, scope.bind(xxh3_64(R::TABLE.as_bytes())), payload)
}

fn open_token<R: Resource>(
    scope: &Scope,
    kind: TokenKind,
    path: &'static str,
    token: &str,
) -> Result<Vec<u8>> {
    token::open(kind, scope.bind(xxh3_64(R::TABLE.as_bytes())), token)
        .map_err(|detail| EngineError::ExportTokenInvalid { path, detail })
}

fn malformed(path: &'static str) -> EngineError {
    EngineError::ExportTokenInvalid {
        path,
        detail: "it has another layout",
    }
}

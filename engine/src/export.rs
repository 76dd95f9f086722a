//! Exports: every row of one snapshot, in slices, resumable.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, stream};
use souk_storage::{Direction, KeyBound, PrimaryKey, RangePage, RangeRequest, ReadOptions, Row};
use tokio_util::task::AbortOnDropHandle;

use crate::error::{EngineError, LimitOf, Result};
use crate::key::{self, HASH_COLUMN};
use crate::leases::Full;
use crate::open_table::Home;
use crate::scope::Scope;
use crate::slices::{Ended, Exported, LEASE, ScannedPage, Slice};
use crate::stored::signed;
use crate::table::{MIN_SEQUENCE, SCANS_MAX, TableHandle};
use crate::token::{self, TokenKind};
use crate::trace;

/// Most rows of a block.
const BLOCK_ROWS: usize = 500;
/// Bytes after which a block ends; far below the size of a message.
const BLOCK_BYTES: usize = 1 << 20;

/// How long a snapshot is kept after all of it was given, so that its last block can be asked for again.
const AFTER_LAST_BLOCK: Duration = Duration::from_secs(10);

/// Where an export begins.
#[derive(Clone, Debug)]
pub enum ExportStart<'a> {
    /// At the beginning of a slice.
    Slice {
        /// The slice, of at most [`SLICES_MAX`](crate::slices::SLICES_MAX).
        slice: Slice,
        /// The snapshot to read; `None` takes a new one.
        snapshot_token: Option<&'a str>,
        /// The write that the snapshot has to include.
        min_sequence: u64,
    },
    /// After the block that carried this token.
    Resume(&'a str),
}

/// One block of an export.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportBlock<T> {
    /// The rows or resources, in the order of their keys.
    pub items: Vec<T>,
    /// Goes on after this block.
    pub resume_token: String,
    /// Lets other slices read the same snapshot.
    pub snapshot_token: String,
    /// The last write in the snapshot.
    pub sequence: i64,
}

/// Where an export is. It has no hold of its snapshot: that is for the tasks which read single pages of it, so that a client
/// that doesn't read on holds nothing.
struct ExportCursor {
    /// What is exported.
    scope: Scope,
    lease: u64,
    slice: Slice,
    next: Next,
    /// Whether the snapshot has just been taken, and no block has told its token yet.
    is_new: bool,
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

impl<T> ExportBlock<T> {
    /// The same block with other items.
    pub(crate) fn try_map<U, E>(self, map: impl FnMut(T) -> Result<U, E>) -> Result<ExportBlock<U>, E> {
        Ok(ExportBlock {
            items: self.items.into_iter().map(map).collect::<Result<_, E>>()?,
            resume_token: self.resume_token,
            snapshot_token: self.snapshot_token,
            sequence: self.sequence,
        })
    }
}

impl TableHandle {
    /// Streams every row of one snapshot, in the order of the stored keys: at least one block, which is empty when
    /// the slice is.
    ///
    /// # Errors
    /// [`EngineError::ExportExpired`], also when the stream wasn't read for [`LEASE`], [`EngineError::TooManyExports`],
    /// [`EngineError::ExportTokenInvalid`], [`EngineError::SequenceAhead`], [`EngineError::SnapshotBehind`];
    /// [`EngineError::TooManyScans`] where a block needs to look further for own rows than one read goes, without a slot.
    pub async fn export(
        &self,
        start: ExportStart<'_>,
    ) -> Result<impl Stream<Item = Result<ExportBlock<Row>>> + Send + use<>> {
        let cursor = match start {
            ExportStart::Resume(token) => self.resume_export(token)?,
            ExportStart::Slice {
                slice,
                snapshot_token,
                min_sequence,
            } => self.begin_export(slice, snapshot_token, min_sequence).await?,
        };
        let table = self.clone();
        Ok(stream::try_unfold(
            (table, cursor),
            |(table, mut cursor)| async move {
                let block = table.next_block(&mut cursor).await;
                if block.is_err() && cursor.is_new {
                    // Nobody can name it, so it needn't count for its caller any longer.
                    table.inner.snapshots.finish(cursor.lease, Duration::ZERO);
                }
                cursor.is_new = false;
                Ok(block?.map(|block| (block, (table, cursor))))
            },
        ))
    }

    async fn begin_export(
        &self,
        slice: Slice,
        snapshot_token: Option<&str>,
        min_sequence: u64,
    ) -> Result<ExportCursor> {
        let scope = self.scope()?;
        let lease = if let Some(token) = snapshot_token {
            let payload = self.open_token(&scope, TokenKind::Snapshot, "snapshot_token", token)?;
            let lease = payload
                .try_into()
                .map(u64::from_be_bytes)
                .map_err(|_| malformed("snapshot_token"))?;
            let (kept, ended) = {
                let exported = self.kept_snapshot(lease)?;
                (exported.snapshot.sequence(), exported.ended)
            };
            self.check_covered(min_sequence, kept).await?;
            ended.begin(slice);
            // Those before may have been given all that they wanted.
            self.inner.snapshots.renew(lease, LEASE);
            lease
        } else {
            let exported = Exported {
                snapshot: self.snapshot(min_sequence).await?,
                ended: Arc::default(),
                split_points: Arc::default(),
            };
            exported.ended.begin(slice);
            let kept = self.inner.snapshots.keep(exported, LEASE, self.caller());
            kept.map_err(|Full { max, of }| EngineError::TooManyExports { max, of })?
        };
        Ok(ExportCursor {
            scope,
            lease,
            slice,
            next: Next::Beginning,
            is_new: snapshot_token.is_none(),
        })
    }

    /// A snapshot that is kept: this is a use of it.
    fn kept_snapshot(&self, lease: u64) -> Result<Exported> {
        let kept = self.inner.snapshots.take(lease, None);
        kept.ok_or(EngineError::ExportExpired)
    }

    /// Refuses to read a snapshot that doesn't include the wanted write.
    async fn check_covered(&self, wanted: u64, reached: u64) -> Result<()> {
        self.check_sequence(MIN_SEQUENCE, wanted).await?;
        match wanted > reached {
            true => Err(EngineError::SnapshotBehind { wanted, reached }),
            false => Ok(()),
        }
    }

    fn resume_export(&self, resume_token: &str) -> Result<ExportCursor> {
        let scope = self.scope()?;
        let payload = self.open_token(&scope, TokenKind::Resume, "resume_token", resume_token)?;
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
        Ok(ExportCursor {
            scope,
            lease,
            slice,
            next,
            is_new: false,
        })
    }

    async fn next_block(&self, cursor: &mut ExportCursor) -> Result<Option<ExportBlock<Row>>> {
        if matches!(cursor.next, Next::End) {
            return Ok(None);
        }
        // Whoever looks far reads the rows of others, maybe all of them, for a block.
        let scattered = cursor.scope.is_scattered();
        let slot = scattered
            .then(|| self.inner.scans.take(self.caller()))
            .transpose();
        let without_slot = slot.as_ref().err().copied();
        loop {
            self.check_going()?;
            let Page {
                rows: page,
                sequence,
                ended,
            } = self.next_rows(cursor, without_slot).await?;
            let mut items = page.rows;
            items.retain(|row| cursor.scope.sees(row));
            // What a limited export is resumed from is a row that its caller has seen: the next key may be another's.
            let resume = match (&page.next, items.last()) {
                (None, _) => None,
                (Some(next), _) if !cursor.scope.is_limited() => Some(next.clone()),
                (Some(_), Some(last)) => Some(last.key.clone()),
                (Some(next), None) => {
                    may_look_on(without_slot)?;
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
                resume_token: self.seal_token(&cursor.scope, TokenKind::Resume, &payload),
                snapshot_token: self.seal_token(&cursor.scope, TokenKind::Snapshot, &lease),
                sequence: signed(sequence),
            }));
        }
    }

    /// The rows from where the cursor is; whoever calls moves it on. A task of its own reads them: it lets go of the snapshot
    /// when it has, while a stream goes on when its client likes.
    async fn next_rows(&self, cursor: &ExportCursor, without_slot: Option<LimitOf>) -> Result<Page> {
        let (table, lease, slice) = (self.clone(), cursor.lease, cursor.slice);
        let scope = cursor.scope.clone();
        let from = match &cursor.next {
            Next::Key(key) | Next::After(key) => Some(key.clone()),
            Next::Beginning | Next::End => None,
        };
        let reading = async move {
            let (start, end) = table.slice_bounds(&scope, lease, slice, without_slot).await?;
            let mut request = RangeRequest {
                limit: BLOCK_ROWS,
                bytes: BLOCK_BYTES,
                // Resources aren't larger in messages.
                returned_bytes: match table.open.home {
                    Home::Catalog => BLOCK_BYTES,
                    Home::Code => 0,
                },
                ..RangeRequest::between(start, end, Direction::Forward)
            };
            if let Some(key) = from {
                request = request.resume(key);
            }
            let Exported { snapshot, ended, .. } = table.kept_snapshot(lease)?;
            let rows = match scope.narrowed(&request) {
                Some(request) => {
                    let rows = snapshot.range(&table.open.table, &request);
                    table.access("export", rows).await?
                }
                None => RangePage::default(),
            };
            let sequence = snapshot.sequence();
            Ok::<_, EngineError>(Page {
                rows,
                sequence,
                ended,
            })
        };
        let read = AbortOnDropHandle::new(tokio::spawn(trace::brought(reading))).await;
        let mut page = read.map_err(|_| EngineError::Defect("reading for an export panicked"))??;
        if let Next::After(key) = &cursor.next {
            page.rows.rows.retain(|row| row.key != *key);
        }
        Ok(page)
    }

    /// Where a slice of a kept snapshot begins and ends.
    async fn slice_bounds(
        &self,
        scope: &Scope,
        lease: u64,
        slice: Slice,
        without_slot: Option<LimitOf>,
    ) -> Result<(KeyBound, KeyBound)> {
        let definition = self.open.definition();
        let first = definition.schema.key.first();
        if slice.is_whole() || first.is_some_and(|(column, _)| column == HASH_COLUMN) {
            return slice.bounds(Slice::before_hash);
        }
        let scan = self.kept_snapshot(lease)?.split_points;
        let mut scan = scan.lock().await;
        let points = scan
            .finish(|from| async move {
                if from.is_some() {
                    may_look_on(without_slot)?;
                }
                self.scanned_page(scope, lease, from).await
            })
            .await?;
        slice.bounds(|number, count| Ok(points.before(number, count)))
    }

    /// Reads keys of a kept snapshot for split points, from a key on: only of rows that the call may meet, as slices mustn't tell where
    /// others lie.
    async fn scanned_page(&self, scope: &Scope, lease: u64, from: Option<PrimaryKey>) -> Result<ScannedPage> {
        self.check_going()?;
        let definition = self.open.definition();
        let first = definition.schema.key.first();
        // With a column of the key, rows are read that have none of the named ones.
        let named = first.map(|(column, _)| column.as_str()).into_iter();
        let options = ReadOptions::new().columns(named.chain(scope.owner_column()));
        let all = RangeRequest::default().options(options.max_versions(1));
        let Some(mut request) = scope.narrowed(&all) else {
            return Ok(ScannedPage {
                keys: Vec::new(),
                next: None,
            });
        };
        if let Some(key) = from {
            request = request.resume(key);
        }
        // Each page is a use of the snapshot.
        let snapshot = self.kept_snapshot(lease)?.snapshot;
        let page = self
            .access("export", snapshot.range(&self.open.table, &request))
            .await?;
        let own = page.rows.into_iter().filter(|row| scope.sees(row));
        Ok(ScannedPage {
            keys: own.map(|row| row.key).collect(),
            next: page.next,
        })
    }

    fn seal_token(&self, scope: &Scope, kind: TokenKind, payload: &[u8]) -> String {
        token::seal(kind, scope.bind(self.fingerprint()), payload)
    }

    fn open_token(&self, scope: &Scope, kind: TokenKind, name: &'static str, token: &str) -> Result<Vec<u8>> {
        token::open(kind, scope.bind(self.fingerprint()), token)
            .map_err(|detail| EngineError::ExportTokenInvalid { token: name, detail })
    }
}

/// Refuses to look further for own rows than one read goes, without a slot.
fn may_look_on(without_slot: Option<LimitOf>) -> Result<()> {
    match without_slot {
        Some(of) => Err(EngineError::TooManyScans { max: SCANS_MAX, of }),
        None => Ok(()),
    }
}

fn malformed(token: &'static str) -> EngineError {
    EngineError::ExportTokenInvalid {
        token,
        detail: "it has another layout",
    }
}

//! Rows as their readers want them: parts of columns, versions, filters; in pages with tokens; by entries of secondary indexes.

use souk_storage::{
    CapacityUnits, Error as StoreError, IndexEntry, IndexPage, IndexPosition, IndexRequest, PrimaryKey,
    RangeRequest, Read, ReadOptions, Row, Snapshot, Splits, TableKeys, VersionSelection,
};
use xxhash_rust::xxh3::Xxh3;

use super::{MAX_PAGE_BYTES, TableHandle};
use crate::error::{EngineError, Result};
use crate::key;
use crate::resource::Written;
use crate::scope::{Limit, Scope};
use crate::stored::signed;
use crate::token::{self, TokenKind};
use crate::transactions::ReadView;

/// Most calls at a time that read a whole table to split it.
pub const SPLITS_MAX: usize = 8;

/// A page of rows, or of entries of a secondary index.
#[derive(Clone, Debug, PartialEq)]
pub struct RowsPage<T> {
    /// The rows or entries, in the order asked for. There may be none although there are more.
    pub items: Vec<T>,
    /// Gives the next page; empty at the end.
    pub next_page_token: String,
    /// The last write that the page sees.
    pub sequence: i64,
    /// What it cost.
    pub consumed: CapacityUnits,
}

/// The secondary indexes of a table at one moment.
#[derive(Debug)]
pub struct IndexView<'t> {
    table: &'t TableHandle,
    snapshot: Snapshot,
}

impl IndexView<'_> {
    /// Reads a page of one.
    ///
    /// # Errors
    /// As [`Snapshot::index`].
    pub async fn page(&self, request: &IndexRequest) -> Result<IndexPage> {
        let read = async { Ok(self.snapshot.index(&self.table.open.table, request).await?) };
        self.table.access("list", read).await
    }
}

impl TableHandle {
    /// The secondary indexes as they are now, for several reads that are to see the same.
    ///
    /// # Errors
    /// [`EngineError::SequenceAhead`]; [`EngineError::NoOwnRows`], [`EngineError::PartitionNotAllowed`] to callers who meet some rows alone.
    pub async fn index_view(&self, min_sequence: u64) -> Result<IndexView<'_>> {
        self.check_all(&self.scope()?)?;
        self.unchecked_index_view(min_sequence).await
    }

    /// The secondary indexes with the entries of all rows, whether the call may meet them or not.
    async fn unchecked_index_view(&self, min_sequence: u64) -> Result<IndexView<'_>> {
        self.access("view", async {
            Ok(IndexView {
                table: self,
                snapshot: self.snapshot(min_sequence).await?,
            })
        })
        .await
    }

    /// Reads what the options ask of one row; of a wide one [`MAX_PAGE_BYTES`], and where to go on. Callers who meet own rows alone
    /// aren't told what reading cost.
    ///
    /// # Errors
    /// As [`TableHandle::get`]; [`EngineError::InvalidRow`]; of a transaction as [`TableHandle::write_in`].
    pub async fn read_row(
        &self,
        key: &PrimaryKey,
        options: &ReadOptions,
        view: ReadView,
    ) -> Result<Written<Read>> {
        self.access("get", async {
            let scope = self.scope()?;
            let snapshot = self.snapshot_for(view).await?;
            let read = match scope.is_limited() {
                true => {
                    let read = self
                        .read_own(&scope, &snapshot, vec![key.clone()], options)
                        .await?;
                    read.into_iter().next().unwrap_or_else(|| Ok(Read::default()))?
                }
                false => {
                    snapshot
                        .read_within(&self.open.table, key, options, MAX_PAGE_BYTES)
                        .await?
                }
            };
            Ok(Written {
                value: read,
                sequence: signed(snapshot.sequence()),
            })
        })
        .await
    }

    /// Reads what the options ask of several rows, from one snapshot; each has an answer of its own. Rows behind [`MAX_PAGE_BYTES`] are
    /// refused one by one. Callers who meet own rows alone aren't told what reading cost.
    ///
    /// # Errors
    /// As [`TableHandle::get`], and [`Snapshot::batch_get`].
    pub async fn read_rows(
        &self,
        keys: Vec<PrimaryKey>,
        options: &ReadOptions,
        min_sequence: u64,
    ) -> Result<Written<Vec<Result<Read, StoreError>>>> {
        self.access("get_batch", async {
            let scope = self.scope()?;
            let snapshot = self.snapshot(min_sequence).await?;
            let read = match scope.is_limited() {
                true => self.read_own(&scope, &snapshot, keys, options).await?,
                false => self.read_each(&snapshot, keys, options).await?,
            };
            let mut returned = 0;
            let mut fitting = |read: Read| {
                let bytes = read.row.as_ref().map_or(0, Row::message_bytes);
                let actual = returned + bytes;
                if returned > 0 && actual > MAX_PAGE_BYTES {
                    return Err(StoreError::LimitExceeded {
                        limit: "MAX_PAGE_BYTES",
                        max: MAX_PAGE_BYTES,
                        actual,
                    });
                }
                returned = actual;
                Ok(read)
            };
            let read = read.into_iter();
            Ok(Written {
                value: read.map(|read| read.and_then(&mut fitting)).collect(),
                sequence: signed(snapshot.sequence()),
            })
        })
        .await
    }

    /// What the options ask of each of some rows, whether the call may meet it or not.
    async fn read_each(
        &self,
        snapshot: &Snapshot,
        keys: Vec<PrimaryKey>,
        options: &ReadOptions,
    ) -> Result<Vec<Result<Read, StoreError>>> {
        let keys = TableKeys::new(&self.open.table, keys)
            .options(options.clone())
            .within(MAX_PAGE_BYTES);
        Ok(snapshot.batch_get(&[keys]).await?.into_iter().flatten().collect())
    }

    /// The same of those that the call may meet; others are read as if there were none. First it is read whose they are, unless their keys
    /// tell: a filter that looked at the rows of others would tell of them by how long it takes, and by what it refuses.
    async fn read_own(
        &self,
        scope: &Scope,
        snapshot: &Snapshot,
        keys: Vec<PrimaryKey>,
        options: &ReadOptions,
    ) -> Result<Vec<Result<Read, StoreError>>> {
        options.check()?;
        let known: Option<Vec<bool>> = keys.iter().map(|key| scope.sees_key(key)).collect();
        let owned: Vec<Result<bool, StoreError>> = match known {
            Some(known) => known.into_iter().map(Ok).collect(),
            None => {
                let projection = scope.owner_projection();
                let told = self.read_each(snapshot, keys.clone(), &projection).await?;
                let is_own = |read: Read| read.row.is_some_and(|row| scope.sees(&row));
                told.into_iter().map(|read| read.map(is_own)).collect()
            }
        };
        let own = keys.into_iter().zip(&owned);
        let own = own.filter(|(_, owned)| matches!(owned, Ok(true)));
        let own: Vec<PrimaryKey> = own.map(|(key, _)| key).collect();
        let own = match own.is_empty() {
            true => Vec::new(),
            false => self.read_each(snapshot, own, options).await?,
        };
        let mut own = own.into_iter();
        let read = owned.into_iter().map(|owned| {
            let read = if owned? { own.next() } else { None };
            let read = read.unwrap_or_else(|| Ok(Read::default()))?;
            Ok(Read {
                consumed: CapacityUnits::default(),
                ..read
            })
        });
        Ok(read.collect())
    }

    /// [`TableHandle::range`] with a token for the page that follows, which ends after [`MAX_PAGE_BYTES`], too.
    ///
    /// # Errors
    /// As there; [`EngineError::PageTokenInvalid`]; of a transaction as [`TableHandle::write_in`].
    pub async fn range_page(
        &self,
        request: &RangeRequest,
        page_token: &str,
        view: ReadView,
    ) -> Result<RowsPage<Row>> {
        let scope = self.scope()?;
        // Debug of these types is a complete spelling.
        let asked = format!(
            "{:?} {:?} {:?} {:?}",
            request.start, request.end, request.direction, request.options
        );
        let fingerprint = scope.bind(self.fingerprint_of(&asked));
        let kind = match scope.is_scattered() {
            true => TokenKind::OwnRange,
            false => TokenKind::Range,
        };
        let mut request = request.clone();
        (request.bytes, request.returned_bytes) = (MAX_PAGE_BYTES, MAX_PAGE_BYTES);
        if !page_token.is_empty() {
            let key = opened(kind, fingerprint, page_token)?;
            let key = key::from_document_key(&key);
            request = scope.resumed(request, key.ok_or_else(malformed)?);
        }
        let page = self.range_in(&request, view).await?;
        let next = page.value.next.map(|key| key::to_document_key(&key));
        Ok(RowsPage {
            items: page.value.rows,
            next_page_token: sealed(kind, fingerprint, next.as_deref()),
            sequence: page.sequence,
            consumed: page.value.consumed,
        })
    }

    /// Reads a page of the entries of a secondary index; with it the columns that it is ordered by, as it was when the page was read.
    /// Callers who meet own rows alone read indexes that begin with what names their owner, and aren't told what reading cost.
    ///
    /// # Errors
    /// [`EngineError::PageTokenInvalid`], [`EngineError::SequenceAhead`], [`EngineError::InvalidRow`] of an index that doesn't tell whose
    /// its entries are; as [`Snapshot::index`].
    pub async fn index_page(
        &self,
        request: &IndexRequest,
        page_token: &str,
        min_sequence: u64,
    ) -> Result<(RowsPage<IndexEntry>, Vec<String>)> {
        let scope = self.scope()?;
        // The snapshot is taken before the schema is read: an index that is dropped and created again in between isn't in it.
        let view = self.unchecked_index_view(min_sequence).await?;
        let schema = self.open.table.schema();
        let index = schema.indexes.iter().find(|index| index.name == request.index);
        // With the columns, as the index may have had others under its name.
        let asked = format!(
            "{index:?} {:?} {:?} {:?} {:?} {:?}",
            request.start, request.end, request.direction, request.columns, request.filter
        );
        let fingerprint = scope.bind(self.fingerprint_of(&asked));
        let index = index.ok_or_else(|| StoreError::IndexNotFound {
            table: self.name().to_owned(),
            index: request.index.clone(),
        })?;
        let mut page = IndexPage::default();
        if let Some(mut request) = scope.narrowed_index(self.name(), index, request)? {
            request.bytes = MAX_PAGE_BYTES;
            if !page_token.is_empty() {
                let position = opened(TokenKind::List, fingerprint, page_token)?;
                request = request.resume(IndexPosition::from_bytes(position));
            }
            page = view.page(&request).await?;
        }
        if scope.is_limited() {
            page.consumed = CapacityUnits::default();
        }
        let next = page.next.as_ref().map(IndexPosition::as_bytes);
        let columns = index.columns.clone();
        let page = RowsPage {
            items: page.entries,
            next_page_token: sealed(TokenKind::List, fingerprint, next),
            sequence: signed(view.snapshot.sequence()),
            consumed: page.consumed,
        };
        Ok((page, columns))
    }

    /// Splits the table into parts of about so many stored bytes. Takes the time of reading all of it once.
    ///
    /// # Errors
    /// [`EngineError::NoOwnRows`], [`EngineError::PartitionNotAllowed`] to callers who meet some rows alone; [`EngineError::TooManySplits`]; as
    /// [`Snapshot::split_points`].
    pub async fn splits(&self, bytes: usize) -> Result<Splits> {
        self.check_all(&self.scope()?)?;
        let slot = self.inner.splits.take(self.caller());
        let _slot = slot.map_err(|of| EngineError::TooManySplits { max: SPLITS_MAX, of })?;
        self.access("range", async {
            let snapshot = self.snapshot(0).await?;
            Ok(snapshot.split_points(&self.open.table, bytes).await?)
        })
        .await
    }

    /// The sequence after which the changes since a time begin, nanoseconds since the Unix epoch.
    ///
    /// # Errors
    /// [`souk_storage::Error::TimeTrimmed`] when some of them may be gone; what else the store refuses.
    pub async fn sequence_at(&self, time: i64) -> Result<u64> {
        Ok(self.inner.database.sequence_at(time).await?)
    }

    /// The snapshot of the table for a read view.
    pub(crate) async fn snapshot_for(&self, view: ReadView) -> Result<Snapshot> {
        match view {
            ReadView::Sequence(min_sequence) => self.snapshot(min_sequence).await,
            ReadView::Transaction(id) => self.transaction_snapshot(id).await,
        }
    }

    /// Refuses to read on when the engine closes, or the table was dropped.
    pub(crate) fn check_going(&self) -> Result<()> {
        match self.inner.closing.is_cancelled() {
            true => Err(EngineError::Closing),
            false => self.open.check_there(),
        }
    }

    /// Refuses column selections, filters and version times in ranges where rows of others lie between own ones: without its owner's
    /// column a row can't be told to be own, and a filter would run on the rows of others.
    pub(crate) fn check_range_options(&self, scope: &Scope, options: &ReadOptions) -> Result<()> {
        let whole = ReadOptions {
            versions: VersionSelection {
                time: None,
                ..options.versions
            },
            ..ReadOptions::default()
        };
        match scope.is_scattered() && *options != whole {
            true => Err(EngineError::InvalidRow {
                table: self.name().to_owned(),
                problem: "is read as a whole in ranges of callers who meet own rows alone, since the first key column doesn't say whose \
                          it is: leave columns, filters and times of versions out"
                    .to_owned(),
            }),
            false => Ok(()),
        }
    }

    /// Refuses what can't be told of some rows alone.
    pub(crate) fn check_all(&self, scope: &Scope) -> Result<()> {
        match scope {
            Scope::All => Ok(()),
            Scope::Limited { limit, .. } => Err(match limit {
                Limit::Owner(owner) => EngineError::NoOwnRows {
                    name: self.open.definition().item.clone(),
                    kind: owner.kind,
                },
                Limit::Partitions(_) => EngineError::PartitionNotAllowed {
                    table: self.name().to_owned(),
                },
            }),
        }
    }

    fn fingerprint_of(&self, asked: &str) -> u64 {
        let mut hash = Xxh3::new();
        hash.update(&self.fingerprint().to_be_bytes());
        hash.update(asked.as_bytes());
        hash.digest()
    }
}

fn sealed(kind: TokenKind, fingerprint: u64, next: Option<&[u8]>) -> String {
    next.map_or_else(String::new, |next| token::seal(kind, fingerprint, next))
}

fn opened(kind: TokenKind, fingerprint: u64, page_token: &str) -> Result<Vec<u8>> {
    token::open(kind, fingerprint, page_token).map_err(|detail| EngineError::PageTokenInvalid { detail })
}

fn malformed() -> EngineError {
    EngineError::PageTokenInvalid {
        detail: "it has another layout",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use souk_storage::{KeyKind, TableSchema};
    use tokio::time::Instant;

    use super::*;
    use crate::definition::TableDefinition;
    use crate::engine::{Engine, EngineConfig, Tables};
    use crate::error::LimitOf;

    #[tokio::test]
    async fn so_many_tables_are_split_at_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let engine = Engine::open(EngineConfig::new(folder.path()), Tables::new()).await;
        let engine = engine.expect("an engine");
        let table = TableDefinition::new(TableSchema::new("notes").key("id", KeyKind::String));
        let table = engine.create_table(table).await.expect("a table");
        let take = || engine.inner().splits.take(None).expect("a place");
        let mut taken: Vec<_> = (1..SPLITS_MAX).map(|_| take()).collect();
        table.splits(1_000).await.expect("the last place");
        taken.push(take());
        let refused = table.splits(1_000).await.err();
        assert!(
            matches!(
                refused,
                Some(EngineError::TooManySplits {
                    max: SPLITS_MAX,
                    of: LimitOf::All
                })
            ),
            "{refused:?}"
        );
        drop(taken);
        table.splits(1_000).await.expect("a place again");
        let end = Instant::now() + Duration::from_secs(10);
        engine.close(end).await.expect("closed");
    }
}

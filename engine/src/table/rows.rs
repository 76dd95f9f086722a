//! Rows as their readers want them: parts of columns, versions, filters; in pages with tokens; by entries of secondary indexes.

use souk_storage::{
    CapacityUnits, IndexEntry, IndexPage, IndexPosition, IndexRequest, PrimaryKey, RangeRequest, Read,
    ReadOptions, Row, Snapshot, Splits, TableKeys,
};
use xxhash_rust::xxh3::Xxh3;

use super::{MAX_PAGE_BYTES, TableHandle};
use crate::error::{EngineError, Result};
use crate::key;
use crate::resource::Written;
use crate::scope::Scope;
use crate::stored::signed;
use crate::token::{self, TokenKind};
use crate::transactions::Seeing;

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
    /// [`EngineError::SequenceAhead`]; [`EngineError::NoOwnRows`] to callers who meet own rows alone.
    pub async fn index_view(&self, min_sequence: u64) -> Result<IndexView<'_>> {
        self.access("view", async {
            self.check_all(&self.scope()?)?;
            Ok(IndexView {
                table: self,
                snapshot: self.snapshot(min_sequence).await?,
            })
        })
        .await
    }

    /// Reads what the options ask of one row; of a wide one [`MAX_PAGE_BYTES`], and where to go on. Callers who meet own rows alone get whole rows, and aren't told what reading cost.
    ///
    /// # Errors
    /// As [`TableHandle::get`]; [`EngineError::InvalidRow`]; of a transaction as [`TableHandle::write_in`].
    pub async fn read_row(
        &self,
        key: &PrimaryKey,
        options: &ReadOptions,
        seeing: Seeing,
    ) -> Result<Written<Read>> {
        self.access("get", async {
            let scope = self.scope()?;
            self.check_whole(&scope, options)?;
            let snapshot = self.seen(seeing).await?;
            let read = match scope.is_limited() {
                true => Read {
                    row: snapshot
                        .get(&self.open.table, key)
                        .await?
                        .filter(|row| scope.sees(row)),
                    ..Read::default()
                },
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
    /// refused one by one.
    ///
    /// # Errors
    /// As [`TableHandle::get`], and [`Snapshot::batch_get`]; [`EngineError::NoOwnRows`] to callers who meet own rows alone.
    pub async fn read_rows(
        &self,
        keys: Vec<PrimaryKey>,
        options: &ReadOptions,
        min_sequence: u64,
    ) -> Result<Written<Vec<Result<Read, souk_storage::Error>>>> {
        self.access("get_batch", async {
            self.check_all(&self.scope()?)?;
            let snapshot = self.snapshot(min_sequence).await?;
            let keys = TableKeys::new(&self.open.table, keys)
                .options(options.clone())
                .within(MAX_PAGE_BYTES);
            let read = snapshot.batch_get(&[keys]).await?;
            let mut returned = 0;
            let mut fitting = |read: Read| {
                let bytes = read.row.as_ref().map_or(0, Row::message_bytes);
                let actual = returned + bytes;
                if returned > 0 && actual > MAX_PAGE_BYTES {
                    return Err(souk_storage::Error::LimitExceeded {
                        limit: "MAX_PAGE_BYTES",
                        max: MAX_PAGE_BYTES,
                        actual,
                    });
                }
                returned = actual;
                Ok(read)
            };
            let read = read.into_iter().flatten();
            Ok(Written {
                value: read.map(|read| read.and_then(&mut fitting)).collect(),
                sequence: signed(snapshot.sequence()),
            })
        })
        .await
    }

    /// [`TableHandle::range`] with a token for the page that follows, which ends after [`MAX_PAGE_BYTES`], too.
    ///
    /// # Errors
    /// As there; [`EngineError::PageTokenInvalid`]; of a transaction as [`TableHandle::write_in`].
    pub async fn range_page(
        &self,
        request: &RangeRequest,
        page_token: &str,
        seeing: Seeing,
    ) -> Result<RowsPage<Row>> {
        let scope = self.scope()?;
        // Debug of these types is a complete spelling.
        let asked = format!(
            "{:?} {:?} {:?} {:?}",
            request.start, request.end, request.direction, request.options
        );
        let fingerprint = scope.bind(self.fingerprint_of(&asked));
        let mut request = request.clone();
        (request.bytes, request.returned_bytes) = (MAX_PAGE_BYTES, MAX_PAGE_BYTES);
        if !page_token.is_empty() {
            let key = opened(TokenKind::Range, fingerprint, page_token)?;
            let key = key::from_document_key(&key);
            request = request.resume(key.ok_or_else(malformed)?);
        }
        let page = self.range_seeing(&request, seeing).await?;
        let next = page.value.next.map(|key| key::to_document_key(&key));
        Ok(RowsPage {
            items: page.value.rows,
            next_page_token: sealed(TokenKind::Range, fingerprint, next.as_deref()),
            sequence: page.sequence,
            consumed: page.value.consumed,
        })
    }

    /// Reads a page of the entries of a secondary index; with it the columns that it is ordered by, as it was when the page was read.
    ///
    /// # Errors
    /// [`EngineError::PageTokenInvalid`], [`EngineError::SequenceAhead`], [`EngineError::NoOwnRows`] to callers who meet own rows
    /// alone; as [`Snapshot::index`].
    pub async fn index_page(
        &self,
        request: &IndexRequest,
        page_token: &str,
        min_sequence: u64,
    ) -> Result<(RowsPage<IndexEntry>, Vec<String>)> {
        let view = self.index_view(min_sequence).await?;
        let scope = self.scope()?;
        let schema = self.open.table.schema();
        let index = schema.indexes.iter().find(|index| index.name == request.index);
        // With the columns, as the index may have had others under its name.
        let asked = format!(
            "{index:?} {:?} {:?} {:?} {:?} {:?}",
            request.start, request.end, request.direction, request.columns, request.filter
        );
        let fingerprint = scope.bind(self.fingerprint_of(&asked));
        let mut request = request.clone();
        request.bytes = MAX_PAGE_BYTES;
        if !page_token.is_empty() {
            let position = opened(TokenKind::List, fingerprint, page_token)?;
            request = request.resume(IndexPosition::from_bytes(position));
        }
        let page = view.page(&request).await?;
        let next = page.next.as_ref().map(IndexPosition::as_bytes);
        let columns = index.map_or_else(Vec::new, |index| index.columns.clone());
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
    /// [`EngineError::NoOwnRows`] to callers who meet own rows alone; [`EngineError::TooManySplits`]; as [`Snapshot::split_points`].
    pub async fn splits(&self, bytes: usize) -> Result<Splits> {
        self.check_all(&self.scope()?)?;
        let place = self.inner.splits.take(self.caller());
        let _place = place.map_err(|of| EngineError::TooManySplits { max: SPLITS_MAX, of })?;
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

    /// A cut of the table that shows what a read has to see.
    pub(crate) async fn seen(&self, seeing: Seeing) -> Result<Snapshot> {
        match seeing {
            Seeing::Sequence(min_sequence) => self.snapshot(min_sequence).await,
            Seeing::Transaction(id) => self.transaction_snapshot(id).await,
        }
    }

    /// Refuses parts of rows to callers who meet own rows alone: they could ask for them without what says whose they are.
    pub(crate) fn check_whole(&self, scope: &Scope, options: &ReadOptions) -> Result<()> {
        match scope.is_limited() && options != &ReadOptions::default() {
            true => Err(EngineError::InvalidRow {
                table: self.name().to_owned(),
                problem: "is read as a whole by callers who meet own rows alone".to_owned(),
            }),
            false => Ok(()),
        }
    }

    /// Refuses what can't be told of own rows alone.
    pub(crate) fn check_all(&self, scope: &Scope) -> Result<()> {
        match scope {
            Scope::All => Ok(()),
            Scope::Own { owner, .. } => Err(EngineError::NoOwnRows {
                name: self.open.definition().item.clone(),
                kind: owner.kind,
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

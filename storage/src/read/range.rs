//! Reading ranges of rows.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use bytes::Bytes;
use souk_kv::{self as kv, Direction, Scan, ScanPage, Space};
use tokio::task::yield_now;

use crate::catalog::Table;
use crate::error::Result;
use crate::key;
use crate::limits::{MAX_SCANNED_BYTES, MAX_SCANNED_ROWS};
use crate::metering::CapacityUnits;
use crate::read::projection::Projection;
use crate::read::{ReadOptions, Snapshot};
use crate::row::Row;
use crate::value::PrimaryKey;

/// Fewest rows that are read at a time when some of them may not be returned.
const SIFTED_ROWS: usize = 50;
/// Most rows that are read at a time: the next ones are read while these are decoded.
const CHUNK_ROWS: usize = 500;

/// A cut between the keys of a table. The key may be a prefix of the table's key columns and then stands for all
/// keys that begin with it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum KeyBound {
    /// Before all keys.
    #[default]
    Min,
    /// After all keys.
    Max,
    /// Just before this key.
    Before(PrimaryKey),
    /// Just after this key.
    After(PrimaryKey),
}

/// A range of rows. One whose start lies behind its end holds no row.
#[derive(Debug, Clone, PartialEq)]
pub struct RangeRequest {
    /// Where reading begins: the lower cut going forward, the upper cut going backward.
    pub start: KeyBound,
    /// Where reading ends: the upper cut going forward, the lower cut going backward.
    pub end: KeyBound,
    /// Which way.
    pub direction: Direction,
    /// Most rows returned; 0 and anything above [`MAX_SCANNED_ROWS`] mean that.
    pub limit: usize,
    /// Bytes read after which the page ends, as stored; 0 and anything above [`MAX_SCANNED_BYTES`] mean that.
    pub bytes: usize,
    /// Most bytes returned, as [`Row::message_bytes`] counts them; a larger row comes alone. 0 means any number.
    pub returned_bytes: usize,
    /// Which rows, and what of each. A column page is the same for each row.
    pub options: ReadOptions,
}

/// The whole table, forward.
impl Default for RangeRequest {
    fn default() -> Self {
        Self::all(Direction::Forward)
    }
}

impl RangeRequest {
    /// The whole table in this direction.
    pub fn all(direction: Direction) -> Self {
        Self::between(KeyBound::Min, KeyBound::Max, direction)
    }

    /// The rows whose key begins with these columns.
    pub fn prefix(prefix: PrimaryKey, direction: Direction) -> Self {
        Self::between(
            KeyBound::Before(prefix.clone()),
            KeyBound::After(prefix),
            direction,
        )
    }

    /// The rows between two cuts.
    pub fn between(low: KeyBound, high: KeyBound, direction: Direction) -> Self {
        let (start, end) = match direction {
            Direction::Forward => (low, high),
            Direction::Backward => (high, low),
        };
        Self {
            start,
            end,
            direction,
            limit: 0,
            bytes: 0,
            returned_bytes: 0,
            options: ReadOptions::default(),
        }
    }

    /// Returns at most this many rows.
    #[must_use]
    pub fn limit(mut self, rows: usize) -> Self {
        self.limit = rows;
        self
    }

    /// Reads rows like this.
    #[must_use]
    pub fn options(mut self, options: ReadOptions) -> Self {
        self.options = options;
        self
    }

    /// Goes on where a page stopped.
    #[must_use]
    pub fn resume(mut self, next: PrimaryKey) -> Self {
        self.start = match self.direction {
            Direction::Forward => KeyBound::Before(next),
            Direction::Backward => KeyBound::After(next),
        };
        self
    }

    /// Goes on behind a row.
    #[must_use]
    pub fn resume_behind(mut self, row: PrimaryKey) -> Self {
        self.start = match self.direction {
            Direction::Forward => KeyBound::After(row),
            Direction::Backward => KeyBound::Before(row),
        };
        self
    }
}

/// A page of a range.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RangePage {
    /// The rows, in the order of the direction. May be empty although there is more.
    pub rows: Vec<Row>,
    /// Where to go on, see [`RangeRequest::resume`]; `None` at the end of the range. The row itself isn't read yet.
    pub next: Option<PrimaryKey>,
    /// What it cost: all rows read together, passed by the filter or not.
    pub consumed: CapacityUnits,
}

/// A page of a range; see [`Snapshot::range`].
pub(super) async fn page(snapshot: &Snapshot, table: &Table, request: &RangeRequest) -> Result<RangePage> {
    let projection = snapshot.projection(table, &request.options)?;
    let start = cut(table, &request.start)?;
    let end = cut(table, &request.end)?;
    let (mut low, mut high) = match request.direction {
        Direction::Forward => (start, end),
        Direction::Backward => (end, start),
    };
    let limit = bounded(request.limit, MAX_SCANNED_ROWS);
    // Each pattern looks at what is read.
    let mut bytes_left = bounded(request.bytes, MAX_SCANNED_BYTES / projection.rules().max(1));
    let mut rows_left = MAX_SCANNED_ROWS;
    let mut rows = Vec::new();
    let mut budget = PageBudget {
        rows: limit,
        bytes: bounded(request.returned_bytes, usize::MAX),
    };
    let mut measured = 0;
    let scan = |low: &Bytes, high: &Bytes, wanted: usize, rows_left: usize, bytes_left: usize| {
        let rows = if projection.takes_all() {
            wanted
        } else {
            wanted.max(SIFTED_ROWS)
        };
        snapshot.kv.scan(Scan {
            space: Space::Rows,
            low: low.clone(),
            high: high.clone(),
            direction: request.direction,
            entries: rows.min(rows_left).min(CHUNK_ROWS),
            bytes: bytes_left,
        })
    };
    let mut ahead: Option<Ahead<'_>> = None;
    let next = loop {
        let chunk = match ahead.take() {
            Some(ahead) => ahead.finish().await?,
            None => scan(&low, &high, limit - rows.len(), rows_left, bytes_left).await?,
        };
        let count = chunk.entries.len();
        let sizes = chunk.entries.iter().map(|(key, value)| key.len() + value.len());
        rows_left = rows_left.saturating_sub(count);
        bytes_left = bytes_left.saturating_sub(sizes.sum());
        if let Some(next) = &chunk.next {
            match request.direction {
                Direction::Forward => low = next.clone(),
                Direction::Backward => high = key::just_after(next),
            }
            let wanted = limit.saturating_sub(rows.len() + count);
            // Nothing is read that may not be needed.
            if wanted > 0 && rows_left > 0 && bytes_left > 0 {
                let next = scan(&low, &high, wanted, rows_left, bytes_left);
                ahead = Some(Ahead::begin(next).await);
            }
        }
        let unread = project(&projection, chunk.entries, &mut budget, &mut rows, &mut measured).await;
        if !matches!(unread, Ok(None)) {
            // Nobody reads any more when the answer is there.
            if let Some(ahead) = ahead.take() {
                ahead.finish().await.map_or_else(drop, drop);
            }
        }
        let unread = unread?;
        let is_full = unread.is_some() || rows.len() == limit;
        let Some(next) = unread.or(chunk.next) else {
            break None;
        };
        if is_full || rows_left == 0 || bytes_left == 0 {
            break Some(key::primary_key_of_row(&next)?);
        }
    };
    Ok(RangePage {
        rows,
        next,
        consumed: CapacityUnits::reading(measured),
    })
}

/// What a page still takes.
struct PageBudget {
    rows: usize,
    bytes: usize,
}

/// Appends what is wanted of the entries to the rows, while there is room; the key of the first entry that is left. Lets others run,
/// and its caller give up, before each row that patterns look at.
async fn project(
    projection: &Projection<'_>,
    entries: Vec<(Bytes, Bytes)>,
    budget: &mut PageBudget,
    rows: &mut Vec<Row>,
    measured: &mut usize,
) -> Result<Option<Bytes>> {
    rows.reserve(entries.len().min(budget.rows));
    for (key, value) in entries {
        if budget.rows == 0 {
            return Ok(Some(key));
        }
        if projection.rules() > 0 {
            yield_now().await;
        }
        let projected = projection.row_after(rows.last(), key::primary_key_of_row(&key)?, &value)?;
        if let Some(row) = projected.row {
            if budget.bytes < usize::MAX {
                let bytes = row.message_bytes();
                if bytes > budget.bytes && !rows.is_empty() {
                    return Ok(Some(key));
                }
                budget.bytes = budget.bytes.saturating_sub(bytes);
            }
            budget.rows -= 1;
            rows.push(row);
        }
        *measured += projected.bytes;
    }
    Ok(None)
}

type Scanning<'a> = Pin<Box<dyn Future<Output = std::result::Result<ScanPage, kv::Error>> + Send + 'a>>;

/// A scan that was begun: a store that reads on threads of its own goes on with it while the caller does something
/// else.
enum Ahead<'a> {
    Begun(Scanning<'a>),
    Done(std::result::Result<ScanPage, kv::Error>),
}

impl<'a> Ahead<'a> {
    async fn begin(mut scan: Scanning<'a>) -> Self {
        let done = poll_fn(|context| match scan.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => Poll::Ready(None),
        });
        match done.await {
            Some(done) => Self::Done(done),
            None => Self::Begun(scan),
        }
    }

    async fn finish(self) -> std::result::Result<ScanPage, kv::Error> {
        match self {
            Self::Begun(scan) => scan.await,
            Self::Done(done) => done,
        }
    }
}

/// What `given` stands for: 0 and anything larger mean the most.
pub(super) fn bounded(given: usize, most: usize) -> usize {
    if given == 0 { most } else { given.min(most) }
}

/// The place of a cut among the stored keys.
fn cut(table: &Table, bound: &KeyBound) -> Result<Bytes> {
    let before = key::before_rows(table.id());
    Ok(match bound {
        KeyBound::Min => before,
        KeyBound::Max => key::after(&before),
        KeyBound::Before(primary_key) => {
            table.schema().check_key_prefix(primary_key)?;
            key::row(table.id(), primary_key)
        }
        KeyBound::After(primary_key) => {
            table.schema().check_key_prefix(primary_key)?;
            key::after(&key::row(table.id(), primary_key))
        }
    })
}

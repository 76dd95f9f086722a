//! Reading ranges of rows, of a table or of a secondary index.

use bytes::Bytes;
use souk_engine::storage::limits::MAX_SCANNED_ROWS;
use souk_engine::storage::{
    CapacityUnits, Direction, IndexBound, IndexPage, IndexRequest, KeyBound, KeyValue, PrimaryKey,
    RangeRequest, ReadOptions, TableSchema,
};
use souk_engine::{IndexView, TableHandle};
use souk_tablestore::plainbuffer::PlainBufferEncoder;
use souk_tablestore::{Answer, KeyColumn, KeyElement, KeyUse, Reason, ServiceError, decode, messages};

use crate::context::{Answered, Context};
use crate::entries::{IndexTable, TableOrIndex};
use crate::error::{refused, store_error, unsupported};
use crate::options::{AskedRead, TransferRules, index_options};
use crate::read::consumed;
use crate::transaction;
use crate::value::{check_key, key_value, one_key, write_row};

/// A page of a range, in plainbuffer.
pub(crate) struct RangePage {
    pub(crate) rows: Bytes,
    /// The key at which the next page begins.
    pub(crate) next: Option<Bytes>,
    pub(crate) consumed: CapacityUnits,
}

/// A bound of a range: before or after all keys that begin with some values.
#[derive(Clone, Debug)]
struct PrefixBound {
    values: Vec<KeyValue>,
    after: bool,
}

/// Reads a page of a range.
pub(crate) async fn get(context: &Context, body: Bytes) -> Answered {
    let request: messages::GetRangeRequest = decode(body).map_err(Reason::from)?;
    let start = KeyUse::RangeEnd.decode(request.inclusive_start_primary_key)?;
    let end = KeyUse::RangeEnd.decode(request.exclusive_end_primary_key)?;
    let direction = match messages::Direction::try_from(request.direction) {
        Ok(messages::Direction::Forward) => Direction::Forward,
        Ok(messages::Direction::Backward) => Direction::Backward,
        Err(_) => return Err(Reason::MalformedMessage.into()),
    };
    if request.token.is_some_and(|token| !token.is_empty()) {
        return Err(unsupported(
            "a token within a row of a range; rows of ranges are whole",
        ));
    }
    let limit = match request.limit {
        None => MAX_SCANNED_ROWS,
        Some(limit) => match usize::try_from(limit) {
            Ok(limit) if limit > 0 => limit.min(MAX_SCANNED_ROWS),
            _ => return Err(Reason::InvalidLimit.into()),
        },
    };
    let asked = AskedRead {
        columns: request.columns_to_get,
        time: request.time_range,
        max_versions: request.max_versions,
        filter: request.filter,
        start_column: request.start_column,
        end_column: request.end_column,
    };
    let options = asked.options(&mut TransferRules::default())?;
    let page = match TableOrIndex::find(context, &request.table_name)? {
        TableOrIndex::Table(table) => {
            let view =
                transaction::read_view(context, &request.table_name, request.transaction_id.as_deref())?;
            let definition = table.definition();
            let range = table_range(&definition.schema, [&start, &end], direction, limit, options)?;
            rows(&table, &definition.schema, &range, view).await?
        }
        TableOrIndex::Index(index) => {
            let (start, end) = ends(&index.schema, &start, &end, direction)?;
            let range = IndexRange {
                start: start.index_bound(&index),
                end: end.index_bound(&index),
                direction,
                limit,
            };
            entries(&index, range, &options).await?
        }
    };
    Ok(Answer::ok(&messages::GetRangeResponse {
        consumed: consumed(page.consumed),
        rows: page.rows,
        next_start_primary_key: page.next,
        next_token: None,
    }))
}

/// The range of a table's rows between two ends.
pub(crate) fn table_range(
    schema: &TableSchema,
    [start, end]: [&[KeyColumn]; 2],
    direction: Direction,
    limit: usize,
    options: ReadOptions,
) -> Result<RangeRequest, ServiceError> {
    let (start, end) = ends(schema, start, end, direction)?;
    Ok(RangeRequest {
        start: start.key_bound()?,
        end: end.key_bound()?,
        limit,
        options,
        ..RangeRequest::all(direction)
    })
}

/// Reads a page of the rows of a table.
pub(crate) async fn rows(
    table: &TableHandle,
    schema: &TableSchema,
    range: &RangeRequest,
    view: souk_engine::ReadView,
) -> Result<RangePage, ServiceError> {
    let page = table.range_in(range, view).await.map_err(refused)?.value;
    let mut out = PlainBufferEncoder::new();
    for row in &page.rows {
        write_row(schema, row, &mut out);
    }
    Ok(RangePage {
        rows: out.finish(),
        next: page.next.map(|key| one_key(schema, &key)),
        consumed: page.consumed,
    })
}

/// A range of a secondary index.
struct IndexRange {
    start: IndexBound,
    end: IndexBound,
    direction: Direction,
    /// Most entries; not 0, which stands for the most of the store in an [`IndexRequest`].
    limit: usize,
}

impl IndexRange {
    fn request(&self, index: &IndexTable, limit: usize) -> IndexRequest {
        IndexRequest {
            start: self.start.clone(),
            end: self.end.clone(),
            limit,
            ..IndexRequest::all(&index.index.name, self.direction)
        }
    }
}

/// A page of entries. Where it ends is found without the filter, since the key at which the next one begins has to be told: entries that
/// don't pass count, too.
async fn entries(
    index: &IndexTable,
    range: IndexRange,
    options: &ReadOptions,
) -> Result<RangePage, ServiceError> {
    let (columns, filter) = index_options(options)?;
    let selected = index.selected(columns);
    let with_columns = |request: IndexRequest| match &selected {
        Some(columns) => request.columns(columns.clone()),
        None => request,
    };
    // One more than are given back, which is the next one.
    let view = index.view().await?;
    let mut page = index
        .page(&view, &with_columns(range.request(index, range.limit + 1)))
        .await?;
    let next = following(index, &view, &range, &mut page).await?;
    let mut cost = page.consumed;
    if let Some(filter) = filter {
        let mut range = range;
        if let Some((_, cut)) = &next {
            range.end = cut.clone();
        }
        page.entries.clear();
        let mut request = with_columns(range.request(index, 0)).filter(filter);
        // What was read a moment ago is read again, in as many parts as its filter takes.
        loop {
            let part = index.part(&view, &mut request).await?;
            cost += part.consumed;
            page.entries.extend(part.entries);
            if part.next.is_none() {
                break;
            }
        }
    }
    let mut out = PlainBufferEncoder::new();
    for entry in page.entries.iter().filter(|entry| index.has_any(columns, entry)) {
        index.write(entry, &mut out);
    }
    Ok(RangePage {
        rows: out.finish(),
        next: next.map(|(key, _)| key),
        consumed: cost,
    })
}

/// The key at which the page behind this one begins, and the cut before it; what is beyond the limit is taken off.
async fn following(
    index: &IndexTable,
    view: &IndexView<'_>,
    range: &IndexRange,
    page: &mut IndexPage,
) -> Result<Option<(Bytes, IndexBound)>, ServiceError> {
    let has_more = page.next.is_some();
    let next = match page.entries.last() {
        Some(_) if page.entries.len() > range.limit || has_more && page.entries.len() > 1 => {
            page.entries.pop()
        }
        // One that fills a page alone: the one behind it is looked at without what it includes.
        Some(last) if has_more => {
            let mut request = range.request(index, 1).columns(index.index.columns.first());
            request.start = match range.direction {
                Direction::Forward => IndexBound::After(index.whole(last)),
                Direction::Backward => IndexBound::Before(index.whole(last)),
            };
            index.page(view, &request).await?.entries.pop()
        }
        _ => None,
    };
    let Some(next) = next else {
        return Ok(None);
    };
    let mut out = PlainBufferEncoder::new();
    let mut row = out.row();
    for column in index.key(&next) {
        row.key(&column.name, &column.value);
    }
    row.finish(false, None);
    // Where the page ends, as seen from its beginning.
    let whole = index.whole(&next);
    let cut = match range.direction {
        Direction::Forward => IndexBound::Before(whole),
        Direction::Backward => IndexBound::After(whole),
    };
    Ok(Some((out.finish(), cut)))
}

/// Both ends of a range, checked.
fn ends(
    schema: &TableSchema,
    start: &[KeyColumn],
    end: &[KeyColumn],
    direction: Direction,
) -> Result<(PrefixBound, PrefixBound), ServiceError> {
    check_key(schema, start)?;
    check_key(schema, end)?;
    let order = start
        .iter()
        .zip(end)
        .map(|(start, end)| compared(&start.value, &end.value));
    let order = order.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then);
    match direction {
        Direction::Forward if order.is_ge() => return Err(Reason::BeginAboveEnd.into()),
        Direction::Backward if order.is_le() => return Err(Reason::BeginBelowEnd.into()),
        Direction::Forward | Direction::Backward => {}
    }
    // Inclusive where it begins, exclusive where it ends: both bounds lie on the same side of a whole key.
    let after = direction == Direction::Backward;
    Ok((PrefixBound::new(start, after), PrefixBound::new(end, after)))
}

/// Compares the values of a column at two ends, which are of one type, or stand below or above all values.
fn compared(left: &KeyElement, right: &KeyElement) -> std::cmp::Ordering {
    let place = |element: &KeyElement| match element {
        KeyElement::Minimum => 0,
        KeyElement::Integer(_)
        | KeyElement::String(_)
        | KeyElement::Binary(_)
        | KeyElement::AutoIncrement => 1,
        KeyElement::Maximum => 2,
    };
    place(left)
        .cmp(&place(right))
        .then_with(|| key_value(left).cmp(&key_value(right)))
}

impl PrefixBound {
    /// The bound at an end; `after` says on which side of a key that is whole.
    fn new(key: &[KeyColumn], after: bool) -> Self {
        let mut values = Vec::with_capacity(key.len());
        for column in key {
            match key_value(&column.value) {
                Some(value) => values.push(value),
                None => {
                    let after = column.value == KeyElement::Maximum;
                    return Self { values, after };
                }
            }
        }
        Self { values, after }
    }

    fn key_bound(self) -> Result<KeyBound, ServiceError> {
        if self.values.is_empty() {
            return Ok(match self.after {
                true => KeyBound::Max,
                false => KeyBound::Min,
            });
        }
        let key = PrimaryKey::new(self.values).map_err(store_error)?;
        Ok(match self.after {
            true => KeyBound::After(key),
            false => KeyBound::Before(key),
        })
    }

    fn index_bound(self, index: &IndexTable) -> IndexBound {
        let values = index.bound(&self.values);
        match (values.is_empty(), self.after) {
            (true, true) => IndexBound::Max,
            (true, false) => IndexBound::Min,
            (false, true) => IndexBound::After(values),
            (false, false) => IndexBound::Before(values),
        }
    }
}

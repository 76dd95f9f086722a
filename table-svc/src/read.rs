//! Converts what requests read: parts of rows, ranges, read views and transactions.

use souk_api::wire::unsigned;
use souk_chassis::status::{FieldPath, Violations};
use souk_engine::ReadView;
use souk_engine::storage::{
    ColumnPage, ColumnSelection, Direction, IndexBound, IndexRequest, KeyBound, RangeRequest, ReadOptions,
    TimeRange, TransactionId, Value, VersionSelection,
};
use souk_proto::table::v1::{self as pb, index_range, key_range};

use crate::filter::filter;
use crate::value::{cell, key};

/// Most rows or entries of a page.
pub(crate) const PAGE_ROWS_MAX: usize = souk_engine::storage::limits::MAX_SCANNED_ROWS;

/// Which columns and versions of each row are read, by the field `read`; `None` comes with a violation.
pub(crate) fn options(given: Option<&pb::ReadOptions>, violations: &mut Violations) -> Option<ReadOptions> {
    let at = FieldPath::root("read");
    let newest = VersionSelection {
        max_versions: Some(1),
        time: None,
    };
    let Some(given) = given else {
        return Some(ReadOptions {
            versions: newest,
            ..ReadOptions::default()
        });
    };
    let filter = match &given.filter {
        Some(given) => Some(filter(given, &at.field("filter"), violations)?),
        None => None,
    };
    if given.skip_columns > 0 && given.max_columns == 0 {
        let message = "needs max_columns beside it";
        violations.push(at.field("skip_columns"), "CONFLICTING_FIELDS", message);
    }
    let count = |count: i32| usize::try_from(count).unwrap_or_default();
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    Some(ReadOptions {
        columns: columns(&given.columns),
        versions: given.versions.as_ref().map_or(newest, versions),
        filter,
        start_column: text(&given.start_column),
        end_column: text(&given.end_column),
        column_page: (given.max_columns > 0).then(|| ColumnPage {
            limit: count(given.max_columns),
            offset: count(given.skip_columns),
        }),
    })
}

/// Whether answers include versions.
pub(crate) fn tells_versions(given: Option<&pb::ReadOptions>) -> bool {
    given.is_some_and(|given| given.versions.is_some())
}

fn columns(names: &[String]) -> ColumnSelection {
    match names {
        [] => ColumnSelection::All,
        names => ColumnSelection::named(names),
    }
}

fn versions(given: &pb::VersionSelection) -> VersionSelection {
    let bounded = given.from_millis.is_some() || given.to_millis.is_some();
    VersionSelection {
        max_versions: u32::try_from(given.max_versions).ok().filter(|count| *count > 0),
        time: bounded.then(|| TimeRange {
            from: given.from_millis.unwrap_or(i64::MIN),
            to: given.to_millis.unwrap_or(i64::MAX),
        }),
    }
}

/// Which writes a read sees; `None` comes with a violation.
pub(crate) fn read_view(
    transaction_id: &str,
    min_sequence: i64,
    violations: &mut Violations,
) -> Option<ReadView> {
    let transaction = transaction(transaction_id, violations)?;
    if transaction.is_some() && min_sequence != 0 {
        let message = "is of no use in a transaction, whose reads see the latest rows; leave it out";
        violations.push("min_sequence", "CONFLICTING_FIELDS", message);
        return None;
    }
    Some(match transaction {
        None => ReadView::Sequence(unsigned(min_sequence)),
        Some(id) => ReadView::Transaction(id),
    })
}

/// The transaction that a call is in, if it is in one; `None` comes with a violation.
pub(crate) fn transaction(given: &str, violations: &mut Violations) -> Option<Option<TransactionId>> {
    if given.is_empty() {
        return Some(None);
    }
    let id = violations.take("transaction_id", "INVALID_ID", given.parse());
    id.map(Some)
}

/// A range of rows, which stands in the field `range`, and what is read of them, in the field `read`; `None` comes with a violation.
pub(crate) fn range(
    given: Option<&pb::KeyRange>,
    descending: bool,
    read: Option<&pb::ReadOptions>,
    violations: &mut Violations,
) -> Option<RangeRequest> {
    let read = options(read, violations)?;
    let at = FieldPath::root("range");
    let mut bound =
        |given: &pb::Key, field: &str| key(&given.values, &at.field(field).field("values"), violations);
    let (mut low, mut high) = (KeyBound::Min, KeyBound::Max);
    if let Some(given) = given {
        match &given.low {
            Some(key_range::Low::Gte(key)) => low = KeyBound::Before(bound(key, "gte")?),
            Some(key_range::Low::Gt(key)) => low = KeyBound::After(bound(key, "gt")?),
            None => {}
        }
        match &given.high {
            Some(key_range::High::Lt(key)) => high = KeyBound::Before(bound(key, "lt")?),
            Some(key_range::High::Lte(key)) => high = KeyBound::After(bound(key, "lte")?),
            None => {}
        }
        if let Some(prefix) = &given.prefix {
            let key = bound(prefix, "prefix")?;
            if given.low.is_some() || given.high.is_some() {
                alone(&at, violations);
            }
            (low, high) = (KeyBound::Before(key.clone()), KeyBound::After(key));
        }
    }
    Some(RangeRequest::between(low, high, direction(descending)).options(read))
}

/// A range of a secondary index; `None` comes with a violation.
pub(crate) fn index_range(
    given: &pb::RangeIndexRequest,
    violations: &mut Violations,
) -> Option<IndexRequest> {
    let at = FieldPath::root("range");
    let values = |given: &pb::IndexValues| given.values.iter().map(cell).collect::<Option<Vec<Value>>>();
    let (mut low, mut high) = (IndexBound::Min, IndexBound::Max);
    if let Some(given) = &given.range {
        match &given.low {
            Some(index_range::Low::Gte(given)) => low = IndexBound::Before(values(given)?),
            Some(index_range::Low::Gt(given)) => low = IndexBound::After(values(given)?),
            None => {}
        }
        match &given.high {
            Some(index_range::High::Lt(given)) => high = IndexBound::Before(values(given)?),
            Some(index_range::High::Lte(given)) => high = IndexBound::After(values(given)?),
            None => {}
        }
        if let Some(prefix) = &given.prefix {
            let values = values(prefix)?;
            if given.low.is_some() || given.high.is_some() {
                alone(&at, violations);
            }
            (low, high) = (IndexBound::Before(values.clone()), IndexBound::After(values));
        }
    }
    let filter = match &given.filter {
        Some(given) => Some(filter(given, &FieldPath::root("filter"), violations)?),
        None => None,
    };
    let mut request = IndexRequest::between(&given.index, low, high, direction(given.descending));
    request.columns = columns(&given.columns);
    request.filter = filter;
    Some(request)
}

fn alone(at: &FieldPath, violations: &mut Violations) {
    let message = "is a whole range; leave gte, gt, lt and lte out";
    violations.push(at.field("prefix"), "CONFLICTING_FIELDS", message);
}

fn direction(descending: bool) -> Direction {
    match descending {
        true => Direction::Backward,
        false => Direction::Forward,
    }
}

//! Every way of reading, compared with the oracle.

use std::cmp::Ordering;

use fastrand::Rng;
use souk_storage::{
    Direction, IndexBound, IndexEntry, IndexRequest, KeyBound, PrimaryKey, RangeRequest, Row, Snapshot,
    Table, Value,
};

use super::oracle::{Entry, Logged, Oracle, State};
use super::random;
use super::row::{millis, stored};
use crate::reads;

const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Backward];

/// Reads rows by their keys and in ranges; gives the number of reads.
pub(super) async fn rows(
    snapshot: &Snapshot,
    table: &Table,
    state: &State,
    random: &mut Rng,
    now: i64,
) -> usize {
    let schema = table.schema();
    let expected = state.rows(table, now);
    let all = range(snapshot, table, RangeRequest::default()).await;
    let found = all.iter().map(|row| (row.key.clone(), stored(row)));
    assert_eq!(
        found.collect::<super::oracle::Rows>(),
        expected,
        "{}",
        table.name()
    );
    assert!(all.is_sorted_by(|left, right| left.key < right.key));
    let keys: Vec<_> = (0..3).map(|_| random::key(random, state, table, None)).collect();
    let many = snapshot.multi_get(table, &keys).await.expect("rows");
    for (key, found) in keys.iter().zip(many) {
        assert_eq!(found.as_ref().map(stored).as_ref(), expected.get(key), "{key:?}");
        let one = snapshot.get(table, key).await.expect("a row");
        assert_eq!(one, found);
        assert!(one.is_none_or(|row| row.key == *key));
        let options = reads::random::options(random, table, millis(now));
        let read = snapshot.read(table, key, &options).await.expect("a read");
        let expected = reads::oracle::read(&schema, found.as_ref(), &options);
        let found = read.row.as_ref().map(reads::oracle::cells);
        assert_eq!(found, expected.columns, "{key:?} {options:?}");
        assert_eq!(read.next_column, expected.next_column, "{key:?} {options:?}");
    }
    for direction in DIRECTIONS {
        let request = RangeRequest {
            start: random::bound(random, table),
            end: random::bound(random, table),
            direction,
            limit: random.usize(0..4),
            bytes: if random.bool() { 0 } else { random.usize(1..200) },
            returned_bytes: if random.bool() { 0 } else { random.usize(1..200) },
            options: reads::random::options(random, table, millis(now)),
        };
        let found = range(snapshot, table, request.clone()).await;
        let found = found
            .iter()
            .map(|row| (row.key.clone(), reads::oracle::cells(row)));
        let found: Vec<_> = found.collect();
        let (low, high) = match direction {
            Direction::Forward => (&request.start, &request.end),
            Direction::Backward => (&request.end, &request.start),
        };
        let inside = all
            .iter()
            .filter(|row| is_above(&row.key, low) && !is_above(&row.key, high));
        let mut expected: Vec<_> = inside
            .filter_map(|row| {
                let read = reads::oracle::read(&schema, Some(row), &request.options);
                Some((row.key.clone(), read.columns?))
            })
            .collect();
        if direction == Direction::Backward {
            expected.reverse();
        }
        assert_eq!(found, expected, "{request:?}");
    }
    3 + 3 * keys.len()
}

/// Whether a key lies above a cut.
fn is_above(key: &PrimaryKey, cut: &KeyBound) -> bool {
    let first = |prefix: &PrimaryKey| key.values()[..prefix.values().len()].cmp(prefix.values());
    match cut {
        KeyBound::Min => true,
        KeyBound::Max => false,
        KeyBound::Before(prefix) => first(prefix).is_ge(),
        KeyBound::After(prefix) => first(prefix).is_gt(),
    }
}

async fn range(snapshot: &Snapshot, table: &Table, mut request: RangeRequest) -> Vec<Row> {
    let mut rows = Vec::new();
    loop {
        let page = snapshot.range(table, &request).await.expect("a page");
        assert!(request.limit == 0 || page.rows.len() <= request.limit);
        rows.extend(page.rows);
        match page.next {
            Some(next) => request = request.resume(next),
            None => return rows,
        }
    }
}

/// Reads the indexes of these names; gives the number of reads.
pub(super) async fn indexes(
    snapshot: &Snapshot,
    table: &Table,
    names: &[String],
    state: &State,
    random: &mut Rng,
    now: i64,
) -> usize {
    for name in names {
        let entries = state.index(table, name, now);
        let values: Vec<_> = entries.iter().map(values).collect();
        for direction in DIRECTIONS {
            let mut request = IndexRequest::all(name, direction).limit(random.usize(0..4));
            if random.bool() {
                let key_columns = table.schema().key.len();
                request.start = reads::random::index_bound(random, &values, key_columns);
                request.end = reads::random::index_bound(random, &values, key_columns);
            }
            let found = index(snapshot, table, request.clone()).await;
            let (low, high) = match direction {
                Direction::Forward => (&request.start, &request.end),
                Direction::Backward => (&request.end, &request.start),
            };
            let inside = |entry: &&Entry| is_entry_above(entry, low) && !is_entry_above(entry, high);
            let mut expected: Vec<_> = entries.iter().filter(inside).cloned().collect();
            if direction == Direction::Backward {
                expected.reverse();
            }
            assert_eq!(found, expected, "{} {request:?}", table.name());
        }
    }
    2 * names.len()
}

/// The values of an entry, the key's behind those of the index.
fn values(entry: &Entry) -> Vec<Value> {
    let key = entry.1.values().iter().cloned().map(Value::from);
    entry.0.iter().cloned().chain(key).collect()
}

/// Whether an entry lies above a cut.
fn is_entry_above(entry: &Entry, cut: &IndexBound) -> bool {
    let first = |prefix: &[Value]| {
        let values = values(entry);
        let orders = values.iter().zip(prefix);
        let mut orders = orders.map(|(value, bound)| reads::oracle::compare(value, bound));
        orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    };
    match cut {
        IndexBound::Min => true,
        IndexBound::Max => false,
        IndexBound::Before(prefix) => first(prefix).is_ge(),
        IndexBound::After(prefix) => first(prefix).is_gt(),
    }
}

async fn index(snapshot: &Snapshot, table: &Table, mut request: IndexRequest) -> Vec<Entry> {
    let mut entries = Vec::new();
    loop {
        let page = snapshot.index(table, &request).await.expect("a page");
        assert!(request.limit == 0 || page.entries.len() <= request.limit);
        let entry = |entry: IndexEntry| (entry.values, entry.key, entry.included);
        entries.extend(page.entries.into_iter().map(entry));
        match page.next {
            Some(next) => request = request.resume(next),
            None => return entries,
        }
    }
}

/// Reads the log after a sequence up to the snapshot's; gives the number of changes.
pub(super) async fn log(snapshot: &Snapshot, oracle: &Oracle, after: u64, random: &mut Rng) -> usize {
    assert_eq!(snapshot.oldest_change().await.expect("a sequence"), 1);
    let mut sequence = after;
    loop {
        let limit = random.usize(0..50);
        let changes = snapshot.changes(sequence, limit).await.expect("changes");
        if changes.is_empty() {
            break;
        }
        for change in changes {
            let (time, logged) = &oracle.log[usize::try_from(sequence).expect("a place")];
            sequence += 1;
            assert_eq!(change.sequence, sequence);
            let rows = change.rows.into_iter();
            let found: Vec<Logged> = rows
                .map(|row| {
                    let after = row.row.as_ref().map(stored);
                    (row.table.0, row.key, row.kind, after)
                })
                .collect();
            assert_eq!((change.time, &found), (*time, logged), "change {sequence}");
        }
    }
    assert_eq!(sequence, snapshot.sequence());
    usize::try_from(sequence - after).expect("a number")
}

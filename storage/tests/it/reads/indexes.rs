//! Ranges of secondary indexes.

use std::cmp::Ordering;

use souk_storage::{
    Cell, ColumnSelection, Direction, Error, Filter, IndexBound, IndexEntry, IndexRequest, Snapshot, Table,
    Value,
};

use super::oracle;
use super::{MOST_PAGES, Store, put, random, simple};

/// The values of an entry, the key's behind those of the index.
fn values(entry: &IndexEntry) -> Vec<Value> {
    let key = entry.key.values().iter().cloned().map(Value::from);
    entry.values.iter().cloned().chain(key).collect()
}

/// Whether an entry lies above a cut.
fn is_above(entry: &IndexEntry, cut: &IndexBound) -> bool {
    let first = |prefix: &[Value]| {
        let values = values(entry);
        let orders = values.iter().zip(prefix);
        let mut orders = orders.map(|(value, bound)| oracle::compare(value, bound));
        orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    };
    match cut {
        IndexBound::Min => true,
        IndexBound::Max => false,
        IndexBound::Before(prefix) => first(prefix).is_ge(),
        IndexBound::After(prefix) => first(prefix).is_gt(),
    }
}

async fn all(snapshot: &Snapshot, table: &Table, index: &str) -> Vec<IndexEntry> {
    let page = snapshot
        .index_range(table, index, &[], None, Direction::Forward, 0)
        .await;
    let page = page.expect("a page");
    assert_eq!(page.next, None);
    page.entries
}

/// What a filter sees of an entry.
fn seen(columns: &[String], entry: &IndexEntry) -> oracle::Cells {
    let own = columns.iter().cloned().zip(entry.values.iter().cloned());
    let all = own.chain(entry.included.iter().cloned());
    all.map(|(name, value)| (name, vec![Cell { value, version: 0 }]))
        .collect()
}

#[tokio::test]
async fn pages_through_ranges_of_indexes() {
    let mut random = crate::commits::random();
    let store = Store::random(&mut random).await;
    let snapshot = store.database.snapshot().await.expect("a snapshot");
    let mut empty_pages = 0;
    for table in &store.tables {
        let schema = table.schema();
        for index in &schema.indexes {
            let entries = all(&snapshot, table, &index.name).await;
            assert!(entries.len() > 5, "there are entries to read");
            let all_values: Vec<_> = entries.iter().map(values).collect();
            for _ in 0..500 {
                let direction = *random
                    .choice(&[Direction::Forward, Direction::Backward])
                    .expect("one");
                let mut request = IndexRequest {
                    start: random::index_bound(&mut random, &all_values, schema.key.len()),
                    end: random::index_bound(&mut random, &all_values, schema.key.len()),
                    limit: random.usize(0..5),
                    bytes: if random.bool() { 0 } else { random.usize(1..500) },
                    filter: random.bool().then(|| random::filter(&mut random, 0)),
                    ..IndexRequest::all(&index.name, direction)
                };
                if random.bool() {
                    let mut names = index.included.clone();
                    names.truncate(random.usize(0..=names.len()));
                    names.push(index.columns[0].clone());
                    request.columns = ColumnSelection::Named(names);
                }
                let (low, high) = match direction {
                    Direction::Forward => (&request.start, &request.end),
                    Direction::Backward => (&request.end, &request.start),
                };
                let inside = entries
                    .iter()
                    .filter(|entry| is_above(entry, low) && !is_above(entry, high));
                let mut expected: Vec<_> = inside.cloned().collect();
                if let ColumnSelection::Named(names) = &request.columns {
                    for entry in &mut expected {
                        entry.included.retain(|(name, _)| names.contains(name));
                    }
                }
                if let Some(filter) = &request.filter {
                    expected.retain(|entry| oracle::passes(filter, &seen(&index.columns, entry)));
                }
                if direction == Direction::Backward {
                    expected.reverse();
                }
                let mut found = Vec::new();
                let first = request.clone();
                let mut pages = 0..MOST_PAGES;
                loop {
                    assert!(pages.next().is_some(), "the pages don't end: {first:?}");
                    let page = snapshot.index(table, &request).await.expect("a page");
                    assert!(request.limit == 0 || page.entries.len() <= request.limit);
                    assert!(page.consumed.read >= 1 && page.consumed.write == 0);
                    empty_pages += usize::from(page.entries.is_empty() && page.next.is_some());
                    found.extend(page.entries);
                    match page.next {
                        Some(next) => request = request.resume(next),
                        None => break,
                    }
                }
                assert_eq!(found, expected, "{first:?}");
            }
        }
    }
    assert!(empty_pages > 0, "some page is empty and has a next position");
}

#[tokio::test]
async fn an_entry_costs_what_it_shows() {
    let (database, table) = simple().await;
    for id in 0..20 {
        let columns = vec![
            ("a".into(), Value::from("x".repeat(1000))),
            ("b".into(), Value::from("y".repeat(3000))),
        ];
        put(&database, &table, id, columns).await;
    }
    let snapshot = database.snapshot().await.expect("a snapshot");
    let request = IndexRequest::all("by_a", Direction::Forward);
    let page = snapshot.index(&table, &request).await.expect("a page");
    assert_eq!(page.consumed, oracle::units(20 * (2 + 8 + 1001 + 3001)));
    let none_of_it = request.clone().filter(Filter::missing("b"));
    let page = snapshot.index(&table, &none_of_it).await.expect("a page");
    assert_eq!(page.consumed, oracle::units(20 * (2 + 8 + 1001 + 3001)));
    let page = snapshot
        .index(&table, &request.columns(["a"]))
        .await
        .expect("a page");
    assert_eq!(page.consumed, oracle::units(20 * (2 + 8 + 1001)));
}

#[tokio::test]
async fn refuses_requests_that_do_not_fit_the_index() {
    let (database, table) = simple().await;
    let snapshot = database.snapshot().await.expect("a snapshot");
    let all = || IndexRequest::all("by_a", Direction::Forward);
    let between = |low| IndexRequest::between("by_a", low, IndexBound::Max, Direction::Backward);
    let long = Value::from("x".repeat(1025));
    let deep = (0..20).fold(Filter::exists("a"), |filter, _| Filter::Not(Box::new(filter)));
    let refused = [
        (
            between(IndexBound::Before(vec![1.into(), 2.into(), 3.into()])),
            "3 values for 2 columns",
        ),
        (
            between(IndexBound::After(vec![1.into(), "2".into()])),
            "gives key column \"id\" a STRING",
        ),
        (between(IndexBound::After(vec![f64::NAN.into()])), "NaN"),
        (between(IndexBound::Before(vec![long])), "too long"),
        (all().columns(["a", "c"]), "column \"c\" is not in index \"by_a\""),
        (all().columns(Vec::<String>::new()), "names no column"),
        (all().filter(deep), "MAX_FILTER_DEPTH is 16"),
    ];
    for (request, why) in refused {
        let error = snapshot.index(&table, &request).await.expect_err(why);
        assert!(error.to_string().contains(why), "{error}");
        assert!(
            matches!(error, Error::Invalid { .. } | Error::LimitExceeded { .. }),
            "{error:?}"
        );
    }
}

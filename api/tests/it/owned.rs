//! Rows of created tables that have owners, under the hands of callers who meet their own alone.

use std::collections::BTreeSet;

use souk_engine::error::Waiting;
use souk_engine::index::{Field, Query, SearchRequest, TotalRequest};
use souk_engine::storage::limits::{MAX_BATCH_ROWS, MAX_SCANNED_ROWS};
use souk_engine::storage::{
    CapacityUnits, CellPut, ColumnChange, Condition, Direction, Error as StoreError, KeyBound, KeyKind,
    KeyValue, PrimaryKey, RangeRequest, Row, RowOperation, TableSchema,
};
use souk_engine::{
    Call, Engine, EngineError, Owner, Principal, Search, TableDefinition, TableHandle, TableWrite,
};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::note;

/// Letters with several versions, which belong to their author.
async fn letters() -> (TempDir, Engine, TableHandle) {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, _) = note::open(directory.path()).await;
    let schema = TableSchema::new("letters")
        .key("id", KeyKind::String)
        .max_versions(5);
    let letters = TableDefinition::new(schema)
        .item("letter")
        .field(Field::keyword("author"))
        .owner("user", "author");
    let letters = engine.create_table(letters).await.expect("created");
    (directory, engine, letters)
}

/// The table for a user.
fn of(table: &TableHandle, id: &str) -> TableHandle {
    table.for_call(owner_call(id))
}

fn owner_call(id: &str) -> Call {
    let owner = Owner {
        kind: "user",
        id: id.into(),
    };
    Call {
        principal: Principal::Caller {
            name: id.into(),
            owner: Some(owner),
        },
        deadline: None,
    }
}

fn key(id: &str) -> PrimaryKey {
    PrimaryKey::string(id).expect("short")
}

fn put(id: &str, author: &str) -> TableWrite {
    TableWrite::put(key(id), vec![("author".into(), author.into())])
}

fn author(author: &str, version: Option<i64>) -> ColumnChange {
    ColumnChange::Put {
        column: "author".to_owned(),
        value: author.into(),
        version,
    }
}

fn put_authors(id: &str, authors: &[(&str, i64)]) -> TableWrite {
    let cells = authors.iter().map(|(author, version)| CellPut {
        column: "author".to_owned(),
        value: (*author).into(),
        version: Some(*version),
    });
    TableWrite::new(RowOperation::PutCells {
        key: key(id),
        cells: cells.collect(),
    })
}

async fn write(table: &TableHandle, write: TableWrite) -> u64 {
    let written = table.write(vec![write], None).await.expect("written");
    written.sequence.unsigned_abs()
}

async fn row(table: &TableHandle, id: &str) -> Option<Row> {
    table.get(&key(id), 0).await.expect("read").value
}

async fn found(table: &TableHandle) -> u64 {
    let mut request = SearchRequest::new(Query::MatchAll);
    request.total = TotalRequest::Exact;
    let page = table.search(Search::new(request)).await.expect("a page");
    page.total.expect("a total").value
}

/// The store's newest version is the highest, whichever was listed last.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_give_no_row_to_another() {
    let (_directory, engine, letters) = letters().await;
    let ada = of(&letters, "ada");
    let now = engine.now() / 1_000_000;
    // Was bob's before it was hers.
    write(
        &letters,
        put_authors("l1", &[("bob", now - 20), ("ada", now - 10)]),
    )
    .await;
    write(&ada, put("l2", "ada")).await;
    let delete = ColumnChange::DeleteVersion {
        column: "author".to_owned(),
        version: now - 10,
    };
    for (id, wrong) in [
        ("l2", put_authors("l2", &[("bob", now + 100), ("ada", now)])),
        ("l3", put_authors("l3", &[("bob", now + 100), ("ada", now)])),
        (
            "l2",
            TableWrite::update(
                key("l2"),
                vec![author("bob", Some(now + 100)), author("ada", Some(now))],
            ),
        ),
        (
            "l3",
            TableWrite::update(
                key("l3"),
                vec![author("bob", Some(now + 100)), author("ada", Some(now))],
            ),
        ),
        ("l1", TableWrite::update(key("l1"), vec![delete.clone()])),
        (
            "l1",
            TableWrite::update(key("l1"), vec![delete, author("ada", Some(now - 30))]),
        ),
        // They may be far behind, and gone at once.
        ("l3", put_authors("l3", &[("ada", now)])),
    ] {
        let before = row(&letters, id).await;
        let refused = ada.write(vec![wrong.clone()], None).await;
        assert!(
            matches!(&refused, Err(EngineError::InvalidRow { problem, .. }) if problem.contains("author")),
            "{wrong:?}: {refused:?}"
        );
        assert_eq!(row(&letters, id).await, before);
    }
    // Versions of what names nobody are hers to give.
    let text = ColumnChange::Put {
        column: "text".to_owned(),
        value: "hello".into(),
        version: Some(now),
    };
    write(
        &ada,
        TableWrite::update(key("l2"), vec![text, author("ada", None)]),
    )
    .await;
    note::close(engine).await;
}

/// She asks for no sequence, and is told of nothing that isn't hers any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_versions_take_from_somebody_is_no_longer_counted_for_her() {
    let (_directory, engine, letters) = letters().await;
    let ada = of(&letters, "ada");
    let now = engine.now() / 1_000_000;
    for round in 0..20 {
        let id = format!("l{round}");
        write(&ada, put(&id, "ada")).await;
        engine
            .refreshed(engine.database().last_sequence(), None)
            .await
            .expect("seen");
        assert_eq!(found(&ada).await, 1);
        let taken = match round % 2 {
            0 => put_authors(&id, &[("bob", now + 60_000), ("ada", now)]),
            _ => {
                let changes = vec![author("bob", Some(now + 60_000)), author("ada", Some(now))];
                TableWrite::update(key(&id), changes)
            }
        };
        write(&letters, taken).await;
        assert_eq!(found(&ada).await, 0, "round {round}");
    }
    note::close(engine).await;
}

/// The revisions to come are known: the next sequences.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_guessed_revision_takes_no_row_from_another() {
    let (_directory, engine, letters) = letters().await;
    let ada = of(&letters, "ada");
    write(&letters, put("l1", "ada")).await;
    let gives = tokio::spawn({
        let letters = letters.clone();
        async move {
            let mut bobs = BTreeSet::new();
            for _ in 0..200 {
                bobs.insert(write(&letters, put("l1", "bob")).await);
                write(&letters, put("l1", "ada")).await;
            }
            bobs
        }
    });
    let mut taken = Vec::new();
    while !gives.is_finished() {
        let guess = engine.database().last_sequence() + 1;
        let guessed = put("l1", "ada").when(Condition::revision(guess));
        match ada.write(vec![guessed], None).await {
            Ok(_) => taken.push(guess),
            Err(EngineError::NotOwn { .. } | EngineError::Storage(StoreError::ConditionFailed { .. })) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
    let bobs = gives.await.expect("given");
    assert!(taken.iter().all(|taken| !bobs.contains(taken)), "{taken:?}");
    note::close(engine).await;
}

/// What an update is said to need is there or not when it is written, not when it was looked at.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_row_that_comes_meanwhile_isnt_overwritten() {
    let (_directory, engine, letters) = letters().await;
    let ada = of(&letters, "ada");
    let gives = tokio::spawn({
        let letters = letters.clone();
        async move {
            for _ in 0..200 {
                let comes = put("l1", "bob").when(Condition::must_not_exist());
                let came = letters.write(vec![comes], None).await;
                let came = came.expect("nobody else writes it").sequence.unsigned_abs();
                let goes = TableWrite::delete(key("l1")).when(Condition::revision(came));
                letters.write(vec![goes], None).await.expect("it is still bob's");
            }
        }
    });
    while !gives.is_finished() {
        let taken = put("l1", "ada").when(Condition::must_exist());
        let refused = ada.write(vec![taken], None).await;
        assert!(
            matches!(
                refused,
                Err(EngineError::NotOwn { .. } | EngineError::Storage(StoreError::ConditionFailed { .. }))
            ),
            "{refused:?}"
        );
    }
    gives.await.expect("bob's rows stay his");
    note::close(engine).await;
}

/// All pages of a range; each goes on at a row of the caller's.
async fn pages(
    table: &TableHandle,
    mut request: RangeRequest,
    owns: impl Fn(&PrimaryKey) -> bool,
) -> Vec<PrimaryKey> {
    let mut keys = Vec::new();
    loop {
        let page = table.range(&request, 0).await.expect("a page").value;
        assert!(request.limit == 0 || page.rows.len() <= request.limit);
        assert_eq!(
            page.consumed,
            CapacityUnits::default(),
            "it counts rows of others"
        );
        keys.extend(page.rows.into_iter().map(|row| row.key));
        let Some(next) = page.next else {
            return keys;
        };
        assert!(owns(&next), "{next:?}");
        request = request.resume(next);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_range_of_own_rows_tells_no_key_of_anothers() {
    let (_directory, engine, letters) = letters().await;
    let ada = of(&letters, "ada");
    // Behind each of hers are more of others than one look takes.
    let mut hers = Vec::new();
    for nth in 0..3 {
        hers.push(key(&format!("{nth}")));
        write(&letters, put(&format!("{nth}"), "ada")).await;
    }
    let others: Vec<TableWrite> = (0..MAX_SCANNED_ROWS + 100)
        .map(|nth| put(&format!("1-{nth}"), "bob"))
        .collect();
    for some in others.chunks(MAX_BATCH_ROWS) {
        letters.write(some.to_vec(), None).await.expect("written");
    }
    for direction in [Direction::Forward, Direction::Backward] {
        let mut expected = hers.clone();
        if direction == Direction::Backward {
            expected.reverse();
        }
        for limit in [0, 1, 2, 3] {
            let request = RangeRequest::all(direction).limit(limit);
            let read = pages(&ada, request, |next| hers.contains(next)).await;
            assert_eq!(read, expected, "{direction:?}, {limit}");
        }
        let of_others =
            RangeRequest::between(KeyBound::Before(key("1-")), KeyBound::Before(key("2")), direction);
        assert!(pages(&ada, of_others, |_| false).await.is_empty());
    }
    let late = ada.for_call(Call {
        deadline: Some(Instant::now()),
        ..owner_call("ada")
    });
    let request = RangeRequest::between(KeyBound::After(key("1")), KeyBound::Max, Direction::Forward);
    let late = late.range(&request, 0).await;
    assert!(
        matches!(late, Err(EngineError::DeadlineExceeded(Waiting::OwnRows))),
        "{late:?}"
    );
    note::close(engine).await;
}

/// Then the rows of others aren't read at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_range_of_own_rows_stays_in_the_partition_that_names_their_owner() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, _) = note::open(directory.path()).await;
    let schema = TableSchema::new("inbox")
        .key("reader", KeyKind::String)
        .key("nth", KeyKind::Integer);
    let inbox = TableDefinition::new(schema)
        .item("letter")
        .field(Field::keyword("reader"))
        .owner("user", "reader");
    let inbox = engine.create_table(inbox).await.expect("created");
    let key = |reader: &str, nth: i64| PrimaryKey::new([KeyValue::from(reader), nth.into()]).expect("short");
    let readers = ["abe", "ada", "adam", "bob"];
    for reader in readers {
        for nth in -2..2 {
            write(&inbox, TableWrite::put(key(reader, nth), Vec::new())).await;
        }
    }
    let prefix = |reader: &str| PrimaryKey::new([KeyValue::from(reader)]).expect("short");
    let mut cuts = vec![KeyBound::Min, KeyBound::Max];
    for reader in ["a", "abe", "ada", "adam", "bob", "c"] {
        cuts.extend([KeyBound::Before(prefix(reader)), KeyBound::After(prefix(reader))]);
        cuts.extend([KeyBound::Before(key(reader, 0)), KeyBound::After(key(reader, 0))]);
    }
    for reader in readers {
        let own = of(&inbox, reader);
        for (low, high) in cuts
            .iter()
            .flat_map(|low| cuts.iter().map(move |high| (low, high)))
        {
            for direction in [Direction::Forward, Direction::Backward] {
                let request = RangeRequest::between(low.clone(), high.clone(), direction);
                let all = inbox.range(&request, 0).await.expect("a page").value.rows;
                let all = all.into_iter().map(|row| row.key);
                let owns = |key: &PrimaryKey| key.values().first() == Some(&KeyValue::from(reader));
                let expected: Vec<PrimaryKey> = all.filter(owns).collect();
                let read = pages(&own, request.limit(1), owns).await;
                assert_eq!(read, expected, "{reader}: {low:?} {high:?} {direction:?}");
            }
        }
    }
    note::close(engine).await;
}

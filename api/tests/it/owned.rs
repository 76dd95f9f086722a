//! Rows of created tables that have owners, under the hands of callers who meet their own alone.

mod ranges;

use std::collections::BTreeSet;

use souk_engine::index::{Field, Query, SearchRequest, TotalRequest};
use souk_engine::storage::{
    CapacityUnits, CellPut, ColumnChange, Comparison, Condition, ConditionFailure, Direction,
    Error as StoreError, Filter, IndexBound, IndexRequest, KeyKind, KeyValue, PrimaryKey, RangeRequest,
    ReadOptions, ReturnRow, Row, RowOperation, SecondaryIndexSchema, TableSchema, Value, WrittenRow,
};
use souk_engine::{
    Call, Engine, EngineError, Owner, Principal, ReadView, RequestId, Search, TableDefinition, TableHandle,
    TableWrite, Written,
};
use tempfile::TempDir;

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
            tables: None,
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
            Err(
                EngineError::NotOwn { .. }
                | EngineError::Storage(StoreError::ConditionFailed { .. } | StoreError::Contended { .. }),
            ) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
    let bobs = gives.await.expect("given");
    assert!(taken.iter().all(|taken| !bobs.contains(taken)), "{taken:?}");
    note::close(engine).await;
}

/// It never comes again: nothing else is looked at, however often others write the row meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revision_that_has_passed_is_refused_at_once() {
    let (_directory, engine, letters) = letters().await;
    let ada = of(&letters, "ada");
    let expected = write(&ada, put("l1", "ada")).await;
    let actual = write(&ada, put("l1", "ada")).await;
    let late = put("l1", "ada").when(Condition::revision(expected));
    let refused = ada.write(vec![late, put("l2", "bob")], None).await;
    let reason = ConditionFailure::RevisionMismatch { expected, actual };
    let wanted = EngineError::Storage(StoreError::ConditionFailed { write: 0, reason });
    assert_eq!(told(refused), told(Err(wanted)));
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
        // Nothing is told of the row that came.
        assert!(
            matches!(
                refused,
                Err(EngineError::Storage(
                    StoreError::ConditionFailed {
                        reason: ConditionFailure::NotFound,
                        ..
                    } | StoreError::Contended { .. }
                ))
            ),
            "{refused:?}"
        );
    }
    gives.await.expect("bob's rows stay his");
    note::close(engine).await;
}

/// What becomes of a write, as its caller is told; without its sequence, which each write has for its own.
fn told(outcome: souk_engine::Result<Written<Vec<WrittenRow>>>) -> String {
    let outcome = outcome.map(|written| {
        let rows = written.value.into_iter();
        rows.map(|row| (row.key, row.row, row.consumed))
            .collect::<Vec<_>>()
    });
    format!("{outcome:?}")
}

fn columns(filter: Filter) -> Condition {
    Condition {
        columns: Some(filter),
        ..Condition::none()
    }
}

/// Neither by its condition nor by its cost does a write tell whether there is a row of somebody else, but by being refused what would
/// take its key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_tells_of_anothers_row_that_its_key_is_taken_and_nothing_more() {
    let (_directory, engine, letters) = letters().await;
    let ada = of(&letters, "ada");
    let bobs = write(&letters, put("l1", "bob")).await;
    let conditions = [
        Condition::none(),
        Condition::must_exist(),
        Condition::must_not_exist(),
        Condition::revision(bobs),
        Condition::revision(bobs + 100),
        columns(Filter::column("author", Comparison::Equal, "bob")),
        columns(Filter::column("author", Comparison::NotEqual, "bob")),
        columns(Filter::exists("author")),
        columns(Filter::missing("author")),
    ];
    let set = |column: &str| ColumnChange::Put {
        column: column.to_owned(),
        value: "ada".into(),
        version: None,
    };
    let writes = |id: &str| {
        let unset = ColumnChange::DeleteAll {
            column: "text".to_owned(),
        };
        [
            TableWrite::delete(key(id)),
            put(id, "ada"),
            put(id, "bob"),
            TableWrite::update(key(id), vec![set("text")]),
            TableWrite::update(key(id), vec![set("text"), set("author")]),
            TableWrite::update(key(id), vec![unset]),
        ]
    };
    let (mut alike, mut taken) = (0, 0);
    for condition in conditions {
        for (theirs, none) in writes("l1").into_iter().zip(writes("l2")) {
            let (theirs, none) = (theirs.when(condition.clone()), none.when(condition.clone()));
            let at = format!("{theirs:?}");
            let last = engine.database().last_sequence();
            let theirs = ada.write(vec![theirs], None).await;
            assert_eq!(engine.database().last_sequence(), last, "{at}");
            let none = ada.write(vec![none], None).await;
            if engine.database().last_sequence() > last {
                let reason = ConditionFailure::AlreadyExists;
                let refused = EngineError::Storage(StoreError::ConditionFailed { write: 0, reason });
                assert_eq!(told(theirs), told(Err(refused)), "{at}");
                write(&ada, TableWrite::delete(key("l2"))).await;
                taken += 1;
            } else {
                assert_eq!(told(theirs), told(none), "{at}");
                alike += 1;
            }
        }
    }
    assert!(alike > 40 && taken > 5, "{alike} and {taken}");
    // What makes nothing of a missing row does nothing to another's.
    let last = engine.database().last_sequence();
    for id in ["l1", "l2"] {
        let [.., unset] = writes(id);
        let done = ada.write(vec![unset], None).await;
        assert!(done.is_ok(), "{id}: {done:?}");
    }
    assert_eq!(engine.database().last_sequence(), last);
    assert_eq!(row(&letters, "l1").await.expect("it is bob's").revision, bobs);
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_of_own_rows_are_read_and_others_are_missing_whatever_is_asked() {
    let (_directory, engine, letters) = letters().await;
    let ada = of(&letters, "ada");
    for (id, author) in [("l1", "ada"), ("l2", "bob"), ("l3", "ada")] {
        let text = ("text".into(), format!("of {author}").into());
        let columns = vec![("author".into(), author.into()), text];
        write(&letters, TableWrite::put(key(id), columns)).await;
    }
    let of_bob = Filter::column("text", Comparison::Equal, "of bob");
    for (options, shows) in [
        (ReadOptions::default(), true),
        (ReadOptions::new().columns(["text"]), true),
        (ReadOptions::new().max_versions(1).end_column("b"), true),
        (ReadOptions::new().columns(["nothing"]), false),
        (ReadOptions::new().filter(of_bob.clone()), false),
        (ReadOptions::new().filter(Filter::Not(Box::new(of_bob))), true),
    ] {
        let keys = ["l3", "l2", "l1", "l0"].map(key).to_vec();
        let read = ada
            .read_rows(keys.clone(), &options, 0)
            .await
            .expect("read")
            .value;
        for (id, read) in keys.iter().zip(read) {
            let read = read.expect("a result");
            let is_own = *id == key("l1") || *id == key("l3");
            assert_eq!(read.row.is_some(), is_own && shows, "{id:?} {options:?}");
            assert_eq!(read.consumed, CapacityUnits::default());
            let alone = ada.read_row(id, &options, ReadView::Sequence(0)).await;
            assert_eq!(alone.expect("read").value, read, "{id:?} {options:?}");
            if is_own {
                let all = letters.read_row(id, &options, ReadView::Sequence(0)).await;
                assert_eq!(all.expect("read").value.row, read.row, "{id:?} {options:?}");
            }
        }
        // Others lie between them in a range, and a filter would look at those.
        let range = RangeRequest::default().options(options.clone());
        let range = ada.range(&range, 0).await;
        let is_whole = options == ReadOptions::default();
        assert_eq!(range.is_ok(), is_whole, "{options:?}: {range:?}");
    }
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn own_entries_of_a_secondary_index_are_read_where_it_begins_with_their_owner() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, _) = note::open(directory.path()).await;
    let schema = TableSchema::new("letters")
        .key("id", KeyKind::Integer)
        .index(SecondaryIndexSchema::new("by_author", ["author", "stars"]).include(["text"]))
        .index(SecondaryIndexSchema::new("by_stars", ["stars", "author"]));
    let letters = TableDefinition::new(schema).owner("user", "author");
    let letters = engine.create_table(letters).await.expect("created");
    let authors = ["abe", "ada", "adam", "bob"];
    for nth in 0..40_i64 {
        let author = authors[usize::try_from(nth % 4).expect("small")];
        let columns = vec![
            ("author".into(), author.into()),
            ("stars".into(), (nth % 5).into()),
            ("text".into(), author.into()),
        ];
        write(&letters, TableWrite::put(PrimaryKey::integer(nth), columns)).await;
    }
    // What names no text is nobody's.
    let odd = vec![("author".into(), 7.into()), ("stars".into(), 1.into())];
    write(&letters, TableWrite::put(PrimaryKey::integer(99), odd)).await;
    let mut cuts = vec![IndexBound::Min, IndexBound::Max];
    for author in ["a", "abe", "ada", "adam", "bob", "c"] {
        let (whole, part) = (vec![author.into()], vec![author.into(), Value::Integer(2)]);
        cuts.extend([IndexBound::Before(whole.clone()), IndexBound::After(whole)]);
        cuts.extend([IndexBound::Before(part.clone()), IndexBound::After(part)]);
    }
    cuts.extend([
        IndexBound::Before(vec![7.into()]),
        IndexBound::After(vec![7.into()]),
    ]);
    let all = async |table: &TableHandle, request: &IndexRequest| {
        let (mut entries, mut token) = (Vec::new(), String::new());
        loop {
            let (page, columns) = table.index_page(request, &token, 0).await.expect("a page");
            assert_eq!(columns, ["author", "stars"]);
            entries.extend(page.items);
            token = page.next_page_token;
            if token.is_empty() {
                return entries;
            }
        }
    };
    for author in authors {
        let own = of(&letters, author);
        for (low, high) in cuts
            .iter()
            .flat_map(|low| cuts.iter().map(move |high| (low, high)))
        {
            for direction in [Direction::Forward, Direction::Backward] {
                let request = IndexRequest::between("by_author", low.clone(), high.clone(), direction);
                let mut expected = all(&letters, &request).await;
                expected.retain(|entry| entry.values[0] == Value::from(author));
                let read = all(&own, &request.limit(3)).await;
                assert_eq!(read, expected, "{author}: {low:?} {high:?} {direction:?}");
            }
        }
        let other = IndexRequest::all("by_stars", Direction::Forward);
        let refused = own.index_page(&other, "", 0).await;
        assert!(
            matches!(&refused, Err(EngineError::InvalidRow { problem, .. }) if problem.contains("by_stars")),
            "{refused:?}"
        );
        let unknown = IndexRequest::all("by_text", Direction::Forward);
        let refused = own.index_page(&unknown, "", 0).await;
        assert!(
            matches!(
                refused,
                Err(EngineError::Storage(StoreError::IndexNotFound { .. }))
            ),
            "{refused:?}"
        );
    }
    let first = IndexRequest::all("by_author", Direction::Forward).limit(1);
    let (page, _) = of(&letters, "ada")
        .index_page(&first, "", 0)
        .await
        .expect("a page");
    let stolen = of(&letters, "bob")
        .index_page(&first, &page.next_page_token, 0)
        .await;
    assert!(
        matches!(stolen, Err(EngineError::PageTokenInvalid { .. })),
        "{stolen:?}"
    );
    note::close(engine).await;
}

/// Behind the number the parts of a key lie one further than what is given of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_numbered_row_is_its_owners_wherever_its_key_names_him() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, _) = note::open(directory.path()).await;
    let schema = TableSchema::new("boards")
        .key("board", KeyKind::String)
        .auto_increment_key("nth")
        .key("author", KeyKind::String)
        .key("topic", KeyKind::String);
    let boards = TableDefinition::new(schema).owner("user", "author");
    let boards = engine.create_table(boards).await.expect("created");
    let ada = of(&boards, "ada");
    let append = |author: &str, topic: &str| {
        let key = ["tea", author, topic].map(KeyValue::from).to_vec();
        let columns = Vec::new();
        TableWrite::new(RowOperation::Append { key, columns }).returning(ReturnRow::Key)
    };
    let own = ada.write(vec![append("ada", "bob")], None).await;
    let own = own.expect("her own").value.remove(0).key.expect("its key");
    let refused = ada.write(vec![append("bob", "ada")], None).await;
    assert!(matches!(refused, Err(EngineError::NotOwn { .. })), "{refused:?}");
    let read = ada
        .range(&RangeRequest::default(), 0)
        .await
        .expect("a page")
        .value;
    assert!(read.rows.iter().map(|row| &row.key).eq([&own]));
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_write_is_answered_again_though_its_row_was_given_away() {
    let (_directory, engine, letters) = letters().await;
    let ada = of(&letters, "ada");
    write(&ada, put("l1", "ada")).await;
    let text = ColumnChange::Put {
        column: "text".to_owned(),
        value: "hello".into(),
        version: None,
    };
    let update = TableWrite::update(key("l1"), vec![text]).returning(ReturnRow::All);
    let request = Some(RequestId::new([1; 16], 1));
    let first = ada.write(vec![update.clone()], request).await.expect("her own");
    write(&letters, put("l1", "bob")).await;
    let again = ada
        .write(vec![update.clone()], request)
        .await
        .expect("it was written");
    assert_eq!(again.sequence, first.sequence);
    let shown = again.value[0].row.as_ref().expect("the row of then");
    assert_eq!(shown.get("author"), Some(&Value::from("ada")));
    let another = ada.write(vec![update], None).await;
    assert!(matches!(another, Err(EngineError::NotOwn { .. })), "{another:?}");
    note::close(engine).await;
}

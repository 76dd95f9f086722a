//! Tables, handles, and reads that are refused.

use souk_storage::limits::{MAX_MULTI_GET_ROWS, MAX_SCANNED_ROWS};
use souk_storage::{
    Cast, Comparison, Condition, Database, DatabaseOptions, Direction, Durability, Error, Filter, Health,
    IndexPosition, KeyKind, PrimaryKey, RangeRequest, ReadOptions, RowOperation, SecondaryIndexSchema,
    TableSchema, Value, ValueRule, WriteBatch,
};

async fn database() -> Database {
    let database = Database::in_memory(DatabaseOptions::default()).await;
    database.expect("a database")
}

fn schema() -> TableSchema {
    TableSchema::new("t")
        .key("id", KeyKind::Integer)
        .index(SecondaryIndexSchema::new("by_color", ["color"]))
}

#[tokio::test]
async fn keeps_tables() {
    let directory = tempfile::tempdir().expect("a directory");
    let open = || Database::open(directory.path(), DatabaseOptions::default());
    let database = open().await.expect("a database");
    let table = database.create_table(schema()).await.expect("a table");
    let other = TableSchema::new("u").key("id", KeyKind::String);
    database.ensure_table(other.clone()).await.expect("another table");
    database.close().await.expect("a close");
    drop((database, table));
    let database = open().await.expect("a database");
    let names: Vec<_> = database
        .tables()
        .iter()
        .map(|table| table.name().to_owned())
        .collect();
    assert_eq!(names, ["t", "u"]);
    let table = database.table("t").expect("a table");
    assert_eq!(*table.schema(), schema());
    assert_eq!(
        database.ensure_table(schema()).await.expect("a table").id(),
        table.id()
    );
    assert_eq!(
        database.table_by_id(table.id()).expect("a table").name(),
        table.name()
    );
    let third = TableSchema::new("v").key("id", KeyKind::String);
    let third = database.create_table(third).await.expect("a third table");
    assert_eq!(third.id().0, 3, "numbers aren't used twice");
}

#[tokio::test]
async fn refuses_another_schema() {
    let database = database().await;
    database.create_table(schema()).await.expect("a table");
    let again = database.create_table(schema()).await;
    assert!(matches!(again, Err(Error::TableExists { .. })), "{again:?}");
    match database.ensure_table(schema().max_versions(2)).await {
        Err(Error::TableExists { difference, .. }) => {
            assert!(difference.contains("max_versions"), "{difference}");
        }
        other => panic!("expected a difference, got {other:?}"),
    }
    let keyless = database.create_table(TableSchema::new("keyless")).await;
    assert!(matches!(keyless, Err(Error::Invalid { .. })), "{keyless:?}");
}

#[tokio::test]
async fn refuses_a_table_of_another_database() {
    let (mine, theirs) = (database().await, database().await);
    mine.create_table(schema()).await.expect("a table");
    let table = theirs.create_table(schema()).await.expect("a table");
    let key = PrimaryKey::integer(1);
    let delete = RowOperation::Delete { key: key.clone() };
    let write = mine
        .write(WriteBatch::of(&table, delete, Condition::none()))
        .await;
    assert!(matches!(write, Err(Error::TableNotFound { .. })), "{write:?}");
    let snapshot = mine.snapshot().await.expect("a snapshot");
    let read = snapshot.get(&table, &key).await;
    assert!(matches!(read, Err(Error::TableNotFound { .. })), "{read:?}");
    let page = snapshot
        .index_range(&table, "by_color", &[], None, Direction::Forward, 1)
        .await;
    assert!(matches!(page, Err(Error::TableNotFound { .. })), "{page:?}");
}

#[tokio::test]
async fn refuses_reads_that_do_not_fit() {
    let database = database().await;
    let table = database.create_table(schema()).await.expect("a table");
    let snapshot = database.snapshot().await.expect("a snapshot");
    let text = PrimaryKey::string("text").expect("a key");
    let read = snapshot.get(&table, &text).await;
    assert!(matches!(read, Err(Error::Invalid { .. })), "{read:?}");
    let read = snapshot
        .range(&table, &RangeRequest::prefix(text, Direction::Forward))
        .await;
    assert!(matches!(read, Err(Error::Invalid { .. })), "{read:?}");
    let keys = vec![PrimaryKey::integer(1); MAX_MULTI_GET_ROWS + 1];
    let read = snapshot.multi_get(&table, &keys).await;
    assert!(matches!(read, Err(Error::LimitExceeded { .. })), "{read:?}");
    let nothing = ReadOptions::new().columns(Vec::<String>::new());
    let read = snapshot.read(&table, &keys[0], &nothing).await;
    assert!(matches!(read, Err(Error::Invalid { .. })), "{read:?}");
    let deep = (0..20).fold(Filter::And(Vec::new()), |filter, _| Filter::Not(Box::new(filter)));
    let read = snapshot
        .read(&table, &keys[0], &ReadOptions::new().filter(deep))
        .await;
    assert!(matches!(read, Err(Error::LimitExceeded { .. })), "{read:?}");
    let index = |name: &'static str, prefix: Vec<Value>, after: Option<IndexPosition>| {
        let (snapshot, table) = (snapshot.clone(), table.clone());
        async move {
            snapshot
                .index_range(&table, name, &prefix, after.as_ref(), Direction::Forward, 1)
                .await
        }
    };
    let read = index("by_size", vec![], None).await;
    assert!(matches!(read, Err(Error::IndexNotFound { .. })), "{read:?}");
    let read = index("by_color", vec![1.into(), 2.into(), 3.into()], None).await;
    assert!(matches!(read, Err(Error::Invalid { .. })), "{read:?}");
    let read = index("by_color", vec![1.into(), "2".into()], None).await;
    assert!(matches!(read, Err(Error::Invalid { .. })), "{read:?}");
    let read = index("by_color", vec![f64::INFINITY.into()], None).await;
    assert!(matches!(read, Err(Error::Invalid { .. })), "{read:?}");
    let position = IndexPosition::from_bytes(&b"anything"[..]);
    let read = index("by_color", vec![], Some(position)).await;
    assert!(matches!(read, Err(Error::Invalid { .. })), "{read:?}");
}

#[tokio::test]
async fn refuses_a_position_outside_of_the_prefix() {
    let database = database().await;
    let table = database.create_table(schema()).await.expect("a table");
    for (id, color) in [(1, "green"), (2, "red")] {
        let put = RowOperation::Put {
            key: PrimaryKey::integer(id),
            columns: vec![("color".into(), color.into())],
        };
        let batch = WriteBatch::of(&table, put, Condition::none());
        database.write(batch).await.expect("a write");
    }
    let snapshot = database.snapshot().await.expect("a snapshot");
    let page = |prefix: &'static str, after: Option<IndexPosition>| {
        let (snapshot, table) = (snapshot.clone(), table.clone());
        async move {
            let prefix = [prefix.into()];
            snapshot
                .index_range(&table, "by_color", &prefix, after.as_ref(), Direction::Forward, 1)
                .await
        }
    };
    let green = page("green", None).await.expect("a page").entries;
    let position = IndexPosition::from_bytes(green[0].position.as_bytes().to_vec());
    let after = page("green", Some(position.clone())).await.expect("a page");
    assert_eq!((after.entries, after.next), (vec![], None));
    let read = page("red", Some(position)).await;
    assert!(matches!(read, Err(Error::Invalid { .. })), "{read:?}");
}

#[tokio::test]
async fn ends_a_page_of_a_range_that_finds_nothing() {
    let database = database().await;
    let table = database.create_table(schema()).await.expect("a table");
    let rows = i64::try_from(MAX_SCANNED_ROWS).expect("a number") + 1;
    let ids: Vec<_> = (0..rows).collect();
    for ids in ids.chunks(200) {
        let put = |id: &i64| RowOperation::Put {
            key: PrimaryKey::integer(*id),
            columns: vec![],
        };
        let batch = ids.iter().fold(WriteBatch::new(), |batch, id| {
            batch.write(&table, put(id), Condition::none())
        });
        let batch = batch.durability(Durability::Buffered);
        database.write(batch).await.expect("a write");
    }
    let snapshot = database.snapshot().await.expect("a snapshot");
    let mut request = RangeRequest::all(Direction::Backward).limit(1);
    request.options.filter = Some(Filter::Or(Vec::new()));
    let page = snapshot.range(&table, &request).await.expect("a page");
    assert_eq!((page.rows, &page.next), (vec![], &Some(PrimaryKey::integer(0))));
    let rest = request.resume(page.next.expect("a place"));
    let page = snapshot.range(&table, &rest).await.expect("a page");
    assert_eq!((page.rows, page.next), (vec![], None));
    let all = RangeRequest::all(Direction::Forward);
    let page = snapshot.range(&table, &all).await.expect("a page");
    assert_eq!(page.rows.len(), MAX_SCANNED_ROWS);
    assert_eq!(page.next, Some(PrimaryKey::integer(rows - 1)));
}

#[tokio::test]
async fn a_page_ends_by_what_it_takes_in_a_message_and_by_what_patterns_look_at() {
    let database = database().await;
    let table = database.create_table(schema()).await.expect("a table");
    let name = "n".repeat(255);
    for id in 0..100 {
        let put = RowOperation::Put {
            key: PrimaryKey::integer(id),
            columns: vec![
                (name.as_str().into(), Value::Integer(id)),
                ("text".into(), Value::from("x".repeat(1_000))),
            ],
        };
        let batch = WriteBatch::of(&table, put, Condition::none());
        database.write(batch).await.expect("a write");
    }
    let snapshot = database.snapshot().await.expect("a snapshot");
    let mut request = RangeRequest::all(Direction::Forward);
    let all = snapshot.range(&table, &request).await.expect("a page");
    let each = all.rows[0].message_bytes();
    assert!((1_300..1_400).contains(&each), "{each}");
    for rows in [1, 7, 50] {
        request.returned_bytes = rows * each;
        let page = snapshot.range(&table, &request).await.expect("a page");
        assert_eq!(page.rows, all.rows[..rows]);
        assert_eq!(page.next.as_ref(), Some(&all.rows[rows].key));
    }
    // The first comes, however large it is.
    request.returned_bytes = 1;
    let page = snapshot.range(&table, &request).await.expect("a page");
    assert_eq!(page.rows, all.rows[..1]);
    // What is read is fewer bytes than what is returned, and counts by itself.
    (request.bytes, request.returned_bytes) = (50 * each, 0);
    let page = snapshot.range(&table, &request).await.expect("a page");
    assert!((51..60).contains(&page.rows.len()), "{}", page.rows.len());
    let rule = ValueRule::new("x", Cast::String).expect("a rule");
    let by_text = Filter::with_rule("text", rule, Comparison::Equal, "y");
    let filter = |rules: usize| Filter::Or(vec![by_text.clone(); rules]);
    let mut request = RangeRequest::all(Direction::Forward);
    for (rules, ends) in [(1, true), (63, false)] {
        request.options.filter = Some(filter(rules));
        let page = snapshot.range(&table, &request).await.expect("a page");
        assert_eq!((page.rows, page.next.is_none()), (vec![], ends), "{rules}");
    }
}

#[tokio::test]
async fn takes_nothing_after_close() {
    let database = database().await;
    let table = database.create_table(schema()).await.expect("a table");
    let before = database.snapshot().await.expect("a snapshot");
    database.close().await.expect("a close");
    assert_eq!(database.health(), Health::Serving);
    let key = PrimaryKey::integer(1);
    let delete = RowOperation::Delete { key: key.clone() };
    let write = database
        .write(WriteBatch::of(&table, delete, Condition::none()))
        .await;
    assert!(matches!(write, Err(Error::Unavailable { .. })), "{write:?}");
    let read = database.snapshot().await;
    assert!(matches!(read, Err(Error::Unavailable { .. })), "{read:?}");
    assert_eq!(before.get(&table, &key).await.expect("a read"), None);
}

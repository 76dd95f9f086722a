//! Batch gets.

use souk_storage::limits::{MAX_BATCH_GET_BYTES, MAX_MULTI_GET_ROWS};
use souk_storage::{Error, KeyKind, PrimaryKey, ReadOptions, TableKeys, TableSchema, Value};

use super::{START, Store, add, oracle, put, random, simple};

#[tokio::test]
async fn answers_each_row_as_a_read_does() {
    let mut random = crate::commits::random();
    let store = Store::random(&mut random).await;
    let snapshot = store.database.snapshot().await.expect("a snapshot");
    for _ in 0..100 {
        let mut batch = Vec::new();
        for table in &store.tables {
            let most = random.usize(1..80);
            let keys = random::keys(&mut random, table, most);
            let options = random::options(&mut random, table, START / 1_000_000);
            batch.push(TableKeys::new(table, keys).options(options));
        }
        random.shuffle(&mut batch);
        let found = snapshot.batch_get(&batch).await.expect("reads");
        assert_eq!(found.len(), batch.len());
        for (part, reads) in batch.iter().zip(found) {
            assert_eq!(part.keys.len(), reads.len());
            for (key, read) in part.keys.iter().zip(reads) {
                let alone = snapshot.read(&part.table, key, &part.options).await;
                assert_eq!(read.expect("a read"), alone.expect("a read"));
            }
        }
    }
}

#[tokio::test]
async fn refuses_a_batch_as_a_whole() {
    let (database, table) = simple().await;
    let other = TableSchema::new("u").key("id", KeyKind::String);
    let other = database.create_table(other).await.expect("a table");
    let snapshot = database.snapshot().await.expect("a snapshot");
    let number = |id| PrimaryKey::integer(id);
    let many = i64::try_from(MAX_MULTI_GET_ROWS).expect("a number");
    let refused = [
        (vec![], "names no row"),
        (vec![TableKeys::new(&table, vec![])], "names no row"),
        (
            vec![TableKeys::new(&table, vec![number(1), number(2), number(1)])],
            "twice",
        ),
        (
            vec![
                TableKeys::new(&table, vec![number(1)]),
                TableKeys::new(&table, vec![number(2)]),
            ],
            "\"t\" is there twice",
        ),
        (
            vec![
                TableKeys::new(&table, vec![number(1)]),
                TableKeys::new(&other, vec![number(1)]),
            ],
            "must be of type String",
        ),
        (
            vec![
                TableKeys::new(&table, (0..many).map(number).collect()),
                TableKeys::new(&other, vec![PrimaryKey::string("a").expect("a key")]),
            ],
            "MAX_MULTI_GET_ROWS is 1000, but 1001",
        ),
    ];
    for (batch, why) in refused {
        let error = snapshot.batch_get(&batch).await.expect_err(why);
        assert!(error.to_string().contains(why), "{error}");
    }
    let most = [TableKeys::new(&table, (0..many).map(number).collect())];
    let found = snapshot.batch_get(&most).await.expect("reads");
    assert!(
        found[0]
            .iter()
            .all(|read| read.as_ref().is_ok_and(|read| read.row.is_none()))
    );
    let (theirs, foreign) = simple().await;
    let error = snapshot
        .batch_get(&[TableKeys::new(&foreign, vec![number(1)])])
        .await;
    assert!(matches!(error, Err(Error::TableNotFound { .. })), "{error:?}");
    drop(theirs);
}

#[tokio::test]
async fn refuses_the_rows_behind_the_bytes_one_by_one() {
    const ROWS: i64 = 10;
    let (database, table) = simple().await;
    let half = Value::from("x".repeat(2_000_000));
    for id in 0..ROWS {
        put(
            &database,
            &table,
            id,
            vec![("a".into(), 1.into()), ("b".into(), half.clone())],
        )
        .await;
        add(&database, &table, id, vec![("c".into(), half.clone())]).await;
    }
    put(&database, &table, ROWS, vec![("b".into(), 1.into())]).await;
    let snapshot = database.snapshot().await.expect("a snapshot");
    let keys: Vec<_> = (0..=ROWS).map(PrimaryKey::integer).collect();
    let whole = [TableKeys::new(&table, keys.clone())];
    let found = snapshot.batch_get(&whole).await.expect("reads");
    let fits = MAX_BATCH_GET_BYTES / 4_000_000;
    for (place, read) in found[0].iter().enumerate() {
        match read {
            Ok(read) => assert!(place < fits || (place, read.consumed) == (10, oracle::units(20))),
            Err(Error::LimitExceeded { limit, .. }) => {
                assert!((fits..10).contains(&place));
                assert_eq!(*limit, "MAX_BATCH_GET_BYTES");
            }
            Err(other) => panic!("expected a limit, got {other}"),
        }
    }
    // What isn't asked for doesn't count.
    let few = [TableKeys::new(&table, keys).options(ReadOptions::new().columns(["a"]))];
    let found = snapshot.batch_get(&few).await.expect("reads");
    assert!(found[0].iter().all(Result::is_ok));
}

//! Every limit that no other test goes above: one more is refused, with the limit's name, its value and what was given.

use souk_storage::limits::*;
use souk_storage::{
    ColumnChange, Condition, Database, DatabaseOptions, Error, FeedOptions, FeedSource, FeedStart, KeyKind,
    KeyValue, PrimaryKey, RowOperation, SecondaryIndexSchema, Table, TableSchema, Value, WriteBatch,
};

fn refused<T: std::fmt::Debug>(result: Result<T, Error>, limit: &str, max: usize, actual: usize) {
    match result {
        Err(Error::LimitExceeded {
            limit: name,
            max: most,
            actual: given,
        }) => assert_eq!((name, most, given), (limit, max, actual)),
        other => panic!("{limit}: {other:?}"),
    }
}

fn invalid<T: std::fmt::Debug>(result: Result<T, Error>, words: &str) {
    match result {
        Err(error @ Error::Invalid { .. }) => assert!(error.to_string().contains(words), "{error}"),
        other => panic!("{words}: {other:?}"),
    }
}

async fn database() -> Database {
    let database = Database::in_memory(DatabaseOptions::default()).await;
    database.expect("a database")
}

fn plain(name: &str) -> TableSchema {
    TableSchema::new(name).key("id", KeyKind::Integer)
}

async fn table(database: &Database) -> Table {
    database.create_table(plain("t")).await.expect("a table")
}

fn columns(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("c{number}")).collect()
}

#[tokio::test]
async fn of_schemas() {
    let database = database().await;
    let five = columns(5)
        .into_iter()
        .fold(TableSchema::new("t"), |schema, column| {
            schema.key(column, KeyKind::Integer)
        });
    refused(database.create_table(five).await, "MAX_KEY_COLUMNS", 4, 5);
    let key = PrimaryKey::new(vec![KeyValue::Integer(1); 5]);
    refused(key, "MAX_KEY_COLUMNS", 4, 5);
    let long = "n".repeat(MAX_NAME_BYTES + 1);
    refused(
        database.create_table(plain(&long)).await,
        "MAX_NAME_BYTES",
        255,
        256,
    );
    let longest = "n".repeat(MAX_NAME_BYTES);
    database.create_table(plain(&longest)).await.expect("a table");
    let wide = plain("t").index(SecondaryIndexSchema::new("i", columns(5)));
    refused(database.create_table(wide).await, "MAX_INDEX_COLUMNS", 4, 5);
    let wide = plain("t").index(SecondaryIndexSchema::new("i", ["x"]).include(columns(33)));
    refused(database.create_table(wide).await, "MAX_INCLUDED_COLUMNS", 32, 33);
    let versions = plain("t").max_versions(MAX_VERSIONS + 1);
    refused(database.create_table(versions).await, "MAX_VERSIONS", 1024, 1025);
    let indexes = columns(MAX_INDEXES + 1)
        .into_iter()
        .fold(plain("t"), |schema, column| {
            schema.index(SecondaryIndexSchema::new(format!("by_{column}"), [column]))
        });
    refused(database.create_table(indexes).await, "MAX_INDEXES", 16, 17);
}

#[tokio::test]
async fn of_places_in_keys() {
    let database = database().await;
    let first = TableSchema::new("t").auto_increment_key("number");
    invalid(database.create_table(first).await, "isn't the first");
    let mut text = TableSchema::new("t")
        .key("id", KeyKind::Integer)
        .key("number", KeyKind::String);
    text.auto_increment = Some(1);
    invalid(database.create_table(text).await, "an INTEGER key column");
    let elsewhere = plain("t").index(SecondaryIndexSchema::new("i", ["x"]).local());
    invalid(
        database.create_table(elsewhere).await,
        "must be the partition key",
    );
    let local = plain("t").index(SecondaryIndexSchema::new("i", ["id", "x"]).local());
    database.create_table(local).await.expect("a table");
}

#[tokio::test]
async fn of_tables() {
    let database = database().await;
    for number in 0..MAX_TABLES {
        let schema = plain(&format!("t{number}"));
        database.create_table(schema).await.expect("a table");
    }
    let one_more = database.create_table(plain("more")).await;
    refused(one_more, "MAX_TABLES", 1024, 1025);
}

#[tokio::test]
async fn of_readers_of_the_log() {
    let database = database().await;
    for number in 0..MAX_CONSUMERS {
        let consumer = database.consumer(&format!("c{number}")).await;
        consumer.expect("a consumer");
    }
    refused(database.consumer("more").await, "MAX_CONSUMERS", 2048, 2049);
    let options = || FeedOptions::new(FeedSource::Changes(FeedStart::Newest));
    for number in 0..MAX_FEEDS {
        let feed = database.create_feed(&format!("f{number}"), options()).await;
        feed.expect("a feed");
    }
    let one_more = database.create_feed("more", options()).await;
    refused(one_more, "MAX_FEEDS", 2048, 2049);
}

#[tokio::test]
async fn of_a_write() {
    let database = database().await;
    let table = table(&database).await;
    let key = PrimaryKey::integer(1);
    let values = |count| columns(count).into_iter().map(|name| (name, Value::from(1i64)));
    let put = |count| RowOperation::Put {
        key: key.clone(),
        columns: values(count).map(|(name, value)| (name.into(), value)).collect(),
    };
    let write = |operation| database.write(WriteBatch::of(&table, operation, Condition::none()));
    refused(write(put(1025)).await, "MAX_COLUMNS_PER_WRITE", 1024, 1025);
    let changes = values(1025).map(|(column, value)| ColumnChange::Put {
        column,
        value,
        version: None,
    });
    let update = RowOperation::Update {
        key: key.clone(),
        changes: changes.collect(),
    };
    refused(write(update).await, "MAX_COLUMNS_PER_WRITE", 1024, 1025);
    write(put(1024)).await.expect("as many as it takes");
    let named = RowOperation::Put {
        key: key.clone(),
        columns: vec![("n".repeat(256).into(), 1i64.into())],
    };
    refused(write(named).await, "MAX_NAME_BYTES", 255, 256);
    let infinite = RowOperation::Put {
        key: key.clone(),
        columns: vec![("c".into(), Value::Double(f64::INFINITY))],
    };
    invalid(write(infinite).await, "NaN or an infinity");
    let traced = WriteBatch::of(&table, put(1), Condition::none()).trace("t".repeat(257));
    refused(database.write(traced).await, "MAX_TRACE_BYTES", 256, 257);
}

/// A row grows by updates beyond what one write carries, up to a limit of its own.
#[tokio::test]
async fn of_a_row() {
    let database = database().await;
    let table = table(&database).await;
    let key = PrimaryKey::integer(1);
    let value = "v".repeat(MAX_VALUE_BYTES);
    for number in 0..MAX_ROW_BYTES / MAX_VALUE_BYTES {
        let update = RowOperation::Update {
            key: key.clone(),
            changes: vec![ColumnChange::Put {
                column: format!("c{number}"),
                value: value.clone().into(),
                version: None,
            }],
        };
        let written = database
            .write(WriteBatch::of(&table, update, Condition::none()))
            .await;
        // Names and versions take the last one's place.
        if (number + 1) * MAX_VALUE_BYTES < MAX_ROW_BYTES {
            written.expect("a write");
            continue;
        }
        match written {
            Err(Error::LimitExceeded { limit, max, .. }) => {
                assert_eq!((limit, max), ("MAX_ROW_BYTES", MAX_ROW_BYTES));
            }
            other => panic!("{other:?}"),
        }
    }
}

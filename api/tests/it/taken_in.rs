//! What the index of a table takes in: rows whose keys it can't have, and changes of more rows than it takes at once.

use souk_engine::index::{Field, MisfitReason, Query, SearchRequest, TotalRequest};
use souk_engine::key::{MAX_DOCUMENT_KEY_BYTES, hashed};
use souk_engine::storage::{Condition, KeyKind, KeyValue, PrimaryKey, RowOperation, RowWrite, TableSchema};
use souk_engine::{Engine, EngineError, Search, TableDefinition, TableHandle, TableWrite};

use crate::note::{self, Note};

/// How many rows a search sees that sees a write.
async fn count(table: &TableHandle, min_sequence: u64) -> u64 {
    let mut request = SearchRequest::new(Query::MatchAll);
    request.total = TotalRequest::Exact;
    let mut search = Search::new(request);
    search.min_sequence = min_sequence;
    let page = table.search(search).await.expect("a page");
    page.total.expect("a total").value
}

async fn created(engine: &Engine, schema: TableSchema) -> TableHandle {
    let definition = TableDefinition::new(schema).field(Field::keyword("word"));
    engine.create_table(definition).await.expect("created")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_whose_key_its_index_cant_have_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, _) = note::open(directory.path()).await;
    let texts = TableSchema::new("texts")
        .key("a", KeyKind::String)
        .key("b", KeyKind::String);
    let unsearched = TableDefinition::new(TableSchema {
        name: "unsearched".to_owned(),
        ..texts.clone()
    });
    let texts = created(&engine, texts).await;
    let bytes = created(&engine, TableSchema::new("bytes").key("a", KeyKind::Binary)).await;
    let ids = engine.create_table(TableDefinition::hashed("ids").id_field(Field::keyword("id").key()));
    let ids = ids.await.expect("created");
    let log = TableSchema::new("log")
        .key("of", KeyKind::String)
        .auto_increment_key("nth");
    let log = created(&engine, log).await;
    let two = |one: usize, other: usize| {
        let values = [one, other].map(|length| KeyValue::from("x".repeat(length)));
        PrimaryKey::new(values).expect("short enough for the store")
    };
    let zeros = |count: usize| PrimaryKey::new([KeyValue::Binary(vec![0; count].into())]).expect("short");
    let id = |length: usize| hashed(&"x".repeat(length)).expect("short enough for the store");
    let put = |key: PrimaryKey| TableWrite::put(key, Vec::new());
    let append = |length: usize| {
        let (key, columns) = (vec!["x".repeat(length).into()], Vec::new());
        TableWrite::new(RowOperation::Append { key, columns })
    };
    // Each with the most that it takes, and one byte or number more.
    for (table, most, more) in [
        (&texts, put(two(497, 497)), put(two(497, 498))),
        (&texts, put(two(994, 0)), put(two(1_024, 1_024))),
        (&bytes, put(zeros(498)), put(zeros(499))),
        (&ids, put(id(1_000)), put(id(1_001))),
        (&log, append(988), append(989)),
    ] {
        let refused = table.write(vec![more.clone()], None).await;
        assert!(
            matches!(
                refused,
                Err(EngineError::LimitExceeded {
                    limit: "MAX_DOCUMENT_KEY_BYTES",
                    max: MAX_DOCUMENT_KEY_BYTES,
                    ..
                })
            ),
            "{more:?}: {refused:?}"
        );
        let before = count(table, engine.database().last_sequence()).await;
        let written = table.write(vec![most], None).await.expect("as long as may be");
        let found = count(table, written.sequence.unsigned_abs()).await;
        assert_eq!(found, before + 1, "{}", table.name());
    }
    // Nothing is there to delete, and nobody minds.
    let gone = texts
        .write(vec![TableWrite::delete(two(1_024, 1_024))], None)
        .await;
    gone.expect("deleted");
    let unsearched = engine.create_table(unsearched).await.expect("created");
    let written = unsearched.write(vec![put(two(1_024, 1_024))], None).await;
    written.expect("nothing searches it");
    assert!(engine.health().borrow().is_serving());
    note::close(engine).await;
}

/// Ids of resources are as long as their services let them be, and a restore may bring back what was written before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_with_too_long_a_key_is_listed_and_doesnt_end_its_index() {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, notes) = note::open(directory.path()).await;
    let long = "x".repeat(MAX_DOCUMENT_KEY_BYTES + 1);
    for id in ["n1", &long, "n2"] {
        notes
            .create(Note::new(id, "ada", 1), None, false)
            .await
            .expect("created");
    }
    let table = engine.table("notes").expect("a table");
    let last = engine.database().last_sequence();
    assert_eq!(count(&table, last).await, 2);
    let serving = engine
        .index("notes")
        .await
        .expect("an index")
        .serving
        .expect("it serves");
    assert_eq!(serving.misfits.count, 1);
    assert_eq!(serving.misfits.recent[0].reason, MisfitReason::TooLong);
    assert_eq!(serving.misfit_ids, [Some(long.clone())]);
    notes.delete(&long, None).await.expect("deleted");
    assert_eq!(count(&table, engine.database().last_sequence()).await, 2);
    assert!(engine.health().borrow().is_serving());
    drop(table);
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_more_rows_than_an_index_takes_at_once_is_taken_in() {
    const ROWS: i64 = 100_001;
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, _) = note::open(directory.path()).await;
    let schema = TableSchema::new("many")
        .key("of", KeyKind::String)
        .key("nth", KeyKind::Integer)
        .transactions();
    let many = created(&engine, schema).await;
    let database = engine.database();
    let table = database.table("many").expect("the table");
    let mut transaction = database.begin(&table, "a".into()).await.expect("begun");
    let rows: Vec<RowWrite> = (0..ROWS)
        .map(|nth| {
            let key = PrimaryKey::new([KeyValue::from("a"), nth.into()]).expect("short");
            let columns = Vec::new();
            RowWrite::new(&table, RowOperation::Put { key, columns }, Condition::none())
        })
        .collect();
    for some in rows.chunks(200) {
        transaction.write(some.to_vec()).await.expect("staged");
    }
    let committed = transaction.commit().await.expect("committed");
    assert_eq!(count(&many, committed.sequence).await, ROWS.unsigned_abs());
    drop((many, table));
    note::close(engine).await;
}

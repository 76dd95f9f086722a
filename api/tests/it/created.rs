//! Tables that are created at run time: what may be one, who may write it, and random histories of one.

mod history;
mod visit;

use std::pin::pin;

use futures_util::StreamExt as _;
use souk_engine::index::{Field, Query, SearchRequest, TotalRequest};
use souk_engine::storage::{
    ColumnChange, Condition, ConditionFailure, Error as StoreError, KeyKind, KeyValue, PrimaryKey,
    RangeRequest, ReturnRow, Row, RowOperation, TableSchema,
};
use souk_engine::{
    Call, Engine, EngineError, Owner, Principal, Search, TableDefinition, TableHandle, TableWrite, ValueType,
};
use tempfile::TempDir;

use self::visit::{TABLE, visits};
use crate::note;

/// An engine with a table of code alone.
async fn engine() -> (TempDir, Engine) {
    let directory = tempfile::tempdir().expect("a directory");
    let (engine, _) = note::open(directory.path()).await;
    (directory, engine)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_isnt_a_table_and_what_isnt_ones_own_is_refused() {
    let (_directory, engine) = engine().await;
    engine.create_table(visits()).await.expect("created");
    for taken in [TABLE, "Visits", "notes", "NOTES"] {
        let again = engine.create_table(TableDefinition::hashed(taken)).await;
        assert!(
            matches!(again, Err(EngineError::TableExists { .. })),
            "{taken}: {again:?}"
        );
    }
    let mut other_key = visits();
    other_key.schema.key.pop();
    let mut unsearched = visits();
    unsearched.indexes.clear();
    for wrong in [other_key, unsearched] {
        let refused = engine.alter_table(wrong).await;
        assert!(
            matches!(refused, Err(EngineError::InvalidDefinition { .. })),
            "{refused:?}"
        );
    }
    for of_code in [
        engine.alter_table(TableDefinition::hashed("notes")).await,
        engine.drop_table("notes").await,
    ] {
        assert!(
            matches!(of_code, Err(EngineError::TableOfCode { .. })),
            "{of_code:?}"
        );
    }
    let mut large = TableDefinition::hashed("large");
    for nth in 0..1_000 {
        large = large.column(format!("{nth}{}", "x".repeat(300)), ValueType::Json);
    }
    let refused = engine.create_table(large).await.map(drop).expect_err("too large");
    assert!(refused.to_string().contains("MAX_DEFINITION_BYTES"), "{refused}");
    assert!(engine.database().table("large").is_none());
    let wrong_key = TableDefinition::new(TableSchema::new("wrong"));
    let refused = engine.create_table(wrong_key).await.map(drop);
    assert!(
        matches!(refused, Err(EngineError::Storage(StoreError::Invalid { .. }))),
        "{refused:?}"
    );
    // Nothing is left of it.
    assert!(
        engine
            .create_table(TableDefinition::hashed("wrong"))
            .await
            .is_ok()
    );
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_that_knows_nothing_of_a_rebuilt_index_leaves_it() {
    let (_directory, engine) = engine().await;
    let definition = TableDefinition::hashed("visits").id_field(Field::keyword("visit_id").key());
    engine.create_table(definition.clone()).await.expect("created");
    let mut redesign = engine.redesign("visits").await.expect("a table");
    redesign.rebuild();
    redesign.make(false).await.expect("built anew");
    let builds = || {
        let definitions = engine.definitions();
        let ours = definitions.iter().find(|each| each.name() == "visits");
        ours.and_then(|ours| Some(ours.search()?.builds))
    };
    assert_eq!(builds(), Some(1));
    engine.alter_table(definition).await.expect("altered");
    assert_eq!(builds(), Some(1), "it would be built once more");
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_without_search_index_is_read_and_written_and_says_that_it_isnt_searched() {
    let (directory, engine) = engine().await;
    let schema = TableSchema::new("log")
        .key("of", KeyKind::String)
        .auto_increment_key("nth");
    let log = engine
        .create_table(TableDefinition::new(schema))
        .await
        .expect("created");
    let append = |text: &str| {
        let (key, columns) = (vec!["a".into()], vec![("text".into(), text.into())]);
        TableWrite::new(RowOperation::Append { key, columns }).returning(ReturnRow::Key)
    };
    let mut keys = Vec::new();
    for text in ["one", "two"] {
        let written = log.write(vec![append(text)], None).await.expect("appended");
        keys.push(written.value[0].key.clone().expect("its key"));
    }
    assert!(keys.is_sorted() && keys[0] != keys[1]);
    let searched = log.search(Search::new(SearchRequest::new(Query::MatchAll))).await;
    assert!(
        matches!(searched, Err(EngineError::NotSearched { .. })),
        "{searched:?}"
    );
    let names: Vec<String> = engine
        .indexes(&Principal::Service)
        .await
        .expect("indexes")
        .into_iter()
        .map(|index| index.table)
        .collect();
    assert_eq!(names, ["notes"]);
    engine
        .refreshed(engine.database().last_sequence(), None)
        .await
        .expect("seen");
    drop(log);
    note::close(engine).await;
    let (engine, _) = note::open(directory.path()).await;
    let log = engine.table("log").expect("it is there again");
    let rows = log
        .range(&RangeRequest::default(), 0)
        .await
        .expect("a page")
        .value
        .rows;
    assert!(rows.iter().map(|row| &row.key).eq(&keys));
    engine.drop_table("log").await.expect("dropped");
    note::close(engine).await;
}

/// Keys of a hashed table are made of ids, or its documents would be others'.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hashed_table_takes_no_other_keys_and_a_table_of_code_no_rows() {
    let (_directory, engine) = engine().await;
    let things = TableDefinition::hashed("things").id_field(Field::keyword("id").key());
    let things = engine.create_table(things).await.expect("created");
    let wrong = PrimaryKey::new([KeyValue::from("00"), "t1".into()]).expect("short");
    let refused = things.write(vec![TableWrite::put(wrong, Vec::new())], None).await;
    assert!(
        matches!(refused, Err(EngineError::InvalidRow { .. })),
        "{refused:?}"
    );
    let right = souk_engine::key::hashed("t1").expect("short");
    let written = things
        .write(
            vec![TableWrite::put(right.clone(), vec![("n".into(), 1.into())])],
            None,
        )
        .await;
    let sequence = written.expect("written").sequence.unsigned_abs();
    let id = Query::Term {
        field: "id".to_owned(),
        value: "t1".into(),
        weight: 1.0,
    };
    let mut search = Search::new(SearchRequest::new(id));
    search.min_sequence = sequence;
    assert_eq!(things.search(search).await.expect("a page").hits.len(), 1);
    let notes = engine.table("notes").expect("a table of code");
    let refused = notes.write(vec![TableWrite::delete(right)], None).await;
    assert!(
        matches!(refused, Err(EngineError::TableOfCode { .. })),
        "{refused:?}"
    );
    note::close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owners_of_a_created_tables_rows_meet_and_write_theirs_alone() {
    let (_directory, engine) = engine().await;
    let schema = TableSchema::new("letters").key("id", KeyKind::String);
    let letters = TableDefinition::new(schema)
        .item("letter")
        .field(Field::keyword("author"))
        .owner("user", "author");
    let letters = engine.create_table(letters).await.expect("created");
    let owner = Owner {
        kind: "user",
        id: "ada".into(),
    };
    let ada = letters.for_call(Call {
        principal: Principal::Caller {
            name: "ada".into(),
            owner: Some(owner),
            tables: None,
        },
        deadline: None,
    });
    let key = |id: &str| PrimaryKey::string(id).expect("short");
    let put = |id: &str, author: &str| TableWrite::put(key(id), vec![("author".into(), author.into())]);
    let set = |id: &str, column: &str, value: &str| {
        let (column, value) = (column.to_owned(), value.into());
        let version = None;
        TableWrite::update(
            key(id),
            vec![ColumnChange::Put {
                column,
                value,
                version,
            }],
        )
    };
    let unset = |id: &str| {
        let column = "author".to_owned();
        TableWrite::update(key(id), vec![ColumnChange::DeleteAll { column }])
    };
    letters
        .write(vec![put("l2", "bob")], None)
        .await
        .expect("written");
    ada.write(vec![put("l1", "ada")], None).await.expect("her own");
    ada.write(vec![set("l1", "text", "hello")], None)
        .await
        .expect("her own");
    for not_own in [
        put("l3", "bob"),
        put("l1", "bob"),
        put("l1", "bob").when(Condition::must_not_exist()),
        set("l2", "text", "hello"),
        set("l1", "author", "bob"),
        set("l3", "text", "of nobody"),
        unset("l1"),
    ] {
        let refused = ada.write(vec![put("l4", "ada"), not_own.clone()], None).await;
        assert!(
            matches!(refused, Err(EngineError::NotOwn { .. })),
            "{not_own:?}: {refused:?}"
        );
    }
    // To her there is no such row, though its key is taken.
    let taken = ada.write(vec![put("l4", "ada"), put("l2", "ada")], None).await;
    assert!(
        matches!(
            taken,
            Err(EngineError::Storage(StoreError::ConditionFailed {
                write: 1,
                reason: ConditionFailure::AlreadyExists
            }))
        ),
        "{taken:?}"
    );
    let nothing = ada.write(vec![TableWrite::delete(key("l2"))], None).await;
    assert!(nothing.is_ok(), "{nothing:?}");
    let ids = |rows: &[Row]| -> Vec<PrimaryKey> { rows.iter().map(|row| row.key.clone()).collect() };
    let hers = ada
        .range(&RangeRequest::default(), 0)
        .await
        .expect("a page")
        .value;
    assert_eq!(ids(&hers.rows), [key("l1")]);
    assert_eq!(ada.get(&key("l2"), 0).await.expect("read").value, None);
    let found = async |table: &TableHandle, min_sequence: u64| {
        let mut request = SearchRequest::new(Query::MatchAll);
        request.total = TotalRequest::Exact;
        let mut search = Search::new(request);
        search.min_sequence = min_sequence;
        let page = table.search(search).await.expect("a page");
        (page.hits.len(), page.total.map(|total| total.value))
    };
    let last = engine.database().last_sequence();
    assert_eq!(found(&ada, last).await, (1, Some(1)));
    assert_eq!(found(&letters, last).await, (2, Some(2)));
    // What somebody else takes from her is no longer counted, though she asks for no sequence.
    let watch = ada.watch(Some(last)).await.expect("a watch");
    letters
        .write(vec![set("l1", "author", "bob")], None)
        .await
        .expect("written");
    assert_eq!(found(&ada, 0).await, (0, Some(0)));
    letters
        .write(vec![put("l1", "ada")], None)
        .await
        .expect("given back");
    let deleted = ada.write(vec![TableWrite::delete(key("l1"))], None).await;
    let deleted = deleted.expect("her own").sequence;
    let mut watch = pin!(watch);
    let mut told = Vec::new();
    loop {
        let event = watch.next().await.expect("an event").expect("no error");
        told.extend(event.changes.into_iter().map(|change| change.row.is_some()));
        if event.sequence == deleted {
            break;
        }
    }
    assert_eq!(told, [true, false], "that it was hers again, and that it is gone");
    let kept = letters
        .range(&RangeRequest::default(), 0)
        .await
        .expect("a page")
        .value;
    assert_eq!(ids(&kept.rows), [key("l2")]);
    note::close(engine).await;
}

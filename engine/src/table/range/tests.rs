use std::time::Duration;

use futures_util::StreamExt as _;
use souk_storage::limits::{MAX_BATCH_ROWS, MAX_SCANNED_ROWS};
use souk_storage::{KeyKind, Row, TableSchema};
use tempfile::TempDir;

use super::*;
use crate::call::{Call, Owner, Principal};
use crate::definition::TableDefinition;
use crate::engine::{Engine, EngineConfig, Tables};
use crate::error::LimitOf;
use crate::export::{ExportBlock, ExportStart};
use crate::slices::{SNAPSHOTS_OF_CALLER_MAX, Slice};
use crate::table::TableWrite;

/// One letter of ada's, more of bob's than one look takes, and another one of ada's behind them; the table as ada meets it.
async fn letters() -> (TempDir, Engine, TableHandle) {
    let directory = tempfile::tempdir().expect("a directory");
    let config = EngineConfig::new(directory.path());
    let engine = Engine::open(config, Tables::new()).await.expect("it opens");
    let schema = TableSchema::new("letters").key("id", KeyKind::String);
    let letters = TableDefinition::new(schema).owner("user", "author");
    let letters = engine.create_table(letters).await.expect("created");
    let put = |id: String, author: &str| TableWrite::put(key(&id), vec![("author".into(), author.into())]);
    let of_bob = (0..MAX_SCANNED_ROWS + 100).map(|nth| put(format!("b{nth:05}"), "bob"));
    let of_ada = ["a", "c"].map(|id| put(id.to_owned(), "ada"));
    let all: Vec<TableWrite> = of_bob.chain(of_ada).collect();
    for some in all.chunks(MAX_BATCH_ROWS) {
        letters.write(some.to_vec(), None).await.expect("written");
    }
    let principal = Principal::Caller {
        name: "ada".into(),
        owner: Some(Owner {
            kind: "user",
            id: "ada".into(),
        }),
        tables: None,
    };
    let ada = letters.for_call(Call {
        principal,
        deadline: None,
    });
    (directory, engine, ada)
}

fn key(id: &str) -> PrimaryKey {
    PrimaryKey::string(id).expect("short")
}

/// Without a deadline, as pages of a stream are read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_looks_far_among_the_rows_of_others_needs_one_of_few_places() {
    let (_directory, engine, ada) = letters().await;
    let all = RangeRequest::default();
    let behind_hers = ada.resume_range(all.clone(), key("a")).expect("her own");
    let scans = &engine.inner().scans;
    for (caller, of) in [(None, LimitOf::All), (ada.caller(), LimitOf::Caller)] {
        let mut taken: Vec<_> = std::iter::from_fn(|| scans.take(caller.clone()).ok()).collect();
        let refused = ada.range(&behind_hers, 0).await;
        assert!(
            matches!(refused, Err(EngineError::TooManyScans { max: SCANS_MAX, of: by }) if by == of),
            "{refused:?}"
        );
        // What one read finds is answered.
        let page = ada.range(&all, 0).await.expect("a page").value;
        assert!(page.rows.iter().map(|row| &row.key).eq([&key("a")]));
        assert_eq!(page.next, Some(key("a")));
        taken.pop();
        let page = ada.range(&behind_hers, 0).await.expect("a page").value;
        assert!(page.rows.iter().map(|row| &row.key).eq([&key("c")]));
        assert_eq!(scans.taken(), taken.len(), "a place is given back");
    }
    close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_that_looks_far_among_the_rows_of_others_needs_a_place_too() {
    let (_directory, engine, ada) = letters().await;
    let scans = &engine.inner().scans;
    let blocks = async |start: ExportStart<'_>| {
        let blocks = ada.export(start).await.expect("an export");
        blocks.collect::<Vec<_>>().await
    };
    let slice_of = |count| ExportStart::Slice {
        slice: Slice::new(count, 0).expect("a slice"),
        snapshot_token: None,
        min_sequence: 0,
    };
    let own = |items: &[Row], id: &str| items.iter().map(|row| &row.key).eq([&key(id)]);
    for (caller, of) in [(None, LimitOf::All), (ada.caller(), LimitOf::Caller)] {
        let mut taken: Vec<_> = std::iter::from_fn(|| scans.take(caller.clone()).ok()).collect();
        let refused = |block: &Result<ExportBlock<Row>>| {
            assert!(
                matches!(block, Err(EngineError::TooManyScans { max: SCANS_MAX, of: by }) if *by == of),
                "{block:?}"
            );
        };
        // What one read finds is given.
        let whole = blocks(slice_of(1)).await;
        let [Ok(first), second] = &whole[..] else {
            panic!("{whole:?}");
        };
        assert!(own(&first.items, "a"), "{first:?}");
        refused(second);
        // Where slices begin is found out by a look at all rows. A snapshot that nobody can name counts for nobody.
        for _ in 0..=SNAPSHOTS_OF_CALLER_MAX {
            let half = blocks(slice_of(2)).await;
            let [refusal] = &half[..] else {
                panic!("{half:?}");
            };
            refused(refusal);
        }
        taken.pop();
        let rest = blocks(ExportStart::Resume(&first.resume_token)).await;
        let [Ok(rest)] = &rest[..] else {
            panic!("{rest:?}");
        };
        assert!(own(&rest.items, "c"), "{rest:?}");
        assert_eq!(scans.taken(), taken.len(), "a place is given back");
    }
    close(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_looks_for_own_rows_in_an_engine_that_closes() {
    let (_directory, engine, ada) = letters().await;
    engine.inner().closing.cancel();
    let refused = ada.range(&RangeRequest::default(), 0).await;
    assert!(matches!(refused, Err(EngineError::Closing)), "{refused:?}");
    close(engine).await;
}

async fn close(engine: Engine) {
    let deadline = Instant::now() + Duration::from_secs(60);
    engine.close(deadline).await.expect("closed");
}

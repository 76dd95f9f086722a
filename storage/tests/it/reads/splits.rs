//! Splitting a table.

use souk_storage::limits::MAX_SPLITS;
use souk_storage::{
    Condition, Durability, Error, KeyBound, PrimaryKey, RangeRequest, RowOperation, WriteBatch,
};

use super::{Store, simple};

#[tokio::test]
async fn the_parts_are_the_table() {
    let mut random = crate::commits::random();
    let store = Store::random(&mut random).await;
    let snapshot = store.database.snapshot().await.expect("a snapshot");
    let table = &store.tables[0];
    let all = snapshot
        .range(table, &RangeRequest::default())
        .await
        .expect("a page")
        .rows;
    for bytes in [1, 500, 3000, 20_000, usize::MAX] {
        let found = snapshot.split_points(table, bytes).await.expect("splits");
        assert_eq!(found.consumed.read, found.splits.len() as u64);
        let mut rows = Vec::new();
        for split in &found.splits {
            let part = snapshot.range(table, &split.range()).await.expect("a page");
            assert_eq!((part.rows.len(), part.next), (split.rows, None));
            rows.extend(part.rows);
        }
        assert_eq!(rows, all, "{bytes} bytes");
        let (last, full) = found.splits.split_last().expect("never empty");
        assert!(full.iter().all(|split| split.bytes >= bytes));
        assert!(last.rows > 0 && last.end == KeyBound::Max);
        if bytes == 1 {
            assert_eq!(found.splits.len(), all.len(), "a part a row");
        }
    }
}

#[tokio::test]
async fn refuses_sizes_that_give_too_many_parts() {
    let (database, table) = simple().await;
    let snapshot = database.snapshot().await.expect("a snapshot");
    let empty = snapshot.split_points(&table, 1).await.expect("splits");
    assert_eq!((empty.splits.len(), empty.splits[0].rows), (1, 0));
    let nothing = snapshot.split_points(&table, 0).await;
    assert!(matches!(nothing, Err(Error::Invalid { .. })), "{nothing:?}");
    let ids: Vec<_> = (0..=i64::try_from(MAX_SPLITS).expect("a number")).collect();
    for ids in ids.chunks(200) {
        let batch = ids.iter().fold(WriteBatch::new(), |batch, id| {
            let key = PrimaryKey::integer(*id);
            let columns = vec![];
            batch.write(&table, RowOperation::Put { key, columns }, Condition::none())
        });
        let batch = batch.durability(Durability::Buffered);
        database.write(batch).await.expect("a write");
    }
    let snapshot = database.snapshot().await.expect("a snapshot");
    match snapshot.split_points(&table, 1).await {
        Err(Error::LimitExceeded { limit, max, actual }) => {
            assert_eq!((limit, max, actual), ("MAX_SPLITS", MAX_SPLITS, MAX_SPLITS + 1));
        }
        other => panic!("expected a limit, got {other:?}"),
    }
    let larger = snapshot.split_points(&table, 100).await.expect("splits");
    assert_eq!(
        larger.splits.iter().map(|split| split.rows).sum::<usize>(),
        ids.len()
    );
}

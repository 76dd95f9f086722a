//! Secondary indexes that are created after their table, with the rows that are there and without.

use std::collections::BTreeMap;
use std::time::Duration;

use prost_types::FieldMask;
use souk_api::testing::reopen;
use souk_proto::table::v1::{
    DeleteRowRequest, GetTableRequest, RangeIndexRequest, SecondaryIndex, SecondaryIndexState, Table,
    UpdateRowRequest, UpdateTableRequest,
};
use souk_proto::r#type::v1::{Value, value};

use crate::{Client, TestResult, columns, create, int, notes, open, put, text};

/// How long an index may take in some rows.
const PATIENCE: Duration = Duration::from_secs(60);

fn by_word(skip_backfill: bool) -> SecondaryIndex {
    SecondaryIndex {
        name: "by_word".to_owned(),
        columns: vec!["word".to_owned()],
        included: vec!["size".to_owned()],
        skip_backfill,
        ..SecondaryIndex::default()
    }
}

/// Gives the table this index beside those that it was created with.
async fn change(client: &mut Client, index: SecondaryIndex) -> Result<SecondaryIndex, tonic::Status> {
    let mut indexes = notes().indexes;
    indexes.push(index);
    let request = UpdateTableRequest {
        table: Some(Table {
            name: "notes".to_owned(),
            indexes,
            ..Table::default()
        }),
        update_mask: Some(FieldMask {
            paths: vec!["indexes".to_owned()],
        }),
    };
    let changed = client.update_table(request).await?.into_inner().table;
    Ok(told(changed.expect("the table")))
}

fn told(table: Table) -> SecondaryIndex {
    let mut indexes = table.indexes.into_iter();
    indexes.find(|index| index.name == "by_word").expect("the index")
}

async fn described(client: &mut Client) -> Result<SecondaryIndex, tonic::Status> {
    let request = GetTableRequest {
        table: "notes".to_owned(),
    };
    let table = client.get_table(request).await?.into_inner().table;
    Ok(told(table.expect("the table")))
}

/// The words of the index, and the numbers of the rows that have them.
async fn entries(client: &mut Client) -> Result<Vec<(String, i64)>, tonic::Status> {
    let request = RangeIndexRequest {
        table: "notes".to_owned(),
        index: "by_word".to_owned(),
        ..RangeIndexRequest::default()
    };
    let page = client.range_index(request).await?.into_inner();
    let entries = page.entries.iter();
    let entries = entries.map(|entry| match (&entry.values[0].kind, &entry.key[1].kind) {
        (Some(value::Kind::StringValue(word)), Some(value::Kind::IntValue(number))) => {
            (word.clone(), *number)
        }
        other => panic!("{other:?}"),
    });
    Ok(entries.collect())
}

fn update<const N: usize>(number: i64, of: [(&str, Value); N]) -> UpdateRowRequest {
    UpdateRowRequest {
        table: "notes".to_owned(),
        key: vec![text("ann"), int(number)],
        put: columns(of),
        ..UpdateRowRequest::default()
    }
}

fn delete(number: i64) -> DeleteRowRequest {
    DeleteRowRequest {
        table: "notes".to_owned(),
        key: vec![text("ann"), int(number)],
        ..DeleteRowRequest::default()
    }
}

fn owned(entries: &[(&str, i64)]) -> Vec<(String, i64)> {
    let entries = entries.iter();
    entries
        .map(|(word, number)| ((*word).to_owned(), *number))
        .collect()
}

#[tokio::test]
async fn rows_from_before_an_index_are_in_it_or_come_in_when_they_are_written() -> TestResult {
    for skip_backfill in [false, true] {
        let (running, mut client) = open().await?;
        create(&mut client, notes()).await?;
        let word = |word: &str| -> BTreeMap<String, Value> { columns([("word", text(word))]) };
        for number in 1..=6 {
            client.put_row(put("ann", number, word("old"))).await?;
        }
        let created = change(&mut client, by_word(skip_backfill)).await?;
        assert_eq!(created.skip_backfill, skip_backfill);
        if skip_backfill {
            assert_eq!(
                created.state(),
                SecondaryIndexState::Ready,
                "there is nothing to fill"
            );
        }
        let ready = async {
            while described(&mut client).await?.state() != SecondaryIndexState::Ready {
                tokio::task::yield_now().await;
            }
            Ok::<_, tonic::Status>(())
        };
        tokio::time::timeout(PATIENCE, ready).await??;
        let all: Vec<_> = (1..=6).map(|number| ("old".to_owned(), number)).collect();
        let before = if skip_backfill { Vec::new() } else { all };
        assert_eq!(entries(&mut client).await?, before);

        // A column that the index doesn't have, one that it has, none; a whole row, and a new one.
        client.update_row(update(1, [("other", int(1))])).await?;
        client.update_row(update(2, [("word", text("new"))])).await?;
        client.delete_row(delete(3)).await?;
        client.put_row(put("ann", 4, word("put"))).await?;
        client.put_row(put("ann", 7, word("put"))).await?;
        let mut expected = vec![
            ("new", 2),
            ("old", 1),
            ("old", 5),
            ("old", 6),
            ("put", 4),
            ("put", 7),
        ];
        if skip_backfill {
            expected.retain(|(_, number)| ![5, 6].contains(number));
        }
        assert_eq!(entries(&mut client).await?, owned(&expected), "{skip_backfill}");
        // One that came in goes like any other.
        client.delete_row(delete(1)).await?;
        client.delete_row(delete(6)).await?;
        expected.retain(|(_, number)| ![1, 6].contains(number));
        assert_eq!(entries(&mut client).await?, owned(&expected), "{skip_backfill}");

        // It is as it was created with, whatever is said later, and after a restart.
        let again = change(&mut client, by_word(!skip_backfill)).await?;
        assert_eq!(
            (again.skip_backfill, again.state()),
            (skip_backfill, SecondaryIndexState::Ready)
        );
        drop(client);
        let running = reopen(running).await?;
        let mut client = crate::client(&running);
        assert_eq!(described(&mut client).await?.skip_backfill, skip_backfill);
        assert_eq!(entries(&mut client).await?, owned(&expected), "{skip_backfill}");
    }
    Ok(())
}

#[tokio::test]
async fn a_table_that_is_created_has_no_rows_to_skip() -> TestResult {
    let (_running, mut client) = open().await?;
    let table = Table {
        indexes: vec![by_word(true)],
        ..notes()
    };
    assert!(!told(create(&mut client, table).await?).skip_backfill);
    client
        .put_row(put("ann", 1, columns([("word", text("new"))])))
        .await?;
    assert_eq!(entries(&mut client).await?, owned(&[("new", 1)]));
    Ok(())
}

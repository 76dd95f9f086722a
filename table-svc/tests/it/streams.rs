//! Watches from a sequence, from a time and from now on; exports; parts of a table.

use std::time::{SystemTime, UNIX_EPOCH};

use prost::Message as _;
use prost_types::Timestamp;
use souk_proto::table::v1::row_write::Operation;
use souk_proto::table::v1::{
    BatchWriteRowsRequest, DeleteRowRequest, ExportRowsRequest, GetSplitPointsRequest, KeyType,
    RangeRowsRequest, RowChangeKind, RowDelete, RowPut, RowUpdate, RowWrite, Table, WatchRowsRequest,
};
use tonic::Code;

use crate::transactions::{begin, commit};
use crate::{TestResult, columns, create, int, key_column, notes, open, put, refusal, text};

fn watch(after_sequence: Option<i64>, since: Option<Timestamp>) -> WatchRowsRequest {
    WatchRowsRequest {
        table: "notes".to_owned(),
        after_sequence,
        since,
    }
}

#[tokio::test]
async fn a_watch_begins_where_it_is_asked_to() -> TestResult {
    let (_running, mut client) = open().await?;
    create(&mut client, notes()).await?;
    let first = client
        .put_row(put("ann", 1, columns([("size", int(1))])))
        .await?
        .into_inner()
        .sequence;
    let mut from_now = client.watch_rows(watch(None, None)).await?.into_inner();
    let begin = from_now.message().await?.expect("where it begins");
    assert_eq!((begin.sequence, begin.changes.len()), (first, 0));
    let delete = DeleteRowRequest {
        table: "notes".to_owned(),
        key: vec![text("ann"), int(1)],
        ..DeleteRowRequest::default()
    };
    let second = client.delete_row(delete).await?.into_inner().sequence;
    let event = from_now.message().await?.expect("the delete");
    assert_eq!((event.sequence, event.changes.len()), (second, 1));
    assert_eq!(event.changes[0].kind(), RowChangeKind::Delete);
    assert_eq!(
        event.changes[0].row.as_ref().expect("its key").key,
        [text("ann"), int(1)]
    );
    let since = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let since = Timestamp {
        seconds: i64::try_from(since.as_secs())? - 60,
        nanos: 0,
    };
    for start in [
        watch(None, Some(since)),
        watch(Some(0), None),
        watch(Some(0), Some(since)),
    ] {
        let mut events = client.watch_rows(start).await?.into_inner();
        let mut kinds = Vec::new();
        while kinds.len() < 2 {
            let event = events.message().await?.expect("more");
            kinds.extend(event.changes.iter().map(|change| change.kind()));
        }
        assert_eq!(kinds, [RowChangeKind::Put, RowChangeKind::Delete]);
    }
    let ahead = client.watch_rows(watch(Some(i64::MAX), None)).await;
    assert_eq!(refusal(ahead), (Code::OutOfRange, "SEQUENCE_AHEAD".to_owned()));
    Ok(())
}

#[tokio::test]
async fn an_export_goes_on_where_it_broke_and_parts_make_the_whole() -> TestResult {
    let (_running, mut client) = open().await?;
    create(&mut client, notes()).await?;
    for nth in 0..1_200 {
        client
            .put_row(put("ann", nth, columns([("size", int(nth))])))
            .await?;
    }
    let export = |resume_token: String| ExportRowsRequest {
        table: "notes".to_owned(),
        resume_token,
        ..ExportRowsRequest::default()
    };
    let mut blocks = client.export_rows(export(String::new())).await?.into_inner();
    let first = blocks.message().await?.expect("a block");
    drop(blocks);
    client.put_row(put("aaa", 0, Default::default())).await?;
    let mut rows = first.rows.len();
    let mut blocks = client.export_rows(export(first.resume_token)).await?.into_inner();
    while let Some(block) = blocks.message().await? {
        assert_eq!(block.sequence, first.sequence);
        rows += block.rows.len();
    }
    assert_eq!(rows, 1_200);

    let split = GetSplitPointsRequest {
        table: "notes".to_owned(),
        bytes: 10_000,
    };
    let splits = client.get_split_points(split).await?.into_inner().splits;
    assert!(splits.len() > 3, "{}", splits.len());
    let (mut rows, mut counted) = (0, 0);
    for split in splits {
        counted += split.rows;
        let range = RangeRowsRequest {
            table: "notes".to_owned(),
            range: split.range,
            ..RangeRowsRequest::default()
        };
        rows += client.range_rows(range).await?.into_inner().rows.len();
    }
    assert_eq!((rows, counted), (1_201, 1_201));
    Ok(())
}

#[tokio::test]
async fn a_write_of_many_bytes_is_told_in_several_messages() -> TestResult {
    let (_running, mut client) = open().await?;
    create(&mut client, notes()).await?;
    let first = client
        .put_row(put("ann", 0, columns([("size", int(1))])))
        .await?
        .into_inner()
        .sequence;
    // Each change has a whole row, of which the write brought little.
    let big = text(&"x".repeat(1 << 20));
    for number in 1..=5 {
        client
            .put_row(put("ann", number, columns([("big", big.clone())])))
            .await?;
    }
    let touched = (1..=5).map(|number| RowWrite {
        operation: Some(Operation::Update(RowUpdate {
            key: vec![text("ann"), int(number)],
            put: columns([("size", int(number))]),
            ..RowUpdate::default()
        })),
        ..RowWrite::default()
    });
    let batch = BatchWriteRowsRequest {
        table: "notes".to_owned(),
        writes: touched.collect(),
        atomic: true,
        ..BatchWriteRowsRequest::default()
    };
    let written = client.batch_write_rows(batch).await?.into_inner().sequence;
    assert_eq!(written, first + 6);
    let mut events = client
        .watch_rows(watch(Some(written - 1), None))
        .await?
        .into_inner();
    let mut told = Vec::new();
    while told.last().is_none_or(|(sequence, _)| *sequence < written) {
        let event = events.message().await?.expect("more");
        assert!(event.encoded_len() <= 4 << 20, "{}", event.encoded_len());
        told.push((event.sequence, event.changes.len()));
    }
    assert_eq!(told, [(written - 1, 2), (written - 1, 2), (written, 1)]);
    Ok(())
}

#[tokio::test]
async fn deletes_of_long_keys_are_told_in_several_messages() -> TestResult {
    let (_running, mut client) = open().await?;
    let parts = ["person", "a", "b", "c"];
    let table = Table {
        key: parts.map(|name| key_column(name, KeyType::String)).to_vec(),
        indexes: Vec::new(),
        search_index: None,
        ..notes()
    };
    create(&mut client, table).await?;
    let long = text(&"x".repeat(1_000));
    let key = |nth: usize| {
        vec![
            text("ann"),
            long.clone(),
            long.clone(),
            text(&format!("{nth:01000}")),
        ]
    };
    let (put, delete) = (
        |nth| {
            Operation::Put(RowPut {
                key: key(nth),
                ..RowPut::default()
            })
        },
        |nth| Operation::Delete(RowDelete { key: key(nth) }),
    );
    let batch = |operations: Vec<Operation>| BatchWriteRowsRequest {
        table: "notes".to_owned(),
        writes: operations
            .into_iter()
            .map(|operation| RowWrite {
                operation: Some(operation),
                ..RowWrite::default()
            })
            .collect(),
        atomic: true,
        ..BatchWriteRowsRequest::default()
    };
    let numbers: Vec<usize> = (0..1_300).collect();
    let mut written = 0;
    for numbers in numbers.chunks(200) {
        let puts = numbers.iter().copied().map(put).collect();
        written = client.batch_write_rows(batch(puts)).await?.into_inner().sequence;
    }
    let transaction_id = begin(&mut client, "ann").await?;
    for numbers in numbers.chunks(200) {
        let deletes = BatchWriteRowsRequest {
            transaction_id: transaction_id.clone(),
            ..batch(numbers.iter().copied().map(delete).collect())
        };
        client.batch_write_rows(deletes).await?;
    }
    client
        .commit_transaction(commit("notes", &transaction_id))
        .await?;
    let mut events = client.watch_rows(watch(Some(written), None)).await?.into_inner();
    let (mut told, mut messages) = (0, 0);
    while told < numbers.len() {
        let event = events.message().await?.expect("more");
        assert!(event.encoded_len() <= 3 << 20, "{}", event.encoded_len());
        told += event.changes.len();
        messages += 1;
    }
    assert_eq!((told, messages), (numbers.len(), 2));
    Ok(())
}

#[tokio::test]
async fn parts_with_too_many_bytes_of_keys_are_refused() -> TestResult {
    let (_running, mut client) = open().await?;
    let unsearched = Table {
        search_index: None,
        ..notes()
    };
    create(&mut client, unsearched).await?;
    let numbers: Vec<i64> = (0..1_600).collect();
    for numbers in numbers.chunks(200) {
        let writes = numbers.iter().map(|number| RowWrite {
            operation: Some(Operation::Put(RowPut {
                key: vec![text(&"x".repeat(1_000)), int(*number)],
                ..RowPut::default()
            })),
            ..RowWrite::default()
        });
        let batch = BatchWriteRowsRequest {
            table: "notes".to_owned(),
            writes: writes.collect(),
            ..BatchWriteRowsRequest::default()
        };
        client.batch_write_rows(batch).await?;
    }
    let split = |bytes: i64| GetSplitPointsRequest {
        table: "notes".to_owned(),
        bytes,
    };
    let status = client
        .get_split_points(split(1))
        .await
        .expect_err("3 MiB of keys");
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    assert!(status.message().contains("ask for larger parts"), "{status}");
    let parts = client.get_split_points(split(4_000)).await?.into_inner();
    assert!(parts.encoded_len() < 3 << 20 && parts.splits.len() > 300);
    Ok(())
}

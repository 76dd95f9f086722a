//! The changes of a table.

use std::sync::Arc;
use std::time::Duration;

use souk_engine::storage::limits::MIN_RETENTION;
use souk_engine::storage::{DatabaseOptions, ManualClock};
use souk_tablestore::KeyColumn;
use souk_tablestore::messages::{self as pb, ActionType};

use crate::client::{Client, cell, cells, deletion, ignore, key, plain, rows, update};
use crate::server::Server;

fn there(id: &str) -> Vec<KeyColumn> {
    key([("id", id.into())])
}

/// Kind, id and cells' names of the records of all pages until there is no more.
async fn read(
    client: &mut Client,
    mut iterator: String,
    limit: i32,
) -> (Vec<(ActionType, String, Vec<String>)>, String) {
    let mut records = Vec::new();
    loop {
        let request = pb::GetStreamRecordRequest {
            shard_iterator: iterator,
            limit: Some(limit),
            ..pb::GetStreamRecordRequest::default()
        };
        let page: pb::GetStreamRecordResponse =
            client.call("GetStreamRecord", &request).await.expect("records");
        assert!(page.stream_records.len() <= limit as usize);
        for record in &page.stream_records {
            let row = rows(&record.record).pop().expect("a row");
            assert!(row.sequence.is_some_and(|sequence| sequence.timestamp > 0));
            assert_eq!(row.delete_marker, record.action_type() == ActionType::DeleteRow);
            let id = format!("{:?}", row.key[0].value);
            let names = cells(&row).into_iter().map(|(name, _)| name.to_owned()).collect();
            records.push((record.action_type(), id, names));
        }
        iterator = page.next_shard_iterator.expect("a stream has no end");
        if page.may_more_record != Some(true) {
            return (records, iterator);
        }
    }
}

#[tokio::test]
async fn a_stream_has_every_change_of_its_table_in_order() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    for name in ["notes", "others"] {
        client.create(&plain(name)).await;
    }
    client
        .put("notes", there("a"), vec![cell("n", 1_i64)])
        .await
        .expect("put");
    client
        .put("others", there("x"), vec![cell("n", 1_i64)])
        .await
        .expect("put");
    let change = update("notes", there("a"), vec![cell("m", 2_i64)]);
    let _: pb::UpdateRowResponse = client.call("UpdateRow", &change).await.expect("updated");
    let delete = pb::DeleteRowRequest {
        table_name: "notes".to_owned(),
        primary_key: deletion(there("a")),
        condition: ignore(),
        ..pb::DeleteRowRequest::default()
    };
    let _: pb::DeleteRowResponse = client.call("DeleteRow", &delete).await.expect("deleted");

    let list = pb::ListStreamRequest {
        table_name: Some("notes".to_owned()),
    };
    let listed: pb::ListStreamResponse = client.call("ListStream", &list).await.expect("streams");
    let stream_id = listed.streams[0].stream_id.clone();
    let describe = pb::DescribeStreamRequest {
        stream_id: stream_id.clone(),
        ..pb::DescribeStreamRequest::default()
    };
    let told: pb::DescribeStreamResponse = client.call("DescribeStream", &describe).await.expect("a stream");
    assert_eq!(
        (told.table_name.as_str(), told.expiration_time, told.shards.len()),
        ("notes", 24, 1)
    );
    let start = pb::GetShardIteratorRequest {
        stream_id,
        shard_id: told.shards[0].shard_id.clone(),
        ..pb::GetShardIteratorRequest::default()
    };
    let begin: pb::GetShardIteratorResponse = client.call("GetShardIterator", &start).await.expect("a place");
    let expected: Vec<(ActionType, String, Vec<String>)> = [
        (ActionType::PutRow, vec!["n"]),
        // The whole row, as it is then.
        (ActionType::PutRow, vec!["m", "n"]),
        (ActionType::DeleteRow, vec![]),
    ]
    .map(|(action, names)| {
        let names = names.into_iter().map(str::to_owned).collect();
        (action, "String(\"a\")".to_owned(), names)
    })
    .into();
    for limit in [1, 100] {
        let (records, next) = read(&mut client, begin.shard_iterator.clone(), limit).await;
        assert_eq!(records, expected, "{limit} at a time");
        assert_eq!(read(&mut client, next, limit).await.0, []);
    }
    // To another instance it isn't there.
    let refused = server
        .client("stranger")
        .refused("DescribeStream", &describe)
        .await;
    refused.is(404, "OTSObjectNotExist", "Requested stream does not exist.");
    let wrong = pb::GetStreamRecordRequest {
        shard_iterator: "x".to_owned(),
        ..pb::GetStreamRecordRequest::default()
    };
    let refused = client.refused("GetStreamRecord", &wrong).await;
    refused.is(400, "OTSParameterInvalid", "Invalid shard iterator.");
    server.end().await;
}

#[tokio::test]
async fn what_isnt_kept_any_more_or_was_never_there_is_told() {
    let clock = Arc::new(ManualClock::new(1_700_000_000_000_000_000));
    let server = Server::start_with(DatabaseOptions {
        clock: clock.clone(),
        retention: MIN_RETENTION,
        ..DatabaseOptions::default()
    })
    .await;
    let mut client = server.client("demo");
    client.create(&plain("notes")).await;
    let list = pb::ListStreamRequest { table_name: None };
    let listed: pb::ListStreamResponse = client.call("ListStream", &list).await.expect("streams");
    let start = pb::GetShardIteratorRequest {
        stream_id: listed.streams[0].stream_id.clone(),
        shard_id: "0".to_owned(),
        ..pb::GetShardIteratorRequest::default()
    };
    let begin: pb::GetShardIteratorResponse = client.call("GetShardIterator", &start).await.expect("a place");
    let begin = begin.shard_iterator;
    for id in ["a", "b"] {
        client
            .put("notes", there(id), vec![cell("n", 1_i64)])
            .await
            .expect("put");
    }
    let reading = |iterator: &str| pb::GetStreamRecordRequest {
        shard_iterator: iterator.to_owned(),
        ..pb::GetStreamRecordRequest::default()
    };
    let (records, end) = read(&mut client, begin.clone(), 100).await;
    assert_eq!(records.len(), 2);
    // Of the stream, behind its end, and in a history that the database hasn't had.
    let parts: Vec<&str> = end.split(':').collect();
    let &[name, after, rows, history] = parts.as_slice() else {
        panic!("{end}");
    };
    let ahead = after.parse::<u64>().expect("a sequence") + 1;
    let refused = client
        .refused(
            "GetStreamRecord",
            &reading(&format!("{name}:{ahead}:{rows}:{history}")),
        )
        .await;
    refused.is(400, "OTSParameterInvalid", "Invalid shard iterator.");
    let trimmed = "Requested stream data is already trimmed or does not exist.";
    let refused = client
        .refused(
            "GetStreamRecord",
            &reading(&format!("{name}:{after}:{rows}:1{history}")),
        )
        .await;
    refused.is(404, "OTSTrimmedDataAccess", trimmed);

    clock.advance(2 * MIN_RETENTION);
    server.engine.database().maintain().await.expect("maintenance");
    let refused = client.refused("GetStreamRecord", &reading(&begin)).await;
    refused.is(404, "OTSTrimmedDataAccess", trimmed);
    // Who begins anew has what is kept.
    let begin: pb::GetShardIteratorResponse = client.call("GetShardIterator", &start).await.expect("a place");
    read(&mut client, begin.shard_iterator, 100).await;
    server.end().await;
}

#[tokio::test]
async fn a_stream_is_read_from_a_time_on() {
    const BEGIN: i64 = 1_700_000_000_000_000_000;
    let clock = Arc::new(ManualClock::new(BEGIN));
    let server = Server::start_with(DatabaseOptions {
        clock: clock.clone(),
        retention: MIN_RETENTION,
        ..DatabaseOptions::default()
    })
    .await;
    let mut client = server.client("demo");
    client.create(&plain("notes")).await;
    let put = |id: &'static str| crate::client::put("notes", there(id), vec![cell("n", 1_i64)]);
    for id in ["a", "b"] {
        let _: pb::PutRowResponse = client.call("PutRow", &put(id)).await.expect("put");
        clock.advance(Duration::from_secs(10));
    }
    let list = pb::ListStreamRequest { table_name: None };
    let listed: pb::ListStreamResponse = client.call("ListStream", &list).await.expect("streams");
    let since = |seconds: i64| pb::GetShardIteratorRequest {
        stream_id: listed.streams[0].stream_id.clone(),
        shard_id: "0".to_owned(),
        timestamp: Some(BEGIN / 1_000 + seconds * 1_000_000),
        ..pb::GetShardIteratorRequest::default()
    };
    let (a, b, c) = ("String(\"a\")", "String(\"b\")", "String(\"c\")");
    for (seconds, expected) in [
        (-5, vec![a, b]),
        (0, vec![a, b]),
        (5, vec![b]),
        (10, vec![b]),
        (15, vec![]),
    ] {
        let from: pb::GetShardIteratorResponse = client
            .call("GetShardIterator", &since(seconds))
            .await
            .expect("a place");
        let (records, _) = read(&mut client, from.shard_iterator, 100).await;
        let ids: Vec<_> = records.iter().map(|(_, id, _)| id.as_str()).collect();
        assert_eq!(ids, expected, "from {seconds} s on");
    }

    // Where what is asked for is gone, the oldest that is kept comes.
    clock.advance(2 * MIN_RETENTION);
    let _: pb::PutRowResponse = client.call("PutRow", &put("c")).await.expect("put");
    server.engine.database().maintain().await.expect("maintenance");
    let from: pb::GetShardIteratorResponse =
        client.call("GetShardIterator", &since(0)).await.expect("a place");
    let (records, _) = read(&mut client, from.shard_iterator, 100).await;
    let ids: Vec<_> = records.iter().map(|(_, id, _)| id.as_str()).collect();
    assert_eq!(ids, [c]);
    server.end().await;
}

//! How many shards there are, how much a read gives, and how long things may take.

use souk_engine::consumer_groups::{SHARDS_MAX, SHARDS_OF_GROUP_MAX};
use souk_engine::storage::limits::MAX_FEED_RECORDS;
use souk_proto::table::v1::Table;

use super::*;
use crate::bad_input::told as violations;

/// A service with a table of rows alone, of which a group of one shard tells changes.
async fn plain() -> Result<(Running<TableServices>, Client, Groups), Box<dyn std::error::Error>> {
    let (running, mut client) = open().await?;
    let table = Table {
        indexes: Vec::new(),
        search_index: None,
        ..notes()
    };
    create(&mut client, table).await?;
    let mut groups = groups(&running);
    groups
        .create_consumer_group(group(ConsumerGroupSource::Changes, 1))
        .await?;
    Ok((running, client, groups))
}

#[tokio::test]
async fn a_process_has_so_many_shards() -> TestResult {
    let (running, mut client) = open().await?;
    create(&mut client, notes()).await?;
    let mut groups = groups(&running);
    let named = |name: &str, shards: u16| {
        let mut request = group(ConsumerGroupSource::Changes, shards.into());
        request.group.as_mut().expect("the group").name = name.to_owned();
        request
    };
    for nth in 0..SHARDS_MAX / usize::from(SHARDS_OF_GROUP_MAX) {
        let wide = named(&format!("wide_{nth}"), SHARDS_OF_GROUP_MAX);
        groups.create_consumer_group(wide).await?;
    }
    let full = groups.create_consumer_group(named("beyond", 1)).await;
    let full = full.expect_err("there are no more");
    assert!(
        full.message().contains("SHARDS_MAX") && full.message().contains("512"),
        "{full}"
    );
    let full = Err::<tonic::Response<()>, _>(full);
    assert_eq!(
        refusal(full),
        (Code::InvalidArgument, "LIMIT_EXCEEDED".to_owned())
    );
    let delete = DeleteConsumerGroupRequest {
        table: "notes".to_owned(),
        group: "wide_0".to_owned(),
    };
    groups.delete_consumer_group(delete).await?;
    groups.create_consumer_group(named("beyond", 1)).await?;
    Ok(())
}

#[tokio::test]
async fn a_read_of_a_shard_gives_so_many_records() -> TestResult {
    const BATCH: usize = 200;
    let (_running, mut client, mut groups) = plain().await?;
    let batch = |first: usize, rows: usize| BatchWriteRowsRequest {
        table: "notes".to_owned(),
        writes: (first..first + rows)
            .map(|number| RowWrite {
                operation: Some(Operation::Put(RowPut {
                    key: vec![text("ann"), int(i64::try_from(number).expect("a number"))],
                    ..RowPut::default()
                })),
                ..RowWrite::default()
            })
            .collect(),
        atomic: true,
        ..BatchWriteRowsRequest::default()
    };
    for first in (0..MAX_FEED_RECORDS).step_by(BATCH) {
        client.batch_write_rows(batch(first, BATCH)).await?;
    }
    client.batch_write_rows(batch(MAX_FEED_RECORDS, 1)).await?;
    let member = Member::join(&mut groups).await?;
    let lease = member.leases[0];
    for (asked, given) in [(0, 600), (200, 200), (5_000, 5_000), (10_000, 5_000)] {
        let mut all = member.read(&lease, "");
        all.max_records = asked;
        let first = read(&mut groups, all.clone()).await?;
        assert_eq!(first.records.len(), given, "{asked} are asked for");
        assert!(!first.caught_up, "{asked} are asked for");
        all.after = first.token;
        all.max_records = 10_000;
        let rest = read(&mut groups, all).await?;
        assert_eq!(rest.records.len(), MAX_FEED_RECORDS + 1 - given);
    }
    Ok(())
}

#[tokio::test]
async fn a_read_of_a_shard_gives_so_many_bytes() -> TestResult {
    let (_running, mut client, mut groups) = plain().await?;
    // Three of them, with their keys and names, are just below 3 MiB.
    let body = "x".repeat((1 << 20) - 1_024);
    for number in 0..4 {
        let row = put("ann", number, columns([("body", text(&body))]));
        client.put_row(row).await?;
    }
    let member = Member::join(&mut groups).await?;
    let lease = member.leases[0];
    let first = read(&mut groups, member.read(&lease, "")).await?;
    let rest = read(&mut groups, member.read(&lease, &first.token)).await?;
    assert_eq!((first.records.len(), rest.records.len()), (3, 1));
    // A larger one comes alone.
    let larger = columns([
        ("body", text(&body)),
        ("more", text(&body)),
        ("most", text(&body)),
    ]);
    for number in 4..6 {
        let mut row = put("ann", number, larger.clone());
        row.columns.insert("rest".to_owned(), text(&body[..4_096]));
        client.put_row(row).await?;
    }
    let mut after = rest.token;
    for _ in 0..2 {
        let alone = read(&mut groups, member.read(&lease, &after)).await?;
        assert_eq!(alone.records.len(), 1);
        after = alone.token;
    }
    Ok(())
}

#[tokio::test]
async fn times_of_a_group_have_bounds() -> TestResult {
    let (_running, mut client, mut groups) = plain().await?;
    client.put_row(word(1)).await?;
    let member = Member::join(&mut groups).await?;
    let length = |seconds: i64, nanos: i32| Some(prost_types::Duration { seconds, nanos });
    let join = |session_timeout| JoinConsumerGroupRequest {
        table: "notes".to_owned(),
        group: "copy".to_owned(),
        client: String::new(),
        session_timeout,
    };
    for timeout in [length(1, 0), length(300, 0)] {
        let joined = groups.join_consumer_group(join(timeout)).await?.into_inner();
        assert_eq!(joined.session_timeout, timeout);
    }
    let mut held = group(ConsumerGroupSource::Changes, 1);
    let of_group = held.group.as_mut().expect("the group");
    (of_group.name, of_group.hold) = ("held".to_owned(), length(604_800, 0));
    let created = groups.create_consumer_group(held.clone()).await?.into_inner();
    assert_eq!(created.group.expect("the group").hold, length(604_800, 0));
    // What is there already is waited for by nobody.
    let mut waiting = member.read(&member.leases[0], "");
    waiting.wait = length(20, 0);
    assert_eq!(read(&mut groups, waiting.clone()).await?.records.len(), 1);

    let of_group = held.group.as_mut().expect("the group");
    (of_group.name, of_group.hold) = ("beyond".to_owned(), length(604_800, 1));
    waiting.wait = length(20, 1);
    let refused = [
        (
            groups
                .join_consumer_group(join(length(0, 999_999_999)))
                .await
                .map(drop),
            "1s",
        ),
        (
            groups.join_consumer_group(join(length(300, 1))).await.map(drop),
            "300s",
        ),
        (groups.create_consumer_group(held).await.map(drop), "604800s"),
        (groups.read_shard(waiting).await.map(drop), "20s"),
    ];
    for (refused, limit) in refused {
        let status = refused.expect_err(limit);
        assert_eq!(status.code(), Code::InvalidArgument, "{limit}");
        assert!(violations(&status).contains(limit), "{status:?}");
    }
    Ok(())
}

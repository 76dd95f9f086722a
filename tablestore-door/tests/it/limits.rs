//! How many calls there are at a time, how long they take, and how much a read or a table names.

use std::sync::mpsc;
use std::time::Duration;

use prost::Message as _;
use souk_engine::definition::MAX_COLUMNS;
use souk_engine::storage::{KeyKind, TableSchema};
use souk_engine::{Engine, TableDefinition};
use souk_tablestore::messages::{self as pb, DefinedColumnType};
use souk_tablestore::{KeyElement, limits};
use souk_tablestore_door::{CALLS_OF_KEY_MAX, COMING_BYTES_OF_KEY_MAX, DoorTimes};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use crate::client::{Client, Sent, get, key, key_bytes, plain, refusal, rows};
use crate::server::{END_MAX, Server};

const INVALID: &str = "OTSParameterInvalid";

/// A request that has a body.
fn list() -> pb::ListStreamRequest {
    pb::ListStreamRequest {
        table_name: Some(String::new()),
    }
}

fn listing(client: &Client) -> Sent {
    client.request("ListStream", list().encode_to_vec(), Duration::ZERO)
}

async fn is_answered(server: &Server, id: &str) {
    let listed: Result<pb::ListStreamResponse, _> = server.client(id).call("ListStream", &list()).await;
    listed.unwrap_or_else(|refused| panic!("{id}: {refused:?}"));
}

async fn is_busy(server: &Server, id: &str) {
    let refused = server.client(id).refused("ListStream", &list()).await;
    refused.is(503, "OTSServerBusy", "Server is busy.");
}

/// A server whose calls wait for nothing.
async fn without_waits() -> Server {
    Server::start_within(DoorTimes {
        place_wait: Duration::ZERO,
        ..DoorTimes::default()
    })
    .await
}

fn held_up() -> TableDefinition {
    TableDefinition::new(TableSchema::new("held").key("id", KeyKind::String))
}

/// Has somebody else change tables, who isn't done until the sender is gone: one is changed at a time.
async fn hold_up(engine: &Engine) -> (mpsc::Sender<()>, JoinHandle<bool>) {
    let (held, is_held) = tokio::sync::oneshot::channel();
    let (release, released) = mpsc::channel::<()>();
    let engine = engine.clone();
    let changing = tokio::spawn(async move {
        let check = move || {
            held.send(()).expect("the test waits");
            // Until the other end is gone.
            Err::<(), _>(released.recv())
        };
        let created = engine.create_table_when(held_up(), check);
        created.await.expect("asked").is_err()
    });
    is_held.await.expect("it is held");
    (release, changing)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_key_has_so_many_calls_at_a_time_and_so_have_all_keys() {
    let server = without_waits().await;
    let (release, changing) = hold_up(&server.engine).await;
    let mut working = JoinSet::new();
    for (id, calls) in [
        ("demo", CALLS_OF_KEY_MAX + 1),
        ("other", CALLS_OF_KEY_MAX + 1),
        ("stranger", 1),
    ] {
        for _ in 0..calls {
            let mut client = server.client(id);
            working.spawn(async move {
                let created: Result<pb::CreateTableResponse, _> =
                    client.call("CreateTable", &plain("notes")).await;
                created.err()
            });
        }
        // The others wait for the tables: one of them found no place.
        let first = timeout(END_MAX, working.join_next()).await.expect("in time");
        let refused = first.expect("one").expect("no panic").expect("refused");
        refused.is(503, "OTSServerBusy", "Server is busy.");
    }
    drop(release);
    assert!(changing.await.expect("no panic"));
    for refused in working.join_all().await.into_iter().flatten() {
        assert_eq!(refused.code, "OTSObjectAlreadyExist");
    }
    is_answered(&server, "stranger").await;
    server.end().await;
}

#[tokio::test]
async fn keys_whose_bodies_come_slowly_keep_no_others_waiting() {
    let server = without_waits().await;
    let mut slow = Vec::new();
    for id in ["demo", "other"] {
        for _ in 0..CALLS_OF_KEY_MAX {
            let mut client = server.client(id);
            let sent = listing(&client);
            client.begin(&sent).await;
            slow.push((client, sent));
        }
        is_busy(&server, id).await;
    }
    is_answered(&server, "stranger").await;
    for (mut client, sent) in slow {
        let reply = client.exchange(b"", &sent.body).await;
        assert_eq!(refusal(&reply), None);
    }
    is_answered(&server, "demo").await;
    server.end().await;
}

#[tokio::test]
async fn the_bodies_of_a_key_that_come_have_so_many_bytes() {
    let server = without_waits().await;
    let large = vec![0_u8; limits::MAX_BODY_BYTES];
    let sent = server.client("demo").request("ListStream", large, Duration::ZERO);
    let mut slow = Vec::new();
    for _ in 0..COMING_BYTES_OF_KEY_MAX / limits::MAX_BODY_BYTES {
        let mut client = server.client("demo");
        client.begin(&sent).await;
        slow.push(client);
    }
    is_busy(&server, "demo").await;
    is_answered(&server, "other").await;
    let mut client = slow.pop().expect("one");
    let refused = refusal(&client.exchange(b"", &sent.body).await).expect("no message");
    assert_eq!((refused.status, refused.code.as_str()), (400, INVALID));
    is_answered(&server, "demo").await;
    drop(slow);
    server.end().await;
}

#[tokio::test]
async fn a_body_that_doesnt_come_in_time_is_refused() {
    let server = Server::start_within(DoorTimes {
        body: Duration::from_millis(100),
        ..DoorTimes::default()
    })
    .await;
    let mut client = server.client("demo");
    let sent = listing(&client);
    client.begin(&sent).await;
    // Its first byte comes: how long that takes is another limit's.
    let reply = timeout(END_MAX, client.exchange(&sent.body[..1], b"")).await;
    let refused = refusal(&reply.expect("in time")).expect("late");
    refused.is(408, "OTSRequestTimeout", "Request timeout.");
    server.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_call_that_isnt_done_in_time_is_refused() {
    let server = Server::start_within(DoorTimes {
        work: Duration::from_millis(100),
        ..DoorTimes::default()
    })
    .await;
    let (release, changing) = hold_up(&server.engine).await;
    let mut client = server.client("demo");
    let refused = timeout(END_MAX, client.refused("CreateTable", &plain("notes"))).await;
    let refused = refused.expect("in time");
    refused.is(503, "OTSTimeout", "Operation timeout.");
    drop(release);
    assert!(changing.await.expect("no panic"));
    // What was begun goes on: it is done when the next has its turn.
    let turn = server.engine.create_table_when(held_up(), || Err::<(), ()>(()));
    assert!(turn.await.expect("asked").is_err());
    server.end().await;
}

#[tokio::test]
async fn a_read_names_so_many_columns() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    client.create(&plain("notes")).await;
    let there = || key([("id", "a".into())]);
    let cells = vec![crate::client::cell("c7", 1_i64)];
    client.put("notes", there(), cells).await.expect("put");
    let named = |count: usize| -> (pb::GetRowRequest, pb::GetRangeRequest) {
        let columns: Vec<_> = (0..count).map(|nth| format!("c{nth}")).collect();
        let range = pb::GetRangeRequest {
            table_name: "notes".to_owned(),
            max_versions: Some(1),
            inclusive_start_primary_key: key_bytes([("id", KeyElement::Minimum)]),
            exclusive_end_primary_key: key_bytes([("id", KeyElement::Maximum)]),
            columns_to_get: columns.clone(),
            ..pb::GetRangeRequest::default()
        };
        let get = pb::GetRowRequest {
            columns_to_get: columns,
            ..get("notes", there())
        };
        (get, range)
    };
    let (get, range) = named(limits::MAX_COLUMNS_PER_WRITE);
    let found: pb::GetRowResponse = client.call("GetRow", &get).await.expect("a row");
    assert_eq!(rows(&found.row).len(), 1);
    let page: pb::GetRangeResponse = client.call("GetRange", &range).await.expect("a page");
    assert_eq!(rows(&page.rows).len(), 1);
    let (get, range) = named(limits::MAX_COLUMNS_PER_WRITE + 1);
    let text =
        "The number of columns from the request exceeds the limit, limit count: 1024 , column count:1025.";
    client.refused("GetRow", &get).await.is(400, INVALID, text);
    client.refused("GetRange", &range).await.is(400, INVALID, text);
    server.end().await;
}

#[tokio::test]
async fn a_table_declares_so_many_columns() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    let columns = |first: usize, count: usize| -> Vec<_> {
        let column = |nth| pb::DefinedColumnSchema {
            name: format!("c{nth}"),
            r#type: DefinedColumnType::Integer.into(),
        };
        (first..first + count).map(column).collect()
    };
    let mut wide = plain("wide");
    wide.table_meta.defined_column = columns(0, MAX_COLUMNS + 1);
    let text = "The number of defined columns exceeds 1024.";
    client.refused("CreateTable", &wide).await.is(400, INVALID, text);
    wide.table_meta.defined_column = columns(0, MAX_COLUMNS);
    client.create(&wide).await;
    let more = pb::AddDefinedColumnRequest {
        table_name: "wide".to_owned(),
        columns: columns(MAX_COLUMNS, 1),
    };
    let refused = client.refused("AddDefinedColumn", &more).await;
    refused.is(400, INVALID, "1025 exceeds MAX_COLUMNS, which is 1024.");
    server.end().await;
}

#[tokio::test]
async fn operations_on_tables_arent_counted() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    // Tablestore does ten a second, and one UpdateTable of a table in two minutes.
    for nth in 0..12 {
        client.create(&plain(&format!("t{nth}"))).await;
    }
    for versions in 1..=3 {
        let update = pb::UpdateTableRequest {
            table_name: "t0".to_owned(),
            table_options: Some(pb::TableOptions {
                max_versions: Some(versions),
                ..pb::TableOptions::default()
            }),
            ..pb::UpdateTableRequest::default()
        };
        let updated: pb::UpdateTableResponse = client.call("UpdateTable", &update).await.expect("updated");
        assert_eq!(updated.table_options.max_versions, Some(versions));
    }
    server.end().await;
}

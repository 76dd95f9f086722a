//! Local transactions.

use std::sync::Arc;
use std::time::Duration;

use souk_engine::storage::limits::MAX_TRANSACTION_LIFE;
use souk_engine::storage::{DatabaseOptions, ManualClock};
use souk_tablestore::messages::{self as pb, PrimaryKeyType};
use souk_tablestore::{KeyColumn, KeyElement, Value, limits};

use crate::client::{Client, Refused, cell, cells, get, key, key_bytes, plain, put, rows, table};
use crate::server::Server;

fn there(part: &str, nth: i64) -> Vec<KeyColumn> {
    key([("part", part.into()), ("nth", nth.into())])
}

async fn created(server: &Server) -> Client {
    let mut client = server.client("demo");
    let keys = [("part", PrimaryKeyType::String), ("nth", PrimaryKeyType::Integer)];
    client.create(&table("rows", &keys, None)).await;
    client
}

async fn begun(client: &mut Client, part: &str) -> Result<String, Refused> {
    let request = pb::StartLocalTransactionRequest {
        table_name: "rows".to_owned(),
        key: key_bytes([("part", part.into())]),
        row_keys: Vec::new(),
    };
    let begun: Result<pb::StartLocalTransactionResponse, Refused> =
        client.call("StartLocalTransaction", &request).await;
    begun.map(|begun| begun.transaction_id)
}

fn commit(transaction_id: &str) -> pb::CommitTransactionRequest {
    pb::CommitTransactionRequest {
        transaction_id: transaction_id.to_owned(),
    }
}

fn abort(transaction_id: &str) -> pb::AbortTransactionRequest {
    pb::AbortTransactionRequest {
        transaction_id: transaction_id.to_owned(),
    }
}

fn putting(part: &str, nth: i64, transaction: Option<&str>) -> pb::PutRowRequest {
    pb::PutRowRequest {
        transaction_id: transaction.map(str::to_owned),
        ..put("rows", there(part, nth), vec![cell("n", nth)])
    }
}

#[tokio::test]
async fn what_a_transaction_writes_happens_at_its_commit() {
    let server = Server::start().await;
    let mut client = created(&server).await;
    let id = begun(&mut client, "a").await.expect("begun");
    let _: pb::PutRowResponse = client
        .call("PutRow", &putting("a", 1, Some(&id)))
        .await
        .expect("put");
    // It sees what it has written, and nobody else does.
    let mut inside = get("rows", there("a", 1));
    inside.transaction_id = Some(id.clone());
    let seen: pb::GetRowResponse = client.call("GetRow", &inside).await.expect("an answer");
    assert_eq!(cells(&rows(&seen.row)[0]), [("n", Value::Integer(1))]);
    assert_eq!(client.get("rows", there("a", 1)).await, None);
    // Its partition is held, others aren't.
    let conflict = client.refused("PutRow", &putting("a", 2, None)).await;
    conflict.is(
        409,
        "OTSRowOperationConflict",
        "Data is being modified by the other request.",
    );
    let _: pb::PutRowResponse = client.call("PutRow", &putting("b", 1, None)).await.expect("put");
    assert_eq!(
        begun(&mut client, "a").await.expect_err("held").code,
        "OTSRowOperationConflict"
    );
    let outside = client.refused("PutRow", &putting("b", 2, Some(&id))).await;
    outside.is(
        400,
        "OTSDataOutOfRange",
        "Data is out of the range of the transaction.",
    );
    // A range in it.
    let range = pb::GetRangeRequest {
        table_name: "rows".to_owned(),
        max_versions: Some(1),
        inclusive_start_primary_key: key_bytes([("part", "a".into()), ("nth", KeyElement::Minimum)]),
        exclusive_end_primary_key: key_bytes([("part", "a".into()), ("nth", KeyElement::Maximum)]),
        transaction_id: Some(id.clone()),
        ..pb::GetRangeRequest::default()
    };
    let page: pb::GetRangeResponse = client.call("GetRange", &range).await.expect("a page");
    assert_eq!(rows(&page.rows).len(), 1);

    let _: pb::CommitTransactionResponse = client
        .call("CommitTransaction", &commit(&id))
        .await
        .expect("done");
    assert!(client.get("rows", there("a", 1)).await.is_some());
    let gone = client.refused("CommitTransaction", &commit(&id)).await;
    gone.is(404, "OTSSessionNotExist", "Session not exist or may be timeout.");
    let _: pb::PutRowResponse = client
        .call("PutRow", &putting("a", 2, None))
        .await
        .expect("free again");
    server.end().await;
}

#[tokio::test]
async fn what_was_written_before_an_abort_is_forgotten() {
    let server = Server::start().await;
    let mut client = created(&server).await;
    let id = begun(&mut client, "a").await.expect("begun");
    let batch = pb::BatchWriteRowRequest {
        transaction_id: Some(id.clone()),
        tables: vec![pb::TableInBatchWriteRowRequest {
            table_name: "rows".to_owned(),
            rows: vec![pb::RowInBatchWriteRowRequest {
                r#type: pb::OperationType::Put.into(),
                row_change: putting("a", 1, None).row,
                condition: crate::client::ignore(),
                return_content: None,
            }],
        }],
        is_atomic: None,
    };
    let written: pb::BatchWriteRowResponse = client.call("BatchWriteRow", &batch).await.expect("written");
    assert!(written.tables[0].rows[0].is_ok);
    // Node's package reads the answer as such a request.
    let aborted: pb::AbortTransactionRequest = client
        .call("AbortTransaction", &abort(&id))
        .await
        .expect("aborted");
    assert_eq!(aborted, abort(&id));
    assert_eq!(client.get("rows", there("a", 1)).await, None);
    assert_eq!(
        client.refused("AbortTransaction", &abort(&id)).await.code,
        "OTSSessionNotExist"
    );
    server.end().await;
}

#[tokio::test]
async fn a_transaction_is_its_holders_alone() {
    let server = Server::start().await;
    let mut client = created(&server).await;
    let id = begun(&mut client, "a").await.expect("begun");
    // With another key of the instance, and with one of another instance.
    for holder in ["other", "stranger"] {
        let mut other = server.client(holder);
        assert_eq!(
            other.refused("CommitTransaction", &commit(&id)).await.code,
            "OTSSessionNotExist"
        );
        assert_eq!(
            other.refused("AbortTransaction", &abort(&id)).await.code,
            "OTSSessionNotExist"
        );
    }
    let mut other = server.client("other");
    let refused = other.refused("PutRow", &putting("a", 1, Some(&id))).await;
    assert_eq!(refused.code, "OTSSessionNotExist");
    for wrong in [
        "",
        "x",
        "0000",
        &id.replace('.', ""),
        &format!("{}.none", "0".repeat(32)),
    ] {
        let refused = client.refused("CommitTransaction", &commit(wrong)).await;
        assert_eq!(refused.code, "OTSSessionNotExist", "{wrong}");
    }
    let _: pb::CommitTransactionResponse = client
        .call("CommitTransaction", &commit(&id))
        .await
        .expect("its own");
    server.end().await;
}

#[tokio::test]
async fn a_table_may_be_without() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    let mut without = plain("rows");
    without.enable_local_txn = Some(false);
    client.create(&without).await;
    let request = pb::StartLocalTransactionRequest {
        table_name: "rows".to_owned(),
        key: key_bytes([("id", "a".into())]),
        row_keys: Vec::new(),
    };
    let refused = client.refused("StartLocalTransaction", &request).await;
    let text = "Try to call method using explicit transaction on explicit-transaction-disabled table";
    refused.is(400, "OTSParameterInvalid", text);
    server.end().await;
}

#[tokio::test]
async fn an_atomic_batch_in_a_transaction_happens_as_a_whole() {
    let server = Server::start().await;
    let mut client = created(&server).await;
    let id = begun(&mut client, "a").await.expect("begun");
    let rows = |rows: &[(i64, bool)]| pb::BatchWriteRowRequest {
        transaction_id: Some(id.clone()),
        tables: vec![pb::TableInBatchWriteRowRequest {
            table_name: "rows".to_owned(),
            rows: rows
                .iter()
                .map(|(nth, is_there)| pb::RowInBatchWriteRowRequest {
                    r#type: pb::OperationType::Put.into(),
                    row_change: putting("a", *nth, None).row,
                    condition: match is_there {
                        true => crate::client::expecting(pb::RowExistenceExpectation::ExpectExist),
                        false => crate::client::ignore(),
                    },
                    return_content: None,
                })
                .collect(),
        }],
        is_atomic: Some(true),
    };
    // One that fails, and one that has a row twice: none is written of either.
    for batch in [rows(&[(1, false), (2, true)]), rows(&[(1, false), (1, false)])] {
        let written: pb::BatchWriteRowResponse =
            client.call("BatchWriteRow", &batch).await.expect("an answer");
        assert!(written.tables[0].rows.iter().all(|row| !row.is_ok), "{written:?}");
    }
    let written: pb::BatchWriteRowResponse = client
        .call("BatchWriteRow", &rows(&[(3, false), (4, false)]))
        .await
        .expect("an answer");
    assert!(written.tables[0].rows.iter().all(|row| row.is_ok));
    let _: pb::CommitTransactionResponse = client
        .call("CommitTransaction", &commit(&id))
        .await
        .expect("done");
    for (nth, is_there) in [(1, false), (2, false), (3, true), (4, true)] {
        assert_eq!(
            client.get("rows", there("a", nth)).await.is_some(),
            is_there,
            "{nth}"
        );
    }
    server.end().await;
}

#[tokio::test]
async fn a_transaction_lives_for_a_minute() {
    let clock = Arc::new(ManualClock::new(1_700_000_000_000_000_000));
    let server = Server::start_with(DatabaseOptions {
        clock: clock.clone(),
        ..DatabaseOptions::default()
    })
    .await;
    let mut client = created(&server).await;
    let moment = Duration::from_millis(1);
    // Without a call, and with one in between.
    for calls in [0, 1] {
        let id = begun(&mut client, "a").await.expect("begun");
        if calls > 0 {
            clock.advance(MAX_TRANSACTION_LIFE / 2);
            let put = putting("a", 1, Some(&id));
            let _: pb::PutRowResponse = client.call("PutRow", &put).await.expect("put");
            clock.advance(MAX_TRANSACTION_LIFE / 2 - moment);
        } else {
            clock.advance(MAX_TRANSACTION_LIFE - moment);
        }
        let held = client.refused("PutRow", &putting("a", 2, None)).await;
        assert_eq!(held.code, "OTSRowOperationConflict");
        clock.advance(moment);
        let gone = client.refused("CommitTransaction", &commit(&id)).await;
        gone.is(404, "OTSSessionNotExist", "Session not exist or may be timeout.");
        assert_eq!(client.get("rows", there("a", 1)).await, None);
        let free = putting("a", 2, None);
        let _: pb::PutRowResponse = client.call("PutRow", &free).await.expect("free again");
    }
    server.end().await;
}

#[tokio::test]
async fn a_transaction_writes_so_many_bytes() {
    let server = Server::start().await;
    let mut client = created(&server).await;
    let id = begun(&mut client, "a").await.expect("begun");
    // Names and keys count, too.
    let large = "x".repeat(limits::MAX_VALUE_BYTES - 100);
    let putting = |nth: i64, text: &str| pb::PutRowRequest {
        transaction_id: Some(id.clone()),
        ..put("rows", there("a", nth), vec![cell("text", text)])
    };
    for nth in 0..2 {
        let put = putting(nth, &large);
        let _: pb::PutRowResponse = client.call("PutRow", &put).await.expect("4 MiB are taken");
    }
    let refused = client.refused("PutRow", &putting(2, &large[..200])).await;
    refused.is(
        400,
        "OTSOutOfTransactionDataSizeLimit",
        "The total data size of the transaction exceeds the limit.",
    );
    // What was taken is written.
    let _: pb::CommitTransactionResponse = client
        .call("CommitTransaction", &commit(&id))
        .await
        .expect("done");
    for (nth, is_there) in [(0, true), (1, true), (2, false)] {
        assert_eq!(
            client.get("rows", there("a", nth)).await.is_some(),
            is_there,
            "{nth}"
        );
    }
    server.end().await;
}

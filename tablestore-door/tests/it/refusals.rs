//! What is refused before anything is done, and by what.

use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use souk_tablestore::messages::{self as pb, OperationType, PrimaryKeyType};
use souk_tablestore::{KeyElement, Value};
use souk_tablestore_door::AccessKeys;

use crate::client::{cell, get, key, plain, put, refusal, row, table};
use crate::server::Server;

const INVALID: &str = "OTSParameterInvalid";

#[tokio::test]
async fn a_connection_is_kept_for_the_next_request() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    let list = client.request("ListTable", Bytes::new(), Duration::ZERO);
    for _ in 0..3 {
        let reply = client.send(&list).await;
        assert_eq!(reply.status, 200);
        for header in [
            "x-ots-requestid",
            "x-ots-date",
            "x-ots-contentmd5",
            "x-ots-contenttype",
            "authorization",
        ] {
            assert!(reply.headers.contains_key(header), "{header}: {reply:?}");
        }
        assert!(client.is_connected());
    }
    // One that is refused, too.
    let reply = client
        .send(&client.request("Nothing", Bytes::new(), Duration::ZERO))
        .await;
    assert!(reply.status == 400 && client.is_connected());
    assert_eq!(client.send(&list).await.status, 200);
    server.end().await;
}

#[tokio::test]
async fn whoever_doesnt_sign_with_the_secret_isnt_let_in() {
    let server = Server::start().await;
    let list = pb::ListTableRequest {};
    let wrong = server
        .client("demo")
        .with_secret("another-secret")
        .refused("ListTable", &list)
        .await;
    wrong.is(403, "OTSAuthFailed", "Signature mismatch.");
    let unknown = crate::client::Client::new(server.address, "nobody", "demo-secret-of-tests", "demo");
    let unknown = { unknown }.refused("ListTable", &list).await;
    unknown.is(403, "OTSAuthFailed", "The AccessKeyID does not exist.");

    let mut client = server.client("demo");
    let late = client.request("ListTable", Bytes::new(), Duration::from_secs(3600));
    let refused = refusal(&client.send(&late).await).expect("late");
    assert_eq!((refused.status, refused.code.as_str()), (403, "OTSAuthFailed"));
    assert!(
        refused
            .message
            .starts_with("Mismatch between system time and x-ots-date"),
        "{refused:?}"
    );

    // A header that was changed on the way.
    let mut changed = client.request("ListTable", Bytes::new(), Duration::ZERO);
    changed
        .headers
        .insert("x-ots-instancename".to_owned(), "elsewhere".to_owned());
    let refused = refusal(&client.send(&changed).await).expect("changed");
    refused.is(403, "OTSAuthFailed", "Signature mismatch.");
    // A body that was.
    let mut changed = client.request("ListTable", Bytes::new(), Duration::ZERO);
    changed.body = Bytes::from_static(b"\x0a\x01x");
    let refused = refusal(&client.send(&changed).await).expect("changed");
    let text = "Mismatch between MD5 value of request body and x-ots-contentmd5 in header.";
    refused.is(403, "OTSAuthFailed", text);
    // Temporary credentials.
    let mut token = client.request("ListTable", Bytes::new(), Duration::ZERO);
    token
        .headers
        .insert("x-ots-ststoken".to_owned(), "token".to_owned());
    client.sign(&mut token);
    let refused = refusal(&client.send(&token).await).expect("a token");
    refused.is(403, "OTSAuthFailed", "The user does not exist.");
    server.end().await;
}

#[tokio::test]
async fn a_secret_that_was_right_is_wrong_once_it_is_another() {
    let server = Server::start().await;
    let list = pb::ListTableRequest {};
    let (mut client, mut next) = (
        server.client("demo"),
        server.client("demo").with_secret("next-secret-of-tests"),
    );
    let mismatch = (403, "OTSAuthFailed", "Signature mismatch.");
    for _ in 0..2 {
        let listed = client.call::<pb::ListTableResponse>("ListTable", &list).await;
        listed.expect("of the secret");
        let wrong = next.refused("ListTable", &list).await;
        wrong.is(mismatch.0, mismatch.1, mismatch.2);
    }
    let keys = AccessKeys::read("demo next-secret-of-tests demo admin").expect("a key");
    server.keys.set(keys);
    for _ in 0..2 {
        let wrong = client.refused("ListTable", &list).await;
        wrong.is(mismatch.0, mismatch.1, mismatch.2);
        let listed = next.call::<pb::ListTableResponse>("ListTable", &list).await;
        listed.expect("of the new secret");
    }
    server.end().await;
}

#[tokio::test]
async fn a_reader_reads() {
    let server = Server::start().await;
    let (mut admin, mut reader) = (server.client("demo"), server.client("reader"));
    admin.create(&plain("notes")).await;
    admin
        .put("notes", key([("id", "a".into())]), vec![cell("n", 1_i64)])
        .await
        .expect("put");
    assert!(reader.get("notes", key([("id", "a".into())])).await.is_some());
    let text = "The user has no privilege to access the instance.";
    let refused = reader
        .refused("PutRow", &put("notes", key([("id", "a".into())]), Vec::new()))
        .await;
    refused.is(403, "OTSAuthFailed", text);
    let refused = reader.refused("CreateTable", &plain("more")).await;
    refused.is(403, "OTSAuthFailed", text);
    server.end().await;
}

#[tokio::test]
async fn a_body_is_no_larger_than_it_may_be() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    let large = client.request("PutRow", vec![0; 6 << 20], Duration::ZERO);
    let refused = refusal(&client.send(&large).await).expect("too large");
    refused.is(
        413,
        "OTSRequestBodyTooLarge",
        "The size of POST data is too large.",
    );
    // In chunks, without a length that tells it.
    let mut client = server.client("demo");
    let mut head = "POST /PutRow HTTP/1.1\r\nhost: souk\r\ntransfer-encoding: chunked\r\n".to_owned();
    for (name, value) in &large.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n600000\r\n");
    let reply = client.exchange(head.as_bytes(), &large.body).await;
    refusal(&reply).expect("too large").is(
        413,
        "OTSRequestBodyTooLarge",
        "The size of POST data is too large.",
    );
    // And the server goes on.
    let mut client = server.client("demo");
    client.create(&plain("notes")).await;
    server.end().await;
}

#[tokio::test]
async fn what_isnt_a_request_is_refused() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    client.create(&plain("notes")).await;
    for (operation, text) in [
        ("SQLQuery", "Unsupported operation: SQLQuery."),
        ("Nothing", "Unsupported operation: Nothing."),
        ("getrow", "Unsupported operation: getrow."),
        ("tunnel/getrpo", "Unsupported operation: tunnel/getrpo."),
    ] {
        let reply = client
            .send(&client.request(operation, Bytes::new(), Duration::ZERO))
            .await;
        refusal(&reply).expect("unsupported").is(400, INVALID, text);
    }
    let get = client
        .exchange(b"GET /GetRow HTTP/1.1\r\nhost: souk\r\n\r\n", b"")
        .await;
    refusal(&get).expect("no GET").is(
        405,
        "OTSMethodNotAllowed",
        "Only POST method for requests is supported.",
    );
    let headless = client
        .exchange(
            b"POST /GetRow HTTP/1.1\r\nhost: souk\r\ncontent-length: 0\r\n\r\n",
            b"",
        )
        .await;
    refusal(&headless)
        .expect("no headers")
        .is(400, INVALID, "Missing header: x-ots-date.");

    // Cut anywhere.
    let whole = put("notes", key([("id", "a".into())]), vec![cell("n", 1_i64)]).encode_to_vec();
    for length in 0..whole.len() {
        let cut = client.request("PutRow", whole[..length].to_vec(), Duration::ZERO);
        let refused = refusal(&client.send(&cut).await);
        assert_eq!(
            refused.as_ref().map(|refused| refused.status),
            Some(400),
            "{length}: {refused:?}"
        );
    }
    assert_eq!(
        client.get("notes", key([("id", "a".into())])).await,
        None,
        "nothing was written"
    );
    server.end().await;
}

#[tokio::test]
async fn rows_that_cant_be_are_refused() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    client.create(&plain("notes")).await;
    let a = || key([("id", "a".into())]);
    // Another bit.
    let mut damaged = put("notes", a(), vec![cell("n", 1_i64)]);
    let mut bytes = damaged.row.to_vec();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    damaged.row = bytes.into();
    let refused = client.refused("PutRow", &damaged).await;
    assert!(
        refused.code == INVALID
            && refused
                .message
                .starts_with("Cell data broken, checksum is mismatch"),
        "{refused:?}"
    );

    let large = "x".repeat((2 << 20) + 1);
    let text =
        "The length of attribute column: 'n' exceeds the MaxLength:2097152 with CurrentLength:2097153.";
    let refused = client
        .put("notes", a(), vec![cell("n", large.as_str())])
        .await
        .expect_err("too long");
    refused.is(400, INVALID, text);
    client
        .put("notes", a(), vec![cell("n", &large[1..])])
        .await
        .expect("2 MB are taken");
    // Together more than a write may have.
    let three = ["a", "b", "c"].map(|name| cell(name, &large[1 << 19..])).to_vec();
    let refused = client.put("notes", a(), three).await.expect_err("too large");
    assert!(
        refused
            .message
            .starts_with("The total data size of PutRow request exceeds the limit"),
        "{refused:?}"
    );

    let five = ["a", "b", "c", "d", "e"].map(|name| (name, "x".into()));
    let refused = client
        .refused("PutRow", &put("notes", key(five), Vec::new()))
        .await;
    refused.is(
        400,
        INVALID,
        "The number of primary key columns must be in range: [1, 4].",
    );
    for (number, text) in [
        (f64::NAN, "NaN can't be set to double value."),
        (f64::INFINITY, "Infinity can't be set to double value."),
    ] {
        let refused = client
            .put("notes", a(), vec![cell("n", Value::Double(number))])
            .await
            .expect_err("no number");
        refused.is(400, INVALID, text);
    }
    for wrong in [
        key([("other", "a".into())]),
        key([("id", 1_i64.into())]),
        key([("id", "a".into()), ("more", "a".into())]),
    ] {
        let refused = client.refused("GetRow", &get("notes", wrong)).await;
        refused.is(400, "OTSInvalidPK", "Primary key schema mismatch.");
    }
    let long = "x".repeat(1025);
    let refused = client
        .refused("GetRow", &get("notes", key([("id", long.as_str().into())])))
        .await;
    refused.is(
        400,
        INVALID,
        "The length of primary key column: 'id' exceeds the MaxLength:1024 with CurrentLength:1025.",
    );
    let none = client.refused("GetRow", &get("none", a())).await;
    none.is(404, "OTSObjectNotExist", "Requested table does not exist.");
    server.end().await;
}

#[tokio::test]
async fn a_table_without_updates_is_put_and_deleted_alone() {
    let server = Server::start().await;
    let mut client = server.client("demo");
    let mut fixed = table("fixed", &[("id", PrimaryKeyType::String)], None);
    fixed.table_options.as_mut().expect("options").allow_update = Some(false);
    client.create(&fixed).await;
    client
        .put("fixed", key([("id", "a".into())]), Vec::new())
        .await
        .expect("put");
    let update = pb::UpdateRowRequest {
        table_name: "fixed".to_owned(),
        row_change: row(key([("id", "a".into())]), vec![cell("n", 1_i64)]),
        condition: crate::client::ignore(),
        ..pb::UpdateRowRequest::default()
    };
    let refused = client.refused("UpdateRow", &update).await;
    let text = "The table doesn't allow updates.";
    refused.is(400, INVALID, text);

    // Also of a row that would be a new one.
    let keys = [("id", PrimaryKeyType::String), ("nth", PrimaryKeyType::Integer)];
    let mut numbered = table("numbered", &keys, Some("nth"));
    numbered.table_options.as_mut().expect("options").allow_update = Some(false);
    client.create(&numbered).await;
    let new = || key([("id", "a".into()), ("nth", KeyElement::AutoIncrement)]);
    let cells = || vec![cell("n", 1_i64)];
    let refused = client
        .refused("UpdateRow", &crate::client::update("numbered", new(), cells()))
        .await;
    refused.is(400, INVALID, text);
    client.put("numbered", new(), cells()).await.expect("put");

    // In a batch it is refused alone.
    let rows = [OperationType::Update, OperationType::Put].map(|kind| pb::RowInBatchWriteRowRequest {
        r#type: kind.into(),
        row_change: row(new(), cells()),
        condition: crate::client::ignore(),
        return_content: None,
    });
    let batch = pb::BatchWriteRowRequest {
        tables: vec![pb::TableInBatchWriteRowRequest {
            table_name: "numbered".to_owned(),
            rows: rows.to_vec(),
        }],
        ..pb::BatchWriteRowRequest::default()
    };
    let written: pb::BatchWriteRowResponse = client.call("BatchWriteRow", &batch).await.expect("an answer");
    let rows = &written.tables[0].rows;
    assert_eq!(rows[0].error.as_ref().expect("it is refused").code, INVALID);
    assert!(rows[1].is_ok, "{rows:?}");
    server.end().await;
}

//! Transactions: seen by their own calls alone, all or nothing, of one partition and one table.

use std::sync::Arc;

use souk_api::testing::serve_as;
use souk_engine::storage::ManualClock;
use souk_engine::storage::limits::MAX_TRANSACTION_LIFE;
use souk_proto::table::v1::{
    AbortTransactionRequest, BatchWriteRowsRequest, BeginTransactionRequest, CommitTransactionRequest,
    GetRowRequest, PutRowRequest, RowWrite, Table, row_write,
};
use souk_proto::table::v1::{Condition, Existence, RowPut};
use souk_table_svc::TableServices;
use tonic::Code;

use crate::{Client, TestResult, client, columns, create, int, notes, open, put, refusal, text};

pub(crate) async fn begin(client: &mut Client, person: &str) -> Result<String, tonic::Status> {
    let begin = BeginTransactionRequest {
        table: "notes".to_owned(),
        partition: Some(text(person)),
    };
    Ok(client.begin_transaction(begin).await?.into_inner().transaction_id)
}

pub(crate) fn commit(table: &str, id: &str) -> CommitTransactionRequest {
    CommitTransactionRequest {
        table: table.to_owned(),
        transaction_id: id.to_owned(),
        checkpoint: None,
    }
}

fn inside(id: &str, request: PutRowRequest) -> PutRowRequest {
    PutRowRequest {
        transaction_id: id.to_owned(),
        ..request
    }
}

fn get(id: &str, person: &str, number: i64) -> GetRowRequest {
    GetRowRequest {
        table: "notes".to_owned(),
        key: vec![text(person), int(number)],
        transaction_id: id.to_owned(),
        ..GetRowRequest::default()
    }
}

#[tokio::test]
async fn what_is_written_is_seen_by_others_after_the_commit() -> TestResult {
    let (_running, mut client) = open().await?;
    create(&mut client, notes()).await?;
    let id = begin(&mut client, "ann").await?;
    let one = put("ann", 1, columns([("size", int(1))]));
    let written = client.put_row(inside(&id, one)).await?.into_inner();
    assert_eq!(written.sequence, 0);
    let batch = BatchWriteRowsRequest {
        table: "notes".to_owned(),
        writes: [2, 3]
            .map(|number| RowWrite {
                operation: Some(row_write::Operation::Put(RowPut {
                    key: vec![text("ann"), int(number)],
                    ..RowPut::default()
                })),
                condition: Some(Condition {
                    existence: if number == 3 {
                        Existence::MustExist
                    } else {
                        Existence::Unspecified
                    }
                    .into(),
                    ..Condition::default()
                }),
                returning: None,
            })
            .to_vec(),
        transaction_id: id.clone(),
        ..BatchWriteRowsRequest::default()
    };
    let batch = client.batch_write_rows(batch).await?.into_inner();
    assert_eq!(batch.results[0].error, None);
    assert_eq!(
        batch.results[1].error.as_ref().expect("an error").reason,
        "CONDITION_FAILED"
    );
    client.get_row(get(&id, "ann", 1)).await?;
    let missing = (Code::NotFound, "ROW_NOT_FOUND".to_owned());
    assert_eq!(refusal(client.get_row(get("", "ann", 1)).await), missing);
    let held = refusal(client.put_row(put("ann", 4, Default::default())).await);
    assert_eq!(held, (Code::Aborted, "TRANSACTION_CONFLICT".to_owned()));
    client.put_row(put("bob", 1, Default::default())).await?;
    // Only its own partition is held: a read sees what others write elsewhere.
    client.get_row(get(&id, "bob", 1)).await?;
    let outside = inside(&id, put("bob", 2, Default::default()));
    let outside = refusal(client.put_row(outside).await);
    assert_eq!(outside, (Code::InvalidArgument, "OUTSIDE_PARTITION".to_owned()));
    let committed = client
        .commit_transaction(commit("notes", &id))
        .await?
        .into_inner();
    let found = client
        .get_row(get("", "ann", 2))
        .await?
        .into_inner()
        .row
        .expect("the row");
    assert_eq!(found.revision, committed.sequence);
    let ended = (Code::NotFound, "TRANSACTION_NOT_FOUND".to_owned());
    assert_eq!(
        refusal(client.commit_transaction(commit("notes", &id)).await),
        ended
    );
    assert_eq!(refusal(client.get_row(get(&id, "ann", 1)).await), ended);
    Ok(())
}

#[tokio::test]
async fn an_abort_forgets_and_others_get_their_turn() -> TestResult {
    let (_running, mut client) = open().await?;
    create(&mut client, notes()).await?;
    let id = begin(&mut client, "ann").await?;
    client
        .put_row(inside(&id, put("ann", 1, Default::default())))
        .await?;
    let second = begin(&mut client, "ann").await.expect_err("held");
    assert_eq!(
        souk_chassis::status::reason(&second).as_deref(),
        Some("TRANSACTION_CONFLICT")
    );
    let abort = AbortTransactionRequest {
        table: "notes".to_owned(),
        transaction_id: id,
    };
    client.abort_transaction(abort).await?;
    let missing = (Code::NotFound, "ROW_NOT_FOUND".to_owned());
    assert_eq!(refusal(client.get_row(get("", "ann", 1)).await), missing);
    begin(&mut client, "ann").await?;
    Ok(())
}

#[tokio::test]
async fn a_transaction_is_of_its_table_and_tables_have_to_allow_them() -> TestResult {
    let (_running, mut client) = open().await?;
    create(&mut client, notes()).await?;
    let others = Table {
        name: "others".to_owned(),
        transactions: false,
        ..notes()
    };
    create(&mut client, others).await?;
    let id = begin(&mut client, "ann").await?;
    let ended = (Code::NotFound, "TRANSACTION_NOT_FOUND".to_owned());
    assert_eq!(
        refusal(client.commit_transaction(commit("others", &id)).await),
        ended
    );
    let refused = client
        .begin_transaction(BeginTransactionRequest {
            table: "others".to_owned(),
            partition: Some(text("ann")),
        })
        .await;
    assert_eq!(
        refusal(refused),
        (Code::InvalidArgument, "INVALID_ARGUMENT".to_owned())
    );
    let repeated = PutRowRequest {
        request_id: "6f1c9a7e-0f0e-4c57-9d5c-3b8f6a2b1c4d".to_owned(),
        ..inside(&id, put("ann", 1, Default::default()))
    };
    let refused = client
        .put_row(repeated)
        .await
        .expect_err("an id in a transaction");
    assert_eq!(crate::bad_input::fields(&refused), ["request_id"]);
    client.commit_transaction(commit("notes", &id)).await?;
    Ok(())
}

#[tokio::test]
async fn more_than_may_be_open_are_refused_with_the_limit() -> TestResult {
    let clock = Arc::new(ManualClock::new(1_800_000_000_000_000_000));
    let store = Arc::clone(&clock);
    let running = serve_as::<TableServices>(|config| config.storage.clock = store).await?;
    let mut client = client(&running);
    create(&mut client, notes()).await?;
    let max = souk_engine::transactions::TRANSACTIONS_MAX;
    for nth in 0..max {
        begin(&mut client, &format!("p{nth}")).await?;
    }
    let full = begin(&mut client, "one more").await.expect_err("full");
    assert_eq!(full.code(), Code::ResourceExhausted);
    assert_eq!(
        souk_chassis::status::reason(&full).as_deref(),
        Some("TOO_MANY_TRANSACTIONS")
    );
    // Their time is that of the store's clock, whatever another one shows.
    clock.advance(MAX_TRANSACTION_LIFE);
    begin(&mut client, "one more").await?;
    Ok(())
}

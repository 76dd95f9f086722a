//! Exports in slices: of one snapshot, resumable, and of own rows.

use std::collections::BTreeSet;

use souk_access::Role;
use souk_proto::table::v1::row_write::Operation;
use souk_proto::table::v1::{
    BatchWriteRowsRequest, DeleteRowRequest, ExportRowsRequest, ExportRowsResponse, KeyType, Row, RowPut,
    RowWrite, Table,
};
use souk_proto::r#type::v1::{Value, value};
use tonic::{Code, Status};

use crate::bad_input::fields;
use crate::owners::{by, letters, owner};
use crate::{Client, TestResult, columns, create, int, key_column, notes, open, put, refusal, text};

/// Enough for several blocks of a slice, and for keys of which some are passed over where slices begin.
const NOTES: i64 = 1_700;

/// Most of them are of one person, so that slices begin within a partition.
fn person(number: i64) -> &'static str {
    if number % 10 == 0 { "bob" } else { "ann" }
}

async fn fill(client: &mut Client) -> TestResult {
    create(client, notes()).await?;
    for first in (0..NOTES).step_by(100) {
        let notes = (first..first + 100).map(|number| vec![text(person(number)), int(number)]);
        write(client, "notes", notes, "size", &int(1)).await?;
    }
    Ok(())
}

async fn write(
    client: &mut Client,
    table: &str,
    keys: impl Iterator<Item = Vec<Value>>,
    column: &str,
    value: &Value,
) -> TestResult {
    let writes = keys.map(|key| RowWrite {
        operation: Some(Operation::Put(RowPut {
            key,
            columns: columns([(column, value.clone())]),
            ..RowPut::default()
        })),
        ..RowWrite::default()
    });
    let batch = BatchWriteRowsRequest {
        table: table.to_owned(),
        writes: writes.collect(),
        atomic: true,
        ..BatchWriteRowsRequest::default()
    };
    client.batch_write_rows(batch).await?;
    Ok(())
}

fn id(row: &Row) -> (String, i64) {
    match [&row.key[0].kind, &row.key[1].kind] {
        [
            Some(value::Kind::StringValue(first)),
            Some(value::Kind::IntValue(second)),
        ] => (first.clone(), *second),
        other => panic!("{other:?}"),
    }
}

fn slice(slice_count: i32, slice: i32, snapshot_token: &str) -> ExportRowsRequest {
    ExportRowsRequest {
        table: "notes".to_owned(),
        slice_count,
        slice,
        snapshot_token: snapshot_token.to_owned(),
        ..ExportRowsRequest::default()
    }
}

async fn blocks(client: &mut Client, request: ExportRowsRequest) -> Result<Vec<ExportRowsResponse>, Status> {
    let mut stream = client.export_rows(request).await?.into_inner();
    let mut blocks = Vec::new();
    while let Some(block) = stream.message().await? {
        blocks.push(block);
    }
    Ok(blocks)
}

#[tokio::test]
async fn slices_of_one_snapshot_hold_every_row_once_whatever_is_written_meanwhile() -> TestResult {
    let (_running, mut client) = open().await?;
    fill(&mut client).await?;
    let mut there: BTreeSet<_> = (0..NOTES)
        .map(|number| (person(number).to_owned(), number))
        .collect();
    let mut written = NOTES;
    for slice_count in [1, 2, 7, 64] {
        let expected = there.clone();
        let share = expected.len() / usize::try_from(slice_count)?;
        let (mut seen, mut snapshot_token, mut sequences) = (Vec::new(), String::new(), BTreeSet::new());
        for number in 0..slice_count {
            let mut rows = 0;
            for block in blocks(&mut client, slice(slice_count, number, &snapshot_token)).await? {
                rows += block.rows.len();
                seen.extend(block.rows.iter().map(id));
                sequences.insert(block.sequence);
                snapshot_token = block.snapshot_token;
            }
            // Every fourth key is kept of so many.
            assert!(rows.abs_diff(share) <= 5, "{number} of {slice_count}: {rows}");
            // Before, among and behind them; and one is taken away.
            for person in ["aaa", "ann", "zoe"] {
                client.put_row(put(person, written, Default::default())).await?;
                there.insert((person.to_owned(), written));
            }
            let gone = there.iter().nth(there.len() / 2).cloned().expect("a row");
            let delete = DeleteRowRequest {
                table: "notes".to_owned(),
                key: vec![text(&gone.0), int(gone.1)],
                ..DeleteRowRequest::default()
            };
            client.delete_row(delete).await?;
            there.remove(&gone);
            written += 1;
        }
        // In the order of their keys, too.
        assert!(seen.iter().eq(&expected), "{slice_count}: {} rows", seen.len());
        assert_eq!(sequences.len(), 1, "one snapshot");
    }
    Ok(())
}

#[tokio::test]
async fn a_slice_goes_on_after_any_of_its_blocks() -> TestResult {
    let (_running, mut client) = open().await?;
    fill(&mut client).await?;
    let whole = blocks(&mut client, slice(2, 1, "")).await?;
    assert!(whole.len() > 1, "several blocks");
    client.put_row(put("zoe", 0, Default::default())).await?;
    for (at, block) in whole.iter().enumerate() {
        // Which slice it is, is taken from the token.
        let request = ExportRowsRequest {
            resume_token: block.resume_token.clone(),
            ..slice(9, 3, "")
        };
        let rest = blocks(&mut client, request).await?;
        let ids = |blocks: &[ExportRowsResponse]| -> Vec<_> {
            blocks
                .iter()
                .flat_map(|block| block.rows.iter().map(id))
                .collect()
        };
        assert_eq!(ids(&rest), ids(&whole[at + 1..]), "after block {at}");
    }
    // The other one is still to be had of that snapshot.
    let first = blocks(&mut client, slice(2, 0, &whole[0].snapshot_token)).await?;
    let rows = first
        .iter()
        .chain(&whole)
        .map(|block| block.rows.len())
        .sum::<usize>();
    assert_eq!(i64::try_from(rows)?, NOTES);
    Ok(())
}

#[tokio::test]
async fn a_table_without_rows_has_empty_slices() -> TestResult {
    let (_running, mut client) = open().await?;
    create(&mut client, notes()).await?;
    let mut snapshot_token = String::new();
    for number in 0..3 {
        let found = blocks(&mut client, slice(3, number, &snapshot_token)).await?;
        assert_eq!(found.len(), 1, "one block, for its tokens");
        assert!(found[0].rows.is_empty());
        snapshot_token.clone_from(&found[0].snapshot_token);
    }
    Ok(())
}

#[tokio::test]
async fn what_is_no_slice_is_refused() -> TestResult {
    let (_running, mut client) = open().await?;
    create(&mut client, notes()).await?;
    for (slice_count, number, field) in [
        (-1, 0, "slice_count"),
        (65, 0, "slice_count"),
        (2, -1, "slice"),
        (2, 2, "slice"),
        (0, 1, "slice"),
    ] {
        let request = slice(slice_count, number, "");
        let status = client.export_rows(request).await.expect_err(field);
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        assert_eq!(fields(&status), [field], "{slice_count} {number}: {status}");
    }
    let other = Table {
        name: "others".to_owned(),
        ..notes()
    };
    create(&mut client, other).await?;
    let others = ExportRowsRequest {
        table: "others".to_owned(),
        ..slice(2, 0, "")
    };
    let others = blocks(&mut client, others).await?;
    let tokens = [&others[0].snapshot_token, &others[0].resume_token];
    for token in tokens.map(String::as_str).into_iter().chain(["nonsense"]) {
        let refused = refusal(client.export_rows(slice(2, 1, token)).await);
        assert_eq!(
            refused,
            (Code::InvalidArgument, "EXPORT_TOKEN_INVALID".to_owned())
        );
    }
    Ok(())
}

#[tokio::test]
async fn slices_of_own_rows_share_them_wherever_those_of_others_lie() -> TestResult {
    let (_running, mut client) = open().await?;
    let by_column = Table {
        key: vec![
            key_column("box", KeyType::String),
            key_column("nth", KeyType::Integer),
        ],
        ..letters()
    };
    let by_key = Table {
        name: "posts".to_owned(),
        key: vec![
            key_column("author", KeyType::String),
            key_column("nth", KeyType::Integer),
        ],
        owners: vec![owner(Role::User, "author")],
        ..Table::default()
    };
    for table in [by_column, by_key] {
        let name = table.name.clone();
        create(&mut client, table).await?;
        // Those of others are before and behind: of all rows, ann's are in one quarter.
        for (author, rows) in [("abe", 100), ("ann", 40), ("bob", 100)] {
            let keys = (0..rows).map(|nth| vec![text(author), int(nth)]);
            // Of posts the key says whose they are.
            let column = if name == "posts" { "title" } else { "author" };
            write(&mut client, &name, keys, column, &text(author)).await?;
        }
        let request = |number: i32, snapshot_token: &str| ExportRowsRequest {
            table: name.clone(),
            ..slice(4, number, snapshot_token)
        };
        let ann = (Role::User, "ann");
        let (mut found, mut snapshot_token) = (Vec::new(), String::new());
        for number in 0..4 {
            let read = by(ann, blocks(&mut client, request(number, &snapshot_token))).await?;
            let rows: Vec<_> = read.iter().flat_map(|block| &block.rows).map(id).collect();
            assert_eq!(rows.len(), 10, "{name} {number}");
            found.extend(rows);
            snapshot_token.clone_from(&read[0].snapshot_token);
        }
        let own: Vec<_> = (0..40).map(|nth| ("ann".to_owned(), nth)).collect();
        assert_eq!(found, own, "{name}");
        // Nobody else reads it, not even those who meet all rows.
        let taken = request(0, &snapshot_token);
        let bob = by((Role::User, "bob"), client.export_rows(taken.clone())).await;
        for refused in [refusal(bob), refusal(client.export_rows(taken).await)] {
            assert_eq!(
                refused,
                (Code::InvalidArgument, "EXPORT_TOKEN_INVALID".to_owned())
            );
        }
    }
    Ok(())
}

//! Pages of ranges and of secondary indexes: their tokens, and what they refuse.

use std::time::{SystemTime, UNIX_EPOCH};

use prost::Message as _;
use souk_access::Role;
use souk_proto::table::v1::{
    BatchGetRowsRequest, Cell, IndexRange, IndexValues, Key, KeyRange, PutRowRequest, RangeIndexRequest,
    RangeRowsRequest, ReadOptions, StreamRowsRequest, Table, VersionSelection, key_range,
};
use tonic::Code;

use crate::{Client, TestResult, bad_input, columns, create, int, notes, open, owners, put, refusal, text};

async fn filled(client: &mut Client) -> TestResult {
    create(client, notes()).await?;
    for (nth, person) in ["ann", "ann", "bob", "bob", "cat"].into_iter().enumerate() {
        let nth = i64::try_from(nth)?;
        let of = columns([("size", int(9 - nth)), ("word", text("tea"))]);
        client.put_row(put(person, nth, of)).await?;
    }
    Ok(())
}

fn range() -> RangeRowsRequest {
    RangeRowsRequest {
        table: "notes".to_owned(),
        page_size: 2,
        ..RangeRowsRequest::default()
    }
}

#[tokio::test]
async fn a_token_is_of_its_own_range_alone() -> TestResult {
    let (_running, mut client) = open().await?;
    filled(&mut client).await?;
    let first = client.range_rows(range()).await?.into_inner();
    assert_eq!(first.rows.len(), 2);
    assert!(first.consumed.is_some_and(|consumed| consumed.read > 0));
    let next = RangeRowsRequest {
        page_token: first.next_page_token.clone(),
        ..range()
    };
    assert_eq!(client.range_rows(next.clone()).await?.into_inner().rows.len(), 2);
    // Another size is the same range.
    let larger = RangeRowsRequest {
        page_size: 100,
        ..next.clone()
    };
    assert_eq!(client.range_rows(larger).await?.into_inner().rows.len(), 3);
    let stream = StreamRowsRequest {
        table: "notes".to_owned(),
        resume_token: first.next_page_token.clone(),
        ..StreamRowsRequest::default()
    };
    let mut pages = client.stream_rows(stream).await?.into_inner();
    assert_eq!(pages.message().await?.expect("a page").rows.len(), 3);
    assert!(pages.message().await?.is_none());
    let invalid = (Code::InvalidArgument, "PAGE_TOKEN_INVALID".to_owned());
    let prefix = KeyRange {
        prefix: Some(Key {
            values: vec![text("ann")],
        }),
        ..KeyRange::default()
    };
    for other in [
        RangeRowsRequest {
            descending: true,
            ..next.clone()
        },
        RangeRowsRequest {
            range: Some(prefix.clone()),
            ..next.clone()
        },
        RangeRowsRequest {
            read: Some(ReadOptions {
                columns: vec!["word".to_owned()],
                ..ReadOptions::default()
            }),
            ..next.clone()
        },
        RangeRowsRequest {
            page_token: next.page_token.replace(['a', 'b'], "c"),
            ..next.clone()
        },
    ] {
        assert_eq!(refusal(client.range_rows(other).await), invalid);
    }
    let both = KeyRange {
        low: Some(key_range::Low::Gte(Key {
            values: vec![text("a")],
        })),
        ..prefix
    };
    let both = RangeRowsRequest {
        range: Some(both),
        ..range()
    };
    let refused = client.range_rows(both).await.expect_err("two ranges");
    assert_eq!(bad_input::fields(&refused), ["range.prefix"]);
    Ok(())
}

#[tokio::test]
async fn a_secondary_index_is_paged_both_ways() -> TestResult {
    let (_running, mut client) = open().await?;
    filled(&mut client).await?;
    let index = |descending: bool| RangeIndexRequest {
        table: "notes".to_owned(),
        index: "by_size".to_owned(),
        descending,
        page_size: 2,
        ..RangeIndexRequest::default()
    };
    for descending in [false, true] {
        let (mut sizes, mut request) = (Vec::new(), index(descending));
        loop {
            let page = client.range_index(request.clone()).await?.into_inner();
            assert!(
                page.entries
                    .iter()
                    .all(|entry| entry.columns["word"] == text("tea"))
            );
            sizes.extend(page.entries.into_iter().flat_map(|entry| entry.values));
            if page.next_page_token.is_empty() {
                break;
            }
            request.page_token = page.next_page_token;
        }
        let mut expected: Vec<_> = (5..=9).map(int).collect();
        if descending {
            expected.reverse();
        }
        assert_eq!(sizes, expected);
    }
    let one = RangeIndexRequest {
        range: Some(IndexRange {
            prefix: Some(IndexValues { values: vec![int(7)] }),
            ..IndexRange::default()
        }),
        ..index(false)
    };
    let page = client.range_index(one).await?.into_inner();
    assert_eq!(page.entries[0].key, [text("bob"), int(2)]);
    let unknown = RangeIndexRequest {
        index: "by_word".to_owned(),
        ..index(false)
    };
    let refused = refusal(client.range_index(unknown).await);
    assert_eq!(refused, (Code::NotFound, "SECONDARY_INDEX_NOT_FOUND".to_owned()));
    Ok(())
}

#[tokio::test]
async fn versions_of_long_names_fit_into_messages() -> TestResult {
    let (_running, mut client) = open().await?;
    let versioned = Table {
        max_versions: 1_000,
        ..notes()
    };
    create(&mut client, versioned).await?;
    let name = "n".repeat(255);
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
    let now = i64::try_from(now)?;
    let keys: Vec<_> = (0..20).map(|number| vec![text("ann"), int(number)]).collect();
    for key in &keys {
        let cells = (0..1_000).map(|nth| Cell {
            column: name.clone(),
            value: Some(int(-1)),
            version: Some(now - nth),
        });
        let put = PutRowRequest {
            table: "notes".to_owned(),
            key: key.clone(),
            cells: cells.collect(),
            ..PutRowRequest::default()
        };
        client.put_row(put).await?;
    }
    let read = Some(ReadOptions {
        versions: Some(VersionSelection::default()),
        ..ReadOptions::default()
    });
    let mut request = RangeRowsRequest {
        read: read.clone(),
        ..RangeRowsRequest {
            page_size: 0,
            ..range()
        }
    };
    let mut found = 0;
    loop {
        let page = client.range_rows(request.clone()).await?.into_inner();
        assert!(page.encoded_len() <= 3 << 20, "{}", page.encoded_len());
        found += page.rows.len();
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    assert_eq!(found, 20);
    let batch = BatchGetRowsRequest {
        table: "notes".to_owned(),
        keys: keys.into_iter().map(|values| Key { values }).collect(),
        read,
        ..BatchGetRowsRequest::default()
    };
    let answer = client.batch_get_rows(batch).await?.into_inner();
    assert!(answer.encoded_len() <= 4 << 20, "{}", answer.encoded_len());
    let refused = answer.results.iter().filter_map(|result| result.error.as_ref());
    let refused: Vec<_> = refused.map(|error| error.reason.as_str()).collect();
    assert!((5..15).contains(&refused.len()), "{}", refused.len());
    assert!(refused.iter().all(|reason| *reason == "LIMIT_EXCEEDED"));
    Ok(())
}

#[tokio::test]
async fn own_rows_alone_fill_a_page() -> TestResult {
    let (_running, mut client) = open().await?;
    create(&mut client, owners::letters()).await?;
    let of = |author: &str| columns([("author", text(author))]);
    for (id, author) in [
        ("a", "ann"),
        ("b1", "bob"),
        ("b2", "bob"),
        ("b3", "bob"),
        ("c", "ann"),
    ] {
        client.put_row(owners::put(id, of(author))).await?;
    }
    for page_size in 1..5 {
        let (mut sizes, mut page_token) = (Vec::new(), String::new());
        loop {
            let request = RangeRowsRequest {
                table: "letters".to_owned(),
                page_size,
                page_token,
                ..RangeRowsRequest::default()
            };
            let page = owners::by((Role::User, "ann"), client.range_rows(request))
                .await?
                .into_inner();
            sizes.push(page.rows.len());
            page_token = page.next_page_token;
            if page_token.is_empty() {
                break;
            }
        }
        // Whatever lies between them; behind a full one there may be none.
        let expected: &[usize] = match page_size {
            1 => &[1, 1, 0],
            2 => &[2, 0],
            _ => &[2],
        };
        assert_eq!(sizes, expected, "{page_size}");
    }
    Ok(())
}

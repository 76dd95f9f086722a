//! Scans.

use std::time::Duration;

use bytes::Bytes;
use souk_tablestore::Value;
use souk_tablestore::messages::{
    self as pb, ColumnReturnType, ComputeSplitsRequest, ComputeSplitsResponse, ParallelScanRequest,
    ParallelScanResponse, Query, ScanQuery, SearchIndexSplitsOptions,
};
use souk_tablestore::plainbuffer::decode_row;

use super::{INDEX, Shops, TABLE, cell, columns, everything, id, named, term};
use crate::client::{Refused, cells, ignore, key, row};

impl Shops {
    async fn session(&mut self) -> Bytes {
        let request = ComputeSplitsRequest {
            table_name: named(TABLE),
            search_index_splits_options: Some(SearchIndexSplitsOptions {
                index_name: named(INDEX),
            }),
        };
        let splits: ComputeSplitsResponse =
            self.client.call("ComputeSplits", &request).await.expect("splits");
        assert_eq!(splits.splits_size, Some(1));
        let session = splits.session_id.expect("a session");
        assert!(std::str::from_utf8(&session).is_ok());
        session
    }

    async fn scan(
        &mut self,
        session: Option<Bytes>,
        query: Query,
        token: Option<Bytes>,
    ) -> Result<ParallelScanResponse, Refused> {
        let scan = ScanQuery {
            query: Some(query),
            limit: Some(2),
            alive_time: Some(60),
            token,
            ..ScanQuery::default()
        };
        self.scan_as(session, scan).await
    }

    async fn scan_as(
        &mut self,
        session: Option<Bytes>,
        scan: ScanQuery,
    ) -> Result<ParallelScanResponse, Refused> {
        let request = ParallelScanRequest {
            table_name: named(TABLE),
            index_name: named(INDEX),
            columns_to_get: columns(ColumnReturnType::Specified, &["price"]),
            session_id: session,
            scan_query: Some(ScanQuery {
                current_parallel_id: Some(0),
                max_parallel: Some(1),
                ..scan
            }),
            timeout_ms: None,
        };
        self.client.call("ParallelScan", &request).await
    }
}

fn ids(page: &ParallelScanResponse) -> String {
    page.rows
        .iter()
        .map(|row| id(&decode_row(row.clone()).expect("a row")))
        .collect()
}

#[tokio::test]
async fn a_scan_gives_all_that_was_there_when_it_began() {
    let mut shops = Shops::open().await;
    let session = shops.session().await;
    let first = shops
        .scan(Some(session.clone()), everything(), None)
        .await
        .expect("a page");
    let row = decode_row(first.rows[0].clone()).expect("a row");
    assert_eq!(cells(&row), [("price", Value::Integer(10))]);
    // What comes now isn't in it.
    shops.put("bb", vec![cell("price", 25_i64)]).await;
    assert_eq!(shops.ids(term("price", 25_i64)).await, "bb");
    let mut pages = vec![ids(&first)];
    let mut token = first.next_token;
    while let Some(next) = token {
        let page = shops
            .scan(Some(session.clone()), everything(), Some(next))
            .await
            .expect("a page");
        pages.push(ids(&page));
        token = page.next_token;
    }
    assert_eq!(pages, ["ab", "cd", "e"]);
    shops.end().await;
}

#[tokio::test]
async fn a_scan_without_a_session_sees_what_is_there() {
    let mut shops = Shops::open().await;
    let first = shops.scan(None, everything(), None).await.expect("a page");
    shops.put("bb", vec![cell("price", 25_i64)]).await;
    assert_eq!(shops.ids(term("price", 25_i64)).await, "bb");
    let second = shops
        .scan(None, everything(), first.next_token.clone())
        .await
        .expect("a page");
    assert_eq!([ids(&first), ids(&second)], ["ab", "bbc"]);
    let tea = shops.scan(None, term("type", "tea"), None).await.expect("a page");
    assert_eq!((ids(&tea).as_str(), tea.next_token), ("ab", None));
    shops.end().await;
}

/// Lets time pass, in which nothing happens.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn a_session_is_gone_when_no_page_was_asked_for_in_its_time() {
    let mut shops = Shops::open().await;
    for alive_time in [Some(60), None] {
        let session = shops.session().await;
        let mut token = None;
        let mut found = String::new();
        for passes in [0, 40, 40] {
            pass(Duration::from_secs(passes)).await;
            let scan = ScanQuery {
                query: Some(everything()),
                limit: Some(1),
                alive_time,
                token,
                ..ScanQuery::default()
            };
            let page = shops.scan_as(Some(session.clone()), scan).await.expect("a page");
            found += &ids(&page);
            token = page.next_token;
        }
        assert_eq!(found, "abc");
        pass(Duration::from_secs(60)).await;
        let expired = shops.scan(Some(session), everything(), token).await;
        assert_eq!(expired.expect_err("refused").code, "OTSSessionExpired");
    }
    shops.end().await;
}

/// Each keeps what was there when it began.
#[tokio::test]
async fn an_access_key_has_four_scans_that_go_on() {
    let mut shops = Shops::open().await;
    let mut scans = Vec::new();
    for _ in 0..4 {
        let session = shops.session().await;
        let page = shops.scan(Some(session.clone()), everything(), None).await;
        scans.push((session, page.expect("a page").next_token));
    }
    let fifth = shops.session().await;
    let busy = shops.scan(Some(fifth.clone()), everything(), None).await;
    busy.expect_err("refused")
        .is(503, "OTSServerBusy", "Server is busy.");
    // One that is at its end makes room.
    let (session, mut token) = scans.remove(0);
    while token.is_some() {
        let page = shops.scan(Some(session.clone()), everything(), token).await;
        token = page.expect("a page").next_token;
    }
    let page = shops.scan(Some(fifth), everything(), None).await;
    assert_eq!(ids(&page.expect("a page")), "ab");
    shops.end().await;
}

#[tokio::test]
async fn a_page_of_a_scan_has_a_thousand_rows_at_most() {
    let mut shops = Shops::open().await;
    for part in 0..6 {
        let rows = (0..200).map(|nth| pb::RowInBatchWriteRowRequest {
            r#type: pb::OperationType::Put.into(),
            row_change: row(
                key([("id", format!("r{part}{nth:03}").as_str().into())]),
                vec![cell("price", 7_i64)],
            ),
            condition: ignore(),
            return_content: None,
        });
        let request = pb::BatchWriteRowRequest {
            tables: vec![pb::TableInBatchWriteRowRequest {
                table_name: TABLE.to_owned(),
                rows: rows.collect(),
            }],
            ..pb::BatchWriteRowRequest::default()
        };
        let written: Result<pb::BatchWriteRowResponse, _> =
            shops.client.call("BatchWriteRow", &request).await;
        let written = written.expect("an answer");
        assert!(written.tables[0].rows.iter().all(|row| row.is_ok));
    }
    // Written last, so that a search that includes it includes them.
    shops.put("z", vec![cell("price", 8_i64)]).await;
    assert_eq!(shops.ids(term("price", 8_i64)).await, "z");
    let scan = |limit: Option<i32>, token: Option<Bytes>| ScanQuery {
        query: Some(term("price", 7_i64)),
        limit,
        token,
        ..ScanQuery::default()
    };
    for limit in [Some(2_000), None] {
        let first = shops.scan_as(None, scan(limit, None)).await.expect("a page");
        assert_eq!(first.rows.len(), 1_000);
        let second = shops.scan_as(None, scan(limit, first.next_token)).await;
        let second = second.expect("a page");
        assert_eq!((second.rows.len(), second.next_token), (200, None));
    }
    for limit in [0, 2_001] {
        let refused = shops.scan_as(None, scan(Some(limit), None)).await;
        let said = refused.expect_err("refused").message;
        let expected = format!("The limit of a scan is {limit}, and has to be 1 to 2000.");
        assert_eq!(said, expected);
    }
    shops.end().await;
}

#[tokio::test]
async fn what_is_no_scan_is_refused() {
    let mut shops = Shops::open().await;
    let other = shops
        .scan(Some(Bytes::from_static(b"other")), everything(), None)
        .await
        .expect_err("refused");
    assert_eq!(other.code, "OTSSessionExpired");
    let token = Some(Bytes::from_static(b"no token"));
    let wrong = shops.scan(None, everything(), token).await.expect_err("refused");
    assert!(wrong.message.starts_with("Invalid token"), "{wrong:?}");
    let scan = |scan: ScanQuery| ParallelScanRequest {
        table_name: named(TABLE),
        index_name: named(INDEX),
        scan_query: Some(ScanQuery {
            query: Some(everything()),
            ..scan
        }),
        ..ParallelScanRequest::default()
    };
    let limited = |limit| {
        scan(ScanQuery {
            limit: Some(limit),
            ..ScanQuery::default()
        })
    };
    let second = scan(ScanQuery {
        current_parallel_id: Some(1),
        max_parallel: Some(2),
        ..ScanQuery::default()
    });
    for (request, says) in [
        (second, "has 1 split"),
        (limited(0), "is 0, and has to be 1 to 2000"),
        (limited(2_001), "is 2001, and has to be 1 to 2000"),
    ] {
        let refused = shops.client.refused("ParallelScan", &request).await;
        assert!(refused.message.contains(says), "{refused:?}");
    }
    let most: Result<ParallelScanResponse, _> = shops.client.call("ParallelScan", &limited(2_000)).await;
    most.expect("a page");
    shops.end().await;
}

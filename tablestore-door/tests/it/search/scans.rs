//! Scans.

use bytes::Bytes;
use souk_tablestore::Value;
use souk_tablestore::messages::{
    ColumnReturnType, ComputeSplitsRequest, ComputeSplitsResponse, ParallelScanRequest, ParallelScanResponse,
    Query, ScanQuery, SearchIndexSplitsOptions,
};
use souk_tablestore::plainbuffer::decode_row;

use super::{INDEX, Shops, TABLE, cell, columns, everything, id, named, term};
use crate::client::{Refused, cells};

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
        let request = ParallelScanRequest {
            table_name: named(TABLE),
            index_name: named(INDEX),
            columns_to_get: columns(ColumnReturnType::Specified, &["price"]),
            session_id: session,
            scan_query: Some(ScanQuery {
                query: Some(query),
                limit: Some(2),
                alive_time: Some(60),
                token,
                current_parallel_id: Some(0),
                max_parallel: Some(1),
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

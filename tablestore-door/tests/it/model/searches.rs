//! Searches and scans by search indexes.

use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use souk_tablestore::PlainRow;
use souk_tablestore::messages::{
    self as pb, ColumnReturnType, ComputeSplitsRequest, ComputeSplitsResponse, ParallelScanRequest,
    ParallelScanResponse, ScanQuery, SearchIndexSplitsOptions, SearchQuery, SearchRequest, SearchResponse,
};
use souk_tablestore::plainbuffer::decode_row;

use super::Program;
use super::datum::Datum;
use super::row::Row;
use super::table::{Rows, Table};
use super::wanted::Wanted;
use crate::client::{Refused, answered};

/// How long an index may take to be there.
const BUILT_MAX: Duration = Duration::from_secs(60);

/// In which order hits come.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Key,
    KeyDown,
    Size,
    SizeDown,
}

impl Order {
    fn wire(self) -> Option<pb::Sort> {
        let direction = |down: bool| match down {
            true => Some(pb::SortOrder::Desc.into()),
            false => Some(pb::SortOrder::Asc.into()),
        };
        let sorter = match self {
            Self::Key => return None,
            Self::KeyDown => pb::Sorter {
                pk_sort: Some(pb::PrimaryKeySort {
                    order: direction(true),
                }),
                ..pb::Sorter::default()
            },
            Self::Size | Self::SizeDown => pb::Sorter {
                field_sort: Some(pb::FieldSort {
                    field_name: Some("size".to_owned()),
                    order: direction(self == Self::SizeDown),
                    ..pb::FieldSort::default()
                }),
                ..pb::Sorter::default()
            },
        };
        Some(pb::Sort {
            sorter: vec![sorter],
            disable_default_pk_sorter: None,
        })
    }
}

impl Program {
    pub(super) async fn search(&mut self) {
        let name = self.table();
        let Some(table) = self.tables.get(name).cloned() else {
            return;
        };
        let Some(index) = self.random.choice(table.searched.keys()) else {
            return;
        };
        let others = table.searched_for(index);
        if others != [index.as_str()] {
            self.met("a search that is shared out");
        }
        // What can be searched wherever it goes.
        let mut fields = table.searched[others[0]].searchable();
        fields.retain(|field| {
            others
                .iter()
                .all(|other| table.searched[*other].searchable().contains(field))
        });
        let rows = self.rows(name, None);
        let random = &mut self.random;
        let mut wanted = Wanted::draw(random, &fields, 0);
        let order = random
            .choice([Order::Key, Order::KeyDown, Order::Size, Order::SizeDown])
            .expect("one");
        if matches!(order, Order::Size | Order::SizeDown) {
            // Rows without what they are sorted by have a place of their own, which isn't looked at here.
            wanted = Wanted::Bool {
                must: vec![wanted, Wanted::Has("size")],
                must_not: Vec::new(),
                should: Vec::new(),
            };
        }
        let limit = random.choice([2, 5, 100]).expect("one");
        let shows_columns = random.bool();
        let expected = hits(&table, &rows, &wanted, order, shows_columns);
        let mut query = SearchQuery {
            limit: Some(limit),
            query: Some(wanted.wire()),
            sort: order.wire(),
            get_total_count: Some(true),
            ..SearchQuery::default()
        };
        let mut found = Vec::new();
        loop {
            let page = self
                .search_page(name, index, &query, shows_columns)
                .await
                .expect("an answer");
            let count = i64::try_from(expected.len()).expect("few");
            assert_eq!(
                (page.total_hits, page.is_all_succeeded),
                (Some(count), Some(true)),
                "{wanted:?}"
            );
            found.extend(
                page.rows
                    .iter()
                    .map(|row| decode_row(row.clone()).expect("a row")),
            );
            match page.next_token {
                None => break,
                Some(token) => {
                    assert!(!page.rows.is_empty());
                    query.token = Some(token);
                    query.sort = None;
                    self.met("a search by tokens");
                }
            }
        }
        assert_eq!(found, expected, "{wanted:?}");
        self.met("a search");
    }

    /// Searches, including all writes.
    async fn search_page(
        &mut self,
        table: &str,
        index: &str,
        query: &SearchQuery,
        shows_columns: bool,
    ) -> Result<SearchResponse, Refused> {
        let request = SearchRequest {
            table_name: Some(table.to_owned()),
            index_name: Some(index.to_owned()),
            columns_to_get: Some(columns(shows_columns)),
            search_query: Some(query.encode_to_vec().into()),
            routing_values: Vec::new(),
            timeout_ms: None,
        };
        let sequence = self.last_sequence();
        self.say("Search", &(table, index, sequence, query));
        self.seeing("Search", &request, sequence).await
    }

    fn last_sequence(&self) -> u64 {
        self.server().engine.database().last_sequence()
    }

    /// Calls an operation that is to include the writes up to a sequence.
    async fn seeing<M: Message + Default>(
        &mut self,
        operation: &str,
        request: &impl Message,
        sequence: u64,
    ) -> Result<M, Refused> {
        let mut sent = self
            .client
            .request(operation, request.encode_to_vec(), Duration::ZERO);
        sent.headers
            .insert("x-souk-min-sequence".to_owned(), sequence.to_string());
        answered(&self.client.send(&sent).await)
    }

    /// Reads all that a query finds, page by page: in a session as it was when that began, whatever is written meanwhile.
    pub(super) async fn scan(&mut self) {
        let name = self.table();
        let Some(table) = self.tables.get(name).cloned() else {
            return;
        };
        let Some((index, searched)) = self.random.choice(&table.searched) else {
            return;
        };
        let wanted = Wanted::draw(&mut self.random, &searched.searchable(), 0);
        let shows_columns = self.random.bool();
        let expected = hits(&table, &self.rows(name, None), &wanted, Order::Key, shows_columns);
        let mut session_id = None;
        if self.random.bool() {
            session_id = Some(self.session(name, index).await);
        }
        let limit = self.random.choice([2, 5, 2_000]).expect("one");
        let mut request = scan_of(name, index, &wanted, limit, shows_columns);
        request.session_id.clone_from(&session_id);
        // That of the first page: it may see nothing later.
        let sequence = self.last_sequence();
        let mut found = Vec::new();
        loop {
            self.say("ParallelScan", &(sequence, &request));
            let page: Result<ParallelScanResponse, _> = self.seeing("ParallelScan", &request, sequence).await;
            let page = page.expect("a page");
            assert!(page.rows.len() <= usize::try_from(limit).expect("few"));
            let rows = page.rows.iter().cloned();
            found.extend(rows.map(|row| decode_row(row).expect("a row")));
            let Some(token) = page.next_token else {
                break;
            };
            assert!(!page.rows.is_empty());
            request.scan_query.as_mut().expect("a query").token = Some(token);
            self.met("a scan page by page");
            if session_id.is_some() && self.random.bool() {
                self.write().await;
                self.met("a write between the pages of a scan");
            }
        }
        assert_eq!(found, expected, "{wanted:?}");
        self.met(match session_id {
            Some(_) => "a scan in a session",
            None => "a scan without a session",
        });
    }

    async fn session(&mut self, table: &str, index: &str) -> Bytes {
        let request = ComputeSplitsRequest {
            table_name: Some(table.to_owned()),
            search_index_splits_options: Some(SearchIndexSplitsOptions {
                index_name: Some(index.to_owned()),
            }),
        };
        let splits: ComputeSplitsResponse = self.call("ComputeSplits", &request).await.expect("splits");
        assert_eq!(splits.splits_size, Some(1));
        splits.session_id.expect("a session")
    }

    /// Waits until an index answers with all writes, which it then goes on doing until the next start.
    pub(super) async fn until_it_answers(&mut self, table: &str, index: &str) {
        let is_being_built = |refused: &Refused| refused.code == "OTSTableNotReady";
        self.until_found(table, index, &Wanted::All, is_being_built).await;
    }

    /// Waits until an index answers, which is refused until then for a reason that passes. Scans alone are never another index's.
    pub(super) async fn until_found(
        &mut self,
        table: &str,
        index: &str,
        wanted: &Wanted,
        passes: impl Fn(&Refused) -> bool,
    ) {
        let request = scan_of(table, index, wanted, 1, false);
        let sequence = self.last_sequence();
        let asking = async {
            loop {
                let answer: Result<ParallelScanResponse, _> =
                    self.seeing("ParallelScan", &request, sequence).await;
                match answer {
                    Ok(_) => return,
                    Err(refused) => assert!(passes(&refused), "{refused:?}"),
                }
            }
        };
        tokio::time::timeout(BUILT_MAX, asking).await.expect("in time");
    }
}

/// What of rows is shown besides their keys.
fn columns(shows_columns: bool) -> pb::ColumnsToGet {
    let kind = match shows_columns {
        true => ColumnReturnType::All,
        false => ColumnReturnType::None,
    };
    pb::ColumnsToGet {
        return_type: Some(kind.into()),
        column_names: Vec::new(),
    }
}

/// The first page of a scan.
fn scan_of(
    table: &str,
    index: &str,
    wanted: &Wanted,
    limit: i32,
    shows_columns: bool,
) -> ParallelScanRequest {
    ParallelScanRequest {
        table_name: Some(table.to_owned()),
        index_name: Some(index.to_owned()),
        columns_to_get: Some(columns(shows_columns)),
        session_id: None,
        scan_query: Some(ScanQuery {
            query: Some(wanted.wire()),
            limit: Some(limit),
            alive_time: Some(300),
            token: None,
            current_parallel_id: Some(0),
            max_parallel: Some(1),
        }),
        timeout_ms: None,
    }
}

/// What a search is to show.
fn hits(table: &Table, rows: &Rows, wanted: &Wanted, order: Order, shows_columns: bool) -> Vec<PlainRow> {
    let mut hits: Vec<_> = rows.iter().filter(|(_, row)| wanted.holds(row)).collect();
    let size = |row: &Row| match row.newest("size") {
        Some(Datum::Integer(number)) => *number,
        other => panic!("no size: {other:?}"),
    };
    match order {
        Order::Key => {}
        Order::KeyDown => hits.reverse(),
        // Those of one size are in the order of their keys.
        Order::Size => hits.sort_by_key(|(_, row)| size(row)),
        Order::SizeDown => hits.sort_by_key(|(_, row)| std::cmp::Reverse(size(row))),
    }
    let told = hits.into_iter().map(|(key, row)| {
        let mut newest = row.clone();
        for versions in newest.cells.values_mut() {
            while versions.len() > 1 {
                versions.pop_first();
            }
        }
        newest.told(table.wire_key(key), |_| shows_columns)
    });
    told.collect()
}

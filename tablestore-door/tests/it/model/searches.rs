//! Search indexes and searches.

use std::ops::Bound;
use std::time::Duration;

use fastrand::Rng;
use prost::Message as _;
use souk_tablestore::messages::{
    self as pb, ColumnReturnType, FieldSchema, FieldType, Query, QueryType, SearchQuery, SearchRequest,
    SearchResponse,
};
use souk_tablestore::plainbuffer::decode_row;
use souk_tablestore::{PlainRow, variant};

use super::datum::{Datum, Kind};
use super::row::Row;
use super::table::{Rows, Table};
use super::{Fault, Program};
use crate::client::{Refused, answered};

/// How long an index may take to be there.
const BUILT_MAX: Duration = Duration::from_secs(60);

/// What is searched for.
#[derive(Clone, Debug)]
enum Wanted {
    All,
    Is(&'static str, Datum),
    Within(Bound<i64>, Bound<i64>),
    Begins(&'static str),
    Has(&'static str),
    Bool {
        must: Vec<Wanted>,
        must_not: Vec<Wanted>,
        should: Vec<Wanted>,
    },
}

impl Wanted {
    fn draw(random: &mut Rng, depth: usize) -> Self {
        match random.u8(..if depth < 2 { 12 } else { 9 }) {
            0 => Self::All,
            1..4 => {
                let column = random.choice(["size", "word"]).expect("one");
                Self::Is(column, Datum::draw(random, column))
            }
            4..6 => {
                let mut bound = |number: i64| match random.u8(..3) {
                    0 => Bound::Unbounded,
                    1 => Bound::Included(number),
                    _ => Bound::Excluded(number),
                };
                let (from, to) = (bound(-1), bound(2));
                match (from, to) {
                    (Bound::Unbounded, Bound::Unbounded) => Self::All,
                    (from, to) => Self::Within(from, to),
                }
            }
            6 => Self::Begins(random.choice(["t", "Tea", "手"]).expect("one")),
            7 | 8 => Self::Has(random.choice(["size", "word"]).expect("one")),
            _ => {
                let mut some = |most: usize| {
                    let count = random.usize(..most);
                    (0..count)
                        .map(|_| Self::draw(random, depth + 1))
                        .collect::<Vec<_>>()
                };
                let (must, must_not, should) = (some(3), some(2), some(3));
                match must.is_empty() && must_not.is_empty() && should.is_empty() {
                    true => Self::All,
                    false => Self::Bool {
                        must,
                        must_not,
                        should,
                    },
                }
            }
        }
    }

    fn holds(&self, row: &Row) -> bool {
        match self {
            Self::All => true,
            Self::Is(column, value) => row.newest(column) == Some(value),
            Self::Within(from, to) => match row.newest("size") {
                Some(Datum::Integer(number)) => std::ops::RangeBounds::contains(&(*from, *to), number),
                _ => false,
            },
            Self::Begins(prefix) => {
                matches!(row.newest("word"), Some(Datum::Text(text)) if text.starts_with(prefix))
            }
            Self::Has(column) => row.newest(column).is_some(),
            Self::Bool {
                must,
                must_not,
                should,
            } => {
                let holds = |part: &Self| part.holds(row);
                // One of those that should has to where nothing else says what is found.
                let needs_one = must.is_empty() && !should.is_empty();
                must.iter().all(holds)
                    && !must_not.iter().any(holds)
                    && (!needs_one || should.iter().any(holds))
            }
        }
    }

    fn wire(&self) -> Query {
        let query = |kind: QueryType, body: Vec<u8>| Query {
            r#type: Some(kind.into()),
            query: Some(body.into()),
        };
        let named = |name: &str| Some(name.to_owned());
        match self {
            Self::All => query(QueryType::MatchAll, pb::MatchAllQuery {}.encode_to_vec()),
            Self::Is(column, value) => {
                let body = pb::TermQuery {
                    field_name: named(column),
                    term: Some(variant::encode(&value.wire())),
                    weight: None,
                };
                query(QueryType::Term, body.encode_to_vec())
            }
            Self::Within(from, to) => {
                let end = |bound: &Bound<i64>| match bound {
                    Bound::Unbounded => (None, None),
                    Bound::Included(number) => (Some(variant::encode(&(*number).into())), Some(true)),
                    Bound::Excluded(number) => (Some(variant::encode(&(*number).into())), Some(false)),
                };
                let ((range_from, include_lower), (range_to, include_upper)) = (end(from), end(to));
                let body = pb::RangeQuery {
                    field_name: named("size"),
                    range_from,
                    range_to,
                    include_lower,
                    include_upper,
                };
                query(QueryType::Range, body.encode_to_vec())
            }
            Self::Begins(prefix) => {
                let body = pb::PrefixQuery {
                    field_name: named("word"),
                    prefix: named(prefix),
                    ..pb::PrefixQuery::default()
                };
                query(QueryType::Prefix, body.encode_to_vec())
            }
            Self::Has(column) => {
                let body = pb::ExistsQuery {
                    field_name: named(column),
                };
                query(QueryType::Exists, body.encode_to_vec())
            }
            Self::Bool {
                must,
                must_not,
                should,
            } => {
                let wire = |parts: &[Self]| parts.iter().map(Self::wire).collect();
                let body = pb::BoolQuery {
                    must_queries: wire(must),
                    must_not_queries: wire(must_not),
                    should_queries: wire(should),
                    ..pb::BoolQuery::default()
                };
                query(QueryType::Bool, body.encode_to_vec())
            }
        }
    }
}

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
        let Some(index) = self.random.choice(&table.searched) else {
            return;
        };
        let rows = self.rows(name, None);
        let random = &mut self.random;
        let mut wanted = Wanted::draw(random, 0);
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
        let kind = match shows_columns {
            true => ColumnReturnType::All,
            false => ColumnReturnType::None,
        };
        let request = SearchRequest {
            table_name: Some(table.to_owned()),
            index_name: Some(index.to_owned()),
            columns_to_get: Some(pb::ColumnsToGet {
                return_type: Some(kind.into()),
                column_names: Vec::new(),
            }),
            search_query: Some(query.encode_to_vec().into()),
            routing_values: Vec::new(),
            timeout_ms: None,
        };
        let sequence = self.server().engine.database().last_sequence();
        self.say("Search", &(index, sequence, query));
        let mut sent = self
            .client
            .request("Search", request.encode_to_vec(), Duration::ZERO);
        sent.headers
            .insert("x-souk-min-sequence".to_owned(), sequence.to_string());
        answered(&self.client.send(&sent).await)
    }

    pub(super) async fn create_search_index(&mut self, name: &'static str, table: &Table) {
        // Of rows that expire, what is found is what isn't freed yet.
        if table.options.life.is_some() || table.searched.len() == 2 {
            return;
        }
        let index = format!(
            "{name}_Search_{}",
            table.searched.iter().filter(|index| index.ends_with('0')).count()
        );
        let field = |name: &str, kind: FieldType| FieldSchema {
            field_name: Some(name.to_owned()),
            field_type: Some(kind.into()),
            ..FieldSchema::default()
        };
        let mut field_schemas = vec![field("word", FieldType::Keyword), field("size", FieldType::Long)];
        match table.keys[0] {
            (key, Kind::Text) => field_schemas.push(field(key, FieldType::Keyword)),
            (key, Kind::Integer) => field_schemas.push(field(key, FieldType::Long)),
            (_, Kind::Bytes) => {}
        }
        let request = pb::CreateSearchIndexRequest {
            table_name: name.to_owned(),
            index_name: index.clone(),
            schema: Some(pb::IndexSchema {
                field_schemas,
                ..pb::IndexSchema::default()
            }),
            ..pb::CreateSearchIndexRequest::default()
        };
        let created: Result<pb::CreateSearchIndexResponse, _> =
            self.call("CreateSearchIndex", &request).await;
        created.expect("created");
        self.until_it_answers(name, &index).await;
        let again: Result<pb::CreateSearchIndexResponse, _> = self.call("CreateSearchIndex", &request).await;
        Fault::Exists.is(&again.expect_err("it is there"));
        self.tables.get_mut(name).expect("a table").searched.push(index);
        self.met("a search index created");
    }

    /// Waits until an index answers, which it then goes on doing until the next start.
    pub(super) async fn until_it_answers(&mut self, table: &str, index: &str) {
        let query = SearchQuery {
            query: Some(Wanted::All.wire()),
            ..SearchQuery::default()
        };
        let asking = async {
            while let Err(refused) = self.search_page(table, index, &query, false).await {
                assert_eq!(refused.code, "OTSTableNotReady", "{refused:?}");
            }
        };
        tokio::time::timeout(BUILT_MAX, asking).await.expect("in time");
    }

    pub(super) async fn delete_search_index(&mut self, name: &'static str, table: &Table) {
        let Some(index) = self.random.choice(&table.searched) else {
            return;
        };
        let request = pb::DeleteSearchIndexRequest {
            table_name: Some(name.to_owned()),
            index_name: Some(index.clone()),
        };
        let deleted: Result<pb::DeleteSearchIndexResponse, _> =
            self.call("DeleteSearchIndex", &request).await;
        deleted.expect("deleted");
        let again: Result<pb::DeleteSearchIndexResponse, _> = self.call("DeleteSearchIndex", &request).await;
        Fault::NoTable.is(&again.expect_err("it is gone"));
        let searched = &mut self.tables.get_mut(name).expect("a table").searched;
        searched.retain(|other| other != index);
        let list = pb::ListSearchIndexRequest {
            table_name: Some(name.to_owned()),
        };
        let listed: pb::ListSearchIndexResponse = self.call("ListSearchIndex", &list).await.expect("a list");
        let mut listed: Vec<_> = listed
            .indices
            .into_iter()
            .filter_map(|index| index.index_name)
            .collect();
        let mut expected = self.tables[name].searched.clone();
        listed.sort();
        expected.sort();
        assert_eq!(listed, expected);
        self.met("a search index deleted");
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

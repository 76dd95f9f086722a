//! Random programs of calls on tables and rows against an oracle, with restarts between them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use fastrand::Rng;
use souk_api::testing::{Running, reopen};
use souk_proto::search::v1::{Query, Search, TermQuery, TotalRequest, query, total_request};
use souk_proto::table::v1::key_range::{High, Low};
use souk_proto::table::v1::row_write::Operation;
use souk_proto::table::v1::{
    AbortTransactionRequest, BatchGetRowsRequest, BatchWriteRowsRequest, BeginTransactionRequest,
    ColumnFilter, CommitTransactionRequest, Comparison, Condition, DeleteRowRequest, DeleteTableRequest,
    Existence, ExportRowsRequest, Filter, GetRowRequest, GetTableRequest, IndexRange, IndexValues, Key,
    KeyRange, PutRowRequest, RangeIndexRequest, RangeRowsRequest, ReadOptions, ReturnRow, Returning, Row,
    RowDelete, RowPut, RowUpdate, RowWrite, SearchRowsRequest, StreamRowsRequest, UpdateRowRequest,
    UpdateTableRequest, WatchRowsRequest, filter, index_range,
};
use souk_proto::r#type::v1::{Value, value};
use souk_table_svc::TableServices;
use tonic::{Code, Status};

use crate::{Client, client, create, int, notes, open, text};

type Columns = BTreeMap<String, Value>;
type RowKey = (String, i64);

const PEOPLE: [&str; 4] = ["ann", "bob", "", "奶茶"];
const WORDS: [&str; 4] = ["tea", "Tea", "", "手机"];
const NAMES: [&str; 4] = ["word", "size", "mixed", "visits"];

/// A row as the model has it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Known {
    columns: Columns,
    revision: i64,
}

/// What is done to a row.
#[derive(Clone, Debug)]
enum Change {
    Put(Columns),
    Update {
        put: Columns,
        increment: BTreeMap<String, i64>,
        delete: Vec<String>,
    },
    Delete,
}

/// On what condition.
#[derive(Clone, Debug, Default)]
struct When {
    existence: Existence,
    revision: Option<i64>,
    /// `word` is this, or `size` is larger than this.
    word: Option<&'static str>,
    size: Option<i64>,
}

/// A transaction: its partition, what it has made of the rows of that, and its name.
#[derive(Debug)]
struct Held {
    id: String,
    person: String,
    rows: BTreeMap<RowKey, Known>,
}

struct Program {
    running: Option<Running<TableServices>>,
    client: Option<Client>,
    rows: BTreeMap<RowKey, Known>,
    /// The changes that a watch has to tell: sequence, key, columns after it.
    changes: Vec<(i64, RowKey, Option<Columns>)>,
    held: Option<Held>,
    /// Requests with their ids that were answered, and how.
    repeatable: Vec<(PutRowRequest, i64, RowKey)>,
    sequence: i64,
    random: Rng,
    happened: BTreeMap<&'static str, usize>,
}

fn key_of(row: &Row) -> RowKey {
    let [person, number] = row.key.as_slice() else {
        panic!("a key of two values: {row:?}");
    };
    match (&person.kind, &number.kind) {
        (Some(value::Kind::StringValue(person)), Some(value::Kind::IntValue(number))) => {
            (person.clone(), *number)
        }
        _ => panic!("a key of text and number: {row:?}"),
    }
}

fn wire_key((person, number): &RowKey) -> Vec<Value> {
    vec![text(person), int(*number)]
}

fn known(row: &Row) -> (RowKey, Known) {
    let known = Known {
        columns: row.columns.clone(),
        revision: row.revision,
    };
    (key_of(row), known)
}

fn integer(value: Option<&Value>) -> Option<i64> {
    match value?.kind {
        Some(value::Kind::IntValue(number)) => Some(number),
        _ => None,
    }
}

impl When {
    fn random(random: &mut Rng, present: Option<&Known>) -> Self {
        match random.u8(..8) {
            0 => Self {
                existence: Existence::MustExist,
                ..Self::default()
            },
            1 => Self {
                existence: Existence::MustNotExist,
                ..Self::default()
            },
            2 => Self {
                revision: present.map(|present| present.revision - i64::from(random.bool())),
                ..Self::default()
            },
            3 => Self {
                word: random.choice(WORDS),
                ..Self::default()
            },
            4 => Self {
                size: Some(random.i64(-3..3)),
                ..Self::default()
            },
            _ => Self::default(),
        }
    }

    fn holds(&self, row: Option<&Known>) -> bool {
        let exists = match self.existence {
            Existence::Unspecified => true,
            Existence::MustExist => row.is_some(),
            Existence::MustNotExist => row.is_none(),
        };
        let same = self
            .revision
            .is_none_or(|revision| row.is_some_and(|row| row.revision == revision));
        let column = |name: &str| row.and_then(|row| row.columns.get(name));
        let word = self.word.is_none_or(|word| column("word") == Some(&text(word)));
        let size = self
            .size
            .is_none_or(|size| integer(column("size")).is_some_and(|number| number > size));
        exists && same && word && size
    }

    fn filter(&self) -> Option<Filter> {
        let compared = |column: &str, comparison: Comparison, value: Value| Filter {
            kind: Some(filter::Kind::Column(ColumnFilter {
                column: column.to_owned(),
                comparison: comparison.into(),
                value: Some(value),
                ..ColumnFilter::default()
            })),
        };
        let word = self
            .word
            .map(|word| compared("word", Comparison::Equal, text(word)));
        word.or_else(|| {
            self.size
                .map(|size| compared("size", Comparison::Greater, int(size)))
        })
    }

    fn to_wire(&self) -> Option<Condition> {
        Some(Condition {
            existence: self.existence.into(),
            revision: self.revision,
            columns: self.filter(),
        })
    }
}

impl Change {
    fn random(random: &mut Rng) -> Self {
        match random.u8(..8) {
            0..3 => Self::Put(random_columns(random)),
            3..6 => {
                let mut put = random_columns(random);
                let mut increment = BTreeMap::new();
                let mut delete = Vec::new();
                for name in NAMES {
                    match random.u8(..4) {
                        0 => {
                            put.remove(name);
                            increment.insert(name.to_owned(), random.i64(-3..4));
                        }
                        1 => {
                            put.remove(name);
                            delete.push(name.to_owned());
                        }
                        _ => {}
                    }
                }
                Self::Update {
                    put,
                    increment,
                    delete,
                }
            }
            _ => Self::Delete,
        }
    }

    /// The row after it; an error where it can't be done. The outer `None` is that nothing happens.
    fn apply(&self, before: Option<&Known>) -> Result<Option<Option<Columns>>, ()> {
        match self {
            Self::Put(columns) => Ok(Some(Some(columns.clone()))),
            Self::Delete => Ok(before.map(|_| None)),
            Self::Update {
                put,
                increment,
                delete,
            } => {
                if before.is_none() && put.is_empty() && increment.is_empty() {
                    return Ok(None);
                }
                let mut columns = before.map(|row| row.columns.clone()).unwrap_or_default();
                columns.extend(put.clone());
                for (name, by) in increment {
                    let sum = match columns.get(name) {
                        None => *by,
                        held => integer(held).and_then(|held| held.checked_add(*by)).ok_or(())?,
                    };
                    columns.insert(name.clone(), int(sum));
                }
                columns.retain(|name, _| !delete.contains(name));
                Ok(Some(Some(columns)))
            }
        }
    }

    fn operation(&self, key: &RowKey) -> Operation {
        let key = wire_key(key);
        match self.clone() {
            Self::Put(columns) => Operation::Put(RowPut {
                key,
                columns,
                cells: Vec::new(),
            }),
            Self::Update {
                put,
                increment,
                delete,
            } => Operation::Update(RowUpdate {
                key,
                put,
                increment,
                delete,
                ..RowUpdate::default()
            }),
            Self::Delete => Operation::Delete(RowDelete { key }),
        }
    }
}

fn random_columns(random: &mut Rng) -> Columns {
    let mut columns = Columns::new();
    for name in NAMES {
        let value = match (name, random.u8(..4)) {
            (_, 0) => continue,
            ("word", _) => text(WORDS[random.usize(..WORDS.len())]),
            ("size" | "visits", _) => int(random.i64(-4..4)),
            (_, 1) => int(random.i64(..)),
            (_, 2) => Value {
                kind: Some(value::Kind::BoolValue(random.bool())),
            },
            _ => Value {
                kind: Some(value::Kind::BytesValue(vec![0, random.u8(..)].into())),
            },
        };
        columns.insert(name.to_owned(), value);
    }
    columns
}

fn all_returned() -> Option<Returning> {
    Some(Returning {
        row: ReturnRow::All.into(),
        columns: Vec::new(),
    })
}

impl Program {
    async fn new() -> Self {
        let (running, mut client) = open().await.expect("a service");
        create(&mut client, notes()).await.expect("the table");
        let sequence = running.service_sequence();
        Self {
            running: Some(running),
            client: Some(client),
            rows: BTreeMap::new(),
            changes: Vec::new(),
            held: None,
            repeatable: Vec::new(),
            sequence,
            random: souk_seeds::random(),
            happened: BTreeMap::new(),
        }
    }

    fn met(&mut self, what: &'static str) {
        *self.happened.entry(what).or_default() += 1;
    }

    fn key(&mut self) -> RowKey {
        let person = PEOPLE[self.random.usize(..PEOPLE.len())];
        (person.to_owned(), self.random.i64(-2..4))
    }

    /// Whether a transaction keeps others out of a row.
    fn is_held(&self, (person, _): &RowKey) -> bool {
        self.held.as_ref().is_some_and(|held| held.person == *person)
    }

    /// Notes what was committed.
    fn committed(&mut self, sequence: i64, key: &RowKey, after: Option<Columns>) {
        self.sequence = self.sequence.max(sequence);
        self.changes.push((sequence, key.clone(), after.clone()));
        match after {
            Some(columns) => {
                let revision = sequence;
                self.rows.insert(key.clone(), Known { columns, revision });
            }
            None => _ = self.rows.remove(key),
        }
    }

    async fn step(&mut self) {
        match self.random.u8(..40) {
            0..12 => self.write().await,
            12..14 => self.write_again().await,
            14..18 => self.batch().await,
            18..21 => self.get().await,
            21..23 => self.batch_get().await,
            23..26 => self.range().await,
            26 => self.stream().await,
            27..29 => self.index().await,
            29..32 => self.search().await,
            32..38 => self.transact().await,
            38 => self.table().await,
            _ => self.export().await,
        }
    }

    /// One row by a call of its own.
    async fn write(&mut self) {
        let key = self.key();
        let before = self.rows.get(&key).cloned();
        let change = Change::random(&mut self.random);
        let when = When::random(&mut self.random, before.as_ref());
        let table = "notes".to_owned();
        let (condition, wire) = (when.to_wire(), wire_key(&key));
        let answer: Result<(Option<Row>, i64), Status> = match change.clone() {
            Change::Put(columns) => {
                let request_id = match self.random.u8(..4) {
                    0 => uuid(&mut self.random),
                    _ => String::new(),
                };
                let request = PutRowRequest {
                    table,
                    key: wire,
                    columns,
                    condition,
                    returning: all_returned(),
                    request_id,
                    ..PutRowRequest::default()
                };
                let answer = self.client().put_row(request.clone()).await;
                let answer = answer.map(|answer| answer.into_inner());
                if let (Ok(answer), false) = (&answer, request.request_id.is_empty()) {
                    self.repeatable.push((request, answer.sequence, key.clone()));
                }
                answer.map(|answer| (answer.row, answer.sequence))
            }
            Change::Update {
                put,
                increment,
                delete,
            } => {
                let request = UpdateRowRequest {
                    table,
                    key: wire,
                    put,
                    increment,
                    delete,
                    condition,
                    returning: all_returned(),
                    ..UpdateRowRequest::default()
                };
                let answer = self.client().update_row(request).await;
                answer.map(|answer| {
                    let answer = answer.into_inner();
                    (answer.row, answer.sequence)
                })
            }
            Change::Delete => {
                let request = DeleteRowRequest {
                    table,
                    key: wire,
                    condition,
                    ..DeleteRowRequest::default()
                };
                let answer = self.client().delete_row(request).await;
                answer.map(|answer| (None, answer.into_inner().sequence))
            }
        };
        if self.is_held(&key) {
            let status = answer.expect_err("a held partition");
            assert_eq!(status.code(), Code::Aborted, "{status}");
            self.met("held");
            return;
        }
        if !when.holds(before.as_ref()) {
            let status = answer.expect_err("a condition that fails");
            let codes = [Code::AlreadyExists, Code::NotFound, Code::Aborted];
            assert!(codes.contains(&status.code()), "{status}");
            self.met("condition failed");
            return;
        }
        let Ok(after) = change.apply(before.as_ref()) else {
            let status = answer.expect_err("an increment of something else");
            assert_eq!(status.code(), Code::InvalidArgument, "{status}");
            self.met("increment refused");
            return;
        };
        let (returned, sequence) = answer.unwrap_or_else(|status| panic!("{change:?} {when:?}: {status}"));
        let Some(after) = after else {
            self.met("nothing to do");
            return;
        };
        if let Some(columns) = &after {
            let returned = returned.expect("the row");
            assert_eq!((&returned.columns, key_of(&returned)), (columns, key.clone()));
            assert_eq!(returned.revision, sequence);
        }
        self.committed(sequence, &key, after);
        self.met("written");
    }

    /// A request that was answered is answered the same.
    async fn write_again(&mut self) {
        if self.repeatable.is_empty() {
            return;
        }
        let nth = self.random.usize(..self.repeatable.len());
        let (request, sequence, key) = self.repeatable[nth].clone();
        let is_held = self.is_held(&key);
        let again = self
            .client()
            .put_row(request.clone())
            .await
            .expect("repeated")
            .into_inner();
        assert_eq!(again.sequence, sequence);
        let columns = again.row.expect("the row").columns;
        assert_eq!(columns, request.columns);
        let other = PutRowRequest {
            columns: Columns::from([("other".to_owned(), int(1))]),
            ..request
        };
        let refused = self.client().put_row(other).await.expect_err("another request");
        let code = match is_held {
            true => Code::Aborted,
            false => Code::InvalidArgument,
        };
        assert_eq!(refused.code(), code, "{refused}");
        self.met("repeated");
    }

    async fn batch(&mut self) {
        let mut keys = BTreeSet::new();
        for _ in 0..self.random.usize(1..6) {
            keys.insert(self.key());
        }
        let atomic = self.random.bool();
        let mut planned = Vec::new();
        for key in keys {
            let when = When::random(&mut self.random, self.rows.get(&key));
            planned.push((key, Change::random(&mut self.random), when));
        }
        let writes = planned.iter().map(|(key, change, when)| RowWrite {
            operation: Some(change.operation(key)),
            condition: when.to_wire(),
            returning: all_returned(),
        });
        let request = BatchWriteRowsRequest {
            table: "notes".to_owned(),
            writes: writes.collect(),
            atomic,
            ..BatchWriteRowsRequest::default()
        };
        let answer = self.client().batch_write_rows(request).await;
        let outcomes: Vec<_> = planned
            .iter()
            .map(|(key, change, when)| {
                let before = self.rows.get(key);
                match self.is_held(key) || !when.holds(before) {
                    true => Err(()),
                    false => change.apply(before),
                }
            })
            .collect();
        if atomic && outcomes.iter().any(Result::is_err) {
            answer.expect_err("one of them is refused");
            self.met("batch refused");
            return;
        }
        let answer = answer.expect("an answer").into_inner();
        assert_eq!(answer.results.len(), planned.len());
        for (((key, _, _), outcome), result) in planned.iter().zip(outcomes).zip(answer.results) {
            match outcome {
                Err(()) => {
                    let error = result.error.expect("an error of the row");
                    assert!(error.code != 0 && !error.reason.is_empty(), "{error:?}");
                    self.met("row refused");
                }
                Ok(None) => assert_eq!(result.error, None),
                Ok(Some(after)) => {
                    assert_eq!(result.error, None);
                    if let Some(columns) = &after {
                        assert_eq!(&result.row.expect("the row").columns, columns);
                    }
                    self.committed(result.sequence, key, after);
                    self.met(if atomic {
                        "written together"
                    } else {
                        "written by itself"
                    });
                }
            }
        }
    }

    async fn get(&mut self) {
        let key = self.key();
        let names: Vec<String> = NAMES
            .iter()
            .filter(|_| self.random.u8(..3) == 0)
            .map(|name| (*name).to_owned())
            .collect();
        let filter = When::random(&mut self.random, None);
        let filter = if names.is_empty() { filter } else { When::default() };
        let request = GetRowRequest {
            table: "notes".to_owned(),
            key: wire_key(&key),
            read: Some(ReadOptions {
                columns: names.clone(),
                filter: filter.filter(),
                ..ReadOptions::default()
            }),
            min_sequence: self.sequence,
            ..GetRowRequest::default()
        };
        let answer = self.client().get_row(request).await;
        let expected = self.rows.get(&key).cloned();
        let filter = When {
            existence: Existence::Unspecified,
            revision: None,
            ..filter
        };
        let expected = expected
            .filter(|row| filter.holds(Some(row)))
            .and_then(|mut row| {
                if !names.is_empty() {
                    row.columns.retain(|name, _| names.contains(name));
                    if row.columns.is_empty() {
                        return None;
                    }
                }
                Some(row)
            });
        match expected {
            Some(row) => {
                let found = answer.expect("the row").into_inner();
                assert_eq!(known(&found.row.expect("the row")), (key, row));
                assert!(found.sequence >= self.sequence && found.consumed.is_some());
                self.met("read");
            }
            None => {
                let status = answer.expect_err("no row");
                assert_eq!(status.code(), Code::NotFound, "{status}");
                self.met("not there");
            }
        }
    }

    async fn batch_get(&mut self) {
        let mut keys = BTreeSet::new();
        for _ in 0..self.random.usize(1..9) {
            keys.insert(self.key());
        }
        let request = BatchGetRowsRequest {
            table: "notes".to_owned(),
            keys: keys
                .iter()
                .map(|key| Key {
                    values: wire_key(key),
                })
                .collect(),
            ..BatchGetRowsRequest::default()
        };
        let answer = self
            .client()
            .batch_get_rows(request)
            .await
            .expect("an answer")
            .into_inner();
        let found: Vec<_> = answer
            .results
            .iter()
            .map(|result| result.row.as_ref().map(known))
            .collect();
        let expected: Vec<_> = keys
            .into_iter()
            .map(|key| self.rows.get(&key).cloned().map(|row| (key, row)))
            .collect();
        assert_eq!(found, expected);
        self.met("read together");
    }

    /// A random part of the keys: on the wire, and as bounds.
    fn bounds(&mut self) -> (KeyRange, Bound<RowKey>, Bound<RowKey>) {
        let (one, other) = (self.key(), self.key());
        let wire = |key: &RowKey| Key {
            values: wire_key(key),
        };
        let (low, low_bound) = match self.random.u8(..3) {
            0 => (Some(Low::Gte(wire(&one))), Bound::Included(one)),
            1 => (Some(Low::Gt(wire(&one))), Bound::Excluded(one)),
            _ => (None, Bound::Unbounded),
        };
        let (high, high_bound) = match self.random.u8(..3) {
            0 => (Some(High::Lt(wire(&other))), Bound::Excluded(other)),
            1 => (Some(High::Lte(wire(&other))), Bound::Included(other)),
            _ => (None, Bound::Unbounded),
        };
        (
            KeyRange {
                prefix: None,
                low,
                high,
            },
            low_bound,
            high_bound,
        )
    }

    fn within(
        rows: &BTreeMap<RowKey, Known>,
        low: &Bound<RowKey>,
        high: &Bound<RowKey>,
    ) -> Vec<(RowKey, Known)> {
        let above = |key: &RowKey| match low {
            Bound::Included(low) => key >= low,
            Bound::Excluded(low) => key > low,
            Bound::Unbounded => true,
        };
        let below = |key: &RowKey| match high {
            Bound::Included(high) => key <= high,
            Bound::Excluded(high) => key < high,
            Bound::Unbounded => true,
        };
        let rows = rows.iter().filter(|(key, _)| above(key) && below(key));
        rows.map(|(key, row)| (key.clone(), row.clone())).collect()
    }

    async fn range(&mut self) {
        let (range, low, high) = self.bounds();
        let descending = self.random.bool();
        let filter = When {
            word: self.random.choice(WORDS).filter(|_| self.random.u8(..3) == 0),
            ..When::default()
        };
        let mut request = RangeRowsRequest {
            table: "notes".to_owned(),
            range: Some(range),
            descending,
            read: Some(ReadOptions {
                filter: filter.filter(),
                ..ReadOptions::default()
            }),
            page_size: self.random.i32(1..6),
            ..RangeRowsRequest::default()
        };
        let mut found = Vec::new();
        loop {
            let page = self
                .client()
                .range_rows(request.clone())
                .await
                .expect("a page")
                .into_inner();
            assert!(page.rows.len() <= request.page_size as usize);
            found.extend(page.rows.iter().map(known));
            if page.next_page_token.is_empty() {
                break;
            }
            request.page_token = page.next_page_token;
        }
        let mut expected = Self::within(&self.rows, &low, &high);
        expected.retain(|(_, row)| filter.holds(Some(row)));
        if descending {
            expected.reverse();
        }
        assert_eq!(found, expected);
        self.met("range");
    }

    async fn stream(&mut self) {
        let (range, low, high) = self.bounds();
        let request = StreamRowsRequest {
            table: "notes".to_owned(),
            range: Some(range),
            page_size: 2,
            ..StreamRowsRequest::default()
        };
        let mut pages = self
            .client()
            .stream_rows(request)
            .await
            .expect("a stream")
            .into_inner();
        let mut found = Vec::new();
        while let Some(page) = pages.message().await.expect("a page") {
            found.extend(page.rows.iter().map(known));
        }
        assert_eq!(found, Self::within(&self.rows, &low, &high));
        self.met("stream");
    }

    /// By the secondary index of sizes, which may hold anything.
    async fn index(&mut self) {
        let least = self.random.i64(-4..4);
        let request = RangeIndexRequest {
            table: "notes".to_owned(),
            index: "by_size".to_owned(),
            range: Some(IndexRange {
                low: Some(index_range::Low::Gte(IndexValues {
                    values: vec![int(least)],
                })),
                high: Some(index_range::High::Lte(IndexValues {
                    values: vec![int(i64::MAX)],
                })),
                prefix: None,
            }),
            ..RangeIndexRequest::default()
        };
        let page = self
            .client()
            .range_index(request)
            .await
            .expect("a page")
            .into_inner();
        let found: Vec<_> = page
            .entries
            .iter()
            .map(|entry| {
                let row = Row {
                    key: entry.key.clone(),
                    ..Row::default()
                };
                (
                    integer(entry.values.first()),
                    key_of(&row),
                    entry.columns.get("word").cloned(),
                )
            })
            .collect();
        let mut expected: Vec<_> = self
            .rows
            .iter()
            .filter_map(|(key, row)| {
                let size = integer(row.columns.get("size")).filter(|size| *size >= least)?;
                Some((Some(size), key.clone(), row.columns.get("word").cloned()))
            })
            .collect();
        expected.sort_by(|one, other| (&one.0, &one.1).cmp(&(&other.0, &other.1)));
        assert_eq!(found, expected);
        self.met("index");
    }

    async fn search(&mut self) {
        let word = WORDS[self.random.usize(..WORDS.len())];
        let request = SearchRowsRequest {
            table: "notes".to_owned(),
            search: Some(Search {
                query: Some(Query {
                    kind: Some(query::Kind::Term(TermQuery {
                        field: "word".to_owned(),
                        value: Some(text(word)),
                        weight: None,
                    })),
                }),
                total: Some(TotalRequest {
                    kind: Some(total_request::Kind::Exact(true)),
                }),
                page_size: 1000,
                min_sequence: self.sequence,
                ..Search::default()
            }),
        };
        let found = self
            .client()
            .search_rows(request)
            .await
            .expect("hits")
            .into_inner();
        let hits: BTreeMap<RowKey, Known> = found
            .hits
            .iter()
            .map(|hit| known(hit.row.as_ref().expect("the row")))
            .collect();
        let rows = self.rows.iter();
        let expected: BTreeMap<RowKey, Known> = rows
            .filter(|(_, row)| row.columns.get("word") == Some(&text(word)))
            .map(|(key, row)| (key.clone(), row.clone()))
            .collect();
        assert_eq!(hits, expected);
        assert_eq!(
            found.total.map(|total| total.value),
            i64::try_from(expected.len()).ok()
        );
        self.met("search");
    }

    async fn transact(&mut self) {
        let Some(mut held) = self.held.take() else {
            let person = PEOPLE[self.random.usize(..PEOPLE.len())].to_owned();
            let begin = BeginTransactionRequest {
                table: "notes".to_owned(),
                partition: Some(text(&person)),
            };
            let begun = self
                .client()
                .begin_transaction(begin)
                .await
                .expect("begun")
                .into_inner();
            self.held = Some(Held {
                id: begun.transaction_id,
                rows: self.rows.clone(),
                person,
            });
            self.met("begun");
            return;
        };
        let table = "notes".to_owned();
        match self.random.u8(..10) {
            0 => {
                let request = AbortTransactionRequest {
                    table,
                    transaction_id: held.id,
                };
                self.client().abort_transaction(request).await.expect("aborted");
                self.met("aborted");
            }
            1..3 => {
                let request = CommitTransactionRequest {
                    table,
                    transaction_id: held.id,
                    checkpoint: None,
                };
                let committed = self
                    .client()
                    .commit_transaction(request)
                    .await
                    .expect("committed")
                    .into_inner();
                let of_held = |rows: &BTreeMap<RowKey, Known>| -> BTreeMap<RowKey, Known> {
                    let rows = rows.iter().filter(|((person, _), _)| *person == held.person);
                    rows.map(|(key, row)| (key.clone(), row.clone())).collect()
                };
                let (before, after) = (of_held(&self.rows), of_held(&held.rows));
                let keys: BTreeSet<&RowKey> = before.keys().chain(after.keys()).collect();
                for key in keys {
                    if before.get(key) != after.get(key) {
                        let columns = after.get(key).map(|row| row.columns.clone());
                        self.committed(committed.sequence, key, columns);
                    }
                }
                self.met("committed");
            }
            3..8 => {
                let key = (held.person.clone(), self.random.i64(-2..4));
                // A row of a transaction has the revision of before, 0 when it is new: they aren't asked for.
                let columns = random_columns(&mut self.random);
                let request = PutRowRequest {
                    table,
                    key: wire_key(&key),
                    columns: columns.clone(),
                    transaction_id: held.id.clone(),
                    ..PutRowRequest::default()
                };
                let written = self
                    .client()
                    .put_row(request)
                    .await
                    .expect("written in it")
                    .into_inner();
                assert_eq!(written.sequence, 0);
                // Never that of a committed row.
                held.rows.insert(
                    key,
                    Known {
                        columns,
                        revision: -1,
                    },
                );
                self.met("written in a transaction");
                self.held = Some(held);
            }
            _ => {
                let request = RangeRowsRequest {
                    table,
                    range: Some(KeyRange {
                        prefix: Some(Key {
                            values: vec![text(&held.person)],
                        }),
                        ..KeyRange::default()
                    }),
                    transaction_id: held.id.clone(),
                    ..RangeRowsRequest::default()
                };
                let page = self
                    .client()
                    .range_rows(request)
                    .await
                    .expect("a page")
                    .into_inner();
                let found: BTreeMap<RowKey, Columns> = page
                    .rows
                    .iter()
                    .map(|row| (key_of(row), row.columns.clone()))
                    .collect();
                let rows = held.rows.iter().filter(|((person, _), _)| *person == held.person);
                let expected: BTreeMap<RowKey, Columns> = rows
                    .map(|(key, row)| (key.clone(), row.columns.clone()))
                    .collect();
                assert_eq!(found, expected);
                self.met("read in a transaction");
                self.held = Some(held);
            }
        }
    }

    /// The table is described, changed, and now and then dropped and created again.
    async fn table(&mut self) {
        let named = GetTableRequest {
            table: "notes".to_owned(),
        };
        let table = self
            .client()
            .get_table(named)
            .await
            .expect("the table")
            .into_inner();
        let mut table = table.table.expect("the table");
        assert_eq!(table.key, notes().key);
        if self.random.u8(..4) > 0 || self.held.is_some() {
            table.max_versions = self.random.i32(1..4);
            let update = UpdateTableRequest {
                table: Some(table.clone()),
                update_mask: Some(prost_types::FieldMask {
                    paths: vec!["max_versions".to_owned()],
                }),
            };
            let updated = self
                .client()
                .update_table(update)
                .await
                .expect("updated")
                .into_inner();
            assert_eq!(updated.table, Some(table));
            self.met("changed");
            return;
        }
        self.watched().await;
        let drop = DeleteTableRequest {
            table: "notes".to_owned(),
        };
        self.client().delete_table(drop).await.expect("dropped");
        create(self.client(), notes()).await.expect("created again");
        self.rows.clear();
        self.changes.clear();
        self.repeatable.clear();
        self.sequence = self.running().service_sequence();
        self.met("dropped");
    }

    async fn export(&mut self) {
        let request = ExportRowsRequest {
            table: "notes".to_owned(),
            ..ExportRowsRequest::default()
        };
        let mut blocks = self
            .client()
            .export_rows(request)
            .await
            .expect("a stream")
            .into_inner();
        let mut found = BTreeMap::new();
        while let Some(block) = blocks.message().await.expect("a block") {
            found.extend(block.rows.iter().map(known));
        }
        assert_eq!(found, self.rows);
        self.met("export");
    }

    /// Every change since the table was created is told, in order.
    async fn watched(&mut self) {
        let Some(last) = self.changes.iter().map(|(sequence, ..)| *sequence).max() else {
            return;
        };
        let request = WatchRowsRequest {
            table: "notes".to_owned(),
            after_sequence: Some(0),
            since: None,
        };
        let mut events = self
            .client()
            .watch_rows(request)
            .await
            .expect("a stream")
            .into_inner();
        let mut found = Vec::new();
        loop {
            let event = events.message().await.expect("an event").expect("more");
            for change in &event.changes {
                let row = change.row.as_ref().expect("a row");
                let is_deleted = change.kind() == souk_proto::table::v1::RowChangeKind::Delete;
                let columns = (!is_deleted).then(|| row.columns.clone());
                found.push((event.sequence, key_of(row), columns));
            }
            if event.sequence >= last {
                break;
            }
        }
        let mut expected = self.changes.clone();
        // Of one commit in the order of the keys.
        expected.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
        found.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
        assert_eq!(found, expected);
        self.met("watched");
    }

    fn client(&mut self) -> &mut Client {
        self.client.as_mut().expect("it runs")
    }

    fn running(&self) -> &Running<TableServices> {
        self.running.as_ref().expect("it runs")
    }

    async fn restart(&mut self) {
        // They end with the process.
        self.held = None;
        // It holds the service.
        self.client = None;
        let running = self.running.take().expect("it runs");
        let running = reopen(running).await.expect("opened again");
        self.client = Some(client(&running));
        self.running = Some(running);
        self.met("restarted");
    }
}

/// A UUID of random digits.
fn uuid(random: &mut Rng) -> String {
    let digits = format!("{:032x}", random.u128(1..));
    let parts = [
        &digits[..8],
        &digits[8..12],
        &digits[12..16],
        &digits[16..20],
        &digits[20..],
    ];
    parts.join("-")
}

/// Tells how far a service's log is.
trait ServiceSequence {
    fn service_sequence(&self) -> i64;
}

impl ServiceSequence for Running<TableServices> {
    fn service_sequence(&self) -> i64 {
        use souk_api::hosting::Service as _;

        let last = self.service.engine().database().last_sequence();
        i64::try_from(last).expect("a sequence")
    }
}

/// What a run must have met, so that it is known to be compared.
const WHAT: [&str; 27] = [
    "aborted",
    "batch refused",
    "begun",
    "changed",
    "committed",
    "condition failed",
    "dropped",
    "export",
    "held",
    "increment refused",
    "index",
    "not there",
    "nothing to do",
    "range",
    "read",
    "read in a transaction",
    "read together",
    "repeated",
    "restarted",
    "row refused",
    "search",
    "stream",
    "watched",
    "written",
    "written by itself",
    "written in a transaction",
    "written together",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_and_rows_act_like_the_oracle() {
    let steps: usize = std::env::var("SOUK_TABLE_STEPS")
        .ok()
        .and_then(|steps| steps.parse().ok())
        .unwrap_or(2_000);
    let mut program = Program::new().await;
    for nth in 1..=steps {
        program.step().await;
        if nth % (steps / 4) == 0 {
            program.restart().await;
        }
    }
    program.watched().await;
    println!("{steps} steps: {:#?}", program.happened);
    for what in WHAT {
        assert!(program.happened.contains_key(what), "this never happened: {what}");
    }
}

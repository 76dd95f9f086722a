//! Ranges of rows and of entries of indexes, both ways, page by page and in streams; parts of tables.

use std::cmp::Ordering;
use std::sync::Arc;

use fastrand::Rng;
use souk_proto::table::v1::index_range::{High as IndexHigh, Low as IndexLow};
use souk_proto::table::v1::key_range::{High, Low};
use souk_proto::table::v1::{
    ExportRowsRequest, GetSplitPointsRequest, IndexEntry, IndexRange, IndexValues, Key as WireKey, KeyRange,
    RangeIndexRequest, RangeRowsRequest, Row as WireRow, SecondaryIndexState, StreamRowsRequest,
};
use tonic::Code;

use super::condition::Test;
use super::datum::{Datum, NAMES, wire_key};
use super::read::Asked;
use super::table::{Life, Rows, Secondary, Table};
use super::{Fault, Program};

/// Most pages of an index of a table whose cells expire.
const PAGES_MAX: usize = 5_000;

/// An end of a range: by the first values of keys.
#[derive(Clone, Debug)]
enum End {
    Open,
    With(Vec<Datum>),
    Without(Vec<Datum>),
}

/// An interval of an order of keys.
#[derive(Clone, Debug)]
enum KeyInterval {
    Prefix(Vec<Datum>),
    Between(End, End),
}

impl KeyInterval {
    /// `draw` gives keys as there may be.
    fn draw(random: &mut Rng, mut draw: impl FnMut(&mut Rng) -> Vec<Datum>) -> Self {
        let mut first = |random: &mut Rng| {
            let mut key = draw(random);
            if random.bool() {
                key.truncate(random.usize(1..=key.len()));
            }
            key
        };
        if random.u8(..5) == 0 {
            return Self::Prefix(first(random));
        }
        let mut end = |random: &mut Rng| match random.u8(..5) {
            0 => End::Open,
            1 | 2 => End::With(first(random)),
            _ => End::Without(first(random)),
        };
        Self::Between(end(random), end(random))
    }

    fn has(&self, key: &[Datum]) -> bool {
        let against = |end: &[Datum]| key[..end.len()].cmp(end);
        match self {
            Self::Prefix(prefix) => against(prefix).is_eq(),
            Self::Between(low, high) => {
                let is_above = match low {
                    End::Open => true,
                    End::With(end) => against(end) != Ordering::Less,
                    End::Without(end) => against(end) == Ordering::Greater,
                };
                let is_below = match high {
                    End::Open => true,
                    End::With(end) => against(end) != Ordering::Greater,
                    End::Without(end) => against(end) == Ordering::Less,
                };
                is_above && is_below
            }
        }
    }

    fn keys(&self) -> KeyRange {
        let key = |values: &[Datum]| WireKey {
            values: wire_key(values),
        };
        match self {
            Self::Prefix(prefix) => KeyRange {
                prefix: Some(key(prefix)),
                ..KeyRange::default()
            },
            Self::Between(low, high) => KeyRange {
                prefix: None,
                low: match low {
                    End::Open => None,
                    End::With(end) => Some(Low::Gte(key(end))),
                    End::Without(end) => Some(Low::Gt(key(end))),
                },
                high: match high {
                    End::Open => None,
                    End::With(end) => Some(High::Lte(key(end))),
                    End::Without(end) => Some(High::Lt(key(end))),
                },
            },
        }
    }

    fn entries(&self) -> IndexRange {
        let of = |values: &[Datum]| IndexValues {
            values: wire_key(values),
        };
        match self {
            Self::Prefix(prefix) => IndexRange {
                prefix: Some(of(prefix)),
                ..IndexRange::default()
            },
            Self::Between(low, high) => IndexRange {
                prefix: None,
                low: match low {
                    End::Open => None,
                    End::With(end) => Some(IndexLow::Gte(of(end))),
                    End::Without(end) => Some(IndexLow::Gt(of(end))),
                },
                high: match high {
                    End::Open => None,
                    End::With(end) => Some(IndexHigh::Lte(of(end))),
                    End::Without(end) => Some(IndexHigh::Lt(of(end))),
                },
            },
        }
    }
}

/// What of the rows a range shows, in its order.
fn shown(
    table: &Table,
    rows: &Rows,
    interval: &KeyInterval,
    asked: &Asked,
    descending: bool,
) -> Vec<WireRow> {
    let names = table.key_names();
    let rows = rows.iter().filter(|(key, _)| interval.has(key));
    let rows = rows.filter_map(|(key, row)| {
        let (row, _) = asked.shown(row, &names)?;
        Some(asked.told(&row, key, table.options.has_times))
    });
    let mut shown: Vec<_> = rows.collect();
    if descending {
        shown.reverse();
    }
    shown
}

impl Program {
    pub(super) async fn range(&mut self) {
        let name = self.table();
        let Some(table) = self.tables.get(name).cloned() else {
            let request = RangeRowsRequest {
                table: name.to_owned(),
                ..RangeRowsRequest::default()
            };
            let answer = self.client().range_rows(request).await;
            Fault::NoTable.is(&answer.expect_err("there is no table"));
            return self.met("a missing table");
        };
        match self.random.u8(..16) {
            0..8 => self.pages(name, &table).await,
            8 | 9 => self.stream(name, &table).await,
            10 => self.export(name, &table).await,
            11 => self.splits(name, &table).await,
            _ => self.entries(name, &table).await,
        }
    }

    async fn pages(&mut self, name: &'static str, table: &Table) {
        let within = self.within(name);
        let rows = self.rows(name, within);
        let asked = Asked::draw(&mut self.random, &table.key_names(), self.now);
        let interval = KeyInterval::draw(&mut self.random, |random| table.draw_key(random));
        let descending = self.random.bool();
        let page_size = match self.random.u8(..4) {
            0 => 0,
            _ => self.random.i32(1..6),
        };
        let mut request = RangeRowsRequest {
            table: name.to_owned(),
            range: Some(interval.keys()),
            descending,
            read: asked.wire(),
            page_size,
            page_token: String::new(),
            min_sequence: if within.is_none() { self.sequence } else { 0 },
            transaction_id: self.transaction_id(within),
        };
        self.say(&request);
        let mut found = Vec::new();
        // A page has a row or goes on behind one that isn't shown.
        for _ in 0..=rows.len() + 1 {
            let answer = self.client().range_rows(request.clone()).await;
            if asked.is_invalid() {
                Fault::Invalid.is(&answer.expect_err("a read of nothing"));
                return self.met("a read of nothing");
            }
            let page = answer.expect("a page").into_inner();
            assert!(page_size == 0 || page.rows.len() <= usize::try_from(page_size).expect("a size"));
            assert!(within.is_some() || page.sequence >= self.sequence);
            found.extend(page.rows);
            if !page.next_page_token.is_empty() {
                request.page_token = page.next_page_token;
                continue;
            }
            let expected = shown(table, &rows, &interval, &asked, descending);
            table.same(&found, &expected, &(&interval, &asked));
            if within.is_some() {
                self.met("a range in a transaction");
            }
            return self.met(match descending {
                false => "a range forward",
                true => "a range backward",
            });
        }
        panic!("the range doesn't end");
    }

    /// A stream to its end, or two: the second one goes on where the first one broke.
    async fn stream(&mut self, name: &'static str, table: &Table) {
        let rows = self.rows(name, None);
        let asked = Asked::draw(&mut self.random, &table.key_names(), self.now);
        let interval = KeyInterval::draw(&mut self.random, |random| table.draw_key(random));
        let descending = self.random.bool();
        let mut breaks = self.random.bool();
        let mut request = StreamRowsRequest {
            table: name.to_owned(),
            range: Some(interval.keys()),
            descending,
            read: asked.wire(),
            page_size: self.random.i32(1..6),
            resume_token: String::new(),
            min_sequence: self.sequence,
        };
        self.say(&request);
        let mut found = Vec::new();
        loop {
            let answer = self.client().stream_rows(request.clone()).await;
            if asked.is_invalid() {
                Fault::Invalid.is(&answer.expect_err("a read of nothing"));
                return self.met("a read of nothing");
            }
            let mut pages = answer.expect("a stream").into_inner();
            let mut resume_token = String::new();
            while let Some(page) = pages.message().await.expect("a page") {
                found.extend(page.rows);
                resume_token = page.resume_token;
                if breaks {
                    break;
                }
            }
            if resume_token.is_empty() {
                break;
            }
            assert!(breaks, "a stream that ended before its end");
            breaks = false;
            request.resume_token = resume_token;
            self.met("a stream that goes on");
        }
        let expected = shown(table, &rows, &interval, &asked, descending);
        table.same(&found, &expected, &(&interval, &asked));
        self.met("a stream");
    }

    /// All rows of a snapshot.
    async fn export(&mut self, name: &'static str, table: &Table) {
        let found = self.exported(name).await;
        let rows = self.rows(name, None);
        let rows = rows.iter();
        let rows: Vec<_> = rows
            .map(|(key, row)| row.told(key, table.options.has_times))
            .collect();
        // Of each column the newest value.
        table.same(&found, &rows, &"an export");
        self.met("an export");
    }

    /// In some slices of one snapshot, which follow each other.
    pub(super) async fn exported(&mut self, name: &str) -> Vec<WireRow> {
        let slice_count = 1 + i32::try_from(self.sequence % 4).expect("a small number");
        let (mut found, mut snapshot_token) = (Vec::new(), String::new());
        for slice in 0..slice_count {
            let request = ExportRowsRequest {
                table: name.to_owned(),
                min_sequence: self.sequence,
                slice_count,
                slice,
                snapshot_token: snapshot_token.clone(),
                ..ExportRowsRequest::default()
            };
            let answer = self.client().export_rows(request).await;
            let mut blocks = answer.expect("a stream").into_inner();
            while let Some(block) = blocks.message().await.expect("a block") {
                snapshot_token = block.snapshot_token;
                found.extend(block.rows);
            }
        }
        found
    }

    /// The parts of a table have all of its rows.
    async fn splits(&mut self, name: &'static str, table: &Table) {
        let request = GetSplitPointsRequest {
            table: name.to_owned(),
            bytes: self.random.i64(1..2_000),
        };
        self.say(&request);
        let answer = self.client().get_split_points(request).await;
        let splits = answer.expect("parts").into_inner().splits;
        let rows = self.rows(name, None);
        let mut found = Vec::new();
        let count = splits.len();
        for split in splits {
            let request = RangeRowsRequest {
                table: name.to_owned(),
                range: split.range,
                ..RangeRowsRequest::default()
            };
            let page = self
                .client()
                .range_rows(request)
                .await
                .expect("a page")
                .into_inner();
            assert_eq!(page.next_page_token, "");
            let stored = usize::try_from(split.rows).expect("a count");
            // Those that have expired may be stored.
            assert!(page.rows.len() <= stored);
            if table.options.life.is_none() {
                assert_eq!(page.rows.len(), stored);
            }
            found.extend(page.rows);
        }
        let rows = rows.iter();
        let rows: Vec<_> = rows
            .map(|(key, row)| row.told(key, table.options.has_times))
            .collect();
        table.same(&found, &rows, &"the parts of a table");
        self.met(if count > 1 {
            "a table in parts"
        } else {
            "a table in one part"
        });
    }

    /// Entries of a secondary index.
    pub(super) async fn entries(&mut self, name: &'static str, table: &Table) {
        let Some((index, secondary)) = self.random.choice(&table.secondary) else {
            return;
        };
        let rows = self.rows(name, None);
        let known = secondary.entries(table, &rows);
        let interval = KeyInterval::draw(&mut self.random, |random| {
            let there = random.choice(known.keys()).cloned();
            let drawn = |random: &mut Rng| {
                let values = secondary.columns.iter().map(|column| {
                    let place = table.keys.iter().find(|(name, _)| name == column);
                    match place {
                        Some((_, kind)) => kind.draw(random),
                        None => Datum::draw(random, column),
                    }
                });
                let mut values: Vec<_> = values.collect();
                values.retain(|value| !value.is_too_long());
                values
            };
            match there.filter(|_| random.u8(..3) > 0) {
                Some(there) => there,
                None => {
                    let values = drawn(random);
                    match values.is_empty() {
                        true => vec![Datum::text("k")],
                        false => values,
                    }
                }
            }
        });
        let mut columns: Vec<&'static str> = Vec::new();
        if self.random.u8(..3) == 0 {
            columns.extend(secondary.included.iter().copied().filter(|_| self.random.bool()));
        }
        let test = (self.random.u8(..3) == 0).then(|| Test::draw(&mut self.random, &NAMES, 0));
        let descending = self.random.bool();
        let page_size = self.random.i32(0..5);
        let mut request = RangeIndexRequest {
            table: name.to_owned(),
            index: index.clone(),
            range: Some(interval.entries()),
            descending,
            columns: columns.iter().map(|name| (*name).to_owned()).collect(),
            filter: test.as_ref().map(Test::wire),
            page_size,
            page_token: String::new(),
            min_sequence: self.sequence,
        };
        self.say(&request);
        let mut found = Vec::new();
        // Entries that have expired and aren't freed yet take up pages, too.
        let pages = match table.life {
            Life::Endless => known.len() + 2,
            Life::Ever | Life::Lately => PAGES_MAX,
        };
        for _ in 0..pages {
            let answer = self.client().range_index(request.clone()).await;
            let page = match answer {
                Ok(page) => page.into_inner(),
                Err(refused) => return self.not_ready(name, index, &refused),
            };
            assert!(page_size == 0 || page.entries.len() <= usize::try_from(page_size).expect("a size"));
            found.extend(page.entries);
            if !page.next_page_token.is_empty() {
                request.page_token = page.next_page_token;
                continue;
            }
            let told = told(table, secondary, &known, &columns, test.as_ref());
            let mut expected: Vec<IndexEntry> = told
                .filter(|(key, _)| interval.has(key))
                .map(|(_, entry)| entry)
                .collect();
            if descending {
                expected.reverse();
            }
            assert_eq!(found, expected, "{index} {secondary:?} {interval:?} {test:?}");
            if !found.is_empty() {
                self.met("an entry of an index found");
            }
            if secondary
                .missing
                .as_ref()
                .is_some_and(|missing| !missing.is_empty())
            {
                self.met("a range of an index that lacks rows");
            }
            self.is_ready(name, index);
            return self.met("a range of an index");
        }
        panic!("the range doesn't end");
    }

    /// An index that was added lately may not be there yet; one that can't be never is.
    fn not_ready(&mut self, name: &str, index: &str, refused: &tonic::Status) {
        let state = self.tables[name].secondary[index].state;
        let (code, reason) = match state {
            SecondaryIndexState::Building => (Code::Unavailable, "SECONDARY_INDEX_BUILDING"),
            SecondaryIndexState::Failed => (Code::FailedPrecondition, "SECONDARY_INDEX_FAILED"),
            _ => panic!("{index} is there: {refused}"),
        };
        let told = souk_chassis::status::reason(refused);
        assert_eq!(
            (refused.code(), told.as_deref()),
            (code, Some(reason)),
            "{refused}"
        );
        self.met(match state {
            SecondaryIndexState::Failed => "a secondary index that can't be",
            _ => "a secondary index that isn't there yet",
        });
    }

    fn is_ready(&mut self, name: &str, index: &str) {
        let table = Arc::make_mut(self.tables.get_mut(name).expect("a table"));
        let index = table.secondary.get_mut(index).expect("an index");
        assert_ne!(index.state, SecondaryIndexState::Failed);
        index.state = SecondaryIndexState::Ready;
    }
}

/// The entries that a filter lets pass, as answers have them.
fn told<'a>(
    table: &'a Table,
    secondary: &'a Secondary,
    entries: &'a Rows,
    columns: &'a [&'static str],
    test: Option<&'a Test>,
) -> impl Iterator<Item = (&'a Vec<Datum>, IndexEntry)> {
    let count = secondary.columns.len();
    let has_times = table.options.has_times;
    entries.iter().filter_map(move |(key, row)| {
        let (values, row_key) = key.split_at(count);
        let selects = |name: &str| {
            let is_included = secondary.included.contains(&name);
            is_included && (columns.is_empty() || columns.contains(&name))
        };
        let mut seen = row.clone();
        seen.cells
            .retain(|name, _| selects(name) || secondary.columns.contains(&name.as_str()));
        if test.is_some_and(|test| !test.holds(Some(&seen))) {
            return None;
        }
        seen.cells.retain(|name, _| selects(name));
        let values = secondary.columns.iter().zip(values);
        let entry = IndexEntry {
            values: values.map(|(name, value)| value.told(name, has_times)).collect(),
            key: wire_key(row_key),
            columns: seen.columns_told(has_times),
        };
        Some((key, entry))
    })
}

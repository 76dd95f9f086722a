//! Ranges of rows and of entries of indexes, both ways, page by page; rows exported, and the parts of a table.

use std::cmp::Ordering;

use bytes::Bytes;
use fastrand::Rng;
use souk_tablestore::messages::{self as pb, Direction};
use souk_tablestore::{KeyColumn, KeyElement, PlainRow};

use super::datum::{Datum, Key, Kind};
use super::read::Asked;
use super::row::Row;
use super::rows::entry_told;
use super::table::{Rows, Table, key_told, wire_key};
use super::{Fault, Program};
use crate::client::{Refused, row, rows};

/// A column of an end of a range.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Minimum,
    At(Datum),
    Maximum,
}

/// An end of a range, a place for each column of the key.
type RangeEnd = Vec<Place>;

fn draw_end(random: &mut Rng, columns: &[(&'static str, Kind)]) -> RangeEnd {
    let places = columns.iter().map(|(_, kind)| match random.u8(..6) {
        0 => Place::Minimum,
        1 => Place::Maximum,
        _ => Place::At(kind.draw(random)),
    });
    places.collect()
}

fn against(key: &Key, end: &RangeEnd) -> Ordering {
    let key = key.iter().cloned().map(Place::At);
    key.cmp(end.iter().cloned())
}

fn wire_end(columns: &[(&'static str, Kind)], end: &RangeEnd) -> Bytes {
    let places = end.iter().zip(columns).map(|(place, (name, _))| {
        let value = match place {
            Place::Minimum => KeyElement::Minimum,
            Place::Maximum => KeyElement::Maximum,
            Place::At(value) => value.element(),
        };
        KeyColumn::new(*name, value)
    });
    row(places.collect(), Vec::new())
}

/// What of the rows of a range is shown.
fn shown(
    columns: &[(&'static str, Kind)],
    known: &Rows,
    asked: &Asked,
    within_cuts: impl Fn(&Key) -> bool,
) -> impl Iterator<Item = (Vec<KeyColumn>, Row)> {
    let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
    let within = known.iter().filter(move |(key, _)| within_cuts(key));
    within.filter_map(move |(key, row)| {
        let (row, _) = asked.shown(row, &names)?;
        Some((wire_key(columns, key), row))
    })
}

impl Program {
    /// Reads a range to its end.
    pub(super) async fn range(&mut self) {
        let name = self.table();
        let Some(table) = self.tables.get(name).cloned() else {
            return;
        };
        if self.random.u8(..4) == 0
            && let Some(index) = self.random.choice(table.secondary.keys())
        {
            return self.range_of_index(name, &table, index).await;
        }
        let within = self.within(name);
        let asked = Asked::draw(&mut self.random, &table.key_names(), self.now);
        if within.is_some() {
            self.met("a range in a transaction");
        }
        let rows = self.rows(name, within);
        self.pages(name, within, &table.keys, &rows, &asked, false).await;
    }

    pub(super) async fn range_of_index(&mut self, name: &str, table: &Table, index: &str) {
        let secondary = &table.secondary[index];
        let (columns, entries) = (
            secondary.key(table),
            secondary.entries(table, &self.rows(name, None)),
        );
        let asked = Asked::of_index(&mut self.random, &secondary.included);
        self.met("a range of an index");
        if secondary
            .missing
            .as_ref()
            .is_some_and(|missing| !missing.is_empty())
        {
            self.met("a range of an index that lacks rows");
        }
        self.pages(index, None, &columns, &entries, &asked, true).await;
    }

    async fn pages(
        &mut self,
        name: &str,
        within: Option<usize>,
        columns: &[(&'static str, Kind)],
        known: &Rows,
        asked: &Asked,
        of_index: bool,
    ) {
        let random = &mut self.random;
        let is_forward = random.bool();
        let (start, end) = (draw_end(random, columns), draw_end(random, columns));
        let limit = (random.u8(..4) > 0).then(|| random.usize(1..6));
        let mut request = pb::GetRangeRequest {
            table_name: name.to_owned(),
            direction: match is_forward {
                true => Direction::Forward.into(),
                false => Direction::Backward.into(),
            },
            columns_to_get: asked.columns_wire(),
            time_range: asked.time_wire(),
            max_versions: asked.versions_wire(),
            limit: limit.map(|limit| i32::try_from(limit).expect("few")),
            inclusive_start_primary_key: wire_end(columns, &start),
            exclusive_end_primary_key: wire_end(columns, &end),
            filter: asked.filter_wire(),
            start_column: asked.start_wire(),
            end_column: asked.end_wire(),
            transaction_id: self.transaction_id(within),
            ..pb::GetRangeRequest::default()
        };
        let is_none = match is_forward {
            true => start >= end,
            false => start <= end,
        };
        if is_none || asked.is_invalid() {
            let answer: Result<pb::GetRangeResponse, _> = self.call("GetRange", &request).await;
            Fault::Invalid.is(&answer.expect_err("a range of nothing"));
            return self.met("a range of nothing");
        }
        let within_cuts = |key: &Key| match is_forward {
            true => against(key, &start).is_ge() && against(key, &end).is_lt(),
            false => against(key, &start).is_le() && against(key, &end).is_gt(),
        };
        let told = shown(columns, known, asked, within_cuts);
        let mut expected: Vec<PlainRow> = told
            .map(|(key, row)| match of_index {
                true => entry_told(&row, key),
                false => row.told(key, |_| true),
            })
            .collect();
        if !is_forward {
            expected.reverse();
        }
        let mut found = Vec::new();
        // A page has a row or goes on behind one that isn't shown.
        for _ in 0..=known.len() + 1 {
            let page: pb::GetRangeResponse = self.call("GetRange", &request).await.expect("a page");
            let page_rows = rows(&page.rows);
            assert!(limit.is_none_or(|limit| page_rows.len() <= limit));
            found.extend(page_rows);
            assert_eq!(page.next_token, None);
            match page.next_start_primary_key {
                Some(next) => request.inclusive_start_primary_key = next,
                None => {
                    assert_eq!(found, expected, "{asked:?}");
                    return self.met(match is_forward {
                        true => "a range forward",
                        false => "a range backward",
                    });
                }
            }
        }
        panic!("the range doesn't end");
    }

    pub(super) async fn export(&mut self) {
        let name = self.table();
        let Some(table) = self.tables.get(name).cloned() else {
            return;
        };
        let random = &mut self.random;
        let (start, end) = (draw_end(random, &table.keys), draw_end(random, &table.keys));
        let asked = Asked::of_export(random, &table.key_names(), self.now);
        let answer = self.exported(name, &table, &asked, [&start, &end]).await;
        if start >= end {
            Fault::Invalid.is(&answer.expect_err("a range of nothing"));
            return self.met("an export of nothing");
        }
        let rows = self.rows(name, None);
        let within_cuts = |key: &Key| against(key, &start).is_ge() && against(key, &end).is_lt();
        let told = shown(&table.keys, &rows, &asked, within_cuts);
        let expected: Vec<_> = told.map(|(key, row)| row.told(key, |_| true)).collect();
        assert_eq!(answer.expect("rows"), expected, "{asked:?}");
        self.met("an export");
    }

    /// Exports all rows of a table.
    pub(super) async fn export_all(&mut self, name: &str, table: &Table) -> Vec<PlainRow> {
        let [start, end] = [Place::Minimum, Place::Maximum].map(|place| vec![place; table.keys.len()]);
        let exported = self.exported(name, table, &Asked::newest(), [&start, &end]).await;
        exported.expect("rows")
    }

    async fn exported(
        &mut self,
        name: &str,
        table: &Table,
        asked: &Asked,
        [start, end]: [&RangeEnd; 2],
    ) -> Result<Vec<PlainRow>, Refused> {
        let mut request = pb::BulkExportRequest {
            table_name: name.to_owned(),
            columns_to_get: asked.columns_wire(),
            inclusive_start_primary_key: wire_end(&table.keys, start),
            exclusive_end_primary_key: wire_end(&table.keys, end),
            filter: asked.filter_wire(),
            ..pb::BulkExportRequest::default()
        };
        let mut found = Vec::new();
        loop {
            let page: pb::BulkExportResponse = self.call("BulkExport", &request).await?;
            found.extend(rows(&page.rows));
            let Some(next) = page.next_start_primary_key else {
                return Ok(found);
            };
            assert_ne!(next, request.inclusive_start_primary_key);
            request.inclusive_start_primary_key = next;
        }
    }

    /// The parts of a table are in order, and have all of its rows.
    pub(super) async fn split(&mut self) {
        let name = self.table();
        let Some(table) = self.tables.get(name).cloned() else {
            return;
        };
        let split_size = match self.random.u8(..6) {
            0 => self.random.choice([i64::MIN, -1, 0]).expect("one"),
            // Of rows that have expired there may be many.
            1 if table.options.life.is_none() => 1,
            _ => self.random.i64(200..2_000),
        };
        let most = (self.random.u8(..4) == 0).then(|| self.random.usize(..3));
        let request = pb::ComputeSplitPointsBySizeRequest {
            table_name: name.to_owned(),
            split_size,
            split_size_unit_in_byte: Some(1),
            split_point_limit: most.map(|most| i32::try_from(most).expect("few")),
        };
        let answer: Result<pb::ComputeSplitPointsBySizeResponse, _> =
            self.call("ComputeSplitPointsBySize", &request).await;
        if split_size < 1 {
            Fault::Invalid.is(&answer.expect_err("parts of nothing"));
            return self.met("parts of nothing");
        }
        let splits = answer.expect("parts");
        assert_eq!(splits.schema, table.meta(name).primary_key);
        let points = splits.split_points.iter().flat_map(rows);
        let points: Vec<Key> = points.map(|row| key_told(&row.key)).collect();
        assert_eq!(points.len(), splits.split_points.len());
        assert!(most.is_none_or(|most| points.len() <= most));
        let parts: i64 = splits.locations.iter().map(|location| location.repeat).sum();
        assert_eq!(usize::try_from(parts).expect("a count"), points.len() + 1);

        let [first, last] = [Place::Minimum, Place::Maximum].map(|place| vec![place; table.keys.len()]);
        let cuts = points
            .iter()
            .map(|key| key.iter().cloned().map(Place::At).collect());
        let cuts: Vec<RangeEnd> = [first].into_iter().chain(cuts).chain([last]).collect();
        assert!(cuts.is_sorted_by(|one, next| one < next), "{points:?}");
        let rows = self.rows(name, None);
        // Those that have expired may be stored.
        let is_stored = table.options.life.is_none();
        let (asked, mut found) = (Asked::newest(), Vec::new());
        for cuts in cuts.windows(2) {
            let exported = self.exported(name, &table, &asked, [&cuts[0], &cuts[1]]);
            let part = exported.await.expect("rows");
            assert!(!is_stored || rows.is_empty() || !part.is_empty(), "{points:?}");
            found.extend(part);
        }
        let told = shown(&table.keys, &rows, &asked, |_| true);
        let expected: Vec<_> = told.map(|(key, row)| row.told(key, |_| true)).collect();
        assert_eq!(found, expected);
        if is_stored && split_size == 1 && most.is_none() {
            // Each row is a part.
            assert_eq!(points.len(), rows.len().saturating_sub(1));
        }
        self.met(match points.is_empty() {
            true => "a table in one part",
            false => "a table in parts",
        });
    }
}

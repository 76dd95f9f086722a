//! What reads ask of rows, and what they are to show.

use bytes::Bytes;
use fastrand::Rng;
use prost::Message as _;
use souk_tablestore::messages::{self as pb, FilterType};

use super::condition::Test;
use super::datum::NAMES;
use super::row::Row;

/// What a read asks of each row.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    /// Columns, of attributes or of the key; all where none is named.
    pub(super) columns: Vec<&'static str>,
    /// Versions from the one to before the other.
    time: Option<(i64, i64)>,
    /// So many, the newest of those.
    versions: Option<usize>,
    test: Option<Test>,
    start: Option<String>,
    end: Option<&'static str>,
    /// Columns to skip, and how many are shown.
    page: Option<(usize, usize)>,
}

impl Asked {
    /// Of rows whose key has these columns.
    pub(super) fn draw(random: &mut Rng, keys: &[&'static str], now: i64) -> Self {
        let time = (random.u8(..4) == 0).then(|| {
            let from = now - random.i64(-3..60);
            // Often of one version.
            (from, from + random.choice([1, 1, 5, 1000]).expect("one"))
        });
        let is_exact = time.is_some_and(|(from, to)| to == from + 1) && random.bool();
        let versions = (time.is_none() || !is_exact && random.bool()).then(|| random.usize(1..4));
        let mut columns = Vec::new();
        if random.u8(..3) == 0 {
            let all = NAMES.into_iter().chain(keys.iter().copied()).chain(["none"]);
            columns.extend(all.filter(|_| random.u8(..4) == 0));
        }
        let window = random.u8(..4) == 0;
        let start = (window && random.bool())
            .then(|| random.choice(["a", "raw", "s", "size"]).expect("one").to_owned());
        let end = (window && random.bool()).then(|| random.choice(["raw", "size", "t", "z"]).expect("one"));
        let (mut test, mut page) = (None, None);
        match random.u8(..6) {
            0 | 1 => test = Some(Test::draw(random, &NAMES, 0)),
            2 => page = Some((random.usize(..3), random.usize(1..3))),
            _ => {}
        }
        Self {
            columns,
            time,
            versions,
            test,
            start,
            end,
            page,
        }
    }

    /// The newest version of each column.
    pub(super) fn newest() -> Self {
        Self {
            versions: Some(1),
            ..Self::default()
        }
    }

    /// Of rows that are exported, the newest version of each column.
    pub(super) fn of_export(random: &mut Rng, keys: &[&'static str], now: i64) -> Self {
        Self {
            time: None,
            versions: Some(1),
            start: None,
            end: None,
            ..Self::draw(random, keys, now)
        }
    }

    /// Of entries of an index: of one version, columns or a condition on some.
    pub(super) fn of_index(random: &mut Rng, columns: &[&'static str]) -> Self {
        let mut asked = Self::newest();
        match random.u8(..4) {
            0 if !columns.is_empty() => asked.test = Some(Test::draw(random, columns, 0)),
            1 => asked.columns.extend(columns.iter().filter(|_| random.bool())),
            _ => {}
        }
        asked
    }

    /// Whether the window is none.
    pub(super) fn is_invalid(&self) -> bool {
        self.start
            .as_deref()
            .zip(self.end)
            .is_some_and(|(start, end)| start >= end)
    }

    /// What is shown of a row, and the first column that there is no room for; `None` where the row isn't shown.
    pub(super) fn shown(&self, row: &Row, keys: &[&str]) -> Option<(Row, Option<String>)> {
        let mut row = row.clone();
        let is_named = |name: &str| self.columns.is_empty() || self.columns.contains(&name);
        row.cells.retain(|name, _| is_named(name));
        for versions in row.cells.values_mut() {
            versions.retain(|version, _| self.time.is_none_or(|(from, to)| (from..to).contains(version)));
            while self.versions.is_some_and(|most| versions.len() > most) {
                versions.pop_first();
            }
        }
        row.cells.retain(|_, versions| !versions.is_empty());
        let is_whole = self.columns.is_empty() && self.time.is_none();
        let has_key = self.columns.iter().any(|name| keys.contains(name));
        if row.cells.is_empty() && !is_whole && !has_key {
            return None;
        }
        if self.test.as_ref().is_some_and(|test| !test.holds(Some(&row))) {
            return None;
        }
        let names: Vec<String> = row.cells.keys().cloned().collect();
        let within = names.into_iter().filter(|name| {
            self.start.as_ref().is_none_or(|start| name >= start)
                && self.end.is_none_or(|end| name.as_str() < end)
        });
        let (skipped, most) = self.page.unwrap_or((0, usize::MAX));
        let mut rest = within.skip(skipped);
        let shown: Vec<String> = rest.by_ref().take(most).collect();
        row.cells.retain(|name, _| shown.contains(name));
        Some((row, rest.next()))
    }

    /// The same from a column on.
    pub(super) fn resumed(&self, next: String) -> Self {
        Self {
            start: Some(next),
            page: self.page.map(|(_, most)| (0, most)),
            ..self.clone()
        }
    }

    pub(super) fn time_wire(&self) -> Option<pb::TimeRange> {
        let (from, to) = self.time?;
        Some(match self.versions.is_none() && to == from + 1 {
            true => pb::TimeRange {
                specific_time: Some(from),
                ..pb::TimeRange::default()
            },
            false => pb::TimeRange {
                start_time: Some(from),
                end_time: Some(to),
                specific_time: None,
            },
        })
    }

    pub(super) fn versions_wire(&self) -> Option<i32> {
        self.versions
            .map(|versions| i32::try_from(versions).expect("few"))
    }

    pub(super) fn columns_wire(&self) -> Vec<String> {
        self.columns.iter().map(|name| (*name).to_owned()).collect()
    }

    pub(super) fn filter_wire(&self) -> Option<Bytes> {
        let number = |number: usize| i32::try_from(number).expect("few");
        let page = self.page.map(|(offset, limit)| {
            let page = pb::ColumnPaginationFilter {
                offset: number(offset),
                limit: number(limit),
            };
            let filter = pb::Filter {
                r#type: FilterType::ColumnPagination.into(),
                filter: page.encode_to_vec().into(),
            };
            filter.encode_to_vec().into()
        });
        page.or_else(|| self.test.as_ref().map(Test::wire))
    }

    pub(super) fn start_wire(&self) -> Option<String> {
        self.start.clone()
    }

    pub(super) fn end_wire(&self) -> Option<String> {
        self.end.map(str::to_owned)
    }
}

//! What reads ask of rows, and what they are to show.

use fastrand::Rng;
use souk_proto::table::v1::{ReadOptions, Row as WireRow, VersionSelection};

use super::condition::Test;
use super::datum::{Datum, NAMES, one};
use super::row::Row;

/// Which versions of columns are asked for.
#[derive(Clone, Copy, Debug)]
struct Versions {
    /// So many, the newest; 0 is all.
    most: usize,
    from: Option<i64>,
    to: Option<i64>,
}

/// What a read asks of each row.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    /// Columns, of attributes or of the key; all where none is named.
    columns: Vec<&'static str>,
    /// The newest version alone where none are asked for.
    versions: Option<Versions>,
    test: Option<Test>,
    start: Option<String>,
    end: Option<&'static str>,
    /// Columns to skip, and how many are shown.
    page: Option<(usize, usize)>,
}

impl Asked {
    /// Of rows whose key has these columns.
    pub(super) fn draw(random: &mut Rng, keys: &[&'static str], now: i64) -> Self {
        let versions = (random.u8(..3) == 0).then(|| {
            let from = now - random.i64(-3..60);
            Versions {
                most: random.usize(..4),
                from: random.bool().then_some(from),
                // Often of one version, seldom of none.
                to: random
                    .bool()
                    .then(|| from + one(random, &[1, 1, 1, 1, 1, 5, 5, 1000, 1000, 0])),
            }
        });
        let mut columns = Vec::new();
        if random.u8(..3) == 0 {
            let all = NAMES.into_iter().chain(keys.iter().copied()).chain(["none"]);
            columns.extend(all.filter(|_| random.u8(..4) == 0));
        }
        let has_window = random.u8(..4) == 0;
        let start = (has_window && random.bool()).then(|| one(random, &["a", "raw", "s", "size"]).to_owned());
        let end = (has_window && random.bool()).then(|| one(random, &["raw", "size", "t", "z"]));
        Self {
            columns,
            versions,
            test: (random.u8(..4) == 0).then(|| Test::draw(random, &NAMES, 0)),
            start,
            end,
            page: (random.u8(..5) == 0).then(|| (random.usize(..3), random.usize(1..3))),
        }
    }

    /// Whether it asks for nothing: of columns, or of versions.
    pub(super) fn is_invalid(&self) -> bool {
        let columns = self.start.as_deref().zip(self.end);
        let time = self.versions.and_then(|versions| {
            let (from, to) = (versions.from, versions.to?);
            Some(from.is_some_and(|from| from >= to))
        });
        columns.is_some_and(|(start, end)| start >= end) || time == Some(true)
    }

    /// What is shown of a row, and the first column that there is no room for; `None` where the row isn't shown.
    pub(super) fn shown(&self, row: &Row, keys: &[&str]) -> Option<(Row, Option<String>)> {
        let mut row = row.clone();
        let is_named = |name: &str| self.columns.is_empty() || self.columns.contains(&name);
        row.cells.retain(|name, _| is_named(name));
        let asked = self.versions.unwrap_or(Versions {
            most: 1,
            from: None,
            to: None,
        });
        for versions in row.cells.values_mut() {
            versions.retain(|version, _| {
                asked.from.is_none_or(|from| *version >= from) && asked.to.is_none_or(|to| *version < to)
            });
            while asked.most > 0 && versions.len() > asked.most {
                versions.pop_first();
            }
        }
        row.cells.retain(|_, versions| !versions.is_empty());
        let is_whole = self.columns.is_empty() && asked.from.is_none() && asked.to.is_none();
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

    /// As answers have what is shown.
    pub(super) fn told(&self, shown: &Row, key: &[Datum], has_times: bool) -> WireRow {
        match self.versions {
            None => shown.told(key, has_times),
            Some(_) => shown.told_with_versions(key, has_times),
        }
    }

    /// The same from a column on.
    pub(super) fn resumed(&self, next: String) -> Self {
        Self {
            start: Some(next),
            page: self.page.map(|(_, most)| (0, most)),
            ..self.clone()
        }
    }

    pub(super) fn wire(&self) -> Option<ReadOptions> {
        let number = |number: usize| i32::try_from(number).expect("few");
        let (skip_columns, max_columns) = self.page.unwrap_or((0, 0));
        Some(ReadOptions {
            columns: self.columns.iter().map(|name| (*name).to_owned()).collect(),
            versions: self.versions.map(|versions| VersionSelection {
                max_versions: number(versions.most),
                from_millis: versions.from,
                to_millis: versions.to,
            }),
            filter: self.test.as_ref().map(Test::wire),
            start_column: self.start.clone().unwrap_or_default(),
            end_column: self.end.unwrap_or_default().to_owned(),
            max_columns: number(max_columns),
            skip_columns: number(skip_columns),
        })
    }
}

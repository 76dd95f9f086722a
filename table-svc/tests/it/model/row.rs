//! Rows as the oracle has them, and what writes make of them.

use std::collections::BTreeMap;

use fastrand::Rng;
use souk_proto::table::v1::row_write::Operation;
use souk_proto::table::v1::{Cell, CellVersion, Row as WireRow, RowChangeKind, RowDelete, RowPut, RowUpdate};
use souk_proto::r#type::v1::Value;

use super::Fault;
use super::datum::{Datum, NAMES, one, wire_key};
use super::table::Options;

/// Values of columns by name and version, milliseconds.
pub(super) type Cells = BTreeMap<String, BTreeMap<i64, Datum>>;

/// A row as it was written: what of it is still to be seen depends on the table and on the time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) cells: Cells,
    /// When it was written last, milliseconds.
    pub(super) written: i64,
    /// The sequence of its last write.
    pub(super) revision: i64,
}

/// What is done to a row.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Put(Vec<(&'static str, Datum, Option<i64>)>),
    /// What becomes of columns, or of versions of them.
    Update(Vec<(&'static str, Alteration)>),
    Delete,
}

#[derive(Clone, Debug)]
pub(super) enum Alteration {
    Put(Datum, Option<i64>),
    DeleteVersion(i64),
    DeleteAll,
    Add(i64),
}

/// What a write comes to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Done {
    /// There was no row, and is none.
    Nothing,
    Row(Row),
    Gone,
}

impl Row {
    /// What is to be seen of it: of each column the newest versions, those that haven't expired; none when its newest cell has.
    pub(super) fn visible(&self, options: &Options, now: i64) -> Option<Self> {
        let versions = self.cells.values().flat_map(BTreeMap::keys);
        let newest = versions.max().copied().unwrap_or(self.written);
        options
            .lives(newest, now)
            .then(|| self.clone().trimmed(options, now))
    }

    /// Without the versions of columns that are too many, and without those that have expired.
    fn trimmed(mut self, options: &Options, now: i64) -> Self {
        for versions in self.cells.values_mut() {
            while versions.len() > options.versions {
                versions.pop_first();
            }
            versions.retain(|version, _| options.lives(*version, now));
        }
        self.cells.retain(|_, versions| !versions.is_empty());
        self
    }

    /// With the newest version of each column alone.
    pub(super) fn newest_alone(mut self) -> Self {
        for versions in self.cells.values_mut() {
            while versions.len() > 1 {
                versions.pop_first();
            }
        }
        self
    }

    /// The newest value of a column.
    pub(super) fn newest(&self, column: &str) -> Option<&Datum> {
        self.cells.get(column)?.values().next_back()
    }

    /// As answers have it that tell the newest value of each column.
    pub(super) fn told(&self, key: &[Datum], has_times: bool) -> WireRow {
        WireRow {
            key: wire_key(key),
            columns: self.columns_told(has_times),
            revision: self.revision,
            ..WireRow::default()
        }
    }

    pub(super) fn columns_told(&self, has_times: bool) -> BTreeMap<String, Value> {
        let columns = self.cells.iter().map(|(name, versions)| {
            let newest = versions.values().next_back().expect("a version");
            (name.clone(), newest.told(name, has_times))
        });
        columns.collect()
    }

    /// As answers have it that tell versions.
    pub(super) fn told_with_versions(&self, key: &[Datum], has_times: bool) -> WireRow {
        let cells = self.cells.iter().flat_map(|(name, versions)| {
            versions.iter().rev().map(|(version, value)| Cell {
                column: name.clone(),
                value: Some(value.told(name, has_times)),
                version: Some(*version),
            })
        });
        WireRow {
            key: wire_key(key),
            cells: cells.collect(),
            revision: self.revision,
            ..WireRow::default()
        }
    }
}

impl Change {
    /// `plain` is of a row that the server numbers: columns alone, without versions.
    pub(super) fn draw(random: &mut Rng, options: &Options, now: i64, plain: bool) -> Self {
        let version = |random: &mut Rng| match random.u8(..if plain { 1 } else { 40 }) {
            1..15 => Some(now + random.i64(-4..5).clamp(-options.offset, options.offset)),
            // As far from the clock as the table takes it.
            15 => Some(now + one(random, &[-1_i64, 1]) * options.offset),
            16 => Some(now + one(random, &[-1_i64, 1]) * (options.offset + 1)),
            _ => None,
        };
        let names = |random: &mut Rng| {
            let names = NAMES.into_iter().filter(|_| random.u8(..3) > 0);
            names.collect::<Vec<_>>()
        };
        if !plain && random.u8(..6) == 0 {
            return Self::Delete;
        }
        if plain || random.u8(..5) < 2 {
            let mut cells = Vec::new();
            for name in names(random) {
                let version = version(random);
                cells.push((name, Datum::draw(random, name), version));
                // Several versions of one column.
                let is_far = options.offset == 0 && random.u8(..10) > 0;
                if let Some(version) = version.filter(|_| !is_far && random.bool()) {
                    cells.push((name, Datum::draw(random, name), Some(version - 7)));
                }
            }
            return Self::Put(cells);
        }
        let mut changes = Vec::new();
        for name in names(random) {
            match random.u8(..10) {
                5 => changes.push((name, Alteration::DeleteAll)),
                6 => changes.push((name, Alteration::DeleteVersion(now - random.i64(0..6)))),
                7 | 8 if matches!(name, "size" | "mixed") => {
                    changes.push((name, Alteration::Add(one(random, &[-2, 1, 3, i64::MAX]))));
                }
                9 => {
                    let value = Datum::draw(random, name);
                    changes.push((name, Alteration::Put(value, Some(now))));
                    changes.push((name, Alteration::DeleteVersion(now - 1 - random.i64(0..6))));
                }
                _ => {
                    let version = version(random);
                    changes.push((name, Alteration::Put(Datum::draw(random, name), version)));
                }
            }
        }
        Self::Update(changes)
    }

    /// Refuses what a table takes of no row.
    pub(super) fn check(&self, options: &Options, now: i64) -> Result<(), Fault> {
        let given: Vec<i64> = match self {
            Self::Put(cells) => cells.iter().filter_map(|(_, _, version)| *version).collect(),
            Self::Update(_) if !options.updates => return Err(Fault::Invalid),
            Self::Update(changes) => changes
                .iter()
                .filter_map(|(_, change)| match change {
                    Alteration::Put(_, version) => *version,
                    Alteration::DeleteVersion(_) | Alteration::DeleteAll | Alteration::Add(_) => None,
                })
                .collect(),
            Self::Delete => Vec::new(),
        };
        let near = |version: &i64| (now - options.offset..=now + options.offset).contains(version);
        match given.iter().all(near) {
            true => Ok(()),
            false => Err(Fault::Invalid),
        }
    }

    /// What it makes of a row as it is seen before. Its revision stays what it was, until it is committed.
    pub(super) fn apply(&self, before: Option<&Row>, options: &Options, now: i64) -> Result<Done, Fault> {
        let mut row = Row {
            cells: Cells::new(),
            written: now,
            revision: before.map_or(0, |before| before.revision),
        };
        match self {
            Self::Delete if before.is_none() => return Ok(Done::Nothing),
            Self::Delete => return Ok(Done::Gone),
            Self::Put(cells) => {
                for (name, value, version) in cells {
                    let versions = row.cells.entry((*name).to_owned()).or_default();
                    versions.insert(version.unwrap_or(now), value.clone());
                }
            }
            Self::Update(changes) => {
                let deletes = |change: &Alteration| {
                    matches!(change, Alteration::DeleteVersion(_) | Alteration::DeleteAll)
                };
                match before {
                    Some(before) => row.cells = before.cells.clone(),
                    None if changes.iter().all(|(_, change)| deletes(change)) => return Ok(Done::Nothing),
                    None => {}
                }
                for (name, change) in changes {
                    change.apply(row.cells.entry((*name).to_owned()).or_default(), now)?;
                }
            }
        }
        // What is too much by now is gone for good.
        Ok(Done::Row(row.trimmed(options, now)))
    }

    /// What is told of it.
    pub(super) fn kind(&self) -> RowChangeKind {
        match self {
            Self::Put(_) => RowChangeKind::Put,
            Self::Update(_) => RowChangeKind::Update,
            Self::Delete => RowChangeKind::Delete,
        }
    }

    /// As requests have it; `plain` is of a row that the server numbers.
    pub(super) fn wire(&self, key: Vec<Value>, plain: bool) -> Operation {
        match self {
            Self::Put(given) => {
                let (mut columns, mut cells) = (BTreeMap::new(), Vec::new());
                for (name, value, version) in given {
                    match plain {
                        true => _ = columns.insert((*name).to_owned(), value.given(name)),
                        false => put(name, value, *version, &mut columns, &mut cells),
                    }
                }
                Operation::Put(RowPut { key, columns, cells })
            }
            Self::Update(changes) => {
                let mut update = RowUpdate {
                    key,
                    ..RowUpdate::default()
                };
                for (name, change) in changes {
                    let column = (*name).to_owned();
                    match change {
                        Alteration::Put(value, version) => {
                            put(name, value, *version, &mut update.put, &mut update.put_cells);
                        }
                        Alteration::DeleteVersion(version) => update.delete_versions.push(CellVersion {
                            column,
                            version: *version,
                        }),
                        Alteration::DeleteAll => update.delete.push(column),
                        Alteration::Add(by) => _ = update.increment.insert(column, *by),
                    }
                }
                Operation::Update(update)
            }
            Self::Delete => Operation::Delete(RowDelete { key }),
        }
    }
}

/// A value with a version is a cell; one without is either.
fn put(
    name: &str,
    value: &Datum,
    version: Option<i64>,
    columns: &mut BTreeMap<String, Value>,
    cells: &mut Vec<Cell>,
) {
    if version.is_none() && name != "raw" {
        columns.insert(name.to_owned(), value.given(name));
        return;
    }
    cells.push(Cell {
        column: name.to_owned(),
        value: Some(value.given(name)),
        version,
    });
}

impl Alteration {
    fn apply(&self, versions: &mut BTreeMap<i64, Datum>, now: i64) -> Result<(), Fault> {
        // The time of the server, and never older than what is there.
        let next = versions.keys().next_back().map_or(now, |newest| now.max(*newest));
        match self {
            Self::Put(value, version) => {
                versions.insert(version.unwrap_or(next), value.clone());
            }
            Self::DeleteVersion(version) => {
                versions.remove(version);
            }
            Self::DeleteAll => versions.clear(),
            Self::Add(by) => {
                let sum = match versions.values().next_back() {
                    None => Some(*by),
                    Some(Datum::Integer(number)) => number.checked_add(*by),
                    Some(_) => None,
                };
                versions.insert(next, Datum::Integer(sum.ok_or(Fault::Invalid)?));
            }
        }
        Ok(())
    }
}

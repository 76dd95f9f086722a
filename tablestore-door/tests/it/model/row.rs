//! Rows as the oracle has them, and what writes make of them.

use std::collections::BTreeMap;

use fastrand::Rng;
use souk_tablestore::messages::OperationType;
use souk_tablestore::{CellOperation, KeyColumn, PlainCell, PlainRow};

use super::Fault;
use super::datum::{Datum, NAMES};
use super::table::Options;

/// Values of columns by name and version, milliseconds.
pub(super) type Cells = BTreeMap<String, BTreeMap<i64, Datum>>;

/// A row as it was written: what of it is still to be seen depends on the table and on the time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) cells: Cells,
    /// When it was written last, milliseconds.
    written: i64,
}

/// What is done to a row.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Put(Vec<(&'static str, Datum, Option<i64>)>),
    /// What becomes of each column.
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
        if !options.lives(newest, now) {
            return None;
        }
        Some(self.clone().trimmed(options, now))
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

    /// The newest value of a column.
    pub(super) fn newest(&self, column: &str) -> Option<&Datum> {
        self.cells.get(column)?.values().next_back()
    }

    /// As answers have it, with these columns of it.
    pub(super) fn told(&self, key: Vec<KeyColumn>, shows: impl Fn(&str) -> bool) -> PlainRow {
        let columns = self.cells.iter().filter(|(name, _)| shows(name));
        let cells = columns.flat_map(|(name, versions)| {
            versions.iter().rev().map(|(version, value)| PlainCell {
                timestamp: Some(*version),
                ..PlainCell::new(name.as_str(), value.wire())
            })
        });
        PlainRow {
            key,
            cells: cells.collect(),
            ..PlainRow::default()
        }
    }
}

impl Change {
    /// `plain` is of a row that the server numbers: columns alone, without versions.
    pub(super) fn draw(random: &mut Rng, options: &Options, now: i64, plain: bool) -> Self {
        let version = |random: &mut Rng| match random.u8(..if plain { 1 } else { 40 }) {
            1..16 => Some(now + random.i64(-4..5)),
            // The table doesn't take it. What no table takes would be refused with its whole request.
            16 => {
                let version = match random.bool() {
                    true => now + options.offset + 1,
                    false => now - options.offset - 1,
                };
                Some(version).filter(|version| (0..i64::MAX / 1_000).contains(version))
            }
            _ => None,
        };
        let names = |random: &mut Rng| {
            let names = NAMES.into_iter().filter(|_| random.u8(..3) > 0);
            names.collect::<Vec<_>>()
        };
        if !plain && random.u8(..6) == 0 {
            return Self::Delete;
        }
        if random.u8(..5) < 2 {
            let mut cells = Vec::new();
            for name in names(random) {
                cells.push((name, Datum::draw(random, name), version(random)));
                // Several versions of one column.
                if cells.last().is_some_and(|(_, _, version)| *version == Some(now)) {
                    cells.push((name, Datum::draw(random, name), Some(now - 7)));
                }
            }
            return Self::Put(cells);
        }
        let mut changes = Vec::new();
        for name in names(random) {
            let change = match random.u8(..if plain { 1 } else { 8 }) {
                5 => Alteration::DeleteAll,
                6 => Alteration::DeleteVersion(now - random.i64(0..6)),
                7 if matches!(name, "size" | "mixed") => {
                    Alteration::Add(random.choice([-2, 1, 3, i64::MAX]).expect("one"))
                }
                _ => Alteration::Put(Datum::draw(random, name), version(random)),
            };
            changes.push((name, change));
        }
        if changes.is_empty() {
            let value = Datum::draw(random, "size");
            changes.push(("size", Alteration::Put(value, None)));
        }
        Self::Update(changes)
    }

    /// Refuses what a table takes of no row.
    pub(super) fn check(&self, options: &Options, now: i64) -> Result<(), Fault> {
        let given: Vec<i64> = match self {
            Self::Put(cells) => cells.iter().filter_map(|(_, _, version)| *version).collect(),
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

    /// What it makes of a row as it is seen before.
    pub(super) fn apply(&self, before: Option<&Row>, options: &Options, now: i64) -> Result<Done, Fault> {
        let mut row = Row {
            cells: Cells::new(),
            written: now,
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

    pub(super) fn kind(&self) -> OperationType {
        match self {
            Self::Put(_) => OperationType::Put,
            Self::Update(_) => OperationType::Update,
            Self::Delete => OperationType::Delete,
        }
    }

    /// As requests have it.
    pub(super) fn wire(&self, key: Vec<KeyColumn>) -> PlainRow {
        let cells = match self {
            Self::Put(cells) => cells
                .iter()
                .map(|(name, value, version)| PlainCell {
                    timestamp: *version,
                    ..PlainCell::new(*name, value.wire())
                })
                .collect(),
            Self::Update(changes) => changes.iter().map(|(name, change)| change.wire(name)).collect(),
            Self::Delete => Vec::new(),
        };
        PlainRow {
            key,
            cells,
            delete_marker: matches!(self, Self::Delete),
            ..PlainRow::default()
        }
    }
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

    fn wire(&self, name: &str) -> PlainCell {
        let (value, operation, timestamp) = match self {
            Self::Put(value, version) => (Some(value.wire()), None, *version),
            Self::DeleteVersion(version) => (None, Some(CellOperation::DeleteOneVersion), Some(*version)),
            Self::DeleteAll => (None, Some(CellOperation::DeleteAllVersions), None),
            Self::Add(by) => (Some((*by).into()), Some(CellOperation::Increment), None),
        };
        PlainCell {
            name: name.into(),
            value,
            operation,
            timestamp,
        }
    }
}

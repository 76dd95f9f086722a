//! Tables as the oracle has them, and the entries of their secondary indexes.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use prost_types::Duration;
use souk_proto::table::v1::{
    self as pb, ColumnType, DefinedColumn, KeyColumn, RowChangeKind, SecondaryIndex, SecondaryIndexState,
};

use super::datum::{Datum, Key, Kind, TIMES, key_told, one};
use super::indexes::Searched;
use super::row::Row;

/// What can be changed of a table, besides its secondary indexes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Options {
    /// Versions of a column.
    pub(super) versions: usize,
    /// How long cells live, milliseconds.
    pub(super) life: Option<i64>,
    /// How far versions may be from the clock, milliseconds.
    pub(super) offset: i64,
    pub(super) updates: bool,
    /// Whether a column is declared as one of times.
    pub(super) has_times: bool,
}

/// A secondary index.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Secondary {
    /// The columns by which it is ordered, before those of the table's key.
    pub(super) columns: Vec<&'static str>,
    pub(super) included: Vec<&'static str>,
    is_local: bool,
    pub(super) state: SecondaryIndexState,
    /// The rows that one has no entries of which was created without the rows there were: each until it is written again, so that it can
    /// stand in it.
    pub(super) missing: Option<BTreeSet<Key>>,
}

/// What was done to a row.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) sequence: i64,
    pub(super) key: Key,
    pub(super) kind: RowChangeKind,
    /// `None`: it is gone.
    pub(super) row: Option<Row>,
}

pub(super) type Rows = BTreeMap<Key, Row>;

#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) keys: Vec<(&'static str, Kind)>,
    /// The place of the key column that the server numbers.
    pub(super) numbered: Option<usize>,
    pub(super) has_transactions: bool,
    pub(super) options: Options,
    /// Whether cells have lived since it was created, or never, or only for some of its time.
    pub(super) life: Life,
    pub(super) secondary: BTreeMap<String, Secondary>,
    pub(super) searched: BTreeMap<String, Searched>,
    pub(super) rows: Rows,
    /// The highest number of each partition.
    pub(super) numbers: BTreeMap<Datum, i64>,
    /// What a watch has to tell that goes on after `watched`.
    pub(super) changes: Vec<Told>,
    pub(super) watched: i64,
}

/// Whether cells of a table expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Endless,
    /// Since it was created.
    Ever,
    /// Since it was changed.
    Lately,
}

/// How long cells live in tables where they don't for ever, at most, milliseconds.
const LIFE_MAX: i64 = 12_000;

impl Options {
    fn draw(random: &mut Rng) -> Self {
        Self {
            versions: one(random, &[1, 1, 2, 3]),
            life: (random.u8(..4) == 0).then_some(LIFE_MAX),
            offset: one(random, &[0, 1000, 86_400_000]),
            updates: random.u8(..8) > 0,
            has_times: random.bool(),
        }
    }

    /// Whether a version hasn't expired.
    pub(super) fn lives(&self, version: i64, now: i64) -> bool {
        self.life.is_none_or(|life| version + life > now)
    }

    /// Other options, that never show again what is hidden by now: when that is freed is the store's affair.
    pub(super) fn drawn_below(&self, random: &mut Rng) -> Self {
        let life = match self.life {
            Some(life) => Some((life - random.i64(0..3_000)).max(2_000)),
            None => (random.u8(..6) == 0).then_some(LIFE_MAX),
        };
        Self {
            versions: random.usize(1..=self.versions),
            life,
            ..Self::draw(random)
        }
    }

    /// Sets them in a table on the wire.
    pub(super) fn put_into(&self, table: &mut pb::Table) {
        let length = |millis: i64| Duration {
            seconds: millis / 1_000,
            nanos: i32::try_from(millis % 1_000 * 1_000_000).expect("below a second"),
        };
        table.max_versions = i32::try_from(self.versions).expect("few");
        table.time_to_live = self.life.map(length);
        table.max_version_offset = Some(length(self.offset));
        table.allow_update = Some(self.updates);
        let declared = [("word", ColumnType::String), (TIMES, ColumnType::Time)];
        let declared = declared.into_iter().take(if self.has_times { 2 } else { 1 });
        table.columns = declared
            .map(|(name, kind)| DefinedColumn {
                name: name.to_owned(),
                r#type: kind.into(),
            })
            .collect();
    }
}

impl Secondary {
    pub(super) fn draw(random: &mut Rng, table: &Table) -> Self {
        let mut names: Vec<_> = ["size", "word", "raw", "mixed", TIMES].into();
        names.extend(table.key_names());
        random.shuffle(&mut names);
        names.truncate(random.usize(1..4));
        let is_local = random.u8(..4) == 0;
        if is_local {
            let first = table.keys[0].0;
            names.retain(|name| *name != first);
            names.insert(0, first);
        }
        let included = ["size", "word", "mixed", TIMES].into_iter();
        let included = included.filter(|name| !names.contains(name) && random.bool());
        Self {
            included: included.collect(),
            columns: names,
            is_local,
            state: SecondaryIndexState::Ready,
            missing: None,
        }
    }

    pub(super) fn wire(&self, name: &str) -> SecondaryIndex {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        SecondaryIndex {
            name: name.to_owned(),
            columns: owned(&self.columns),
            included: owned(&self.included),
            local: self.is_local,
            state: self.state.into(),
            skip_backfill: self.missing.is_some(),
        }
    }

    /// The values of its columns that a row has, if it has all of them.
    fn values(&self, table: &Table, key: &Key, row: &Row) -> Option<Vec<Datum>> {
        let values = self.columns.iter().map(|name| {
            let place = table.keys.iter().position(|(column, _)| column == name);
            place.map_or_else(|| row.newest(name).cloned(), |place| Some(key[place].clone()))
        });
        values.collect()
    }

    /// Its entries: by the values of its columns and the keys of the rows.
    pub(super) fn entries(&self, table: &Table, rows: &Rows) -> Rows {
        let rows = rows.iter().filter(|(key, _)| !self.lacks(key));
        let entries = rows.filter_map(|(key, row)| {
            let values = self.values(table, key, row)?;
            Some(([values, key.clone()].concat(), row.clone().newest_alone()))
        });
        entries.collect()
    }

    /// Whether it was created without this row, which hasn't come in since.
    fn lacks(&self, key: &Key) -> bool {
        self.missing.as_ref().is_some_and(|missing| missing.contains(key))
    }

    /// Whether it takes a row in place of another. It goes on without one that it lacks, whose long values stay as they were.
    fn takes_after(&self, table: &Table, key: &Key, row: &Row, before: Option<&Row>) -> bool {
        let stays = |before: &Row| {
            let mut columns = self.columns.iter();
            !self.takes(table, key, before)
                && columns.all(|name| {
                    let value = row.newest(name);
                    !value.is_some_and(Datum::is_too_long) || value == before.newest(name)
                })
        };
        self.takes(table, key, row) || self.missing.is_some() && before.is_some_and(stays)
    }

    /// Whether it takes a row: what would stand in it may be too long.
    fn takes(&self, table: &Table, key: &Key, row: &Row) -> bool {
        let values = self.values(table, key, row).unwrap_or_default();
        !values.iter().any(Datum::is_too_long)
    }
}

impl Table {
    pub(super) fn draw(random: &mut Rng) -> Self {
        let (keys, numbered): (&[(&str, Kind)], Option<usize>) = match random.u8(..7) {
            0 => (&[("id", Kind::Text)], None),
            1 | 2 => (&[("person", Kind::Text), ("number", Kind::Integer)], None),
            3 => (&[("number", Kind::Integer), ("person", Kind::Text)], None),
            4 => (
                &[
                    ("hash", Kind::Bytes),
                    ("number", Kind::Integer),
                    ("person", Kind::Text),
                ],
                None,
            ),
            5 => (&[("person", Kind::Text), ("number", Kind::Integer)], Some(1)),
            _ => (
                &[
                    ("hash", Kind::Bytes),
                    ("number", Kind::Integer),
                    ("id", Kind::Text),
                ],
                Some(1),
            ),
        };
        let options = Options::draw(random);
        Self {
            keys: keys.to_vec(),
            numbered,
            has_transactions: random.u8(..6) > 0,
            life: options.life.map_or(Life::Endless, |_| Life::Ever),
            options,
            secondary: BTreeMap::new(),
            searched: BTreeMap::new(),
            rows: Rows::new(),
            numbers: BTreeMap::new(),
            changes: Vec::new(),
            watched: 0,
        }
    }

    pub(super) fn key_names(&self) -> Vec<&'static str> {
        self.keys.iter().map(|(name, _)| *name).collect()
    }

    /// A key that a row may have.
    pub(super) fn draw_key(&self, random: &mut Rng) -> Key {
        // Where numbers are the server's, one of those it gave.
        if self.numbered.is_some()
            && let Some(there) = random.choice(self.rows.keys())
        {
            return there.clone();
        }
        self.keys.iter().map(|(_, kind)| kind.draw(random)).collect()
    }

    /// Notes the number of a row.
    pub(super) fn note_number(&mut self, key: &Key) {
        if let Some(place) = self.numbered
            && let Datum::Integer(number) = key[place]
        {
            let highest = self.numbers.entry(key[0].clone()).or_insert(number);
            *highest = number.max(*highest);
        }
    }

    /// Whether its secondary indexes take a row in place of another.
    pub(super) fn takes(&self, key: &Key, row: &Row, before: Option<&Row>) -> bool {
        let kept = self.secondary.values();
        let mut kept = kept.filter(|index| index.state != SecondaryIndexState::Failed);
        kept.all(|index| index.takes_after(self, key, row, before))
    }

    /// Whether a secondary index that is added may meet a row that it doesn't take.
    pub(super) fn is_doubtful(&self, index: &Secondary) -> bool {
        !self.rows.iter().all(|(key, row)| index.takes(self, key, row))
    }

    /// Notes what was committed.
    pub(super) fn commit(&mut self, sequence: i64, key: Key, kind: RowChangeKind, row: Option<Row>) {
        let row = row.map(|row| Row {
            revision: sequence,
            ..row
        });
        if row.is_some() {
            self.note_number(&key);
        }
        let takes = |index: &Secondary| row.as_ref().is_none_or(|row| index.takes(self, &key, row));
        let comes_in: Vec<bool> = self.secondary.values().map(takes).collect();
        for (index, comes_in) in self.secondary.values_mut().zip(comes_in) {
            if let Some(missing) = index.missing.as_mut().filter(|_| comes_in) {
                missing.remove(&key);
            }
        }
        self.changes.push(Told {
            sequence,
            key: key.clone(),
            kind,
            row: row.clone().map(Row::newest_alone),
        });
        match row {
            Some(row) => _ = self.rows.insert(key, row),
            None => _ = self.rows.remove(&key),
        }
    }

    /// As it is created and told, without its search index.
    pub(super) fn wire(&self, name: &str) -> pb::Table {
        let keys = self.keys.iter().enumerate();
        let keys = keys.map(|(place, (name, kind))| KeyColumn {
            name: (*name).to_owned(),
            r#type: kind.wire().into(),
            auto_increment: self.numbered == Some(place),
        });
        let mut table = pb::Table {
            name: name.to_owned(),
            key: keys.collect(),
            transactions: self.has_transactions,
            ..pb::Table::default()
        };
        self.options.put_into(&mut table);
        let indexes = self.secondary.iter();
        table.indexes = indexes.map(|(name, index)| index.wire(name)).collect();
        table
    }

    /// Compares the rows of an answer with those that are expected.
    pub(super) fn same(&self, found: &[pb::Row], expected: &[pb::Row], what: &dyn std::fmt::Debug) {
        if found == expected {
            return;
        }
        let keys =
            |rows: &[pb::Row]| -> BTreeSet<Key> { rows.iter().map(|row| key_told(&row.key)).collect() };
        let (found_keys, expected_keys) = (keys(found), keys(expected));
        for row in found {
            let other = expected.iter().find(|other| other.key == row.key);
            if other.is_some_and(|other| other != row) {
                panic!("{what:?}: found {row:?}\nnot {other:?}");
            }
        }
        let more: Vec<_> = found_keys.difference(&expected_keys).collect();
        let fewer: Vec<_> = expected_keys.difference(&found_keys).collect();
        panic!(
            "{what:?}: {more:?} are found and shouldn't be, {fewer:?} aren't; or the order differs: {found_keys:?}"
        );
    }
}

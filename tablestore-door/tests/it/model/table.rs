//! Tables as the oracle has them, and the entries of their secondary indexes.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use souk_tablestore::messages::{
    self as pb, DefinedColumnType, IndexType, IndexUpdateMode, PrimaryKeyOption,
};
use souk_tablestore::{KeyColumn, KeyElement};

use super::Fault;
use super::datum::{Datum, Key, Kind};
use super::indexes::Searched;
use super::row::Row;

/// What can be changed of a table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Options {
    /// Versions of a column.
    pub(super) versions: usize,
    /// How long cells live, milliseconds.
    pub(super) life: Option<i64>,
    /// How far versions may be from the clock, milliseconds.
    pub(super) offset: i64,
    pub(super) updates: bool,
}

/// A secondary index.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Secondary {
    /// The columns by which it is ordered, before those of the table's key that aren't among them.
    pub(super) columns: Vec<&'static str>,
    pub(super) included: Vec<&'static str>,
    is_local: bool,
    /// The rows that one has no entries of which was created without the rows there were: each until it is written again.
    pub(super) missing: Option<BTreeSet<Key>>,
}

pub(super) type Rows = BTreeMap<Key, Row>;

#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) keys: Vec<(&'static str, Kind)>,
    /// The place of the key column that the server numbers.
    pub(super) numbered: Option<usize>,
    pub(super) options: Options,
    /// The columns that it declares.
    pub(super) declared: Vec<Column>,
    pub(super) secondary: BTreeMap<String, Secondary>,
    pub(super) searched: BTreeMap<String, Searched>,
    pub(super) rows: Rows,
    /// The highest number of each partition.
    pub(super) numbers: BTreeMap<Datum, i64>,
}

/// A column that a table declares.
pub(super) type Column = (&'static str, DefinedColumnType);

/// Columns that every table declares at first: what indexes are of.
pub(super) const DECLARED: [Column; 4] = [
    ("word", DefinedColumnType::String),
    ("size", DefinedColumnType::Integer),
    ("raw", DefinedColumnType::Blob),
    ("mixed", DefinedColumnType::Double),
];

/// How long cells live in tables where they don't for ever, at most.
const LIFE_MAX_SECONDS: i64 = 12;

impl Options {
    pub(super) fn draw(random: &mut Rng) -> Self {
        Self {
            versions: random.choice([1, 1, 2, 3]).expect("one"),
            life: (random.u8(..4) == 0).then_some(LIFE_MAX_SECONDS * 1000),
            offset: random.choice([1000, 86_400_000]).expect("one"),
            updates: random.u8(..8) > 0,
        }
    }

    /// Whether a version hasn't expired.
    pub(super) fn lives(&self, version: i64, now: i64) -> bool {
        self.life.is_none_or(|life| version + life > now)
    }

    /// Other options, that never show again what is hidden by now: when that is freed is the store's affair.
    pub(super) fn drawn_below(&self, random: &mut Rng) -> Self {
        let shorter = |life: i64, random: &mut Rng| (life / 1000 - random.i64(0..3)).max(2) * 1000;
        let life = match self.life {
            Some(life) => Some(shorter(life, random)),
            None => (random.u8(..6) == 0).then_some(LIFE_MAX_SECONDS * 1000),
        };
        Self {
            versions: random.usize(1..=self.versions),
            life,
            ..Self::draw(random)
        }
    }

    pub(super) fn wire(&self) -> pb::TableOptions {
        let seconds = |life: i64| i32::try_from(life / 1000).expect("a short life");
        pb::TableOptions {
            time_to_live: Some(self.life.map_or(-1, seconds)),
            max_versions: Some(i32::try_from(self.versions).expect("few")),
            deviation_cell_version_in_sec: Some(self.offset / 1000),
            allow_update: Some(self.updates),
            ..pb::TableOptions::default()
        }
    }
}

impl Secondary {
    pub(super) fn draw(random: &mut Rng, table: &Table) -> Self {
        let mut columns = vec![random.choice(["size", "word", "raw"]).expect("one")];
        if random.bool() {
            let others = ["size", "word"].into_iter().chain(table.key_names());
            let mut others: Vec<_> = others.filter(|name| !columns.contains(name)).collect();
            random.shuffle(&mut others);
            columns.extend(others.into_iter().take(random.usize(1..3)));
        }
        let is_local = random.u8(..4) == 0;
        if is_local {
            let first = table.keys[0].0;
            columns.retain(|name| *name != first);
            columns.insert(0, first);
        }
        let included = ["size", "word", "mixed"].into_iter();
        let included = included.filter(|name| !columns.contains(name) && random.bool());
        Self {
            included: included.collect(),
            columns,
            is_local,
            missing: None,
        }
    }

    pub(super) fn wire(&self, name: &str, table: &Table, is_told: bool) -> pb::IndexMeta {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let whole: Vec<_> = self.key(table).into_iter().map(|(name, _)| name).collect();
        pb::IndexMeta {
            name: name.to_owned(),
            primary_key: owned(if is_told { &whole } else { &self.columns }),
            defined_column: owned(&self.included),
            index_update_mode: match self.is_local {
                true => IndexUpdateMode::Sync.into(),
                false => IndexUpdateMode::Async.into(),
            },
            index_type: match self.is_local {
                true => IndexType::Local.into(),
                false => IndexType::Global.into(),
            },
            index_sync_phase: is_told.then_some(pb::IndexSyncPhase::Incr.into()),
        }
    }

    /// Its key: its columns, and the rest of that of the table.
    pub(super) fn key(&self, table: &Table) -> Vec<(&'static str, Kind)> {
        let of_table = |name: &str| table.keys.iter().find(|(key, _)| *key == name).copied();
        let own = self.columns.iter().map(|name| {
            of_table(name).unwrap_or_else(|| {
                let kind = match *name {
                    "size" => Kind::Integer,
                    "raw" => Kind::Bytes,
                    _ => Kind::Text,
                };
                (*name, kind)
            })
        });
        let rest = table.keys.iter().filter(|(name, _)| !self.columns.contains(name));
        own.chain(rest.copied()).collect()
    }

    /// Its entries: of each row that has all of its columns, what it includes.
    pub(super) fn entries(&self, table: &Table, rows: &Rows) -> Rows {
        let columns = self.key(table);
        let lacks = |key: &Key| self.missing.as_ref().is_some_and(|missing| missing.contains(key));
        let entries = rows
            .iter()
            .filter(|(key, _)| !lacks(key))
            .filter_map(|(key, row)| {
                let value = |name: &str| {
                    let place = table.keys.iter().position(|(column, _)| *column == name);
                    place.map_or_else(|| row.newest(name), |place| Some(&key[place]))
                };
                let key: Option<Key> = columns.iter().map(|(name, _)| value(name).cloned()).collect();
                let mut entry = row.clone();
                entry.cells.retain(|name, versions| {
                    while versions.len() > 1 {
                        versions.pop_first();
                    }
                    self.included.contains(&name.as_str())
                });
                Some((key?, entry))
            });
        entries.collect()
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
        let mut table = Self {
            keys: keys.to_vec(),
            numbered,
            options: Options::draw(random),
            declared: DECLARED.to_vec(),
            secondary: BTreeMap::new(),
            searched: BTreeMap::new(),
            rows: Rows::new(),
            numbers: BTreeMap::new(),
        };
        // Rows whose numbers grow would be ever more.
        if numbered.is_some() {
            table.options.life = Some(LIFE_MAX_SECONDS * 1000);
        }
        table
    }

    /// Declares columns.
    pub(super) fn declare(&mut self, columns: &[Column]) -> Result<(), Fault> {
        for column in columns {
            if self.key_names().contains(&column.0) {
                return Err(Fault::Invalid);
            }
            match self.declared.iter().find(|(name, _)| *name == column.0) {
                None => self.declared.push(*column),
                Some(there) if there == column => {}
                Some(_) => return Err(Fault::Invalid),
            }
        }
        Ok(())
    }

    /// Takes declarations away; no secondary index may need them.
    pub(super) fn undeclare(&mut self, columns: &[&'static str]) -> Result<(), Fault> {
        for column in columns {
            let mut indexes = self.secondary.values();
            let is_needed =
                indexes.any(|index| index.columns.contains(column) || index.included.contains(column));
            let place = self.declared.iter().position(|(name, _)| name == column);
            match place.filter(|_| !is_needed) {
                Some(place) => _ = self.declared.remove(place),
                None => return Err(Fault::Invalid),
            }
        }
        Ok(())
    }

    /// Whether all columns that an index is of are there.
    pub(super) fn has_all_of(&self, index: &Secondary) -> bool {
        let mut columns = index.columns.iter().chain(&index.included);
        columns.all(|column| {
            let mut declared = self.declared.iter();
            self.key_names().contains(column) || declared.any(|(name, _)| name == column)
        })
    }

    pub(super) fn key_names(&self) -> Vec<&'static str> {
        self.keys.iter().map(|(name, _)| *name).collect()
    }

    /// A key that a row may have.
    pub(super) fn draw_key(&self, random: &mut Rng) -> Key {
        let key = self.keys.iter().map(|(_, kind)| kind.draw(random));
        let mut key: Key = key.collect();
        // Where numbers are the server's, one of those it gave.
        if self.numbered.is_some()
            && let Some(there) = random.choice(self.rows.keys())
        {
            key.clone_from(there);
        }
        key
    }

    /// Notes what was committed.
    pub(super) fn commit(&mut self, key: Key, row: Option<Row>) {
        let missing = self
            .secondary
            .values_mut()
            .filter_map(|index| index.missing.as_mut());
        for missing in missing {
            missing.remove(&key);
        }
        match row {
            Some(row) => _ = self.rows.insert(key, row),
            None => _ = self.rows.remove(&key),
        }
    }

    /// Notes the number of a row.
    pub(super) fn note_number(&mut self, place: usize, key: &Key) {
        if let Datum::Integer(number) = key[place] {
            let highest = self.numbers.entry(key[0].clone()).or_insert(number);
            *highest = number.max(*highest);
        }
    }

    pub(super) fn wire_key(&self, key: &Key) -> Vec<KeyColumn> {
        wire_key(&self.keys, key)
    }

    pub(super) fn create_wire(&self, name: &str) -> pb::CreateTableRequest {
        let indexes = self.secondary.iter();
        pb::CreateTableRequest {
            table_meta: self.meta(name),
            reserved_throughput: pb::ReservedThroughput::default(),
            table_options: Some(self.options.wire()),
            index_metas: indexes
                .map(|(name, index)| index.wire(name, self, false))
                .collect(),
            ..pb::CreateTableRequest::default()
        }
    }

    /// What is told of its columns.
    pub(super) fn meta(&self, name: &str) -> pb::TableMeta {
        let keys = self
            .keys
            .iter()
            .enumerate()
            .map(|(place, (name, kind))| pb::PrimaryKeySchema {
                name: (*name).to_owned(),
                r#type: kind.wire().into(),
                option: (self.numbered == Some(place)).then_some(PrimaryKeyOption::AutoIncrement.into()),
            });
        pb::TableMeta {
            table_name: name.to_owned(),
            primary_key: keys.collect(),
            defined_column: self.declared.iter().map(column_wire).collect(),
            ..pb::TableMeta::default()
        }
    }
}

pub(super) fn column_wire((name, kind): &Column) -> pb::DefinedColumnSchema {
    pb::DefinedColumnSchema {
        name: (*name).to_owned(),
        r#type: (*kind).into(),
    }
}

pub(super) fn wire_key(columns: &[(&'static str, Kind)], key: &Key) -> Vec<KeyColumn> {
    let columns = columns.iter().zip(key);
    columns
        .map(|((name, _), value)| KeyColumn::new(*name, value.element()))
        .collect()
}

/// The values of a key of an answer.
pub(super) fn key_told(columns: &[KeyColumn]) -> Key {
    let values = columns.iter().map(|column| match &column.value {
        KeyElement::Integer(number) => Datum::Integer(*number),
        KeyElement::String(text) => Datum::text(text),
        KeyElement::Binary(bytes) => Datum::Bytes(bytes.to_vec()),
        other => panic!("no value: {other:?}"),
    });
    values.collect()
}

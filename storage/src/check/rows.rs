//! Rows: each is of a table and readable. On the way: what entries the indexes should have, and how many rows the log
//! should know.

use std::collections::BTreeMap;

use bytes::Bytes;
use souk_kv::{KvSnapshot, Space};
use xxhash_rust::xxh3::Xxh3;

use super::catalog::CheckedCatalog;
use super::report::{Findings, ProblemKind};
use super::tables::Tables;
use super::walk::{Through, hexadecimal};
use crate::catalog::Table;
use crate::contents::{TableContents, count_row};
use crate::error::{Error, Result};
use crate::id::TableId;
use crate::key;
use crate::row::{Row, codec};
use crate::secondary;

/// Entries of an index, however ordered.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) count: u64,
    pub(super) bytes: u64,
    checksum: u128,
}

impl Sum {
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        let mut checksum = Xxh3::new();
        checksum.update(&(key.len() as u64).to_be_bytes());
        checksum.update(key);
        checksum.update(value);
        self.checksum = self.checksum.wrapping_add(checksum.digest128());
        self.count += 1;
        self.bytes += (key.len() + value.len()) as u64;
    }
}

/// What rows say.
#[derive(Debug, Default)]
pub(super) struct Rows {
    contents: BTreeMap<TableId, TableContents>,
    /// What the entries of each index should be.
    pub(super) entries: BTreeMap<(TableId, u16), Sum>,
    /// Rows whose last change the log should still have.
    pub(super) in_log: u64,
    /// Whether some rows couldn't be read, so that others seem to be without one.
    pub(super) broken: bool,
}

impl Rows {
    /// What each table holds.
    pub(super) fn contents(&self, tables: &Tables) -> Vec<TableContents> {
        let mut all = Vec::new();
        for table in tables.iter() {
            let mut contents = TableContents::new(table);
            if let Some(counted) = self.contents.get(&table.id()) {
                contents.rows = counted.rows;
                contents.bytes = counted.bytes;
                contents.cells = counted.cells;
            }
            for index in &mut contents.indexes {
                if let Some(sum) = self.entries.get(&(table.id(), index.number)) {
                    (index.entries, index.bytes) = (sum.count, sum.bytes);
                }
            }
            all.push(contents);
        }
        all
    }
}

pub(super) async fn check(
    snapshot: &dyn KvSnapshot,
    catalog: &CheckedCatalog,
    findings: &mut Findings,
) -> Rows {
    let mut rows = Rows::default();
    let mut walk = Through::all(Space::Rows);
    while let Some(page) = walk.next(snapshot, findings).await {
        let bytes = page
            .iter()
            .map(|(key, value)| key.len() + value.len())
            .sum::<usize>();
        findings.read(Space::Rows, page.len() as u64, bytes as u64);
        for (key, value) in &page {
            let Some(table) = catalog.tables.of_row(key) else {
                if catalog.removes_table(key) {
                    findings.leftovers += 1;
                    continue;
                }
                let what = format!("a row of no table: {}", hexadecimal(key));
                findings.problem(ProblemKind::Unknown, Space::Rows, what);
                continue;
            };
            if let Err(error) = one(&mut rows, table, findings, key, value) {
                rows.broken = true;
                findings.malformed(Space::Rows, &error);
            }
        }
    }
    rows.broken |= walk.broken();
    rows
}

fn one(rows: &mut Rows, table: &Table, findings: &mut Findings, key: &Bytes, value: &[u8]) -> Result<()> {
    let row = read(table, key, value)?;
    if row.revision > findings.sequence {
        let what = format!(
            "row {:?} of table {:?} was written by change {}, but the log ends at {}",
            row.key,
            table.name(),
            row.revision,
            findings.sequence
        );
        findings.problem(ProblemKind::LogDisagrees, Space::Rows, what);
    } else if row.revision > findings.trimmed {
        rows.in_log += 1;
    }
    let contents = rows.contents.entry(table.id());
    let contents = contents.or_insert_with(|| TableContents::new(table));
    count_row(contents, key, value, &row);
    for (entry, value) in secondary::fitting_entries(table, &row) {
        let number = key::index_number_of(&entry)?;
        let sum = rows.entries.entry((table.id(), number)).or_default();
        sum.add(&entry, &value);
    }
    Ok(())
}

/// A stored row of a table.
pub(super) fn read(table: &Table, key: &[u8], value: &[u8]) -> Result<Row> {
    let primary_key = key::primary_key_of_row(key)?;
    table
        .schema()
        .check_key(&primary_key)
        .map_err(|error| Error::corrupt(format!("key of a row of table {:?}: {error}", table.name())))?;
    codec::decode(primary_key, value)
}

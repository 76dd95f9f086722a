//! Secondary indexes: every entry is readable, and they are the entries that the rows should have.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use souk_kv::{KvSnapshot, Space};

use super::catalog::CheckedCatalog;
use super::report::{Findings, ProblemKind};
use super::rows::{self, Rows, Sum};
use super::tables::index_of;
use super::walk::{Through, hexadecimal};
use crate::catalog::Table;
use crate::error::Result;
use crate::id::TableId;
use crate::key;
use crate::secondary;
use crate::walk::Walk;

pub(super) async fn check(
    snapshot: &dyn KvSnapshot,
    catalog: &CheckedCatalog,
    rows: &Rows,
    findings: &mut Findings,
) {
    let mut found: BTreeMap<(TableId, u16), Sum> = BTreeMap::new();
    let mut walk = Through::all(Space::Index);
    while let Some(page) = walk.next(snapshot, findings).await {
        let bytes = page
            .iter()
            .map(|(key, value)| key.len() + value.len())
            .sum::<usize>();
        findings.read(Space::Index, page.len() as u64, bytes as u64);
        for (key, value) in &page {
            match key::index_number_of(key) {
                Ok(number) => match catalog.tables.of_row(key) {
                    Some(table) if index_of(table, number).is_some() => {
                        found.entry((table.id(), number)).or_default().add(key, value);
                    }
                    Some(_) | None if catalog.removes_index(key, number) => findings.leftovers += 1,
                    Some(_) | None => {
                        let what = format!("an entry of no index: {}", hexadecimal(key));
                        findings.problem(ProblemKind::Unknown, Space::Index, what);
                    }
                },
                Err(error) => findings.malformed(Space::Index, &error),
            }
        }
    }
    let all: BTreeSet<_> = found.keys().chain(rows.entries.keys()).copied().collect();
    let mut suspects: BTreeMap<TableId, BTreeSet<u16>> = BTreeMap::new();
    for (table, number) in all {
        if found.get(&(table, number)) != rows.entries.get(&(table, number)) {
            suspects.entry(table).or_default().insert(number);
        }
    }
    for (table, numbers) in suspects {
        if let Some(table) = catalog.tables.get(table) {
            let whole = |number: &u16| {
                let index = index_of(table, *number);
                index.is_some_and(|index| index.complete) && !catalog.fills(table, *number)
            };
            let complete: BTreeSet<_> = numbers.iter().copied().filter(whole).collect();
            if !complete.is_empty() {
                missing(snapshot, table, &complete, walk.broken(), findings).await;
            }
            let kept = |number: &u16| index_of(table, *number).is_none_or(|index| index.kept);
            for number in numbers.into_iter().filter(kept) {
                let compared = complete.contains(&number);
                surplus(snapshot, table, number, compared, rows.broken, findings).await;
            }
        }
    }
}

fn name(table: &Table, number: u16) -> String {
    let index = index_of(table, number).map_or_else(|| number.to_string(), |index| index.name);
    format!("index {index:?} of table {:?}", table.name())
}

/// Entries that rows should have are there and as they should be.
async fn missing(
    snapshot: &dyn KvSnapshot,
    table: &Table,
    numbers: &BTreeSet<u16>,
    index_is_broken: bool,
    findings: &mut Findings,
) {
    let mut walk = Through::over(Walk::within(Space::Rows, &key::before_rows(table.id())));
    // What can't be read was reported before.
    let mut reported = Findings::new(0);
    while let Some(page) = walk.next(snapshot, &mut reported).await {
        for (key, value) in &page {
            let entries = entries_of(table, key, value).unwrap_or_default();
            let wanted = entries.into_iter().filter(|(entry, _)| {
                key::index_number_of(entry).is_ok_and(|number| numbers.contains(&number))
            });
            for (entry, expected) in wanted {
                let number = key::index_number_of(&entry).unwrap_or_default();
                let what = match snapshot.get(Space::Index, &entry).await {
                    Ok(Some(value)) if value == expected => continue,
                    Ok(Some(_)) => "has other included columns than",
                    // Reported as a whole.
                    Err(_) => continue,
                    Ok(None) if index_is_broken => continue,
                    Ok(None) => "lacks the entry of",
                };
                let what = format!("{} {what} the row with {}", name(table, number), hexadecimal(key));
                findings.problem(ProblemKind::IndexDisagrees, Space::Index, what);
            }
        }
    }
}

/// Entries that are there have a row that should have them, and their included columns are its own, unless that was `compared` from
/// the rows.
async fn surplus(
    snapshot: &dyn KvSnapshot,
    table: &Table,
    number: u16,
    compared: bool,
    rows_are_broken: bool,
    findings: &mut Findings,
) {
    let mut walk = Through::over(Walk::within(Space::Index, &key::index(table.id(), number)));
    let mut reported = Findings::new(0);
    while let Some(page) = walk.next(snapshot, &mut reported).await {
        for (entry, value) in &page {
            let what = match row_of(snapshot, table, number, entry).await {
                Ok(Some((key, row))) => match entries_of(table, &key, &row) {
                    Ok(entries) => match entries.get(entry) {
                        Some(expected) if compared || value == expected => continue,
                        Some(_) => "with other included columns than its row",
                        None => "that its row should not have",
                    },
                    Err(_) => continue,
                },
                Ok(None) if rows_are_broken => continue,
                Ok(None) => "without a row",
                Err(error) => {
                    findings.malformed(Space::Index, &error);
                    continue;
                }
            };
            let what = format!(
                "{} has an entry {what}: {}",
                name(table, number),
                hexadecimal(entry)
            );
            findings.problem(ProblemKind::IndexDisagrees, Space::Index, what);
        }
    }
}

fn entries_of(table: &Table, key: &[u8], value: &[u8]) -> Result<BTreeMap<Bytes, Vec<u8>>> {
    Ok(secondary::fitting_entries(table, &rows::read(table, key, value)?))
}

/// The row that an entry names, with its key.
async fn row_of(
    snapshot: &dyn KvSnapshot,
    table: &Table,
    number: u16,
    entry: &Bytes,
) -> Result<Option<(Bytes, Bytes)>> {
    let columns = index_of(table, number).map_or(0, |index| index.columns);
    let rest = entry.get(key::INDEX_PREFIX_BYTES..).unwrap_or_default();
    let (_, primary_key) = key::read_index_entry(rest, columns).map_err(|malformed| {
        crate::Error::corrupt(format!(
            "{} in {}: expected {}",
            hexadecimal(entry),
            name(table, number),
            malformed.0
        ))
    })?;
    let key = key::row(table.id(), &primary_key);
    // A row that can't be read was reported before.
    let row = snapshot.get(Space::Rows, &key).await.unwrap_or_default();
    Ok(row.map(|row| (key, row)))
}

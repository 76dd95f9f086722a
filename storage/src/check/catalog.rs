//! The catalog: every entry is of a known kind, and says nothing that another contradicts.

use std::collections::BTreeSet;

use bytes::Bytes;
use souk_kv::{KvSnapshot, Space, histories::Histories};

use super::report::{Findings, ProblemKind};
use super::tables::Tables;
use super::walk::{Through, hexadecimal};
use crate::catalog::Table;
use crate::error::{Error, Result};
use crate::id::TableId;
use crate::key::{self, CatalogKind};
use crate::replay;

/// What the catalog says.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    pub(super) tables: Tables,
    /// Tables and indexes whose rows and entries are being removed.
    removing: BTreeSet<(TableId, Option<u16>)>,
    /// Indexes that are being filled.
    filling: BTreeSet<(TableId, u16)>,
    requests: u64,
    ages: u64,
}

impl Catalog {
    /// Whether the rows and entries of a table are being removed.
    pub(super) fn removes_table(&self, key: &[u8]) -> bool {
        let table = key.first_chunk().map(|id| TableId(u32::from_be_bytes(*id)));
        table.is_some_and(|table| self.removing.contains(&(table, None)))
    }

    /// Whether the entries of an index are being removed.
    pub(super) fn removes_index(&self, key: &[u8], number: u16) -> bool {
        let table = key.first_chunk().map(|id| TableId(u32::from_be_bytes(*id)));
        self.removes_table(key) || table.is_some_and(|table| self.removing.contains(&(table, Some(number))))
    }

    /// Whether an index lacks the entries of some rows.
    pub(super) fn fills(&self, table: &Table, number: u16) -> bool {
        self.filling.contains(&(table.id(), number))
    }
}

/// Kinds of work in the background.
const FILL_INDEX: u8 = 1;
const REMOVE_INDEX: u8 = 2;
const REMOVE_TABLE: u8 = 3;

pub(super) async fn check(snapshot: &dyn KvSnapshot, findings: &mut Findings) -> Catalog {
    let mut catalog = Catalog::default();
    let mut walk = Through::all(Space::Catalog);
    let mut head = None;
    while let Some(page) = walk.next(snapshot, findings).await {
        let bytes = page
            .iter()
            .map(|(key, value)| key.len() + value.len())
            .sum::<usize>();
        findings.read(Space::Catalog, page.len() as u64, bytes as u64);
        let mut ages = Vec::new();
        for (key, value) in &page {
            match entry(&mut catalog, findings, &mut head, key, value) {
                Ok(Some(request)) => ages.push(request),
                Ok(None) => {}
                Err(error) => findings.malformed(Space::Catalog, &error),
            }
        }
        aged(snapshot, findings, ages).await;
    }
    // Not every engine writes one.
    if let Some(head) = head.filter(|head| *head != findings.sequence) {
        let what = format!("the head says {head}, the log ends at {}", findings.sequence);
        findings.problem(ProblemKind::CatalogDisagrees, Space::Catalog, what);
    }
    if catalog.requests != catalog.ages && !walk.broken() {
        let what = format!(
            "{} requests are kept, but {} by age",
            catalog.requests, catalog.ages
        );
        findings.problem(ProblemKind::CatalogDisagrees, Space::Catalog, what);
    }
    catalog
}

/// Reads an entry; gives the key of a request that was found by its age.
fn entry(
    catalog: &mut Catalog,
    findings: &mut Findings,
    head: &mut Option<u64>,
    key: &Bytes,
    value: &Bytes,
) -> Result<Option<Bytes>> {
    let number = |what: &str| {
        <[u8; 8]>::try_from(value.as_ref())
            .map(u64::from_be_bytes)
            .map_err(|_| Error::corrupt(format!("{what} has {} bytes, not 8", value.len())))
    };
    match key::catalog_kind(key) {
        Some(CatalogKind::Head) => *head = Some(number("the head of the log")?),
        Some(CatalogKind::Trimmed) => {
            findings.trimmed = number("the end of trimming")?;
            if findings.trimmed > findings.sequence {
                let what = format!(
                    "trimmed up to {}, but the log ends at {}",
                    findings.trimmed, findings.sequence
                );
                findings.problem(ProblemKind::CatalogDisagrees, Space::Catalog, what);
            }
        }
        Some(CatalogKind::Table) => catalog.tables.take(key, value)?,
        Some(CatalogKind::Consumer) => {
            let name = key::consumer_of(key)?;
            // It may lie beyond a log whose loss was accepted.
            number(&format!("the position of consumer {name:?}"))?;
        }
        Some(CatalogKind::Request) => {
            catalog.requests += 1;
            replay::decode(value)?;
        }
        Some(CatalogKind::RequestAge) => {
            catalog.ages += 1;
            return Ok(Some(key::request(key::request_of_age(key)?)));
        }
        Some(CatalogKind::Job {
            table,
            kind: FILL_INDEX,
            index,
        }) => {
            catalog.filling.insert((table, index));
        }
        Some(CatalogKind::Job { table, kind, index }) => {
            if kind == REMOVE_INDEX {
                catalog.removing.insert((table, Some(index)));
            } else if kind == REMOVE_TABLE {
                catalog.removing.insert((table, None));
            }
        }
        Some(CatalogKind::Histories) => {
            Histories::decode(value)?;
        }
        Some(CatalogKind::Number) => {
            number("a number")?;
        }
        Some(CatalogKind::Private) => {}
        None => {
            return Err(Error::corrupt(format!(
                "{} is of no kind that this program knows",
                hexadecimal(key)
            )));
        }
    }
    Ok(None)
}

/// Requests that were found by age are there.
async fn aged(snapshot: &dyn KvSnapshot, findings: &mut Findings, requests: Vec<Bytes>) {
    let found = match snapshot.multi_get(Space::Catalog, requests.clone()).await {
        Ok(found) => found,
        Err(error) => return findings.malformed(Space::Catalog, &error.into()),
    };
    for (key, value) in requests.iter().zip(found) {
        if value.is_none() {
            let what = format!("a request is known by its age alone: {}", hexadecimal(key));
            findings.problem(ProblemKind::CatalogDisagrees, Space::Catalog, what);
        }
    }
}

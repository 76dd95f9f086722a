//! Checks the catalog: every entry is of a known kind, and none contradicts another.

use std::collections::BTreeSet;

use bytes::Bytes;
use souk_kv::{KvSnapshot, Space, histories::Histories};

use super::report::{Findings, ProblemKind};
use super::tables::{Tables, index_of};
use super::walk::{Through, hexadecimal};
use crate::catalog::Table;
use crate::error::{Error, Result};
use crate::jobs::{Job, JobKey, JobKind};
use crate::key::{self, CatalogKind};
use crate::replay;

/// The tables and jobs that the catalog of a snapshot has, for the checks of the other spaces.
#[derive(Debug, Default)]
pub(super) struct CheckedCatalog {
    pub(super) tables: Tables,
    /// The jobs that aren't finished.
    jobs: BTreeSet<JobKey>,
    /// Numbers of request records, and of the entries that find them by their age: one for each.
    requests: u64,
    request_ages: u64,
}

impl CheckedCatalog {
    /// Whether a job is removing the rows and entries of the table that a key of a row or an entry is of.
    pub(super) fn removes_table(&self, key: &[u8]) -> bool {
        key::table_prefix(key).is_some_and(|table| self.jobs.contains(&(table, JobKind::RemoveTable, 0)))
    }

    /// Whether a job is removing the entries of the index with this number, of the table that the key of an entry is of.
    pub(super) fn removes_index(&self, key: &[u8], number: u16) -> bool {
        let removed = |table| self.jobs.contains(&(table, JobKind::RemoveIndex, number));
        self.removes_table(key) || key::table_prefix(key).is_some_and(removed)
    }

    /// Whether an index still lacks the entries of some rows.
    pub(super) fn fills(&self, table: &Table, number: u16) -> bool {
        self.jobs.contains(&(table.id(), JobKind::FillIndex, number))
    }

    /// The jobs that contradict the tables, each with what is wrong with it.
    fn contradictions(&self) -> impl Iterator<Item = String> {
        self.jobs.iter().filter_map(|(id, kind, number)| {
            let table = self.tables.get(*id);
            let has_index = || table.is_some_and(|table| index_of(table, *number).is_some());
            let wrong = match kind {
                JobKind::RemoveTable if table.is_some() => "removes a table that is there",
                JobKind::RemoveIndex if has_index() => "removes an index that is there",
                JobKind::FillIndex if !has_index() => "fills an index that isn't there",
                JobKind::TrimVersions if table.is_none() => "trims versions of a table that isn't there",
                JobKind::RemoveTable | JobKind::RemoveIndex | JobKind::FillIndex | JobKind::TrimVersions => {
                    return None;
                }
            };
            Some(format!("a job of table number {}, index {number}, {wrong}", id.0))
        })
    }
}

/// Checks every entry of the catalog in a snapshot.
pub(super) async fn check(snapshot: &dyn KvSnapshot, findings: &mut Findings) -> CheckedCatalog {
    let mut catalog = CheckedCatalog::default();
    let mut walk = Through::all(Space::Catalog);
    let mut head = None;
    while let Some(page) = walk.next(snapshot, findings).await {
        let bytes = page
            .iter()
            .map(|(key, value)| key.len() + value.len())
            .sum::<usize>();
        findings.read(Space::Catalog, page.len() as u64, bytes as u64);
        let mut by_age = Vec::new();
        for (key, value) in &page {
            match check_entry(&mut catalog, findings, &mut head, key, value) {
                Ok(Some(request)) => by_age.push(request),
                Ok(None) => {}
                Err(error) => findings.malformed(Space::Catalog, &error),
            }
        }
        check_requests(snapshot, findings, by_age).await;
    }
    // The engine in memory writes no head.
    if let Some(head) = head.filter(|head| *head != findings.sequence) {
        let what = format!("the head says {head}, the log ends at {}", findings.sequence);
        findings.problem(ProblemKind::CatalogDisagrees, Space::Catalog, what);
    }
    if !walk.broken() {
        for what in catalog.contradictions() {
            findings.problem(ProblemKind::CatalogDisagrees, Space::Catalog, what);
        }
    }
    if catalog.requests != catalog.request_ages && !walk.broken() {
        let what = format!(
            "{} requests are kept, but {} by age",
            catalog.requests, catalog.request_ages
        );
        findings.problem(ProblemKind::CatalogDisagrees, Space::Catalog, what);
    }
    catalog
}

/// Checks an entry by itself. Of an entry that finds a request record by its age, returns the record's key.
fn check_entry(
    catalog: &mut CheckedCatalog,
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
        Some(CatalogKind::Table) => catalog.tables.add(key, value)?,
        Some(CatalogKind::Consumer) => {
            let name = key::consumer_of(key)?;
            // It may lie beyond the end of a log that was shortened.
            number(&format!("the position of consumer {name:?}"))?;
        }
        Some(CatalogKind::Request) => {
            catalog.requests += 1;
            replay::decode(value)?;
        }
        Some(CatalogKind::RequestAge) => {
            catalog.request_ages += 1;
            return Ok(Some(key::request(key::request_of_age(key)?)));
        }
        Some(CatalogKind::Job { .. }) => {
            catalog.jobs.insert(Job::decode(key, value)?.key());
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

/// Checks that the request records with these keys, which entries find by their age, are there.
async fn check_requests(snapshot: &dyn KvSnapshot, findings: &mut Findings, requests: Vec<Bytes>) {
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

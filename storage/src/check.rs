//! Checking a database: every key of every space is read and decoded, and rows, secondary indexes, log and catalog are
//! held against each other.
//!
//! - `walk`: reading a space, around what can't be read.
//! - `tables`: what the catalog says there is.
//! - `catalog`: positions, consumers, requests.
//! - `rows`: rows by themselves; what they say of indexes and log.
//! - `index`: entries by themselves, and against the rows.
//! - `log`: changes by themselves, and against the rows.
//!
//! Rows and an index agree when the entries that the rows should have and the entries that are there have the same
//! count and the same sum of 128-bit checksums; only when they don't, the entries are looked up one by one.

mod catalog;
mod index;
mod log;
mod report;
mod rows;
mod tables;
mod walk;

use std::path::Path;

use souk_kv::{FjallKv, FjallOptions, Kv, KvSnapshot};

use self::report::Findings;
pub use self::report::{CheckReport, Problem, ProblemKind, SpaceReport};
pub(crate) use self::tables::Tables;
use crate::database::Database;
use crate::error::{Error, ErrorKind, Result};

/// Checks the database in a directory that nobody has open. It is opened as it would be to be used, so that what a
/// crash left in its journal is taken up; nothing else is changed.
///
/// # Errors
/// [`Error::NotADatabase`], [`Error::Locked`], [`Error::UnsupportedFormat`], [`Error::Io`]. Damage is no error but a
/// problem of the report, also when it is so bad that the database doesn't open.
pub async fn check(directory: impl AsRef<Path>) -> Result<CheckReport> {
    let directory = directory.as_ref();
    if !directory.join("FORMAT").is_file() {
        return Err(Error::NotADatabase {
            directory: directory.to_owned(),
        });
    }
    let opened = FjallKv::open(directory, &FjallOptions::default()).await;
    let store = match opened.map_err(Error::from) {
        Ok(store) => store,
        Err(error) if error.kind() == ErrorKind::Corrupt => return Ok(CheckReport::unopened(&error)),
        Err(error) => return Err(error),
    };
    let report = snapshot(&*store.snapshot().await?).await;
    store.close().await?;
    Ok(report)
}

impl Database {
    /// Checks one snapshot of the database while it works.
    ///
    /// # Errors
    /// [`Error::Unavailable`]. Damage is no error but a problem of the report.
    pub async fn check(&self) -> Result<CheckReport> {
        Ok(snapshot(&*self.shared.kv.snapshot().await?).await)
    }
}

/// Checks one cut.
pub(crate) async fn snapshot(snapshot: &dyn KvSnapshot) -> CheckReport {
    let mut findings = Findings::new(snapshot.sequence());
    let catalog = catalog::check(snapshot, &mut findings).await;
    let rows = rows::check(snapshot, &catalog, &mut findings).await;
    index::check(snapshot, &catalog, &rows, &mut findings).await;
    log::check(snapshot, &catalog, &rows, &mut findings).await;
    findings.report(&catalog.tables, &rows)
}

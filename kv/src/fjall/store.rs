//! The engine's database: its spaces, how they are set up, and where its log ends.

use std::path::Path;

use ::fjall::{Database, Keyspace, PersistMode, Readable};

use super::directory::Directory;
use super::failure::{self, StoreFailure};
use super::journal::{CATALOG_ID, GroupMark};
use super::nonce::Nonce;
use super::options::FjallOptions;
use super::setup::{self, MemoryPlan};
use crate::commit::STAMP;
use crate::error::OpenError;
use crate::histories::Histories;
use crate::keys;
use crate::space::Space;

/// The open engine in its locked directory. Fields drop in order: the lock goes last.
pub(super) struct Store {
    rows: Keyspace,
    log: Keyspace,
    index: Keyspace,
    catalog: Keyspace,
    database: Database,
    directory: Directory,
}

/// Where the log ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogEnd {
    /// Last sequence that is there, or was until it was trimmed.
    pub(super) found: u64,
    /// Last sequence that was assigned, as written with every group of commits.
    pub(super) head: u64,
}

impl Store {
    /// Opens the engine, creating its files if there are none.
    pub(super) fn open(directory: Directory, options: &FjallOptions) -> Result<Self, OpenError> {
        options.validate()?;
        if !directory.has_data()? {
            directory.create_data(|path| {
                let database = open_database(path, options)?;
                for space in Space::ALL {
                    database
                        .keyspace(name(space), || setup::keyspace_options(space))
                        .map_err(|error| failure::opening(path, error))?;
                }
                Ok(())
            })?;
        }
        let path = directory.data();
        let database = open_database(&path, options)?;
        let keyspace = |space| {
            if !database.keyspace_exists(name(space)) {
                return Err(OpenError::corrupt(format!("{path:?} has no {}", name(space))));
            }
            database
                .keyspace(name(space), || setup::keyspace_options(space))
                .map_err(|error| failure::opening(&path, error))
        };
        let catalog = keyspace(Space::Catalog)?;
        if catalog.id() != CATALOG_ID {
            let what = format!("{} is not number {CATALOG_ID} in {path:?}", name(Space::Catalog));
            return Err(OpenError::corrupt(what));
        }
        Ok(Self {
            rows: keyspace(Space::Rows)?,
            log: keyspace(Space::Log)?,
            index: keyspace(Space::Index)?,
            catalog,
            database,
            directory,
        })
    }

    pub(super) fn database(&self) -> &Database {
        &self.database
    }

    pub(super) fn keyspace(&self, space: Space) -> &Keyspace {
        match space {
            Space::Rows => &self.rows,
            Space::Log => &self.log,
            Space::Index => &self.index,
            Space::Catalog => &self.catalog,
        }
    }

    /// Where the database is.
    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Its secret number.
    pub(super) fn nonce(&self) -> Nonce {
        self.directory.nonce()
    }

    /// Fails when the engine has failed in the background.
    pub(super) fn probe(&self) -> Result<(), ::fjall::Error> {
        self.database.persist(PersistMode::Buffer)
    }

    /// A write that changes nothing: what was done before it is in the past of the next snapshot.
    pub(super) fn write_no_op(&self) -> Result<(), ::fjall::Error> {
        self.catalog.remove(keys::NO_OP)
    }

    /// Makes everything that is committed durable.
    pub(super) fn persist(&self) -> Result<(), ::fjall::Error> {
        self.database.persist(PersistMode::SyncAll)
    }

    pub(super) fn log_end(&self) -> Result<LogEnd, OpenError> {
        let snapshot = self.database.snapshot();
        let last = snapshot
            .last_key_value(&self.log)
            .map(|entry| entry.key())
            .transpose()
            .map_err(|error| failure::unreadable(Space::Log, error))?;
        let last = last.map_or(Ok(0), |key| number("the last key of the log", &key))?;
        Ok(LogEnd {
            found: last.max(self.trimmed(&snapshot)?),
            head: stored(&snapshot, &self.catalog, keys::HEAD, "the head of the log")?,
        })
    }

    /// The last sequence before those that are all there, down to what is trimmed, from `last` on. Looks at the whole
    /// log: what can't be read is missing, too.
    pub(super) fn missing_before(&self, last: u64) -> Result<Option<u64>, OpenError> {
        let snapshot = self.database.snapshot();
        let trimmed = self.trimmed(&snapshot)?;
        let mut expected = last;
        let low = keys::log(trimmed.saturating_add(1));
        let high = keys::log(last.saturating_add(1));
        if low >= high {
            return Ok(None);
        }
        for entry in snapshot.range(&self.log, low.as_ref()..high.as_ref()).rev() {
            let sequence = match entry.into_inner() {
                Ok((key, value)) if value.get(STAMP) == Some(&key[..]) => number("a key of the log", &key)?,
                Ok(_) => return Ok(Some(expected)),
                Err(error) => {
                    tracing::warn!("the log can't be read before change {expected}: {error}");
                    return Ok(Some(expected));
                }
            };
            if sequence != expected {
                return Ok(Some(expected));
            }
            expected -= 1;
        }
        Ok((expected > trimmed).then_some(expected))
    }

    /// Gives up the log up to a sequence after its loss was accepted: as if it were trimmed.
    pub(super) fn give_up_log(&self, sequence: u64) -> Result<(), OpenError> {
        let unknown =
            |error: ::fjall::Error| OpenError::from(StoreFailure::writing(&error).outcome_unknown());
        let snapshot = self.database.snapshot();
        let high = keys::log(sequence.saturating_add(1));
        for entry in snapshot.range(&self.log, ..high.as_ref()) {
            // What can't be read stays.
            let Ok(key) = entry.key() else { break };
            self.log.remove(key).map_err(unknown)?;
        }
        self.catalog.remove(keys::TRIMMED_TIME).map_err(unknown)?;
        self.catalog
            .insert(keys::TRIMMED, sequence.to_be_bytes())
            .map_err(unknown)
    }

    /// Begins another history when a loss was accepted: from now on the sequences behind `last` are given again. Rows that outlived
    /// their changes become rows of `last` in the new history, so that no write to come has the revision of one of them.
    pub(super) fn begin_history(&self, last: u64) -> Result<(), OpenError> {
        let unknown =
            |error: ::fjall::Error| OpenError::from(StoreFailure::writing(&error).outcome_unknown());
        let snapshot = self.database.snapshot();
        for entry in snapshot.iter(&self.rows) {
            // What can't be read now can't be read later either.
            let Ok((key, value)) = entry.into_inner() else {
                break;
            };
            let mut value = value.to_vec();
            if let Some(stamp) = value.get_mut(STAMP)
                && *stamp > last.to_be_bytes()[..]
            {
                stamp.copy_from_slice(&last.to_be_bytes());
                self.rows.insert(key, value).map_err(unknown)?;
            }
        }
        let kept = self.catalog.get(keys::HISTORIES);
        let kept = kept.map_err(|error| OpenError::from(failure::unreadable(Space::Catalog, error)))?;
        let mut histories = kept.map_or(Ok(Histories::default()), |bytes| Histories::decode(&bytes))?;
        histories.begin(last);
        self.catalog
            .insert(keys::HISTORIES, histories.encode())
            .map_err(unknown)
    }

    fn trimmed(&self, snapshot: &::fjall::Snapshot) -> Result<u64, OpenError> {
        stored(snapshot, &self.catalog, keys::TRIMMED, "the end of trimming")
    }

    /// Number of the last group of commits; 0 if there is none.
    pub(super) fn last_group(&self) -> Result<u64, OpenError> {
        let stored = self.catalog.get(keys::GROUP);
        let stored = stored.map_err(|error| OpenError::from(failure::unreadable(Space::Catalog, error)))?;
        stored.map_or(Ok(0), |value| {
            GroupMark::decode(&value, self.nonce())
                .map(|mark| mark.number)
                .ok_or_else(|| OpenError::corrupt("the mark of the last group is malformed"))
        })
    }

    /// Sets the head after a loss was accepted; from now on groups are counted from this one on.
    pub(super) fn set_head(&self, sequence: u64, mark: GroupMark) -> Result<(), OpenError> {
        let mut batch = self.database.batch();
        batch.insert(&self.catalog, keys::HEAD, sequence.to_be_bytes());
        // It may be of changes whose sequences are given again.
        batch.remove(&self.catalog, keys::NOTICED);
        batch.insert(&self.catalog, keys::GROUP, mark.encode(self.nonce()));
        batch
            .commit()
            .map_err(|error| StoreFailure::writing(&error).outcome_unknown().into())
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

/// A number in the catalog; 0 when it isn't there.
fn stored(
    snapshot: &::fjall::Snapshot,
    catalog: &Keyspace,
    key: &[u8],
    what: &str,
) -> Result<u64, OpenError> {
    snapshot
        .get(catalog, key)
        .map_err(|error| OpenError::from(failure::unreadable(Space::Catalog, error)))?
        .map_or(Ok(0), |value| number(what, &value))
}

fn number(what: &str, bytes: &[u8]) -> Result<u64, OpenError> {
    bytes
        .try_into()
        .map(u64::from_be_bytes)
        .map_err(|_| OpenError::corrupt(format!("{what} is {} bytes long, not 8", bytes.len())))
}

fn name(space: Space) -> &'static str {
    match space {
        Space::Rows => "rows",
        Space::Log => "log",
        Space::Index => "index",
        Space::Catalog => "catalog",
    }
}

fn open_database(path: &Path, options: &FjallOptions) -> Result<Database, OpenError> {
    Database::builder(path)
        .cache_size(MemoryPlan::new(options).cache())
        .worker_threads(options.worker_threads)
        .max_journaling_size(options.journal_bytes)
        .open()
        .map_err(|error| failure::opening(path, error))
}

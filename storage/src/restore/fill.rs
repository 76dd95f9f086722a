//! Writing what backups hold into an empty store.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use souk_kv::{Commit, Durability, Kv, Mutation, Space, histories::Histories};

use crate::backup::{Backup, BackupFile, BlockFileReader, blocking};
use crate::catalog;
use crate::change;
use crate::check::Tables;
use crate::error::{Error, Result};
use crate::key;
use crate::limits::RESTORE_COMMIT_BYTES;
use crate::row;
use crate::secondary;
use crate::walk::Walk;

/// What waits to be committed, each key once.
pub(super) struct Fill<'a> {
    store: &'a dyn Kv,
    changes: BTreeMap<(Space, Bytes), Option<Vec<u8>>>,
    bytes: usize,
}

impl<'a> Fill<'a> {
    pub(super) fn new(store: &'a dyn Kv) -> Self {
        Self {
            store,
            changes: BTreeMap::new(),
            bytes: 0,
        }
    }

    async fn set(&mut self, space: Space, key: Bytes, value: Option<Vec<u8>>) -> Result<()> {
        self.bytes += key.len() + value.as_ref().map_or(0, Vec::len);
        self.changes.insert((space, key), value);
        if self.bytes >= RESTORE_COMMIT_BYTES {
            self.commit().await?;
        }
        Ok(())
    }

    async fn commit(&mut self) -> Result<()> {
        self.bytes = 0;
        let changes = std::mem::take(&mut self.changes);
        let mutations = changes.into_iter().map(|((space, key), value)| match value {
            Some(value) => Mutation::Put {
                space,
                key,
                value,
                stamp: false,
            },
            None => Mutation::Delete { space, key },
        });
        let commit = Commit {
            mutations: mutations.collect(),
            // Nothing counts before all is written and the store is closed.
            durability: Durability::Buffered,
            ..Commit::default()
        };
        self.store.commit(commit).await?;
        Ok(())
    }
}

/// Writes all that a chain of backups holds.
pub(super) async fn all(fill: &mut Fill<'_>, backups: &[Backup]) -> Result<()> {
    let Some((full, increments)) = backups.split_first() else {
        return Ok(());
    };
    let last = increments.last().unwrap_or(full);
    // The catalog of the last says what of the others still counts.
    let mut tables = Tables::default();
    let mut histories = Histories::default();
    let mut trimmed = 0;
    for file in files(last, Space::Catalog) {
        let mut blocks = Reading::open(last, file).await?;
        while let Some(entries) = blocks.next().await? {
            for (key, value) in entries {
                if key == key::TRIMMED {
                    trimmed = u64::from_be_bytes(value.as_ref().try_into().map_err(|_| {
                        Error::corrupt(format!("the end of trimming has {} bytes", value.len()))
                    })?);
                }
                tables.add(&key, &value)?;
                if key == key::HISTORIES {
                    histories = Histories::decode(&value)?;
                }
                // Of the store that was copied; the new one has its own.
                if key == key::HEAD || key == key::GROUP || key == key::HISTORIES {
                    continue;
                }
                fill.set(Space::Catalog, key, Some(value.into())).await?;
            }
        }
    }
    let head = last.manifest.sequence.to_be_bytes().to_vec();
    fill.set(Space::Catalog, key::HEAD.into(), Some(head)).await?;
    // The database that was copied may have gone on.
    histories.begin(last.manifest.sequence.saturating_add(1));
    let histories = Some(histories.encode());
    fill.set(Space::Catalog, key::HISTORIES.into(), histories).await?;
    for file in &full.manifest.files {
        let mut blocks = Reading::open(full, file).await?;
        while let Some(entries) = blocks.next().await? {
            for (key, value) in entries {
                let counts = match file.space {
                    Space::Catalog => false,
                    Space::Rows => increments.is_empty() || tables.of_row(&key).is_some(),
                    Space::Index => increments.is_empty(),
                    Space::Log => key::sequence_of_log(&key)? > trimmed,
                };
                if counts {
                    fill.set(file.space, key, Some(value.into())).await?;
                }
            }
        }
    }
    for backup in increments {
        for file in files(backup, Space::Log) {
            let mut blocks = Reading::open(backup, file).await?;
            while let Some(entries) = blocks.next().await? {
                for (key, entry) in entries {
                    bring_forward(fill, &tables, trimmed, key, entry).await?;
                }
            }
        }
        // A catalog that isn't used must be whole all the same.
        if backup.manifest.id() != last.manifest.id() {
            for file in files(backup, Space::Catalog) {
                let mut blocks = Reading::open(backup, file).await?;
                while blocks.next().await?.is_some() {}
            }
        }
    }
    fill.commit().await?;
    if !increments.is_empty() {
        index_rows(fill, &tables).await?;
    }
    Ok(())
}

/// Adds a change to the log, and makes the rows what it made them.
async fn bring_forward(
    fill: &mut Fill<'_>,
    tables: &Tables,
    trimmed: u64,
    key: Bytes,
    entry: Bytes,
) -> Result<()> {
    let sequence = key::sequence_of_log(&key)?;
    let change = change::codec::decode(sequence, &entry)?;
    for row in change.rows {
        if tables.get(row.table).is_some() {
            let value = row.row.as_ref().map(row::codec::encode);
            fill.set(Space::Rows, key::row(row.table, &row.key), value)
                .await?;
        }
    }
    if sequence > trimmed {
        fill.set(Space::Log, key, Some(entry.into())).await?;
    }
    Ok(())
}

/// Gives every row its entries in the secondary indexes: those that were created without the rows there were have them now.
async fn index_rows(fill: &mut Fill<'_>, tables: &Tables) -> Result<()> {
    let mut lacking = BTreeSet::new();
    let snapshot = fill.store.snapshot().await?;
    let mut walk = Walk::all(Space::Rows);
    while let Some(page) = walk.next(&*snapshot).await? {
        for (key, value) in page {
            let Some(table) = tables.of_row(&key) else {
                continue;
            };
            let primary_key = key::primary_key_of_row(&key)?;
            let row = row::codec::decode(primary_key, &value)?;
            for (entry, value) in secondary::fitting_entries(table, &row) {
                fill.set(Space::Index, entry, Some(value)).await?;
            }
            let definition = table.definition();
            for index in definition.indexes.iter().filter(|index| index.partial) {
                if secondary::entry(table.id(), &definition, index, &row).is_err() {
                    lacking.insert((table.id(), index.number));
                }
            }
        }
    }
    for table in tables.iter() {
        let mut definition = catalog::Definition::clone(&table.definition());
        let mut filled = false;
        for index in &mut definition.indexes {
            // One that a row can't stand in lacks that row.
            if index.partial && !lacking.contains(&(table.id(), index.number)) {
                index.partial = false;
                filled = true;
            }
        }
        if filled {
            let definition = catalog::codec::encode(&definition);
            fill.set(Space::Catalog, key::table(table.id()), Some(definition))
                .await?;
        }
    }
    fill.commit().await
}

fn files(backup: &Backup, space: Space) -> impl Iterator<Item = &BackupFile> {
    let files = backup.manifest.files.iter();
    files.filter(move |file| file.space == space)
}

/// A file that is read off the async runtime's threads.
struct Reading(Option<BlockFileReader>);

impl Reading {
    async fn open(backup: &Backup, file: &BackupFile) -> Result<Self> {
        let (directory, file) = (backup.directory.clone(), file.clone());
        let blocks = blocking("reading a backup", move || {
            BlockFileReader::open(&directory, &file)
        })
        .await?;
        Ok(Self(Some(blocks)))
    }

    async fn next(&mut self) -> Result<Option<Vec<(Bytes, Bytes)>>> {
        let Some(mut blocks) = self.0.take() else {
            return Ok(None);
        };
        let (blocks, entries) = blocking("reading a backup", move || {
            let entries = blocks.next()?;
            Ok((blocks, entries))
        })
        .await?;
        self.0 = Some(blocks);
        Ok(entries)
    }
}

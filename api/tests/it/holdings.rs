//! What the indexes of a closed engine hold, document by document, and what an index holds that is built anew.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use souk_engine::index::{Completeness, Index, IndexOptions, MisfitReport};

use crate::contents::{Held, contents};

/// What an index holds, and how far it is.
#[derive(Debug)]
pub(crate) struct Holdings {
    pub(crate) documents: BTreeMap<Vec<u8>, Held>,
    pub(crate) misfits: MisfitReport,
    pub(crate) sequence: u64,
}

/// The folders of the indexes of a table.
pub(crate) fn folders(directory: &Path, table: &str) -> Vec<PathBuf> {
    match fs::read_dir(directory.join("index").join(table)) {
        Ok(folders) => folders.map(|entry| entry.expect("readable").path()).collect(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => panic!("{error}"),
    }
}

/// The index in a folder, if it is one and complete; every file of it is as it was written.
pub(crate) fn complete(folder: &Path) -> Option<Index> {
    let kept = Index::kept(folder).ok()??;
    let index = Index::open(folder, kept.schema, IndexOptions::default()).ok()?;
    (index.completeness() == Completeness::Complete && index.verify().is_ok()).then_some(index)
}

/// What an index holds.
pub(crate) fn of(folder: &Path) -> Holdings {
    let index = complete(folder).unwrap_or_else(|| panic!("no complete index in {}", folder.display()));
    Holdings {
        documents: contents(&index),
        misfits: index.misfits(),
        sequence: index.durable_sequence(),
    }
}

/// Fails at the first document of which two indexes hold something else.
pub(crate) fn assert_same(tailed: &Holdings, rebuilt: &Holdings) {
    for (key, held) in &rebuilt.documents {
        let other = tailed.documents.get(key);
        assert_eq!(other, Some(held), "of {}", key.escape_ascii());
    }
    let extra = tailed
        .documents
        .keys()
        .find(|key| !rebuilt.documents.contains_key(*key));
    assert_eq!(
        extra.map(|key| key.escape_ascii().to_string()),
        None,
        "isn't in the table"
    );
}

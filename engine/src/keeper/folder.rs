//! The folders of an index: `<index>/<name of the index>/<fingerprint of the design>`, one for each design that it has or is to have.
//! What is in one says itself whether it is complete; all that nobody needs any more is removed, with the feeds that it was
//! filled from.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use souk_index::{Completeness, Error as IndexError, Index, Kept};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::{Keeping, verify};
use crate::definition::index_name;
use crate::design::Design;
use crate::error::{EngineError, Result};
use crate::index_state::Unopened;

/// What the name of a folder ends with that is being removed. No name of an index has it.
pub(super) const REMOVED: &str = "~removed";

/// The folder of the index of a design.
pub(super) fn of(folder: &Path, fingerprint: u64) -> PathBuf {
    folder.join(format!("{fingerprint:016x}"))
}

/// The feed that an index of a design is filled from.
pub(super) fn feed_name(index: &str, fingerprint: u64) -> String {
    format!("_index_{}_{fingerprint:016x}", index_name::stored(index))
}

/// The index that is filled from a feed of this name.
pub(super) fn index_of_feed(name: &str) -> Option<String> {
    let (index, fingerprint) = name.strip_prefix("_index_")?.rsplit_once('_')?;
    is_fingerprint(fingerprint)
        .then(|| index_name::of_stored(index))
        .flatten()
}

fn is_fingerprint(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The index of a design, if there is one that can be used.
pub(super) fn usable(keeping: &Keeping, design: &Design, stop: &CancellationToken) -> Result<Option<Index>> {
    let path = of(&keeping.folder, design.fingerprint());
    match path.is_dir() {
        true => open(keeping, &path, design, stop),
        false => Ok(None),
    }
}

/// A complete index, which the log still continues.
pub(super) struct Usable {
    pub(super) index: Index,
    pub(super) design: Arc<Design>,
}

/// What is known, unopened, of the wanted index, and up to which change it has all: if it is complete, the log continues it, and there
/// is no other to clear away.
pub(super) fn unopened(keeping: &Keeping) -> Result<Option<(u64, Unopened)>> {
    let (design, database) = (keeping.index.wanted(), &keeping.database);
    let path = of(&keeping.folder, design.fingerprint());
    let is_alone = names(&keeping.folder)? == [format!("{:016x}", design.fingerprint())];
    if !is_alone {
        return Ok(None);
    }
    let Some(commit) = Index::last_commit(&path)? else {
        return Ok(None);
    };
    let is_it = commit.completeness == Completeness::Complete
        && commit.schema == format!("{:016x}", design.schema.fingerprint())
        && commit.label == design.label(database.history());
    // The log is kept from its consumer's position on.
    let is_continued = (keeping.consumer.position()..=database.last_sequence()).contains(&commit.sequence);
    let unopened = Unopened {
        design,
        size: commit.size,
        misfits: commit.misfits,
    };
    Ok((is_it && is_continued).then_some((commit.sequence, unopened)))
}

/// The index that is wanted, or else the newest of those that are there.
pub(super) fn find(
    keeping: &Keeping,
    wanted: &Arc<Design>,
    stop: &CancellationToken,
) -> Result<Option<Usable>> {
    if let Some(index) = usable(keeping, wanted, stop)? {
        return Ok(Some(Usable {
            index,
            design: Arc::clone(wanted),
        }));
    }
    let mut newest: Option<Usable> = None;
    for name in names(&keeping.folder)? {
        let path = keeping.folder.join(&name);
        let Some(design) = kept(&path)?.and_then(Design::kept) else {
            continue;
        };
        if name != format!("{:016x}", design.fingerprint()) || design.fingerprint() == wanted.fingerprint() {
            continue;
        }
        let Some(index) = open(keeping, &path, &design, stop)? else {
            continue;
        };
        let is_newer = |than: &Usable| index.durable_sequence() > than.index.durable_sequence();
        if newest.as_ref().is_none_or(is_newer) {
            newest = Some(Usable {
                index,
                design: Arc::new(design),
            });
        }
    }
    Ok(newest)
}

fn kept(path: &Path) -> Result<Option<Kept>> {
    match Index::kept(path) {
        Ok(kept) => Ok(kept),
        Err(IndexError::Corrupt { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether the sequences that an index counts are those of the database as it is: a restore gives them to other changes.
pub(super) fn is_of_this_history(keeping: &Keeping, path: &Path) -> Result<bool> {
    let history = kept(path)?.as_ref().and_then(Design::kept_history);
    Ok(history == Some(keeping.database.history()))
}

/// The index in a folder, unless it can't be used; the log tells why.
fn open(keeping: &Keeping, path: &Path, design: &Design, stop: &CancellationToken) -> Result<Option<Index>> {
    let name = keeping.name();
    let options = keeping.index_options(design, stop);
    let index = match Index::open(path, design.schema.clone(), options) {
        Ok(index) => index,
        Err(error @ IndexError::Corrupt { .. }) => {
            verify::found(keeping, &error);
            // One that was opened before they were damaged may answer still.
            keeping
                .state()
                .stop_serving_design(design.fingerprint(), &error.to_string());
            return Ok(None);
        }
        Err(error @ IndexError::SchemaMismatch { .. }) => {
            warn!(index = name, %error, "an index can't be used");
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    if index.completeness() != Completeness::Complete {
        return Ok(None);
    }
    if !is_of_this_history(keeping, path)? {
        warn!(
            index = name,
            "an index is of another history of the store: it can't be used"
        );
        return Ok(None);
    }
    let has = index.durable_sequence();
    let (oldest, last) = keeping.runtime.block_on(async {
        let snapshot = keeping.database.snapshot().await?;
        Ok::<_, EngineError>((snapshot.oldest_change().await?, snapshot.sequence()))
    })?;
    if has > last {
        warn!(
            index = name,
            has, last, "an index is ahead of the store: it can't be used"
        );
        return Ok(None);
    }
    if has + 1 < oldest {
        warn!(
            index = name,
            has, oldest, "an index ends before the log begins: it can't be used"
        );
        return Ok(None);
    }
    Ok(Some(index))
}

/// Removes what there is of an index but that of some designs, and the feeds that only they need.
pub(super) fn retain(keeping: &Keeping, designs: &[u64], feeds: &[u64]) -> Result<()> {
    let name = keeping.name();
    let designs: Vec<String> = designs.iter().map(|each| format!("{each:016x}")).collect();
    for folder in names(&keeping.folder)? {
        if !designs.contains(&folder) {
            remove(&keeping.folder.join(folder))?;
        }
    }
    let feeds: Vec<String> = feeds.iter().map(|each| feed_name(name, *each)).collect();
    for feed in keeping.database.feeds() {
        if index_of_feed(feed.name()).as_deref() == Some(name)
            && !feeds.iter().any(|name| name == feed.name())
        {
            keeping.runtime.block_on(feed.remove())?;
        }
    }
    Ok(())
}

/// What is in a folder of indexes.
pub(super) fn names(folder: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(refused("listing indexes")(error)),
    };
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    names
        .collect::<io::Result<_>>()
        .map_err(refused("listing indexes"))
}

/// Removes an index. Its name goes first: a merge that is still under way then can't add files to it.
pub(super) fn remove(folder: &Path) -> Result<()> {
    let mut doomed = folder.as_os_str().to_owned();
    doomed.push(REMOVED);
    let doomed = PathBuf::from(doomed);
    for step in [fs::remove_dir_all(&doomed), fs::rename(folder, &doomed)] {
        match step {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(refused("removing an old index")(error));
            }
            Ok(()) | Err(_) => {}
        }
    }
    match fs::remove_dir_all(&doomed) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(refused("removing an old index")(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Makes the names in the folder of an index durable, its own, and that of the folder of all indexes.
pub(super) fn sync(folder: &Path) -> Result<()> {
    let mut folders = folder.ancestors().take(3);
    folders
        .try_for_each(|folder| fs::File::open(folder)?.sync_all())
        .map_err(refused("naming a new index"))
}

pub(super) fn refused(doing: &'static str) -> impl FnOnce(io::Error) -> EngineError {
    move |source| EngineError::Io { doing, source }
}

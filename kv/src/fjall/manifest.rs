//! Verifies the manifests of the engine, its lists of tables, before the engine reads them.
//!
//! A space has a file `current`: the number of its newest version (u64, little-endian), the xxh3 of that version's file
//! (u128), and the kind of checksum (0). The file `v` and the number lists the tables. The engine (3.1.13) writes
//! the checksum but doesn't compare it: a wrong bit in the list would take a table away, or its age.
//!
//! The files that a list names end in a table of their parts (see [`parts`]). The engine makes room for as many
//! parts as that table says before it compares its checksum: a wrong bit there would end the process for want of memory.

mod parts;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_128;

use crate::error::OpenError;

const SPACES: &str = "keyspaces";
const CURRENT: &str = "current";

/// Compares every list of tables, and the ends of the files that it names, with their checksums. What is missing or
/// too short is left for the engine to refuse.
///
/// # Errors
/// [`OpenError::Corrupt`] when one differs, [`OpenError::Io`].
pub(super) fn check(data: &Path) -> Result<(), OpenError> {
    let spaces = data.join(SPACES);
    for entry in fs::read_dir(&spaces).map_err(OpenError::io("list", &spaces))? {
        let space = entry.map_err(OpenError::io("list", &spaces))?.path();
        let current = space.join(CURRENT);
        let Some(current) = read(&current)? else {
            continue;
        };
        let Some((version, rest)) = current.split_first_chunk() else {
            continue;
        };
        let Some((checksum, _)) = rest.split_first_chunk() else {
            continue;
        };
        let version = space.join(format!("v{}", u64::from_le_bytes(*version)));
        let Some(list) = read(&version)? else {
            continue;
        };
        if xxh3_128(&list) != u128::from_le_bytes(*checksum) {
            let what = format!("the list of tables {version:?} has another checksum than was noted");
            return Err(OpenError::corrupt(what));
        }
        for file in parts::files(&space, &list) {
            parts::check(&file)?;
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, OpenError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(OpenError::io("read", path)(error)),
    }
}

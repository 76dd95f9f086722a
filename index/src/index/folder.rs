//! The folder of an index on disk: whose it is, whether it can be read, and what a crash left behind.
//!
//! `souk-index.json` says which schema the index was built for: JSON, and a line with its checksum. It is
//! written after the index itself, so a folder without it is empty or the rest of a creation that a crash cut short.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tantivy::directory::error::{LockError, OpenReadError};
use tantivy::{IndexMeta, IndexSettings, TantivyError};

use crate::checksum;
use crate::directory::{MANAGED_FILE, META_FILE, SoftDirectory};
use crate::error::Error;
use crate::index::{Index, IndexOptions, Kept, verification};
use crate::layout::Layout;
use crate::merge_log;
use crate::schema::{Field, Schema};

const MARKER_FILE: &str = "souk-index.json";
const MARKER_DRAFT: &str = "souk-index.json.draft";

/// The content of the marker.
#[derive(Serialize, Deserialize)]
pub(super) struct Marker {
    format: u32,
    /// The schema's fingerprint, in hexadecimal.
    pub(super) fingerprint: String,
    /// See [`IndexOptions::label`].
    #[serde(default)]
    pub(super) label: String,
    /// The fields of the schema: read only when they are asked for, since other versions of this crate may know other
    /// fields.
    #[serde(default)]
    fields: serde_json::Value,
}

/// From 3 on the lists of segments and files have checksums, too.
const FORMAT: u32 = 3;

/// Opens or creates the index in `folder`.
pub(super) fn open(
    folder: &Path,
    layout: &Layout,
    options: &IndexOptions,
) -> Result<(tantivy::Index, SoftDirectory), Error> {
    fs::create_dir_all(folder).map_err(Error::io("creating the index's folder"))?;
    let marker = read_marker(folder)?;
    if marker.is_some() {
        check_lists(folder)?;
    }
    let directory = open_directory(folder)?;
    let index = match marker {
        None => create(folder, layout, &options.label, &directory)?,
        Some(marker) => {
            check_fingerprint(&marker, layout)?;
            let index = listed(&directory)?;
            // What was written after the last checkpoint, and what it replaced.
            let living = segments(&index)?.list_segment_files();
            sweep(folder, &living).map_err(Error::io("sweeping the index's folder"))?;
            verification::quick(&index, &directory, options)?;
            index
        }
    };
    Ok((index, directory))
}

/// Whether the library's lists are there.
pub(super) fn check_lists(folder: &Path) -> Result<(), Error> {
    for list in [META_FILE, MANAGED_FILE] {
        let exists = folder.join(list).try_exists();
        if !exists.map_err(Error::io("looking into the index's folder"))? {
            return Err(Error::corrupt(format!("{list} is missing")));
        }
    }
    Ok(())
}

pub(super) fn open_directory(folder: &Path) -> Result<SoftDirectory, Error> {
    SoftDirectory::open(folder).map_err(|error| Error::engine("opening the index's folder", error))
}

/// The index that the lists of a folder name.
pub(super) fn listed(directory: &SoftDirectory) -> Result<tantivy::Index, Error> {
    let index = tantivy::Index::open(directory.clone());
    index.map_err(|error| unreadable("the list of segments", error))
}

/// What a failure to read `what` means: damage, unless the disk or the system refused.
pub(super) fn unreadable(what: &str, error: TantivyError) -> Error {
    let source = match &error {
        TantivyError::IoError(source)
        | TantivyError::OpenReadError(OpenReadError::IoError { io_error: source, .. })
            if checksum::is_refusal(source) =>
        {
            Some(source)
        }
        TantivyError::LockFailure(LockError::IoError(source), _) => Some(source),
        _ => None,
    };
    match source {
        Some(source) => Error::io("reading the index")(io::Error::new(source.kind(), source.to_string())),
        None => Error::Corrupt {
            detail: format!("{what} can't be read: {error}"),
            source: Some(error),
        },
    }
}

/// What the list of segments says.
pub(super) fn segments(index: &tantivy::Index) -> Result<IndexMeta, Error> {
    let metas = index.load_metas();
    metas.map_err(|error| unreadable("the list of segments", error))
}

/// Creates an empty index, durably, in a folder that has none. What a creation cut short has left is removed.
fn create(
    folder: &Path,
    layout: &Layout,
    label: &str,
    directory: &SoftDirectory,
) -> Result<tantivy::Index, Error> {
    let refused = Error::io("creating the index");
    for name in [META_FILE, MANAGED_FILE, MARKER_DRAFT] {
        remove(&folder.join(name)).map_err(refused)?;
    }
    sweep(folder, &HashSet::new()).map_err(refused)?;
    let (schema, settings) = (layout.physical.clone(), IndexSettings::default());
    let index = tantivy::Index::create(directory.clone(), schema, settings);
    let index = index.map_err(|error| Error::engine("creating the index", error))?;
    directory.checkpoint().map_err(refused)?;
    write_marker(folder, layout, label).map_err(refused)?;
    Ok(index)
}

fn write_marker(folder: &Path, layout: &Layout, label: &str) -> io::Result<()> {
    let marker = Marker {
        format: FORMAT,
        fingerprint: format!("{:016x}", layout.schema.fingerprint()),
        label: label.to_owned(),
        fields: serde_json::to_value(layout.schema.fields())?,
    };
    let content = checksum::seal(&serde_json::to_vec(&marker)?);
    let draft = folder.join(MARKER_DRAFT);
    let mut file = fs::File::create(&draft)?;
    file.write_all(&content)?;
    file.sync_all()?;
    fs::rename(&draft, folder.join(MARKER_FILE))?;
    fs::File::open(folder)?.sync_all()
}

pub(super) fn read_marker(folder: &Path) -> Result<Option<Marker>, Error> {
    let bytes = match fs::read(folder.join(MARKER_FILE)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(Error::io("reading the index's marker")(source)),
    };
    let damaged = |detail: String| Error::corrupt(format!("{MARKER_FILE} {detail}"));
    let content = checksum::unseal(bytes).ok_or_else(|| damaged("has another checksum".to_owned()))?;
    let marker: Marker =
        serde_json::from_slice(&content).map_err(|error| damaged(format!("can't be read: {error}")))?;
    let format = marker.format;
    if format != FORMAT {
        return Err(damaged(format!(
            "has format {format}, this version reads {FORMAT}"
        )));
    }
    Ok(Some(marker))
}

impl Index {
    /// What the index in `folder` was made with, when this version can open it: [`Index::open`] with that schema then
    /// gives it. `None` for a folder without an index, and for one of another physical layout.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the checksum is wrong, [`Error::Io`].
    pub fn kept(folder: &Path) -> Result<Option<Kept>, Error> {
        let Some(marker) = read_marker(folder)? else {
            return Ok(None);
        };
        // Fields that this version doesn't know, or that it lays out otherwise, are none that it can open.
        let fields = serde_json::from_value::<Vec<Field>>(marker.fields).ok();
        let schema = fields.and_then(|fields| Schema::new(fields).ok());
        let same = |schema: &Schema| marker.fingerprint == format!("{:016x}", schema.fingerprint());
        Ok(schema.filter(same).map(|schema| Kept {
            schema,
            label: marker.label,
        }))
    }
}

fn check_fingerprint(marker: &Marker, layout: &Layout) -> Result<(), Error> {
    let found = u64::from_str_radix(&marker.fingerprint, 16)
        .map_err(|error| Error::corrupt(format!("{MARKER_FILE} has no fingerprint: {error}")))?;
    let expected = layout.schema.fingerprint();
    match found == expected {
        true => Ok(()),
        false => Err(Error::SchemaMismatch { expected, found }),
    }
}

/// Deletes the segment files that aren't among the `living`.
fn sweep(folder: &Path, living: &HashSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let path = Path::new(&name);
        if merge_log::segment(path).is_some() && !living.contains(path) {
            remove(&folder.join(path))?;
        }
    }
    Ok(())
}

/// Deletes a file; one that isn't there is fine.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_refuses_is_no_damage() {
        let read = |error: io::Error| unreadable("a segment", TantivyError::from(error));
        // No file handles left, in the process and in the system; interrupted; busy.
        for code in [24, 23, 4, 16] {
            let error = read(io::Error::from_raw_os_error(code));
            assert!(matches!(error, Error::Io { .. }), "{code}: {error:?}");
        }
        // No such file; the device can't read it.
        for code in [2, 5] {
            let error = read(io::Error::from_raw_os_error(code));
            assert!(matches!(error, Error::Corrupt { .. }), "{code}: {error:?}");
        }
        for kind in [
            io::ErrorKind::InvalidData,
            io::ErrorKind::UnexpectedEof,
            io::ErrorKind::Other,
        ] {
            let error = read(io::Error::new(kind, "made up"));
            assert!(matches!(error, Error::Corrupt { .. }), "{kind}: {error:?}");
        }
    }
}

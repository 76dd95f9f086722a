//! An index that isn't open: what its last commit says, and how its position moves on over changes that aren't its own.

use std::path::Path;

use tantivy::IndexMeta;

use super::{Completeness, Index, IndexSize, folder};
use crate::commit_payload::CommitPayload;
use crate::directory::{META_FILE, SoftDirectory};
use crate::error::Error;
use crate::misfit::MisfitReport;

/// The last commit of an index that isn't open, as its lists say: no segment was read.
#[derive(Clone, Debug)]
pub struct LastCommit {
    /// [`crate::Schema::fingerprint`] of its schema, in hexadecimal.
    pub schema: String,
    /// [`crate::IndexOptions::label`].
    pub label: String,
    /// The last change that it includes.
    pub sequence: u64,
    /// How much of what belongs into the index it has.
    pub completeness: Completeness,
    /// How big it is. Nested objects count as documents.
    pub size: IndexSize,
    /// The values that weren't indexed.
    pub misfits: MisfitReport,
}

impl Index {
    /// The last durable commit of the index in `folder`; `None` for a folder without an index.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn last_commit(folder: &Path) -> Result<Option<LastCommit>, Error> {
        let Some(marker) = folder::read_marker(folder)? else {
            return Ok(None);
        };
        let (directory, metas) = lists(folder)?;
        let payload = CommitPayload::decode(metas.payload.as_deref())?;
        let bytes = metas.list_segment_files().into_iter();
        let bytes = bytes.map(|path| directory.bytes(&path).unwrap_or_default());
        let segments = metas.segments.iter();
        Ok(Some(LastCommit {
            schema: marker.fingerprint,
            label: marker.label,
            sequence: payload.sequence,
            size: IndexSize {
                documents: segments.clone().map(|each| u64::from(each.num_docs())).sum(),
                bytes: bytes.sum(),
                segments: metas.segments.len(),
                deleted: segments.map(|each| u64::from(each.num_deleted_docs())).sum(),
            },
            completeness: Completeness::of(metas.payload.is_some(), &payload),
            misfits: payload.misfits.report(),
        }))
    }

    /// Has the last commit of the index in `folder`, which nobody has open, include everything up to `sequence`, durably: to be
    /// said when none of the changes in between belongs into the index. A lower sequence changes nothing.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn move_on(folder: &Path, sequence: u64) -> Result<(), Error> {
        let (directory, mut metas) = lists(folder)?;
        let mut payload = CommitPayload::decode(metas.payload.as_deref())?;
        if sequence <= payload.sequence {
            return Ok(());
        }
        payload.sequence = sequence;
        metas.payload = Some(payload.encode()?);
        let refused = Error::io("moving an index on");
        let list = serde_json::to_vec_pretty(&metas).map_err(|error| refused(error.into()))?;
        directory
            .replace_list(Path::new(META_FILE), &list)
            .map_err(refused)
    }
}

/// The folder of an index, and its list of segments.
fn lists(folder: &Path) -> Result<(SoftDirectory, IndexMeta), Error> {
    folder::check_lists(folder)?;
    let directory = folder::open_directory(folder)?;
    let metas = folder::segments(&folder::listed(&directory)?)?;
    Ok((directory, metas))
}

//! From documents to their nested objects, and back.

use std::sync::Arc;

use tantivy::{DocId, SegmentReader};

use super::column::Buffer;
use crate::bits::Bits;
use crate::join::ParentCache;
use crate::layout::Layout;

/// The way from what an aggregation is given to what it takes.
pub(super) enum Step {
    /// It takes what it is given.
    Same,
    /// It takes the objects inside.
    Down {
        /// What it is given.
        around: Arc<Bits>,
        /// What it takes.
        objects: Arc<Bits>,
    },
    /// It takes what the objects are inside of, each once a group.
    Up {
        /// What it takes.
        around: Arc<Bits>,
        /// The last one that each group had.
        last: Vec<Option<DocId>>,
    },
}

impl Step {
    pub(super) fn open(
        reader: &SegmentReader,
        layout: &Layout,
        parents: &ParentCache,
        from: Option<&str>,
        to: Option<&str>,
    ) -> tantivy::Result<Self> {
        if from == to {
            return Ok(Self::Same);
        }
        let (Some(from_kind), Some(to_kind)) = (layout.kind_term(from), layout.kind_term(to)) else {
            return Ok(Self::Same);
        };
        let destination = parents.get(reader, &to_kind)?;
        Ok(if inside(from, to) {
            Self::Down {
                around: parents.get(reader, &from_kind)?,
                objects: destination,
            }
        } else {
            Self::Up {
                around: destination,
                last: Vec::new(),
            }
        })
    }

    /// Whether there is nothing to do.
    pub(super) fn is_same(&self) -> bool {
        matches!(self, Self::Same)
    }

    /// Goes from `docs`, each with the number of its group below `groups`, and leaves what it finds in `buffer`.
    pub(super) fn take(&mut self, docs: &[DocId], slots: &[u32], groups: usize, buffer: &mut Buffer) {
        buffer.clear();
        match self {
            Self::Same => {
                buffer.docs.extend_from_slice(docs);
                buffer.slots.extend_from_slice(slots);
            }
            Self::Down { around, objects } => {
                for (doc, slot) in docs.iter().zip(slots) {
                    let first = around.before(*doc).map_or(0, |before| before + 1);
                    let mut object = objects.next(first);
                    while object < *doc {
                        buffer.docs.push(object);
                        buffer.slots.push(*slot);
                        object = objects.next(object + 1);
                    }
                }
            }
            Self::Up { around, last } => {
                if last.len() < groups {
                    last.resize(groups, None);
                }
                for (object, slot) in docs.iter().zip(slots) {
                    let doc = around.next(*object);
                    if let Some(last) = last.get_mut(*slot as usize).filter(|last| **last != Some(doc)) {
                        *last = Some(doc);
                        buffer.docs.push(doc);
                        buffer.slots.push(*slot);
                    }
                }
            }
        }
    }
}

/// Whether the objects of `to` are inside those of `from`; all are inside documents.
pub(super) fn inside(from: Option<&str>, to: Option<&str>) -> bool {
    match (from, to) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(from), Some(to)) => to.strip_prefix(from).is_some_and(|rest| rest.starts_with('.')),
    }
}

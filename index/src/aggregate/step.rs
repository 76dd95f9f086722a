//! From documents to their nested objects, and back.

use std::sync::Arc;

use tantivy::{DocId, SegmentReader, TERMINATED};

use super::column::Buffer;
use crate::bits::Bits;
use crate::join::ParentCache;
use crate::layout::Layout;

/// Documents that an aggregation takes at a time, each with its group: with all values of arrays, a block is 256 times as
/// large.
const BLOCK_ROWS: usize = 256;

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

    /// Goes from `docs`, which ascend, each with the number of its group below `groups`, and gives what it finds to `take`, a
    /// block at a time: ascending too, each object with all groups of its document in a row. Blocks that it is given may begin
    /// before the last one ended: what walks only forward is opened anew then.
    pub(super) fn each(
        &mut self,
        docs: &[DocId],
        slots: &[u32],
        groups: usize,
        buffer: &mut Buffer,
        mut take: impl FnMut(&[DocId], &[u32]) -> tantivy::Result<()>,
    ) -> tantivy::Result<()> {
        buffer.clear();
        match self {
            Self::Same => {
                for (docs, slots) in docs.chunks(BLOCK_ROWS).zip(slots.chunks(BLOCK_ROWS)) {
                    take(docs, slots)?;
                }
                return Ok(());
            }
            Self::Down { around, objects } => {
                let mut slots = slots;
                for same in docs.chunk_by(PartialEq::eq) {
                    let (own, rest) = slots.split_at_checked(same.len()).unwrap_or_default();
                    slots = rest;
                    let Some(doc) = same.first().copied() else {
                        continue;
                    };
                    let mut object = objects.next_below(around.block_start(doc), doc);
                    while object != TERMINATED {
                        for own in own.chunks(BLOCK_ROWS) {
                            buffer.docs.resize(buffer.docs.len() + own.len(), object);
                            buffer.slots.extend_from_slice(own);
                            if buffer.docs.len() >= BLOCK_ROWS {
                                take(&buffer.docs, &buffer.slots)?;
                                buffer.clear();
                            }
                        }
                        object = objects.next_below(object + 1, doc);
                    }
                }
            }
            Self::Up { around, last } => {
                last.resize(groups.max(last.len()), None);
                for (object, slot) in docs.iter().zip(slots) {
                    let doc = around.next(*object);
                    if let Some(last) = last.get_mut(*slot as usize).filter(|last| **last != Some(doc)) {
                        *last = Some(doc);
                        buffer.docs.push(doc);
                        buffer.slots.push(*slot);
                    }
                    if buffer.docs.len() >= BLOCK_ROWS {
                        take(&buffer.docs, &buffer.slots)?;
                        buffer.clear();
                    }
                }
            }
        }
        if buffer.docs.is_empty() {
            return Ok(());
        }
        take(&buffer.docs, &buffer.slots)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What a step gives, block by block put together.
    fn stepped(step: &mut Step, docs: &[DocId], slots: &[u32]) -> Vec<(DocId, u32)> {
        let mut found = Vec::new();
        step.each(docs, slots, 1_000, &mut Buffer::default(), |docs, slots| {
            assert!(docs.len() <= 2 * BLOCK_ROWS);
            found.extend(docs.iter().copied().zip(slots.iter().copied()));
            Ok(())
        })
        .expect("nothing fails");
        found
    }

    fn bits(max_doc: DocId, members: impl IntoIterator<Item = DocId>) -> Arc<Bits> {
        let mut bits = Bits::new(max_doc);
        members.into_iter().for_each(|doc| bits.insert(doc));
        Arc::new(bits)
    }

    #[test]
    fn objects_ascend_however_many_groups_their_document_is_in() {
        let mut down = Step::Down {
            around: bits(7, [2, 6]),
            objects: bits(7, [0, 1, 4]),
        };
        let found = stepped(&mut down, &[2, 2, 6], &[7, 8, 9]);
        assert_eq!(found, [(0, 7), (0, 8), (1, 7), (1, 8), (4, 9)]);

        let many: Vec<u32> = (0..1_000).collect();
        let found = stepped(&mut down, &vec![2; 1_000], &many);
        let of = |object| many.iter().map(move |slot| (object, *slot));
        assert_eq!(found, of(0).chain(of(1)).collect::<Vec<_>>());
    }

    /// Looking for the next object anywhere, this would take hours.
    #[test]
    fn documents_without_objects_cost_no_look_at_others() {
        const DOCUMENTS: DocId = 40_000_000;
        let mut down = Step::Down {
            around: bits(DOCUMENTS, [DOCUMENTS - 1]),
            objects: bits(DOCUMENTS, []),
        };
        let docs: Vec<DocId> = (0..DOCUMENTS).step_by(40).collect();
        assert!(stepped(&mut down, &docs, &vec![0; docs.len()]).is_empty());
    }
}

//! Documents with a point in an area.
//!
//! Those of the cells inside the area are taken unseen, those of the cells at its boundary as their coordinates say.
//! Gathering them all pays when they are few, or lead an intersection; beside a clause with fewer matches, the documents
//! that are left over there are compared one by one instead.

use std::sync::Arc;

use tantivy::columnar::Cardinality;
use tantivy::postings::TermInfo;
use tantivy::query::{ConstScorer, EmptyScorer, EnableScoring, Query, Scorer, Weight};
use tantivy::schema::Field;
use tantivy::{
    COLLECT_BLOCK_BUFFER_LEN, DocId, DocSet, InvertedIndexReader, Score, SeekDangerResult, SegmentReader,
    TERMINATED,
};

use super::doc_set::DocSetBuilder;
use crate::cell_walk::{TouchedCells, walk};
use crate::doc_walk::{count, each_list_block, go_to};
use crate::geo::Area;
use crate::limits::DOCUMENTS_PER_CHECK;
use crate::pace::Pace;
use crate::points::Points;
use crate::run::Run;
use crate::unexplained::{Standing, unexplained};

/// Documents of a cell at the boundary up to which comparing them is quicker than walking the finer cells inside it.
const COMPARED_AT_ONCE: u32 = 192;
/// Documents that are gathered at once, whatever else is in the query.
const GATHERED_AT_ONCE: u64 = 8_192;
/// Comparing a document costs as much as gathering so many.
const GATHERED_PER_COMPARED: u64 = 8;

#[derive(Clone, Debug)]
pub(super) struct AreaQuery {
    /// The field of cells that belongs to the field at `path`.
    pub(super) cells: Field,
    pub(super) path: Arc<str>,
    pub(super) area: Arc<Area>,
    pub(super) run: Arc<Run>,
}

impl Query for AreaQuery {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(self.clone()))
    }
}

impl AreaQuery {
    /// What can be in the area on a segment; `None` when the segment has no points.
    fn found(&self, reader: &SegmentReader) -> tantivy::Result<Option<Found>> {
        let Some(points) = Points::open(reader, &self.path)? else {
            return Ok(None);
        };
        let index = reader.inverted_index(self.cells)?;
        let cells = walk(&index, self.area.region(), COMPARED_AT_ONCE, &self.run)?;
        Ok(Some(Found {
            index,
            cells,
            points,
            area: Arc::clone(&self.area),
            run: Arc::clone(&self.run),
            max_doc: reader.max_doc(),
        }))
    }
}

impl Weight for AreaQuery {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        Ok(match self.found(reader)? {
            Some(found) => found.gather()?.into_scorer(boost)?,
            None => Box::new(EmptyScorer),
        })
    }

    /// Puts off gathering: the rest of the intersection may leave over fewer documents.
    fn scorer_danger(&self, reader: &SegmentReader, target: DocId, boost: Score) -> Standing {
        let mut docs = match self.found(reader)? {
            Some(found) if found.cells.documents() <= GATHERED_AT_ONCE => {
                AreaDocSet::new(found.gather()?.into_scorer(1.0)?, None)
            }
            found => AreaDocSet::new(Box::new(EmptyScorer), found),
        };
        let result = docs.seek_danger(target);
        Ok((result, Box::new(ConstScorer::new(docs, boost))))
    }

    /// The documents of inner cells are counted by the lengths of their lists, while none is deleted and none can be in
    /// two of them.
    fn count(&self, reader: &SegmentReader) -> tantivy::Result<u32> {
        let Some(found) = self.found(reader)? else {
            return Ok(0);
        };
        if found.points.cardinality() == Cardinality::Multivalued {
            return Ok(count(&mut *found.gather()?.into_scorer(1.0)?, reader));
        }
        let alive = reader.alive_bitset();
        let lives = |doc: &&DocId| alive.is_none_or(|alive| alive.is_alive(**doc));
        let (inside, mut count) = (&found.cells.inside, 0);
        if alive.is_none() {
            count = inside.iter().map(|list| list.doc_freq).sum::<u32>();
        } else {
            found.each(inside, |docs| count += docs.iter().filter(lives).count() as u32)?;
        }
        found.each(&found.cells.boundary, |docs| {
            let here = docs.iter().filter(lives).filter(|doc| found.contains(**doc));
            count += here.count() as u32;
        })?;
        Ok(count)
    }

    unexplained!();
}

/// What can be in an area on a segment.
struct Found {
    index: Arc<InvertedIndexReader>,
    cells: TouchedCells,
    points: Points,
    area: Arc<Area>,
    run: Arc<Run>,
    max_doc: DocId,
}

impl Found {
    fn contains(&self, doc: DocId) -> bool {
        self.points.of(doc).any(|point| self.area.contains(point))
    }

    /// Gives the documents of some lists to `take`, a block at a time.
    fn each(&self, lists: &[TermInfo], mut take: impl FnMut(&[DocId])) -> tantivy::Result<()> {
        let mut pace = Pace::new(&*self.run, DOCUMENTS_PER_CHECK);
        let mut postings = None;
        for list in lists {
            pace.step(list.doc_freq)?;
            each_list_block(&self.index, list, &mut postings, &mut take)?;
        }
        Ok(())
    }

    fn gather(&self) -> tantivy::Result<DocSetBuilder> {
        let mut gathered = DocSetBuilder::new(self.max_doc, self.run.allowance());
        self.each(&self.cells.inside, |docs| {
            docs.iter().for_each(|doc| gathered.insert(*doc))
        })?;
        self.each(&self.cells.boundary, |docs| {
            let contained = docs.iter().filter(|doc| self.contains(**doc));
            contained.for_each(|doc| gathered.insert(*doc));
        })?;
        Ok(gathered)
    }
}

/// The documents in an area, gathered when that is needed.
struct AreaDocSet {
    /// Present while the set was only asked about single documents.
    comparing: Option<Box<Found>>,
    gathered: Box<dyn Scorer>,
    /// The last match, while documents are compared.
    doc: DocId,
    compared: u64,
    documents: u64,
}

impl AreaDocSet {
    /// The documents gathered so far, and what is compared while they aren't.
    fn new(gathered: Box<dyn Scorer>, comparing: Option<Found>) -> Self {
        let found = comparing.as_ref().map(|found| found.cells.documents());
        Self {
            documents: found.unwrap_or_else(|| gathered.cost()),
            comparing: comparing.map(Box::new),
            gathered,
            doc: 0,
            compared: 0,
        }
    }

    /// Gathers the documents if that wasn't done; stands on the first from `doc` on.
    fn gather_from(&mut self, doc: DocId) -> DocId {
        if let Some(found) = self.comparing.take() {
            let gathered = found.gather().and_then(|gathered| Ok(gathered.into_scorer(1.0)?));
            self.gathered = gathered.unwrap_or_else(|error| {
                found.run.leave("gathering the documents in an area", error);
                Box::new(EmptyScorer)
            });
            if self.gathered.doc() < doc {
                self.gathered.seek(doc);
            }
        }
        self.gathered.doc()
    }
}

impl DocSet for AreaDocSet {
    fn advance(&mut self) -> DocId {
        if self.comparing.is_some() {
            return self.gather_from(self.doc + 1);
        }
        self.gathered.advance()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if self.comparing.is_some() {
            return if target == self.doc {
                target
            } else {
                self.gather_from(target)
            };
        }
        go_to(&mut self.gathered, target)
    }

    fn seek_danger(&mut self, target: DocId) -> SeekDangerResult {
        let Some(found) = &self.comparing else {
            return self.gathered.seek_danger(target);
        };
        if target >= TERMINATED {
            return SeekDangerResult::SeekLowerBound(target);
        }
        self.compared += 1;
        if self.compared * GATHERED_PER_COMPARED > self.documents {
            self.gather_from(target);
            return self.gathered.seek_danger(target);
        }
        if !found.contains(target) {
            let beyond = target >= found.max_doc;
            return SeekDangerResult::SeekLowerBound(if beyond { TERMINATED } else { target + 1 });
        }
        self.doc = target;
        SeekDangerResult::Found
    }

    fn fill_buffer(&mut self, buffer: &mut [DocId; COLLECT_BLOCK_BUFFER_LEN]) -> usize {
        self.gather_from(self.doc);
        self.gathered.fill_buffer(buffer)
    }

    fn doc(&self) -> DocId {
        if self.comparing.is_some() {
            self.doc
        } else {
            self.gathered.doc()
        }
    }

    fn size_hint(&self) -> u32 {
        self.documents.min(u64::from(u32::MAX)) as u32
    }

    fn cost(&self) -> u64 {
        self.documents
    }
}

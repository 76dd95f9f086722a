//! The nearest documents without looking at all: those of the cells around the points, farther and farther out.
//!
//! From how many documents match, the number of documents is estimated among which enough match. A ring of cells that
//! holds as many is found by their counts alone, its documents are matched and offered; if too few of them match, a wider
//! ring follows. Where all matches are fewer than the documents of a ring, all are offered instead. Either way the answer
//! is exact: everything within the ring's radius was offered.

use std::ops::RangeInclusive;
use std::sync::Arc;

use tantivy::columnar::MonotonicallyMappableToU64;
use tantivy::query::Scorer;
use tantivy::{
    COLLECT_BLOCK_BUFFER_LEN, DocId, DocSet, InvertedIndexReader, Result, Score, SeekDangerResult,
    SegmentReader, TERMINATED,
};

use super::block_max::Matches;
use super::distance::{BoundingBoxes, Distances};
use super::rank::Rank;
use super::top::SegmentTopCollector;
use crate::cell_walk::{TouchedCells, walk};
use crate::doc_walk::{each_list_block, go_to};
use crate::geo::{Band, Circle, Rectangle, RectangleRelation, Region};
use crate::limits::DOCUMENTS_PER_CHECK;
use crate::pace::Pace;
use crate::plan::DocSetBuilder;
use crate::run::Run;

/// Matches below which all are looked at.
const FEW_MATCHES: u64 = 512;
/// How many times the wanted documents the first ring is expected to hold.
const MARGIN: u64 = 2;
/// How many times more documents the next ring holds.
const WIDENING: u64 = 8;
/// Metres of the first guess.
const FIRST_REACH_METERS: f64 = 250.0;
/// By how much a guess that holds too few documents grows.
const GROWTH: RangeInclusive<f64> = 1.5..=4.0;
/// No two points are farther apart.
const FARTHEST_METERS: f64 = 20_100_000.0;

/// The leading key by distance, nearest first.
pub(super) struct Nearest {
    /// Which key of the order it is.
    pub(super) nth: usize,
    pub(super) distances: Distances,
    /// Of the field of cells.
    pub(super) index: Arc<InvertedIndexReader>,
    /// Documents up to this distance were offered.
    pub(super) passed: Option<Rank>,
}

impl Nearest {
    /// The cells around each target from some distance to another.
    fn ring(&self, inner: f64, outer: f64, run: &Run) -> Result<Vec<TouchedCells>> {
        let rings = self.distances.targets.points.iter().filter_map(|center| {
            Some(Ring {
                inner: Circle::new(*center, inner).ok()?,
                outer: Circle::new(*center, outer).ok()?,
            })
        });
        rings
            .map(|ring| walk(&self.index, &ring, u32::MAX, run))
            .collect()
    }

    /// The cells around the targets that hold `needed` documents beyond `inner`, and the distance up to which they hold
    /// all. No farther than `limit`.
    fn reach(&self, inner: f64, limit: f64, needed: u64, run: &Run) -> Result<(Vec<TouchedCells>, f64)> {
        let mut width = FIRST_REACH_METERS;
        loop {
            run.check_inside()?;
            let outer = (inner + width).min(limit);
            let cells = self.ring(inner, outer, run)?;
            let documents: u64 = cells.iter().map(TouchedCells::documents).sum();
            if documents >= needed || outer >= limit {
                return Ok((cells, outer));
            }
            let missing = needed as f64 / documents.max(1) as f64;
            width *= missing.sqrt().clamp(*GROWTH.start(), *GROWTH.end());
        }
    }

    fn gather(&self, cells: &[TouchedCells], reader: &SegmentReader, run: &Run) -> Result<Box<dyn Scorer>> {
        let mut gathered = DocSetBuilder::new(reader.max_doc(), run.allowance());
        let (mut pace, mut postings) = (Pace::new(run, DOCUMENTS_PER_CHECK), None);
        for list in cells.iter().flat_map(TouchedCells::lists) {
            pace.step(list.doc_freq)?;
            each_list_block(&self.index, list, &mut postings, |docs| {
                docs.iter().for_each(|doc| gathered.insert(*doc));
            })?;
        }
        Ok(gathered.into_scorer(0.0)?)
    }
}

/// The points from some distance to another.
struct Ring {
    inner: Circle,
    outer: Circle,
}

impl Region for Ring {
    fn latitudes(&self) -> RangeInclusive<i64> {
        self.outer.latitudes()
    }

    /// `inside` is what lies within the inner circle.
    fn band(&self, south: i64, north: i64) -> Band {
        Band {
            touched: self.outer.band(south, north).touched,
            inside: self.inner.band(south, north).inside,
        }
    }

    fn relation(&self, rectangle: &Rectangle, band: &Band) -> RectangleRelation {
        match band.relation(rectangle) {
            RectangleRelation::Inside => RectangleRelation::Outside,
            other => other,
        }
    }
}

fn rank(meters: f64) -> Rank {
    Rank::among(meters.to_u64(), false)
}

fn meters(rank: Rank) -> Option<f64> {
    rank.value(false).map(f64::from_u64)
}

impl SegmentTopCollector<'_> {
    /// Offers the nearest matches, if that is quicker than offering all. Whether that was enough; if not, those that were
    /// offered are passed over from now on.
    pub(crate) fn probe_nearest(
        &mut self,
        scorer: &mut Box<dyn Scorer>,
        matches: &Matches<'_>,
        run: &Run,
    ) -> Result<bool> {
        if self.order.nearest.is_none() || !self.order.is_random_access() {
            return Ok(false);
        }
        let Matches {
            weight,
            reader,
            score,
        } = *matches;
        let matches = u64::from(scorer.size_hint());
        if matches < FEW_MATCHES {
            return Ok(false);
        }
        let mut needed = MARGIN * self.size as u64 * u64::from(reader.max_doc()) / matches;
        let mut inner = self.leading_after(score).and_then(meters).unwrap_or_default();
        while needed < matches {
            let limit = self.leading_limit().and_then(meters).unwrap_or(FARTHEST_METERS);
            let Some(nearest) = &self.order.nearest else { break };
            let (cells, outer) = nearest.reach(inner, limit, needed, run)?;
            let ring = nearest.gather(&cells, reader, run)?;
            self.offer_ring(ring, &mut **scorer, outer, reader, score, run)?;
            if let Some(nearest) = &mut self.order.nearest {
                nearest.passed = Some(rank(outer));
            }
            if self.leading_limit().is_some_and(|last| last <= rank(outer)) {
                return Ok(true);
            }
            *scorer = weight.scorer(reader, 1.0)?;
            if outer >= FARTHEST_METERS {
                break;
            }
            (inner, needed) = (outer, needed.saturating_mul(WIDENING));
        }
        Ok(false)
    }

    /// Offers the matches among the documents of a ring, up to its outer distance: cells stick out beyond it.
    fn offer_ring(
        &mut self,
        mut ring: Box<dyn Scorer>,
        scorer: &mut dyn Scorer,
        outer: f64,
        reader: &SegmentReader,
        score: Score,
        run: &Run,
    ) -> Result<()> {
        let mut pace = Pace::new(run, DOCUMENTS_PER_CHECK);
        let mut block = Vec::with_capacity(COLLECT_BLOCK_BUFFER_LEN);
        let mut doc = go_to(&mut ring, scorer.doc());
        while doc != TERMINATED {
            pace.step(1)?;
            doc = match scorer.seek_danger(doc) {
                SeekDangerResult::SeekLowerBound(next) => ring.seek(next.min(TERMINATED)),
                SeekDangerResult::Found => {
                    if !reader.is_deleted(doc) {
                        block.push(doc);
                    }
                    if block.len() == COLLECT_BLOCK_BUFFER_LEN {
                        self.offer_near(&block, outer, score);
                        block.clear();
                    }
                    ring.advance()
                }
            };
        }
        self.offer_near(&block, outer, score);
        Ok(())
    }

    /// Offers documents of the same score up to a distance, if that is finite, as far as they can be near enough; they
    /// come in ascending order.
    pub(super) fn offer_near(&mut self, docs: &[DocId], outer: f64, score: Score) {
        let bounded = outer.is_finite();
        let mut boxes: Option<BoundingBoxes> = None;
        for doc in docs {
            // Documents without a point are the last: enough with one are known.
            let last = self.leading_limit().and_then(meters);
            let limit = last.map_or(outer, |last| last.min(outer));
            let limit = Some(limit).filter(|limit| limit.is_finite());
            let Some(nearest) = &self.order.nearest else {
                return;
            };
            if let Some(limit) = limit {
                // By a tenth shorter, computing narrower boxes pays.
                if boxes.as_ref().is_none_or(|boxes| limit < boxes.meters * 0.9) {
                    boxes = Some(BoundingBoxes::new(&nearest.distances.targets, limit));
                }
                let outside = |boxes: &BoundingBoxes| !nearest.distances.may_be_within(*doc, boxes);
                if boxes.as_ref().is_some_and(outside) {
                    continue;
                }
            }
            if bounded || nearest.passed.is_some() {
                let here = nearest.distances.of(*doc).map(rank);
                let passed = here.zip(nearest.passed);
                let before = passed.is_some_and(|(here, passed)| here <= passed);
                if before || bounded && here.is_none_or(|here| here > rank(outer)) {
                    continue;
                }
            }
            self.offer(*doc, score);
        }
    }
}

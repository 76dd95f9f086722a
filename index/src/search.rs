//! Searches at one point in time.

use std::cell::LazyCell;
use std::sync::Arc;

use tantivy::query::{EnableScoring, Scorer, Weight};
use tantivy::{COLLECT_BLOCK_BUFFER_LEN, DocSet, SegmentReader, TERMINATED};

use crate::aggregate::{self, SegmentWalk};
use crate::cancel::Cancellation;
use crate::collapse::{self, Collapse};
use crate::count::Count;
use crate::doc_blocks::each_block;
use crate::error::Error;
use crate::index::{Index, Opening, Shared, View};
use crate::inner_hits;
use crate::pace::Pace;
use crate::page::{self, PageOrigin};
use crate::plan::{self, QueryPlan};
use crate::profile::{Recorder, Stopwatch};
use crate::request::{SearchRequest, TotalRequest};
use crate::result::{Hit, Profile, SearchResult, SegmentAccess};
use crate::run::Run;
use crate::sort::{
    Matches, OFFERED_TOGETHER, Order, PreparedOrder, RawSortValue, SegmentTopCollector, TopCollector, Winner,
};

mod checked;

use checked::{check_page, planned, position, together};

const SEARCHING: &str = "searching";
/// Nodes of query trees that take as long for a document as the rest of the walk.
const NODES_PER_DOCUMENT: u32 = 8;
/// Matches up to which a bounded total is counted by itself, so that the page may leave out documents. Above, the walk
/// counts: it looks at the deadline.
const MAX_COUNTED_AHEAD: u64 = 16_384;

/// A view of an index as of one commit. Later commits don't change it; the files it reads stay until it is dropped.
///
/// Searching blocks and keeps a core busy: call it on threads made for that.
#[derive(Clone, Debug)]
pub struct Searcher {
    pub(crate) shared: Arc<Shared>,
    pub(crate) view: Arc<View>,
}

impl Index {
    /// A view of the last commit, which later commits don't change.
    pub fn searcher(&self) -> Searcher {
        Searcher {
            shared: Arc::clone(&self.shared),
            view: self.shared.view(),
        }
    }
}

impl Searcher {
    /// Which opening of an index this is a view of.
    pub fn opening(&self) -> Opening {
        self.shared.opening
    }

    /// The last change that the view includes.
    pub fn sequence(&self) -> u64 {
        self.view.sequence
    }

    /// Finds documents.
    ///
    /// Pages that follow tokens hold each document once, in an order that merges and restarts don't change. Commits don't
    /// either, except by score: scores of texts depend on all documents (on those that aren't deleted, and on nothing
    /// else), so they shift when documents are written between two pages.
    ///
    /// # Errors
    /// [`Error::InvalidQuery`] with every violation of the request, [`Error::PageTokenInvalid`],
    /// [`Error::LimitExceeded`]; [`Error::DeadlineExceeded`] and [`Error::Cancelled`] when `cancellation` says so;
    /// [`Error::Io`], [`Error::Corrupt`].
    pub fn search(
        &self,
        request: &SearchRequest,
        cancellation: &Cancellation,
    ) -> Result<SearchResult, Error> {
        self.shared.damage.check()?;
        let result = self.search_view(request, cancellation);
        // Damage may have become known meanwhile: then it is the reason of an error, too.
        self.shared.damage.check()?;
        result
    }

    fn search_view(
        &self,
        request: &SearchRequest,
        cancellation: &Cancellation,
    ) -> Result<SearchResult, Error> {
        let run = Run::new(cancellation.clone());
        let run = Arc::new(run.with_caches(self.shared.caches.clone(), request.profile));
        let mut stopwatch = Stopwatch::begin(request.profile);
        run.check()?;
        let Shared { layout, .. } = &*self.shared;
        let planned = together(
            planned(layout, &run, request),
            Order::new(layout, &run, &request.sort),
        );
        let collapse = request
            .collapse
            .as_deref()
            .map(|field| Collapse::new(layout, field));
        let checked = together(check_page(request), collapse.transpose());
        let prepared = aggregate::prepare(layout, &run, request, self.shared.design);
        let (planned, (checked, prepared)) = together(planned, together(checked, prepared))?;
        let (((plan, inner_hits), order), ((), collapse)) = (planned, checked);
        // Only tokens need it, and it takes as long as a small search.
        let origin = LazyCell::new(|| PageOrigin {
            request: request.fingerprint(),
            design: self.shared.design,
        });
        let after = request.after.as_deref();
        let after = after.map(|token| position(*origin, &order, token)).transpose()?;

        let wanted = match request.page_size {
            0 => 0,
            size => request.skip + size + 1,
        };
        let mut profile = Profile {
            plan: stopwatch.lap(),
            ..Profile::default()
        };
        let recorder = request.profile.then(Recorder::default);
        let mut count = Count::new(request.total);
        let mut winners = Vec::new();
        let failed = |error| run.reason(SEARCHING, error);
        let searcher = &self.view.searcher;
        let constant = plan.constant_score;
        let mut aggregations =
            aggregate::AggregationWalk::new(&prepared, layout, searcher, &run, constant).map_err(failed)?;
        if wanted > 0 || count.open() > 0 || !prepared.is_empty() {
            let search = SearchPass {
                searcher,
                order: PreparedOrder::new(&order, layout, &run, searcher).map_err(failed)?,
                scores: plan.scores && (order.wants_scores() || prepared.wants_scores()),
                best_score_first: order.begins_with_best_score(),
                wanted,
                plan: &plan,
                run: &run,
                recorder: recorder.as_ref(),
            };
            winners = match collapse.as_ref().filter(|_| wanted > 0) {
                Some(collapse) => {
                    let heads = search.collapsed(collapse, after.as_deref(), &mut count)?;
                    if !prepared.is_empty() {
                        // Groups of hits are found by passing matches over; the aggregations take them all.
                        let rest = SearchPass {
                            wanted: 0,
                            recorder: None,
                            ..search
                        };
                        let (mut top, mut uncounted) =
                            (TopCollector::new(&order, 0, None), Count::new(TotalRequest::None));
                        rest.all(&mut top, &mut uncounted, &mut aggregations)?;
                    }
                    heads.into_iter().skip(request.skip).collect()
                }
                None => {
                    let mut top = TopCollector::new(&order, wanted, after);
                    search.all(&mut top, &mut count, &mut aggregations)?;
                    top.into_winners(request.skip)
                        .map_err(|error| run.unreadable(error))?
                }
            };
        }

        profile.search = stopwatch.lap();
        let aggregations = aggregations.conclude()?;

        run.outcome()?;
        profile.aggregate = stopwatch.lap();
        let more = winners.len() > request.page_size;
        if more {
            winners.pop();
        }
        let last = winners.last().filter(|_| more);
        let next_page_token = last.map(|last| page::encode(*origin, &last.sort_values));
        let mut held = run.allowance().grant();
        let hits = winners.into_iter().map(|winner| {
            let hit = Hit {
                key: order.document_key(&winner.sort_values),
                score: order.wants_scores().then_some(winner.score),
                sort_values: order.sort_values(&winner.sort_values),
                inner_hits: Vec::new(),
            };
            held.absorb(winner.sort_values.into_held());
            hit
        });
        let mut hits: Vec<Hit> = hits.collect();
        let keys: Vec<&[u8]> = hits.iter().map(|hit| hit.key.as_slice()).collect();
        let lists = inner_hits::collect(&inner_hits, layout, &self.view.searcher, &keys, &run, &mut held)?;
        for (hit, lists) in hits.iter_mut().zip(lists) {
            hit.inner_hits = lists;
        }
        // What ended quietly since, or before: an answer is whole, or an error.
        run.outcome()?;
        profile.inner_hits = stopwatch.lap();
        let profile = plan.trace.zip(recorder).map(|(trace, recorder)| Profile {
            query: trace.tree(None),
            segments: recorder.segments(&trace),
            peak_bytes: run.allowance().peak() as u64,
            ..profile
        });
        Ok(SearchResult {
            hits,
            next_page_token,
            total: count.total(),
            aggregations,
            sequence: self.view.sequence,
            profile,
        })
    }
}

/// One pass over all matches.
struct SearchPass<'a> {
    searcher: &'a tantivy::Searcher,
    order: PreparedOrder<'a>,
    plan: &'a QueryPlan,
    /// Whether scores differ and matter.
    scores: bool,
    /// Whether the order begins with the best score.
    best_score_first: bool,
    wanted: usize,
    run: &'a Run,
    /// Notes what was done, if somebody asked.
    recorder: Option<&'a Recorder>,
}

impl<'a> SearchPass<'a> {
    /// Offers to `top` every match that can get in, counts matches as far as `count` asks, and gives all of them to the
    /// aggregations.
    fn all(
        &self,
        top: &mut TopCollector<'a>,
        count: &mut Count,
        aggregations: &mut aggregate::AggregationWalk<'_>,
    ) -> Result<(), Error> {
        let failed = |error| self.run.reason(SEARCHING, error);
        let weight = self.weight().map_err(failed)?;
        for reader in self.readers().map_err(failed)? {
            self.run.check()?;
            let mut stopwatch = Stopwatch::begin(self.recorder.is_some());
            let own = aggregations.segment(reader).map_err(failed)?;
            let access = self.segment(&*weight, reader, top, count, own)?;
            if let Some(recorder) = self.recorder {
                recorder.segment(reader, access, stopwatch.lap());
            }
        }
        Ok(())
    }

    /// The best match of each group, and counts all matches.
    fn collapsed(
        &self,
        collapse: &Collapse,
        after: Option<&[RawSortValue]>,
        count: &mut Count,
    ) -> Result<Vec<Winner>, Error> {
        let failed = |error| self.run.reason(SEARCHING, error);
        let (weight, readers) = (self.weight().map_err(failed)?, self.readers().map_err(failed)?);
        let pass = collapse::CollapsePass {
            weight: &*weight,
            readers: &readers,
            order: &self.order,
            scores: self.scores,
            constant_score: self.plan.constant_score,
            run: self.run,
            recorder: self.recorder,
        };
        pass.heads(collapse, self.wanted, after, count)
    }

    /// The segments, those with the best matches first as far as that is known.
    fn readers(&self) -> tantivy::Result<Vec<&SegmentReader>> {
        let mut readers: Vec<&SegmentReader> = self.searcher.segment_readers().iter().collect();
        self.order.sort_segments(&mut readers, self.scores)?;
        Ok(readers)
    }

    fn weight(&self) -> tantivy::Result<Box<dyn Weight>> {
        self.plan.query.weight(match self.scores {
            true => EnableScoring::enabled_from_searcher(self.searcher),
            false => EnableScoring::disabled_from_searcher(self.searcher),
        })
    }

    fn segment(
        &self,
        weight: &dyn Weight,
        reader: &SegmentReader,
        top: &mut TopCollector<'a>,
        count: &mut Count,
        aggregations: Option<SegmentWalk<'_, '_>>,
    ) -> Result<SegmentAccess, Error> {
        let failed = |error| self.run.reason(SEARCHING, error);
        let unreadable = |error| self.run.unreadable(error);
        let walks = aggregations.is_some() || !self.counted(weight, reader, count).map_err(failed)?;
        if self.wanted == 0 && !walks {
            return Ok(SegmentAccess::Counted);
        }
        let order = self.order.open(reader, self.scores).map_err(failed)?;
        let mut best = top.segment(order).map_err(unreadable)?;
        let mut access = SegmentAccess::PassedOver;
        if let Some(mut own) = aggregations {
            // All matches are walked anyway, but where few documents can get in, finding those first is quicker.
            let mut scorer = weight.scorer(reader, 1.0).map_err(failed)?;
            let mut found = self.wanted == 0 || best.beaten();
            if !found {
                found = self
                    .probed(&mut scorer, weight, reader, &mut best)
                    .map_err(failed)?;
                if found {
                    scorer = weight.scorer(reader, 1.0).map_err(failed)?;
                }
            }
            let page = (!found).then_some(&mut best);
            let matches = self.walk(scorer, reader, page, Some(&mut own)).map_err(failed)?;
            own.end().map_err(failed)?;
            count.add(matches);
            access = SegmentAccess::AllMatches(matches);
        } else if walks {
            let scorer = weight.scorer(reader, 1.0).map_err(failed)?;
            let matches = self.walk(scorer, reader, Some(&mut best), None).map_err(failed)?;
            count.add(matches);
            access = SegmentAccess::AllMatches(matches);
        } else if !best.beaten() {
            access = self.shortened(weight, reader, &mut best).map_err(failed)?;
        }
        top.take(best).map_err(unreadable)?;
        Ok(access)
    }

    /// Counts a segment's matches as far as that needs no walk over all of them; whether nothing is left to count.
    fn counted(
        &self,
        weight: &dyn Weight,
        reader: &SegmentReader,
        count: &mut Count,
    ) -> tantivy::Result<bool> {
        let open = count.open();
        if open == 0 {
            count.leave_out();
            return Ok(true);
        }
        if self.plan.everything {
            count.add(u64::from(reader.num_docs()));
            return Ok(true);
        }
        if self.plan.counts_at_once || (self.plan.counts_by_cells && self.wanted == 0) {
            count.add(u64::from(weight.count(reader)?));
            return Ok(true);
        }
        if open > MAX_COUNTED_AHEAD || self.wanted == 0 || !self.plan.begins_at_once {
            return Ok(false);
        }
        let mut scorer = weight.scorer(reader, 1.0)?;
        let mut found = 0;
        while scorer.doc() != TERMINATED && found < open {
            found += u64::from(!reader.is_deleted(scorer.doc()));
            scorer.advance();
        }
        count.add(found);
        if scorer.doc() != TERMINATED {
            count.leave_out();
        }
        Ok(true)
    }

    /// Offers what can get in.
    fn shortened(
        &self,
        weight: &dyn Weight,
        reader: &SegmentReader,
        best: &mut SegmentTopCollector<'_>,
    ) -> tantivy::Result<SegmentAccess> {
        let mut scorer = weight.scorer(reader, 1.0)?;
        Ok(if self.scores {
            SegmentAccess::AllMatches(self.scored(scorer, reader, Some(best), None, false)?)
        } else if self.probed(&mut scorer, weight, reader, best)? {
            SegmentAccess::BestValues
        } else {
            SegmentAccess::AllMatches(self.unscored(scorer, reader, Some(best), None)?)
        })
    }

    /// Offers what can get in, if that takes no walk over all matches; whether it was enough. If not, `scorer` is left on
    /// the first match.
    fn probed(
        &self,
        scorer: &mut Box<dyn Scorer>,
        weight: &dyn Weight,
        reader: &SegmentReader,
        best: &mut SegmentTopCollector<'_>,
    ) -> tantivy::Result<bool> {
        if self.scores {
            return Ok(false);
        }
        let matches = Matches {
            weight,
            reader,
            score: self.plan.constant_score,
        };
        Ok(
            self.plan.begins_at_once && best.probe(scorer, &matches, self.run)?
                || self.plan.begins_but_for_areas && best.probe_nearest(scorer, &matches, self.run)?,
        )
    }

    /// Looks at the deadline more often where an order or a large query tree takes long for each document.
    fn pace(&self) -> Pace<&'a Run> {
        let nodes = u32::try_from(self.run.planned(0)).unwrap_or(u32::MAX);
        let documents = self.order.documents_per_check() / (1 + nodes / NODES_PER_DOCUMENT);
        Pace::new(self.run, documents.max(1))
    }

    /// Gives every match to those that take matches, and counts them.
    fn walk(
        &self,
        scorer: Box<dyn Scorer>,
        reader: &SegmentReader,
        best: Option<&mut SegmentTopCollector<'_>>,
        aggregations: Option<&mut SegmentWalk<'_, '_>>,
    ) -> tantivy::Result<u64> {
        if self.scores {
            self.scored(scorer, reader, best, aggregations, true)
        } else {
            self.unscored(scorer, reader, best, aggregations)
        }
    }

    /// Offers every match, or only those that can get in when not all have to be counted. How many it saw.
    fn scored(
        &self,
        mut scorer: Box<dyn Scorer>,
        reader: &SegmentReader,
        mut best: Option<&mut SegmentTopCollector<'_>>,
        mut aggregations: Option<&mut SegmentWalk<'_, '_>>,
        counts: bool,
    ) -> tantivy::Result<u64> {
        // Most documents score less than the worst that is kept; those that score the same may still get in.
        let min_score_of = |best: &SegmentTopCollector<'_>, doc| match self.best_score_first {
            true => best.min_score(doc, self.run),
            false => Ok(None),
        };
        let (mut docs, mut scores) = (Vec::new(), Vec::new());
        let (mut pace, mut told, mut matches) = (self.pace(), None, 0);
        let mut doc = scorer.doc();
        let mut min_score = match best.as_deref() {
            Some(best) => min_score_of(best, doc)?,
            None => None,
        };
        while doc != TERMINATED {
            pace.step(1)?;
            if !reader.is_deleted(doc) {
                matches += 1;
                let score = scorer.score();
                if let Some(best) = best.as_deref_mut()
                    && min_score.is_none_or(|min_score| min_score.admits(score))
                {
                    best.offer(doc, score);
                    min_score = min_score_of(best, doc)?;
                }
                if let Some(aggregations) = aggregations.as_deref_mut() {
                    docs.push(doc);
                    scores.push(score);
                    if docs.len() == COLLECT_BLOCK_BUFFER_LEN {
                        aggregations.take(&docs, &scores)?;
                        docs.clear();
                        scores.clear();
                    }
                }
            }
            if !counts && min_score != told {
                told = min_score;
                if let Some(min_score) = min_score {
                    plan::raise_min_score(&mut *scorer, min_score)?;
                }
            }
            doc = scorer.advance();
        }
        if let Some(aggregations) = aggregations {
            aggregations.take(&docs, &scores)?;
        }
        Ok(matches)
    }

    fn unscored(
        &self,
        mut scorer: Box<dyn Scorer>,
        reader: &SegmentReader,
        mut best: Option<&mut SegmentTopCollector<'_>>,
        mut aggregations: Option<&mut SegmentWalk<'_, '_>>,
    ) -> tantivy::Result<u64> {
        let score = self.plan.constant_score;
        let together = OFFERED_TOGETHER.min(self.order.documents_per_check() as usize);
        let mut offered = Vec::with_capacity(together.min(scorer.size_hint() as usize));
        let matches = each_block(&mut *scorer, reader, self.pace(), |docs| {
            if let Some(best) = best.as_deref_mut() {
                offered.extend_from_slice(docs);
                if offered.len() >= together {
                    best.offer_all(&offered, score);
                    offered.clear();
                }
            }
            match aggregations.as_deref_mut() {
                Some(aggregations) => aggregations.take(docs, &[]),
                None => Ok(()),
            }
        })?;
        if let Some(best) = best {
            best.offer_all(&offered, score);
        }
        Ok(matches)
    }
}

#[cfg(test)]
mod tests;

//! Searches at one point in time.

use std::io;
use std::sync::Arc;

use tantivy::query::{EnableScoring, Scorer, Weight};
use tantivy::{COLLECT_BLOCK_BUFFER_LEN, DocSet, SegmentReader, TERMINATED};

use crate::aggregate;
use crate::cancel::Cancellation;
use crate::count::Count;
use crate::error::{Error, Reason, Violation, Violations};
use crate::index::{Shared, View};
use crate::limits::{DOCUMENTS_PER_CHECK, MAX_PAGE_SIZE, MAX_SKIP};
use crate::page;
use crate::plan::{self, Plan};
use crate::request::{Hit, SearchRequest, SearchResult};
use crate::run::Run;
use crate::sort::{Matches, Order, PreparedOrder, SegmentTop, Standing, Top};
use crate::statistics::ScopeStatistics;

const SEARCHING: &str = "searching";
/// Matches up to which a bounded total is counted by itself, so that the page may leave out documents. Above, the walk
/// counts: it looks at the deadline.
const MAX_COUNTED_AHEAD: u64 = 16_384;

/// A view of an index as of one commit. Later commits don't change it; the files it reads stay until it is dropped.
///
/// Searching blocks and keeps a core busy: call it on threads made for that.
#[derive(Clone, Debug)]
pub struct Searcher {
    shared: Arc<Shared>,
    view: Arc<View>,
}

impl Searcher {
    pub(crate) fn new(shared: Arc<Shared>, view: Arc<View>) -> Self {
        Self { shared, view }
    }

    /// The last change that the view includes.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.view.sequence
    }

    /// How many documents there are, nested objects not counted.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Corrupt`].
    pub fn count(&self) -> Result<u64, Error> {
        self.shared.documents(&self.view.searcher)
    }

    /// Finds documents.
    ///
    /// Pages that follow tokens hold each document once, in an order that commits, merges and restarts don't change,
    /// except by score: scores depend on all documents, so they shift when documents are written between two pages.
    ///
    /// # Errors
    /// [`Error::InvalidQuery`] with every violation of the request, [`Error::Unsupported`], [`Error::PageTokenInvalid`],
    /// [`Error::LimitExceeded`]; [`Error::DeadlineExceeded`] and [`Error::Cancelled`] when `cancellation` says so;
    /// [`Error::Io`], [`Error::Corrupt`].
    pub fn search(
        &self,
        request: &SearchRequest,
        cancellation: &Cancellation,
    ) -> Result<SearchResult, Error> {
        let run = Run::new(cancellation.clone()).with_columns(Arc::clone(&self.shared.columns));
        let run = Arc::new(run);
        run.check()?;
        let Shared { layout, parents, .. } = &*self.shared;
        let ((plan, order), prepared) = together(
            together(
                plan::plan(layout, parents, &run, &request.query, "query"),
                Order::new(layout, parents, &run, &request.sort),
            ),
            together(
                check_page(request),
                aggregate::prepare(layout, &request.aggregations),
            ),
        )
        .map(|(both, (_, prepared))| (both, prepared))?;
        let fingerprint = request.fingerprint();
        let after = request
            .after
            .as_deref()
            .map(|token| position(fingerprint, &order, token))
            .transpose()?;

        let wanted = if request.page_size == 0 {
            0
        } else {
            request.skip + request.page_size + 1
        };
        let mut top = Top::new(&order, wanted, after);
        let mut count = Count::new(request.total);
        if wanted > 0 || count.open() > 0 {
            let search = Pass {
                searcher: &self.view.searcher,
                order: PreparedOrder::new(&order, layout, parents, &run, &self.view.searcher)
                    .map_err(|error| run.reason(SEARCHING, error))?,
                scores: plan.scores && order.wants_scores(),
                best_score_first: order.begins_with_best_score(),
                wanted,
                plan: &plan,
                run: &run,
            };
            search.all(self.shared.layout.root_kind().as_ref(), &mut top, &mut count)?;
        }

        let aggregations = aggregate::collect(&prepared, &self.view.searcher, &*plan.query, &run)?;

        run.outcome()?;
        let mut winners = top.into_winners();
        let more = winners.len() == wanted && wanted > 0;
        if more {
            winners.pop();
        }
        let last = winners.last().filter(|_| more);
        let next_page_token = last.map(|last| page::encode(fingerprint, &last.standings));
        let hits = winners.iter().skip(request.skip).map(|winner| Hit {
            key: order.document_key(&winner.standings),
            score: order.wants_scores().then_some(winner.score),
            sort_values: order.sort_values(&winner.standings),
        });
        Ok(SearchResult {
            hits: hits.collect(),
            next_page_token,
            total: count.total(),
            aggregations,
            sequence: self.view.sequence,
        })
    }
}

/// Both results, or all violations of both.
fn together<A, B>(one: Result<A, Error>, other: Result<B, Error>) -> Result<(A, B), Error> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (Err(Error::InvalidQuery(mut violations)), Err(Error::InvalidQuery(more))) => {
            violations.append(more);
            Err(Error::InvalidQuery(violations))
        }
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

/// Checks the numbers of a request.
fn check_page(request: &SearchRequest) -> Result<(), Error> {
    let mut violations = Violations::default();
    let sizes = [
        (
            "page_size",
            request.page_size,
            "MAX_PAGE_SIZE",
            MAX_PAGE_SIZE,
            "ask for a smaller page",
        ),
        ("skip", request.skip, "MAX_SKIP", MAX_SKIP, "follow page tokens"),
    ];
    for (path, actual, limit, max, advice) in sizes {
        if actual > max {
            violations.push(Violation {
                path: path.to_owned(),
                reason: Reason::LimitExceeded {
                    limit,
                    max: max as u64,
                    actual: actual as u64,
                },
                message: format!("{actual} is above the limit {limit} of {max}"),
                advice: advice.to_owned(),
            });
        }
    }
    if violations.is_empty() {
        Ok(())
    } else {
        Err(Error::InvalidQuery(violations))
    }
}

fn position(fingerprint: u64, order: &Order, token: &str) -> Result<Vec<Standing>, Error> {
    let standings = page::decode(fingerprint, token)?;
    if !order.accepts(&standings) {
        return Err(Error::PageTokenInvalid {
            detail: "it belongs to another order",
        });
    }
    Ok(standings)
}

/// One pass over all matches.
struct Pass<'a> {
    searcher: &'a tantivy::Searcher,
    order: PreparedOrder<'a>,
    plan: &'a Plan,
    /// Whether scores differ and matter.
    scores: bool,
    /// Whether the order begins with the best score.
    best_score_first: bool,
    /// How many documents are kept.
    wanted: usize,
    run: &'a Run,
}

impl Pass<'_> {
    /// Offers to `top` every match that can get in, and counts matches as far as `count` asks.
    fn all(
        &self,
        root_kind: Option<&tantivy::Term>,
        top: &mut Top<'_>,
        count: &mut Count,
    ) -> Result<(), Error> {
        let failed = |error| self.run.reason(SEARCHING, error);
        let query = &self.plan.query;
        let weight = match root_kind {
            _ if !self.scores => query.weight(EnableScoring::disabled_from_searcher(self.searcher)),
            None => query.weight(EnableScoring::enabled_from_searcher(self.searcher)),
            Some(kind) => ScopeStatistics::new(self.searcher, kind).and_then(|statistics| {
                query.weight(EnableScoring::enabled_from_statistics_provider(
                    &statistics,
                    self.searcher,
                ))
            }),
        };
        let weight = weight.map_err(failed)?;
        let mut readers: Vec<&SegmentReader> = self.searcher.segment_readers().iter().collect();
        self.order.arrange(&mut readers, self.scores).map_err(failed)?;
        for reader in readers {
            self.run.check()?;
            self.segment(&*weight, reader, top, count)?;
        }
        Ok(())
    }

    fn segment(
        &self,
        weight: &dyn Weight,
        reader: &SegmentReader,
        top: &mut Top<'_>,
        count: &mut Count,
    ) -> Result<(), Error> {
        let failed = |error| self.run.reason(SEARCHING, error);
        let walks = !self.counted(weight, reader, count).map_err(failed)?;
        if self.wanted == 0 && !walks {
            return Ok(());
        }
        let order = self.order.open(reader, self.scores).map_err(failed)?;
        let mut best = top.segment(order).map_err(unreadable)?;
        if walks {
            count.add(self.walk(weight, reader, &mut best).map_err(failed)?);
        } else if !best.beaten() {
            self.shortened(weight, reader, &mut best).map_err(failed)?;
        }
        top.take(best).map_err(unreadable)
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
        if self.plan.counts_at_once {
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
        best: &mut SegmentTop<'_>,
    ) -> tantivy::Result<()> {
        if self.scores {
            return self.scored(weight, reader, best).map(drop);
        }
        let mut scorer = weight.scorer(reader, 1.0)?;
        let matches = Matches {
            weight,
            reader,
            score: self.plan.constant_score,
        };
        let probes = self.plan.begins_at_once;
        if !probes || !best.probe(&mut scorer, &matches, self.run)? {
            self.unscored(scorer, reader, best)?;
        }
        Ok(())
    }

    /// Offers every match, and counts them.
    fn walk(
        &self,
        weight: &dyn Weight,
        reader: &SegmentReader,
        best: &mut SegmentTop<'_>,
    ) -> tantivy::Result<u64> {
        if self.scores {
            self.scored(weight, reader, best)
        } else {
            self.unscored(weight.scorer(reader, 1.0)?, reader, best)
        }
    }

    fn scored(
        &self,
        weight: &dyn Weight,
        reader: &SegmentReader,
        best: &mut SegmentTop<'_>,
    ) -> tantivy::Result<u64> {
        let mut scorer = weight.scorer(reader, 1.0)?;
        // Most documents score less than the worst that is kept; those that score the same may still get in. Blocks of
        // documents can't be passed over by the library's bounds of their scores: it keeps the bounds for the average
        // length of a segment's texts, and searches with that of all segments.
        let least = |best: &SegmentTop<'_>| best.least_score().filter(|_| self.best_score_first);
        let mut floor = least(best);
        let (mut matches, mut visited) = (0, 0_u32);
        let mut doc = scorer.doc();
        while doc != TERMINATED {
            visited = visited.wrapping_add(1);
            if visited.is_multiple_of(DOCUMENTS_PER_CHECK) {
                self.run.check_inside()?;
            }
            if !reader.is_deleted(doc) {
                matches += 1;
                let score = scorer.score();
                if floor.is_none_or(|floor| score >= floor) {
                    best.offer(doc, score);
                    floor = least(best);
                }
            }
            doc = scorer.advance();
        }
        Ok(matches)
    }

    fn unscored(
        &self,
        mut scorer: Box<dyn Scorer>,
        reader: &SegmentReader,
        best: &mut SegmentTop<'_>,
    ) -> tantivy::Result<u64> {
        let mut buffer = [0; COLLECT_BLOCK_BUFFER_LEN];
        let (mut matches, mut visited) = (0, 0);
        let mut alive = Vec::with_capacity(buffer.len());
        loop {
            let filled = scorer.fill_buffer(&mut buffer);
            alive.clear();
            let found = buffer.iter().take(filled).copied();
            alive.extend(found.filter(|doc| !reader.is_deleted(*doc)));
            matches += alive.len() as u64;
            best.offer_all(&alive, self.plan.constant_score);
            if filled < buffer.len() {
                return Ok(matches);
            }
            visited += filled as u32;
            if visited >= DOCUMENTS_PER_CHECK {
                visited = 0;
                self.run.check_inside()?;
            }
        }
    }
}

fn unreadable(source: io::Error) -> Error {
    Error::Io {
        doing: "reading the columns of a segment",
        source,
    }
}

//! Searches at one point in time.

use std::io;
use std::sync::Arc;

use tantivy::query::{EnableScoring, Weight};
use tantivy::{COLLECT_BLOCK_BUFFER_LEN, DocSet, SegmentReader, TERMINATED};

use crate::cancel::Cancellation;
use crate::error::{Error, Reason, Violation, Violations};
use crate::index::{Shared, View};
use crate::limits::{DOCUMENTS_PER_CHECK, MAX_PAGE_SIZE, MAX_SKIP};
use crate::page;
use crate::plan;
use crate::request::{Hit, Relation, SearchRequest, SearchResult, Total, TotalRequest};
use crate::run::Run;
use crate::sort::{Order, PreparedOrder, SegmentTop, Standing, Top};
use crate::statistics::ScopeStatistics;

const SEARCHING: &str = "searching";

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
        let run = Arc::new(Run::new(cancellation.clone()));
        run.check()?;
        let Shared { layout, parents, .. } = &*self.shared;
        let (plan, order) = together(
            together(
                plan::plan(layout, parents, &run, &request.query, "query"),
                Order::new(layout, parents, &run, &request.sort),
            ),
            check_page(request),
        )?
        .0;
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
        let counts = request.total != TotalRequest::None;
        let mut matches = 0;
        if wanted > 0 || counts {
            let search = Pass {
                searcher: &self.view.searcher,
                order: PreparedOrder::new(&order, layout, parents, &self.view.searcher)
                    .map_err(|error| run.reason(SEARCHING, error))?,
                scores: plan.scores && order.wants_scores(),
                constant_score: plan.constant_score,
                run: &run,
            };
            matches = search.all(&*plan.query, self.shared.layout.root_kind().as_ref(), &mut top)?;
        }

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
            total: counts.then_some(Total {
                value: matches,
                relation: Relation::Equal,
            }),
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
    /// Whether scores differ and matter.
    scores: bool,
    constant_score: f32,
    run: &'a Run,
}

impl Pass<'_> {
    /// Offers every match to `top`, and counts them.
    fn all(
        &self,
        query: &dyn tantivy::query::Query,
        root_kind: Option<&tantivy::Term>,
        top: &mut Top<'_>,
    ) -> Result<u64, Error> {
        let failed = |error| self.run.reason(SEARCHING, error);
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
        let mut matches = 0;
        for reader in self.searcher.segment_readers() {
            self.run.check()?;
            matches += self.segment(&*weight, reader, top)?;
        }
        Ok(matches)
    }

    fn segment(&self, weight: &dyn Weight, reader: &SegmentReader, top: &mut Top<'_>) -> Result<u64, Error> {
        let failed = |error| self.run.reason(SEARCHING, error);
        let order = self.order.open(reader).map_err(failed)?;
        let mut best = top.segment(order).map_err(unreadable)?;
        let matches = if self.scores {
            self.scored(weight, reader, &mut best)
        } else {
            self.unscored(weight, reader, &mut best)
        }
        .map_err(failed)?;
        top.take(best).map_err(unreadable)?;
        Ok(matches)
    }

    fn scored(
        &self,
        weight: &dyn Weight,
        reader: &SegmentReader,
        best: &mut SegmentTop<'_>,
    ) -> tantivy::Result<u64> {
        let mut scorer = weight.scorer(reader, 1.0)?;
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
                best.offer(doc, score);
            }
            doc = scorer.advance();
        }
        Ok(matches)
    }

    fn unscored(
        &self,
        weight: &dyn Weight,
        reader: &SegmentReader,
        best: &mut SegmentTop<'_>,
    ) -> tantivy::Result<u64> {
        let mut scorer = weight.scorer(reader, 1.0)?;
        let mut buffer = [0; COLLECT_BLOCK_BUFFER_LEN];
        let (mut matches, mut visited) = (0, 0);
        loop {
            let filled = scorer.fill_buffer(&mut buffer);
            for doc in buffer.iter().take(filled) {
                if !reader.is_deleted(*doc) {
                    matches += 1;
                    best.offer(*doc, self.constant_score);
                }
            }
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

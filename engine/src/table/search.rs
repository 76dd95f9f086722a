//! Searches: the index finds keys, the store gives the rows behind them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use souk_index::{
    Aggregation, AggregationResult, Cancellation, Fragment, Highlight, Highlighter, InnerHitList, Object,
    Profile, SearchRequest, SearchResult, Searcher, SortValue, Total, TotalRequest,
};
use souk_storage::{PrimaryKey, Row, Snapshot};
use tracing::{Instrument as _, Span, info_span};

use super::{MIN_SEQUENCE, TableHandle, page};
use crate::design::Design;
use crate::error::{EngineError, Result};
use crate::key;
use crate::open_index::OpenIndex;
use crate::scope::Scope;
use crate::stored::signed;
use crate::trace;
use crate::views::{self, View, ViewToken};

/// What matched in a row, by field.
type Highlights = Vec<(String, Vec<Fragment>)>;

/// A search of a table.
#[derive(Clone, Debug)]
pub struct Search {
    /// What the index is asked.
    pub request: SearchRequest,
    /// The write that the search has to see; 0 is any.
    pub min_sequence: u64,
    /// Whether hits show their rows.
    pub rows: bool,
    /// What to mark in hits.
    pub highlight: Option<Highlight>,
    /// How long to keep what the search sees for the pages that follow.
    pub keep_view: Option<Duration>,
}

impl Search {
    /// A search of what is there now, whose hits show their rows.
    #[must_use]
    pub fn new(request: SearchRequest) -> Self {
        Self {
            request,
            min_sequence: 0,
            rows: true,
            highlight: None,
            keep_view: None,
        }
    }
}

/// A page of hits.
#[derive(Clone, Debug)]
pub struct SearchResults<H> {
    /// The hits in order.
    pub hits: Vec<H>,
    /// Gives the next page; empty at the end.
    pub next_page_token: String,
    /// How many hits there are, if asked for.
    pub total: Option<Total>,
    /// The aggregations that were asked for, by name.
    pub aggregations: Vec<(String, AggregationResult)>,
    /// The last write that the search sees.
    pub sequence: i64,
    /// How the search ran, if asked for.
    pub profile: Option<SearchProfile>,
}

impl<H> SearchResults<H> {
    /// The same page with other hits.
    pub(crate) fn try_map<T, E>(self, mut map: impl FnMut(H) -> Result<T, E>) -> Result<SearchResults<T>, E> {
        // `collect` doesn't know how many come before an error, and hits are large to be moved whenever the list grows.
        let mut hits = Vec::with_capacity(self.hits.len());
        for hit in self.hits {
            hits.push(map(hit)?);
        }
        Ok(SearchResults {
            hits,
            next_page_token: self.next_page_token,
            total: self.total,
            aggregations: self.aggregations,
            sequence: self.sequence,
            profile: self.profile,
        })
    }
}

/// One hit.
#[derive(Clone, Debug, PartialEq)]
pub struct RowHit {
    /// The row, if it is shown.
    pub row: Option<Row>,
    /// The key of its document: [`TableHandle::key_of`] gives the row's.
    pub key: Vec<u8>,
    /// Its score; `None` when the order doesn't need one.
    pub score: Option<f64>,
    /// The values by which it was sorted, in the order of the search's sorts.
    pub sort_values: Vec<SortValue>,
    /// What matched, by field.
    pub highlights: Vec<(String, Vec<Fragment>)>,
    /// The nested objects that matched, by the names of their lists.
    pub inner_hits: Vec<(String, InnerHitList)>,
}

/// How a search ran.
#[derive(Clone, Debug)]
pub struct SearchProfile {
    /// In the index.
    pub index: Profile,
    /// Time until the view included what was asked for.
    pub waited: Duration,
    /// Time in the index, and until there was a place to search in.
    pub searched: Duration,
    /// Time of reading rows.
    pub fetched: Duration,
}

/// What the index found, and the last write that it sees.
#[derive(Clone, Debug)]
pub struct IndexAnswer {
    /// What the index found.
    pub result: SearchResult,
    /// The last write that it sees.
    pub sequence: u64,
    /// What was searched.
    searcher: Searcher,
    /// Time until the view included what was asked for.
    waited: Duration,
    /// Time of the search itself.
    searched: Duration,
}

impl TableHandle {
    /// Finds rows.
    ///
    /// Hits show the row as it is now: one that was deleted after the index saw it is left out, one that was
    /// changed is shown changed. In a view that is kept for several pages, now is when the view was taken. A page has fewer
    /// hits than were asked for where they have more than [`super::MAX_PAGE_BYTES`].
    ///
    /// # Errors
    /// [`EngineError::Index`] when the index refuses the search, [`EngineError::NotSearched`],
    /// [`EngineError::IndexBuilding`], [`EngineError::IndexDamaged`], [`EngineError::IndexUnreadable`], [`EngineError::TooBusy`],
    /// [`EngineError::DeadlineExceeded`], [`EngineError::ViewExpired`], [`EngineError::ViewBehind`], [`EngineError::TooManyViews`],
    /// [`EngineError::SequenceAhead`].
    pub async fn search(&self, search: Search) -> Result<SearchResults<RowHit>> {
        let mut table = match &self.target {
            Some(_) => self.clone(),
            None => self.for_search(None, page_tokens(&search.request))?,
        };
        loop {
            match table.found(&search).await {
                Ok(found) => return Ok(found),
                Err(error) => table = table.retargeted(error)?,
            }
        }
    }

    /// Finds rows by the index that is known.
    async fn found(&self, search: &Search) -> Result<SearchResults<RowHit>> {
        let mut request = search.request.clone();
        let kept = self.kept_view(&mut request, search)?;
        let after = request.after.clone();
        let design = self.target_index()?.served_design();
        let highlight = search.highlight.clone();
        let highlighter = highlight
            .map(|highlight| Highlighter::new(&design.schema, &search.request.query, highlight))
            .transpose()?;
        let view = kept.as_ref().map(|(_, view)| (&view.searcher, view.sequence));
        let answer = self.answer(request, search.min_sequence, view).await;
        let mut answer = match (answer, &kept) {
            (Err(EngineError::IndexDamaged { .. }), Some((number, _))) => {
                // The index that is built anew isn't the view's.
                views::finish(&self.inner.views, *number);
                return Err(EngineError::ViewExpired);
            }
            (answer, _) => answer?,
        };
        let began = Instant::now();
        let full = search.rows;
        // Whoever may not meet all rows isn't told the ids of others' either.
        let needed = full || self.scope()?.is_limited();
        let shows = !answer.result.hits.is_empty() && (needed || highlighter.is_some());
        let mut snapshot = match &kept {
            Some((_, view)) => Some(view.rows.clone()),
            None if shows => Some(self.snapshot(answer.sequence).await?),
            None => None,
        };
        let mut rows = Vec::new();
        let mut bytes = Vec::new();
        let mut read = answer.result.hits.len();
        if let Some(snapshot) = snapshot.as_ref().filter(|_| shows) {
            (rows, bytes) = self.read_page(snapshot, &keys(&answer.result)?, full).await?;
            read = rows.len();
        }
        let mut highlights = Vec::new();
        if let Some(highlighter) = highlighter {
            (rows, highlights) = self.highlights(&design, highlighter, rows).await?;
        }
        if !full {
            bytes.clear();
        }
        let hits = page::length(
            answer.result.hits.get(..read).unwrap_or_default(),
            &bytes,
            &highlights,
        );
        if hits < answer.result.hits.len() {
            let request = search.request.clone();
            let request = SearchRequest { after, ..request };
            self.end_page(&mut answer, request, hits).await?;
        }
        // Only now it is known whether there is a next page.
        let keeps = search.keep_view.is_some() && answer.result.next_page_token.is_some();
        if keeps && snapshot.is_none() {
            snapshot = Some(self.snapshot(answer.sequence).await?);
        }
        let mut highlights = highlights.into_iter();
        let fetched = began.elapsed();
        let next_page_token = self.next_page(&answer, kept, search.keep_view.zip(snapshot))?;
        let mut hits = Vec::with_capacity(answer.result.hits.len());
        let mut rows = rows.into_iter();
        for hit in answer.result.hits {
            let row = rows.next().flatten();
            let highlights = highlights.next().unwrap_or_default();
            if needed && row.is_none() {
                // Deleted since the index saw it, or another's.
                continue;
            }
            hits.push(RowHit {
                row: row.filter(|_| full),
                key: hit.key,
                score: hit.score.map(f64::from),
                sort_values: hit.sort_values,
                highlights,
                inner_hits: hit.inner_hits,
            });
        }
        Ok(SearchResults {
            hits,
            next_page_token,
            total: answer.result.total,
            aggregations: answer.result.aggregations,
            sequence: signed(answer.sequence),
            profile: answer.result.profile.map(|index| SearchProfile {
                index,
                waited: answer.waited,
                searched: answer.searched,
                fetched,
            }),
        })
    }

    /// Ends the page of `answer` after so many hits, since the others are too many bytes for it: as if no more had been asked
    /// for.
    async fn end_page(&self, answer: &mut IndexAnswer, request: SearchRequest, hits: usize) -> Result<()> {
        let page = SearchRequest {
            page_size: hits,
            total: TotalRequest::None,
            aggregations: Vec::new(),
            profile: false,
            ..request
        };
        let seen = (&answer.searcher, answer.sequence);
        let page = self.answer(page, 0, Some(seen)).await?;
        answer.result.hits.truncate(hits);
        answer.result.next_page_token = page.result.next_page_token;
        Ok(())
    }

    /// Searches the index alone, as far as the call may meet it. [`TableHandle::rows`] are behind the keys of its hits.
    ///
    /// # Errors
    /// As [`TableHandle::search`].
    pub async fn find(&self, request: SearchRequest, min_sequence: u64) -> Result<IndexAnswer> {
        let mut table = match &self.target {
            Some(_) => self.clone(),
            None => self.for_search(None, page_tokens(&request))?,
        };
        loop {
            match table.answer(request.clone(), min_sequence, None).await {
                Ok(answer) => return Ok(answer),
                Err(error) => table = table.retargeted(error)?,
            }
        }
    }

    /// The view that the token of a search is for, with its number: the index's own token is left in its place.
    fn kept_view(&self, request: &mut SearchRequest, search: &Search) -> Result<Option<(u64, View)>> {
        let scope = self.scope()?;
        let fingerprint = scope.bind(self.fingerprint());
        let token = request.after.as_deref();
        let Some(ViewToken { number, inner }) = token.and_then(|token| ViewToken::open(fingerprint, token))
        else {
            return Ok(None);
        };
        let view = views::kept(&self.inner.views, number, search.keep_view)?;
        if !Arc::ptr_eq(&view.index, &self.target_index()?) {
            return Err(EngineError::PageTokenInvalid {
                detail: "it is of another index",
            });
        }
        request.after = Some(inner);
        if view.sequence < scope.seeing(&self.open.handovers) {
            // It has rows that are others' by now.
            return Err(EngineError::ViewExpired);
        }
        if search.min_sequence > view.sequence {
            return Err(EngineError::ViewBehind {
                wanted: search.min_sequence,
                reached: view.sequence,
            });
        }
        Ok(Some((number, view)))
    }

    /// The token of the next page. `keep` is for how long to keep a view that isn't kept yet, and its rows.
    fn next_page(
        &self,
        answer: &IndexAnswer,
        kept: Option<(u64, View)>,
        keep: Option<(Duration, Snapshot)>,
    ) -> Result<String> {
        let views = &self.inner.views;
        let Some(inner) = answer.result.next_page_token.clone() else {
            if let Some((number, _)) = kept {
                views::finish(views, number);
            }
            return Ok(String::new());
        };
        let number = match (kept, keep) {
            (Some((number, _)), _) => number,
            (None, Some((keep, rows))) => {
                let view = View {
                    index: self.target_index()?,
                    searcher: answer.searcher.clone(),
                    sequence: answer.sequence,
                    rows,
                };
                views::keep(views, view, keep, self.caller())?
            }
            (None, None) => return Ok(inner),
        };
        let fingerprint = self.scope()?.bind(self.fingerprint());
        Ok(ViewToken { number, inner }.seal(fingerprint))
    }

    /// Searches what the call may meet of the index, or of a view of it up to a sequence.
    async fn answer(
        &self,
        request: SearchRequest,
        min_sequence: u64,
        view: Option<(&Searcher, u64)>,
    ) -> Result<IndexAnswer> {
        let index = self.target_index()?;
        let span = trace::recorded(|| {
            info_span!(
                "index.search",
                otel.kind = "internal",
                db.system.name = "souk",
                db.operation.name = "search",
                db.collection.name = self.name(),
                souk.index.name = index.told_name(),
                souk.min_sequence = min_sequence,
                souk.sequence = tracing::field::Empty,
                souk.hits = tracing::field::Empty,
                souk.wait_micros = tracing::field::Empty,
            )
        });
        async {
            self.check_sequence(MIN_SEQUENCE, min_sequence).await?;
            let (scope, request) = self.scoped_search(&index, request)?;
            let wait = self.wait();
            let began = Instant::now();
            let (searcher, sequence) = match view {
                Some((searcher, sequence)) => (searcher.clone(), sequence),
                None => {
                    let min_sequence = min_sequence.max(scope.seeing(&self.open.handovers));
                    index.state.view(min_sequence, wait).await?
                }
            };
            let waited = began.elapsed();
            let span = Span::current();
            span.record("souk.sequence", sequence);
            let micros = i64::try_from(waited.as_micros()).unwrap_or(i64::MAX);
            span.record("souk.wait_micros", micros);
            let result = self
                .inner
                .searches
                .search(searcher.clone(), request, wait)
                .await?
                .map_err(|error| {
                    if let souk_index::Error::Corrupt { detail, .. } = &error {
                        index.state.condemn(searcher.opening(), detail);
                    }
                    EngineError::of_index(index.name(), explained(&index, &scope, error))
                })?;
            span.record("souk.hits", result.hits.len());
            Ok(IndexAnswer {
                result,
                searcher,
                sequence,
                waited,
                searched: began.elapsed().saturating_sub(waited),
            })
        }
        .instrument(span)
        .await
    }

    /// What matched in each of some rows, which come back. Their documents are made there, too: what they hold may be large.
    async fn highlights(
        &self,
        design: &Arc<Design>,
        highlighter: Highlighter,
        rows: Vec<Option<Row>>,
    ) -> Result<(Vec<Option<Row>>, Vec<Highlights>)> {
        let design = Arc::clone(design);
        let mark = move |cancellation: &Cancellation| {
            let mut marked = Vec::with_capacity(rows.len());
            for row in &rows {
                cancellation.check()?;
                let document = row.as_ref().map_or_else(Object::new, |row| design.fields(row));
                marked.push(highlighter.fragments(&document, cancellation)?);
            }
            Ok::<_, souk_index::Error>((rows, marked))
        };
        Ok(self.inner.searches.run(self.wait(), mark).await??)
    }

    /// The rows behind the keys of documents, as they are at `sequence` or later: those that the call may meet.
    ///
    /// # Errors
    /// [`EngineError::RowsTooLarge`]; what the store refuses.
    pub async fn rows(&self, document_keys: &[&[u8]], sequence: u64) -> Result<Vec<Option<Row>>> {
        if document_keys.is_empty() {
            return Ok(Vec::new());
        }
        let keys = document_keys.iter().map(|key| primary_key(key));
        let keys: Vec<PrimaryKey> = keys.collect::<Result<_>>()?;
        let snapshot = self.snapshot(sequence).await?;
        let rows = self.access("get_batch", self.read_bounded(&snapshot, &keys));
        self.met(rows.await?)
    }

    /// The key of the row behind a document's key.
    ///
    /// # Errors
    /// When the key isn't one of a document.
    pub fn key_of(document_key: &[u8]) -> Result<PrimaryKey> {
        primary_key(document_key)
    }
}

/// An error of an index as one of what was asked for. How far a new index is counts the rows of all: those who may
/// not meet them all aren't told.
fn explained(index: &OpenIndex, scope: &Scope, error: souk_index::Error) -> souk_index::Error {
    match scope.is_limited() {
        true => scope.unrestricted(error),
        false => index.explained(error),
    }
}

/// The page tokens of a search: that of its hits, and those of its groups.
fn page_tokens(request: &SearchRequest) -> impl Iterator<Item = &str> {
    let of_groups = request.aggregations.iter().filter_map(|(_, asked)| match asked {
        Aggregation::Composite { after, .. } => after.as_deref(),
        _ => None,
    });
    request.after.as_deref().into_iter().chain(of_groups)
}

fn keys(result: &SearchResult) -> Result<Vec<PrimaryKey>> {
    result.hits.iter().map(|hit| primary_key(&hit.key)).collect()
}

fn primary_key(document_key: &[u8]) -> Result<PrimaryKey> {
    key::from_document_key(document_key).ok_or(EngineError::Defect("the index holds a key that isn't one"))
}

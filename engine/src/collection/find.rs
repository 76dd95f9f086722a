//! Searches: the index finds keys, the store gives the rows behind them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use souk_chassis::status::{FieldPath, Violations};
use souk_chassis::telemetry;
use souk_index::{Cancellation, Highlighter, Object, SearchRequest, SearchResult, Searcher, SortValue};
use souk_proto::search::v1 as pb;
use souk_storage::limits::MAX_MULTI_GET_ROWS;
use souk_storage::{PrimaryKey, Snapshot};
use tracing::{Instrument as _, Span, info_span};

use super::{Collection, MIN_SEQUENCE};
use crate::deadline::Wait;
use crate::error::{EngineError, Result};
use crate::key;
use crate::resource::{Resource, Stored};
use crate::scope::Scope;
use crate::search::{FoundHit, NearPage, NearbyRequest, SearchPage};
use crate::search_wire::{self, Steps, WireSearch, micros};
use crate::stored::signed;
use crate::views::{self, View, ViewToken};

/// What the index found, and the last write that it sees.
pub(super) struct Answer {
    pub(super) result: SearchResult,
    /// What was searched.
    searcher: Searcher,
    pub(super) sequence: u64,
    /// Time until the view included what was asked for.
    waited: Duration,
    /// Time of the search itself.
    searched: Duration,
}

impl<R: Resource> Collection<R> {
    /// Finds resources. `path` is where the search stands in the request, usually `search`. `None` finds everything.
    ///
    /// Hits show the resource as it is now: one that was deleted after the index saw it is left out, one that was
    /// changed is shown changed. In a view that is kept for several pages, now is when the view was taken.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] with every violation, [`EngineError::PageTokenInvalid`],
    /// [`EngineError::IndexBuilding`], [`EngineError::TooBusy`], [`EngineError::DeadlineExceeded`],
    /// [`EngineError::ViewExpired`], [`EngineError::TooManyViews`], [`EngineError::SequenceAhead`].
    pub async fn search(&self, search: Option<pb::Search>, path: &str) -> Result<SearchPage<R>> {
        let mut search = search_wire::read(search.unwrap_or_default(), path, &self.open.served().schema)?;
        let kept = self.kept_view(&mut search, path)?;
        let sort = search.request.sort.clone();
        let place = |error| search_wire::index_error(error, path);
        let highlighter = search
            .highlight
            .map(|highlight| Highlighter::new(&self.open.served().schema, &search.request.query, highlight))
            .transpose()
            .map_err(place)?;
        let view = kept.as_ref().map(|(_, view)| view);
        let answer = self
            .find(search.request, search.min_sequence, view, place)
            .await?;
        let began = Instant::now();
        let full = matches!(search.hits, pb::HitsMode::Unspecified | pb::HitsMode::Full);
        // Whoever may not meet all rows isn't told the ids of others' either.
        let needed = full || self.scope()?.is_limited();
        let shows = !answer.result.hits.is_empty() && (needed || highlighter.is_some());
        let keeps = search.keep_view.is_some() && answer.result.next_page_token.is_some();
        let snapshot = match &kept {
            Some((_, view)) => Some(view.rows.clone()),
            None if shows || keeps => Some(self.snapshot(signed(answer.sequence)).await?),
            None => None,
        };
        let rows = match snapshot.as_ref().filter(|_| shows) {
            Some(snapshot) => self.read(snapshot, &keys(&answer.result)?).await?,
            None => Vec::new(),
        };
        let mut highlights = match highlighter {
            Some(highlighter) => self.highlights(highlighter, &rows, place).await?,
            None => Vec::new(),
        }
        .into_iter();
        let read = began.elapsed();
        let mut hits = Vec::with_capacity(answer.result.hits.len());
        let mut rows = rows.into_iter();
        for hit in &answer.result.hits {
            let row = rows.next().flatten();
            let highlights = highlights.next().unwrap_or_default();
            if needed && row.is_none() {
                // Deleted since the index saw it, or another's.
                continue;
            }
            let resource = row.filter(|_| full);
            let id = id_of::<R>(&hit.key)?;
            hits.push(FoundHit {
                resource,
                score: hit.score.map(f64::from),
                sort_values: search_wire::sort_values(&hit.sort_values, &sort, &id),
                id,
                highlights,
                inner_hits: search_wire::inner_hits(&hit.inner_hits, &search.inner_sorts),
            });
        }
        let next_page_token = self.next_page(&answer, kept, search.keep_view.zip(snapshot))?;
        Ok(SearchPage {
            hits,
            next_page_token,
            total: answer.result.total.map(search_wire::total),
            aggregations: search_wire::aggregations(answer.result.aggregations, &id_of::<R>)?,
            sequence: signed(answer.sequence),
            profile: answer.result.profile.as_ref().map(|profile| {
                let steps = Steps {
                    waited: answer.waited,
                    searched: answer.searched,
                    fetched: read,
                };
                search_wire::profile(profile, steps)
            }),
        })
    }

    /// Finds the resources nearest to a point, nearest first, each with its distance.
    ///
    /// # Errors
    /// As [`Collection::search`].
    pub async fn nearby(&self, request: NearbyRequest<'_>) -> Result<NearPage<R>> {
        let search = search_wire::nearby(request, &self.open.served().schema)?;
        let answer = self
            .find(
                search.request,
                search.min_sequence,
                None,
                search_wire::nearby_error,
            )
            .await?;
        let keys = keys(&answer.result)?;
        let resources = self.hydrate(&keys, answer.sequence).await?;
        let distances = answer
            .result
            .hits
            .iter()
            .map(|hit| match hit.sort_values.first() {
                Some(SortValue::Double(meters)) => Ok(*meters),
                _ => Err(EngineError::Defect(
                    "a search by distance answered without distances",
                )),
            });
        let mut hits = Vec::with_capacity(keys.len());
        for (stored, distance) in resources.into_iter().zip(distances) {
            let distance = distance?;
            hits.extend(stored.map(|stored| (stored, distance)));
        }
        Ok(NearPage {
            hits,
            next_page_token: answer.result.next_page_token.unwrap_or_default(),
            sequence: signed(answer.sequence),
        })
    }

    /// The view that the token of a search is for, with its number: the index's own token is left in its place.
    fn kept_view(&self, search: &mut WireSearch, path: &str) -> Result<Option<(u64, View)>> {
        let scope = self.scope()?;
        let fingerprint = scope.bind(views::fingerprint(R::TABLE));
        let token = search.request.after.as_deref();
        let Some(token) = token.and_then(|token| ViewToken::open(fingerprint, token)) else {
            return Ok(None);
        };
        let view = views::kept(&self.inner.views, token.number, search.keep_view)?;
        if view.sequence < scope.seeing(&self.open.handovers) {
            // It has rows that are others' by now.
            return Err(EngineError::ViewExpired);
        }
        if search.min_sequence > view.sequence {
            let message = format!(
                "is {}, but the view of page_token ends at {}; start again without page_token",
                search.min_sequence, view.sequence
            );
            let mut violations = Violations::new();
            let path = FieldPath::root(path).field("min_sequence");
            violations.push(path, "CONFLICTING_FIELDS", message);
            return Err(EngineError::Invalid(violations));
        }
        search.request.after = Some(token.inner);
        Ok(Some((token.number, view)))
    }

    /// The token of the next page. `keep` is for how long to keep a view that isn't kept yet, and its rows.
    fn next_page(
        &self,
        answer: &Answer,
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
                    searcher: answer.searcher.clone(),
                    sequence: answer.sequence,
                    rows,
                };
                views::keep(views, view, keep)?
            }
            (None, None) => return Ok(inner),
        };
        let fingerprint = self.scope()?.bind(views::fingerprint(R::TABLE));
        Ok(ViewToken { number, inner }.seal(fingerprint))
    }

    /// Searches what the call may meet of the index, or of a view that is kept of it; `place` puts an error of the index
    /// under the paths of the request.
    pub(super) async fn find(
        &self,
        request: SearchRequest,
        min_sequence: u64,
        view: Option<&View>,
        place: impl Fn(souk_index::Error) -> EngineError,
    ) -> Result<Answer> {
        let span = telemetry::recorded(|| {
            info_span!(
                "index.search",
                otel.kind = "internal",
                db.system.name = "souk",
                db.operation.name = "search",
                db.collection.name = R::TABLE,
                souk.min_sequence = min_sequence,
                souk.sequence = tracing::field::Empty,
                souk.hits = tracing::field::Empty,
                souk.wait_micros = tracing::field::Empty,
            )
        });
        async {
            self.check_sequence(MIN_SEQUENCE, min_sequence).await?;
            let (scope, request) = self.scoped_search(request)?;
            let wait = Wait::of_call();
            let began = Instant::now();
            let (searcher, sequence) = match view {
                Some(view) => (view.searcher.clone(), view.sequence),
                None => {
                    let min_sequence = min_sequence.max(scope.seeing(&self.open.handovers));
                    self.open.index.view(min_sequence, wait).await?
                }
            };
            let waited = began.elapsed();
            let span = Span::current();
            span.record("souk.sequence", sequence);
            span.record("souk.wait_micros", micros(waited));
            let result = self
                .inner
                .searches
                .search(searcher.clone(), request, wait)
                .await?
                .map_err(|error| {
                    if let (souk_index::Error::Corrupt { detail, .. }, None) = (&error, view) {
                        self.open.index.condemn(searcher.opening(), detail);
                    }
                    place(self.explained(&scope, error))
                })?;
            span.record("souk.hits", result.hits.len());
            Ok(Answer {
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

    /// An error of the index as one of what was asked for. How far a new index is counts the rows of all: those who may
    /// not meet them all aren't told.
    fn explained(&self, scope: &Scope, error: souk_index::Error) -> souk_index::Error {
        match scope.is_limited() {
            true => scope.unrestricted(error),
            false => self.open.explained(error),
        }
    }

    /// What matched in each of some rows.
    async fn highlights(
        &self,
        highlighter: Highlighter,
        rows: &[Option<Stored<R>>],
        place: impl Fn(souk_index::Error) -> EngineError,
    ) -> Result<Vec<BTreeMap<String, pb::HighlightFragments>>> {
        let document = |row: &Option<Stored<R>>| {
            let mut document = Object::new();
            if let Some(stored) = row {
                stored.resource.to_document(&mut document);
            }
            document
        };
        let documents: Vec<Object> = rows.iter().map(document).collect();
        let mark = move |cancellation: &Cancellation| {
            let fragments = |document| highlighter.fragments(document, cancellation);
            documents
                .iter()
                .map(|document| fragments(document).map(search_wire::fragments))
                .collect::<std::result::Result<_, _>>()
        };
        let marked = self.inner.searches.run(Wait::of_call(), mark).await?;
        marked.map_err(place)
    }

    /// The resources behind some keys, as they are at `sequence` or later.
    pub(super) async fn hydrate(&self, keys: &[PrimaryKey], sequence: u64) -> Result<Vec<Option<Stored<R>>>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let snapshot = self.snapshot(signed(sequence)).await?;
        let mut resources = Vec::with_capacity(keys.len());
        for part in keys.chunks(MAX_MULTI_GET_ROWS) {
            resources.append(&mut self.read(&snapshot, part).await?);
        }
        Ok(resources)
    }
}

pub(super) fn keys(result: &SearchResult) -> Result<Vec<PrimaryKey>> {
    result.hits.iter().map(|hit| primary_key(&hit.key)).collect()
}

pub(super) fn primary_key(document_key: &[u8]) -> Result<PrimaryKey> {
    key::from_document_key(document_key).ok_or(EngineError::Defect("the index holds a key that isn't one"))
}

/// The id of the resource behind a document.
pub(super) fn id_of<R: Resource>(document_key: &[u8]) -> Result<String> {
    if let Some(id) = key::hashed_document_id(document_key) {
        return Ok(id.to_owned());
    }
    Ok(R::id_of(&primary_key(document_key)?)?)
}

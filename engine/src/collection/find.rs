//! Searches: the index finds keys, the store gives the rows behind them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use souk_index::{Cancellation, Highlighter, Object, SearchRequest, SearchResult, SortValue};
use souk_proto::search::v1 as pb;
use souk_storage::PrimaryKey;
use tracing::{Instrument as _, Span, info_span};

use super::Collection;
use crate::deadline::Wait;
use crate::error::{EngineError, Result};
use crate::key;
use crate::resource::{Resource, Stored};
use crate::search::{FoundHit, NearPage, NearbyRequest, SearchPage};
use crate::search_wire;
use crate::stored::signed;

/// What the index found, and the last write that it sees.
pub(super) struct Answer {
    pub(super) result: SearchResult,
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
    /// changed is shown changed.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] with every violation, [`EngineError::Unsupported`], [`EngineError::PageTokenInvalid`],
    /// [`EngineError::IndexBuilding`], [`EngineError::TooBusy`], [`EngineError::DeadlineExceeded`].
    pub async fn search(&self, search: Option<pb::Search>, path: &str) -> Result<SearchPage<R>> {
        let search = search_wire::read(search.unwrap_or_default(), path, &self.open.schema)?;
        let sort = search.request.sort.clone();
        let place = |error| search_wire::index_error(error, path);
        let highlighter = search
            .highlight
            .map(|highlight| Highlighter::new(&self.open.schema, &search.request.query, highlight))
            .transpose()
            .map_err(place)?;
        let answer = self.find(search.request, search.min_sequence, place).await?;
        let keys = keys(&answer.result)?;
        let began = Instant::now();
        let full = matches!(search.hits, pb::HitsMode::Unspecified | pb::HitsMode::Full);
        let rows = if full || highlighter.is_some() {
            self.hydrate(&keys, answer.sequence).await?
        } else {
            Vec::new()
        };
        let mut highlights = match highlighter {
            Some(highlighter) => self.highlights(highlighter, &rows, place).await?,
            None => Vec::new(),
        }
        .into_iter();
        let read = began.elapsed();
        let mut hits = Vec::with_capacity(keys.len());
        let mut rows = rows.into_iter();
        for (hit, key) in answer.result.hits.iter().zip(&keys) {
            let resource = rows.next().flatten().filter(|_| full);
            let highlights = highlights.next().unwrap_or_default();
            if full && resource.is_none() {
                // Deleted since the index saw it.
                continue;
            }
            let id = R::id_of(key)?;
            hits.push(FoundHit {
                resource,
                score: hit.score.map(f64::from),
                sort_values: search_wire::sort_values(&hit.sort_values, &sort, &id),
                id,
                highlights,
                inner_hits: Default::default(),
            });
        }
        Ok(SearchPage {
            hits,
            next_page_token: answer.result.next_page_token.unwrap_or_default(),
            total: answer.result.total.map(search_wire::total),
            aggregations: search_wire::aggregations(answer.result.aggregations),
            sequence: signed(answer.sequence),
            profile: search.profile.then(|| pb::Profile {
                wait_micros: micros(answer.waited),
                search_micros: micros(answer.searched),
                fetch_micros: micros(read),
                ..pb::Profile::default()
            }),
        })
    }

    /// Finds the resources nearest to a point, nearest first, each with its distance.
    ///
    /// # Errors
    /// As [`Collection::search`].
    pub async fn nearby(&self, request: NearbyRequest<'_>) -> Result<NearPage<R>> {
        let search = search_wire::nearby(request, &self.open.schema)?;
        let answer = self
            .find(search.request, search.min_sequence, search_wire::nearby_error)
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

    /// Searches the index; `place` puts an error of the index under the paths of the request.
    pub(super) async fn find(
        &self,
        request: SearchRequest,
        min_sequence: u64,
        place: impl Fn(souk_index::Error) -> EngineError,
    ) -> Result<Answer> {
        let span = info_span!(
            "index.search",
            otel.kind = "internal",
            db.system.name = "souk",
            db.operation.name = "search",
            db.collection.name = R::TABLE,
            souk.min_sequence = min_sequence,
            souk.sequence = tracing::field::Empty,
            souk.hits = tracing::field::Empty,
            souk.wait_micros = tracing::field::Empty,
        );
        async {
            let wait = Wait::of_call();
            let began = Instant::now();
            let (view, sequence) = self.open.index.view(min_sequence, wait).await?;
            let waited = began.elapsed();
            let span = Span::current();
            span.record("souk.sequence", sequence);
            span.record("souk.wait_micros", micros(waited));
            let result = self
                .inner
                .searches
                .search(view, request, wait)
                .await?
                .map_err(place)?;
            span.record("souk.hits", result.hits.len());
            Ok(Answer {
                result,
                sequence,
                waited,
                searched: began.elapsed().saturating_sub(waited),
            })
        }
        .instrument(span)
        .await
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
    async fn hydrate(&self, keys: &[PrimaryKey], sequence: u64) -> Result<Vec<Option<Stored<R>>>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let snapshot = self.snapshot(signed(sequence)).await?;
        self.read(&snapshot, keys).await
    }
}

pub(super) fn keys(result: &SearchResult) -> Result<Vec<PrimaryKey>> {
    let keys = result.hits.iter().map(|hit| key::from_document_key(&hit.key));
    keys.collect::<Option<_>>()
        .ok_or(EngineError::Defect("the index holds a key that isn't one"))
}

/// Whole microseconds, as spans and profiles have them.
fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

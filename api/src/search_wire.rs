//! The search wire: `souk.search.v1.Search` as the index takes it, and what the index answers as messages.
//!
//! Reading notes every violation with its path and goes on, so that a client learns of all mistakes that need no look
//! at the fields' types at once; the index adds its own, which [`index_error`] puts under the same paths.
//!
//! | module | what it reads or writes |
//! |---|---|
//! | `reader` | what has been found wrong so far, and the bounds of a query tree |
//! | `query`, `text`, `geo` | the query tree, its clauses on texts and on points |
//! | `function_score`, `minimum` | scores by functions, how many of several clauses have to match |
//! | `sort` | the order |
//! | `highlight` | what to mark in hits, and the marked fragments |
//! | `aggregation`, `grouping`, `figures` | aggregations, and their answers |
//! | `inner_hits` | which nested objects a hit shows |
//! | `nearby` | the search behind `NearbyXxxRequest` |
//! | `clusters` | the search behind `ClusterXxxRequest`, and its answer |
//! | `suggest` | the searches behind `SuggestXxxRequest` |
//! | `profile` | how the search ran |
//! | `result` | sort values and totals |

use std::time::Duration;

use souk_chassis::status::FieldPath;
use souk_engine::views::VIEW_KEEP_MAX;
use souk_index::limits::{MAX_SKIP, MAX_SORTS};
use souk_index::{Error as IndexError, Highlight, Query, Schema, SearchRequest, TotalRequest};
use souk_proto::search::v1::{self as pb, total_request};

use crate::error::{Error, rerooted};
use crate::wire::{SEARCH_SIZE_DEFAULT, SEARCH_SIZE_MAX, duration, min_sequence, page_size};

mod aggregation;
mod clusters;
mod figures;
mod function_score;
mod geo;
mod grouping;
mod highlight;
mod inner_hits;
mod minimum;
mod nearby;
mod profile;
mod query;
mod reader;
mod result;
mod sort;
mod suggest;
mod text;

pub(crate) use clusters::{cluster_error, clusters, found_clusters};
pub(crate) use figures::aggregations;
pub(crate) use highlight::fragments;
pub(crate) use inner_hits::{InnerSorts, inner_hits};
pub(crate) use nearby::{nearby, nearby_error};
pub(crate) use profile::profile;
pub(crate) use result::{sort_values, total};
pub(crate) use suggest::{WireSuggest, suggest, suggest_error};

use reader::Reader;

/// A search as it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WireSearch {
    /// What the index is asked.
    pub(crate) request: SearchRequest,
    /// The write that the search has to see; 0 is any.
    pub(crate) min_sequence: u64,
    /// What to return of each hit; never unspecified.
    pub(crate) hits: pb::HitsMode,
    /// What to mark in hits.
    pub(crate) highlight: Option<Highlight>,
    /// How long to keep what the search sees for the pages that follow.
    pub(crate) keep_view: Option<Duration>,
    /// The order of each list of inner hits.
    pub(crate) inner_sorts: InnerSorts,
}

/// Reads a search; `path` is where it stands in its request.
///
/// # Errors
/// [`Error::InvalidQuery`] or [`Error::Invalid`] with all violations.
pub(crate) fn read(search: pb::Search, path: &str, schema: &Schema) -> Result<WireSearch, Error> {
    let at = FieldPath::root(path);
    let mut reader = Reader::new(schema);
    let highlight = search.highlight.map_or(Some(None), |highlight| {
        reader.highlight(highlight, &at.field("highlight")).map(Some)
    });
    let query = search.query.map_or(Some(Query::MatchAll), |query| {
        reader.tree(&query, &at.field("query"))
    });
    let sort = orders(&search.sort, &at.field("sort"), &mut reader);
    let aggregations = reader.aggregations(&search.aggregations, &at.field("aggregations"), 1);
    reader.end_of_query();
    let violations = &mut reader.violations;
    let size = page_size(
        search.page_size,
        SEARCH_SIZE_DEFAULT,
        SEARCH_SIZE_MAX,
        at.field("page_size"),
        violations,
    );
    let skip = skip(search.skip, &search.page_token, &at.field("skip"), &mut reader);
    let total = counted(search.total.as_ref(), &at.field("total"), &mut reader);
    let hits = reader
        .enumeration(search.hits_mode, &at.field("hits_mode"))
        .map(|mode| match mode {
            pb::HitsMode::Unspecified => pb::HitsMode::Full,
            mode @ (pb::HitsMode::Full | pb::HitsMode::Keys | pb::HitsMode::None) => mode,
        });
    let min_sequence = min_sequence(
        search.min_sequence,
        at.field("min_sequence"),
        &mut reader.violations,
    );
    let keep_view = kept(search.keep_view.as_ref(), &at.field("keep_view"), &mut reader);
    let collapse = collapsed(search.collapse.as_ref(), &at.field("collapse"), &mut reader);
    let inner_sorts = std::mem::take(&mut reader.inner_sorts);
    let read = query.zip(sort).zip(hits).zip(aggregations).zip(highlight);
    let read = read.map(|((((query, sort), hits), aggregations), highlight)| WireSearch {
        request: SearchRequest {
            query,
            sort,
            page_size: if hits == pb::HitsMode::None { 0 } else { size },
            after: Some(search.page_token).filter(|token| !token.is_empty()),
            skip,
            total,
            aggregations,
            collapse,
            profile: search.profile,
        },
        min_sequence,
        hits,
        highlight,
        keep_view,
        inner_sorts,
    });
    reader.finish(read)
}

/// An error of the index about the search that stands at `path`, its paths as the client knows them.
pub(crate) fn index_error(error: IndexError, path: &str) -> Error {
    rerooted(error, |inside| FieldPath::root(path).field(inside).to_string())
}

fn kept(keep: Option<&prost_types::Duration>, at: &FieldPath, reader: &mut Reader<'_>) -> Option<Duration> {
    let nanos = duration(keep?, at.clone(), &mut reader.violations)?;
    let keep = Duration::from_nanos(u64::try_from(nanos).unwrap_or_default());
    if keep.is_zero() || keep > VIEW_KEEP_MAX {
        let message = format!(
            "is {} s, must be above 0 and at most {} s; leave it out to keep nothing",
            keep.as_secs_f64(),
            VIEW_KEEP_MAX.as_secs()
        );
        reader.violations.push(at, "OUT_OF_RANGE", message);
        return None;
    }
    Some(keep)
}

/// The field that hits are collapsed by. Its type is the index's to check.
fn collapsed(collapse: Option<&pb::Collapse>, at: &FieldPath, reader: &mut Reader<'_>) -> Option<String> {
    reader.name(&collapse?.field, at, "field")
}

fn orders(sorts: &[pb::Sort], at: &FieldPath, reader: &mut Reader<'_>) -> Option<Vec<souk_index::Sort>> {
    if sorts.len() > MAX_SORTS {
        reader.limit(at.clone(), "MAX_SORTS", MAX_SORTS, sorts.len());
        return None;
    }
    let read: Vec<_> = sorts
        .iter()
        .enumerate()
        .map(|(place, sort)| reader.sort(sort, &at.index(place)))
        .collect();
    read.into_iter().collect()
}

fn skip(skip: i32, page_token: &str, at: &FieldPath, reader: &mut Reader<'_>) -> usize {
    let Ok(count) = usize::try_from(skip) else {
        let message = format!("is {skip}, must lie between 0 and {MAX_SKIP}");
        reader.violations.push(at, "OUT_OF_RANGE", message);
        return 0;
    };
    if count > MAX_SKIP {
        reader.limit(at.clone(), "MAX_SKIP", MAX_SKIP, count);
    } else if count > 0 && !page_token.is_empty() {
        reader.violations.push(
            at,
            "CONFLICTING_FIELDS",
            "can't be combined with page_token; a token continues where its page ended",
        );
    }
    count
}

fn counted(total: Option<&pb::TotalRequest>, at: &FieldPath, reader: &mut Reader<'_>) -> TotalRequest {
    use total_request::Kind;

    match total.and_then(|total| total.kind) {
        None | Some(Kind::Exact(false)) => TotalRequest::None,
        Some(Kind::Exact(true)) => TotalRequest::Exact,
        Some(Kind::AtLeast(bound)) => {
            let bound = u64::try_from(bound).ok().filter(|bound| *bound > 0);
            if bound.is_none() {
                reader.violations.push(
                    at.field("at_least"),
                    "OUT_OF_RANGE",
                    "must be at least 1; leave `total` out to count nothing",
                );
            }
            bound.map_or(TotalRequest::None, TotalRequest::AtLeast)
        }
    }
}

#[cfg(test)]
mod tests;

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
use souk_index::limits::{MAX_GROUPINGS, MAX_SKIP, MAX_SORTS};
use souk_index::{Error as IndexError, Highlight, Query, Schema, SearchRequest, TotalRequest};
use souk_proto::search::v1::{self as pb, total_request};

use crate::error::{Error, rerooted};
use crate::wire::{SEARCH_SIZE_DEFAULT, SEARCH_SIZE_MAX, broken, duration, page_size, unsigned};

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

use reader::{Reader, enumeration, name};

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

/// The page tokens of a search: that of its hits, and those of its groups. Composites stand at the top alone.
pub(crate) fn page_tokens(search: &pb::Search) -> impl Iterator<Item = &str> {
    let of_groups = search
        .aggregations
        .values()
        .filter_map(|asked| match &asked.kind {
            Some(pb::aggregation::Kind::Composite(composite)) => Some(composite.page_token.as_str()),
            _ => None,
        });
    // More groupings are refused when they are read: nobody has as many tokens looked at as a message holds.
    let of_groups = of_groups.take(MAX_GROUPINGS);
    let tokens = [search.page_token.as_str()].into_iter().chain(of_groups);
    tokens.filter(|token| !token.is_empty())
}

/// Reads a search; `path` is where it stands in its request.
///
/// # Errors
/// [`Error::InvalidQuery`] or [`Error::Invalid`] with all violations.
pub(crate) fn read(search: pb::Search, path: &str, schema: &Schema) -> Result<WireSearch, Error> {
    let at = FieldPath::root(path);
    let mut reader = Reader::new(schema, broken(&search, &at), &at);
    let highlight = search
        .highlight
        .map_or(Some(None), |highlight| Reader::highlight(highlight).map(Some));
    let query = search.query.map_or(Some(Query::MatchAll), |query| {
        reader.tree(&query, &at.field("query"))
    });
    let sort = sorts(&search.sort, &at.field("sort"), &mut reader);
    let aggregations = reader.aggregations(&search.aggregations, &at.field("aggregations"), 1);
    reader.end_of_query();
    let size = page_size(search.page_size, SEARCH_SIZE_DEFAULT, SEARCH_SIZE_MAX);
    let skip = skip(search.skip, &search.page_token, &at.field("skip"), &mut reader);
    let total = wanted_total(search.total.as_ref());
    let hits = enumeration(search.hits_mode).map(|mode| match mode {
        pb::HitsMode::Unspecified => pb::HitsMode::Full,
        mode @ (pb::HitsMode::Full | pb::HitsMode::Keys | pb::HitsMode::None) => mode,
    });
    let keep_view = search.keep_view.as_ref().and_then(duration);
    let keep_view = keep_view.map(|nanos| Duration::from_nanos(unsigned(nanos)));
    // The type of its field is the index's to check.
    let collapse = search.collapse.and_then(|collapse| name(&collapse.field));
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
        min_sequence: unsigned(search.min_sequence),
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

fn sorts(sorts: &[pb::Sort], at: &FieldPath, reader: &mut Reader<'_>) -> Option<Vec<souk_index::Sort>> {
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
    let count = usize::try_from(skip).unwrap_or_default();
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

fn wanted_total(total: Option<&pb::TotalRequest>) -> TotalRequest {
    use total_request::Kind;

    match total.and_then(|total| total.kind) {
        None | Some(Kind::Exact(false)) => TotalRequest::None,
        Some(Kind::Exact(true)) => TotalRequest::Exact,
        Some(Kind::AtLeast(bound)) => TotalRequest::AtLeast(unsigned(bound)),
    }
}

#[cfg(test)]
mod tests;

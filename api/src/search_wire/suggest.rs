//! Suggestions: a search for names that begin with what was typed, and one for names that are spelled much like it.

use souk_chassis::status::{FieldPath, Violations};
use souk_index::analyze::folded;
use souk_index::{
    Error as IndexError, Fuzziness, Operator, Query, Schema, SearchRequest, Sort, TotalRequest,
};

use super::reader::Reader;
use crate::error::{Error, rerooted};
use crate::search::{SuggestFields, SuggestOrder, SuggestRequest};
use crate::wire::{page_size, point, unsigned};

/// Suggestions of an answer when the request doesn't say.
const SUGGESTIONS_DEFAULT: usize = 10;
/// Most suggestions of an answer.
const SUGGESTIONS_MAX: usize = 100;
/// Longest beginning of a name that is corrected, in characters.
const CORRECTED_CHARS_MAX: usize = 32;
/// Where the index finds the client's own query in the searches that are built here.
const QUERY_INSIDE: &str = "query.bool.filter[0]";

/// Suggestions as they were asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WireSuggest {
    /// The search for names that begin with what was typed.
    pub(crate) by_prefix: SearchRequest,
    /// The search for names that are spelled much like it: by score, then in the order of `by_prefix`.
    pub(crate) fuzzy: Option<SearchRequest>,
    /// Which sort value of a hit of `by_prefix` is the folded name; the next one is the name as it is written.
    pub(crate) name_at: usize,
    /// Whether the first sort value of `by_prefix` is a distance.
    pub(crate) by_distance: bool,
    pub(crate) size: usize,
    pub(crate) min_sequence: u64,
}

/// Reads a request for suggestions.
///
/// # Errors
/// Like [`super::read`], with the paths of `SuggestXxxRequest`.
pub(crate) fn suggest(
    request: SuggestRequest<'_>,
    fields: &SuggestFields<'_>,
    schema: &Schema,
    violations: Violations,
) -> Result<WireSuggest, Error> {
    let mut reader = Reader::new(schema, violations, &FieldPath::message());
    let query = match &request.query {
        None => Some(None),
        Some(query) => reader.tree(query, &FieldPath::root("query")).map(Some),
    };
    reader.end_of_query();
    let center = match &request.center {
        None => Some(None),
        Some(center) => point(center).map(Some),
    };
    let read = query.zip(center).map(|(query, center)| {
        let first = match (center, fields.order) {
            (Some(center), SuggestOrder::HighestOrNearest { position, .. }) => Some(Sort::GeoDistance {
                field: position.to_owned(),
                points: vec![center],
                descending: false,
            }),
            (None, SuggestOrder::HighestOrNearest { highest, .. }) => Some(Sort::field(highest, true)),
            (_, SuggestOrder::Alphabetical) => None,
        };
        let by_distance = matches!(first, Some(Sort::GeoDistance { .. }));
        let names = [fields.folded, fields.written].map(|field| Sort::field(field, false));
        let prefix = Query::prefix(fields.folded, folded(request.prefix));
        let order: Vec<Sort> = first.into_iter().chain(names).collect();
        let by_prefix = search(query.clone(), prefix, order.clone());
        let fuzzy = (request.prefix.chars().count() <= CORRECTED_CHARS_MAX).then(|| {
            let words = Query::MatchFuzzy {
                field: fields.words.to_owned(),
                text: request.prefix.to_owned(),
                operator: Operator::And,
                minimum_should_match: None,
                fuzziness: Fuzziness::Auto,
                prefix_length: 0,
                weight: 1.0,
            };
            let best = Sort::Score { ascending: false };
            search(query, words, [best].into_iter().chain(order).collect())
        });
        WireSuggest {
            name_at: by_prefix.sort.len() - 2,
            by_prefix,
            fuzzy,
            by_distance,
            size: page_size(request.size, SUGGESTIONS_DEFAULT, SUGGESTIONS_MAX),
            min_sequence: unsigned(request.min_sequence),
        }
    });
    reader.finish(read)
}

fn search(query: Option<Query>, names: Query, sort: Vec<Sort>) -> SearchRequest {
    SearchRequest {
        query: Query::Bool {
            must: vec![names],
            filter: query.into_iter().collect(),
            should: Vec::new(),
            must_not: Vec::new(),
            minimum_should_match: None,
        },
        sort,
        page_size: 0,
        after: None,
        skip: 0,
        total: TotalRequest::None,
        aggregations: Vec::new(),
        collapse: None,
        profile: false,
    }
}

/// An error of the index about a search of [`suggest`], its paths as the client knows them.
pub(crate) fn suggest_error(error: IndexError) -> Error {
    rerooted(error, |inside| match inside.strip_prefix(QUERY_INSIDE) {
        Some(rest) => format!("query{rest}"),
        None => "prefix".to_owned(),
    })
}

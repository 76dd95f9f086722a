//! What is near a point: a search by distance.

use souk_chassis::status::FieldPath;
use souk_index::limits::MAX_DISTANCE_METERS;
use souk_index::{Error as IndexError, Query, Schema, SearchRequest, Sort, TotalRequest};
use souk_proto::search::v1 as pb;

use super::WireSearch;
use super::reader::Reader;
use crate::error::{Error, rerooted};
use crate::search::NearbyRequest;
use crate::wire::{SEARCH_SIZE_DEFAULT, SEARCH_SIZE_MAX, min_sequence, page_size, point, required};

/// Where the index finds the client's own query in the search that [`nearby`] builds.
const QUERY_INSIDE: &str = "query.bool.filter[1]";
/// Where the index finds the circle.
const CIRCLE_INSIDE: &str = "query.bool.filter[0].geo_distance";

/// The search for what is near; each hit's only sort value is its distance in metres.
///
/// # Errors
/// Like [`super::read`], with the paths of `NearbyXxxRequest`.
pub(crate) fn nearby(request: NearbyRequest<'_>, schema: &Schema) -> Result<WireSearch, Error> {
    let mut reader = Reader::new(schema);
    let query = match &request.query {
        None => Some(None),
        Some(query) => reader.tree(query, &FieldPath::root("query")).map(Some),
    };
    reader.end_of_query();
    let violations = &mut reader.violations;
    let center = required(
        request.center.as_ref(),
        "center",
        violations,
        |center, path, violations| point(center, path, violations),
    );
    let distance = request.max_distance_meters;
    if let Some(meters) = distance.filter(|meters| !(*meters > 0.0 && *meters <= MAX_DISTANCE_METERS)) {
        let message = format!(
            "is {meters}, must be above 0 and at most {MAX_DISTANCE_METERS}; leave it out for no limit"
        );
        violations.push("max_distance_meters", "OUT_OF_RANGE", message);
    }
    let size = page_size(
        request.page_size,
        SEARCH_SIZE_DEFAULT,
        SEARCH_SIZE_MAX,
        "page_size",
        violations,
    );
    let min_sequence = min_sequence(request.min_sequence, "min_sequence", violations);
    let read = query.zip(center).map(|(query, center)| {
        let field = || request.field.to_owned();
        let near = distance.map_or_else(
            || Query::Exists { field: field() },
            |distance_meters| Query::GeoDistance {
                field: field(),
                center,
                distance_meters,
            },
        );
        let by_distance = Sort::GeoDistance {
            field: field(),
            points: vec![center],
            descending: false,
        };
        WireSearch {
            request: SearchRequest {
                query: Query::Bool {
                    must: Vec::new(),
                    filter: std::iter::once(near).chain(query).collect(),
                    should: Vec::new(),
                    must_not: Vec::new(),
                    minimum_should_match: None,
                },
                sort: vec![by_distance],
                page_size: size,
                after: Some(request.page_token.to_owned()).filter(|token| !token.is_empty()),
                skip: 0,
                total: TotalRequest::None,
                aggregations: Vec::new(),
                collapse: None,
                profile: false,
            },
            min_sequence,
            hits: pb::HitsMode::Full,
            highlight: None,
            keep_view: None,
            inner_sorts: std::mem::take(&mut reader.inner_sorts),
        }
    });
    reader.finish(read)
}

/// An error of the index about a search of [`nearby`], its paths as the client knows them.
pub(crate) fn nearby_error(error: IndexError) -> Error {
    rerooted(error, |inside| {
        if let Some(rest) = inside.strip_prefix(QUERY_INSIDE) {
            return format!("query{rest}");
        }
        match inside.strip_prefix(CIRCLE_INSIDE) {
            Some(".distance_meters") => "max_distance_meters".to_owned(),
            Some(rest) => rest.trim_start_matches('.').to_owned(),
            None => inside.to_owned(),
        }
    })
}

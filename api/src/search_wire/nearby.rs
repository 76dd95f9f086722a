//! What is near a point: a search by distance.

use souk_chassis::status::{FieldPath, Violations};
use souk_index::{Error as IndexError, Query, Schema, SearchRequest, Sort, TotalRequest};
use souk_proto::search::v1 as pb;

use super::WireSearch;
use super::reader::Reader;
use crate::error::{Error, rerooted};
use crate::search::NearbyRequest;
use crate::wire::{SEARCH_SIZE_DEFAULT, SEARCH_SIZE_MAX, page_size, point, unsigned};

/// Where the index finds the client's own query in the search that [`nearby`] builds.
const QUERY_INSIDE: &str = "query.bool.filter[1]";
/// Where the index finds the circle.
const CIRCLE_INSIDE: &str = "query.bool.filter[0].geo_distance";

/// The search for what is near; each hit's only sort value is its distance in metres.
///
/// # Errors
/// Like [`super::read`], with the paths of `NearbyXxxRequest`.
pub(crate) fn nearby(
    request: NearbyRequest<'_>,
    schema: &Schema,
    violations: Violations,
) -> Result<WireSearch, Error> {
    let mut reader = Reader::new(schema, violations, &FieldPath::message());
    let query = match &request.query {
        None => Some(None),
        Some(query) => reader.tree(query, &FieldPath::root("query")).map(Some),
    };
    reader.end_of_query();
    let center = request.center.as_ref().and_then(point);
    let distance = request.max_distance_meters;
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
                page_size: page_size(request.page_size, SEARCH_SIZE_DEFAULT, SEARCH_SIZE_MAX),
                after: Some(request.page_token.to_owned()).filter(|token| !token.is_empty()),
                skip: 0,
                total: TotalRequest::None,
                aggregations: Vec::new(),
                collapse: None,
                profile: false,
            },
            min_sequence: unsigned(request.min_sequence),
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

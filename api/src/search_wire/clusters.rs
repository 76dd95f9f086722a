//! Clusters on a map: a search that groups what a viewport shows by H3 cell.

use souk_chassis::status::{FieldPath, Violations};
use souk_engine::EngineError;
use souk_index::limits::{MAX_CELL_GROUPS, MAX_FIGURES};
use souk_index::{
    Aggregation, AggregationResult, Datum, Error as IndexError, GeoPoint, Query, Schema, SearchRequest, Sort,
    TotalRequest,
};
use souk_proto::r#type::v1 as wire;

use super::aggregation::figures;
use super::reader::Reader;
use super::sorts;
use crate::error::{Error, Result, rerooted};
use crate::search::{ClusterRequest, ClusterSize};
use crate::wire::{point, unsigned};

/// The finest H3 resolution.
const RESOLUTION_MAX: i32 = 15;
/// Pixels that a cluster is wide at a zoom level.
const CLUSTER_PIXELS: f64 = 60.0;
/// Pixels around the equator at zoom 0.
const TILE_PIXELS: f64 = 256.0;
/// Metres around the equator.
const EQUATOR_METERS: f64 = std::f64::consts::TAU * souk_index::geo::EARTH_RADIUS_METERS;
/// The mean width of a cell of resolution 0, between opposite sides; each finer one is less by the square root of 7.
const WIDEST_CELL_METERS: f64 = 2_219_200.0;

/// Figures over each cluster besides those that a client asks for: the best, and the middle.
const OWN_FIGURES: usize = 2;
/// Figures over each cluster that a client may ask for.
pub(crate) const MAX_CLUSTER_FIGURES: usize = MAX_FIGURES - OWN_FIGURES;
/// What the client's aggregations are called inside begins with this, which no other does.
const CLIENTS: char = '=';

/// Where the index finds what the client asked for in the search that [`clusters`] builds.
const CELLS_INSIDE: &str = "aggregations[\"clusters\"].geo_cell";
const CLIENTS_INSIDE: &str = "aggregations[\"clusters\"].geo_cell.aggregations[\"=";
const BEST_INSIDE: &str = "aggregations[\"clusters\"].geo_cell.aggregations[\"best_by\"].top_hits.sort";
const VIEWPORT_INSIDE: &str = "query.bool.filter[0].geo_bounding_box";
const QUERY_INSIDE: &str = "query.bool.must[0]";

/// Clusters as they were asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WireClusters {
    /// What the index is asked.
    pub(crate) request: SearchRequest,
    /// The write that the search has to see; 0 is any.
    pub(crate) min_sequence: u64,
    /// The H3 resolution of the cells.
    pub(crate) resolution: u8,
    /// The request's field that the resolution comes from.
    pub(crate) sized_by: &'static str,
}

/// The search that groups by cells.
///
/// # Errors
/// Like [`super::read`], with the paths of `ClusterXxxRequest`.
pub(crate) fn clusters(
    request: ClusterRequest<'_>,
    schema: &Schema,
    violations: Violations,
) -> Result<WireClusters> {
    let mut reader = Reader::new(schema, violations, &FieldPath::message());
    let query = match &request.query {
        None => Some(None),
        Some(query) => reader.tree(query, &FieldPath::root("query")).map(Some),
    };
    let best_by = sorts(&request.best_by, &FieldPath::root("best_by"), &mut reader);
    let aggregations = inside(&request, &mut reader);
    reader.end_of_query();
    let viewport = request.viewport.as_ref().and_then(corners);
    let sized = request.size.map(sized);
    let most = match usize::try_from(request.max_clusters) {
        Ok(0) | Err(_) => MAX_CELL_GROUPS,
        Ok(most) => most.min(MAX_CELL_GROUPS),
    };
    let read = query.zip(best_by).zip(aggregations).zip(viewport).zip(sized);
    let read = read.map(|((((query, best_by), clients), corners), (size, sized_by))| {
        let resolution = match size {
            ClusterSize::Zoom(zoom) => resolution_at(zoom, corners),
            ClusterSize::Resolution(resolution) => u8::try_from(resolution).unwrap_or_default(),
        };
        let best_by = if best_by.is_empty() {
            vec![Sort::field(request.best_field, true)]
        } else {
            best_by
        };
        let field = || request.field.to_owned();
        let best = Aggregation::TopHits {
            size: 1,
            sort: best_by,
        };
        let own = [
            ("best_by".to_owned(), best),
            ("center".to_owned(), Aggregation::GeoCentroid { field: field() }),
        ];
        let clients = clients
            .into_iter()
            .map(|(name, own)| (format!("{CLIENTS}{name}"), own));
        let cells = Aggregation::GeoCell {
            field: field(),
            resolution,
            size: most,
            aggregations: own.into_iter().chain(clients).collect(),
        };
        let viewport = Query::GeoBoundingBox {
            field: field(),
            top_left: corners.0,
            bottom_right: corners.1,
        };
        let query = Query::Bool {
            must: query.into_iter().collect(),
            filter: vec![viewport],
            should: Vec::new(),
            must_not: Vec::new(),
            minimum_should_match: None,
        };
        WireClusters {
            request: SearchRequest::new(query)
                .page_size(0)
                .total(TotalRequest::Exact)
                .aggregations(vec![("clusters".to_owned(), cells)]),
            min_sequence: unsigned(request.min_sequence),
            resolution,
            sized_by,
        }
    });
    reader.finish(read)
}

/// The client's aggregations over each cluster.
fn inside(request: &ClusterRequest<'_>, reader: &mut Reader<'_>) -> Option<Vec<(String, Aggregation)>> {
    let at = FieldPath::root("aggregations");
    let figures = figures(&request.aggregations);
    if figures > MAX_CLUSTER_FIGURES {
        reader.limit(at, "MAX_CLUSTER_FIGURES", MAX_CLUSTER_FIGURES, figures);
        return None;
    }
    // The clusters are the first level.
    reader.aggregations(&request.aggregations, &at, 2)
}

fn corners(viewport: &wire::GeoRectangle) -> Option<(GeoPoint, GeoPoint)> {
    let corner = |corner: Option<&_>| corner.and_then(point);
    corner(viewport.top_left.as_ref()).zip(corner(viewport.bottom_right.as_ref()))
}

/// How large clusters are, and the field that says so.
fn sized(size: ClusterSize) -> (ClusterSize, &'static str) {
    match size {
        ClusterSize::Zoom(_) => (size, "zoom"),
        ClusterSize::Resolution(_) => (size, "h3_resolution"),
    }
}

/// The H3 resolution whose cells come nearest to the width of a cluster, where the middle of the viewport is drawn: web
/// maps are larger away from the equator.
fn resolution_at(zoom: i32, (top_left, bottom_right): (GeoPoint, GeoPoint)) -> u8 {
    let middle = f64::midpoint(top_left.latitude(), bottom_right.latitude());
    let around = EQUATOR_METERS * middle.to_radians().cos();
    let meters = CLUSTER_PIXELS / TILE_PIXELS * around / 2f64.powi(zoom);
    let steps = (WIDEST_CELL_METERS / meters).ln() / 7f64.sqrt().ln();
    steps.round().clamp(0.0, f64::from(RESOLUTION_MAX)) as u8
}

/// One cluster that the index found.
pub(crate) struct WireCluster {
    /// The H3 cell.
    pub(crate) cell: String,
    /// How many resources there are in it.
    pub(crate) count: u64,
    /// The middle of their points.
    pub(crate) center: Option<GeoPoint>,
    /// The key of the best one's document.
    pub(crate) best: Vec<u8>,
    /// The answers to the client's aggregations.
    pub(crate) aggregations: Vec<(String, AggregationResult)>,
}

/// The clusters in the answer to a search of [`clusters`].
///
/// # Errors
/// [`EngineError::Defect`] when the answer isn't one to such a search.
pub(crate) fn found_clusters(results: Vec<(String, AggregationResult)>) -> Result<Vec<WireCluster>> {
    let found = match results.into_iter().next() {
        Some((_, AggregationResult::Groups { groups, .. })) => groups,
        _ => return Err(EngineError::Defect("clusters were found without cells").into()),
    };
    let cluster = |group: souk_index::Group| {
        let mut keys = group.keys.into_iter();
        let mut inside = group.aggregations.into_iter();
        let (
            Some(Some(Datum::String(cell))),
            Some((_, AggregationResult::TopHits(best))),
            Some((_, AggregationResult::Centroid { point, .. })),
        ) = (keys.next(), inside.next(), inside.next())
        else {
            return None;
        };
        let unnamed = |(name, result): (String, AggregationResult)| {
            let name = name.strip_prefix(CLIENTS)?.to_owned();
            Some((name, result))
        };
        Some(WireCluster {
            cell,
            count: group.count,
            center: point,
            best: best.into_iter().next()?.key,
            aggregations: inside.map(unnamed).collect::<Option<_>>()?,
        })
    };
    let clusters = found.into_iter().map(cluster).collect::<Option<_>>();
    clusters.ok_or_else(|| EngineError::Defect("a cluster was found without its parts").into())
}

/// An error of the index about a search of [`clusters`], its paths as the client knows them. `sized_by` is the field that
/// says how large clusters are.
pub(crate) fn cluster_error(error: IndexError, sized_by: &str) -> Error {
    let error = match error {
        IndexError::LimitExceeded {
            path,
            limit,
            max,
            actual,
            ..
        } if path == CELLS_INSIDE => IndexError::LimitExceeded {
            path,
            limit,
            max,
            actual,
            advice: "show a smaller part of the map, or larger clusters",
        },
        other => other,
    };
    rerooted(error, |inside| {
        if let Some(rest) = inside.strip_prefix(CLIENTS_INSIDE) {
            return format!("aggregations[\"{rest}");
        }
        let places = [
            (BEST_INSIDE, "best_by"),
            (CELLS_INSIDE, sized_by),
            (VIEWPORT_INSIDE, "viewport"),
            (QUERY_INSIDE, "query"),
        ];
        let outside = places
            .iter()
            .find_map(|(from, to)| inside.strip_prefix(from).map(|rest| format!("{to}{rest}")));
        outside.unwrap_or_else(|| inside.to_owned())
    })
}

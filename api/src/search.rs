//! Searches: what comes back.

use std::collections::BTreeMap;

use souk_engine::Stored;
use souk_proto::search::v1 as pb;
use souk_proto::r#type::v1::{GeoPoint, GeoRectangle};
use souk_storage::{PrimaryKey, Row};

/// A page of hits.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchPage<H> {
    /// The hits in order.
    pub hits: Vec<H>,
    /// Gives the next page; empty at the end.
    pub next_page_token: String,
    /// How many hits there are, if asked for.
    pub total: Option<pb::Total>,
    /// The aggregations that were asked for, by name.
    pub aggregations: BTreeMap<String, pb::AggregationResult>,
    /// The last write that the search sees.
    pub sequence: i64,
    /// How the search ran, if asked for.
    pub profile: Option<pb::Profile>,
}

/// One hit.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundHit<T> {
    /// The resource; `None` with `HITS_MODE_KEYS`.
    pub resource: Option<Stored<T>>,
    /// Its id.
    pub id: String,
    /// Its score; `None` when the order doesn't need one.
    pub score: Option<f64>,
    /// The values by which it was sorted, in the order of `sort`.
    pub sort_values: Vec<pb::SortValue>,
    /// The places that matched, by field.
    pub highlights: BTreeMap<String, pb::HighlightFragments>,
    /// The nested objects that matched, by path.
    pub inner_hits: BTreeMap<String, pb::InnerHitList>,
}

/// One row that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundRow {
    /// The row; `None` with `HITS_MODE_KEYS`.
    pub row: Option<Row>,
    /// Its key.
    pub key: PrimaryKey,
    /// Its score; `None` when the order doesn't need one.
    pub score: Option<f64>,
    /// The values by which it was sorted, in the order of `sort`.
    pub sort_values: Vec<pb::SortValue>,
    /// The places that matched, by field.
    pub highlights: BTreeMap<String, pb::HighlightFragments>,
    /// The nested objects that matched, by path.
    pub inner_hits: BTreeMap<String, pb::InnerHitList>,
}

/// What to find around a point; the fields are those of `NearbyXxxRequest`, whose paths errors name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NearbyRequest<'a> {
    /// The GEO_POINT field.
    pub field: &'a str,
    /// Where distances are measured from.
    pub center: Option<GeoPoint>,
    /// The greatest distance in metres; `None` is no limit.
    pub max_distance_meters: Option<f64>,
    /// What has to match besides; `None` is everything.
    pub query: Option<pb::Query>,
    /// How many; see [`crate::wire::SEARCH_SIZE_DEFAULT`] and [`crate::wire::SEARCH_SIZE_MAX`].
    pub page_size: i32,
    /// The token of the page before; empty for the first.
    pub page_token: &'a str,
    /// Wait until the search sees this write.
    pub min_sequence: i64,
}

/// What to suggest; the fields are those of `SuggestXxxRequest`, whose paths errors name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SuggestRequest<'a> {
    /// What was typed, 1 to 256 characters.
    pub prefix: &'a str,
    /// How many names; 0 is 10, at most 100.
    pub size: i32,
    /// What has to match besides; `None` is everything.
    pub query: Option<pb::Query>,
    /// Where the nearest are wanted from.
    pub center: Option<GeoPoint>,
    /// Wait until the search sees this write.
    pub min_sequence: i64,
}

/// The fields by which a table's names are suggested.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SuggestFields<'a> {
    /// The KEYWORD with the name as it is compared (see [`souk_index::analyze::folded`]).
    pub folded: &'a str,
    /// The KEYWORD with the name as it is written.
    pub written: &'a str,
    /// The TEXT with the name's words.
    pub words: &'a str,
    /// What comes first.
    pub order: SuggestOrder<'a>,
}

/// Which names are suggested first. Ties are alphabetical.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SuggestOrder<'a> {
    /// In the order of their characters: the shortest of those that begin with each other.
    Alphabetical,
    /// Those with the highest value, or, if the request has a centre, the nearest.
    HighestOrNearest {
        /// The field with the value.
        highest: &'a str,
        /// The GEO_POINT field.
        position: &'a str,
    },
}

/// One name.
#[derive(Clone, Debug, PartialEq)]
pub struct Suggestion {
    /// The name as it is written.
    pub name: String,
    /// The first resource of this name.
    pub id: String,
    /// How far that is from the centre, in metres, when the nearest were wanted.
    pub distance_meters: Option<f64>,
}

/// Names for what was typed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SuggestPage {
    /// The names, the best first.
    pub suggestions: Vec<Suggestion>,
    /// Whether no name begins with what was typed, so that these are spelled much like it.
    pub corrected: bool,
    /// The last write that the search sees.
    pub sequence: i64,
}

/// A page of what is near, nearest first.
#[derive(Clone, Debug, PartialEq)]
pub struct NearPage<T> {
    /// The resources, each with its distance in metres.
    pub hits: Vec<(Stored<T>, f64)>,
    /// Gives the next page; empty at the end.
    pub next_page_token: String,
    /// The last write that the search sees.
    pub sequence: i64,
}

/// What to group on a map; the fields are those of `ClusterXxxRequest`, whose paths errors name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterRequest<'a> {
    /// The GEO_POINT field, one point a resource.
    pub field: &'a str,
    /// The part of the Earth that the map shows.
    pub viewport: Option<GeoRectangle>,
    /// How large the clusters are.
    pub size: Option<ClusterSize>,
    /// What has to match besides; `None` is everything.
    pub query: Option<pb::Query>,
    /// Aggregations over each cluster: at most 8 figures and 5 groupings, in 2 levels.
    pub aggregations: BTreeMap<String, pb::Aggregation>,
    /// The order by which the best of a cluster is chosen; empty is by `best_field`, highest first.
    pub best_by: Vec<pb::Sort>,
    /// See `best_by`.
    pub best_field: &'a str,
    /// How many clusters; 0 and more than [`souk_index::limits::MAX_CELL_GROUPS`] are those.
    pub max_clusters: i32,
    /// Wait until the search sees this write.
    pub min_sequence: i64,
}

/// How large clusters are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterSize {
    /// A web map's zoom level, 0 to 22.
    Zoom(i32),
    /// The H3 resolution, 0 to 15.
    Resolution(i32),
}

/// The clusters of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterPage<T> {
    /// The clusters, fullest first.
    pub clusters: Vec<FoundCluster<T>>,
    /// The H3 resolution that was used.
    pub h3_resolution: i32,
    /// How many resources there are in the viewport.
    pub total: i64,
    /// The last write that the search sees.
    pub sequence: i64,
}

/// The resources in one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundCluster<T> {
    /// The H3 cell.
    pub cell: String,
    /// The middle of their points.
    pub center: Option<GeoPoint>,
    /// How many there are.
    pub count: i64,
    /// The best of them; `None` when it was deleted since the index saw it.
    pub best: Option<Stored<T>>,
    /// The aggregations over them, by name.
    pub aggregations: BTreeMap<String, pb::AggregationResult>,
}

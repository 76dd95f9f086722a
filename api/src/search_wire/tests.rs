//! Every kind of query and sort read, and every path under which a mistake is reported.

use std::ops::Bound;

use souk_chassis::status::{FieldPath, Violations};
use souk_engine::EngineError;
use souk_index::{
    Analyzer, ArrayMode, Encoder, Field, FragmentOrder, Fuzziness, GeoPoint, Highlight, Minimum, Missing,
    NestedSort, Operator, Query, QueryValue, Relation, Schema, ScoreMode, Sort, SortValue, TotalRequest,
};
use souk_proto::search::v1::{self as pb, field_sort, query::Kind, range_query, sort, total_request};
use souk_proto::r#type::v1::{self as wire, value};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use super::{
    WireSearch, cluster_error, clusters, found_clusters, index_error, nearby, nearby_error, read,
    sort_values, total,
};
use crate::error::Error;
use crate::search::{ClusterRequest, ClusterSize, NearbyRequest};
use crate::wire::broken;

mod aggregations;
mod answers;
mod cluster_requests;
mod hits;
mod mistakes;
mod orders;
mod places;
mod scoring;
mod values_and_clauses;

fn schema() -> Schema {
    Schema::new(vec![
        Field::keyword("type"),
        Field::text("name", Analyzer::single_word()),
        Field::long("price"),
        Field::double("rating"),
        Field::geo_point("position"),
        Field::nested("tags", vec![Field::keyword("tag"), Field::double("score")]),
        Field::attributes("attributes"),
    ])
    .expect("a schema")
}

fn value(kind: value::Kind) -> wire::Value {
    wire::Value { kind: Some(kind) }
}

fn text(text: &str) -> Option<wire::Value> {
    Some(value(value::Kind::StringValue(text.to_owned())))
}

fn query(kind: Kind) -> pb::Query {
    pb::Query { kind: Some(kind) }
}

fn term(field: &str, value: Option<wire::Value>) -> pb::Query {
    query(Kind::Term(pb::TermQuery {
        field: field.to_owned(),
        value,
        weight: None,
    }))
}

fn at(latitude: f64, longitude: f64) -> Option<wire::GeoPoint> {
    Some(wire::GeoPoint { latitude, longitude })
}

fn asked(kind: Kind) -> pb::Search {
    pb::Search {
        query: Some(query(kind)),
        ..pb::Search::default()
    }
}

fn sorted(kind: sort::Kind) -> pb::Search {
    pb::Search {
        sort: vec![pb::Sort { kind: Some(kind) }],
        ..pb::Search::default()
    }
}

fn read_ok(search: pb::Search) -> WireSearch {
    read(search, "search", &schema()).expect("a valid search")
}

fn read_query(kind: Kind) -> Query {
    read_ok(asked(kind)).request.query
}

/// The answer to a search, with its reason and the paths that it names.
fn refused(search: pb::Search) -> (Status, String, Vec<String>) {
    told(read(search, "search", &schema()).expect_err("an invalid search"))
}

fn told(error: Error) -> (Status, String, Vec<String>) {
    let status = Status::from(error);
    let details = status.get_error_details();
    let reason = details.error_info().expect("an ErrorInfo").reason.clone();
    let fields = details.bad_request().map(|bad| &bad.field_violations);
    let fields = fields
        .into_iter()
        .flatten()
        .map(|violation| violation.field.clone())
        .collect();
    (status, reason, fields)
}

#[track_caller]
fn refuses(search: pb::Search, reason: &str, paths: &[&str]) {
    let (status, found, fields) = refused(search);
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    assert_eq!(found, reason, "{status:?}");
    assert_eq!(fields, paths, "{status:?}");
}

fn nested_to(depth: usize) -> pb::Query {
    (1..depth).fold(term("type", text("tea")), |inner, _| {
        query(Kind::Bool(pb::BoolQuery {
            must: vec![inner],
            ..pb::BoolQuery::default()
        }))
    })
}

#[test]
fn an_empty_search_is_ten_of_everything() {
    let read = read_ok(pb::Search::default());
    assert_eq!(read.request.query, Query::MatchAll);
    assert_eq!(read.request.sort, []);
    assert_eq!(read.request.page_size, 10);
    assert_eq!(read.request.after, None);
    assert_eq!(read.request.total, TotalRequest::None);
    assert_eq!(
        (read.min_sequence, read.hits, read.request.profile),
        (0, pb::HitsMode::Full, false)
    );
}

#[test]
fn page_total_and_hits() {
    let read = read_ok(pb::Search {
        page_size: 5_000,
        page_token: "token".to_owned(),
        total: Some(pb::TotalRequest {
            kind: Some(total_request::Kind::AtLeast(7)),
        }),
        hits_mode: pb::HitsMode::Keys.into(),
        min_sequence: 9,
        profile: true,
        ..pb::Search::default()
    });
    assert_eq!(read.request.page_size, 1_000);
    assert_eq!(read.request.after.as_deref(), Some("token"));
    assert_eq!(read.request.total, TotalRequest::AtLeast(7));
    assert_eq!(
        (read.min_sequence, read.hits, read.request.profile),
        (9, pb::HitsMode::Keys, true)
    );
    let counted = read_ok(pb::Search {
        hits_mode: pb::HitsMode::None.into(),
        ..pb::Search::default()
    });
    assert_eq!(counted.request.page_size, 0);
}

//! Searches that ask for too much: each is refused by the limit that it names, before it costs anything, and the
//! process goes on.

use std::time::{Duration, Instant};

use souk_e2e::rejection::Rejection;
use souk_e2e::suite::{Layout, Suite};
use souk_proto::search::v1::{
    Aggregation, BoolQuery, ExistsQuery, GeoCellAggregation, GeoPolygonQuery, Query, Search,
    TermsAggregation, TermsQuery, WildcardQuery, aggregation, query,
};
use souk_proto::shop::v1::SearchShopsRequest;
use souk_proto::r#type::v1::{GeoPoint, Value, value};
use tonic::Code;
use tonic_types::StatusExt as _;

use crate::SOUK;

/// Time that a refusal may take, with the way there and back: a message of megabytes is sent and read.
const PATIENCE: Duration = Duration::from_secs(10);

fn of(kind: query::Kind) -> Search {
    Search {
        query: Some(Query { kind: Some(kind) }),
        ..Search::default()
    }
}

fn exists() -> Query {
    let field = "type".to_owned();
    Query {
        kind: Some(query::Kind::Exists(ExistsQuery { field })),
    }
}

fn polygon(vertices: usize) -> Search {
    let vertex = |nth: usize| {
        let angle = std::f64::consts::TAU * nth as f64 / vertices as f64;
        GeoPoint {
            latitude: 80.0 * angle.sin(),
            longitude: 170.0 * angle.cos(),
        }
    };
    of(query::Kind::GeoPolygon(GeoPolygonQuery {
        field: "position".to_owned(),
        vertices: (0..vertices).map(vertex).collect(),
    }))
}

fn aggregated(kind: aggregation::Kind) -> Search {
    let groups = Aggregation { kind: Some(kind) };
    Search {
        aggregations: [("groups".to_owned(), groups)].into(),
        ..Search::default()
    }
}

/// What, the search, its code, and the limit.
fn bombs() -> Vec<(&'static str, Search, Code, &'static str)> {
    let clauses = BoolQuery {
        should: vec![exists(); 10_000],
        ..BoolQuery::default()
    };
    let value = |nth: i64| Value {
        kind: Some(value::Kind::StringValue(nth.to_string())),
    };
    let values = TermsQuery {
        field: "type".to_owned(),
        values: (0..100_000).map(value).collect(),
        weight: None,
    };
    let pattern = WildcardQuery {
        field: "name.keyword".to_owned(),
        pattern: "*a".repeat(1_000),
        weight: None,
    };
    let terms = TermsAggregation {
        field: "type".to_owned(),
        size: 10_000_000,
        ..TermsAggregation::default()
    };
    let cells = GeoCellAggregation {
        field: "position".to_owned(),
        resolution: 15,
        size: 10_000_000,
        ..GeoCellAggregation::default()
    };
    let deep = Search {
        skip: 1_000_000,
        ..Search::default()
    };
    vec![
        (
            "10,000 clauses",
            of(query::Kind::Bool(clauses)),
            Code::InvalidArgument,
            "MAX_QUERY_NODES",
        ),
        (
            "100,000 values",
            of(query::Kind::Terms(values)),
            Code::InvalidArgument,
            "MAX_TERMS",
        ),
        (
            "2,000 characters of a pattern",
            of(query::Kind::Wildcard(pattern)),
            Code::InvalidArgument,
            "MAX_WILDCARD_CHARS",
        ),
        (
            "100,000 vertices",
            polygon(100_000),
            Code::InvalidArgument,
            "MAX_POLYGON_VERTICES",
        ),
        (
            "1,000,000 vertices",
            polygon(1_000_000),
            Code::ResourceExhausted,
            "4194304",
        ),
        (
            "10,000,000 groups",
            aggregated(aggregation::Kind::Terms(terms)),
            Code::InvalidArgument,
            "MAX_TERMS_GROUPS",
        ),
        (
            "10,000,000 cells",
            aggregated(aggregation::Kind::GeoCell(cells)),
            Code::InvalidArgument,
            "MAX_CELL_GROUPS",
        ),
        ("1,000,000 skipped", deep, Code::InvalidArgument, "MAX_SKIP"),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_asks_for_too_much_is_refused_by_a_named_limit() -> anyhow::Result<()> {
    let mut suite = Suite::start(SOUK, Layout::OneProcess).await?;
    let mut shops = suite.shops()?;
    for (what, search, code, limit) in bombs() {
        let search = Some(search);
        let began = Instant::now();
        let status = shops
            .search_shops(SearchShopsRequest { search })
            .await
            .expect_err(what);
        let took = began.elapsed();
        let rejection = Rejection::of(&status)?;
        println!(
            "{what}: {:?} {} after {took:.1?}",
            rejection.code, rejection.reason
        );
        assert_eq!(rejection.code, code, "{what}: {status:?}");
        let violations = status.get_details_bad_request().into_iter();
        let mut told = violations
            .flat_map(|details| details.field_violations)
            .map(|violation| violation.description)
            .chain([status.message().to_owned()]);
        assert!(told.any(|text| text.contains(limit)), "{what}: {status:?}");
        assert!(took < PATIENCE, "{what}: {took:?}");
    }
    // The same process still answers.
    shops
        .search_shops(SearchShopsRequest {
            search: Some(Search::default()),
        })
        .await?;
    suite.stop().await
}

//! Bad input: its status code, ErrorInfo reason, field path and advice; nothing is written; the
//! process lives.

use souk_e2e::data::{self, SeededRandom};
use souk_e2e::rejection::Rejection;
use souk_e2e::suite::{Layout, Suite};
use souk_proto::order::v1 as order;
use souk_proto::search::v1::{
    BoolQuery, GeoDistanceQuery, GeoPolygonQuery, Query, RangeQuery, Search, TermQuery, WildcardQuery, query,
    range_query,
};
use souk_proto::shop::v1 as shop;
use souk_proto::r#type::v1::{GeoPoint, Value, value};
use tonic::{Code, Status};

use crate::SOUK;

fn text(text: &str) -> Option<Value> {
    Some(Value {
        kind: Some(value::Kind::StringValue(text.to_owned())),
    })
}

fn term(field: &str, value: Option<Value>) -> Query {
    Query {
        kind: Some(query::Kind::Term(TermQuery {
            field: field.to_owned(),
            value,
            weight: None,
        })),
    }
}

fn polygon(vertices: usize) -> Query {
    let vertices = (0..vertices)
        .map(|i| GeoPoint {
            latitude: i as f64,
            longitude: 0.0,
        })
        .collect();
    Query {
        kind: Some(query::Kind::GeoPolygon(GeoPolygonQuery {
            field: "position".to_owned(),
            vertices,
        })),
    }
}

fn around(latitude: f64) -> Query {
    let center = Some(GeoPoint {
        latitude,
        longitude: 0.0,
    });
    let near = GeoDistanceQuery {
        field: "position".to_owned(),
        center,
        distance_meters: 1.0,
    };
    Query {
        kind: Some(query::Kind::GeoDistance(near)),
    }
}

fn must(clauses: Vec<Query>) -> Query {
    Query {
        kind: Some(query::Kind::Bool(BoolQuery {
            must: clauses,
            ..BoolQuery::default()
        })),
    }
}

fn nested_to(depth: usize) -> Query {
    (0..depth).fold(term("type", text("奶茶")), |inner, _| must(vec![inner]))
}

struct Case {
    what: &'static str,
    search: Search,
    code: Code,
    reason: &'static str,
    field: &'static str,
}

fn cases() -> Vec<Case> {
    let of = |query| Search {
        query: Some(query),
        ..Search::default()
    };
    let invalid = |what, search, reason, field| Case {
        what,
        search,
        code: Code::InvalidArgument,
        reason,
        field,
    };
    let backwards = RangeQuery {
        field: "rating".to_owned(),
        lower: Some(range_query::Lower::Gt(Value {
            kind: Some(value::Kind::DoubleValue(4.0)),
        })),
        upper: Some(range_query::Upper::Lt(Value {
            kind: Some(value::Kind::DoubleValue(3.0)),
        })),
    };
    let backwards = Query {
        kind: Some(query::Kind::Range(backwards)),
    };
    let long = WildcardQuery {
        field: "name.keyword".to_owned(),
        pattern: "*a".repeat(40),
        weight: None,
    };
    let long = Query {
        kind: Some(query::Kind::Wildcard(long)),
    };
    vec![
        invalid(
            "unknown field",
            of(must(vec![term("type", text("x")), term("colour", text("red"))])),
            "INVALID_QUERY",
            "search.query.bool.must[1].term.field",
        ),
        invalid(
            "wrong type",
            of(term("rating", text("good"))),
            "INVALID_QUERY",
            "search.query.term.value",
        ),
        invalid(
            "no value",
            of(term("type", None)),
            "INVALID_QUERY",
            "search.query.term.value",
        ),
        invalid(
            "impossible range",
            of(backwards),
            "INVALID_QUERY",
            "search.query.range",
        ),
        invalid(
            "latitude 91",
            of(around(91.0)),
            "INVALID_QUERY",
            "search.query.geo_distance.center.latitude",
        ),
        invalid(
            "polygon of two points",
            of(polygon(2)),
            "INVALID_QUERY",
            "search.query.geo_polygon.vertices",
        ),
        invalid(
            "long wildcard",
            of(long),
            "INVALID_QUERY",
            "search.query.wildcard.pattern",
        ),
        invalid(
            "empty query",
            of(Query { kind: None }),
            "INVALID_QUERY",
            "search.query",
        ),
        invalid("40 deep", of(nested_to(40)), "INVALID_QUERY", "search.query"),
        invalid(
            "page_size -1",
            Search {
                page_size: -1,
                ..Search::default()
            },
            "INVALID_ARGUMENT",
            "search.page_size",
        ),
        invalid(
            "tampered page token",
            Search {
                page_token: "AAAA".to_owned(),
                ..Search::default()
            },
            "PAGE_TOKEN_INVALID",
            "search.page_token",
        ),
        invalid(
            "negative min_sequence",
            Search {
                min_sequence: -1,
                ..Search::default()
            },
            "INVALID_ARGUMENT",
            "search.min_sequence",
        ),
    ]
}

/// Asserts on an error; one of its paths is `field` or below it. An empty `field` isn't compared.
fn check(what: &str, status: &Status, code: Code, reason: &str, field: &str) -> anyhow::Result<()> {
    let rejection = Rejection::of(status)?;
    assert_eq!(rejection.code, code, "{what}: {status:?}");
    assert_eq!(rejection.reason, reason, "{what}: {status:?}");
    let named = field.is_empty() || rejection.fields.iter().any(|path| path.starts_with(field));
    assert!(
        named,
        "{what}: {:?} doesn't name {field}: {status:?}",
        rejection.fields
    );
    Ok(())
}

async fn searches(suite: &Suite) -> anyhow::Result<()> {
    let mut shops = suite.shops()?;
    for case in cases() {
        let request = shop::SearchShopsRequest {
            search: Some(case.search),
        };
        let status = shops.search_shops(request).await.expect_err(case.what);
        check(case.what, &status, case.code, case.reason, case.field)?;
    }
    // Deeper than a query may be (32), but not than the decoder allows.
    let request = shop::SearchShopsRequest {
        search: Some(Search {
            query: Some(nested_to(45)),
            ..Default::default()
        }),
    };
    let status = shops.search_shops(request).await.expect_err("45 deep");
    check(
        "45 deep",
        &status,
        Code::InvalidArgument,
        "INVALID_QUERY",
        "search.query",
    )?;
    // Beyond the decoder's limit: each level of a bool is two messages.
    let request = shop::SearchShopsRequest {
        search: Some(Search {
            query: Some(nested_to(100)),
            ..Default::default()
        }),
    };
    let status = shops.search_shops(request).await.expect_err("100 deep");
    check(
        "100 deep",
        &status,
        Code::InvalidArgument,
        "MESSAGE_TOO_DEEP",
        "search.query",
    )?;
    Ok(())
}

async fn page_tokens(suite: &Suite) -> anyhow::Result<()> {
    let mut shops = suite.shops()?;
    let mut random = SeededRandom::new(5);
    let all = (0..30).map(|number| data::shop(number, &mut random)).collect();
    let batch = shop::BatchCreateShopsRequest {
        shops: all,
        ..Default::default()
    };
    let min_sequence = shops.batch_create_shops(batch).await?.into_inner().sequence;
    let first = Search {
        min_sequence,
        ..Search::default()
    };
    let page = shops
        .search_shops(shop::SearchShopsRequest { search: Some(first) })
        .await?
        .into_inner();
    let token = page.next_page_token;
    assert!(!token.is_empty());
    let with = |page_token: String, query| Search {
        page_token,
        query,
        ..Search::default()
    };
    let mut tampered = token.clone();
    let last = tampered.pop().expect("a token");
    tampered.push(if last == 'A' { 'B' } else { 'A' });
    for (what, search) in [
        ("tampered", with(tampered, None)),
        (
            "other query",
            with(token.clone(), Some(term("type", text("奶茶")))),
        ),
    ] {
        let status = shops
            .search_shops(shop::SearchShopsRequest { search: Some(search) })
            .await
            .expect_err(what);
        check(
            what,
            &status,
            Code::InvalidArgument,
            "PAGE_TOKEN_INVALID",
            "search.page_token",
        )?;
    }
    Ok(())
}

async fn writes(suite: &Suite) -> anyhow::Result<()> {
    let mut orders = suite.orders()?;
    let mut shops = suite.shops()?;
    let mut random = SeededRandom::new(6);
    let create = |order| order::CreateOrderRequest {
        order: Some(order),
        ..Default::default()
    };

    let empty = order::Order {
        order_id: String::new(),
        quantity: 0,
        ..data::order(1, &mut random)
    };
    let status = orders
        .create_order(create(empty))
        .await
        .expect_err("an empty id and no quantity");
    check(
        "empty id",
        &status,
        Code::InvalidArgument,
        "INVALID_ARGUMENT",
        "order.order_id",
    )?;
    check(
        "all violations at once",
        &status,
        Code::InvalidArgument,
        "INVALID_ARGUMENT",
        "order.quantity",
    )?;

    let unknown = order::Order {
        order_id: "o0000000001".to_owned(),
        consumer_id: "c9999".to_owned(),
        salesperson_id: "s9999".to_owned(),
        product_id: "p9999999".to_owned(),
        quantity: 1,
        ..Default::default()
    };
    let status = orders
        .create_order(create(unknown))
        .await
        .expect_err("an unknown consumer");
    check(
        "unknown consumer",
        &status,
        Code::FailedPrecondition,
        "UNKNOWN_REFERENCE",
        "",
    )?;
    assert!(status.message().contains("c9999"), "{status:?}");

    let far = shop::Shop {
        position: Some(GeoPoint {
            latitude: 91.0,
            longitude: 0.0,
        }),
        ..data::shop(77, &mut random)
    };
    let request = shop::CreateShopRequest {
        shop: Some(far),
        ..Default::default()
    };
    let status = shops.create_shop(request).await.expect_err("latitude 91");
    check(
        "latitude 91",
        &status,
        Code::InvalidArgument,
        "INVALID_ARGUMENT",
        "shop.position.latitude",
    )?;

    // One bad order refuses the batch as a whole.
    let mut batch: Vec<_> = (10..20).map(|number| data::order(number, &mut random)).collect();
    batch[3].quantity = -1;
    let request = order::BatchCreateOrdersRequest {
        orders: batch,
        ..Default::default()
    };
    let status = orders
        .batch_create_orders(request)
        .await
        .expect_err("a bad order");
    check(
        "batch",
        &status,
        Code::InvalidArgument,
        "INVALID_ARGUMENT",
        "orders[3].quantity",
    )?;

    // 5 MB.
    let large = order::Order {
        consumer_name: "x".repeat(5 << 20),
        ..data::order(2, &mut random)
    };
    let status = orders.create_order(create(large)).await.expect_err("5 MB");
    assert!(
        matches!(status.code(), Code::OutOfRange | Code::ResourceExhausted),
        "{status:?}"
    );

    let existing = data::order(3, &mut random);
    orders.create_order(create(existing.clone())).await?;
    let status = orders
        .create_order(create(existing))
        .await
        .expect_err("the id is taken");
    check("taken", &status, Code::AlreadyExists, "ORDER_ALREADY_EXISTS", "")?;

    // Nothing but that one order was written.
    let mut blocks = orders
        .export_orders(order::ExportOrdersRequest::default())
        .await?
        .into_inner();
    let mut ids = Vec::new();
    while let Some(block) = blocks.message().await? {
        ids.extend(block.orders.into_iter().map(|order| order.order_id));
    }
    assert_eq!(ids, ["o0000000003"]);
    Ok(())
}

async fn unknown_methods(suite: &Suite) -> anyhow::Result<()> {
    let mut health = tonic_health::pb::health_client::HealthClient::new(suite.channel()?);
    let request = tonic_health::pb::HealthCheckRequest {
        service: "souk.order.v1.NoService".to_owned(),
    };
    let status = health.check(request).await.expect_err("no such service");
    assert_eq!(status.code(), Code::NotFound);
    Ok(())
}

async fn refuses(layout: Layout) -> anyhow::Result<()> {
    let mut suite = Suite::start(SOUK, layout).await?;
    searches(&suite).await?;
    page_tokens(&suite).await?;
    writes(&suite).await?;
    unknown_methods(&suite).await?;
    // The process that all of it met is still the same one, and stops in order.
    suite.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_input_is_refused_in_one_process() -> anyhow::Result<()> {
    refuses(Layout::OneProcess).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_input_is_refused_in_several_processes() -> anyhow::Result<()> {
    refuses(Layout::SeveralProcesses).await
}

//! Clusters of a map through the gateway, against a count by hand.

use std::collections::BTreeMap;

use anyhow::Context as _;
use h3o::{LatLng, Resolution};
use souk_e2e::data::{self, SeededRandom};
use souk_e2e::rejection::Rejection;
use souk_e2e::suite::{Layout, Suite};
use souk_proto::search::v1::{
    Aggregation, AvgAggregation, FieldSort, Query, Sort, TermQuery, TermsAggregation, aggregation,
    aggregation_result, query, sort,
};
use souk_proto::shop::v1 as shop;
use souk_proto::shop::v1::cluster_shops_request::Size;
use souk_proto::shop::v1::shop_service_client::ShopServiceClient;
use souk_proto::r#type::v1::{GeoPoint, GeoRectangle, Value, value};
use tonic::transport::Channel;

use crate::SOUK;

const SHOPS: u64 = 600;

fn at(latitude: f64, longitude: f64) -> Option<GeoPoint> {
    Some(GeoPoint { latitude, longitude })
}

fn rectangle(top_left: (f64, f64), bottom_right: (f64, f64)) -> GeoRectangle {
    GeoRectangle {
        top_left: at(top_left.0, top_left.1),
        bottom_right: at(bottom_right.0, bottom_right.1),
    }
}

/// Shops around Hangzhou as the generator makes them; every third moved to Fiji, on both sides of the antimeridian, some
/// onto it, and a few to the north pole.
fn shops() -> Vec<shop::Shop> {
    let mut random = SeededRandom::new(7);
    let mut shops: Vec<_> = (0..SHOPS).map(|number| data::shop(number, &mut random)).collect();
    // As exact as points are kept, so that comparing doubles says what comparing points does.
    let kept = |degrees: f64| (degrees * 1e7).round() / 1e7;
    for (nth, shop) in shops.iter_mut().enumerate() {
        let mut off = || random.below(2_000) as f64 / 1_000.0 - 1.0;
        if nth % 60 == 1 {
            shop.position = at(90.0 - off().abs() / 10.0, off() * 180.0);
        } else if nth % 3 == 0 {
            let east = if nth % 30 == 0 { 0.0 } else { off() };
            let longitude = if east > 0.0 { east - 180.0 } else { east + 180.0 };
            shop.position = at(-17.0 + off(), longitude);
        }
        if let Some(position) = &mut shop.position {
            *position = GeoPoint {
                latitude: kept(position.latitude),
                longitude: kept(position.longitude),
            };
        }
    }
    shops
}

/// Inside a viewport of which the left side may lie east of the right one. 180 degrees are those of -180.
fn inside(viewport: &GeoRectangle, point: &GeoPoint) -> Option<bool> {
    let (north_west, south_east) = (viewport.top_left.as_ref()?, viewport.bottom_right.as_ref()?);
    let (west, east) = (north_west.longitude, south_east.longitude);
    let between = |longitude: f64| {
        if west <= east {
            (west..=east).contains(&longitude)
        } else {
            longitude >= west || longitude <= east
        }
    };
    let across = between(point.longitude) || (point.longitude.abs() == 180.0 && between(-point.longitude));
    Some(across && (south_east.latitude..=north_west.latitude).contains(&point.latitude))
}

/// The shops of each cell.
type Cells<'a> = BTreeMap<String, Vec<&'a shop::Shop>>;

fn by_hand<'a>(
    shops: &'a [shop::Shop],
    viewport: &GeoRectangle,
    resolution: u8,
    kind: Option<&str>,
) -> anyhow::Result<Cells<'a>> {
    let mut cells = Cells::new();
    for shop in shops {
        let position = shop.position.as_ref().context("a position")?;
        let fits = kind.is_none_or(|kind| shop.r#type == kind);
        if fits && inside(viewport, position).context("a viewport")? {
            let place = LatLng::new(position.latitude, position.longitude)?;
            let cell = place.to_cell(Resolution::try_from(resolution)?);
            cells.entry(cell.to_string()).or_default().push(shop);
        }
    }
    Ok(cells)
}

/// Ties end in the id.
fn key(shop: &shop::Shop) -> &str {
    &shop.shop_id
}

/// The direction of the sum of some shops' directions, as latitude and longitude.
fn middle(shops: &[&shop::Shop]) -> (f64, f64) {
    let mut sum = [0.0; 3];
    for position in shops.iter().filter_map(|shop| shop.position.as_ref()) {
        let (north, up) = position.latitude.to_radians().sin_cos();
        let (east, ahead) = position.longitude.to_radians().sin_cos();
        for (sum, part) in sum.iter_mut().zip([up * ahead, up * east, north]) {
            *sum += part;
        }
    }
    let [ahead, east, north] = sum;
    let latitude = north.atan2(ahead.hypot(east)).to_degrees();
    (latitude, east.atan2(ahead).to_degrees())
}

fn check(answer: &shop::ClusterShopsResponse, expected: &Cells<'_>, cheapest: bool) -> anyhow::Result<()> {
    let total: usize = expected.values().map(Vec::len).sum();
    assert_eq!(answer.total, total as i64);
    assert_eq!(answer.clusters.len(), expected.len());
    let in_order = |one: &shop::ShopCluster, other: &shop::ShopCluster| {
        (other.count, &one.cell) < (one.count, &other.cell)
    };
    assert!(answer.clusters.is_sorted_by(in_order));
    for cluster in &answer.clusters {
        let cell = &cluster.cell;
        let shops = expected.get(cell).with_context(|| format!("{cell} is no cell"))?;
        assert_eq!(cluster.count, shops.len() as i64, "{cell}");
        let best = shops.iter().min_by(|one, other| {
            // What is unknown comes last, whichever way.
            let order = if cheapest {
                let cents = |shop: &shop::Shop| shop.average_price_cents.unwrap_or(i64::MAX);
                cents(one).cmp(&cents(other))
            } else {
                let rating = |shop: &shop::Shop| shop.rating.unwrap_or(f64::NEG_INFINITY);
                rating(other).total_cmp(&rating(one))
            };
            order.then_with(|| key(one).cmp(key(other)))
        });
        let shown = cluster.best_shop.as_ref().context("a best shop")?;
        let best = best.context("a shop")?;
        assert_eq!(
            (&shown.shop_id, &shown.name),
            (&best.shop_id, &best.name),
            "{cell}"
        );
        let center = cluster.center.context("a centre")?;
        let (latitude, longitude) = middle(shops);
        // Degrees of longitude are short near a pole.
        let off = (center.longitude - longitude + 540.0).rem_euclid(360.0) - 180.0;
        let off = off.abs() * latitude.to_radians().cos();
        assert!(
            (center.latitude - latitude).abs() < 1e-6 && off < 1e-6,
            "{cell}: {center:?} is not {latitude}, {longitude}"
        );
        let rating = cluster.aggregations.get("rating").context("a mean rating")?;
        let Some(aggregation_result::Kind::Value(mean)) = &rating.kind else {
            anyhow::bail!("no mean: {rating:?}");
        };
        let rated: Vec<f64> = shops.iter().filter_map(|shop| shop.rating).collect();
        match mean.value.as_ref().and_then(|mean| mean.kind.clone()) {
            Some(value::Kind::DoubleValue(mean)) => {
                let expected = rated.iter().sum::<f64>() / rated.len() as f64;
                assert!((mean - expected).abs() < 1e-9, "{cell}");
            }
            None => assert!(rated.is_empty(), "{cell}: {rated:?}"),
            other => anyhow::bail!("no mean: {other:?}"),
        }
        // An aggregation may be called as what a cluster has of its own.
        let cities = cluster.aggregations.get("best_by").context("the cities")?;
        let Some(aggregation_result::Kind::Groups(cities)) = &cities.kind else {
            anyhow::bail!("no groups: {cities:?}");
        };
        let counted: i64 = cities.groups.iter().map(|group| group.count).sum();
        assert_eq!(
            (counted, cluster.aggregations.len()),
            (cluster.count, 2),
            "{cell}"
        );
    }
    Ok(())
}

fn figures() -> BTreeMap<String, Aggregation> {
    let rating = aggregation::Kind::Avg(AvgAggregation {
        field: "rating".to_owned(),
        missing: None,
    });
    let cities = aggregation::Kind::Terms(TermsAggregation {
        field: "city".to_owned(),
        ..TermsAggregation::default()
    });
    [("rating", rating), ("best_by", cities)]
        .map(|(name, kind)| (name.to_owned(), Aggregation { kind: Some(kind) }))
        .into()
}

fn of_kind(kind: &str) -> Query {
    let value = Value {
        kind: Some(value::Kind::StringValue(kind.to_owned())),
    };
    Query {
        kind: Some(query::Kind::Term(TermQuery {
            field: "type".to_owned(),
            value: Some(value),
            weight: None,
        })),
    }
}

fn by(field: &str) -> Sort {
    Sort {
        kind: Some(sort::Kind::Field(FieldSort {
            field: field.to_owned(),
            ..FieldSort::default()
        })),
    }
}

async fn shops_are_clustered(layout: Layout) -> anyhow::Result<()> {
    let suite = Suite::start(SOUK, layout).await?;
    let mut client = suite.shops()?;
    let made = shops();
    let mut min_sequence = 0;
    for part in made.chunks(200) {
        let batch = shop::BatchCreateShopsRequest {
            shops: part.to_vec(),
            ..Default::default()
        };
        min_sequence = client.batch_create_shops(batch).await?.into_inner().sequence;
    }
    let kind = made.first().map(|shop| shop.r#type.clone()).context("a shop")?;
    let fiji = rectangle((-16.5, 179.3), (-17.4, -179.4));
    let everything = rectangle((90.0, -180.0), (-90.0, 180.0));
    let cases = [
        (fiji, Size::H3Resolution(5), None, 5, 4),
        (fiji, Size::Zoom(9), Some(&kind), 5, 4),
        (everything, Size::Zoom(0), None, 0, 3),
        (everything, Size::H3Resolution(3), None, 3, 4),
        (everything, Size::H3Resolution(6), Some(&kind), 6, 4),
        (everything, Size::Zoom(22), None, 14, 300),
    ];
    for (viewport, size, kind, resolution, least) in cases {
        for cheapest in [false, true] {
            let request = shop::ClusterShopsRequest {
                viewport: Some(viewport),
                size: Some(size),
                query: kind.map(|kind| of_kind(kind)),
                aggregations: figures(),
                best_by: if cheapest {
                    vec![by("average_price_cents")]
                } else {
                    Vec::new()
                },
                min_sequence,
                ..Default::default()
            };
            let answer = client.cluster_shops(request).await?.into_inner();
            assert_eq!(answer.h3_resolution, i32::from(resolution));
            assert!(answer.sequence >= min_sequence);
            let expected = by_hand(&made, &viewport, resolution, kind.map(String::as_str))?;
            assert!(expected.len() >= least, "{size:?}: {}", expected.len());
            check(&answer, &expected, cheapest)?;
        }
    }
    few_and_none(&mut client, everything, min_sequence).await?;
    mistakes_are_named(&mut client, everything).await
}

/// Fewer clusters than there are, and a viewport without shops.
async fn few_and_none(
    client: &mut ShopServiceClient<Channel>,
    everything: GeoRectangle,
    min_sequence: i64,
) -> anyhow::Result<()> {
    let request = shop::ClusterShopsRequest {
        viewport: Some(everything),
        size: Some(Size::H3Resolution(6)),
        max_clusters: 2,
        min_sequence,
        ..Default::default()
    };
    let answer = client.cluster_shops(request).await?.into_inner();
    assert_eq!((answer.clusters.len(), answer.total), (2, SHOPS as i64));
    let request = shop::ClusterShopsRequest {
        viewport: Some(rectangle((-60.0, 10.0), (-70.0, 20.0))),
        size: Some(Size::Zoom(4)),
        min_sequence,
        ..Default::default()
    };
    let answer = client.cluster_shops(request).await?.into_inner();
    assert_eq!((answer.clusters.len(), answer.total), (0, 0));
    Ok(())
}

async fn mistakes_are_named(
    client: &mut ShopServiceClient<Channel>,
    everything: GeoRectangle,
) -> anyhow::Result<()> {
    let asked = || shop::ClusterShopsRequest {
        viewport: Some(everything),
        size: Some(Size::Zoom(4)),
        ..Default::default()
    };
    let top = |field: &str| Aggregation {
        kind: Some(aggregation::Kind::Avg(AvgAggregation {
            field: field.to_owned(),
            missing: None,
        })),
    };
    let cases = [
        (shop::ClusterShopsRequest::default(), "viewport"),
        (
            shop::ClusterShopsRequest {
                viewport: Some(rectangle((-90.0, 0.0), (90.0, 1.0))),
                ..asked()
            },
            "viewport",
        ),
        (
            shop::ClusterShopsRequest {
                size: Some(Size::Zoom(23)),
                ..asked()
            },
            "zoom",
        ),
        (
            shop::ClusterShopsRequest {
                best_by: vec![by("rating"), by("colour")],
                ..asked()
            },
            "best_by[1].field",
        ),
        (
            shop::ClusterShopsRequest {
                aggregations: [("best_by".to_owned(), top("colour"))].into(),
                ..asked()
            },
            r#"aggregations["best_by"].avg.field"#,
        ),
        (
            shop::ClusterShopsRequest {
                aggregations: (0..9).map(|nth| (nth.to_string(), top("rating"))).collect(),
                ..asked()
            },
            "aggregations",
        ),
        (
            shop::ClusterShopsRequest {
                query: Some(Query {
                    kind: Some(query::Kind::Term(TermQuery {
                        field: "colour".to_owned(),
                        value: Some(Value {
                            kind: Some(value::Kind::IntValue(1)),
                        }),
                        weight: None,
                    })),
                }),
                ..asked()
            },
            "query.term.field",
        ),
    ];
    for (request, path) in cases {
        let refused = client.cluster_shops(request).await;
        let refused = refused.err().with_context(|| format!("{path} was not refused"))?;
        let rejection = Rejection::of(&refused)?;
        let named = rejection.fields.iter().any(|field| field.starts_with(path));
        assert!(named, "{path} is not in {rejection:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_are_those_of_a_count_by_hand_in_one_process() -> anyhow::Result<()> {
    shops_are_clustered(Layout::OneProcess).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_are_those_of_a_count_by_hand_in_several_processes() -> anyhow::Result<()> {
    shops_are_clustered(Layout::SeveralProcesses).await
}

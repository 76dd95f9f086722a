//! Searches on a map of two million shops in towns, in one segment, on one thread. Each measurement goes through 200
//! questions in turn, drawn by a fixed seed.

#![expect(
    clippy::expect_used,
    reason = "a benchmark that can't be set up has nothing to measure"
)]

use std::hint::black_box;
use std::ops::Bound;

use criterion::{Criterion, criterion_group, criterion_main};
use fastrand::Rng;
use souk_index::{
    Cancellation, Document, Field, GeoPoint, Index, IndexOptions, Object, Operation, Query, QueryValue,
    Schema, SearchRequest, Searcher, Sort, TotalRequest,
};

const SHOPS: u32 = 2_000_000;
const TOWNS: usize = 20_000;
const TYPES: usize = 60;
const QUESTIONS: usize = 200;
const BATCH: u32 = 10_000;

/// Latitude, longitude, millions of people.
struct Town(f64, f64, f64);

/// Towns on four continents, their sizes by rank; shops are found by people.
struct World {
    towns: Vec<Town>,
    /// Sums of people, in the order of towns.
    people: Vec<f64>,
    /// Sums of the shares of types.
    types: Vec<f64>,
}

fn sums(parts: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sum = 0.0;
    let added = parts.map(|part| {
        sum += part;
        sum
    });
    added.collect()
}

fn draw(rng: &mut Rng, sums: &[f64]) -> usize {
    let at = rng.f64() * sums.last().copied().unwrap_or_default();
    sums.partition_point(|sum| *sum <= at).min(sums.len() - 1)
}

fn gauss(rng: &mut Rng) -> f64 {
    (-2.0 * (1.0 - rng.f64()).ln()).sqrt() * (std::f64::consts::TAU * rng.f64()).cos()
}

impl World {
    fn new() -> Self {
        let mut rng = Rng::with_seed(11);
        let continents = [
            (20.0, 45.0, 75.0, 122.0),
            (37.0, 60.0, -8.0, 40.0),
            (28.0, 48.0, -122.0, -75.0),
            (-35.0, 5.0, -70.0, -40.0),
        ];
        let towns: Vec<Town> = (0..TOWNS)
            .map(|nth| {
                let (south, north, west, east) = continents[rng.usize(..continents.len())];
                let (latitude, longitude) = (rng.f64() * (north - south), rng.f64() * (east - west));
                Town(
                    south + latitude,
                    west + longitude,
                    25.0 / (1.0 + nth as f64).powf(0.8),
                )
            })
            .collect();
        Self {
            people: sums(towns.iter().map(|town| town.2)),
            towns,
            types: sums((1..=TYPES).map(|rank| (rank as f64).powf(-0.5))),
        }
    }

    /// A dense core and wide outskirts.
    fn shop(&self, n: u32) -> (GeoPoint, usize, Rng) {
        let mut rng = Rng::with_seed(u64::from(n).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let town = &self.towns[draw(&mut rng, &self.people)];
        let kilometers = (0.8 + 0.7 * town.2.sqrt()) * if rng.bool() { 0.5 } else { 2.0 };
        let latitude = town.0 + gauss(&mut rng) * kilometers / 111.2;
        let longitude = town.1 + gauss(&mut rng) * kilometers / (111.2 * town.0.to_radians().cos());
        let kind = draw(&mut rng, &self.types);
        (point(latitude, longitude), kind, rng)
    }

    fn document(&self, n: u32) -> Document {
        let (position, kind, mut rng) = self.shop(n);
        let cents = (8.0 + 0.8 * gauss(&mut rng)).exp() as i64 + 100;
        let rating = f64::from((38.0 + 6.0 * gauss(&mut rng)).round().clamp(10.0, 50.0) as i32) / 10.0;
        let mut fields = Object::new()
            .with("position", position)
            .with("type", format!("type{kind:02}"))
            .with("cents", cents)
            .with("rating", rating);
        if n.is_multiple_of(1_000) && position.longitude() < -100.0 {
            fields.push("far", "west");
        }
        Document {
            key: format!("h{n:08}").into_bytes(),
            fields,
        }
    }
}

fn point(latitude: f64, longitude: f64) -> GeoPoint {
    GeoPoint::new(latitude.clamp(-89.0, 89.0), longitude.clamp(-179.9, 179.9)).expect("in range")
}

fn index(world: &World) -> Index {
    let schema = Schema::new(vec![
        Field::geo_point("position"),
        Field::keyword("type"),
        Field::keyword("far"),
        Field::long("cents").column_only(),
        Field::double("rating"),
    ])
    .expect("the schema is valid");
    let mut options = IndexOptions::default();
    options.writer_memory_bytes = 2_000_000_000;
    let index = Index::create_in_ram(schema, options).expect("an index");
    let mut writer = index.writer().expect("the writer");
    for from in (0..SHOPS).step_by(BATCH as usize) {
        let documents = (from..from + BATCH).map(|n| Operation::Insert(world.document(n)));
        writer.apply(documents.collect()).expect("the shops are taken in");
    }
    writer.commit(1).expect("the commit works");
    writer.merge_all().expect("the merge works");
    index
}

/// A question's place and type: people ask in large towns for a type that is there.
fn questions(world: &World) -> Vec<(GeoPoint, usize, Rng)> {
    let mut rng = Rng::with_seed(5);
    let shops = std::iter::repeat_with(|| world.shop(rng.u32(..SHOPS)));
    shops
        .map(|(place, kind, mut rng)| {
            let latitude = place.latitude() + gauss(&mut rng) * 0.004;
            let longitude = place.longitude() + gauss(&mut rng) * 0.004;
            (point(latitude, longitude), kind, rng)
        })
        .take(QUESTIONS)
        .collect()
}

fn measure(criterion: &mut Criterion, searcher: &Searcher, name: &str, requests: &[SearchRequest]) {
    let mut turn = requests.iter().cycle();
    criterion.bench_function(name, |bencher| {
        bencher.iter(|| {
            let request = turn.next().expect("there are requests");
            let found = searcher
                .search(black_box(request), &Cancellation::none())
                .expect("the search works");
            black_box(found.hits.len())
        });
    });
}

fn circle(center: GeoPoint, distance_meters: f64) -> Query {
    Query::GeoDistance {
        field: "position".to_owned(),
        center,
        distance_meters,
    }
}

fn nearest(query: Query, points: Vec<GeoPoint>) -> SearchRequest {
    let sort = Sort::GeoDistance {
        field: "position".to_owned(),
        points,
        descending: false,
    };
    SearchRequest::new(query).sorted(vec![sort]).page_size(20)
}

fn of_type(kind: usize) -> Query {
    Query::term("type", format!("type{kind:02}").as_str())
}

fn areas(criterion: &mut Criterion, world: &World, searcher: &Searcher) {
    let questions = questions(world);
    for (name, meters) in [("1 km", 1_000.0), ("20 km", 20_000.0)] {
        let requests = questions.iter().map(|(center, kind, rng)| {
            let dearest = Bound::Included(QueryValue::Integer(rng.clone().i64(2_000..10_000)));
            let cents = Query::range("cents", Bound::Included(QueryValue::Integer(0)), dearest);
            let query = Query::all(vec![of_type(*kind), cents, circle(*center, meters)]);
            SearchRequest::new(query)
                .sorted(vec![Sort::field("rating", true)])
                .page_size(20)
        });
        let requests: Vec<_> = requests.collect();
        measure(
            criterion,
            searcher,
            &format!("{name}, type and price, best 20"),
            &requests,
        );
    }
    let counted = |query: Query| SearchRequest::new(query).page_size(0).total(TotalRequest::Exact);
    let viewports = questions.iter().map(|(center, _, rng)| {
        let half = 0.01 * 1_000f64.powf(rng.clone().f64());
        let (latitude, longitude) = (center.latitude(), center.longitude());
        counted(Query::GeoBoundingBox {
            field: "position".to_owned(),
            top_left: point(latitude + half, longitude - 2.0 * half),
            bottom_right: point(latitude - half, longitude + 2.0 * half),
        })
    });
    let viewports: Vec<_> = viewports.collect();
    measure(criterion, searcher, "viewport, counted", &viewports);
    let polygons = questions.iter().map(|(center, _, rng)| {
        let mut rng = rng.clone();
        let half = 0.01 * 1_000f64.powf(rng.f64());
        let vertex = |nth: u32| {
            let angle = std::f64::consts::TAU * f64::from(nth) / 5_000.0;
            let radius = half * (0.9 + 0.1 * rng.f64());
            point(
                center.latitude() + radius * angle.sin(),
                center.longitude() + radius * angle.cos(),
            )
        };
        counted(Query::GeoPolygon {
            field: "position".to_owned(),
            vertices: (0..5_000).map(vertex).collect(),
        })
    });
    let polygons: Vec<_> = polygons.collect();
    measure(
        criterion,
        searcher,
        "polygon of 5,000 vertices, counted",
        &polygons,
    );
}

fn neighbours(criterion: &mut Criterion, world: &World, searcher: &Searcher) {
    let questions = questions(world);
    let mut run = |name: &str, ask: &dyn Fn(GeoPoint, usize) -> SearchRequest| {
        let requests: Vec<_> = questions.iter().map(|(at, kind, _)| ask(*at, *kind)).collect();
        measure(criterion, searcher, name, &requests);
    };
    run("nearest 20 of a type", &|at, kind| {
        nearest(of_type(kind), vec![at])
    });
    run("nearest 20 of all", &|at, _| nearest(Query::MatchAll, vec![at]));
    run("nearest 20 of a type within 100 km", &|at, kind| {
        nearest(Query::all(vec![of_type(kind), circle(at, 100_000.0)]), vec![at])
    });
    run("nearest 20 of few, mostly across an ocean", &|at, _| {
        nearest(Query::term("far", "west"), vec![at])
    });
    run("nearest 20 of a third, all across an ocean", &|at, _| {
        let there = |west: f64, east: f64| Query::GeoBoundingBox {
            field: "position".to_owned(),
            top_left: point(80.0, west),
            bottom_right: point(-80.0, east),
        };
        let far = if at.longitude() < -20.0 {
            there(60.0, 179.0)
        } else {
            there(-130.0, -60.0)
        };
        nearest(far, vec![at])
    });
    run("nearest 20 of a type to one of 100 points", &|at, kind| {
        let points = (0..100).map(|nth| {
            let off = f64::from(nth) * 0.05;
            point(at.latitude() + off.sin() * 3.0, at.longitude() + off.cos() * 3.0)
        });
        nearest(of_type(kind), points.collect())
    });
}

fn searches(criterion: &mut Criterion) {
    let world = World::new();
    let index = index(&world);
    let searcher = index.searcher();
    areas(criterion, &world, &searcher);
    neighbours(criterion, &world, &searcher);
}

criterion_group!(benches, searches);
criterion_main!(benches);

//! Areas and nearest documents all over the globe, against a slow evaluator that shares nothing with the index.

mod shapes;
mod slow;

use souk_index::{
    Cancellation, Document, Error, Field, GeoPoint, Index, IndexOptions, IndexWriter, Object, Operation,
    Query, QueryValue, Schema, SearchRequest, Searcher, Sort, SortValue, TotalRequest,
};
use std::ops::Bound;

use super::{find, keys, random_numbers};
use slow::Place;

/// A document as the slow evaluator knows it.
#[derive(Clone)]
struct Known {
    key: String,
    places: Vec<Place>,
    kind: usize,
    price: i64,
}

/// Whether a document matches a query.
type Fits = Box<dyn Fn(&Known) -> bool>;

/// Documents with points where people live, where areas are difficult, and anywhere.
fn random_documents(rng: &mut fastrand::Rng, count: usize, several: bool) -> Vec<Known> {
    let towns: Vec<Place> = (0..12).map(|_| shapes::anywhere(rng)).collect();
    (0..count)
        .map(|nth| {
            let points = if several {
                rng.usize(0..4)
            } else {
                usize::from(rng.u8(..20) > 0)
            };
            let places = (0..points).map(|_| match rng.u8(..10) {
                0 | 1 => shapes::anywhere(rng),
                2 | 3 => {
                    let near = shapes::difficult(rng);
                    shapes::around(rng, near, 2.0)
                }
                _ => {
                    let town = towns[rng.usize(..towns.len())];
                    shapes::around(rng, town, 0.2)
                }
            });
            Known {
                key: format!("k{nth:05}"),
                places: places.collect(),
                kind: if rng.u8(..50) == 0 { 7 } else { rng.usize(..3) },
                price: rng.i64(0..1_000),
            }
        })
        .collect()
}

fn index(several: bool) -> (Index, IndexWriter) {
    let spot = Field::geo_point("spot");
    let schema = Schema::new(vec![
        if several { spot.array() } else { spot },
        Field::keyword("kind"),
        Field::long("price").column_only(),
    ]);
    let options = IndexOptions::default().merging_eagerly(1_000);
    let index = Index::create_in_ram(schema.expect("a schema"), options).expect("an index");
    let writer = index.writer().expect("the writer");
    (index, writer)
}

fn operation(known: &Known) -> Operation {
    let mut fields = Object::new()
        .with("kind", format!("kind{}", known.kind))
        .with("price", known.price);
    for place in &known.places {
        fields.push("spot", place.point());
    }
    Operation::Upsert(Document {
        key: known.key.clone().into_bytes(),
        fields,
    })
}

/// Writes documents in `segments` segments, then some of them anew, and deletes some.
fn fill(
    rng: &mut fastrand::Rng,
    writer: &mut IndexWriter,
    documents: &mut Vec<Known>,
    segments: usize,
    change: bool,
) {
    let part = documents.len().div_ceil(segments);
    let mut sequence = 0;
    for chunk in documents.chunks(part) {
        sequence += 1;
        super::commit(writer, chunk.iter().map(operation).collect(), sequence);
    }
    if !change {
        return;
    }
    let mut operations = Vec::new();
    documents.retain_mut(|known| match rng.u8(..10) {
        0 => {
            operations.push(Operation::Delete {
                key: known.key.clone().into_bytes(),
            });
            false
        }
        1 => {
            known
                .places
                .iter_mut()
                .for_each(|place| *place = shapes::around(rng, *place, 1.0));
            operations.push(operation(known));
            true
        }
        _ => true,
    });
    super::commit(writer, operations, sequence + 1);
}

#[test]
fn areas_hold_what_a_slow_comparison_says() {
    let mut rng = random_numbers();
    let (mut valid, mut found, mut refused) = (0, 0, 0);
    for round in 0..6 {
        let several = round % 2 == 1;
        let (index, mut writer) = index(several);
        let mut documents = random_documents(&mut rng, 3_000, several);
        fill(&mut rng, &mut writer, &mut documents, 1 + round, round >= 3);
        let searcher = index.searcher();
        for _ in 0..600 {
            let near = match rng.u8(..3) {
                0 => shapes::anywhere(&mut rng),
                1 => shapes::difficult(&mut rng),
                _ => {
                    let known = &documents[rng.usize(..documents.len())];
                    known.places.first().copied().unwrap_or(Place::new(0, 0))
                }
            };
            let shape = shapes::random(&mut rng, near);
            let expected: Vec<&str> = documents
                .iter()
                .filter(|known| known.places.iter().any(|place| shape.contains(*place)))
                .map(|known| known.key.as_str())
                .collect();
            let query = shape.query("spot");
            let request = SearchRequest::new(query.clone())
                .page_size(0)
                .total(TotalRequest::Exact);
            let counted = match searcher.search(&request, &Cancellation::none()) {
                Ok(counted) => counted.total.expect("a total").value,
                // Chance made edges that meet.
                Err(Error::InvalidQuery(_)) => {
                    refused += 1;
                    continue;
                }
                Err(error) => panic!("{error} {shape:?}"),
            };
            valid += 1;
            found += expected.len();
            assert_eq!(counted, expected.len() as u64, "{shape:?}");
            if expected.len() <= 1_000 {
                let mut sorted = expected.clone();
                sorted.sort_unstable();
                assert_eq!(keys(&index, query.clone()), sorted, "{shape:?}");
            }
            // Beside a clause that leads, and beside one that doesn't.
            for kind in ["kind7", "kind1"] {
                let both = Query::all(vec![query.clone(), Query::term("kind", kind)]);
                let request = SearchRequest::new(both).page_size(0).total(TotalRequest::Exact);
                let total = find(&searcher, &request).total.expect("a total").value;
                let expected = documents.iter().filter(|known| {
                    format!("kind{}", known.kind) == kind
                        && known.places.iter().any(|place| shape.contains(*place))
                });
                assert_eq!(total, expected.count() as u64, "{shape:?} {kind}");
            }
        }
    }
    println!("{valid} shapes, {refused} refused, {found} documents found");
    assert!(valid > 2_000 && found > 100_000);
}

/// The page of the nearest documents of a kind, and the next, and so on.
fn nearest_pages(searcher: &Searcher, request: &SearchRequest, pages: usize) -> Vec<(String, SortValue)> {
    let mut all = Vec::new();
    let mut token = None;
    for _ in 0..pages {
        let page = find(searcher, &request.clone().after(token));
        all.extend(page.hits.iter().map(|hit| {
            let key = String::from_utf8(hit.key.clone()).expect("keys are text");
            (key, hit.sort_values[0].clone())
        }));
        token = page.next_page_token;
        if token.is_none() {
            break;
        }
    }
    all
}

#[test]
fn the_nearest_documents_are_the_nearest_of_all() {
    let mut rng = random_numbers();
    for round in 0..4 {
        let several = round % 2 == 1;
        let (index, mut writer) = index(several);
        let mut documents = random_documents(&mut rng, 9_000, several);
        fill(&mut rng, &mut writer, &mut documents, 1 + round * 3, round >= 2);
        let searcher = index.searcher();
        for _ in 0..150 {
            let targets: Vec<Place> = (0..if rng.u8(..4) == 0 { rng.usize(2..6) } else { 1 })
                .map(|_| match rng.u8(..3) {
                    0 => shapes::anywhere(&mut rng),
                    1 => shapes::difficult(&mut rng),
                    _ => {
                        let known = &documents[rng.usize(..documents.len())];
                        let place = known.places.first().copied().unwrap_or(Place::new(0, 0));
                        shapes::around(&mut rng, place, 0.01)
                    }
                })
                .collect();
            let points: Vec<GeoPoint> = targets.iter().map(Place::point).collect();
            let within = 10f64.powf(rng.f64() * 6.0 + 1.0);
            let cheap = rng.i64(0..1_000);
            let (query, fits): (Query, Fits) = match rng.u8(..6) {
                0 => (Query::MatchAll, Box::new(|_| true)),
                1 => (Query::exists("spot"), Box::new(|known| !known.places.is_empty())),
                2 => (Query::term("kind", "kind7"), Box::new(|known| known.kind == 7)),
                3 => {
                    let upper = Bound::Included(QueryValue::Integer(cheap));
                    let query = Query::range("price", Bound::Unbounded, upper);
                    (query, Box::new(move |known| known.price <= cheap))
                }
                4 => {
                    let circle = Query::GeoDistance {
                        field: "spot".to_owned(),
                        center: points[0],
                        distance_meters: within,
                    };
                    let center = points[0];
                    let near = move |known: &Known| {
                        let mut places = known.places.iter();
                        places.any(|place| place.point().distance_meters(center) <= within)
                    };
                    (circle, Box::new(near))
                }
                _ => {
                    let query = Query::all(vec![Query::term("kind", "kind1"), Query::exists("spot")]);
                    (
                        query,
                        Box::new(|known| known.kind == 1 && !known.places.is_empty()),
                    )
                }
            };
            let mut expected: Vec<(Option<f64>, &str)> = documents
                .iter()
                .filter(|known| fits(known))
                .map(|known| {
                    let distances = known.places.iter().flat_map(|place| {
                        points
                            .iter()
                            .map(move |point| point.distance_meters(place.point()))
                    });
                    (distances.min_by(f64::total_cmp), known.key.as_str())
                })
                .collect();
            expected.sort_by(|one, other| {
                let key = |distance: Option<f64>| distance.unwrap_or(f64::INFINITY);
                key(one.0)
                    .total_cmp(&key(other.0))
                    .then_with(|| one.1.cmp(other.1))
            });
            let (size, pages) = [(1, 1), (20, 3), (100, 2)][rng.usize(..3)];
            let request = SearchRequest::new(query)
                .sorted(vec![Sort::GeoDistance {
                    field: "spot".to_owned(),
                    points,
                    descending: false,
                }])
                .page_size(size);
            let found = nearest_pages(&searcher, &request, pages);
            let expected: Vec<(String, SortValue)> = expected
                .into_iter()
                .take(size * pages)
                .map(|(distance, key)| {
                    let distance = distance.map_or(SortValue::Missing, SortValue::Double);
                    (key.to_owned(), distance)
                })
                .collect();
            assert_eq!(found, expected, "{targets:?} {:?}", request.query);
        }
    }
}

fn refusal(index: &Index, request: &SearchRequest) -> String {
    match index.searcher().search(request, &Cancellation::none()) {
        Err(error @ Error::InvalidQuery(_)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

/// A zigzag of 5,000 steep edges and the same one degree farther north: 10,000 vertices, all edges side by side.
fn zigzag() -> Vec<Place> {
    let line =
        |north: i64| (0..5_000).map(move |nth| Place::new((nth % 2) * 100_000_000 + north, nth * 20_000));
    line(0).chain(line(10_000_000).rev()).collect()
}

#[test]
fn large_questions_are_answered_or_refused_by_name() {
    let mut rng = random_numbers();
    let (index, mut writer) = index(false);
    let mut documents = random_documents(&mut rng, 4_000, false);
    for known in documents.iter_mut().step_by(2) {
        known.places = vec![Place::new(rng.i64(0..120_000_000), rng.i64(0..100_000_000))];
    }
    fill(&mut rng, &mut writer, &mut documents, 3, false);
    let searcher = index.searcher();
    let counted = |query: Query| {
        let request = SearchRequest::new(query).page_size(0).total(TotalRequest::Exact);
        find(&searcher, &request).total.expect("a total").value
    };
    let shape = slow::Shape::Polygon(zigzag());
    let inside = |known: &&Known| known.places.iter().any(|place| shape.contains(*place));
    let expected = documents.iter().filter(inside).count();
    assert!(expected > 50, "{expected}");
    assert_eq!(counted(shape.query("spot")), expected as u64);
    let mut vertices: Vec<GeoPoint> = zigzag().iter().map(Place::point).collect();
    vertices.push(vertices[0]);
    let field = || "spot".to_owned();
    let polygon = SearchRequest::new(Query::GeoPolygon {
        field: field(),
        vertices,
    });
    assert!(refusal(&index, &polygon).contains("MAX_POLYGON_VERTICES"));

    let with_place = documents.iter().filter(|known| !known.places.is_empty()).count() as u64;
    let half_the_earth = |distance_meters| Query::GeoDistance {
        field: field(),
        center: Place::new(0, 0).point(),
        distance_meters,
    };
    assert_eq!(counted(half_the_earth(20_037_508.0)), with_place);
    let larger = SearchRequest::new(half_the_earth(20_037_600.0));
    assert!(refusal(&index, &larger).contains("MAX_DISTANCE_METERS"));

    let nearest_to = |count: usize| {
        let points =
            (0..count).map(|nth| Place::new(nth as i64 * 5_000_000, nth as i64 * -20_000_000).point());
        let sort = Sort::GeoDistance {
            field: field(),
            points: points.collect(),
            descending: false,
        };
        SearchRequest::new(Query::exists("spot"))
            .sorted(vec![sort])
            .page_size(5)
    };
    let found = find(&searcher, &nearest_to(100));
    let Sort::GeoDistance { points, .. } = &nearest_to(100).sort[0] else {
        panic!("sorted by distance");
    };
    let distance = |known: &Known| {
        let place = known.places.first()?.point();
        points
            .iter()
            .map(|point| point.distance_meters(place))
            .min_by(f64::total_cmp)
    };
    let nearest = documents.iter().filter_map(distance).min_by(f64::total_cmp);
    assert_eq!(
        Some(found.hits[0].sort_values[0].clone()),
        nearest.map(SortValue::Double)
    );
    assert!(refusal(&index, &nearest_to(101)).contains("MAX_SORT_POINTS"));
}

#[test]
fn areas_and_nearest_searches_stop_when_they_are_told() {
    let mut rng = random_numbers();
    let (index, mut writer) = index(false);
    let mut documents = random_documents(&mut rng, 6_000, false);
    fill(&mut rng, &mut writer, &mut documents, 1, false);
    let cancelled = Cancellation::none();
    cancelled.cancel();
    let circle = Query::GeoDistance {
        field: "spot".to_owned(),
        center: Place::new(0, 0).point(),
        distance_meters: 9e6,
    };
    let near = Sort::GeoDistance {
        field: "spot".to_owned(),
        points: vec![Place::new(0, 0).point()],
        descending: false,
    };
    for request in [
        SearchRequest::new(circle.clone())
            .page_size(0)
            .total(TotalRequest::Exact),
        SearchRequest::new(circle).sorted(vec![near.clone()]),
        SearchRequest::new(Query::MatchAll).sorted(vec![near]),
    ] {
        let stopped = index.searcher().search(&request, &cancelled);
        assert!(matches!(stopped, Err(Error::Cancelled)), "{stopped:?}");
    }
}

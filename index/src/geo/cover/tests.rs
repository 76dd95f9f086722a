use std::collections::HashSet;

use h3o::{CellIndex, LatLng, Resolution};

use super::{CELL_RESOLUTIONS, MAX_CELLS, point_cells, reach};
use crate::geo::tests::{places, random_point, seeded};
use crate::geo::{Area, BoundingBox, Circle, GeoPoint, Polygon, haversine};

#[test]
fn every_point_is_within_reach_of_its_cells() {
    let mut random = seeded();
    let mut worst = [0.0f64; 10];
    // Vertices of the icosahedron (pentagons) and centres of its faces are where cells are smallest and largest.
    let near: Vec<GeoPoint> = CellIndex::base_cells()
        .flat_map(|cell| {
            let center = LatLng::from(cell);
            let corners = cell.boundary().iter().copied().collect::<Vec<_>>();
            corners
                .into_iter()
                .chain([center])
                .map(|at| GeoPoint::new(at.lat(), at.lng()).unwrap())
        })
        .collect();
    for round in 0..60_000 {
        let point = if round % 2 == 0 {
            random_point(&mut random)
        } else {
            let base = near[random.usize(..near.len())];
            let spread = 10f64.powf(random.f64() * 6.0 - 5.0);
            let latitude = (base.latitude() + (random.f64() - 0.5) * spread).clamp(-90.0, 90.0);
            let longitude = (base.longitude() + (random.f64() - 0.5) * spread).clamp(-180.0, 180.0);
            GeoPoint::new(latitude, longitude).unwrap()
        };
        let finest = CellIndex::try_from(point_cells(point)[2]).unwrap();
        for level in 0..=9u8 {
            let resolution = Resolution::try_from(level).unwrap();
            let center = LatLng::from(finest.parent(resolution).unwrap());
            let distance = haversine(
                (point.latitude(), point.longitude()),
                (center.lat(), center.lng()),
            );
            let part = distance / reach(resolution);
            worst[usize::from(level)] = worst[usize::from(level)].max(part);
        }
    }
    println!("farthest points, in parts of the reach: {worst:.3?}");
    assert!(worst.iter().all(|part| *part < 0.95), "{worst:?}");
}

#[test]
fn a_point_is_stored_under_parents_of_its_finest_cell() {
    let point = GeoPoint::new(30.2741, 120.1551).unwrap();
    let cells = point_cells(point).map(|cell| CellIndex::try_from(cell).unwrap());
    assert_eq!(cells.map(CellIndex::resolution), CELL_RESOLUTIONS);
    assert_eq!(cells[2].parent(Resolution::Five), Some(cells[0]));
    let poles = [-180.0, 0.0, 57.0].map(|longitude| point_cells(GeoPoint::new(90.0, longitude).unwrap()));
    assert!(poles[0] == poles[1] && poles[1] == poles[2]);
}

/// A random area of any kind and size around `near`, or none where chance made no valid one.
fn random_area(random: &mut fastrand::Rng, near: GeoPoint) -> Option<Area> {
    let size = 10f64.powf(random.f64() * 7.0 - 4.5);
    let mut vertex = |scale: f64| {
        let latitude = (near.latitude() + (random.f64() - 0.5) * scale).clamp(-90.0, 90.0);
        let mut longitude = near.longitude() + (random.f64() - 0.5) * scale * 2.0;
        longitude = (longitude + 540.0).rem_euclid(360.0) - 180.0;
        GeoPoint::new(latitude, longitude).unwrap()
    };
    let corners: Vec<GeoPoint> = (0..8).map(|_| vertex(size)).collect();
    match random.usize(..8) {
        0 => Some(Area::Circle(Circle::new(near, 0.0).unwrap())),
        1 => Some(Area::Circle(Circle::new(near, 2e7 + random.f64() * 1e5).unwrap())),
        2 | 3 => Some(Area::Circle(Circle::new(corners[0], size * 111_000.0).unwrap())),
        4 | 5 => {
            let (a, b) = (corners[0], corners[1]);
            let (top, bottom) = if a.lat_e7 >= b.lat_e7 { (a, b) } else { (b, a) };
            BoundingBox::new(top, bottom).ok().map(Area::Box)
        }
        6 => Polygon::new(&corners[..random.usize(3..=6)])
            .ok()
            .map(Area::Polygon),
        _ => {
            // A ring around the pole that is nearer.
            let pole = if near.lat_e7 >= 0 { 90.0 } else { -90.0 };
            let mut longitudes: Vec<f64> = (0..7).map(|_| random.f64() * 360.0 - 180.0).collect();
            longitudes.sort_by(f64::total_cmp);
            let reach = size.min(80.0);
            let ring: Vec<GeoPoint> = longitudes
                .iter()
                .map(|longitude| {
                    let latitude = pole - f64::signum(pole) * reach * (0.2 + 0.8 * random.f64());
                    GeoPoint::new(latitude, *longitude).unwrap()
                })
                .collect();
            Polygon::new(&ring).ok().map(Area::Polygon)
        }
    }
}

#[test]
fn looking_up_and_verifying_finds_what_comparing_every_point_finds() {
    let mut random = seeded();
    let (mut covered, mut verified_all, mut found, mut unchecked) = (0, 0, 0, 0);
    for round in 0..1_500 {
        let fixed = places();
        let near = if round % 2 == 0 {
            random_point(&mut random)
        } else {
            fixed[random.usize(..fixed.len())]
        };
        let Some(area) = random_area(&mut random, near) else {
            continue;
        };
        let points: Vec<GeoPoint> = (0..250)
            .map(|at| match at {
                0 => near,
                1 => GeoPoint::new(
                    -near.latitude(),
                    near.longitude() - 180.0 * f64::signum(near.longitude()),
                )
                .unwrap(),
                2..200 => {
                    let spread = 10f64.powf(random.f64() * 7.0 - 5.0);
                    let latitude = near.latitude() + (random.f64() - 0.5) * spread;
                    let longitude = near.longitude() + (random.f64() - 0.5) * spread * 2.0;
                    let longitude = (longitude + 540.0).rem_euclid(360.0) - 180.0;
                    GeoPoint::new(latitude.clamp(-90.0, 90.0), longitude).unwrap()
                }
                _ => random_point(&mut random),
            })
            .collect();
        for point in &points {
            if area.contains(*point) {
                assert!(
                    area.latitudes().contains(&i64::from(point.lat_e7)),
                    "{area:?} {point:?}"
                );
            }
        }
        let Some(cover) = area.cover() else {
            verified_all += 1;
            continue;
        };
        covered += 1;
        assert!(cover.accepted.len() + cover.to_verify.len() <= MAX_CELLS);
        let accepted: HashSet<u64> = cover.accepted.iter().copied().collect();
        let to_verify: HashSet<u64> = cover.to_verify.iter().copied().collect();
        assert_eq!(accepted.len(), cover.accepted.len());
        assert_eq!(to_verify.len(), cover.to_verify.len());
        for point in points {
            let cells = point_cells(point);
            let looked_up = cells.iter().filter(|cell| accepted.contains(cell)).count();
            let verified = cells.iter().filter(|cell| to_verify.contains(cell)).count();
            assert!(looked_up + verified <= 1, "{area:?} {point:?} is found twice");
            let by_cover = looked_up == 1 || (verified == 1 && area.contains(point));
            assert_eq!(by_cover, area.contains(point), "{area:?} {point:?}");
            found += usize::from(by_cover);
            unchecked += looked_up;
        }
    }
    println!("covered {covered}, verified all {verified_all}, found {found}, of these unchecked {unchecked}");
    assert!(covered > 300 && verified_all > 50 && found > 5_000 && unchecked > 500);
}

#[test]
fn small_areas_take_few_cells() {
    let center = GeoPoint::new(30.2741, 120.1551).unwrap();
    for (radius, accepted, to_verify) in [
        (100.0, 0, 20),
        (1_000.0, 10, 150),
        (5_000.0, 5, 100),
        (50_000.0, 5, 120),
    ] {
        let cover = Area::Circle(Circle::new(center, radius).unwrap())
            .cover()
            .unwrap();
        println!(
            "{radius} m: {} accepted, {} to verify",
            cover.accepted.len(),
            cover.to_verify.len()
        );
        assert!(cover.accepted.len() >= accepted, "{radius}");
        assert!(cover.to_verify.len() <= to_verify, "{radius}");
    }
    assert_eq!(
        Area::Circle(Circle::new(center, 2_000_000.0).unwrap()).cover(),
        None
    );
}

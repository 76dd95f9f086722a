use super::{GridCell, GridLevel, LEVELS, point_cells};
use crate::geo::stretch::{RectangleRelation, Stretch};
use crate::geo::tests::{places, random_point, seeded};
use crate::geo::{Area, BoundingBox, Circle, FULL_TURN, GeoPoint, HALF_TURN, Polygon};

fn point(latitude: f64, longitude: f64) -> GeoPoint {
    GeoPoint::new(latitude, longitude).unwrap()
}

#[test]
fn cells_nest_and_their_numbers_run_along_rows() {
    let mut random = seeded();
    for round in 0..2_000 {
        let here = if round % 2 == 0 {
            random_point(&mut random)
        } else {
            places()[random.usize(..places().len())]
        };
        let (latitude, longitude) = (here.lat(), here.lon());
        let cells: Vec<GridCell> = GridLevel::all()
            .map(|level| level.cell(latitude, longitude))
            .collect();
        assert_eq!(cells.len(), LEVELS);
        for (cell, number) in cells.iter().zip(point_cells(here)) {
            let around = cell.rectangle();
            assert_eq!((cell.number(), GridCell::column(number)), (number, cell.column));
            assert!((around.south..=around.north).contains(&latitude), "{here:?}");
            assert!(around.longitudes.contains(longitude), "{here:?}");
            let row = cell.level.numbers(cell.row, &(0..=cell.column));
            assert_eq!(row.end() - row.start(), cell.column as u64);
        }
        for pair in cells.windows(2) {
            let (larger, smaller) = (pair[0], pair[1]);
            assert_eq!(larger.level.finer(), Some(smaller.level));
            let inside = |place| smaller.level.inside(larger.level, place);
            assert!(
                inside(larger.row).contains(&smaller.row) && inside(larger.column).contains(&smaller.column)
            );
        }
    }
    let numbers =
        [GridLevel::all().next(), GridLevel::all().last()].map(|level| level.unwrap().numbers(3, &(0..=9)));
    assert!(numbers[0].end() < numbers[1].start());
}

#[test]
fn a_stretch_takes_its_columns_once() {
    let mut random = seeded();
    for _ in 0..5_000 {
        let stretch = Stretch {
            west: random.i64(-HALF_TURN..HALF_TURN),
            width: match random.u8(..4) {
                0 => random.i64(0..1_000),
                1 => FULL_TURN - random.i64(0..1_000),
                _ => random.i64(0..=FULL_TURN),
            },
        };
        for level in GridLevel::all() {
            let ranges: Vec<_> = level.columns(&stretch).collect();
            for _ in 0..8 {
                let longitude = random.i64(-HALF_TURN..HALF_TURN);
                let column = level.cell(0, longitude).column;
                let times = ranges.iter().filter(|range| range.contains(&column)).count();
                assert!(
                    times <= 1 && (times == 1 || !stretch.contains(longitude)),
                    "{stretch:?}"
                );
            }
        }
    }
}

/// A random area of any kind and size around `near`, or none where chance made no valid one.
fn random_area(random: &mut fastrand::Rng, near: GeoPoint) -> Option<Area> {
    let size = 10f64.powf(random.f64() * 7.0 - 4.5);
    let mut vertex = |scale: f64| {
        let latitude = (near.latitude() + (random.f64() - 0.5) * scale).clamp(-90.0, 90.0);
        let longitude = near.longitude() + (random.f64() - 0.5) * scale * 2.0;
        point(latitude, (longitude + 540.0).rem_euclid(360.0) - 180.0)
    };
    let corners: Vec<GeoPoint> = (0..8).map(|_| vertex(size)).collect();
    match random.usize(..9) {
        0 => Circle::new(near, 0.0).ok().map(Area::Circle),
        1 => Circle::new(near, 2e7 + random.f64() * 1e5).ok().map(Area::Circle),
        // Through a pole, or nearly.
        2 => {
            let pole = point(if random.bool() { 90.0 } else { -90.0 }, 0.0);
            let off = (random.f64() - 0.5) * 10f64.powf(random.f64() * 8.0 - 4.0);
            Circle::new(near, (near.distance_meters(pole) + off).max(0.0))
                .ok()
                .map(Area::Circle)
        }
        3 | 4 => Circle::new(corners[0], size * 111_000.0).ok().map(Area::Circle),
        5 | 6 => {
            let (a, b) = (corners[0], corners[1]);
            let (top, bottom) = if a.lat_e7 >= b.lat_e7 { (a, b) } else { (b, a) };
            BoundingBox::new(top, bottom).ok().map(Area::Box)
        }
        7 => Polygon::new(&corners[..random.usize(3..=6)])
            .ok()
            .map(Area::Polygon),
        _ => {
            // A ring around the pole that is nearer.
            let pole = if near.lat_e7 >= 0 { 90.0 } else { -90.0 };
            let mut longitudes: Vec<f64> = (0..7).map(|_| random.f64() * 360.0 - 180.0).collect();
            longitudes.sort_by(f64::total_cmp);
            let reach = size.min(80.0);
            let ring = longitudes.iter().map(|longitude| {
                let latitude = pole - f64::signum(pole) * reach * (0.2 + 0.8 * random.f64());
                point(latitude, *longitude)
            });
            Polygon::new(&ring.collect::<Vec<_>>()).ok().map(Area::Polygon)
        }
    }
}

#[test]
fn what_is_known_of_a_cell_is_true_of_its_points() {
    let mut random = seeded();
    let mut told = [0; 3];
    for round in 0..6_000 {
        let fixed = places();
        let near = if round % 2 == 0 {
            random_point(&mut random)
        } else {
            fixed[random.usize(..fixed.len())]
        };
        let Some(area) = random_area(&mut random, near) else {
            continue;
        };
        let latitudes = area.region().latitudes();
        for nth in 0..40 {
            let here = match nth {
                0 => near,
                1 => point(
                    -near.latitude(),
                    near.longitude() - 180.0 * f64::signum(near.longitude()),
                ),
                2..30 => {
                    let spread = 10f64.powf(random.f64() * 7.0 - 5.0);
                    let latitude = near.latitude() + (random.f64() - 0.5) * spread;
                    let longitude = near.longitude() + (random.f64() - 0.5) * spread * 2.0;
                    point(
                        latitude.clamp(-90.0, 90.0),
                        (longitude + 540.0).rem_euclid(360.0) - 180.0,
                    )
                }
                _ => random_point(&mut random),
            };
            let (latitude, longitude) = (here.lat(), here.lon());
            let contained = area.contains(here);
            assert!(!contained || latitudes.contains(&latitude), "{area:?} {here:?}");
            for level in GridLevel::all() {
                let cell = level.cell(latitude, longitude);
                let (south, north) = level.latitudes(cell.row);
                let band = area.region().band(south, north);
                let relation = area.region().relation(&cell.rectangle(), &band);
                match relation {
                    RectangleRelation::Inside => assert!(contained, "{area:?} {here:?} {cell:?}"),
                    RectangleRelation::Outside => assert!(!contained, "{area:?} {here:?} {cell:?}"),
                    RectangleRelation::Mixed => {}
                }
                told[relation as usize] += 1;
                if contained {
                    assert!(level.rows(&latitudes).contains(&cell.row), "{area:?} {here:?}");
                    let touched = band.touched.unwrap();
                    assert!(
                        level
                            .columns(&touched)
                            .any(|columns| columns.contains(&cell.column)),
                        "{area:?} {here:?}"
                    );
                }
            }
        }
    }
    println!("inside, outside, mixed: {told:?}");
    assert!(told.iter().all(|times| *times > 1_000), "{told:?}");
}

#[test]
fn walks_begin_with_few_cells() {
    let level = |area: &Area| {
        let region = area.region();
        GridLevel::beginning(&region.latitudes(), region.longitudes().width).nth
    };
    for (meters, expected) in [
        (100.0, 3),
        (1_000.0, 3),
        (20_000.0, 2),
        (100_000.0, 1),
        (500_000.0, 0),
        (8_000_000.0, 0),
    ] {
        let circle = Area::Circle(Circle::new(point(30.2741, 120.1551), meters).unwrap());
        assert_eq!(level(&circle), expected, "{meters}");
    }
    // Low, but around the globe.
    let equator = BoundingBox::new(point(0.001, -180.0), point(-0.001, 180.0)).unwrap();
    assert_eq!(level(&Area::Box(equator)), 1);
}

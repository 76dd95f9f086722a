//! Distances from some points.

use tantivy::columnar::MonotonicallyMappableToU64;
use tantivy::{DocId, Score};

use super::column::Values;
use crate::geo::{Circle, GeoPoint, Region, Stretch};
use crate::points::Points;

/// Number of points from which on comparing chords first is quicker than computing every distance.
const MANY_TARGETS: usize = 3;
/// Relative and absolute tolerance of a squared chord, on the unit sphere, against rounding: far more than rounding can be off.
const SLACK: (f64, f64) = (1e-9, 1e-18);

/// The points from which distances are measured.
#[derive(Debug)]
pub(super) struct Targets {
    pub(super) points: Vec<GeoPoint>,
    /// The same on the unit sphere.
    directions: Vec<[f64; 3]>,
}

impl Targets {
    pub(super) fn new(points: &[GeoPoint]) -> Self {
        Self {
            points: points.to_vec(),
            directions: points.iter().map(|point| point.direction()).collect(),
        }
    }

    /// Metres to the nearest of them, as [`GeoPoint::distance_meters`] has it.
    fn distance(&self, here: GeoPoint) -> Option<f64> {
        let exact = |points: &mut dyn Iterator<Item = &GeoPoint>| {
            let distances = points.map(|there| there.distance_meters(here));
            distances.min_by(f64::total_cmp)
        };
        if self.points.len() < MANY_TARGETS {
            return exact(&mut self.points.iter());
        }
        let from = here.direction();
        let chord = |to: &[f64; 3]| {
            let parts = from.iter().zip(to).map(|(a, b)| (a - b) * (a - b));
            parts.sum::<f64>()
        };
        let nearest = self.directions.iter().map(chord).min_by(f64::total_cmp)?;
        let enough = nearest * (1.0 + SLACK.0) + SLACK.1;
        let near = self.points.iter().zip(&self.directions);
        let mut near = near
            .filter(|(_, direction)| chord(direction) <= enough)
            .map(|(point, _)| point);
        exact(&mut near)
    }
}

/// The distance of a document's nearest point to the nearest of some points.
pub(super) struct Distances {
    points: Points,
    pub(super) targets: Targets,
}

impl Distances {
    pub(super) fn new(points: Points, targets: Targets) -> Self {
        Self { points, targets }
    }

    /// In metres; `None` without a point.
    pub(super) fn of(&self, doc: DocId) -> Option<f64> {
        let distances = self.points.of(doc).filter_map(|here| self.targets.distance(here));
        distances.min_by(f64::total_cmp)
    }

    /// Whether a document can be within a distance: there are no false negatives.
    pub(super) fn may_be_within(&self, doc: DocId, boxes: &BoundingBoxes) -> bool {
        self.points.of(doc).any(|here| boxes.contain(here))
    }
}

impl Values for Distances {
    fn value(&mut self, doc: DocId, _: Score) -> Option<u64> {
        self.of(doc).map(MonotonicallyMappableToU64::to_u64)
    }
}

/// Bounding boxes of circles around the targets: compared as integers, they spare most distances.
#[derive(Debug)]
pub(super) struct BoundingBoxes {
    pub(super) meters: f64,
    rectangles: Vec<(i64, i64, Stretch)>,
}

impl BoundingBoxes {
    pub(super) fn new(targets: &Targets, meters: f64) -> Self {
        let circles = targets.points.iter();
        let circles = circles.filter_map(|center| Circle::new(*center, meters).ok());
        Self {
            meters,
            rectangles: circles
                .map(|circle| {
                    let latitudes = circle.latitudes();
                    (*latitudes.start(), *latitudes.end(), circle.longitudes())
                })
                .collect(),
        }
    }

    fn contain(&self, point: GeoPoint) -> bool {
        let (latitude, longitude) = (point.lat(), point.lon());
        self.rectangles.iter().any(|(south, north, longitudes)| {
            (south..=north).contains(&&latitude) && longitudes.contains(longitude)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chords_choose_the_nearest_of_many_points() {
        let mut random = souk_seeds::random();
        for round in 0..2_000 {
            // Some tightly together, some all over the globe.
            let spread = 10f64.powf(random.f64() * 8.0 - 6.0);
            let mut point = || {
                let latitude = ((random.f64() - 0.5) * spread * 90.0).clamp(-90.0, 90.0);
                GeoPoint::new(
                    latitude,
                    ((random.f64() - 0.5) * spread * 180.0).clamp(-180.0, 180.0),
                )
                .expect("in range")
            };
            let points: Vec<GeoPoint> = (0..1 + round % 20).map(|_| point()).collect();
            let here = point();
            let expected = points.iter().map(|there| there.distance_meters(here));
            let expected = expected.min_by(f64::total_cmp);
            assert_eq!(
                Targets::new(&points).distance(here),
                expected,
                "{points:?} {here:?}"
            );
        }
    }

    #[test]
    fn bounding_boxes_let_in_whatever_is_near() {
        for center in [(0.0, 0.0), (89.9999, 10.0), (-45.0, 179.9999), (90.0, 0.0)] {
            let targets = Targets::new(&[GeoPoint::new(center.0, center.1).expect("in range")]);
            for meters in [0.0, 1.0, 5_000.0, 9_000_000.0, 20_100_000.0] {
                let boxes = BoundingBoxes::new(&targets, meters);
                for nth in 0..1_000_u32 {
                    let (row, column) = (f64::from(nth % 40), f64::from(nth / 40));
                    let spread = (meters / 111_000.0).clamp(1e-5, 180.0);
                    let latitude = (center.0 + (row - 20.0) / 20.0 * spread).clamp(-90.0, 90.0);
                    let longitude = center.1 + (column - 12.0) / 12.0 * spread;
                    let here = GeoPoint::new(latitude, (longitude + 540.0).rem_euclid(360.0) - 180.0)
                        .expect("in range");
                    if targets.distance(here).is_some_and(|distance| distance <= meters) {
                        assert!(boxes.contain(here), "{center:?} {meters} {here:?}");
                    }
                }
            }
        }
    }
}

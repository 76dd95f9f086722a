//! The middle of points while it is found.

use super::column::{ValueBlock, point_of_number};
use crate::geo::GeoPoint;

/// Units of a coordinate on the unit sphere: as fine as a double just below 1. Sums of whole numbers are the same in
/// whatever order points come, so a result doesn't depend on how documents lie in segments.
const UNITS: f64 = 9_007_199_254_740_992.0;
/// A sum of directions that is shorter than this part of their number has no direction: what is left of it is rounding.
const LEAST_LENGTH: f64 = 1e-12;

/// The sum of points, as directions from the centre of the globe.
#[derive(Clone, Copy, Default)]
pub(super) struct Centroid {
    pub(super) count: u64,
    /// Towards latitude and longitude 0, longitude 90, and the north pole.
    sum: [i128; 3],
}

impl Centroid {
    fn add(&mut self, point: GeoPoint) {
        self.count += 1;
        for (sum, part) in self.sum.iter_mut().zip(point.direction()) {
            // Truncated: rounding takes three times as long.
            *sum += i128::from((part * UNITS) as i64);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.count += other.count;
        for (sum, more) in self.sum.iter_mut().zip(other.sum) {
            *sum += more;
        }
    }

    /// The point in the middle; none without points, or where they cancel each other out.
    pub(super) fn point(&self) -> Option<GeoPoint> {
        let [ahead, east, north] = self.sum.map(|sum| sum as f64 / UNITS);
        let outwards = ahead.hypot(east);
        if outwards.hypot(north) <= LEAST_LENGTH * self.count as f64 {
            return None;
        }
        let latitude = north.atan2(outwards).to_degrees();
        GeoPoint::new(latitude, east.atan2(ahead).to_degrees()).ok()
    }
}

pub(super) fn add(centroids: &mut [Centroid], block: ValueBlock<'_>) {
    for (number, slot) in block.values.iter().zip(block.slots) {
        if let Some(centroid) = centroids.get_mut(*slot as usize) {
            centroid.add(point_of_number(*number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn middle(points: &[(f64, f64)]) -> Option<(f64, f64)> {
        let mut centroid = Centroid::default();
        for (latitude, longitude) in points {
            centroid.add(GeoPoint::new(*latitude, *longitude).expect("in range"));
        }
        assert_eq!(centroid.count, points.len() as u64);
        centroid
            .point()
            .map(|point| (point.latitude(), point.longitude()))
    }

    #[test]
    fn the_middle_lies_between_the_points_also_across_the_antimeridian_and_a_pole() {
        assert_eq!(middle(&[(30.274_1, 120.155_1)]), Some((30.274_1, 120.155_1)));
        assert_eq!(
            middle(&[(10.0, 20.0), (10.0, 20.0), (-10.0, 20.0)]).map(|at| at.1),
            Some(20.0)
        );
        assert_eq!(middle(&[(0.0, 10.0), (0.0, 30.0)]), Some((0.0, 20.0)));
        assert_eq!(middle(&[(0.0, 179.0), (0.0, -177.0)]), Some((0.0, -179.0)));
        assert_eq!(middle(&[(0.0, 180.0), (0.0, -180.0)]), Some((0.0, -180.0)));
        assert_eq!(middle(&[(80.0, 90.0), (60.0, -90.0)]), Some((80.0, -90.0)));
        assert_eq!(
            middle(&[(89.0, 0.0), (89.0, 90.0), (89.0, 180.0), (89.0, -90.0)]).map(|at| at.0),
            Some(90.0)
        );
    }

    #[test]
    fn points_that_cancel_each_other_out_have_no_middle() {
        assert_eq!(middle(&[]), None);
        assert_eq!(middle(&[(90.0, 0.0), (-90.0, 12.0)]), None);
        assert_eq!(middle(&[(12.3, 45.6), (-12.3, -134.4)]), None);
        assert_eq!(middle(&[(0.0, 0.0), (0.0, 120.0), (0.0, -120.0)]), None);
    }

    #[test]
    fn the_order_of_points_makes_no_difference() {
        let points: Vec<_> = (0..1_000)
            .map(|nth| {
                (
                    f64::from(nth * 7_919 % 179) - 89.0,
                    f64::from(nth * 104_729 % 359) - 179.0,
                )
            })
            .collect();
        let mut halves = [Centroid::default(); 2];
        for (nth, (latitude, longitude)) in points.iter().enumerate() {
            halves[nth % 2].add(GeoPoint::new(*latitude, *longitude).expect("in range"));
        }
        let [mut one, other] = halves;
        one.merge(&other);
        let merged = one.point().map(|point| (point.latitude(), point.longitude()));
        assert_eq!(merged, middle(&points));
    }
}

//! The middle of points while it is found.

use std::sync::LazyLock;

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

/// Units of 1e-7 degrees from one angle of [`SINES`] to the next, about 0.42 degrees, as a power of two.
const STEP_BITS: u32 = 22;
/// Steps of a half turn, rounded up.
const HALF_TURN_STEPS: i64 = 430;
/// Radians of a unit.
const UNIT: f64 = std::f64::consts::PI / 1.8e9;

/// Sine and cosine of every step of a turn, from -180 degrees on: with those of what lies between by their series, cut off
/// after the fifth power below 1e-17, they take a quarter of the time of the general functions.
static SINES: LazyLock<Vec<(f64, f64)>> = LazyLock::new(|| {
    let units = (-HALF_TURN_STEPS..=HALF_TURN_STEPS).map(|step| step << STEP_BITS);
    units.map(|units| (units as f64 * UNIT).sin_cos()).collect()
});

/// Sine and cosine of a coordinate of so many units.
fn sin_cos(units: i64) -> (f64, f64) {
    let step = (units + (1 << (STEP_BITS - 1))) >> STEP_BITS;
    let place = usize::try_from(step + HALF_TURN_STEPS).unwrap_or_default();
    let (sine, cosine) = SINES.get(place).copied().unwrap_or_default();
    let rest = (units - (step << STEP_BITS)) as f64 * UNIT;
    let square = rest * rest;
    let small = rest * (1.0 - square / 6.0 * (1.0 - square / 20.0));
    let versine = square / 2.0 * (1.0 - square / 12.0);
    let turned = |part: f64, other: f64| part + (other * small - part * versine);
    (turned(sine, cosine), turned(cosine, -sine))
}

impl Centroid {
    fn add(&mut self, point: GeoPoint) {
        self.count += 1;
        let (north, outwards) = sin_cos(point.lat());
        let (east, ahead) = sin_cos(point.lon());
        let direction = [outwards * ahead, outwards * east, north];
        for (sum, part) in self.sum.iter_mut().zip(direction) {
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
    fn sines_are_those_of_the_general_functions() {
        let ends = [-1_800_000_000, -900_000_000, 0, 900_000_000, 1_799_999_999];
        for units in (-1_800_000_000..1_800_000_000).step_by(99_991).chain(ends) {
            let (sine, cosine) = sin_cos(units);
            let expected = (units as f64 / 1e7).to_radians().sin_cos();
            let error = (sine - expected.0).abs().max((cosine - expected.1).abs());
            // Both angles are rounded: near a half turn by 2e-16 each.
            assert!(error < 1e-15, "{units}: {error}");
        }
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

//! Geohashes: cells of a point that are named by up to 12 characters, each of which halves the cell before five times, in turn by
//! longitude and latitude.

use super::{GeoPoint, HALF_TURN, QUARTER_TURN};

/// The characters, by the number of what they stand for.
const CHARACTERS: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
/// Bits of a character.
const BITS: u32 = 5;

/// Bits of a coordinate in a geohash of 12 characters.
const HALVINGS: u32 = 30;

/// The bits of the geohash of so many characters, at most 12, that a point lies in, the first bit highest.
pub(crate) fn of_point(point: GeoPoint, characters: u8) -> u64 {
    // Where it is between the ends, as a number of the smallest cells. The pole lies in the last one.
    let cells = |place: i64, end: i64| ((place + end) << HALVINGS) / (2 * end);
    let by_longitude = cells(point.lon(), HALF_TURN);
    let by_latitude = cells(point.lat(), QUARTER_TURN).min((1 << HALVINGS) - 1);
    let bits = (0..HALVINGS).rev().fold(0, |bits, nth| {
        bits << 2 | (by_longitude >> nth & 1) << 1 | by_latitude >> nth & 1
    });
    bits as u64 >> (2 * HALVINGS - BITS * u32::from(characters))
}

/// The geohash of bits that [`of_point`] gave.
pub(crate) fn name(bits: u64, characters: u8) -> String {
    let characters = (0..u32::from(characters)).rev();
    let of = characters.map(|nth| CHARACTERS[(bits >> (BITS * nth) & 31) as usize]);
    of.map(char::from).collect()
}

/// The cell of a geohash, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GeohashCell {
    /// Its lower latitude.
    pub south: f64,
    /// Its upper latitude.
    pub north: f64,
    /// Its lower longitude.
    pub west: f64,
    /// Its upper longitude: 180 at the date line, which no [`GeoPoint`] has.
    pub east: f64,
}

/// The cell of a geohash; `None` of what is no geohash of up to 12 characters.
#[must_use]
pub fn cell(geohash: &str) -> Option<GeohashCell> {
    if geohash.is_empty() || geohash.len() > 12 {
        return None;
    }
    let mut cell = GeohashCell {
        south: -90.0,
        north: 90.0,
        west: -180.0,
        east: 180.0,
    };
    let mut by_longitude = true;
    for character in geohash.bytes() {
        let number = CHARACTERS.iter().position(|known| *known == character)?;
        for bit in (0..BITS).rev() {
            let (low, high) = match by_longitude {
                true => (&mut cell.west, &mut cell.east),
                false => (&mut cell.south, &mut cell.north),
            };
            let middle = (*low + *high) / 2.0;
            *if number >> bit & 1 == 1 { low } else { high } = middle;
            by_longitude = !by_longitude;
        }
    }
    Some(cell)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_lie_in_their_geohashes() {
        // Of geohash.org and of Wikipedia's article.
        for (latitude, longitude, geohash) in [
            (57.64911, 10.40744, "u4pruydqqvj8"),
            (42.6, -5.6, "ezs42e44yx96"),
            (-25.382_708, -49.265_506, "6gkzwgjzn820"),
            (0.0, 0.0, "s00000000000"),
            (-90.0, -180.0, "000000000000"),
        ] {
            let point = GeoPoint::new(latitude, longitude).expect("on the globe");
            for characters in 1..=12 {
                let found = name(of_point(point, characters), characters);
                let expected = &geohash[..usize::from(characters)];
                // The last characters of the articles' are of other digits than their coordinates have.
                if characters <= 9 {
                    assert_eq!(found, expected);
                }
                let cell = cell(&found).expect("a geohash");
                let near = 1e-6;
                assert!(cell.south - near <= latitude && latitude <= cell.north + near);
                assert!(cell.west - near <= longitude && longitude <= cell.east + near);
            }
        }
        for none in ["a", "", "0000000000000"] {
            assert_eq!(cell(none), None);
        }
    }

    #[test]
    fn points_at_the_ends_lie_in_cells_at_the_ends() {
        for (latitude, longitude, geohash) in [
            (90.0, 179.999_999_9, "zzzzzzzz"),
            (90.0, 0.0, "upbpbpbp"),
            (-90.0, 180.0, "00000000"),
        ] {
            let point = GeoPoint::new(latitude, longitude).expect("on the globe");
            assert_eq!(name(of_point(point, 8), 8), geohash);
        }
        let last = cell("z").expect("a geohash");
        assert_eq!(
            (last.south, last.north, last.west, last.east),
            (45.0, 90.0, 135.0, 180.0)
        );
    }
}

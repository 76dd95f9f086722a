//! Geohashes: cells of a point that are named by up to 12 characters, each of which halves the cell before five times, in turn by
//! longitude and latitude.

use super::{GeoPoint, HALF_TURN, QUARTER_TURN};

/// The characters, by the number of what they stand for.
const CHARACTERS: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
/// Bits of a character.
const BITS: u32 = 5;

/// The bits of the geohash of so many characters that a point lies in, the first bit highest.
pub(crate) fn of_point(point: GeoPoint, characters: u8) -> u64 {
    let (mut south, mut north) = (-i128::from(QUARTER_TURN), i128::from(QUARTER_TURN));
    let (mut west, mut east) = (-i128::from(HALF_TURN), i128::from(HALF_TURN));
    let mut bits = 0;
    // By doubling: halves of 1e-7 degrees are exact.
    let (latitude, longitude) = (i128::from(point.lat()) << SCALE, i128::from(point.lon()) << SCALE);
    for end in [&mut south, &mut north, &mut west, &mut east] {
        *end <<= SCALE;
    }
    for nth in 0..BITS * u32::from(characters) {
        let (low, high, place) = match nth % 2 {
            0 => (&mut west, &mut east, longitude),
            _ => (&mut south, &mut north, latitude),
        };
        let middle = (*low + *high) / 2;
        let is_upper = place >= middle;
        *if is_upper { low } else { high } = middle;
        bits = bits << 1 | u64::from(is_upper);
    }
    bits
}

/// Halvings of one coordinate that leave integers.
const SCALE: u32 = 32;

/// The geohash of bits that [`of_point`] gave.
pub(crate) fn name(bits: u64, characters: u8) -> String {
    let characters = (0..u32::from(characters)).rev();
    let of = characters.map(|nth| CHARACTERS[(bits >> (BITS * nth) & 31) as usize]);
    of.map(char::from).collect()
}

/// The corners of the cell of a geohash: its north-western and its south-eastern one; `None` of what is no geohash of up to 12
/// characters.
#[must_use]
pub fn corners(geohash: &str) -> Option<(GeoPoint, GeoPoint)> {
    if geohash.is_empty() || geohash.len() > 12 {
        return None;
    }
    let ([mut south, mut north], [mut west, mut east]) = ([-90.0, 90.0], [-180.0, 180.0]);
    let mut by_longitude = true;
    for character in geohash.bytes() {
        let number = CHARACTERS.iter().position(|known| *known == character)?;
        for bit in (0..BITS).rev() {
            let (low, high) = match by_longitude {
                true => (&mut west, &mut east),
                false => (&mut south, &mut north),
            };
            let middle: f64 = (*low + *high) / 2.0;
            *if number >> bit & 1 == 1 { low } else { high } = middle;
            by_longitude = !by_longitude;
        }
    }
    GeoPoint::new(north, west)
        .ok()
        .zip(GeoPoint::new(south, east).ok())
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
                let (top_left, bottom_right) = corners(&found).expect("a geohash");
                let near = 1e-6;
                assert!(top_left.latitude() + near >= latitude && bottom_right.latitude() - near <= latitude);
                assert!(
                    top_left.longitude() - near <= longitude && longitude <= bottom_right.longitude() + near
                );
            }
        }
        assert_eq!(corners("a"), None);
        assert_eq!(corners(""), None);
        assert_eq!(corners("0000000000000"), None);
    }
}

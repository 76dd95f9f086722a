//! Exact numbers: every integer and every double is a whole number of the least double, 2^-1074.

use std::cmp::Ordering;

use num_bigint::{BigInt, BigUint, Sign};
use souk_index::{FieldValue, QueryValue};

/// Units of an exact number in 1: 2 to the power of this.
const FRACTION_BITS: i64 = 1_074;

/// An integer, exactly.
pub(crate) fn integer(number: i64) -> BigInt {
    BigInt::from(number) << FRACTION_BITS
}

/// A finite double, exactly.
pub(crate) fn double(number: f64) -> BigInt {
    let bits = number.to_bits();
    let (exponent, fraction) = ((bits >> 52) & 0x7ff, bits & ((1 << 52) - 1));
    let units = if exponent == 0 {
        BigInt::from(fraction)
    } else {
        BigInt::from(fraction | (1 << 52)) << (exponent - 1)
    };
    if number < 0.0 { -units } else { units }
}

/// The number of a value of a document; times are nanoseconds.
pub(crate) fn of_field(value: &FieldValue) -> BigInt {
    match value {
        FieldValue::Long(number) | FieldValue::Date(number) => integer(*number),
        FieldValue::Double(number) => double(*number),
        other => panic!("no number: {other:?}"),
    }
}

/// The number of a value of a query.
pub(crate) fn of_query(value: &QueryValue) -> BigInt {
    match value {
        QueryValue::Integer(number) | QueryValue::Time(number) => integer(*number),
        QueryValue::Double(number) => double(*number),
        other => panic!("no number: {other:?}"),
    }
}

/// Compares numbers of any two types.
pub(crate) fn compare(value: &FieldValue, with: &QueryValue) -> Ordering {
    match (value, with) {
        (FieldValue::Long(a) | FieldValue::Date(a), QueryValue::Integer(b) | QueryValue::Time(b)) => a.cmp(b),
        (FieldValue::Double(a), QueryValue::Double(b)) => a.partial_cmp(b).expect("no NaN"),
        _ => of_field(value).cmp(&of_query(with)),
    }
}

/// The double nearest to a part of an exact number, ties to even; infinite beyond the greatest.
pub(crate) fn nearest(number: &BigInt, part: u64) -> f64 {
    if number.sign() == Sign::NoSign {
        return 0.0;
    }
    let (whole, part) = (number.magnitude().clone(), BigUint::from(part));
    // A quotient of more bits than a double has, and whether anything is left.
    let moved = 60 - (whole.bits() as i64 - part.bits() as i64);
    let (whole, part) = if moved > 0 {
        (whole << moved, part)
    } else {
        (whole, part << -moved)
    };
    let quotient = &whole / &part;
    let rest = whole != &quotient * &part;
    let quotient = u128::try_from(&quotient).expect("61 bits");
    let bits = i64::from(u128::BITS - quotient.leading_zeros());
    // Units below 2^-1074 don't exist, so small numbers keep fewer bits.
    let dropped = (bits - 53).max(moved);
    let (kept, tail, half) = match dropped {
        ..=0 => (quotient << -dropped, 0, 1),
        1..=64 => (
            quotient >> dropped,
            quotient & ((1 << dropped) - 1),
            1 << (dropped - 1),
        ),
        _ => (0, 0, 1),
    };
    let up = tail > half || (tail == half && (rest || kept & 1 == 1));
    let kept = (kept + u128::from(up)) as f64;
    let exponent = dropped - moved - FRACTION_BITS;
    // Powers of two as two factors, of which neither is subnormal before the last step.
    let half = exponent / 2;
    let magnitude = kept * 2_f64.powi(half as i32) * 2_f64.powi((exponent - half) as i32);
    if number.sign() == Sign::Minus {
        -magnitude
    } else {
        magnitude
    }
}

#[test]
fn nearest_doubles_are_those_of_the_processor() {
    let mut rng = souk_seeds::random();
    for _ in 0..20_000 {
        let any = |rng: &mut fastrand::Rng| loop {
            let number = f64::from_bits(rng.u64(..));
            if number.is_finite() {
                return number;
            }
        };
        let (a, b) = (any(&mut rng), any(&mut rng));
        assert_eq!(nearest(&double(a), 1), a);
        let near = a * (1.0 + rng.f64());
        if near.is_finite() {
            assert_eq!(nearest(&(double(a) + double(near)), 1), a + near, "{a} {near}");
        }
        assert_eq!(nearest(&(double(a) + double(b)), 1), a + b, "{a} {b}");
        let part = rng.u32(1..);
        assert_eq!(
            nearest(&double(a), u64::from(part)),
            a / f64::from(part),
            "{a} / {part}"
        );
        let number = rng.i64(..);
        assert_eq!(nearest(&integer(number), 1), number as f64);
    }
}

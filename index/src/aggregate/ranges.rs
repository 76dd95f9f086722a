//! The ends of ranges of values.

use tantivy::columnar::MonotonicallyMappableToU64;

use super::column::Kind;
use crate::request::QueryValue;
use crate::result::Datum;

/// Behind every number.
pub(super) const OPEN: u128 = 1 << 64;

/// The first number of a field that is not below `value`, as the field's numbers are mapped, or [`OPEN`]; and the value
/// as it is shown. `None` for values that the field's can't be compared with.
pub(super) fn first_from(kind: Kind, value: &QueryValue) -> Option<(u128, Datum)> {
    Some(match (kind, value) {
        (Kind::Long, QueryValue::Integer(number)) => (u128::from(number.to_u64()), Datum::Long(*number)),
        (Kind::Long, QueryValue::Double(number)) if number.is_finite() => {
            let ceiling = number.ceil();
            // 2⁶³: every i64 is below it, and as a double it is exact.
            let first = if ceiling >= -(i64::MIN as f64) {
                OPEN
            } else {
                u128::from((ceiling as i64).to_u64())
            };
            (first, Datum::Double(*number))
        }
        (Kind::Date, QueryValue::Integer(nanos) | QueryValue::Time(nanos)) => {
            (u128::from(nanos.to_u64()), Datum::Date(*nanos))
        }
        (Kind::Double, QueryValue::Double(number)) if number.is_finite() => {
            (u128::from((number + 0.0).to_u64()), Datum::Double(*number))
        }
        (Kind::Double, QueryValue::Integer(number)) => {
            let near = *number as f64;
            let first = if (near as i128) < i128::from(*number) {
                near.next_up()
            } else {
                near
            };
            (u128::from(first.to_u64()), Datum::Double(near))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_exact_between_types() {
        let long = |value: QueryValue| first_from(Kind::Long, &value).map(|(first, _)| first);
        let mapped = |number: i64| Some(u128::from(number.to_u64()));
        assert_eq!(long(2.5.into()), mapped(3));
        assert_eq!(long((-2.5).into()), mapped(-2));
        assert_eq!(long(9.3e18.into()), Some(OPEN));
        assert_eq!(long((-9.3e18).into()), mapped(i64::MIN));
        let big = (1_i64 << 53) + 1;
        let (first, _) = first_from(Kind::Double, &big.into()).expect("a number");
        assert_eq!(first, u128::from(((big + 1) as f64).to_u64()));
        assert_eq!(first_from(Kind::Keyword, &big.into()), None);
    }
}

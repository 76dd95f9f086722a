//! The ends of ranges of values.

use std::ops::Bound;

use tantivy::columnar::MonotonicallyMappableToU64;

use super::column::Kind;
use crate::plan::number::{Number, double_positions, integers};
use crate::request::QueryValue;
use crate::result::Datum;

/// Behind every number.
pub(super) const OPEN: u128 = 1 << 64;

/// The first number of a field that is not below `value`, as the field's numbers are mapped, or [`OPEN`]; and the value
/// as it is shown. `None` for values that the field's can't be compared with.
pub(super) fn first_from(kind: Kind, value: &QueryValue) -> Option<(u128, Datum)> {
    let shown = match (kind, value) {
        (Kind::Long, QueryValue::Integer(number)) => Datum::Long(*number),
        (Kind::Long | Kind::Double, QueryValue::Double(number)) => Datum::Double(*number),
        (Kind::Double, QueryValue::Integer(number)) => Datum::Double(*number as f64),
        (Kind::Date, QueryValue::Integer(nanos) | QueryValue::Time(nanos)) => Datum::Date(*nanos),
        _ => return None,
    };
    let from = Bound::Included(Number::of(value)?);
    let first = match kind {
        Kind::Double => double_positions(from, Bound::Unbounded).map(|values| *values.start()),
        _ => integers(from, Bound::Unbounded).map(|values| values.start().to_u64()),
    };
    Some((first.map_or(OPEN, u128::from), shown))
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
